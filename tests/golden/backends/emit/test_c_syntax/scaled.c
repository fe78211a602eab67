#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void record_int(int64_t *at, int64_t type, int64_t value)
{
    at[0] = type;
    at[1] = value;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size);

static inline void record_real(int64_t *at, int64_t type, double value)
{
    at[0] = type;
    memcpy(at + 1, &value, sizeof value);
}

static int scaled_body(const double alpha, double *restrict a, int64_t *fault,
        void (*show)(int64_t, const int64_t *))
{
    for (int64_t i = 0; i < 4; i++) {
        if (!(i < 5)) {
            fault[0] = 0;
            record_int(fault + 1, 5, i);
            record_real(fault + 3, 13, alpha);
            fault[5] = 0;
            return 1;
        }
    }
    /* a[j, k] *= alpha */
    for (int64_t j = 0; j < 3; j++) {
        for (int64_t k = 0; k < 4; k++) {
            a[j + k*8] = alpha * a[j + k*8];
        }
    }
    {
        int64_t printed[6] = {0};
        record_real(printed + 1, 13, alpha);
        record_real(printed + 3, 13, a[0]);
        printed[5] = 0;
        show(0, printed);
    }
    return 0;
}

int pe_scaled(void **args)
{
    return scaled_body(*(const double *)args[0], args[1], args[2], args[3]);
}
