/* The run-time library: threads that share the iterations of loops, the question whether somebody
   wants a call to end, and storage that calls leave to later ones. One per process; generated code
   gets it as a `shared_run`.

   A loop that is run in parallel is a job. Its iterations are cut into chunks of neighbours, and
   these into shares, one for each thread: a thread takes the chunks of its own share in order, then
   those that are left of others; the caller has the first share. So in the next loop over the same
   iterations a thread finds in its cache what it had before. There is one job at a time: whoever
   comes while there is one works alone, and so does a loop inside of a loop. Which thread runs
   which chunk decides nothing, since iterations do not depend on each other.

   Workers are started when first needed, spin for about as long after a job as it takes to wake one
   up, and then sleep. For a job that is no longer than that they are woken up only where the one
   before it has just ended: where calls come one by one, the caller is done before a worker comes.
   They never run Python and take no signals. A forked child has none, and starts its own. */

#if defined(__has_include)
#if __has_include(<pthread.h>) && (defined(__unix__) || defined(__APPLE__))
#define PE_THREADS 1
#endif
#endif

#ifdef PE_THREADS
#include <sched.h>
#include <pthread.h>
#include <signal.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum {
    FAULT_SLOTS = 16,
    MOST_THREADS = 256,
    CHUNKS = 4, /* for each thread: who is late gets fewer */
    LINE = 64, /* bytes that processors share, elements from which on chunks begin at multiples */
    LONG = 1024, /* iterations of chunks that do */
    SPIN_NS = 50000, /* about as long as a system takes to run a thread that it wakes up */
    ASLEEP = 5, /* so many times the work is worth sharing with who is to be woken up first */
    WAKES = 2, /* how many others one wakes up */
    ASK_NS = 50000000, /* how often somebody is asked whether the call is to end */
    KEPT = 128 << 20, /* so many bytes of storage are kept for later calls */
    INTERRUPTED = 3
};

typedef struct {
    _Atomic int64_t next; /* the first chunk that nobody has taken */
    int64_t end;
    char padding[LINE - 2 * sizeof(int64_t)];
} share;

typedef struct {
    shared_part part;
    const void *with;
    share *shares;
    int64_t iterations, size, threads;
    _Atomic int64_t worst; /* the first chunk known to have ended badly */
    _Atomic int stop;
    int wanted; /* how many workers may still join */
    _Atomic int active; /* how many have, and are not done */
    int status;
    int64_t fault[FAULT_SLOTS];
} job;

static int (*ask)(void); /* whether the call is to end; may run anything */
static _Thread_local job *current;
static _Thread_local bool is_worker;
static _Thread_local int64_t asked;

static int64_t now(void)
{
    struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef PE_THREADS
static pthread_t asker; /* the only thread in which an answer may be yes */

static bool may_ask(void) { return pthread_equal(asker, pthread_self()); }
#else
static bool may_ask(void) { return true; }
#endif

static int interrupted(void)
{
    job *const mine = current;
    if (mine && atomic_load_explicit(&mine->stop, memory_order_relaxed)) return 1;
    if (is_worker || !ask || !may_ask()) return 0;
    const int64_t time = now();
    if (time - asked < ASK_NS) return 0;
    asked = time;
    const int answer = ask();
    default_modes(); /* a handler of a signal may have changed them */
    if (answer && mine) atomic_store_explicit(&mine->stop, 1, memory_order_relaxed);
    return answer;
}

static void *lend(int64_t bytes)
{
    Block *const block = block_of(bytes > 0 ? (size_t)bytes : 1);
    return block ? block + 1 : NULL;
}

static void give_back(void *storage) { keep_block((Block *)storage - 1, KEPT); }

static int alone(shared_part part, const void *with, int64_t iterations, int64_t *fault)
{
    return part(with, 0, iterations, fault);
}

#ifdef PE_THREADS

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER; /* there is a job, or the end */
static pthread_cond_t gone = PTHREAD_COND_INITIALIZER; /* a worker is done with a job */
static job *shared; /* the job that workers may join */
static pthread_t workers[MOST_THREADS];
static int started, sleeping;
static bool closing;
static int64_t ended; /* when the last job was, whoever did it */
static _Atomic unsigned posted; /* changes with every job */
static unsigned forks;

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t exactly(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Wake workers up for what is left to do of a job; each wakes others. The lock is held. */
static void wake(const job *one)
{
    for (int k = 0; k < WAKES && k < one->wanted && k < sleeping; k++) pthread_cond_signal(&come);
}

/* Take chunks of a share and run them until none is left that matters. */
static void work_on_share(job *one, share *mine)
{
    int64_t fault[FAULT_SLOTS];
    while (atomic_load_explicit(&mine->next, memory_order_relaxed) < mine->end) {
        const int64_t chunk = atomic_fetch_add(&mine->next, 1);
        if (chunk >= mine->end || chunk > atomic_load(&one->worst)) return;
        if (atomic_load_explicit(&one->stop, memory_order_relaxed)) return;
        const int64_t first = chunk * one->size;
        const int64_t left = one->iterations - first;
        const int64_t last = first + (left < one->size ? left : one->size);
        const int status = one->part(one->with, first, last, fault);
        if (!status) continue;
        pthread_mutex_lock(&lock);
        if (chunk < atomic_load(&one->worst)) {
            atomic_store(&one->worst, chunk);
            one->status = status;
            memcpy(one->fault, fault, sizeof fault);
        }
        pthread_mutex_unlock(&lock);
    }
}

/* Run the chunks of a thread's share, then what is left of others. */
static void work_on(job *one, int64_t thread)
{
    for (int64_t k = 0; k < one->threads; k++) {
        work_on_share(one, &one->shares[(thread + k) % one->threads]);
    }
}

static void *worker(void *number)
{
    const int64_t mine = (intptr_t)number + 1;
    is_worker = true;
    default_modes();
    pthread_mutex_lock(&lock);
    while (!closing) {
        job *const one = shared;
        if (!one || one->wanted <= 0) {
            sleeping++;
            pthread_cond_wait(&come, &lock);
            sleeping--;
            continue;
        }
        one->wanted--;
        atomic_fetch_add(&one->active, 1);
        wake(one);
        pthread_mutex_unlock(&lock);
        current = one;
        work_on(one, mine);
        current = NULL;
        pthread_mutex_lock(&lock);
        const unsigned seen = atomic_load(&posted);
        if (atomic_fetch_sub(&one->active, 1) == 1) pthread_cond_broadcast(&gone);
        pthread_mutex_unlock(&lock);
        const int64_t start = exactly();
        while (atomic_load(&posted) == seen && exactly() - start < SPIN_NS) relax();
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Start workers up to a number, if they can be had; the lock is held. */
static void start(int wanted)
{
    sigset_t all, before;
    pthread_attr_t with;
    size_t stack = 0;
    if (started >= wanted || pthread_attr_init(&with)) return;
    pthread_attr_getstacksize(&with, &stack);
    if (stack < (1 << 20)) pthread_attr_setstacksize(&with, 1 << 20);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted) {
        void *const number = (void *)(intptr_t)started;
        if (pthread_create(&workers[started], &with, worker, number)) break;
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&with);
}

#ifdef __linux__
static int home = -1, kept_off; /* where the caller was, and how many workers are kept off there */

/* Keep workers off the caller's processor: a system may leave a thread that wakes up where the one
   that woke it runs on, beside processors that do nothing. The lock is held. */
static void keep_off(void)
{
    const int here = sched_getcpu();
    cpu_set_t allowed;
    if (here < 0 || (here == home && kept_off == started)) return;
    if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed)) return;
    if (CPU_COUNT(&allowed) < 2) return;
    CPU_CLR(here, &allowed);
    for (int k = 0; k < started; k++) pthread_setaffinity_np(workers[k], sizeof allowed, &allowed);
    home = here;
    kept_off = started;
}
#else
static void keep_off(void) {}
#endif

/* Wait until no worker has the job any more, and ask meanwhile. Returns whether that will be. */
static bool await(job *one)
{
    const unsigned then = forks;
    const int64_t start = exactly();
    while (atomic_load(&one->active) && exactly() - start < SPIN_NS) relax();
    pthread_mutex_lock(&lock);
    shared = NULL;
    while (atomic_load(&one->active)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += ASK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&gone, &lock, &until);
        pthread_mutex_unlock(&lock);
        interrupted();
        if (forks != then) return false;
        pthread_mutex_lock(&lock);
    }
    ended = exactly();
    pthread_mutex_unlock(&lock);
    return true;
}

static void has_ended(void)
{
    pthread_mutex_lock(&lock);
    ended = exactly();
    pthread_mutex_unlock(&lock);
}

static bool is_worth(int64_t worth, int64_t work, int64_t iterations)
{
    return work >= worth || iterations >= worth / work;
}

static int parallel(
    const shared_run *run, shared_part part, const void *with, int64_t iterations, int64_t work,
    int64_t *fault)
{
    if (iterations <= 0) return 0;
    if (work < 1) work = 1;
    int64_t threads = run->threads < MOST_THREADS ? run->threads : MOST_THREADS;
    if (threads < 2 || current || !is_worth(run->worth, work, iterations)) {
        return alone(part, with, iterations, fault);
    }

    const int64_t least = run->worth / CHUNKS / work + 1; /* iterations of a chunk */
    int64_t chunks = iterations / least;
    if (threads > chunks) threads = chunks;
    if (threads < 2) return alone(part, with, iterations, fault);
    chunks = chunks < threads * CHUNKS ? chunks / threads * threads : threads * CHUNKS;
    int64_t size = (iterations - 1) / chunks + 1;
    if (size >= LONG) size = (size + LINE - 1) / LINE * LINE;
    chunks = (iterations - 1) / size + 1;
    if (threads > chunks) threads = chunks;
    share shares[threads];
    for (int64_t k = 0; k < threads; k++) {
        atomic_init(&shares[k].next, chunks * k / threads);
        shares[k].end = chunks * (k + 1) / threads;
    }
    job one = {.part = part, .with = with, .shares = shares};
    one.iterations = iterations, one.size = size, one.threads = threads;
    atomic_store(&one.worst, INT64_MAX);
    one.wanted = (int)threads - 1;

    pthread_mutex_lock(&lock);
    const bool asleep = started - sleeping < one.wanted && exactly() - ended > SPIN_NS;
    const int64_t much = run->worth < INT64_MAX / ASLEEP ? run->worth * ASLEEP : INT64_MAX;
    if (shared || closing || (asleep && !is_worth(much, work, iterations))) {
        pthread_mutex_unlock(&lock);
        const int status = alone(part, with, iterations, fault);
        if (asleep) has_ended();
        return status;
    }
    shared = &one;
    start((int)threads - 1);
    keep_off();
    atomic_fetch_add(&posted, 1);
    wake(&one);
    const unsigned then = forks;
    pthread_mutex_unlock(&lock);

    current = &one;
    work_on(&one, 0);
    const bool is_whole = forks == then && await(&one);
    current = NULL;
    if (!is_whole || atomic_load(&one.stop)) return INTERRUPTED;
    if (one.status && one.status != INTERRUPTED && fault) {
        memcpy(fault, one.fault, sizeof one.fault);
    }
    return one.status;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void in_parent(void) { pthread_mutex_unlock(&lock); }

/* Only the thread that forked lives on: forget all others, and what they were doing. */
static void in_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    come = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    gone = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    shared = NULL;
    started = sleeping = 0;
#ifdef __linux__
    home = -1;
#endif
    forks++;
    asker = pthread_self();
}

/* End the workers; nobody may be inside. */
static void end(void)
{
    pthread_mutex_lock(&lock);
    closing = true;
    atomic_fetch_add(&posted, 1);
    pthread_cond_broadcast(&come);
    const int count = started;
    started = 0;
    pthread_mutex_unlock(&lock);
    for (int k = 0; k < count; k++) pthread_join(workers[k], NULL);
}

static void prepare(int64_t thread)
{
    memcpy(&asker, &thread, sizeof asker < sizeof thread ? sizeof asker : sizeof thread);
    pthread_atfork(before_fork, in_parent, in_child);
}

#else

static int parallel(
    const shared_run *run, shared_part part, const void *with, int64_t iterations, int64_t work,
    int64_t *fault)
{
    (void)run, (void)work;
    return iterations <= 0 ? 0 : alone(part, with, iterations, fault);
}

static void end(void) {}

static void prepare(int64_t thread) { (void)thread; }

#endif

/* args[0] are two numbers: what is asked for, and
   0   the thread that may be asked, as an integer; args[1] is the function to ask
   1   how many threads may share a loop, and from how much work on; args[1] is the `shared_run`
       to fill
   2   the end of the library */
int pe_threads(void **args)
{
    const int64_t *const numbers = args[0];
    switch (numbers[0]) {
    case 0:
        ask = (int (*)(void))(intptr_t)args[1];
        prepare(numbers[1]);
        return 0;
    case 1:
        *(shared_run *)args[1] =
            (shared_run){parallel, interrupted, numbers[1], numbers[2], lend, give_back};
        return 0;
    default:
        end();
        empty_pool();
        return 0;
    }
}
