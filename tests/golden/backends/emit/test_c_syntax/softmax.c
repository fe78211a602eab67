#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INFINITY __builtin_inff()

static inline float max_f32(float a, float b) { return a >= b || a != a ? a : b; }

#define inlined static inline __attribute__((always_inline))

void *memcpy(void *restrict to, const void *restrict from, size_t size);

inlined uint32_t bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* a * b + c, rounded once where the processor can: compilers know no other place for that. */
inlined float mad_f32(float a, float b, float c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMA
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* The nearest whole number as a float, of which the low bits are that number plus those of 0. */
#define whole_f32 0x1.8p23f

/* As whole_f32, for a number and twice the bias of exponents. */
#define count_f32 (whole_f32 + 254)

inlined float of_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define ln2_low_f32 0x1.7f7d1cp-20f

#define ln2_high_f32 0x1.62e4p-1f

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

/* The power of 2 is a product of two, as no number is as small as 2**-150 or as large as 2**129.
   Where x is above 89 the product is infinite by itself, where x is below -104 the last step
   makes it 0. */
inlined float exp_f32(float x)
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

void *aligned_alloc(size_t alignment, size_t size);

static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

void free(void *array);

static int softmax_body(float *restrict y, const float *restrict x, float *restrict e)
{
    float m[4] = {0};
    float s[4] = {0};
    /* m[i] = max(x[i, j]) */
    for (int64_t i = 0; i < 4; i++) {
        m[i] = -INFINITY;
        for (int64_t j = 0; j < 2000; j++) {
            m[i] = max_f32(m[i], x[i*2000 + j]);
        }
    }
    /* e[i, j] = exp(x[i, j] - m[i]) */
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t j = 0; j < 2000; j++) {
            e[i*2000 + j] = exp_f32(x[i*2000 + j] - m[i]);
        }
    }
    /* sum[k](e[i, k]) */
    for (int64_t i = 0; i < 4; i++) {
        s[i] = 0.0f;
        for (int64_t k = 0; k < 2000; k++) {
            s[i] += e[i*2000 + k];
        }
    }
    /* y[i, j] = e[i, j] / sum[k](e[i, k]) */
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t j = 0; j < 2000; j++) {
            y[i*2000 + j] = e[i*2000 + j] / s[i];
        }
    }
    return 0;
}

int pe_softmax(void **args)
{
    char *const arena = aligned(32000);
    if (!arena) {
        ((int64_t *)args[2])[0] = 32000;
        return 2;
    }
    float *const e = (float *)(arena + 0);
    const int status = softmax_body(args[0], args[1], e);
    free(arena);
    return status;
}
