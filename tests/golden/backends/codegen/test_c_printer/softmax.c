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

/* Returns the modes of this thread; a processor whose modes are not known has the default ones. */
#if defined(__x86_64__)
enum { DEFAULT_MODES = 0x1f80, FLOAT_FLAGS = 0x3f };
#define float_modes() (__builtin_ia32_stmxcsr() & ~FLOAT_FLAGS)
#define set_modes(modes) __builtin_ia32_ldmxcsr((modes) | (__builtin_ia32_stmxcsr() & FLOAT_FLAGS))
#elif defined(__aarch64__)
enum { DEFAULT_MODES = 0 };
static inline uint64_t float_modes(void)
{
    uint64_t modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return modes;
}
#define set_modes(modes) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)(modes)) : "memory")
#else
enum { DEFAULT_MODES = 0 };
#define float_modes() DEFAULT_MODES
#define set_modes(modes) (void)(modes)
#endif

#define has_other_modes() __builtin_expect(float_modes() != DEFAULT_MODES, 0)

/* Give this thread the default modes, and return those that it had. */
static inline uint64_t default_modes(void)
{
    const uint64_t before = float_modes();
    set_modes(DEFAULT_MODES);
    return before;
}

/* Call an entry under the default modes; whether it was called: they may be out of reach. The
   pointer is volatile, so nothing of the entry is moved to where other modes hold. */
static __attribute__((noinline, unused)) bool in_default_modes(
    int (*entry)(void **), void **args, int *status)
{
    int (*volatile const called)(void **) = entry;
    const uint64_t modes = default_modes();
    const bool is_reached = !has_other_modes();
    if (is_reached) *status = called(args);
    set_modes(modes);
    return is_reached;
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
    if (has_other_modes()) {
        int ended;
        if (in_default_modes(pe_softmax, args, &ended)) return ended;
    }
    char *const arena = args[3] ? args[3] : aligned(32000);
    if (!arena) {
        ((int64_t *)args[2])[0] = 32000;
        return 2;
    }
    float *const e = (float *)(arena + 0);
    const int status = softmax_body(args[0], args[1], e);
    if (!args[3]) free(arena);
    return status;
}
