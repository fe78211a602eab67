// Complex numbers as a pair, with NumPy's formulae: plain products, Smith's division. The
// transcendental functions are those of the C library.

//! pe_$t: c64 c128
typedef struct { $R re, im; } pe_$t;

//! native_$t: c64 c128
static inline $R _Complex native_$t(pe_$t x)
{
    union { pe_$t pair; $R _Complex number; } both = {x};
    return both.number;
}

//! pair_$t: c64 c128
static inline pe_$t pair_$t($R _Complex x)
{
    union { $R _Complex number; pe_$t pair; } both = {x};
    return both.pair;
}

//! complex_f32
static inline pe_c64 complex_f32(float re, float im) { return (pe_c64){re, im}; }

//! complex_f64
static inline pe_c128 complex_f64(double re, double im) { return (pe_c128){re, im}; }

//! real_$t: c64 c128
static inline $R real_$t(pe_$t x) { return x.re; }

//! imag_$t: c64 c128
static inline $R imag_$t(pe_$t x) { return x.im; }

//! conj_$t: c64 c128
static inline pe_$t conj_$t(pe_$t x) { return (pe_$t){x.re, -x.im}; }

//! neg_$t: c64 c128
static inline pe_$t neg_$t(pe_$t x) { return (pe_$t){-x.re, -x.im}; }

//! abs_$t: c64 c128
static inline $R abs_$t(pe_$t x) { return hypot_$r(x.re, x.im); }

//! angle_$t: c64 c128
static inline $R angle_$t(pe_$t x) { return arctan2_$r(x.im, x.re); }

//! add_$t: c64 c128
static inline pe_$t add_$t(pe_$t a, pe_$t b) { return (pe_$t){a.re + b.re, a.im + b.im}; }

//! sub_$t: c64 c128
static inline pe_$t sub_$t(pe_$t a, pe_$t b) { return (pe_$t){a.re - b.re, a.im - b.im}; }

//! mul_$t: c64 c128
static inline pe_$t mul_$t(pe_$t a, pe_$t b)
{
    return (pe_$t){
        rounded(a.re * b.re) - rounded(a.im * b.im), rounded(a.re * b.im) + rounded(a.im * b.re)};
}

//! div_$t: c64 c128
static inline pe_$t div_$t(pe_$t a, pe_$t b)
{
    const $R re = fabs$f(b.re), im = fabs$f(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return (pe_$t){a.re / re, a.im / re};
        const $R ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return (pe_$t){(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const $R ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return (pe_$t){
        (rounded(a.re * ratio) + a.im) * scale, (rounded(a.im * ratio) - a.re) * scale};
}

//! recip_$t: c64 c128
static inline pe_$t recip_$t(pe_$t x)
{
    if (fabs$f(x.im) <= fabs$f(x.re)) {
        const $R ratio = x.im / x.re, whole = x.re + x.im * ratio;
        return (pe_$t){1 / whole, -ratio / whole};
    }
    const $R ratio = x.re / x.im, whole = x.im + x.re * ratio;
    return (pe_$t){ratio / whole, -1 / whole};
}

//! sign_$t: c64 c128
static inline pe_$t sign_$t(pe_$t x)
{
    const $R size = hypot_$r(x.re, x.im);
    if (size == 0) return (pe_$t){0, 0};
    if (!isinf(size)) return (pe_$t){x.re / size, x.im / size};
    if (isinf(x.re) && isinf(x.im)) return (pe_$t){NAN, NAN};
    if (isinf(x.re)) return (pe_$t){x.re > 0 ? 1 : -1, 0};
    return (pe_$t){0, x.im > 0 ? 1 : -1};
}

//! rint_$t: c64 c128
static inline pe_$t rint_$t(pe_$t x) { return (pe_$t){rint$f(x.re), rint$f(x.im)}; }

//! eq_$t: c64 c128
static inline bool eq_$t(pe_$t a, pe_$t b) { return a.re == b.re && a.im == b.im; }

//! ne_$t: c64 c128
static inline bool ne_$t(pe_$t a, pe_$t b) { return a.re != b.re || a.im != b.im; }

//! isnan_$t: c64 c128
static inline bool isnan_$t(pe_$t x) { return x.re != x.re || x.im != x.im; }

//! isinf_$t: c64 c128
static inline bool isinf_$t(pe_$t x) { return isinf(x.re) || isinf(x.im); }

//! isfinite_$t: c64 c128
static inline bool isfinite_$t(pe_$t x) { return isfinite(x.re) && isfinite(x.im); }

//! sqrt_$t: c64 c128
static inline pe_$t sqrt_$t(pe_$t x) { return pair_$t(__builtin_csqrt$f(native_$t(x))); }

//! exp_$t: c64 c128
static inline pe_$t exp_$t(pe_$t x) { return pair_$t(__builtin_cexp$f(native_$t(x))); }

//! log_$t: c64 c128
static inline pe_$t log_$t(pe_$t x) { return pair_$t(__builtin_clog$f(native_$t(x))); }

//! log10_$t: c64 c128
static inline pe_$t log10_$t(pe_$t x)
{
    const pe_$t natural = log_$t(x);
    const $R log10_of_e = ($R)0.434294481903251827651128918916605082;
    return (pe_$t){natural.re * log10_of_e, natural.im * log10_of_e};
}

//! sin_$t: c64 c128
static inline pe_$t sin_$t(pe_$t x) { return pair_$t(__builtin_csin$f(native_$t(x))); }

//! cos_$t: c64 c128
static inline pe_$t cos_$t(pe_$t x) { return pair_$t(__builtin_ccos$f(native_$t(x))); }

//! tan_$t: c64 c128
static inline pe_$t tan_$t(pe_$t x) { return pair_$t(__builtin_ctan$f(native_$t(x))); }

//! sinh_$t: c64 c128
static inline pe_$t sinh_$t(pe_$t x) { return pair_$t(__builtin_csinh$f(native_$t(x))); }

//! cosh_$t: c64 c128
static inline pe_$t cosh_$t(pe_$t x) { return pair_$t(__builtin_ccosh$f(native_$t(x))); }

//! tanh_$t: c64 c128
static inline pe_$t tanh_$t(pe_$t x) { return pair_$t(__builtin_ctanh$f(native_$t(x))); }

//! pow_$t: c64 c128
static inline pe_$t pow_$t(pe_$t a, pe_$t b)
{
    if (b.re == 0 && b.im == 0) return (pe_$t){1, 0};
    if (a.re == 0 && a.im == 0)
        return b.re > 0 ? (pe_$t){0, 0} : (pe_$t){NAN, NAN};
    if (b.im != 0 || b.re != floor$f(b.re) || fabs$f(b.re) >= 100)
        return pair_$t(__builtin_cpow$f(native_$t(a), native_$t(b)));
    if (b.re == 1) return a;
    if (b.re == 2) return mul_$t(a, a);
    if (b.re == 3) return mul_$t(a, mul_$t(a, a));
    pe_$t result = {1, 0};
    for (int n = (int)fabs$f(b.re); n > 0; n >>= 1, a = mul_$t(a, a))
        if (n & 1) result = mul_$t(result, a);
    return b.re < 0 ? div_$t((pe_$t){1, 0}, result) : result;
}
