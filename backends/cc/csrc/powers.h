// Powers and roots: x**y = e**(y log(x)), its logarithm in two parts where its digits matter.

//! log_pair_f64
/* log(x) in two parts, good to 65 digits, for positive finite x. */
inlined pe_pair_f64 log_pair_f64(double x)
{
    const pe_log_f64 part = binary_f64(x);
    const pe_pair_f64 below = ordered_sum_f64(2, part.f);
    const double over = 1 / below.high, s = part.f * over;
    const pe_pair_f64 back = product_f64(s, below.high);
    const double s_low = (((part.f - back.high) - back.low) - s * below.low) * over;
    const pe_pair_f64 z = product_f64(s, s), cube = product_f64(z.high, s);
    const double z_low = mad_f64(2 * s, s_low, z.low);
    const double cube_low = mad_f64(z.high, s_low, mad_f64(z_low, s, cube.low));
    double p = 0x1.e3d99f5446d27p-4;
    p = mad_f64(p, z.high, 0x1.df19cbcdd0786p-4);
    p = mad_f64(p, z.high, 0x1.111ad519f69b2p-3);
    p = mad_f64(p, z.high, 0x1.3b138b071f82cp-3);
    p = mad_f64(p, z.high, 0x1.745d1797a3c3cp-3);
    p = mad_f64(p, z.high, 0x1.c71c71c6c5b9dp-3);
    p = mad_f64(p, z.high, 0x1.24924924925acp-2);
    p = mad_f64(p, z.high, 0x1.999999999999ap-2);
    const pe_pair_f64 by = ordered_sum_f64(0x1.5555555555555p-1, z.high * p);
    const double by_low = by.low + mad_f64(z_low, 0.4, 0x1.5555555555555p-55);
    const pe_pair_f64 tail = product_f64(cube.high, by.high);
    const double tail_low = mad_f64(cube.high, by_low, mad_f64(cube_low, by.high, tail.low));
    const pe_pair_f64 first = ordered_sum_f64(part.k * ln2_high_f64, 2 * s);
    const pe_pair_f64 sum = ordered_sum_f64(first.high, tail.high);
    const double low = mad_f64(2, s_low, mad_f64(part.k, ln2_low_f64, tail_low));
    return ordered_sum_f64(sum.high, (first.low + sum.low) + low);
}

//! raised_f64
/* x**y, by the logarithm of |x| where that is neither 0 nor infinite nor NaN. */
inlined double raised_f64(pe_pair_f64 log, double x, double y)
{
    const double size = fabs(x);
    const double whole = pick_f64(size < INFINITY, pick_f64(size > 0, log.high, -INFINITY), size);
    const pe_pair_f64 up = product_f64(y, whole);
    const pe_power_f64 part = parted_f64(up.high);
    const double more = mad_f64(y, log.low, up.low), grown = part.r + (part.tail + more);
    double z = scaled_f64(1 + mad_f64(more, grown, grown), part.n);
    z = pick_f64(up.high > 746, INFINITY, pick_f64(up.high < -746, 0, z));
    const bool integer = rint(y) == y, odd = integer & (rint(0.5 * y) != 0.5 * y);
    z = pick_f64((size == 1) & (y == y), 1, z);
    z = pick_f64((x < 0) & (size < INFINITY) & !integer, NAN, z);
    z = pick_f64((y == 0) | (x == 1), 1, z);
    return pick_f64(odd, copysign(z, x), z);
}

//! pow_f32
elemental float pow_f32(float x, float y)
{
    const pe_log_f64 part = binary_f64(fabs(x));
    const double log = log_sum_f64(part.k, part.f, 0);
    return (float)raised_f64((pe_pair_f64){log, 0}, x, y);
}

//! pow_f64
elemental double pow_f64(double x, double y) { return raised_f64(log_pair_f64(fabs(x)), x, y); }

//! next_power_f64
/* x**n in two parts, where `half` is x to half of n, rounded down; whether x has one part. */
inlined pe_pair_f64 next_power_f64(pe_pair_f64 half, pe_pair_f64 x, uint32_t n, bool single)
{
    if (n < 2) return n ? x : (pe_pair_f64){1, 0};
    const pe_pair_f64 square = product_f64(half.high, half.high);
    const bool exact = single & (n < 4);
    const double low = exact ? square.low : mad_f64(half.high + half.high, half.low, square.low);
    if (n % 2 == 0) return (pe_pair_f64){square.high, low};
    const pe_pair_f64 odd = product_f64(square.high, x.high);
    const double more = single ? odd.low : mad_f64(square.high, x.low, odd.low);
    return (pe_pair_f64){odd.high, mad_f64(low, x.high, more)};
}

//! squares_f64
/* x**n of a whole n up to 127; whether x has one part. */
inlined pe_pair_f64 squares_f64(pe_pair_f64 x, uint32_t n, bool single)
{
    pe_pair_f64 y = next_power_f64((pe_pair_f64){1, 0}, x, n >> 6, single);
    y = next_power_f64(y, x, n >> 5, single);
    y = next_power_f64(y, x, n >> 4, single);
    y = next_power_f64(y, x, n >> 3, single);
    y = next_power_f64(y, x, n >> 2, single);
    y = next_power_f64(y, x, n >> 1, single);
    return next_power_f64(y, x, n, single);
}

//! joined_f64
/* A number of two parts, of which the second means nothing where the first is 0 or infinite. */
inlined double joined_f64(pe_pair_f64 x)
{
    const double size = fabs(x.high);
    return pick_f64((size > 0) & (size < INFINITY), x.high + x.low, x.high);
}

//! whole_pow_f64
/* x**n of a whole n, 2 to 127 without its sign, by squares; as others where parts are dear. */
inlined double whole_pow_f64(double x, double n)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    const bool single = n > 0;
    const double over = single ? x : 1 / x;
    const pe_pair_f64 base = {over, single ? 0 : mad_f64(-x, over, 1) * over};
    return joined_f64(squares_f64(base, (uint32_t)fabs(n), single));
#else
    return pow_f64(x, n);
#endif
}

//! whole_power_f64
/* x**n, where `half` is x to half of n, rounded down. */
inlined double whole_power_f64(double half, double x, uint32_t n)
{
    if (n < 2) return n ? x : 1;
    return n % 2 ? half * half * x : half * half;
}

//! short_squares_f64
/* x**n of a whole n up to 127, rounded again and again. */
inlined double short_squares_f64(double x, uint32_t n)
{
    double y = whole_power_f64(1, x, n >> 6);
    y = whole_power_f64(y, x, n >> 5);
    y = whole_power_f64(y, x, n >> 4);
    y = whole_power_f64(y, x, n >> 3);
    y = whole_power_f64(y, x, n >> 2);
    y = whole_power_f64(y, x, n >> 1);
    return whole_power_f64(y, x, n);
}

//! whole_pow_f32
/* As of float64, whose digits are enough for all of its squares. */
inlined float whole_pow_f32(float x, float n)
{
    const double y = short_squares_f64(x, (uint32_t)fabsf(n));
    return (float)(n < 0 ? 1 / y : y);
}

//! half_pow_f64
/* x**n, where 2 n is odd and from -127 to 127: a whole power of the square root, in two parts. */
inlined double half_pow_f64(double x, double n)
{
    if (__builtin_constant_p(n) && n == 0.5) return pick_f64(x == -INFINITY, INFINITY, sqrt(x) + 0);
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    const double root = sqrt(x) + 0, rest = mad_f64(-root, root, x) / (root + root);
    const double over = 1 / root, more = (mad_f64(-root, over, 1) - rest * over) * over;
    const pe_pair_f64 base = {n > 0 ? root : over, n > 0 ? rest : more};
    const double y = joined_f64(squares_f64(base, (uint32_t)fabs(n + n), false));
    return pick_f64(x == -INFINITY, n > 0 ? INFINITY : 0, y);
#else
    return pow_f64(x, n);
#endif
}

//! half_pow_f32
inlined float half_pow_f32(float x, float n)
{
    if (__builtin_constant_p(n) && n == 0.5f)
        return pick_f32(x == -INFINITY, INFINITY, (float)sqrt((double)x) + 0);
    const double y = short_squares_f64(sqrt((double)x) + 0, (uint32_t)fabsf(n + n));
    return pick_f32(x == -INFINITY, n > 0 ? INFINITY : 0, (float)(n < 0 ? 1 / y : y));
}

//! cbrt_f64
elemental double cbrt_f64(double x)
{
    const double size = fabs(x);
    const pe_log_f64 part = binary_f64(size);
    const double near = mad_f64(part.k, 0x1.5555555555555p-2, whole_f64);
    const double rest = mad_f64(-3, near - whole_f64, part.k);
    const double m = (1 + part.f) * pick_f64(rest > 0, 2, pick_f64(rest < 0, 0.5, 1));
    const double by = pick_f64(rest < 0, 0x1.965fea53d6e3dp-1, 1);
    double p = -0x1.4dee424515f8p-6;
    p = mad_f64(p, part.f, 0x1.121b8ae77f90ep-5);
    p = mad_f64(p, part.f, -0x1.568faad0ce07fp-5);
    p = mad_f64(p, part.f, 0x1.f8517c9fcaafep-5);
    p = mad_f64(p, part.f, -0x1.c7023f10723bap-4);
    p = mad_f64(p, part.f, 0x1.5555f2c5f31d8p-2);
    p = mad_f64(p, part.f, 0x1.fffffbdb98902p-1);
    const double t = half_digits_f64(p * pick_f64(rest > 0, 0x1.428a2f98d728bp0, by));
    const double q = m / (t * t), root = mad_f64(t, (q - t) / (2 * t + q), t);
    const uint64_t n = bits_f64(near) - bits_f64(whole_f64);
    const double y = copysign(root * of_bits_f64((n + 1023) << 52), x);
    return pick_f64((size > 0) & (size < INFINITY), y, x);
}

//! cbrt_f32
elemental float cbrt_f32(float x) { return (float)cbrt_f64(x); }

//! hypot_f32
elemental float hypot_f32(float a, float b)
{
    const double x = a, y = b, size = sqrt(x * x + y * y);
    return (float)pick_f64((fabs(x) == INFINITY) | (fabs(y) == INFINITY), INFINITY, size);
}

//! hypot_f64
elemental double hypot_f64(double a, double b)
{
    const double x = fabs(a), y = fabs(b);
    const bool large = (x > 0x1p500) | (y > 0x1p500), small = (x < 0x1p-400) & (y < 0x1p-400);
    const double by = pick_f64(large, 0x1p-600, pick_f64(small, 0x1p600, 1));
    const pe_pair_f64 p = product_f64(x * by, x * by), q = product_f64(y * by, y * by);
    const pe_pair_f64 sum = sum_f64(p.high, q.high);
    const double root = sqrt(sum.high + (sum.low + (p.low + q.low)));
    const double back = pick_f64(large, 0x1p600, pick_f64(small, 0x1p-600, 1));
    return pick_f64((x == INFINITY) | (y == INFINITY), INFINITY, root * back);
}
