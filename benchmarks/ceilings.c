/* What this machine can do at most: `ceilings THREADS [SECONDS [BYTES]]` writes one line a measurement.

   peak f32 OPERATIONS_PER_SECOND
   peak f64 OPERATIONS_PER_SECOND
   triad BYTES BYTES_PER_SECOND        a = b + s * c, 12 bytes an element, BYTES in all threads
   read BYTES BYTES_PER_SECOND         a sum

   A third number is the largest footprint, 768 MiB unless given. Vectors are written with the compiler's own vector types, so that it needs no header of the
   processor's. No chain begins where it would stay, or the compiler might leave it out. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define CHAINS 12 /* independent sums, enough to hide how long a multiply-add takes */
#define SMALLEST (12 << 10)
#define LARGEST (768 << 20)

typedef float f32v __attribute__((vector_size(WIDTH)));
typedef double f64v __attribute__((vector_size(WIDTH)));

typedef struct {
    enum { PEAK32, PEAK64, TRIAD, READ } what;
    float *a, *b, *c;
    long count, rounds;
    double seconds, kept;
    pthread_barrier_t *gate;
} Work;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#define PEAK(name, vector, scalar)                                          \
    static double name(long rounds)                                         \
    {                                                                       \
        vector x[CHAINS], s = {0}, m, d;                                    \
        double kept = 0;                                                    \
        for (int k = 0; k < (int)(WIDTH / sizeof(scalar)); k++)             \
            m[k] = (scalar)0.999999, d[k] = (scalar)1e-6;                   \
        for (int n = 0; n < CHAINS; n++) x[n] = s + (scalar)(n + 2);        \
        for (long r = 0; r < rounds; r++)                                   \
            for (int n = 0; n < CHAINS; n++) x[n] = x[n] * m + d;           \
        for (int n = 0; n < CHAINS; n++)                                    \
            for (int k = 0; k < (int)(WIDTH / sizeof(scalar)); k++) kept += x[n][k]; \
        return kept;                                                        \
    }
PEAK(peak32, f32v, float)
PEAK(peak64, f64v, double)

static double triad(float *restrict a, const float *restrict b, const float *restrict c, long count)
{
    const float s = 1.5f;
    for (long i = 0; i < count; i++) a[i] = b[i] + s * c[i];
    return a[count / 2];
}

static double sum(const float *a, long count)
{
    const long lanes = WIDTH / sizeof(float);
    const f32v *v = (const f32v *)a;
    f32v s[8];
    double kept = 0;
    memset(s, 0, sizeof s);
    for (long i = 0; i + 8 <= count / lanes; i += 8)
        for (int n = 0; n < 8; n++) s[n] += v[i + n];
    for (int n = 0; n < 8; n++)
        for (long k = 0; k < lanes; k++) kept += s[n][k];
    return kept;
}

static void *run(void *given)
{
    Work *w = given;
    for (int timed = 0; timed < 2; timed++) { /* the first time brings memory and clocks up */
        pthread_barrier_wait(w->gate);
        double start = now();
        if (w->what == PEAK32) w->kept += peak32(w->rounds);
        if (w->what == PEAK64) w->kept += peak64(w->rounds);
        for (long r = 0; w->what >= TRIAD && r < w->rounds; r++) {
            w->kept += w->what == READ ? sum(w->a, w->count) : triad(w->a, w->b, w->c, w->count);
            __asm__ volatile("" ::: "memory"); /* or one round might stand for all */
        }
        pthread_barrier_wait(w->gate);
        w->seconds = now() - start;
    }
    return NULL;
}

/* Return the seconds that all threads need for their rounds of some work on `count` elements. */
static double all(int what, int threads, long count, long rounds)
{
    pthread_t handles[256];
    static Work works[256];
    pthread_barrier_t gate;
    volatile double kept = 0;
    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        Work *w = &works[t];
        memset(w, 0, sizeof *w);
        w->what = what, w->count = count, w->rounds = rounds, w->gate = &gate;
        for (int k = 0; count && k < (what == TRIAD ? 3 : 1); k++) {
            float **slot = k == 0 ? &w->a : k == 1 ? &w->b : &w->c;
            if (posix_memalign((void **)slot, 4096, (size_t)(count + 256) * sizeof(float))) exit(2);
            memset(*slot, 0, (size_t)count * sizeof(float));
        }
        if (pthread_create(&handles[t], NULL, run, w)) exit(3);
    }
    for (int t = 0; t < threads; t++) pthread_join(handles[t], NULL);
    for (int t = 0; t < threads; t++) {
        kept += works[t].kept;
        free(works[t].a), free(works[t].b), free(works[t].c);
    }
    pthread_barrier_destroy(&gate);
    return works[0].seconds;
}

/* Return the rate of work at its best of five, each of about as many seconds as given. */
static double rate(int what, int threads, long count, double each, double seconds)
{
    long rounds = 1;
    double taken = all(what, threads, count, rounds), best = 0;
    for (; taken < 0.2 * seconds && rounds < 1L << 40; rounds *= 4)
        taken = all(what, threads, count, rounds * 4);
    for (int n = 0; n < 5; n++) {
        taken = all(what, threads, count, rounds);
        double found = each * (double)rounds * threads / taken;
        if (found > best) best = found;
    }
    return best;
}

/* Run on as many processors as there are threads, the first ones that are allowed. */
static void stay(int threads)
{
#ifdef __linux__
    cpu_set_t allowed, chosen;
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    for (int cpu = 0; cpu < CPU_SETSIZE && threads > 0; cpu++)
        if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen), threads--;
    sched_setaffinity(0, sizeof chosen, &chosen);
#else
    (void)threads;
#endif
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0.05;
    long largest = argc > 3 ? atol(argv[3]) : LARGEST;
    if (threads < 1 || threads > 256) return 1;
    stay(threads);
    printf("peak f32 %.6g\n", rate(PEAK32, threads, 0, 2.0 * CHAINS * WIDTH / 4, seconds));
    printf("peak f64 %.6g\n", rate(PEAK64, threads, 0, 2.0 * CHAINS * WIDTH / 8, seconds));
    for (long bytes = SMALLEST; bytes <= largest; bytes *= 2) {
        long of3 = bytes / threads / 12 / 64 * 64, of1 = bytes / threads / 4 / 128 * 128;
        printf("triad %ld %.6g\n", bytes, rate(TRIAD, threads, of3, 12.0 * of3, seconds));
        printf("read %ld %.6g\n", bytes, rate(READ, threads, of1, 4.0 * of1, seconds));
        fflush(stdout);
    }
    return 0;
}
