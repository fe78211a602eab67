// The floating-point modes of a thread: how results are rounded, whether subnormal numbers are
// flushed to zero, which exceptions trap. Flags that say what has happened are no modes.

//! float_modes
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

//! default_modes
/* Give this thread the default modes, and return those that it had. */
static inline uint64_t default_modes(void)
{
    const uint64_t before = float_modes();
    set_modes(DEFAULT_MODES);
    return before;
}

//! has_other_modes
#define has_other_modes() __builtin_expect(float_modes() != DEFAULT_MODES, 0)

//! in_default_modes
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
