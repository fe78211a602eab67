// Vectors by the extension that gcc and clang share. In a piece $v is the name of a vector type,
// $T the C type of its elements, $B its bytes, $b the bytes of one element, $n how many it has, $x
// the end of names of instructions that there are where $k.

//! $v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
typedef $T $v __attribute__((vector_size($B)));

//! $v: u8x2 u8x4 u8x8 u8x16 i32x2 i32x4 i32x8 i32x16 i64x2 i64x4 i64x8
typedef $T $v __attribute__((vector_size($B)));

//! $v: u32x2 u32x4 u32x8 u32x16 u64x2 u64x4 u64x8
typedef $T $v __attribute__((vector_size($B)));

//! $v_at: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
typedef $T $v_at __attribute__((vector_size($B), __aligned__($b), may_alias));

//! $v_at: u8x2 u8x4 u8x8 u8x16 i32x2 i32x4 i32x8 i32x16 i64x2 i64x4 i64x8
typedef $T $v_at __attribute__((vector_size($B), __aligned__($b), may_alias));

//! $v_at: u32x2 u32x4 u32x8 u32x16 u64x2 u64x4 u64x8
typedef $T $v_at __attribute__((vector_size($B), __aligned__($b), may_alias));

//! all_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* x - 0.0 is x, for -0.0 too. */
static inline $v all_$v($T x) { return x - ($v){0}; }

//! all_$v: i32x2 i32x4 i32x8 i32x16 i64x2 i64x4 i64x8
static inline $v all_$v($T x) { return x - ($v){0}; }

//! all_$v: u32x2 u32x4 u32x8 u32x16 u64x2 u64x4 u64x8
static inline $v all_$v($T x) { return x - ($v){0}; }

//! pick_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* Where a lane of the test has all bits set the first one, and where it has none the other. */
static inline $v pick_$v(__typeof__(($v){0} < ($v){0}) test, $v yes, $v no)
{
    return ($v)(((__typeof__(test))yes & test) | ((__typeof__(test))no & ~test));
}

//! before_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* Which lanes are before that number: gcc 12 fails on a comparison of constants here. */
static inline $I before_$v(int count)
{
    return (($I){$N} - count) >> (8 * $b - 1);
}

//! first_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* So many elements; the lanes behind them are 0, and nothing is read for these. */
static inline $v first_$v(const $T *x, int count)
{
#if $K && !defined(__clang__)
    if (!__builtin_constant_p(count)) {
        if (count >= $n) return *(const $v_at *)x;
        return $M;
    }
#endif
    $v all = {0};
    for (int n = 0; n < $n; n++) {
        if (n < count) all[n] = x[n];
    }
    return all;
}

//! padded_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* So many lanes as they are, and another number in those behind them. */
static inline $v padded_$v($v x, int count, $T other)
{
    return count < $n ? pick_$v(before_$v(count), x, all_$v(other)) : x;
}

//! max_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
/* The instruction has a where they are equal and where one is NaN; all bits set are a NaN. */
static inline $v max_$v($v a, $v b)
{
#if $k && !defined(__clang__)
    const __typeof__(b != b) none = b != b;
    return ($v)((__typeof__(none))__builtin_ia32_max$x(b, a) | none);
#else
    return pick_$v((a >= b) | (a != a), a, b);
#endif
}

//! min_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
static inline $v min_$v($v a, $v b)
{
#if $k && !defined(__clang__)
    const __typeof__(b != b) none = b != b;
    return ($v)((__typeof__(none))__builtin_ia32_min$x(b, a) | none);
#else
    return pick_$v((a <= b) | (a != a), a, b);
#endif
}

//! fma_$v: f32x2 f32x4 f32x8 f32x16 f64x2 f64x4 f64x8
static inline $v fma_$v($v a, $v b, $v c)
{
#if $c && !defined(__clang__)
    return $F;
#elif defined(__clang__)
    return __builtin_elementwise_fma(a, b, c);
#else
    for (int n = 0; n < $n; n++) c[n] = __builtin_fma$f(a[n], b[n], c[n]);
    return c;
#endif
}

//! f64x8_of_f32x8
/* gcc 12 would convert each half on its own, and put them together. */
static inline f64x8 f64x8_of_f32x8(f32x8 x)
{
#if defined(__AVX512F__) && !defined(__clang__)
    return __builtin_ia32_cvtps2pd512_mask(x, (f64x8){0}, -1, 4);
#else
    return __builtin_convertvector(x, f64x8);
#endif
}

//! free_registers
/* No vector of the loops around stays in a register over what follows, whose sums fill them:
   compilers keep a zero or a factor there that is used again, and then add in memory. */
static inline void free_registers(void)
{
#ifdef __x86_64__
    __asm__ volatile("" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
        "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}
