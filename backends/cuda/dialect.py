"""CUDA C++ dialect: its differences from C.

Kernels are compiled without headers. 16-bit floats are stored as bits and converted through
float32; signed integers wrap by functions, since a CUDA compiler assumes that they do not overflow.
`PE_ON_CPU` is defined where tests compile the text for a CPU.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ...lowering.ir import dtypes
from ..codegen import prelude
from ..codegen.dialect import C

_LIMITS = "\n".join(
    f"#define INT{bits}_MAX {2 ** (bits - 1) - 1}{end}\n"
    f"#define INT{bits}_MIN (-INT{bits}_MAX - 1)\n"
    f"#define UINT{bits}_MAX {2**bits - 1}{'u' + end if bits > 16 else ''}"
    for bits, end in ((8, ""), (16, ""), (32, ""), (64, "ll"))
)
HEADER = f"""\
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
{_LIMITS}
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif"""

LIBRARY = (
    *prelude.SHARED_FILES,
    *(
        f"cuda/csrc/{name}.h"
        for name in (
            "integers",
            "reals",
            "complexes",
            "faults",
            "tensors",
            "warpgroups",
            "atomics",
            "logs",
            "launches",
            "arrivals",
        )
    ),
)
"""The prelude: shared C pieces, some of them overridden."""
SPECIFIC = frozenset({"multiplied_wide"})
"""Functions of architecture-specific features: they run on 9.0, but not on 10.0."""

CUDA = replace(
    C,
    name="CUDA",
    header=HEADER,
    types=MappingProxyType({**C.types, dtypes.bool_: "bool", dtypes.float16: "uint16_t"}),
    casts=MappingProxyType({
        **C.casts,
        (dtypes.float16, dtypes.float32): "f32_from_f16",
        (dtypes.float32, dtypes.float16): "f16_from_f32",
        (dtypes.float64, dtypes.float16): "f16_from_f64",
    }),
    record="{}{{{}, {}}}",
    restrict="__restrict__",
    function="static __device__",
    entry='extern "C" __global__ void {}',
    library=LIBRARY,
    halves=frozenset((dtypes.bfloat16, dtypes.float16)),
    wrapping=frozenset(("add", "sub", "mul", "neg")),
    loop_hooks=MappingProxyType({"unrolled": "#pragma unroll"}),
    unroll_limit="#pragma unroll {}",
    has_narrow_indices=True,
    spread=MappingProxyType({
        "block": ("blockIdx.{}", "gridDim.{}"),
        "thread": ("threadIdx.{}", "blockDim.{}"),
    }),
    spellings=(
        ("static inline", "static __device__ inline"),
        ("(pe_c64){", "pe_c64{"),
        ("(pe_c128){", "pe_c128{"),
        ("copysign(0, ", "copysign(0.0, "),
        ("__asm__ volatile", "asm volatile"),
    ),
)  # fmt: skip
"""The dialect of NVRTC and nvcc, and of g++ with the threads of a block as fibres."""
