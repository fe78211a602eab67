extern "C" __global__ void __launch_bounds__(64) pe_rows_0(const float *__restrict__ x, float *y,
        int64_t n, int64_t *faults, int64_t launch)
{
    launched<0, 1, 1, 64, 1, 1>();
    if (faults[0] && faults[0] != launch) return;
    int met = 0;
    __shared__ int failed;
    if (threadIdx.x == 0) failed = 0;
    __syncthreads();
    __shared__ __align__(16) float partial[64];
    float total = 0.0f;
    for (int64_t b = (int64_t)blockIdx.x; b < n; b += (int64_t)gridDim.x) {
        for (int32_t t = (int32_t)threadIdx.x; t < 64; t += (int32_t)blockDim.x) {
            partial[t] = 0.0f;
            for (int32_t k = t; k < 640; k += 64) {
                if (!(x[b*640 + (int64_t)k] >= 0.0f)) {
                    const int64_t place[] = {0, b, 0, 0, 1, k, 0};
                    for (int turn = 0; turn < 32; turn++) {
                        if (turn != lane_of()) continue;
                        int64_t *const fault = claimed(faults, launch, place, 7);
                        fault[0] = 0;
                        record_int(fault + 1, 5, (int64_t)k);
                        record_real(fault + 3, 12, x[b*640 + (int64_t)k]);
                        fault[5] = 0;
                        failed = met + 1;
                        released(faults);
                    }
                    return;
                }
                partial[t] += x[b*640 + (int64_t)k];
            }
        }
        __syncthreads();
        met++;
        if (failed && failed <= met) return;
        total = 0.0f;
        for (int32_t k = 0; k < 64; k++) {
            total += partial[k];
        }
        for (int32_t t = (int32_t)threadIdx.x; t < 1; t += (int32_t)blockDim.x) {
            y[b] = total;
        }
        __syncthreads();
        met++;
        if (failed && failed <= met) return;
    }
}
