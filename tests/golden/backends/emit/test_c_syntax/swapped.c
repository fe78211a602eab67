#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);

void *aligned_alloc(size_t alignment, size_t size);

static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

void free(void *array);

static int swapped_body(double *u, double *v)
{
    double *const u_home = u;
    for (int64_t k = 0; k < 3; k++) {
        /* v[i] = u[i] + 1 */
        for (int64_t i = 0; i < 600; i++) {
            v[i] = u[i] + 1.0;
        }
        {
            double *const old_u = u;
            double *const old_v = v;
            u = old_v;
            v = old_u;
        }
    }
    if (u != u_home) {
        memcpy(u_home, u, 4800);
    }
    return 0;
}

int pe_swapped(void **args)
{
    char *const arena = aligned(4800);
    if (!arena) {
        ((int64_t *)args[1])[0] = 4800;
        return 2;
    }
    double *const v = (double *)(arena + 0);
    const int status = swapped_body(args[0], v);
    free(arena);
    return status;
}
