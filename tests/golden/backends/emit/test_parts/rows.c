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

struct rows_part {
    float *y;
    const float *x;
};

static int rows_part(float *restrict y, const float *restrict x, int64_t first, int64_t last)
{
    float s = 0.0f;
    _Alignas(64) float row[12];
    for (int64_t i = first; i < last; i++) {
        for (int64_t j = 0; j < 12; j++) {
            row[j] = x[i*12 + j] * x[i*12 + j];
        }
        s = 0.5f;
        for (int64_t k = 0; k < 12; k++) {
            s += row[k];
        }
        y[i] = s;
    }
    return 0;
}

static int rows_part_call(const void *with, int64_t first, int64_t last, int64_t *fault)
{
    const struct rows_part *const given = with;
    (void)fault;
    return rows_part(given->y, given->x, first, last);
}

static int rows_body(float *restrict y, const float *restrict x, const shared_run *pe_lib)
{
    {
        const struct rows_part given = {y, x};
        const int ended = pe_lib->parallel(pe_lib, rows_part_call, &given, 40, 264, NULL);
        if (ended) {
            return ended;
        }
    }
    return 0;
}

int pe_rows(void **args)
{
    return rows_body(args[0], args[1], args[5]);
}
