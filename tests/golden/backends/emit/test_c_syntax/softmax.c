#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline float max_f32(float a, float b) { return a >= b || a != a ? a : b; }

static inline float exp_f32(float x) { return expf(x); }

static inline void *aligned(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)bytes) : NULL;
}

static int softmax_body(float *restrict y, const float *restrict x, float *restrict e)
{
    float m[4] = {0};
    float s[4] = {0};
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
    return 0;
}

int pe_softmax(void **args)
{
    char *const arena = aligned(32000);
    if (!arena) {
        ((int64_t *)args[2])[0] = 32000;
        return 2;
    }
    float *const e = (float *)(arena + 0);
    const int status = softmax_body(args[0], args[1], e);
    free(arena);
    return status;
}
