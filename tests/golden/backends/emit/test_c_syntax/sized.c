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
    const int64_t *const places = (const int64_t *)args[4] + 1;
    char *const arena = spacious(places[0]);
    if (!arena) {
        ((int64_t *)args[2])[0] = places[0];
        return 2;
    }
    double *const w = (double *)(arena + places[1]);
    const int status = sized_body(args[0], args[1], w, args[2], ((const int64_t *)args[4])[0]);
    free(arena);
    return status;
}
