#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int64_t bytes_of(int64_t count, int64_t extent)
{
    int64_t bytes;
    if (extent <= 0 || count == 0) return 0;
    return __builtin_mul_overflow(count, extent, &bytes) ? INT64_MAX : bytes;
}

void *memset(void *array, int value, size_t size);

void free(void *array);

void *calloc(size_t count, size_t size);

static inline void *zeroed(int64_t bytes)
{
    return bytes == INT64_MAX ? NULL : calloc(1, bytes > 0 ? (size_t)bytes : 1);
}

static inline void *grown(void *array, int64_t *room, int64_t bytes)
{
    if (array && bytes <= *room) return memset(array, 0, (size_t)bytes);
    free(array);
    array = zeroed(bytes);
    *room = array ? bytes : 0;
    return array;
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

#ifdef __linux__
extern int madvise(void *, size_t, int);
#endif

/* Storage of large pages where the system has any: there are fewer to be made when it is used. */
static inline void *spacious(int64_t bytes)
{
    if (bytes < 4194304) return aligned(bytes);
    void *const made = bytes < INT64_MAX / 2 ? aligned_alloc(2097152, (size_t)bytes) : NULL;
#ifdef __linux__
    if (made) madvise(made, (size_t)bytes, 14);
#endif
    return made;
}

static int sized_body(const double *restrict x, int64_t *y_out, double *restrict w, int64_t *fault,
        const int64_t n)
{
    double *y = NULL;
    int64_t y_room = 0;
    int status = 0;
    /* w[i] = x[i] */
    for (int64_t i = 0; i < n; i++) {
        w[i] = x[i];
    }
    {
        const int64_t bytes = bytes_of(bytes_of(8, n + 1), 2);
        y = grown(y, &y_room, bytes);
        if (!y) {
            fault[0] = bytes;
            status = 2;
            goto done;
        }
        y_out[1] = n + 1;
        y_out[2] = 2;
    }
    /* y[j, 0] = w[j] */
    for (int64_t j = 0; j < n; j++) {
        y[j*2 + 3] = w[j];
    }
    y_out[0] = (int64_t)(intptr_t)y;
    y = NULL;
done:
    free(y);
    return status;
}

int pe_sized(void **args)
{
    if (has_other_modes()) {
        int ended;
        if (in_default_modes(pe_sized, args, &ended)) return ended;
    }
    const int64_t *const places = (const int64_t *)args[4] + 1;
    char *const arena = args[3] ? args[3] : spacious(places[0]);
    if (!arena) {
        ((int64_t *)args[2])[0] = places[0];
        return 2;
    }
    double *const w = (double *)(arena + places[1]);
    const int status = sized_body(args[0], args[1], w, args[2], ((const int64_t *)args[4])[0]);
    if (!args[3]) free(arena);
    return status;
}
