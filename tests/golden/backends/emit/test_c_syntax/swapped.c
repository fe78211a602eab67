#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void *zeroed(int64_t bytes)
{
    return bytes == INT64_MAX ? NULL : calloc(1, bytes > 0 ? (size_t)bytes : 1);
}

static int swapped_body(double *u, int64_t *fault)
{
    double *const v_home = zeroed(4800);
    double *v = v_home;
    double *const u_home = u;
    int status = 0;
    if (!v_home) {
        fault[0] = 4800;
        status = 2;
        goto done;
    }
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
done:
    free(v_home);
    return status;
}

int pe_swapped(void **args)
{
    return swapped_body(args[0], args[1]);
}
