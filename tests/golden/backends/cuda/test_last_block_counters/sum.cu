extern "C" __global__ void __launch_bounds__(256, HELD_THREADS/256)
        pe_f_0(const float *__restrict__ x, float *y_acc_chunks, float *y, uint32_t *arrived)
{
    launched<3, 1, 1, 256, 1, 1>();
    float y_acc_chunk_part = 0.0f;
    __shared__ __align__(16) float y_acc_chunk_parts[256];
    float y_acc_chunk_whole = 0.0f;
    float y_acc_chunk = 0.0f;
    float y_acc = 0.0f;
    for (int32_t block = (int32_t)blockIdx.y; block < 1; block += (int32_t)gridDim.y) {
        for (int32_t part = (int32_t)blockIdx.x; part < 3; part += (int32_t)gridDim.x) {
            y_acc_chunk = -0.0f;
            for (int32_t thread = (int32_t)threadIdx.x; thread < 256;
                    thread += (int32_t)blockDim.x) {
                y_acc_chunk_part = -0.0f;
                for (int32_t i = part*3001 + thread; i < min_i32(part*3001 + 3001, 9001);
                        i += 256) {
                    y_acc_chunk_part += x[i];
                }
                y_acc_chunk_parts[thread] = y_acc_chunk_part;
            }
            __syncthreads();
            for (int32_t thread = (int32_t)threadIdx.x; thread < 32;
                    thread += (int32_t)blockDim.x) {
                for (int32_t q = 0; q < 7; q++) {
                    y_acc_chunk_parts[thread] += y_acc_chunk_parts[thread + q*32 + 32];
                }
            }
            __syncthreads();
            for (int32_t thread = (int32_t)threadIdx.x; thread < 8; thread += (int32_t)blockDim.x) {
                for (int32_t q = 0; q < 3; q++) {
                    y_acc_chunk_parts[thread] += y_acc_chunk_parts[thread + q*8 + 8];
                }
            }
            y_acc_chunk_whole = -0.0f;
            __syncthreads();
            for (int32_t thread = 0; thread < 8; thread++) {
                y_acc_chunk_whole += y_acc_chunk_parts[thread];
            }
            y_acc_chunk += y_acc_chunk_whole;
            for (int32_t thread = (int32_t)threadIdx.x; thread < 1; thread += (int32_t)blockDim.x) {
                y_acc_chunks[part] = y_acc_chunk;
            }
            __syncthreads();
        }
        if (comes_last(arrived, gridDim.x)) {
            for (int32_t thread = (int32_t)threadIdx.x; thread < 1; thread += (int32_t)blockDim.x) {
                /* y[:] = x.sum() */
                y_acc = 0.0f;
                for (int32_t part = 0; part < 3; part++) {
                    y_acc += y_acc_chunks[part];
                }
                y[0] = y_acc;
            }
        }
    }
}
