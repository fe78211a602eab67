// Products of tiles in shared memory by four warps together, which devices of capability 9.0 have.
// All 128 threads of such a group call them together. Tiles have rows of 64 numbers of 16 bits,
// whose pieces of 8 are exchanged as the unit wants them, see `swizzled`; which thread holds what
// of the sums is what the instruction `wgmma` says, and what that of `mma` is.
// PE_ON_CPU has the meaning of each instruction in C.

//! swizzled
/* Where an element of a tile lies: of each 8 rows the pieces of row `r` are exchanged by `r`, so
 * that those of a column are in different banks. */
static inline int swizzled(int at) { return at ^ (at >> 3 & 56); }

//! published
/* What this thread has written to shared memory is seen by units that read it on their own. */
static inline void published()
{
#ifndef PE_ON_CPU
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

//! settled
/* All products have been added to the sums. Each is then computed with once, by adding what changes
 * no number: a compiler that converts one at once takes it for read too early, and waits. */
template <int COUNT> static inline void settled(float *sums)
{
#ifndef PE_ON_CPU
    float nothing;
    asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
    asm volatile("mov.f32 %0, 0f80000000;" : "=f"(nothing));
    #pragma unroll
    for (int at = 0; at < COUNT; at++) asm volatile("" : "+f"(sums[at]) : : "memory");
    #pragma unroll
    for (int at = 0; at < COUNT; at++) sums[at] += nothing;
#endif
}

//! turned
/* Where a term of a row of a tile is; `FAR` and `TURNED` as in `described`. */
template <int FAR, bool TURNED> static inline int turned(int row, int term)
{
    return TURNED ? row / 64 * 64 * FAR + term * 64 + row % 64 : row * 64 + term;
}

//! described
/* What a unit is told of 64 rows of a tile, or of all its columns, from a term on: where they lie,
 * how far apart blocks of 64 are, and blocks of 8; pieces are exchanged in 128 bytes. `FAR` says
 * how many rows of 64 neighbours a block has; they are terms, or with `TURNED` rows or columns. */
template <int FAR, bool TURNED>
static inline uint64_t described(const uint16_t *tile, int row, int term)
{
#ifdef PE_ON_CPU
    return 0;
#else
    const uint64_t place = __cvta_generic_to_shared(tile + turned<FAR, TURNED>(row, term));
    const uint64_t start = place >> 4 & 0x3fff;
    return start | (uint64_t)(FAR * 128 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
#endif
}

//! PE_SUMS
#define PE_FOUR(q) "+f"(sums[2 * (q)]), "+f"(sums[2 * (q) + 1]), \
    "+f"(sums[COLUMNS + 2 * (q)]), "+f"(sums[COLUMNS + 2 * (q) + 1])
#define PE_SUMS(q) PE_FOUR(q), PE_FOUR(q + 1), PE_FOUR(q + 2), PE_FOUR(q + 3), \
    PE_FOUR(q + 4), PE_FOUR(q + 5), PE_FOUR(q + 6), PE_FOUR(q + 7)

//! PE_PLACES
#define PE_PLACES "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PE_MORE_PLACES "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
    "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, " \
    "%125, %126, %127"

//! PE_WIDE
/* Adds to 64 rows of 128 or 256 sums the products of 16 terms, of factors of a type. */
#define PE_WIDE(type) \
    template <int COLUMNS, int FIRST, int SECOND> \
    static inline void add(float *sums, uint64_t first, uint64_t second) \
    { \
        if (COLUMNS == 64) \
            asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type \
                " {" PE_PLACES ", " PE_MORE_PLACES "}, %128, %129, 1, 1, 1, %130, %131;" \
                : PE_SUMS(0), PE_SUMS(8), PE_SUMS(COLUMNS / 4), PE_SUMS(COLUMNS / 4 + 8) \
                : "l"(first), "l"(second), "n"(FIRST), "n"(SECOND)); \
        else \
            asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type \
                " {" PE_PLACES "}, %64, %65, 1, 1, 1, %66, %67;" \
                : PE_SUMS(0), PE_SUMS(8) \
                : "l"(first), "l"(second), "n"(FIRST), "n"(SECOND)); \
    }

//! wide_f16
struct wide_f16 {
#ifdef PE_ON_CPU
    static inline float number(uint16_t bits)
    {
        _Float16 x;
        memcpy(&x, &bits, sizeof x);
        return (float)x;
    }
#else
    PE_WIDE("f16")
#endif
};

//! wide_bf16
struct wide_bf16 {
#ifdef PE_ON_CPU
    static inline float number(uint16_t bits)
    {
        const uint32_t wide = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &wide, sizeof x);
        return x;
    }
#else
    PE_WIDE("bf16")
#endif
};

//! multiplied_wide
/* Begins to add to 64 rows of sums the products of `TERMS` terms of two tiles, and waits until
 * those of the call before are added: the tiles of that one may then be filled. Groups of 128
 * threads have the rows of the first tile one behind the other. */
template <class UNIT, int COLUMNS, int TERMS, int ROW_FAR, bool ROW_TURNED, int COLUMN_FAR,
          bool COLUMN_TURNED>
static inline void multiplied_wide(float *sums, const uint16_t *first, const uint16_t *second)
{
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
#ifdef PE_ON_CPU
    for (int r = 0; r < 2; r++)
        for (int s = 0; s < COLUMNS; s++) {
            const int row = thread / 32 * 16 + r * 8 + thread % 32 / 4;
            const int column = s / 2 * 8 + thread % 4 * 2 + s % 2;
            for (int k = 0; k < TERMS; k++) {
                const int one = turned<ROW_FAR, ROW_TURNED>(row, k);
                const int other = turned<COLUMN_FAR, COLUMN_TURNED>(column, k);
                sums[r * COLUMNS + s] +=
                    UNIT::number(first[swizzled(one)]) * UNIT::number(second[swizzled(other)]);
            }
        }
#else
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
    #pragma unroll
    for (int k = 0; k < TERMS; k += 16)
        UNIT::template add<COLUMNS, ROW_TURNED, COLUMN_TURNED>(
            sums, described<ROW_FAR, ROW_TURNED>(first, thread / 128 * 64, k),
            described<COLUMN_FAR, COLUMN_TURNED>(second, 0, k));
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
#endif
}
