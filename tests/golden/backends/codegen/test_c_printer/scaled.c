#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void record_int(int64_t *at, int64_t type, int64_t value)
{
    at[0] = type;
    at[1] = value;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size);

static inline void record_real(int64_t *at, int64_t type, double value)
{
    at[0] = type;
    memcpy(at + 1, &value, sizeof value);
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

static int scaled_body(const double alpha, double *restrict a, int64_t *fault,
        void (*show)(int64_t, const int64_t *))
{
    for (int64_t i = 0; i < 4; i++) {
        if (i >= 5) {
            fault[0] = 0;
            record_int(fault + 1, 5, i);
            record_real(fault + 3, 13, alpha);
            fault[5] = 0;
            return 1;
        }
    }
    /* a[j, k] *= alpha */
    for (int64_t j = 0; j < 3; j++) {
        for (int64_t k = 0; k < 4; k++) {
            a[j + k*8] = alpha * a[j + k*8];
        }
    }
    {
        int64_t printed[6] = {0};
        record_real(printed + 1, 13, alpha);
        record_real(printed + 3, 13, a[0]);
        printed[5] = 0;
        show(0, printed);
    }
    return 0;
}

int pe_scaled(void **args)
{
    if (has_other_modes()) {
        int ended;
        if (in_default_modes(pe_scaled, args, &ended)) return ended;
    }
    return scaled_body(*(const double *)args[0], args[1], args[2], args[3]);
}
