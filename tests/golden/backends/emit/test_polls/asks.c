#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the rounds first..last-1 of a loop; a status that is not 0 ends it, see `shared_run`. */
typedef int (*shared_part)(const void *with, int64_t first, int64_t last, int64_t *fault);

/* What a routine may ask of the run-time library. Statuses are those of every entry: 0, 1 for a
   fault, 2 where memory ran out, 3 where the call is to end because it was interrupted. */
typedef struct shared_run {
    /* Run a part on all rounds of a loop, each once, by as many threads as may and are worth it;
       `work` is about what a round costs, in the unit of `worth`. The status, and the fault, are
       those of the first round in order that has one. */
    int (*parallel)(
        const struct shared_run *run, shared_part part, const void *with, int64_t rounds,
        int64_t work, int64_t *fault);
    /* Whether the call is to end. */
    int (*interrupted)(void);
    int64_t threads; /* how many may share a loop */
    int64_t worth; /* with less work than that, in additions of vectors, a loop is not shared */
    /* Storage of so many bytes, which a later call may have again; NULL where there is none. */
    void *(*lend)(int64_t bytes);
    void (*give_back)(void *storage);
} shared_run;

/* Count work that is done; whether the call is to end, which is asked when there was enough. */
static inline bool is_over(const shared_run *run, int64_t *done, int64_t work)
{
    *done += work;
    if (*done < 2097152) return false;
    *done = 0;
    return run->interrupted();
}

static int asks_body(float *restrict y, const float *restrict x, float *restrict z,
        const shared_run *pe_lib, const int64_t n)
{
    int64_t pe_work = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_over(pe_lib, &pe_work, 36)) {
            return 3;
        }
        for (int64_t j = 0; j < 9; j++) {
            y[i*9 + j] = x[i*9 + j] + 1.0f;
        }
    }
    for (int64_t k_from = 0, k_to; k_from < 1000000000000; k_from = k_to) {
        if (k_from > 0 && pe_lib->interrupted()) {
            return 3;
        }
        k_to = 1000000000000 - (uint64_t)k_from <= 4194304 ? 1000000000000 : k_from + 4194304;
        for (int64_t k = k_from; k < k_to; k += 2) {
            z[k] = 0.0f;
        }
    }
    for (;;) {
        if (is_over(pe_lib, &pe_work, 1)) {
            return 3;
        }
        const int64_t m = 0;
        break;
    }
    return 0;
}

int pe_asks(void **args)
{
    return asks_body(args[0], args[1], args[2], args[6], ((const int64_t *)args[5])[0]);
}
