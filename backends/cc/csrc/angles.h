// sin, cos and tan: x times 2 / pi is a number of quarter turns, of which only the rest by four
// matters. So the digits of 2 / pi that give multiples of four for every x of some size are left
// out, and what is left is multiplied exactly: angles of every size are reduced right.

//! pe_turned_f64
typedef struct { double sine, cosine; uint64_t quarters; } pe_turned_f64;

//! turns_f32
/* In column k the digits of 2 / pi for numbers of at least 2**(16 k + 1), if k is not 0: all but
   those of a weight of 2**(24 - 16 k) and more, in two parts. */
static const double turns_f32[2][8] = {
    {
        0x1.45f306dc9c883p-1, 0x1.45f306dc9c883p-1, 0x1.f306dc9c882a5p-9, 0x1.b9391054a7f0ap-26,
        0x1.1054a7f09d5f4p-42, 0x1.4fe13abe8fa9ap-59, 0x1.3abe8fa9a6eep-75, 0x1.a3ea69bb81b6cp-89,
    },
    {
        -0x1.6b01ec5417056p-55, -0x1.6b01ec5417056p-55, 0x1.fc2757d1f534ep-64,
        -0x1.505c1596447e5p-81, 0x1.f534ddc0db629p-96, 0x1.bb81b6c52b328p-113,
        0x1.b6c52b3278872p-129, 0x1.4acc9e21c821p-143,
    },
};

//! turned_f32
/* The quarter turns of |x|, and sine and cosine of the rest of at most half a quarter. */
inlined pe_turned_f64 turned_f32(float x)
{
    const double size = fabsf(x);
    const uint64_t k = bits_f64(size + 2) >> 56 & 7;
    const pe_pair_f64 turns = product_f64(size, turns_f32[0][k]);
    const double near = turns.high + whole_f64;
    const double low = mad_f64(size, turns_f32[1][k], turns.low);
    const double rest = (turns.high - (near - whole_f64)) + low;
    const double r = rest * 0x1.921fb54442d18p0, z = r * r;
    double s = mad_f64(z, 0x1.6cd837f17cbfdp-19, -0x1.a00f9d1f4666cp-13);
    s = mad_f64(z, mad_f64(z, s, 0x1.11110895a49c5p-7), -0x1.5555554cb9066p-3);
    double c = mad_f64(z, 0x1.99eb4a83ff108p-16, -0x1.6c0c328f8e437p-10);
    c = mad_f64(z, mad_f64(z, c, 0x1.55554a0f9831fp-5), -0.5);
    return (pe_turned_f64){mad_f64(r * z, s, r), mad_f64(z, c, 1), bits_f64(near)};
}

//! turns_f64
/* In column k the digits of 2 / pi for numbers of at least 2**(32 k + 1), if k is not 0: all but
   those of a weight of 2**(53 - 32 k) and more, in four parts; from column 8 on times 2**256. */
static const double turns_f64[4][32] = {
    {
        0x1.45f306dc9c882p-1, 0x1.45f306dc9c882p-1, 0x1.9836e4e441529p-12, 0x1.054a7f09d5f44p-46,
        0x1.d5f47d4d377p-78, 0x1.4ddc0db629599p-108, 0x1.4acc9e21c8208p-143,
        0x1.c820ff28b1d58p-175, 0x1.163abdebbc561p52, 0x1.bc561b7246e3ap20, 0x1.1b8e909374b8p-14,
        0x1.ba5c00c925dd4p-45, 0x1.25dd413a32438p-77, 0x1.1921cfe1deb1cp-108,
        0x1.deb1cb129a73ep-140, 0x1.34e7dd1046beap-173, 0x1.1afa975da242p-207,
        0x1.b4484e99c7026p-236, 0x1.c7026b45f7e41p-268, 0x1.f7e413991d639p-300,
        0x1.1d639835339f4p-332, 0x1.339f49c845f8bp-364, 0x1.17e2ef7e4a0ecp-398,
        0x1.9283b1ff897ffp-428, 0x1.897ffde05980fp-460, 0x1.6603fbcbc462cp-494,
        0x1.e2316b414da3ep-525, 0x1.4da3eda6cfd9ep-557, 0x1.67ecf27cb09b7p-588,
        0x1.6136e9e8c7eccp-621, 0x1.8fd9a797fa8b4p-654, 0x1.fea2d7527bac7p-684,
    },
    {
        0x1.4a7f09d5f47d4p-54, 0x1.4a7f09d5f47d4p-54, 0x1.f84eafa3ea69bp-65, 0x1.ea69bb81b6c52p-97,
        0x1.b6c52b3278872p-129, 0x1.e21c820ff28bp-163, 0x1.fca2c757bd778p-193,
        0x1.bd778ac36e48dp-225, 0x1.6e48dc74849bap-1, 0x1.09374b801924ap-34, 0x1.924bba827464p-70,
        0x1.3a32439fc3bdp-101, 0x1.fc3bd63962534p-129, 0x1.62534e7dd1046p-161,
        0x1.d1046bea5d768p-193, 0x1.75da24274ce38p-227, 0x1.d338e04d68befp-257,
        0x1.68befc827323ap-289, 0x1.cc8eb1cc1a99cp-323, 0x1.06a673e93908bp-353,
        0x1.3908bf177bf25p-385, 0x1.7bf250763ff12p-417, 0x1.ff897ffde0598p-452,
        0x1.bc0b301fde5e2p-481, 0x1.de5e2316b414dp-513, 0x1.6829b47db4d9ep-546,
        0x1.b4d9fb3c9f2c2p-578, 0x1.3e584dba7a31cp-611, 0x1.3d18fd9a797fap-642,
        0x1.3cbfd45aea4f7p-673, 0x1.d49eeb1faf97cp-706, 0x1.d7cbe2f67a0e7p-737,
    },
    {
        0x1.a6ee06db14accp-107, 0x1.a6ee06db14accp-107, 0x1.7036d8a5664f1p-118,
        0x1.664f10e4107f9p-150, 0x1.07f9458eaf7ap-186, 0x1.d5ef5de2b0db8p-215,
        0x1.586dc91b8e909p-246, 0x1.8e909374b8019p-278, 0x1.700324977504ep-55,
        0x1.ba827464873f8p-86, 0x1.0e7f0ef58e588p-119, 0x1.8e5894d39f744p-151,
        0x1.cfba208d7d4bap-182, 0x1.7d4baed1213a6p-214, 0x1.213a671c09ad1p-246,
        0x1.35a2fbf209ccp-283, 0x1.904e64758e60dp-310, 0x1.8e60d4ce7d272p-342,
        0x1.f49c845f8bbdcp-376, 0x1.e2ef7e4a0ec7fp-406, 0x1.d8ffc4bffefp-443,
        0x1.fff7816603fbcp-470, 0x1.fde5e2316b4p-509, 0x1.8b5a0a6d1f6dp-536,
        0x1.47db4d9fb3c9fp-566, 0x1.b3c9f2c26dd3dp-598, 0x1.b74f463f669e4p-632,
        0x1.d9a797fa8b5d4p-662, 0x1.16ba93dd63f5ep-695, 0x1.63f5f2f8bd9e8p-727,
        0x1.7b3d0739f78a4p-760, 0x1.f78a5292ea6bcp-792,
    },
    {
        0x1.3c439041fe516p-160, 0x1.3c439041fe516p-160, 0x1.c820ff28b1d5fp-175,
        0x1.163abdebbc562p-204, 0x1.de2b0db92371dp-235, 0x1.2371d2126e97p-267,
        0x1.ba5c00c925dd4p-301, 0x1.25dd413a3243ap-333, 0x1.1921cfe1deb1dp-108,
        0x1.deb1cb129a73fp-140, 0x1.4d39f74411afbp-171, 0x1.1afa975da2427p-207,
        0x1.da24274ce3813p-235, 0x1.c7026b45f7e41p-268, 0x1.f7e413991d63ap-300,
        0x1.1d639835339f5p-332, 0x1.339f49c845f8cp-364, 0x1.17e2ef7e4a0ecp-398,
        0x1.c941d8ffc4cp-427, 0x1.c4bffef02cc08p-459, 0x1.6603fbcbc462dp-494,
        0x1.788c5ad05369p-523, 0x1.4da3eda6cfd9ep-557, 0x1.b3f6793e584dcp-587,
        0x1.6136e9e8c7ecdp-621, 0x1.8fd9a797fa8b6p-654, 0x1.fea2d7527bac8p-684,
        0x1.3dd63f5f2f8bep-715, 0x1.2f8bd9e839cfcp-747, 0x1.ce7de294a4baap-782,
        0x1.292ea6bfb5fb1p-812, 0x1.dafd88fc6ae84p-843,
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
    const double size = fabs(x), scaled = size * pick_f64(size >= 0x1p257, 0x1p-256, 1);
    const uint64_t k = bits_f64(size + 2) >> 57 & 31;
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
elemental $T sin_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    const double y = signed_f64(pick_f64(at.quarters & 1, at.cosine, at.sine), at.quarters);
    return pick_$t(($b == 64) & (fabs$f(x) < 0x1p-27$f), x, turned_as_$t(($T)y, x));
}

//! cos_$t: f32 f64
elemental $T cos_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    return ($T)signed_f64(pick_f64(at.quarters & 1, at.sine, at.cosine), at.quarters + 1);
}

//! tan_$t: f32 f64
elemental $T tan_$t($T x)
{
    const pe_turned_f64 at = turned_$t(x);
    const bool odd = at.quarters & 1;
    const double over = pick_f64(odd, -at.cosine, at.sine);
    const double y = over / pick_f64(odd, at.sine, at.cosine);
    return pick_$t(($b == 64) & (fabs$f(x) < 0x1p-27$f), x, turned_as_$t(($T)y, x));
}
