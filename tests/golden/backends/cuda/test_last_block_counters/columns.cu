/* y[:] = x.sum(axis=0) */
extern "C" __global__ void __launch_bounds__(224, HELD_THREADS/224)
        pe_f_0(const float *__restrict__ x, float *y_acc_chunks, float *y, uint32_t *arrived)
{
    launched<5, 2, 1, 224, 1, 1>();
    float y_acc_chunk = 0.0f;
    float y_acc = 0.0f;
    for (int32_t tile = (int32_t)blockIdx.y; tile < 2; tile += (int32_t)gridDim.y) {
        for (int32_t part = (int32_t)blockIdx.x; part < 5; part += (int32_t)gridDim.x) {
            for (int32_t thread = (int32_t)threadIdx.x; thread < min_i32(400 - tile*224, 224);
                    thread += (int32_t)blockDim.x) {
                y_acc_chunk = -0.0f;
                for (int32_t i = part*8; i < min_i32(37, part*8 + 8); i++) {
                    y_acc_chunk += x[i*400 + tile*224 + thread];
                }
                y_acc_chunks[part*400 + tile*224 + thread] = y_acc_chunk;
            }
        }
        if (comes_last(&arrived[tile], gridDim.x)) {
            for (int32_t thread = (int32_t)threadIdx.x; thread < min_i32(400 - tile*224, 224);
                    thread += (int32_t)blockDim.x) {
                y_acc = 0.0f;
                for (int32_t part = 0; part < 5; part++) {
                    y_acc += y_acc_chunks[part*400 + tile*224 + thread];
                }
                y[tile*224 + thread] = y_acc;
            }
        }
    }
}
