// Real functions as NumPy defines them, all but the elementary ones.

//! rounded
/* x, which compilers do not join with what is done to it: gcc 12 rounds a product together with
   the sum or difference of it where neighbouring elements of a vector are one each. */
#if defined __has_builtin
#if __has_builtin(__builtin_assoc_barrier)
#define rounded(x) __builtin_assoc_barrier(x)
#endif
#endif
#ifndef rounded
#define rounded(x) (x)
#endif

//! abs_$t: f32 f64
static inline $T abs_$t($T x) { return fabs$f(x); }

//! sign_$t: f32 f64
static inline $T sign_$t($T x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

//! from_zero_$t: f32 f64
/* 0 - x, of which compilers make -x where x stands in the same expression; that is -0 for 0. */
static inline $T from_zero_$t($T x)
{
    const $T zero = 0;
    return zero - x;
}

//! zero_product_$t: f32 f64
/* a * b, one of them a literal zero: where the other one stands in the same expression, and can be
   no negative number, compilers make a literal zero of the product, then -x of 0 - x as above. */
static inline $T zero_product_$t($T a, $T b) { return a * b; }

//! floor_$t: f32 f64
static inline $T floor_$t($T x) { return floor$f(x); }

//! ceil_$t: f32 f64
static inline $T ceil_$t($T x) { return ceil$f(x); }

//! trunc_$t: f32 f64
static inline $T trunc_$t($T x) { return trunc$f(x); }

//! rint_$t: f32 f64
static inline $T rint_$t($T x) { return rint$f(x); }

//! sqrt_$t: f32 f64
static inline $T sqrt_$t($T x) { return sqrt$f(x); }

//! recip_$t: f32 f64
static inline $T recip_$t($T x) { return 1 / x; }

//! recip_sqrt_$t: f32 f64
static inline $T recip_sqrt_$t($T x) { return 1 / sqrt$f(x); }

//! relu_$t: f32 f64
static inline $T relu_$t($T x) { return x >= 0 ? x : 0; }

//! sat01_$t: f32 f64
static inline $T sat01_$t($T x) { return x > 1 ? 1 : x > 0 ? x : 0; }

//! relu_gate_$t: f32 f64
static inline $T relu_gate_$t($T gate, $T x) { return gate > 0 ? x : 0; }

//! sat01_gate_$t: f32 f64
static inline $T sat01_gate_$t($T gate, $T x) { return 0 < gate && gate < 1 ? x : 0; }

//! isnan_$t: f32 f64
static inline bool isnan_$t($T x) { return x != x; }

//! isinf_$t: f32 f64
static inline bool isinf_$t($T x) { return isinf(x) != 0; }

//! isfinite_$t: f32 f64
static inline bool isfinite_$t($T x) { return isfinite(x) != 0; }

//! signbit_$t: f32 f64
static inline bool signbit_$t($T x) { return signbit(x) != 0; }

//! ordinal_$t: f32 f64
/* The size with the sign of x, from minus infinity on; NaN is next to infinity. */
static inline $U ordinal_$t($T x)
{
    $U bits;
    memcpy(&bits, &x, sizeof bits);
    const $U sign = -(bits >> ($b - 1)), top = ($U)(2 * $e + 1) << $m;
    const $U size = bits & ~(($U)1 << ($b - 1)), place = ((size ^ sign) - sign) + top;
    return place < top + top ? place : top + top + (size > top);
}

//! rank_$t: f32 f64
/* The bits as an integer in the order of the numbers; the sign of NaN is dropped. */
static inline int$b_t rank_$t($T x)
{
    const $U most = ~($U)0 >> 1;
    $U bits;
    memcpy(&bits, &x, sizeof bits);
    const $U is_nan = (bits & most) > ($U)(2 * $e + 1) << $m;
    bits &= most | (is_nan - 1);
    return (int$b_t)(bits ^ (-(bits >> ($b - 1)) & most));
}

//! of_rank_i$b: f32 f64
static inline $T of_rank_i$b(int$b_t place)
{
    $U bits = ($U)place;
    bits ^= -(bits >> ($b - 1)) & ~($U)0 >> 1;
    $T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

//! fmod_f64
/* What remains of a is exact: with |a / b| < 2**53 the quotient is right or one too large, and a
   less so many times b is a multiple of its last digit, no larger than b. A library divides digit
   by digit. */
static inline double fmod_f64(double a, double b)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    if (fabs(a) < fabs(b)) return a;
    const double q = trunc(a / b);
    if (fabs(q) < 0x1p53) {
        const double r = __builtin_fma(-q, b, a);
        return copysign(r != 0 && (r < 0) != (a < 0) ? fabs(b) - fabs(r) : r, a);
    }
#endif
    return fmod(a, b);
}

//! fmod_f32
/* As fmod_f64, in double: there the quotient is never too large, and the product is exact. */
static inline float fmod_f32(float a, float b)
{
    const double q = trunc((double)a / b);
    if (fabsf(a) < fabsf(b)) return a;
    return fabs(q) < 0x1p29 ? copysignf((float)(a - q * b), a) : fmodf(a, b);
}

//! floordiv_$t: f32 f64
static inline $T floordiv_$t($T a, $T b)
{
    if (b == 0) return a / b;
    const $T r = fmod_$t(a, b);
    /* Signs are hard to guess: no branches. a / b has the sign of the result, also of 0. */
    const $T q = (a - r) / b - ($T)((r != 0) & ((r < 0) != (b < 0)));
    const $T whole = floor$f(q);
    return copysign$f(whole + ($T)(q - whole > ($T)0.5), a / b);
}

//! mod_$t: f32 f64
static inline $T mod_$t($T a, $T b)
{
    const $T r = fmod_$t(a, b);
    if (b == 0) return r;
    if (r == 0) return copysign$f(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

//! max_$t: f32 f64
static inline $T max_$t($T a, $T b) { return a >= b || a != a ? a : b; }

//! min_$t: f32 f64
static inline $T min_$t($T a, $T b) { return a <= b || a != a ? a : b; }

//! fmax_$t: f32 f64
static inline $T fmax_$t($T a, $T b) { return a >= b || b != b ? a : b; }

//! fmin_$t: f32 f64
static inline $T fmin_$t($T a, $T b) { return a <= b || b != b ? a : b; }

//! copysign_$t: f32 f64
static inline $T copysign_$t($T a, $T b) { return copysign$f(a, b); }

//! heaviside_$t: f32 f64
static inline $T heaviside_$t($T x, $T at_zero)
{
    return x != x ? x : x == 0 ? at_zero : x < 0 ? 0 : 1;
}

//! round_to_$t: f32 f64
static inline $T round_to_$t($T x, $T digits)
{
    const int places = (int)(digits > 400 ? 400 : digits < -400 ? -400 : digits);
    double scale = 1;
    for (int i = places < 0 ? -places : places; i > 0 && scale < 1e300; i--) scale *= 10;
    const $T by = ($T)scale;
    return places == 0 ? rint$f(x) : places > 0 ? rint$f(x * by) / by : rint$f(x / by) * by;
}

//! round_decimal_$t: f32 f64
/* Python's: the exact product, high + low, decides; what is on neither side of a half is even. */
static inline $T round_decimal_$t($T x, $T digits)
{
    const int places = (int)digits;
    const double value = (double)x, limit = 0x1p53;
    double scale = 1;
    for (int i = places < 0 ? -places : places; i > 0; i--) scale *= 10;
    if (places >= 0) {
        const double high = value * scale;
        if (!(fabs(high) < limit)) return x;
        const double low = fma(value, scale, -high), whole = rint(high), rest = high - whole;
        const bool up = rest == 0.5 && low > 0, down = rest == -0.5 && low < 0;
        return ($T)((up || down ? whole + (up ? 1 : -1) : whole) / scale);
    }
    const double whole = rint(value / scale), half = scale / 2;
    if (!(fabs(whole) < limit)) return x;
    const double rest = fma(-whole, scale, value);
    const bool is_odd = fmod(whole, 2) != 0;
    const bool up = rest > half || (rest == half && is_odd);
    const bool down = rest < -half || (rest == -half && is_odd);
    return ($T)((up || down ? whole + (up ? 1 : -1) : whole) * scale);
}

//! fma_$t: f32 f64
static inline $T fma_$t($T a, $T b, $T c) { return fma$f(a, b, c); }
