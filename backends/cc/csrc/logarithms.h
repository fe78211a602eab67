// Logarithms: x = 2**k m with m from sqrt(1/2) to sqrt(2), then with s = (m - 1) / (m + 1)
// log(m) = 2 artanh(s), a series in s**2.

//! artanh_tail_f32
/* 2 artanh(s) / s - 2 for s**2 < 0.0295, by z = s**2. */
inlined float artanh_tail_f32(float z)
{
    float p = 0x1.e2fdd8p-3f;
    p = mad_f32(p, z, 0x1.2438a8p-2f);
    p = mad_f32(p, z, 0x1.999a7cp-2f);
    p = mad_f32(p, z, 0x1.555554p-1f);
    return z * p;
}

//! artanh_tail_f64
/* 2 artanh(s) / s - 2 for s**2 < 0.0295, by z = s**2. */
inlined double artanh_tail_f64(double z)
{
    double p = 0x1.2f0d954534405p-3;
    p = mad_f64(p, z, 0x1.39a0f44c71cf9p-3);
    p = mad_f64(p, z, 0x1.7466463422f9fp-3);
    p = mad_f64(p, z, 0x1.c71c51e7cf9bcp-3);
    p = mad_f64(p, z, 0x1.2492494217d55p-2);
    p = mad_f64(p, z, 0x1.999999997fb2ep-2);
    p = mad_f64(p, z, 0x1.5555555555593p-1);
    return z * p;
}

//! pe_log_$t: f32 f64
typedef struct { $T k, f; } pe_log_$t;

//! binary_$t: f32 f64
/* k and f of x = 2**k (1 + f), for positive finite x; for others, anything. */
inlined pe_log_$t binary_$t($T x)
{
    const bool small = x < of_bits_$t(($U)1 << $m);
    const $U one = ($U)$e << $m;
    const $U bits = bits_$t(x * pick_$t(small, 0x1p$m$f, 1));
    const $U above = (bits + (one - bits_$t(($T)0x1.6a09e667f3bcdp-1))) >> $m;
    const $T k = of_bits_$t(above | ($U)($e + $m) << $m) - (0x1p$m$f + $e);
    const $T f = of_bits_$t(bits - (above << $m) + one) - 1;
    return (pe_log_$t){k - pick_$t(small, $m, 0), f};
}

//! log_edges_$t: f32 f64
/* y, a logarithm of x, set right where x is no positive number. */
inlined $T log_edges_$t($T x, $T y)
{
    y = pick_$t(x < INFINITY, y, x);
    return pick_$t(x > 0, y, pick_$t(x == 0, -INFINITY, NAN));
}

//! log_sum_$t: f32 f64
/* k ln 2 + log(1 + f) + rest */
inlined $T log_sum_$t($T k, $T f, $T rest)
{
    const $T half = ($T)0.5 * f * f, s = f / (2 + f);
    const $T tail = mad_$t(s, half + artanh_tail_$t(s * s), mad_$t(k, ln2_low_$t, rest));
    return mad_$t(k, ln2_high_$t, f - (half - tail));
}

//! log_$t: f32 f64
elemental $T log_$t($T x)
{
    const pe_log_$t part = binary_$t(x);
    return log_edges_$t(x, log_sum_$t(part.k, part.f, 0));
}

//! log1p_$t: f32 f64
elemental $T log1p_$t($T x)
{
    const $T whole = 1 + x, back = whole - 1;
    const $T lost = (1 - (whole - back)) + (x - back);
    const pe_log_$t part = binary_$t(whole);
    const $T y = log_sum_$t(part.k, part.f, lost / whole);
    return copysign$f(log_edges_$t(whole, y), x);
}

//! log_by_$t: f32 f64
/* whole + rest + log(1 + f) / log(base), by 1 / log(base) in two parts, the first of half its
   digits: products with it are exact. */
inlined $T log_by_$t($T f, $T whole, $T rest, $T high, $T low)
{
    const $U upper = ($U)-1 << ($m / 2 + 1);
    const $T half = ($T)0.5 * f * f, s = f / (2 + f);
    const $T a = of_bits_$t(bits_$t(f - half) & upper);
    const $T b = ((f - a) - half) + s * (half + artanh_tail_$t(s * s));
    const $T first = a * high, sum = whole + first;
    return sum + (((whole - sum) + first) + mad_$t(b, high, mad_$t(a + b, low, rest)));
}

//! log2_f32
elemental float log2_f32(float x)
{
    const pe_log_f32 part = binary_f32(x);
    const float y = log_by_f32(part.f, part.k, 0, 0x1.716p0f, -0x1.7135a8p-13f);
    return log_edges_f32(x, y);
}

//! log2_f64
elemental double log2_f64(double x)
{
    const pe_log_f64 part = binary_f64(x);
    const double y = log_by_f64(part.f, part.k, 0, 0x1.7154768p0, -0x1.6a3e80f444178p-27);
    return log_edges_f64(x, y);
}

//! log10_f32
elemental float log10_f32(float x)
{
    const pe_log_f32 part = binary_f32(x);
    const float whole = part.k * 0x1.3442p-2f, rest = part.k * -0x1.95ec1p-19f;
    const float y = log_by_f32(part.f, whole, rest, 0x1.bccp-2f, -0x1.09d5b2p-15f);
    return log_edges_f32(x, y);
}

//! log10_f64
elemental double log10_f64(double x)
{
    const pe_log_f64 part = binary_f64(x);
    const double whole = part.k * 0x1.34413509f78p-2, rest = part.k * 0x1.fef311f12b358p-46;
    const double y = log_by_f64(part.f, whole, rest, 0x1.bcb7b18p-2, -0x1.6c8d78e6acaa4p-29);
    return log_edges_f64(x, y);
}
