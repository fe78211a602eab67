#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the iterations first..last-1 of a loop; a status that is not 0 ends it, see `shared_run`. */
typedef int (*shared_part)(const void *with, int64_t first, int64_t last, int64_t *fault);

/* What a routine may ask of the run-time library. Statuses are those of every entry: 0, 1 for a
   fault, 2 where memory ran out, 3 where the call is to end because it was interrupted. */
typedef struct shared_run {
    /* Run a part on all iterations of a loop, each once, by as many threads as may and are worth
       it; `work` is about what an iteration costs, in the unit of `worth`. The status, and the
       fault, are those of the first iteration in order that has one. */
    int (*parallel)(
        const struct shared_run *run, shared_part part, const void *with, int64_t iterations,
        int64_t work, int64_t *fault);
    /* Whether the call is to end. */
    int (*interrupted)(void);
    int64_t threads; /* how many may share a loop */
    int64_t worth; /* with less work than that, in additions of vectors, a loop is not shared */
    /* Storage of so many bytes, which a later call may have again; NULL where there is none. */
    void *(*lend)(int64_t bytes);
    void (*give_back)(void *storage);
} shared_run;

void *aligned_alloc(size_t alignment, size_t size);

static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

/* Count work that is done; whether the call is to end, which is asked when there was enough. */
static inline bool is_over(const shared_run *run, int64_t *done, int64_t work)
{
    *done += work;
    if (*done < 2097152) return false;
    *done = 0;
    return run->interrupted();
}

static inline void record_int(int64_t *at, int64_t type, int64_t value)
{
    at[0] = type;
    at[1] = value;
}

void free(void *array);

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

struct sums_part {
    int64_t *y;
    const int64_t *x;
    const shared_run *pe_lib;
};

static int sums_part(int64_t *restrict y, const int64_t *restrict x, const shared_run *const pe_lib,
        int64_t first, int64_t last, int64_t *fault)
{
    int64_t pe_work = 0;
    int status = 0;
    int64_t s = 0;
    char *const room = aligned(72064);
    if (!room) {
        fault[0] = 72064;
        return 2;
    }
    int64_t *restrict near_ = (int64_t *)(room + 0);
    int64_t *restrict row = (int64_t *)(room + 64);
    for (int64_t i = first; i < last; i++) {
        if (is_over(pe_lib, &pe_work, 648028)) {
            status = 3;
            goto done;
        }
        for (int64_t k = 0; k < 3; k++) {
            near_[k] = 0;
        }
        s = 0;
        for (int64_t j = 0; j < 9000; j++) {
            row[j] = x[i*9000 + j];
            if (row[j] >= 100) {
                fault[0] = 0;
                record_int(fault + 1, 5, row[j]);
                fault[3] = 0;
                status = 1;
                goto done;
            }
            near_[1] = row[j];
            s += near_[1];
        }
        y[i] = s;
    }
done:
    free(room);
    return status;
}

static int sums_part_call(const void *with, int64_t first, int64_t last, int64_t *fault)
{
    const struct sums_part *const given = with;
    return sums_part(given->y, given->x, given->pe_lib, first, last, fault);
}

struct sums_part_2 {
    int64_t *y;
    const int64_t *x;
    const shared_run *pe_lib;
};

static int sums_part_2(int64_t *restrict y, const int64_t *restrict x,
        const shared_run *const pe_lib, int64_t first, int64_t last, int64_t *fault)
{
    int64_t pe_work = 0;
    int status = 0;
    int64_t s_2 = 0;
    char *const room = aligned(72064);
    if (!room) {
        fault[0] = 72064;
        return 2;
    }
    int64_t *restrict near_2 = (int64_t *)(room + 0);
    int64_t *restrict row_2 = (int64_t *)(room + 64);
    for (int64_t i = first; i < last; i++) {
        if (is_over(pe_lib, &pe_work, 648028)) {
            status = 3;
            goto done;
        }
        for (int64_t k = 0; k < 3; k++) {
            near_2[k] = 0;
        }
        s_2 = 0;
        for (int64_t j = 0; j < 9000; j++) {
            row_2[j] = x[i*9000 + j];
            if (row_2[j] >= 100) {
                fault[0] = 1;
                record_int(fault + 1, 5, row_2[j]);
                fault[3] = 0;
                status = 1;
                goto done;
            }
            near_2[1] = row_2[j];
            s_2 += near_2[1];
        }
        y[i] = s_2;
    }
done:
    free(room);
    return status;
}

static int sums_part_2_call(const void *with, int64_t first, int64_t last, int64_t *fault)
{
    const struct sums_part_2 *const given = with;
    return sums_part_2(given->y, given->x, given->pe_lib, first, last, fault);
}

static int sums_body(int64_t *restrict y, const int64_t *restrict x, int64_t *fault,
        const shared_run *pe_lib)
{
    {
        const struct sums_part given = {y, x, pe_lib};
        const int ended = pe_lib->parallel(pe_lib, sums_part_call, &given, 40, 648027, fault);
        if (ended) {
            return ended;
        }
    }
    {
        const struct sums_part_2 given = {y, x, pe_lib};
        const int ended = pe_lib->parallel(pe_lib, sums_part_2_call, &given, 40, 648027, fault);
        if (ended) {
            return ended;
        }
    }
    return 0;
}

int pe_sums(void **args)
{
    if (has_other_modes()) {
        int ended;
        if (in_default_modes(pe_sums, args, &ended)) return ended;
    }
    return sums_body(args[0], args[1], args[2], args[5]);
}
