// Products of tiles in shared memory by tensor cores, and the copies that fill these tiles. All 32
// threads of a warp call them together. Which thread holds what is what the instruction `mma` says;
// `lane / 4` and `lane % 4` stand in each function for a row and for a pair of columns.
// PE_ON_CPU has the meaning of each instruction in C.

//! shared_at
#ifndef PE_ON_CPU
/* The address of what lies in shared memory, as instructions take it. */
static inline uint32_t shared_at(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}
#endif

//! at_once
/* 16 bytes from the device to shared memory, both aligned, there behind an `arrived`. */
static inline void at_once(void *to, const void *from)
{
#ifdef PE_ON_CPU
    pe_aligned(to, 16);
    pe_aligned(from, 16);
    pe_copied_later(to, from, 16);
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 : : "r"(shared_at(to)), "l"(from) : "memory");
#endif
}

//! copied
/* 16 bytes from the device to shared memory, there behind an `arrived`: at once where they
 * are aligned, else in four parts, else element by element. */
template <class T> static inline void copied(T *to, const T *from)
{
#ifdef PE_ON_CPU
    pe_aligned(to, 16);
    pe_copied_later(to, from, 16);
#else
    const uint64_t place = (uint64_t)from;
    if (place % 16 == 0) {
        at_once(to, from);
    } else if (place % 4 == 0) {
        for (int part = 0; part < 4; part++)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                         : : "r"(shared_at(to) + 4 * part), "l"(place + 4 * part) : "memory");
    } else {
        for (int at = 0; at < (int)(16 / sizeof(T)); at++) to[at] = from[at];
    }
#endif
}

//! arrived
/* What this thread has copied is there, but for that since the last `LATER` calls of this. */
template <int LATER> static inline void arrived()
{
#ifdef PE_ON_CPU
    pe_arrived(LATER);
#else
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group %0;" : : "n"(LATER) : "memory");
#endif
}

//! fragment
/* What a thread holds of 16 rows of 16 terms, or of columns: 8 parts of 2 terms each in 4 numbers.
 * `tile` is the first row of the warp, `NEXT` leads to the next row and `TERM` to the next term.
 * Numbers that `mma` takes together are neighbours: of rows first the other 8 of them, by 1, of
 * columns first their other 8 terms, by 2. */
template <int NEXT, int TERM, int BY>
static inline void fragment(uint32_t *held, const uint16_t *tile)
{
    const int lane = lane_of();
#ifdef PE_ON_CPU
    for (int part = 0; part < 4; part++) {
        const int row = lane / 4 + part / BY % 2 * 8;
        const int term = lane % 4 * 2 + part / (3 - BY) % 2 * 8;
        const uint16_t *pair = tile + row * NEXT + term * TERM;
        held[part] = pair[0] | (uint32_t)pair[TERM] << 16;
    }
#else
    const int inner = lane % 8, one = lane / (8 * BY) % 2 * 8, other = lane / (24 - 8 * BY) % 2 * 8;
    if (TERM == 1) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
                     : "r"(shared_at(tile + (one + inner) * NEXT + other)) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
                     : "r"(shared_at(tile + (other + inner) * TERM + one)) : "memory");
    }
#endif
}
/* The same of 8 terms of 32 bits, rounded to the 10 bits of a mantissa that are multiplied. */
template <int NEXT, int TERM, int BY> static inline void fragment(uint32_t *held, const float *tile)
{
    const int lane = lane_of();
    for (int part = 0; part < 4; part++) {
        const int row = lane / 4 + part / BY % 2 * 8, term = lane % 4 + part / (3 - BY) % 2 * 4;
        const float x = tile[row * NEXT + term * TERM];
#ifdef PE_ON_CPU
        memcpy(held + part, &x, sizeof x);
        held[part] = x == x ? (held[part] + 0x1000) & 0xffffe000u : 0x7fffe000u;
#else
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(held[part]) : "f"(x));
#endif
    }
}

//! summed_in_c
#ifdef PE_ON_CPU
/* What `mma` means for 16 rows, 8 columns and `2 * PAIRS` terms of 16 bits, or `PAIRS` of 32. */
template <int HALVES, class Number>
static void summed_in_c(float *sums, const uint32_t *rows, uint32_t one, uint32_t other,
                        Number number)
{
    struct Held { uint32_t rows[4], columns[2]; } all[32];
    const Held mine = {{rows[0], rows[1], rows[2], rows[3]}, {one, other}};
    pe_exchanged(&mine, sizeof mine, all);
    for (int at = 0; at < 4; at++) {
        const int lane = lane_of(), row = lane / 4, column = lane % 4 * 2 + at % 2;
        for (int term = 0; term < 8 * HALVES; term++) {
            const int part = term % (4 * HALVES) / HALVES, far = term / (4 * HALVES);
            const uint32_t first = all[row * 4 + part].rows[far * 2 + at / 2];
            const uint32_t second = all[column * 4 + part].columns[far];
            const int half = term % HALVES;
            sums[at] += number(first, half) * number(second, half);
        }
    }
}
#endif

//! product_f16
static inline void product_f16(float *sums, const uint32_t *rows, uint32_t one, uint32_t other)
{
#ifdef PE_ON_CPU
    summed_in_c<2>(sums, rows, one, other, [](uint32_t bits, int half) {
        const uint16_t mine = (uint16_t)(bits >> 16 * half);
        _Float16 x;
        memcpy(&x, &mine, sizeof x);
        return (float)x;
    });
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(one), "r"(other));
#endif
}

//! product_bf16
static inline void product_bf16(float *sums, const uint32_t *rows, uint32_t one, uint32_t other)
{
#ifdef PE_ON_CPU
    summed_in_c<2>(sums, rows, one, other, [](uint32_t bits, int half) {
        bits = half ? bits & 0xffff0000u : bits << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    });
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(one), "r"(other));
#endif
}

//! product_tf32
static inline void product_tf32(float *sums, const uint32_t *rows, uint32_t one, uint32_t other)
{
#ifdef PE_ON_CPU
    summed_in_c<1>(sums, rows, one, other, [](uint32_t bits, int) {
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    });
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(one), "r"(other));
#endif
}

//! multiplied
/* Adds to the sums of a warp the products of `ROWS * 8` rows and `COLUMNS * 4` columns of tiles.
 * `first` and `second` are this thread's first row and column; then come, of each tile, how far it
 * is to the next row or column, and to the next term. */
template <void UNIT(float *, const uint32_t *, uint32_t, uint32_t), int ROWS, int COLUMNS,
          int TERMS, int ROW, int ROW_TERM, int COLUMN, int COLUMN_TERM, class T>
static inline void multiplied(float *sums, const T *first, const T *second)
{
    __syncwarp();
    const int step = 32 / sizeof(T), lane = lane_of();
    const T *rows = first - lane / 4 * ROW, *columns = second - lane % 4 * 2 * COLUMN;
    #pragma unroll
    for (int term = 0; term < TERMS; term += step) {
        uint32_t a[ROWS / 2][4], b[COLUMNS / 4][4];
        #pragma unroll
        for (int r = 0; r < ROWS / 2; r++)
            fragment<ROW, ROW_TERM, 1>(a[r], rows + r * 16 * ROW + term * ROW_TERM);
        #pragma unroll
        for (int s = 0; s < COLUMNS / 4; s++)
            fragment<COLUMN, COLUMN_TERM, 2>(
                b[s], columns + s * 16 * COLUMN + term * COLUMN_TERM);
        #pragma unroll
        for (int r = 0; r < ROWS / 2; r++)
            #pragma unroll
            for (int s = 0; s < COLUMNS / 2; s++) {
                float *upper = sums + r * 2 * COLUMNS + s * 2, *lower = upper + COLUMNS;
                float four[4] = {upper[0], upper[1], lower[0], lower[1]};
                UNIT(four, a[r], b[s / 2][s % 2 * 2], b[s / 2][s % 2 * 2 + 1]);
                upper[0] = four[0], upper[1] = four[1];
                lower[0] = four[2], lower[1] = four[3];
            }
    }
}

//! computed
/* The same number of 32 bits, once more computed. Sums that are stored together have to be in
 * neighbouring registers: a compiler that moves none of them keeps them there all the time, for
 * which it has too few, and puts some into memory. What is computed of them has its own. */
template <class T> static inline T computed(T x)
{
#ifndef PE_ON_CPU
    uint32_t zero; /* as fewer blocks than that are started */
    asm volatile("mov.u32 %0, %%nctaid.z;" : "=r"(zero));
    *(uint32_t *)&x ^= zero >> 20;
#endif
    return x;
}

//! stored
/* Two neighbours by one instruction, at a multiple of their size. */
template <class T> static inline void stored(T *to, T first, T second)
{
#ifdef PE_ON_CPU
    pe_aligned(to, 2 * sizeof(T));
    to[0] = first;
    to[1] = second;
#else
    struct __align__(2 * sizeof(T)) Both { T first, second; };
    *(Both *)to = Both{first, second};
#endif
}
