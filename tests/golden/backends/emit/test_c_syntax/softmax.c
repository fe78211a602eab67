#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void *zeroed(int64_t bytes)
{
    return bytes == INT64_MAX ? NULL : calloc(1, bytes > 0 ? (size_t)bytes : 1);
}

static inline float max_f32(float a, float b) { return a >= b || a != a ? a : b; }

static inline float exp_f32(float x) { return expf(x); }

static int softmax_body(float *restrict y, const float *restrict x, int64_t *fault)
{
    float m[4] = {0};
    float s[4] = {0};
    float *restrict e = zeroed(32000);
    int status = 0;
    if (!e) {
        fault[0] = 32000;
        status = 2;
        goto done;
    }
    /* m[i] = max(x[i, j]) */
    for (int64_t i = 0; i < 4; i++) {
        m[i] = -INFINITY;
        for (int64_t j = 0; j < 2000; j++) {
            m[i] = max_f32(m[i], x[i*2000 + j]);
        }
    }
    /* e[i, j] = exp(x[i, j] - m[i]) */
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t j = 0; j < 2000; j++) {
            e[i*2000 + j] = exp_f32(x[i*2000 + j] - m[i]);
        }
    }
    /* sum[k](e[i, k]) */
    for (int64_t i = 0; i < 4; i++) {
        s[i] = 0.0f;
        for (int64_t k = 0; k < 2000; k++) {
            s[i] += e[i*2000 + k];
        }
    }
    /* y[i, j] = e[i, j] / sum[k](e[i, k]) */
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t j = 0; j < 2000; j++) {
            y[i*2000 + j] = e[i*2000 + j] / s[i];
        }
    }
done:
    free(e);
    return status;
}

int pe_softmax(void **args)
{
    return softmax_body(args[0], args[1], args[2]);
}
