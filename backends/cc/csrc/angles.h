// sin, cos and tan: x times 2 / pi is a number of quarter turns, of which only the rest by four
// matters. So the digits of 2 / pi that give multiples of four for every x of some size are left
// out, and what is left is multiplied exactly: angles of every size are reduced right.

//! pe_pair_f64
typedef struct { double high, low; } pe_pair_f64;

//! half_digits_f64
/* x rounded to 26 digits: the rest has no more either, and products of such are exact. */
inlined double half_digits_f64(double x)
{
    return of_bits_f64((bits_f64(x) + ((uint64_t)1 << 26)) & ~(uint64_t)0 << 27);
}

//! product_f64
/* a * b in two parts, exactly; neither is near the largest or the smallest of numbers. */
inlined pe_pair_f64 product_f64(double a, double b)
{
    const double high = a * b;
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    return (pe_pair_f64){high, __builtin_fma(a, b, -high)};
#else
    const double a1 = half_digits_f64(a), b1 = half_digits_f64(b), a2 = a - a1, b2 = b - b1;
    return (pe_pair_f64){high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}

//! sum_f64
/* a + b in two parts, exactly. */
inlined pe_pair_f64 sum_f64(double a, double b)
{
    const double high = a + b, part = high - a;
    return (pe_pair_f64){high, (a - (high - part)) + (b - part)};
}

//! ordered_sum_f64
/* a + b in two parts, exactly, where a is 0, or the larger, or a + b needs one part. */
inlined pe_pair_f64 ordered_sum_f64(double a, double b)
{
    const double high = a + b;
    return (pe_pair_f64){high, b - (high - a)};
}

//! pe_turned_f64
typedef struct { double sine, cosine; uint64_t quarters; } pe_turned_f64;

//! turned_f32
/* The quarter turns of |x|, and sine and cosine of the rest of at most half a quarter. */
inlined pe_turned_f64 turned_f32(float x)
{
    const double size = fabsf(x);
    double high = pick_f64(size >= 0x1p43, 0x1.b727220a94fe1p-23, 0x1.45f306dc9c883p-1);
    double low = pick_f64(size >= 0x1p43, 0x1.d5f47d4d37703p-78, -0x1.6b01ec5417056p-55);
    high = pick_f64(size >= 0x1p64, 0x1.1054a7f09d5f4p-42, high);
    low = pick_f64(size >= 0x1p64, 0x1.f534ddc0db629p-96, low);
    high = pick_f64(size >= 0x1p85, 0x1.3f84eafa3ea6ap-61, high);
    low = pick_f64(size >= 0x1p85, -0x1.11f924eb53362p-115, low);
    high = pick_f64(size >= 0x1p106, 0x1.5f47d4d377037p-82, high);
    low = pick_f64(size >= 0x1p106, -0x1.3ad4cd8778df8p-137, low);
    const pe_pair_f64 turns = product_f64(size, high);
    const double near = turns.high + whole_f64;
    const double rest = (turns.high - (near - whole_f64)) + mad_f64(size, low, turns.low);
    const double r = rest * 0x1.921fb54442d18p0, z = r * r;
    double s = mad_f64(z, 0x1.6cd837f17cbfdp-19, -0x1.a00f9d1f4666cp-13);
    s = mad_f64(z, mad_f64(z, s, 0x1.11110895a49c5p-7), -0x1.5555554cb9066p-3);
    double c = mad_f64(z, 0x1.99eb4a83ff108p-16, -0x1.6c0c328f8e437p-10);
    c = mad_f64(z, mad_f64(z, c, 0x1.55554a0f9831fp-5), -0.5);
    return (pe_turned_f64){mad_f64(r * z, s, r), mad_f64(z, c, 1), bits_f64(near)};
}

//! turns_f64
/* In column k the digits of 2 / pi for 2**(32 k) <= x: all without those of a weight of
   2**(54 - 32 k) and more, in four parts; from column 8 on times 2**256. */
static const double turns_f64[4][32] = {
    {
        0x1.45f306dc9c882p-1, 0x1.45f306dcp-1, 0x1.cc1b727220a94p-11, 0x1.054a7f09d5f4p-46,
        0x1.3abe8fa9a6eep-75, 0x1.a6ee06db14accp-107, 0x1.14acc9e21c82p-139, 0x1.c820ff28b1d5p-175,
        0x1.163abdebbc56p52, 0x1.de2b0db92371dp21, 0x1.2371d2126e97p-11, 0x1.ba5c00c925dd4p-45,
        0x1.25dd413a32438p-77, 0x1.1921cfe1deb1cp-108, 0x1.deb1cb129a73ep-140,
        0x1.4d39f74411afap-171, 0x1.1afa975da242p-207, 0x1.da24274ce3813p-235,
        0x1.c7026b45f7e4p-268, 0x1.f7e413991d638p-300, 0x1.1d639835339f4p-332,
        0x1.339f49c845f8ap-364, 0x1.17e2ef7e4a0e8p-398, 0x1.c941d8ffc4bffp-427,
        0x1.c4bffef02cc07p-459, 0x1.6603fbcbc4628p-494, 0x1.788c5ad05368fp-523,
        0x1.4da3eda6cfd9cp-557, 0x1.b3f6793e584dbp-587, 0x1.6136e9e8c7eccp-621,
        0x1.8fd9a797fa8bp-654, 0x1.fea2d7527bac6p-684,
    },
    {
        0x1.4a7f09d5f47d4p-54, 0x1.391054a7f09d4p-34, 0x1.fc2757d1f534dp-64, 0x1.f534ddc0db629p-96,
        0x1.b6c52b3278872p-129, 0x1.3c439041fe516p-160, 0x1.fe5163abdebbcp-192,
        0x1.debbc561b7246p-224, 0x1.b7246e3a424ddp0, 0x1.09374b8019248p-34, 0x1.924bba827464p-70,
        0x1.3a32439fc3bcp-101, 0x1.fc3bd63962534p-129, 0x1.62534e7dd1046p-161,
        0x1.d1046bea5d768p-193, 0x1.2ebb4484e99c7p-224, 0x1.d338e04d68beep-257,
        0x1.68befc827323ap-289, 0x1.3991d63983533p-320, 0x1.835339f49c845p-352,
        0x1.3908bf177bf24p-385, 0x1.bdf9283b1ff89p-416, 0x1.1ff897ffde059p-448,
        0x1.de05980fef2f1p-480, 0x1.ef2f118b5a0a6p-512, 0x1.5a0a6d1f6d367p-544,
        0x1.6d367ecf27cbp-576, 0x1.27cb09b74f463p-608, 0x1.4f463f669e5fep-640,
        0x1.3cbfd45aea4f6p-673, 0x1.7527bac7ebe5fp-704, 0x1.ebe5f17b3d073p-736,
    },
    {
        0x1.a6ee06db14accp-107, 0x1.f47d4d377036cp-86, 0x1.b81b6c52b3278p-117,
        0x1.664f10e4107f8p-150, 0x1.07f9458eaf7ap-186, 0x1.d5ef5de2b0db8p-215,
        0x1.586dc91b8e908p-246, 0x1.c74849ba5c00cp-277, 0x1.700324977504cp-55,
        0x1.dd413a32439fcp-85, 0x1.0e7f0ef58e588p-119, 0x1.63962534e7dd1p-149,
        0x1.cfba208d7d4bap-182, 0x1.7d4baed1213a6p-214, 0x1.213a671c09adp-246,
        0x1.35a2fbf209ccp-283, 0x1.c827323ac7306p-309, 0x1.8e60d4ce7d272p-342,
        0x1.3e93908bf177bp-373, 0x1.f177bf250763fp-405, 0x1.0763ff12fffbcp-437,
        0x1.fff7816603fbcp-470, 0x1.01fde5e2316b4p-501, 0x1.8b5a0a6d1f6dp-536,
        0x1.a3eda6cfd9e4fp-565, 0x1.d9e4f96136e9ep-597, 0x1.36e9e8c7ecd3cp-629,
        0x1.ecd3cbfd45aeap-661, 0x1.45aea4f758fd7p-693, 0x1.58fd7cbe2f67ap-725,
        0x1.7b3d0739f78ap-760, 0x1.3ef14a525d4d7p-789,
    },
    {
        0x1.3c439041fe516p-160, 0x1.8a5664f10e41p-138, 0x1.0e4107f9458ebp-170,
        0x1.458eaf7aef158p-202, 0x1.de2b0db92371dp-235, 0x1.2371d2126e97p-267,
        0x1.374b801924bbbp-298, 0x1.24bba82746487p-330, 0x1.464873f877ac7p-106,
        0x1.deb1cb129a73fp-140, 0x1.4d39f74411afbp-171, 0x1.1afa975da2427p-207,
        0x1.da24274ce3813p-235, 0x1.c7026b45f7e41p-268, 0x1.7df904e64758ep-298,
        0x1.1d639835339f5p-332, 0x1.4ce7d272117e3p-362, 0x1.17e2ef7e4a0ecp-398,
        0x1.e4a0ec7fe26p-426, 0x1.e25fff7816604p-458, 0x1.6603fbcbc462dp-494,
        0x1.788c5ad05369p-523, 0x1.4da3eda6cfd9ep-557, 0x1.b3f6793e584dcp-587,
        0x1.2c26dd3d18fdap-618, 0x1.18fd9a797fa8bp-650, 0x1.7fa8b5d49eeb2p-682,
        0x1.3dd63f5f2f8bep-715, 0x1.97c5ecf41ce7ep-746, 0x1.ce7de294a4baap-782,
        0x1.4a4ba9afed7ecp-810, 0x1.ed7ec47e35742p-842,
    },
};

//! turned_by_f64
/* Sine and cosine of r + low. */
inlined pe_turned_f64 turned_by_f64(double r, double low, uint64_t quarters)
{
    const double z = r * r, half = 0.5 * z, most = 1 - half;
    double s = mad_f64(z, 0x1.5d9300f9fc5d7p-33, -0x1.ae5e663a6e2acp-26);
    s = mad_f64(z, mad_f64(z, s, 0x1.71de3577b64ebp-19), -0x1.a01a019c1198fp-13);
    s = mad_f64(z, mad_f64(z, s, 0x1.111111110f87ap-7), -0x1.5555555555549p-3);
    double c = mad_f64(z, -0x1.8fa465ffcf948p-37, 0x1.1ee9d752b889ap-29);
    c = mad_f64(z, mad_f64(z, c, -0x1.27e4f7ea37da2p-22), 0x1.a01a019c83916p-16);
    c = mad_f64(z, mad_f64(z, c, -0x1.6c16c16c14f8ap-10), 0x1.555555555554bp-5);
    const double sine = r + mad_f64(r * z, s, low * most);
    const double cosine = most + (((1 - most) - half) + mad_f64(z * z, c, -r * low));
    return (pe_turned_f64){sine, cosine, quarters};
}

//! turned_f64
/* The quarter turns of |x|, and sine and cosine of the rest of at most half a quarter. */
inlined pe_turned_f64 turned_f64(double x)
{
    const double size = fabs(x), scaled = size * pick_f64(size >= 0x1p256, 0x1p-256, 1);
    const uint64_t far = -(uint64_t)(size >= 0x1p32);
    const uint64_t k = ((bits_f64(size) >> 52) - 1023) >> 5 & far;
    const pe_pair_f64 p1 = product_f64(scaled, turns_f64[0][k]);
    const pe_pair_f64 p2 = product_f64(scaled, turns_f64[1][k]);
    const pe_pair_f64 p3 = product_f64(scaled, turns_f64[2][k]);
    const double t1 = mad_f64(-4, rint(p1.high * 0.25), p1.high);
    const double n1 = rint(p1.low), n2 = rint(p2.high), t2 = p1.low - n1, t3 = p2.high - n2;
    const double near = ((t1 + t2) + t3) + whole_f64, n = near - whole_f64;
    const pe_pair_f64 s1 = ordered_sum_f64(t1 - n, t2), s2 = sum_f64(s1.high, t3);
    const pe_pair_f64 s3 = sum_f64(s2.high, p2.low), s4 = sum_f64(s3.high, p3.high);
    const double last = mad_f64(scaled, turns_f64[3][k], p3.low);
    const double lost = (s1.low + s2.low) + (s3.low + (s4.low + last));
    const pe_pair_f64 rest = ordered_sum_f64(s4.high, lost);
    const pe_pair_f64 r = product_f64(rest.high, 0x1.921fb54442d18p0);
    const double more = mad_f64(rest.low, 0x1.921fb54442d18p0, rest.high * 0x1.1a62633145c07p-54);
    const uint64_t quarters = bits_f64(near) + bits_f64(n1 + n2 + whole_f64);
    return turned_by_f64(r.high, r.low + more, quarters);
}

//! signed_f64
/* x, its sign turned where bit 1 of n is set. */
inlined double signed_f64(double x, uint64_t n) { return of_bits_f64(bits_f64(x) ^ n >> 1 << 63); }

//! turned_as_$t: f32 f64
/* y, its sign turned where x has one. */
inlined $T turned_as_$t($T y, $T x)
{
    const $U sign = ($U)1 << ($b - 1);
    return of_bits_$t(bits_$t(y) ^ (bits_$t(x) & sign));
}

//! sin_$t: f32 f64
inlined $T sin_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    const double y = signed_f64(pick_f64(at.quarters & 1, at.cosine, at.sine), at.quarters);
    return pick_$t(fabs$f(x) < 0x1p-27$f, x, turned_as_$t(($T)y, x));
}

//! cos_$t: f32 f64
inlined $T cos_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    return ($T)signed_f64(pick_f64(at.quarters & 1, at.sine, at.cosine), at.quarters + 1);
}

//! tan_$t: f32 f64
inlined $T tan_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    const bool odd = at.quarters & 1;
    const double over = pick_f64(odd, -at.cosine, at.sine);
    const double y = over / pick_f64(odd, at.sine, at.cosine);
    return pick_$t(fabs$f(x) < 0x1p-27$f, x, turned_as_$t(($T)y, x));
}
