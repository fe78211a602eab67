#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *aligned_alloc(size_t alignment, size_t size);

static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

static inline void record_int(int64_t *at, int64_t type, int64_t value)
{
    at[0] = type;
    at[1] = value;
}

void free(void *array);

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

struct sums_part {
    int64_t *y;
    const int64_t *x;
};

static int sums_part(int64_t *restrict y, const int64_t *restrict x, int64_t first, int64_t last,
        int64_t *fault)
{
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
        for (int64_t k = 0; k < 3; k++) {
            near_[k] = 0;
        }
        s = 0;
        for (int64_t j = 0; j < 9000; j++) {
            row[j] = x[i*9000 + j];
            if (!(row[j] < 100)) {
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
    return sums_part(given->y, given->x, first, last, fault);
}

struct sums_part_2 {
    int64_t *y;
    const int64_t *x;
};

static int sums_part_2(int64_t *restrict y, const int64_t *restrict x, int64_t first, int64_t last,
        int64_t *fault)
{
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
        for (int64_t k = 0; k < 3; k++) {
            near_2[k] = 0;
        }
        s_2 = 0;
        for (int64_t j = 0; j < 9000; j++) {
            row_2[j] = x[i*9000 + j];
            if (!(row_2[j] < 100)) {
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
    return sums_part_2(given->y, given->x, first, last, fault);
}

static int sums_body(int64_t *restrict y, const int64_t *restrict x, int64_t *fault,
        const shared_run *pe_lib)
{
    {
        const struct sums_part given = {y, x};
        const int ended = pe_lib->parallel(pe_lib, sums_part_call, &given, 40, 648027, fault);
        if (ended) {
            return ended;
        }
    }
    {
        const struct sums_part_2 given = {y, x};
        const int ended = pe_lib->parallel(pe_lib, sums_part_2_call, &given, 40, 648027, fault);
        if (ended) {
            return ended;
        }
    }
    return 0;
}

int pe_sums(void **args)
{
    return sums_body(args[0], args[1], args[2], args[5]);
}
