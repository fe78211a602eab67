"""CUDA as a dialect: literals, conversions, and a prelude that NVRTC takes as it is."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.source import preamble
from plusequals.backends.cuda.dialect import CUDA
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.ops import OPS

from ..codegen.harness import OF_NO_NUMBER
from .test_nvrtc import needed, needs_nvrtc

OF_THE_HOST = frozenset(
    "bytes_of zeroed aligned spacious cleared grown chained unchained native_c64 native_c128"
    " pair_c64 pair_c128".split()
)


def test_every_operation_has_a_spelling_for_every_type_it_admits() -> None:
    known = prelude.prelude_definitions(CUDA.library)
    missing = [
        f"{op.call}_{dtype.short}"
        for op in OPS.values() for dtype in dtypes.ALL
        if dtype.kind in op.admits and dtype.compute is dtype and not CUDA.is_infix(op, dtype)
        and f"{op.call}_{dtype.short}" not in {*known, *OF_NO_NUMBER}
    ]  # fmt: skip
    assert not missing
    assert all(name in known for name in CUDA.casts.values())


def test_signed_integers_wrap_by_functions_and_unsigned_ones_by_themselves() -> None:
    assert not CUDA.is_infix(OPS["add"], dtypes.int32)
    assert CUDA.is_infix(OPS["add"], dtypes.uint32)
    assert CUDA.is_infix(OPS["add"], dtypes.float32)
    assert CUDA.is_infix(OPS["bitand"], dtypes.int64)


def test_halves_are_bits() -> None:
    assert CUDA.literal(1.5, dtypes.float16) == "0x3e00"
    assert CUDA.literal(1e9, dtypes.float16) == "0x7c00"
    assert CUDA.literal(-0.0, dtypes.float16) == "0x8000"
    assert CUDA.literal(math.nan, dtypes.bfloat16) == "0x7fc0"
    assert CUDA.literal(0.1, dtypes.float32) == "0.1f"
    assert CUDA.literal(1 - 2j, dtypes.complex64) == "pe_c64{1.0f, -2.0f}"
    assert int(np.float16(1.5).view(np.uint16)) == 0x3E00


def test_no_piece_names_what_only_a_compiler_of_the_host_has() -> None:
    """For nvcc such a compiler reads the text, too: it takes what NVRTC does not know."""
    names = [name for name in prelude.prelude_definitions(CUDA.library) if name not in OF_THE_HOST]
    text = preamble(" ".join(names), CUDA)
    own = re.sub(r"#if(def| defined) PE_ON_CPU.*?#(else|endif)", "", text, flags=re.DOTALL)
    foreign = r"__builtin_\w+|__int128|__attribute__|__extension__|__asm__|_Float16|__has_\w+"
    behind_a_macro_of_the_host = {"__builtin_fma"}
    assert set(re.findall(foreign, own)) - behind_a_macro_of_the_host == {"__builtin_assume"}


@needs_nvrtc
def test_nvrtc_takes_the_whole_prelude_without_any_header(tmp_path: Path) -> None:
    names = [name for name in prelude.prelude_definitions(CUDA.library) if name not in OF_THE_HOST]
    text = preamble(" ".join(names), CUDA)
    made = needed().build(text, "sm_80", tmp_path)
    assert "#include" not in re.sub(r"#else.*?#endif", "", text, flags=re.DOTALL)
    told = [line for line in made.log.splitlines() if re.search(r": (warning|error)", line)]
    assert all("was declared but never referenced" in line for line in told), "\n".join(told)
