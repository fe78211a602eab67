#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

static int nearest_body(const double *restrict d, int64_t *restrict label)
{
    _Alignas(64) double best[5] = {0};
    for (int64_t i = 0; i < 5; i++) {
        if (i != 2) {
            label[i] = -1;
            for (int64_t j = 0; j < 7; j++) {
                {
                    const double candidate = d[i*7 + j];
                    if (label[i] < 0 || candidate < best[i] ||
                            (candidate != candidate && best[i] == best[i])) {
                        best[i] = candidate;
                        label[i] = j;
                    }
                }
            }
        }
    }
    return 0;
}

int pe_nearest(void **args)
{
    if (has_other_modes()) {
        int ended;
        if (in_default_modes(pe_nearest, args, &ended)) return ended;
    }
    return nearest_body(args[0], args[1]);
}
