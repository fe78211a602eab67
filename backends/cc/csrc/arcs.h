// Inverse functions of angles: by symmetries to a small argument, then a series.

//! arctan_tail_f32
/* arctan(t) / t - 1 for t**2 < 0.172, by z = t**2. */
inlined float arctan_tail_f32(float z)
{
    float p = -0x1.f2518ap-5f;
    p = mad_f32(p, z, 0x1.b2014ep-4f);
    p = mad_f32(p, z, -0x1.23b6acp-3f);
    p = mad_f32(p, z, 0x1.9991acp-3f);
    p = mad_f32(p, z, -0x1.55554ap-2f);
    return z * p;
}

//! arctan_tail_f64
/* arctan(t) / t - 1 for t**2 < 0.172, by z = t**2. */
inlined double arctan_tail_f64(double z)
{
    double p = -0x1.2596ec5530e1cp-6;
    p = mad_f64(p, z, 0x1.37ea67572754bp-5);
    p = mad_f64(p, z, -0x1.9cdb0e13d4437p-5);
    p = mad_f64(p, z, 0x1.df112a9c808bdp-5);
    p = mad_f64(p, z, -0x1.10ebd989e8f77p-4);
    p = mad_f64(p, z, 0x1.3b111c0b26348p-4);
    p = mad_f64(p, z, -0x1.745cf9063ad08p-4);
    p = mad_f64(p, z, 0x1.c71c70e7785d1p-4);
    p = mad_f64(p, z, -0x1.24924922b0b98p-3);
    p = mad_f64(p, z, 0x1.99999999958dcp-3);
    p = mad_f64(p, z, -0x1.555555555553dp-2);
    return z * p;
}

//! digits_after_$t: f32 f64
/* What is left of high + low where high becomes a $T. */
inlined $T digits_after_$t(double high, double low) { return ($T)((high - ($T)high) + low); }

//! arc_$t: f32 f64
/* The angle of (b, a), or of (-b, a) where back is set, for a and b from 0 on, of which one at
   least is neither 0 nor infinite, and a + b is not too large. */
inlined $T arc_$t($T a, $T b, bool back)
{
    const double pi = 0x1.921fb54442d18p1, pi_low = 0x1.1a62633145c07p-53;
    const double most = 0x1.2d97c7f3321d2p1, most_low = 0x1.a79394c9e8a0ap-54;
    const bool middle = a > b * ($T)0x1.a827999fcef32p-2, far = a > b * ($T)0x1.3504f333f9de6p1;
    const $T over = pick_$t(far, -b, pick_$t(middle, a - b, a));
    const $T t = over / pick_$t(far, a, pick_$t(middle, a + b, b));
    const $T end = pick_$t(back, ($T)pi, 0), half = pick_$t(back, ($T)most, ($T)(pi / 4));
    const $T end_low = pick_$t(back, digits_after_$t(pi, pi_low), 0);
    const $T half_low = pick_$t(back, digits_after_$t(most, most_low),
                                digits_after_$t(pi / 4, pi_low / 4));
    const $T base = pick_$t(far, ($T)(pi / 2), pick_$t(middle, half, end));
    const $T low = pick_$t(far, digits_after_$t(pi / 2, pi_low / 2),
                           pick_$t(middle, half_low, end_low));
    const $T turned = pick_$t(back, -t, t);
    return base + (turned + mad_$t(turned, arctan_tail_$t(t * t), low));
}

//! arctan_$t: f32 f64
elemental $T arctan_$t($T x) { return copysign$f(arc_$t(fabs$f(x), 1, false), x); }

//! arctan2_$t: f32 f64
elemental $T arctan2_$t($T y, $T x)
{
    const $T a = fabs$f(y), b = fabs$f(x), large = $b == 32 ? 0x1p100 : 0x1p900;
    const bool small = (a < 1 / large) & (b < 1 / large);
    const $T scale = pick_$t((a > large) | (b > large), ($T)0.25, pick_$t(small, 0x1p60$f, 1));
    const bool infinite = (a == INFINITY) & (b == INFINITY), nowhere = (a == 0) & (b == 0);
    const $T over = pick_$t(infinite, 1, a * scale);
    const $T angle = arc_$t(over, pick_$t(infinite | nowhere, 1, b * scale),
                            bits_$t(x) >> ($b - 1));
    return copysign$f(angle, y);
}

//! arcsin_tail_f32
/* arcsin(s) / s - 1 for s**2 <= 1/4, by z = s**2. */
inlined float arcsin_tail_f32(float z)
{
    float p = 0x1.33d772p-5f;
    p = mad_f32(p, z, 0x1.d7a6f8p-7f);
    p = mad_f32(p, z, 0x1.04ab12p-5f);
    p = mad_f32(p, z, 0x1.6cabb4p-5f);
    p = mad_f32(p, z, 0x1.333892p-4f);
    p = mad_f32(p, z, 0x1.55554cp-3f);
    return z * p;
}

//! arcsin_tail_f64
/* arcsin(s) / s - 1 for s**2 <= 1/4, by z = s**2. */
inlined double arcsin_tail_f64(double z)
{
    double p = 0x1.0be57ccad94dep-5;
    p = mad_f64(p, z, -0x1.59fa552ddad43p-6);
    p = mad_f64(p, z, 0x1.6504fb2744522p-6);
    p = mad_f64(p, z, 0x1.e1506b78dfddcp-9);
    p = mad_f64(p, z, 0x1.618b871553185p-7);
    p = mad_f64(p, z, 0x1.75776443b1eeep-7);
    p = mad_f64(p, z, 0x1.ca2149ee3bfdfp-7);
    p = mad_f64(p, z, 0x1.1c49ddbcfd428p-6);
    p = mad_f64(p, z, 0x1.6e8bdfeaff8b7p-6);
    p = mad_f64(p, z, 0x1.f1c71a8b6d945p-6);
    p = mad_f64(p, z, 0x1.6db6db722bfd3p-5);
    p = mad_f64(p, z, 0x1.333333332df05p-4);
    p = mad_f64(p, z, 0x1.5555555555578p-3);
    return z * p;
}

//! pe_arcsin_$t: f32 f64
typedef struct { $T s, more; bool outer; } pe_arcsin_$t;

//! arcsin_part_$t: f32 f64
/* arcsin(|x|) as s + more, or where |x| > 1/2 half of arccos(|x|), which is another arcsin. */
inlined pe_arcsin_$t arcsin_part_$t($T x)
{
    const $T size = fabs$f(x);
    const bool outer = size > ($T)0.5;
    const $T z = pick_$t(outer, (1 - size) * ($T)0.5, size * size);
    const $T s = pick_$t(outer, sqrt$f(z), size);
    return (pe_arcsin_$t){s, s * arcsin_tail_$t(z), outer};
}

//! arcsin_$t: f32 f64
elemental $T arcsin_$t($T x)
{
    const double right = 0x1.921fb54442d18p0, right_low = 0x1.1a62633145c07p-54;
    const pe_arcsin_$t part = arcsin_part_$t(x);
    const $T low = digits_after_$t(right, right_low) - 2 * part.more;
    const $T angle = (($T)right - 2 * part.s) + low;
    return copysign$f(pick_$t(part.outer, angle, part.s + part.more), x);
}

//! arccos_$t: f32 f64
elemental $T arccos_$t($T x)
{
    const double right = 0x1.921fb54442d18p0, right_low = 0x1.1a62633145c07p-54;
    const pe_arcsin_$t part = arcsin_part_$t(x);
    const $T times = pick_$t(part.outer, pick_$t(x < 0, 2, 0), 1);
    const $T angle = (part.s + part.more) * pick_$t(part.outer, 2, 1);
    const $T turned = pick_$t((x < 0) ^ part.outer, angle, -angle);
    return times * ($T)right + mad_$t(times, digits_after_$t(right, right_low), turned);
}
