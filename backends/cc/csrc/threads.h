// How generated code reaches the run-time library, which `threads.c` is.

//! shared_part
/* Runs the iterations first..last-1 of a loop; a status that is not 0 ends it, see `shared_run`. */
typedef int (*shared_part)(const void *with, int64_t first, int64_t last, int64_t *fault);

//! shared_run
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

//! is_over
/* Count work that is done; whether the call is to end, which is asked when there was enough. */
static inline bool is_over(const shared_run *run, int64_t *done, int64_t work)
{
    *done += work;
    if (*done < 2097152) return false;
    *done = 0;
    return run->interrupted();
}
