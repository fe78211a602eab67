/* Conditions of the conditional nodes of a graph, each set by one thread from one element.

   `fault` has three numbers: 1 once something is wrong, what it is, and where. From then on no
   loop goes on and no branch runs, so that the graph ends. */

#ifndef PE_ON_CPU
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(
    unsigned long long condition, unsigned int value);
#endif

static __device__ unsigned long long pe_bits(long long at, long long size)
{
    if (size == 1) return *(const unsigned char *)at;
    if (size == 2) return *(const unsigned short *)at;
    if (size == 4) return *(const unsigned int *)at;
    return *(const unsigned long long *)at;
}

static __device__ void pe_fail(long long *fault, long long what, long long where)
{
    if (fault[0]) return;
    fault[1] = what;
    fault[2] = where;
    fault[0] = 1;
}

/* Goes on while a bit of `mask` is set in the element, `most` times unless that is negative. */
extern "C" __global__ void pe_go_on(
    long long condition, long long at, long long size, long long mask, long long *count,
    long long most, long long *fault, long long where)
{
    if (threadIdx.x || blockIdx.x) return;
    bool holds = (pe_bits(at, size) & (unsigned long long)mask) != 0;
    if (holds && most >= 0 && *count >= most) pe_fail(fault, *count, where);
    *count += 1;
    cudaGraphSetConditional(condition, holds && !fault[0]);
}

/* Holds where the element, a whole number, is `which`, or negative where that is -1. */
extern "C" __global__ void pe_choose(
    long long condition, long long at, long long size, long long is_signed, long long which,
    long long branches, long long *fault, long long where)
{
    if (threadIdx.x || blockIdx.x) return;
    const unsigned long long bits = pe_bits(at, size);
    const int above = 64 - 8 * (int)size;
    const long long value = is_signed ? (long long)(bits << above) >> above : (long long)bits;
    const bool negative = is_signed && value < 0;
    if (!negative && (unsigned long long)value >= (unsigned long long)branches)
        pe_fail(fault, value, where);
    const bool is_chosen = which < 0 ? negative : !negative && value == which;
    cudaGraphSetConditional(condition, is_chosen && !fault[0]);
}
