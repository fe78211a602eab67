#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static int nearest_body(const double *restrict d, int64_t *restrict label)
{
    _Alignas(64) double best[5] = {0};
    for (int64_t i = 0; i < 5; i++) {
        if (i != 2) {
            label[i] = -1;
            for (int64_t j = 0; j < 7; j++) {
                {
                    const double candidate = d[i*7 + j];
                    if (label[i] < 0 || candidate < best[i] ||
                            (candidate != candidate && best[i] == best[i])) {
                        best[i] = candidate;
                        label[i] = j;
                    }
                }
            }
        }
    }
    return 0;
}

int pe_nearest(void **args)
{
    return nearest_body(args[0], args[1]);
}
