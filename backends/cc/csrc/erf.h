// erf and erfc: a series near 0, and beyond e**(-x**2) times a function without a peak.

//! erf_tail_f32
/* erf(x) / x - 1 for x**2 <= 1, by z = x**2. */
inlined float erf_tail_f32(float z)
{
    float p = 0x1.4ae13cp-14f;
    p = mad_f32(p, z, -0x1.a484b2p-11f);
    p = mad_f32(p, z, 0x1.5419cep-8f);
    p = mad_f32(p, z, -0x1.b7fbbp-6f);
    p = mad_f32(p, z, 0x1.ce2d2p-4f);
    p = mad_f32(p, z, -0x1.81273ep-2f);
    p = mad_f32(p, z, 0x1.06eba8p-3f);
    return p;
}

//! erf_tail_f64
/* erf(x) / x - 1 for x**2 <= 1, by z = x**2. */
inlined double erf_tail_f64(double z)
{
    double p = 0x1.062457e419a6fp-34;
    p = mad_f64(p, z, -0x1.38ab0ce68b853p-30);
    p = mad_f64(p, z, 0x1.f7b945f375c95p-27);
    p = mad_f64(p, z, -0x1.5f1f390fdca4fp-23);
    p = mad_f64(p, z, 0x1.b9df2f745a387p-20);
    p = mad_f64(p, z, -0x1.f4d1e4232a5d6p-17);
    p = mad_f64(p, z, 0x1.f9a321e3d5a6dp-14);
    p = mad_f64(p, z, -0x1.c02db3db41f36p-11);
    p = mad_f64(p, z, 0x1.565bcd0dbd69cp-8);
    p = mad_f64(p, z, -0x1.b82ce31284f28p-6);
    p = mad_f64(p, z, 0x1.ce2f21a042b34p-4);
    p = mad_f64(p, z, -0x1.812746b0379e6p-2);
    p = mad_f64(p, z, 0x1.06eba8214db69p-3);
    return p;
}

//! erfc_scale_f32
/* (x + 3) e**(x**2) erfc(x) less its value at 3, for x >= 1/2, by t = (x - 3) / (x + 3). */
inlined float erfc_scale_f32(float t)
{
    float p = -0x1.303c4p-12f;
    p = mad_f32(p, t, -0x1.e68d18p-12f);
    p = mad_f32(p, t, 0x1.903c6cp-9f);
    p = mad_f32(p, t, -0x1.447e4ep-10f);
    p = mad_f32(p, t, -0x1.b79fb2p-6f);
    p = mad_f32(p, t, 0x1.e9996cp-4f);
    p = mad_f32(p, t, -0x1.3deb02p-2f);
    p = mad_f32(p, t, 0x1.2e3264p-1f);
    p = mad_f32(p, t, -0x1.c44c48p-1f);
    return t * p;
}

//! erfc_scale_f64
/* (x + 3) e**(x**2) erfc(x) less its value at 3, for x >= 1/2, by t = (x - 3) / (x + 3). */
inlined double erfc_scale_f64(double t)
{
    double p = -0x1.9544fb354f0c5p-28;
    p = mad_f64(p, t, -0x1.dd477138618dbp-29);
    p = mad_f64(p, t, 0x1.976e731dfc819p-25);
    p = mad_f64(p, t, 0x1.a7e348cce649fp-25);
    p = mad_f64(p, t, -0x1.f0fa299c8a965p-23);
    p = mad_f64(p, t, -0x1.b8bb7e5cfc0cfp-22);
    p = mad_f64(p, t, 0x1.0bf20d559d8f8p-20);
    p = mad_f64(p, t, 0x1.7352416365125p-19);
    p = mad_f64(p, t, -0x1.3eb5a4da7d2bp-18);
    p = mad_f64(p, t, -0x1.251d024ce95eep-16);
    p = mad_f64(p, t, 0x1.fdff38d793adp-16);
    p = mad_f64(p, t, 0x1.c32556d7c5b9cp-14);
    p = mad_f64(p, t, -0x1.2238fd7cc062bp-12);
    p = mad_f64(p, t, -0x1.1f78e1d6f6f64p-11);
    p = mad_f64(p, t, 0x1.8dae3a26d66f8p-9);
    p = mad_f64(p, t, -0x1.3dd3e70a8d4d7p-10);
    p = mad_f64(p, t, -0x1.b78993d6b39c7p-6);
    p = mad_f64(p, t, 0x1.e995f11b161ep-4);
    p = mad_f64(p, t, -0x1.3deb21415dca1p-2);
    p = mad_f64(p, t, 0x1.2e326945de2bep-1);
    p = mad_f64(p, t, -0x1.c44c471baa376p-1);
    return t * p;
}

//! erfc_far_$t: f32 f64
/* erfc(x) for x >= 1/2 */
inlined $T erfc_far_$t($T x)
{
    const pe_pair_$t sum = sum_$t(x, 3), square = product_$t(x, x);
    const $T near = 1 / sum.high;
    const pe_pair_$t back = product_$t(near, sum.high);
    const $T more = near * (((1 - back.high) - back.low) - near * sum.low);
    const $T tail = erfc_scale_$t((1 - 6 * near) - 6 * more);
    const pe_pair_$t by = ordered_sum_$t(($T)0x1.12f21ddd9f5e2p0, tail);
    const pe_pair_$t scale = product_$t(near, by.high);
    const $T low = mad_$t(near, by.low, mad_$t(more, by.high, scale.low));
    const pe_power_$t falls = parted_$t(-square.high);
    const $T grown = falls.r + (falls.tail - square.low), top = $b == 32 ? 11 : 28;
    const $T power = mad_$t(-square.low, grown, grown);
    const $T y = scaled_$t(scale.high + mad_$t(scale.high, power, low), falls.n);
    return pick_$t(x > top, 0, y);
}

//! erfc_log_f32
/* log(erfc(x)) for 7/8 <= x <= 4, the less exact the less erfc(x) is. */
inlined float erfc_log_f32(float x)
{
    float p = 0x1.a68b06p-13f;
    p = mad_f32(p, x, -0x1.95f5dp-9f);
    p = mad_f32(p, x, 0x1.6faa38p-6f);
    p = mad_f32(p, x, -0x1.ab8098p-4f);
    p = mad_f32(p, x, -0x1.45fbd2p-1f);
    p = mad_f32(p, x, -0x1.20c26cp+0f);
    return mad_f32(p, x, -0x1.0862f4p-13f);
}

//! erf_f32
elemental float erf_f32(float x)
{
    const float size = fabsf(x), near = mad_f32(x, erf_tail_f32(x * x), x);
    const uint32_t bits = bits_f32(size), four = bits_f32(4);
    const float far = 1 - mid_exp_f32(erfc_log_f32(of_bits_f32(bits < four ? bits : four)));
    return pick_f32(size >= 0.875f, copysignf(far, x), near);
}

//! erf_f64
elemental double erf_f64(double x)
{
    const double size = fabs(x), near = mad_f64(x, erf_tail_f64(x * x), x);
    return pick_f64(size < 1, near, copysign(1 - erfc_far_f64(size), x));
}

//! erfc_$t: f32 f64
elemental $T erfc_$t($T x)
{
    const $T size = fabs$f(x), far = erfc_far_$t(size);
    const $T near = 1 - mad_$t(x, erf_tail_$t(x * x), x);
    return pick_$t(size < ($T)0.5, near, pick_$t(x < 0, 2 - far, far));
}
