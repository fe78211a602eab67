// What functions without branches are made of. Compilers make vectors of loops that call such
// functions, and a vector's lane computes what the scalar code does, so results have the same
// bits whatever the length of a loop and wherever it was cut. In these pieces $U is the unsigned
// type of the width, $m the digits that a number stores, and $e the bias of its exponent.
// A function of floats that takes many instructions is `elemental`: it is inlined, or outlined
// where a text calls many of them; see `outlined` of the prelude.

//! inlined
#define inlined static inline __attribute__((always_inline))

//! outlined
/* A function with a body of its own, and one more for vectors of each length, which gcc calls from
   loops that it vectorizes; other compilers know no such bodies and inline it. */
#if defined __GNUC__ && !defined __clang__ && defined __x86_64__
#define outlined static __attribute__((noinline, const, simd("notinbranch")))
#else
#define outlined inlined
#endif

//! bits_$t: f32 f64
inlined $U bits_$t($T x)
{
    $U bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

//! of_bits_$t: f32 f64
inlined $T of_bits_$t($U bits)
{
    $T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

//! pick_$t: f32 f64
/* test ? yes : no, both computed: a branch would keep its loop from becoming vectors. */
inlined $T pick_$t(bool test, $T yes, $T no)
{
    const $U mask = -($U)test;
    return of_bits_$t((bits_$t(yes) & mask) | (bits_$t(no) & ~mask));
}

//! mad_$t: f32 f64
/* a * b + c, rounded once where the processor can: compilers know no other place for that. */
inlined $T mad_$t($T a, $T b, $T c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    return __builtin_fma$f(a, b, c);
#else
    return a * b + c;
#endif
}

//! whole_$t: f32 f64
/* The nearest whole number as a float, of which the low bits are that number plus those of 0. */
#define whole_$t 0x1.8p$m$f

//! scaled_$t: f32 f64
/* x * 2**n for x near 1 and |n| < 2 * $e, rounded once. */
inlined $T scaled_$t($T x, $U n)
{
    const $U all = n + 2 * $e, half = all >> 1;
    return x * of_bits_$t(half << $m) * of_bits_$t((all - half) << $m);
}

//! pe_pair_$t: f32 f64
typedef struct { $T high, low; } pe_pair_$t;

//! half_digits_$t: f32 f64
/* x rounded to half its digits: the rest has no more either, and products of such are exact. */
inlined $T half_digits_$t($T x)
{
    const $U half = ($U)1 << ($m / 2), upper = ~($U)0 << ($m / 2 + 1);
    return of_bits_$t((bits_$t(x) + half) & upper);
}

//! product_$t: f32 f64
/* a * b in two parts, exactly; neither is near the largest or the smallest of numbers. */
inlined pe_pair_$t product_$t($T a, $T b)
{
    const $T high = a * b;
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    return (pe_pair_$t){high, __builtin_fma$f(a, b, -high)};
#else
    const $T a1 = half_digits_$t(a), b1 = half_digits_$t(b), a2 = a - a1, b2 = b - b1;
    return (pe_pair_$t){high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}

//! sum_$t: f32 f64
/* a + b in two parts, exactly. */
inlined pe_pair_$t sum_$t($T a, $T b)
{
    const $T high = a + b, part = high - a;
    return (pe_pair_$t){high, (a - (high - part)) + (b - part)};
}

//! ordered_sum_$t: f32 f64
/* a + b in two parts, exactly, where a is 0, or the larger, or a + b needs one part. */
inlined pe_pair_$t ordered_sum_$t($T a, $T b)
{
    const $T high = a + b;
    return (pe_pair_$t){high, b - (high - a)};
}
