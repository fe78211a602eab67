// Blocks that tell each other that they are done.

//! comes_last
/* Whether a block is the last one of so many to come here: it then sees all that the others wrote
 * before they came. `arrived` counts them, from zero to zero, so that the next kernel of a stream
 * finds it as this one did. All threads of a block come here, and are told the same. */
static inline bool comes_last(uint32_t *arrived, uint32_t blocks)
{
    bool last = false;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        __threadfence();
        last = atomicInc(arrived, blocks - 1) == blocks - 1;
        if (last) __threadfence();
    }
    return __syncthreads_or(last);
}
