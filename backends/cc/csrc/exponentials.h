// e**x and its relatives: x = n ln 2 + r with a whole n, then a polynomial in r, then a shift.

//! ln2_high_f32
#define ln2_high_f32 0x1.62e4p-1f

//! ln2_low_f32
#define ln2_low_f32 0x1.7f7d1cp-20f

//! ln2_high_f64
#define ln2_high_f64 0x1.62e42fefa38p-1

//! ln2_low_f64
#define ln2_low_f64 0x1.ef35793c7673p-45

//! exp_tail_f32
/* e**r - 1 - r for |r| < 0.347. */
inlined float exp_tail_f32(float r)
{
    float p = 0x1.a1a258p-13f;
    p = mad_f32(p, r, 0x1.6d7528p-10f);
    p = mad_f32(p, r, 0x1.11108ep-7f);
    p = mad_f32(p, r, 0x1.5554aep-5f);
    p = mad_f32(p, r, 0x1.555556p-3f);
    p = mad_f32(p, r, 0.5f);
    return r * r * p;
}

//! exp_tail_f64
/* e**r - 1 - r for |r| < 0.347. */
inlined double exp_tail_f64(double r)
{
    double p = 0x1.af76c22c4ce37p-26;
    p = mad_f64(p, r, 0x1.28a2d270a146dp-22);
    p = mad_f64(p, r, 0x1.71dde9f8fe925p-19);
    p = mad_f64(p, r, 0x1.a019a6607697dp-16);
    p = mad_f64(p, r, 0x1.a01a01b5dd20ep-13);
    p = mad_f64(p, r, 0x1.6c16c17f43333p-10);
    p = mad_f64(p, r, 0x1.111111110e6c7p-7);
    p = mad_f64(p, r, 0x1.55555555520c9p-5);
    p = mad_f64(p, r, 0x1.555555555555cp-3);
    p = mad_f64(p, r, 0x1.0000000000005p-1);
    return r * r * p;
}

//! pe_power_$t: f32 f64
typedef struct { $T r, tail; $U n; } pe_power_$t;

//! parted_$t: f32 f64
/* n, r and e**r - 1 - r of x = n ln 2 + r; where x is NaN, r is, and beyond all that matters,
   anything. */
inlined pe_power_$t parted_$t($T x)
{
    const $T near = mad_$t(x, ($T)0x1.71547652b82fep0, whole_$t), n = near - whole_$t;
    const $T high = mad_$t(n, -ln2_high_$t, x), r = mad_$t(n, -ln2_low_$t, high);
    const $T error = mad_$t(n, -ln2_low_$t, high - r);
    return (pe_power_$t){r, exp_tail_$t(r) + error, bits_$t(near) - bits_$t(whole_$t)};
}

//! grown_exp_f32
/* power * e**r for |r| < 0.347 and a power of 2, with fewer steps than its parts take. */
inlined float grown_exp_f32(float r, float power)
{
    float p = 0x1.6a4d62p-10f;
    p = mad_f32(p, r, 0x1.12398ep-7f);
    p = mad_f32(p, r, 0x1.5558b0p-5f);
    p = mad_f32(p, r, 0x1.555492p-3f);
    p = mad_f32(p, r, 0x1.fffffcp-2f);
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    return mad_f32(r * power, mad_f32(r, p, 1), power);
#else
    return power + power * (r * r * p + r);
#endif
}

//! count_f32
/* As whole_f32, for a number and twice the bias of exponents. */
#define count_f32 (whole_f32 + 254)

//! mid_exp_f32
/* e**x for -86 < x < 88. */
inlined float mid_exp_f32(float x)
{
    const float near = mad_f32(x, (float)0x1.71547652b82fep0, whole_f32), n = near - whole_f32;
    const float r = mad_f32(n, -ln2_low_f32, mad_f32(n, -ln2_high_f32, x));
    return of_bits_f32(bits_f32(grown_exp_f32(r, 1)) + (bits_f32(near) << 23));
}

//! exp_f32
/* The power of 2 is a product of two, as no number is as small as 2**-150 or as large as 2**129.
   Where x is above 89 the product is infinite by itself, where x is below -104 the last step
   makes it 0. */
elemental float exp_f32(float x)
{
    const int32_t near = (int32_t)bits_f32(mad_f32(x, (float)0x1.71547652b82fep0, count_f32));
    const int32_t most = (int32_t)bits_f32(count_f32 + 129), all = near < most ? near : most;
    const float n = of_bits_f32((uint32_t)all) - count_f32;
    const float r = mad_f32(n, -ln2_low_f32, mad_f32(n, -ln2_high_f32, x));
    const uint32_t half = (uint32_t)all >> 1, rest = (uint32_t)all - half;
    const float power = of_bits_f32(half << 23);
    const float y = grown_exp_f32(r, power) * of_bits_f32(rest << 23);
    return of_bits_f32(bits_f32(y) & -(uint32_t)!(x < -104));
}

//! exp_f64
elemental double exp_f64(double x)
{
    const pe_power_f64 part = parted_f64(x);
    const double y = scaled_f64(1 + (part.r + part.tail), part.n);
    return pick_f64(x > 746, INFINITY, pick_f64(x < -746, 0, y));
}

//! exp2_$t: f32 f64
elemental $T exp2_$t($T x)
{
    const $T near = x + whole_$t, rest = x - (near - whole_$t);
    const $T r = rest * ($T)0x1.62e42fefa39efp-1;
    const $T error = mad_$t(rest, ln2_high_$t, -r) + rest * ln2_low_$t;
    const $T power = 1 + (r + (exp_tail_$t(r) + error)), far = $b == 32 ? 152 : 1076;
    const $T y = scaled_$t(power, bits_$t(near) - bits_$t(whole_$t));
    return pick_$t(x > far, INFINITY, pick_$t(x < -far, 0, y));
}

//! quarter_expm1_$t: f32 f64
/* (e**x - 1) / 4 from where that is almost -1/4 to where e**x / 2 is infinite. */
inlined $T quarter_expm1_$t($T x)
{
    const pe_power_$t part = parted_$t(x);
    const $T power = of_bits_$t((part.n + $e - 2) << $m), above = power - ($T)0.25;
    const $T step = power * part.r, sum = above + step;
    return sum + mad_$t(power, part.tail, (above - sum) + step);
}

//! expm1_$t: f32 f64
elemental $T expm1_$t($T x)
{
    const $T low = $b == 32 ? -20 : -40, high = $b == 32 ? 89.5 : 710.5;
    const $T tiny = $b == 32 ? 0x1p-26f : 0x1p-55;
    const $T y = pick_$t(x < low, -1, 4 * quarter_expm1_$t(x));
    return pick_$t(x > high, INFINITY, pick_$t(fabs$f(x) < tiny, x, y));
}

//! sinh_$t: f32 f64
elemental $T sinh_$t($T x)
{
    const $T far = $b == 32 ? 89.5 : 710.5, tiny = $b == 32 ? 0x1p-13f : 0x1p-28, size = fabs$f(x);
    const $T half = 2 * quarter_expm1_$t(size), part = half / (2 * half + 1);
    const $T y = pick_$t(size < 1, mad_$t(-2 * half, part, 2 * half), half + part);
    const $T edge = pick_$t(size < tiny, size, pick_$t(size < 40, y, half));
    return copysign$f(pick_$t(size > far, INFINITY, edge), x);
}

//! cosh_$t: f32 f64
elemental $T cosh_$t($T x)
{
    const $T far = $b == 32 ? 89.5 : 710.5, size = fabs$f(x);
    const pe_power_$t part = parted_$t(size);
    const $T half = scaled_$t(1 + (part.r + part.tail), part.n - 1);
    return pick_$t(size > far, INFINITY, half + ($T)0.25 / half);
}

//! tanh_$t: f32 f64
elemental $T tanh_$t($T x)
{
    const $T far = $b == 32 ? 10 : 20, tiny = $b == 32 ? 0x1p-13f : 0x1p-28, size = fabs$f(x);
    const bool near = size < ($T)0.7;
    const $T grown = 4 * quarter_expm1_$t(2 * size);
    const $T part = pick_$t(near, grown, 2) / (grown + 2);
    const $T y = pick_$t(near, part, 1 - part);
    return copysign$f(pick_$t(size > far, 1, pick_$t(size < tiny, size, y)), x);
}

//! logaddexp_$t: f32 f64
elemental $T logaddexp_$t($T a, $T b)
{
    const $T gap = a - b, top = pick_$t(gap > 0, a, b);
    const $T y = top + log1p_$t(exp_$t(-fabs$f(gap)));
    return pick_$t(a == b, a + ($T)0x1.62e42fefa39efp-1, y);
}

//! arcsinh_$t: f32 f64
elemental $T arcsinh_$t($T x)
{
    const $T size = fabs$f(x), far = $b == 32 ? 0x1p30 : 0x1p60;
    const $T near = size + size * size / (1 + sqrt$f(size * size + 1));
    const $T y = log1p_$t(pick_$t(size < far, near, size));
    return copysign$f(y + pick_$t(size < far, 0, ($T)0x1.62e42fefa39efp-1), x);
}

//! arccosh_$t: f32 f64
elemental $T arccosh_$t($T x)
{
    const $T over = x - 1, far = $b == 32 ? 0x1p30 : 0x1p60;
    const $T y = log1p_$t(pick_$t(x < far, over + sqrt$f(over * (2 + over)), x));
    return pick_$t(x >= 1, y + pick_$t(x < far, 0, ($T)0x1.62e42fefa39efp-1), NAN);
}

//! arctanh_$t: f32 f64
elemental $T arctanh_$t($T x)
{
    const $T size = fabs$f(x);
    return copysign$f(($T)0.5 * log1p_$t(2 * size / (1 - size)), x);
}
