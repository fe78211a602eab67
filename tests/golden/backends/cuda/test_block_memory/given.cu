extern "C" __global__ void __launch_bounds__(256) pe_reversing_0(const double *__restrict__ x,
        double *y, int16_t *z)
{
    launched<3, 1, 1, 256, 1, 1>();
    double *const row = (double *)(block_bytes() + 0);
    int16_t *const short_ = (int16_t *)(block_bytes() + 48128);
    for (int32_t b = (int32_t)blockIdx.x; b < 3; b += (int32_t)gridDim.x) {
        for (int32_t t = (int32_t)threadIdx.x; t < 6000; t += (int32_t)blockDim.x) {
            row[t] = x[b*6000 + t];
        }
        for (int32_t t = (int32_t)threadIdx.x; t < 6000; t += (int32_t)blockDim.x) {
            short_[t] = (int64_t)t;
        }
        __syncthreads();
        for (int32_t t = (int32_t)threadIdx.x; t < 6000; t += (int32_t)blockDim.x) {
            y[b*6000 + t] = row[5999 - t];
            z[b*6000 + t] = short_[5999 - t];
        }
        __syncthreads();
    }
}
