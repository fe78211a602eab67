// The transcendental functions of complex numbers, which CUDA's library does not have, with the
// results that C's have at infinities, NaN and signed zeros.

//! sign_$t: c64 c128
static inline pe_$t sign_$t(pe_$t x)
{
    const $R size = hypot$f(x.re, x.im);
    if (size == 0) return (pe_$t){0, 0};
    if (!isinf(size)) return (pe_$t){x.re / size, x.im / size};
    if (isinf(x.re) && isinf(x.im)) return (pe_$t){NAN, NAN};
    if (isinf(x.re)) return (pe_$t){copysign$f(($R)1, x.re), 0};
    return (pe_$t){0, copysign$f(($R)1, x.im)};
}

//! scaled_exp_$t: c64 c128
/* exp(x) * (cos y, sin y): where exp(x) overflows and the product may not, in two steps. */
static inline pe_$t scaled_exp_$t($R x, $R y)
{
    const $R most = sizeof($R) == 4 ? ($R)88 : ($R)709;
    const $R part = fmin$f(x, most), rest = exp$f(fmin$f(x - part, most)), by = exp$f(part);
    $R sine, cosine;
    sincos$f(y, &sine, &cosine);
    if (x <= most) return (pe_$t){by * cosine, by * sine};
    return (pe_$t){by * cosine * rest, by * sine * rest};
}

//! exp_$t: c64 c128
static inline pe_$t exp_$t(pe_$t x)
{
    if (x.im == 0) return (pe_$t){exp$f(x.re), x.im};
    if (x.re != x.re) return (pe_$t){x.re, x.re};
    if (isfinite(x.im)) {
        if (x.re == -(($R)INFINITY)) {
            return (pe_$t){copysign$f(($R)0, cos$f(x.im)), copysign$f(($R)0, sin$f(x.im))};
        }
        if (isinf(x.re)) return (pe_$t){x.re * cos$f(x.im), x.re * sin$f(x.im)};
        return scaled_exp_$t(x.re, x.im);
    }
    if (isinf(x.re)) return x.re < 0 ? (pe_$t){0, copysign$f(($R)0, x.im)} : (pe_$t){x.re, NAN};
    return (pe_$t){NAN, NAN};
}

//! log_$t: c64 c128
static inline pe_$t log_$t(pe_$t x)
{
    const $R angle = atan2$f(x.im, x.re), a = fabs$f(x.re), b = fabs$f(x.im);
    const $R big = fmax$f(a, b), small = fmin$f(a, b);
    if (isinf(a) || isinf(b)) return (pe_$t){INFINITY, angle};
    const $R most = sizeof($R) == 4 ? ($R)0x1p126 : ($R)0x1p1022;
    if (big > most) return (pe_$t){log$f(hypot$f(a / 4, b / 4)) + log$f(($R)4), angle};
    if (!(big > ($R)0.5 && big < ($R)2)) return (pe_$t){log$f(hypot$f(a, b)), angle};
    /* near 1: log of the square by its distance from 1, whose terms are exact in two parts */
    const $R square = big * big, low = fma$f(big, big, -square);
    const $R other = small * small, less = fma$f(small, small, -other);
    const $R first = square - 1, sum = first + other, gone = sum - first;
    const $R error = (first - (sum - gone)) + (other - gone) + low + less;
    if (fabs$f(sum) > ($R)0.7) return (pe_$t){log$f(hypot$f(a, b)), angle};
    return (pe_$t){log1p$f(sum + error) / 2, angle};
}

//! sqrt_$t: c64 c128
static inline pe_$t sqrt_$t(pe_$t x)
{
    if (isinf(x.im)) return (pe_$t){INFINITY, x.im};
    if (x.re != x.re) return (pe_$t){x.re, x.im != x.im ? x.im : x.re};
    if (isinf(x.re)) {
        if (x.re < 0) return (pe_$t){x.im != x.im ? x.im : 0, copysign$f(x.re, x.im)};
        return (pe_$t){x.re, x.im != x.im ? x.im : copysign$f(($R)0, x.im)};
    }
    if (x.im != x.im) return (pe_$t){x.im, x.im};
    if (x.re == 0 && x.im == 0) return (pe_$t){0, x.im};
    $R re = fabs$f(x.re), im = fabs$f(x.im), by = 1;
    const $R big = sizeof($R) == 4 ? ($R)0x1p125 : ($R)0x1p1021;
    const $R small = sizeof($R) == 4 ? ($R)0x1p-100 : ($R)0x1p-960;
    if (re >= big || im >= big) {
        re /= 4, im /= 4, by = 2;
    } else if (re < small && im < small) {
        const $R up = sizeof($R) == 4 ? ($R)0x1p48 : ($R)0x1p108;
        re *= up, im *= up, by = sizeof($R) == 4 ? ($R)0x1p-24 : ($R)0x1p-54;
    }
    const $R root = sqrt$f((re + hypot$f(re, im)) / 2);
    const $R far = root * by, near = im / (2 * root) * by;
    return x.re >= 0 ? (pe_$t){far, copysign$f(near, x.im)} : (pe_$t){near, copysign$f(far, x.im)};
}

//! sinh_$t: c64 c128
static inline pe_$t sinh_$t(pe_$t x)
{
    if (!isfinite(x.im)) {
        if (x.re == 0) return (pe_$t){x.re, NAN};
        if (isinf(x.re)) return (pe_$t){INFINITY, NAN};
        return (pe_$t){NAN, NAN};
    }
    if (x.re != x.re) return (pe_$t){x.re, x.im == 0 ? x.im : x.re};
    if (x.im == 0) return (pe_$t){sinh$f(x.re), x.im};
    if (isinf(x.re)) return (pe_$t){x.re * cos$f(x.im), fabs$f(x.re) * sin$f(x.im)};
    if (fabs$f(x.re) > (sizeof($R) == 4 ? 80 : 700)) {
        const pe_$t half = scaled_exp_$t(fabs$f(x.re), x.im);
        return (pe_$t){(x.re < 0 ? -half.re : half.re) / 2, half.im / 2};
    }
    return (pe_$t){sinh$f(x.re) * cos$f(x.im), cosh$f(x.re) * sin$f(x.im)};
}

//! cosh_$t: c64 c128
static inline pe_$t cosh_$t(pe_$t x)
{
    if (!isfinite(x.im)) {
        if (x.re == 0) return (pe_$t){NAN, 0};
        if (isinf(x.re)) return (pe_$t){INFINITY, NAN};
        return (pe_$t){NAN, NAN};
    }
    if (x.re != x.re) return (pe_$t){x.re, x.im == 0 ? x.im : x.re};
    if (x.im == 0) return (pe_$t){cosh$f(x.re), copysign$f(($R)1, x.re) * x.im};
    if (isinf(x.re)) return (pe_$t){fabs$f(x.re) * cos$f(x.im), x.re * sin$f(x.im)};
    if (fabs$f(x.re) > (sizeof($R) == 4 ? 80 : 700)) {
        const pe_$t half = scaled_exp_$t(fabs$f(x.re), x.im);
        return (pe_$t){half.re / 2, (x.re < 0 ? -half.im : half.im) / 2};
    }
    return (pe_$t){cosh$f(x.re) * cos$f(x.im), sinh$f(x.re) * sin$f(x.im)};
}

//! tanh_$t: c64 c128
static inline pe_$t tanh_$t(pe_$t x)
{
    if (!isfinite(x.re)) {
        if (x.re != x.re) return (pe_$t){x.re, x.im == 0 ? x.im : x.re};
        const $R turn = isfinite(x.im) && fabs$f(x.im) > 1 ? sin$f(x.im) * cos$f(x.im) : x.im;
        return (pe_$t){copysign$f(($R)1, x.re), copysign$f(($R)0, turn)};
    }
    if (!isfinite(x.im)) return (pe_$t){x.re == 0 ? x.re : ($R)NAN, NAN};
    $R sine, cosine;
    sincos$f(x.im, &sine, &cosine);
    if (fabs$f(x.re) > (sizeof($R) == 4 ? 12 : 22)) {
        const $R by = exp$f(-fabs$f(x.re));
        return (pe_$t){copysign$f(($R)1, x.re), 4 * sine * cosine * by * by};
    }
    const $R up = sinh$f(x.re), over = cosh$f(x.re);
    const $R low = up * up + cosine * cosine;
    return (pe_$t){up * over / low, sine * cosine / low};
}

//! sin_$t: c64 c128
static inline pe_$t sin_$t(pe_$t x)
{
    if (isinf(x.im) && !isfinite(x.re)) return (pe_$t){NAN, INFINITY};
    const pe_$t turned = sinh_$t((pe_$t){-x.im, x.re});
    return (pe_$t){turned.im, -turned.re};
}

//! cos_$t: c64 c128
static inline pe_$t cos_$t(pe_$t x) { return cosh_$t((pe_$t){-x.im, x.re}); }

//! tan_$t: c64 c128
static inline pe_$t tan_$t(pe_$t x)
{
    const pe_$t turned = tanh_$t((pe_$t){-x.im, x.re});
    return (pe_$t){turned.im, -turned.re};
}

//! whole_mul_$t: c64 c128
/* A product that is infinite where a factor is: what C has for its own complex types. */
static inline pe_$t whole_mul_$t(pe_$t a, pe_$t b)
{
    const pe_$t plain = mul_$t(a, b);
    if (plain.re == plain.re || plain.im == plain.im) return plain;
    const bool first = isinf(a.re) || isinf(a.im), second = isinf(b.re) || isinf(b.im);
    const bool terms = isinf(a.re * b.re) || isinf(a.im * b.im) || isinf(a.re * b.im)
        || isinf(a.im * b.re);
    if (!first && !second && !terms) return plain;
    if (first) {
        a.re = copysign$f(($R)(isinf(a.re) != 0), a.re);
        a.im = copysign$f(($R)(isinf(a.im) != 0), a.im);
    }
    if (second) {
        b.re = copysign$f(($R)(isinf(b.re) != 0), b.re);
        b.im = copysign$f(($R)(isinf(b.im) != 0), b.im);
    }
    if (a.re != a.re) a.re = copysign$f(($R)0, a.re);
    if (a.im != a.im) a.im = copysign$f(($R)0, a.im);
    if (b.re != b.re) b.re = copysign$f(($R)0, b.re);
    if (b.im != b.im) b.im = copysign$f(($R)0, b.im);
    const pe_$t found = mul_$t(a, b);
    return (pe_$t){(($R)INFINITY) * found.re, (($R)INFINITY) * found.im};
}

//! pow_$t: c64 c128
static inline pe_$t pow_$t(pe_$t a, pe_$t b)
{
    if (b.re == 0 && b.im == 0) return (pe_$t){1, 0};
    if (a.re == 0 && a.im == 0) return b.re > 0 ? (pe_$t){0, 0} : (pe_$t){NAN, NAN};
    if (b.im != 0 || b.re != floor$f(b.re) || fabs$f(b.re) >= 100)
        return exp_$t(whole_mul_$t(b, log_$t(a)));
    if (b.re == 1) return a;
    if (b.re == 2) return mul_$t(a, a);
    if (b.re == 3) return mul_$t(a, mul_$t(a, a));
    pe_$t result = {1, 0};
    for (int n = (int)fabs$f(b.re); n > 0; n >>= 1, a = mul_$t(a, a))
        if (n & 1) result = mul_$t(result, a);
    return b.re < 0 ? div_$t((pe_$t){1, 0}, result) : result;
}
