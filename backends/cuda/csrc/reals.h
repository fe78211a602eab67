// The functions of CUDA's own library, correct to the units in the last place that its guide
// states; and 16-bit floats, which are stored as bits.

//! rounded
/* Nothing is joined here: `-fmad=false`, and a product has a name of its own. */
#define rounded(x) (x)

//! exp_$t: f32 f64
static inline $T exp_$t($T x) { return exp$f(x); }

//! exp2_$t: f32 f64
static inline $T exp2_$t($T x) { return exp2$f(x); }

//! expm1_$t: f32 f64
static inline $T expm1_$t($T x) { return expm1$f(x); }

//! log_$t: f32 f64
static inline $T log_$t($T x) { return log$f(x); }

//! log2_$t: f32 f64
static inline $T log2_$t($T x) { return log2$f(x); }

//! log10_$t: f32 f64
static inline $T log10_$t($T x) { return log10$f(x); }

//! log1p_$t: f32 f64
static inline $T log1p_$t($T x) { return log1p$f(x); }

//! sin_$t: f32 f64
static inline $T sin_$t($T x) { return sin$f(x); }

//! cos_$t: f32 f64
static inline $T cos_$t($T x) { return cos$f(x); }

//! tan_$t: f32 f64
static inline $T tan_$t($T x) { return tan$f(x); }

//! sinh_$t: f32 f64
static inline $T sinh_$t($T x) { return sinh$f(x); }

//! cosh_$t: f32 f64
static inline $T cosh_$t($T x) { return cosh$f(x); }

//! tanh_$t: f32 f64
static inline $T tanh_$t($T x) { return tanh$f(x); }

//! cbrt_$t: f32 f64
static inline $T cbrt_$t($T x) { return cbrt$f(x); }

//! erf_$t: f32 f64
static inline $T erf_$t($T x) { return erf$f(x); }

//! erfc_$t: f32 f64
static inline $T erfc_$t($T x) { return erfc$f(x); }

//! arcsin_$t: f32 f64
static inline $T arcsin_$t($T x) { return asin$f(x); }

//! arccos_$t: f32 f64
static inline $T arccos_$t($T x) { return acos$f(x); }

//! arctan_$t: f32 f64
static inline $T arctan_$t($T x) { return atan$f(x); }

//! arcsinh_$t: f32 f64
static inline $T arcsinh_$t($T x) { return asinh$f(x); }

//! arccosh_$t: f32 f64
static inline $T arccosh_$t($T x) { return acosh$f(x); }

//! arctanh_$t: f32 f64
static inline $T arctanh_$t($T x) { return atanh$f(x); }

//! pow_$t: f32 f64
static inline $T pow_$t($T a, $T b) { return pow$f(a, b); }

//! whole_pow_$t: f32 f64
static inline $T whole_pow_$t($T a, $T n) { return pow$f(a, n); }

//! half_pow_$t: f32 f64
static inline $T half_pow_$t($T a, $T n)
{
    return n == ($T)0.5 ? (a == -INFINITY ? INFINITY : sqrt$f(a) + 0) : pow$f(a, n);
}

//! arctan2_$t: f32 f64
static inline $T arctan2_$t($T y, $T x) { return atan2$f(y, x); }

//! hypot_$t: f32 f64
static inline $T hypot_$t($T a, $T b) { return hypot$f(a, b); }

//! logaddexp_$t: f32 f64
static inline $T logaddexp_$t($T a, $T b)
{
    if (a == b) return a + ($T)0.693147180559945309417232121458176568;
    const $T gap = a - b;
    return gap > 0 ? a + log1p$f(exp$f(-gap)) : gap <= 0 ? b + log1p$f(exp$f(gap)) : gap;
}

//! f32_from_f16
static inline float f32_from_f16(uint16_t x)
{
    float y;
#ifdef PE_ON_CPU
    _Float16 half;
    memcpy(&half, &x, sizeof half);
    y = half;
#else
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
#endif
    return y;
}

//! f16_from_f32
static inline uint16_t f16_from_f32(float x)
{
    uint16_t y;
#ifdef PE_ON_CPU
    const _Float16 half = (_Float16)x;
    memcpy(&y, &half, sizeof y);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
#endif
    return y;
}

//! f16_from_f64
static inline uint16_t f16_from_f64(double x)
{
    uint16_t y;
#ifdef PE_ON_CPU
    const _Float16 half = (_Float16)x;
    memcpy(&y, &half, sizeof y);
#else
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y) : "d"(x));
#endif
    return y;
}

//! bf16_from_f32
static inline uint16_t bf16_from_f32(float x)
{
#if defined PE_ON_CPU || __CUDA_ARCH__ < 800
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : rounded);
#else
    uint16_t y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#endif
}
