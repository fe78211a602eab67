// What a compiler may know of a launch, what it gives to a block, and a thread of its place there.

//! launched
/* So many blocks and threads run the kernel, along each axis; zero where only the run knows. What
 * loops over blocks or threads do once is no loop then. PE_ON_CPU runs other sizes, too: there
 * nothing is taken for granted. */
template <int BLOCKS_X, int BLOCKS_Y, int BLOCKS_Z, int X, int Y, int Z>
static inline void launched()
{
#ifndef PE_ON_CPU
    __builtin_assume(blockDim.x == X && threadIdx.x < X);
    __builtin_assume(blockDim.y == Y && threadIdx.y < Y);
    __builtin_assume(blockDim.z == Z && threadIdx.z < Z);
    __builtin_assume(!BLOCKS_X || (gridDim.x == BLOCKS_X && blockIdx.x < BLOCKS_X));
    __builtin_assume(!BLOCKS_Y || (gridDim.y == BLOCKS_Y && blockIdx.y < BLOCKS_Y));
    __builtin_assume(!BLOCKS_Z || (gridDim.z == BLOCKS_Z && blockIdx.z < BLOCKS_Z));
#endif
}

//! HELD_THREADS
/* So many threads a multiprocessor has at most. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define HELD_THREADS 1024
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 1000 ? __CUDA_ARCH__ % 100 : __CUDA_ARCH__ >= 1100)
#define HELD_THREADS 1536
#else
#define HELD_THREADS 2048
#endif

//! block_bytes
/* The memory that a launch gives to each block: what its threads share beyond what a kernel may
 * declare. */
static inline unsigned char *block_bytes()
{
#ifdef PE_ON_CPU
    return pe_block_bytes;
#else
    extern __shared__ __align__(1024) unsigned char given[];
    return given;
#endif
}

//! lane_of
/* Which one of its warp a thread is. */
static inline int lane_of()
{
    const unsigned row = threadIdx.z * blockDim.y + threadIdx.y;
    return (int)((row * blockDim.x + threadIdx.x) % 32);
}
