// CUDA C++ on a processor: each thread of a block is a fibre that runs until the next barrier.
//
// Memory that a block shares is filled with NaN before each block; of what a launch gives it, the
// bytes behind are looked at afterwards. Blocks, and threads between
// two barriers, run in an order that a seed decides, so a missing barrier changes results. A
// barrier that not all threads of a block reach, but those that failed, is an error, as is an
// exchange that not all threads of a warp come to, or an instruction for several numbers at an odd
// place. Copies to shared memory arrive late. It says nothing about speed, or about the order in which
// a device lets other threads see memory.
//
// What is the same for all texts is in `fibres.cpp`, which is compiled once.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PE_ON_CPU 1
#define __global__
#define __device__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((section("pe_shared")))

/* Of each library its own. */
#pragma GCC visibility push(hidden)

struct Place { unsigned x, y, z; };
extern Place threadIdx, blockIdx, blockDim, gridDim;

enum { MOST_BYTES = 1 << 18, BEHIND = 1 << 12 };
extern unsigned char pe_block_bytes[MOST_BYTES + BEHIND] __align__(128);

enum State { READY, AT_BARRIER, AT_EXCHANGE, ENDED };
void wait_at(int line, State state);
#define __syncthreads() wait_at(__LINE__, AT_BARRIER)
int any_said(int line, int mine);
#define __syncthreads_or(mine) any_said(__LINE__, mine)
#define __syncwarp() wait_at(__LINE__, AT_EXCHANGE)
void pe_exchanged(const void *mine, int size, void *all);
void pe_copied_later(void *to, const void *from, int size);
void pe_arrived(int later);
void pe_aligned(const void *place, int bytes);

#pragma GCC visibility pop

static void __threadfence() {}

/* A condition of a graph is the address of a word. */
static void cudaGraphSetConditional(unsigned long long condition, unsigned value)
{
    *(unsigned *)condition = value;
}

template <class T> static T atomicCAS(T *at, T expected, T wanted)
{
    const T before = *at;
    if (before == expected) *at = wanted;
    return before;
}
static unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}
template <class T> static T atomicExch(T *at, T wanted)
{
    const T before = *at;
    *at = wanted;
    return before;
}
template <class T> static T atomicAdd(T *at, T more)
{
    const T before = *at;
    *at = before + more;
    return before;
}
template <class T> static T atomicMax(T *at, T other)
{
    const T before = *at;
    if (other > before) *at = other;
    return before;
}
template <class T> static T atomicMin(T *at, T other)
{
    const T before = *at;
    if (other < before) *at = other;
    return before;
}
template <class T> static T atomicAnd(T *at, T other) { const T b = *at; *at = b & other; return b; }
template <class T> static T atomicOr(T *at, T other) { const T b = *at; *at = b | other; return b; }
template <class T> static T atomicXor(T *at, T other) { const T b = *at; *at = b ^ other; return b; }
