"""Literals: what the compiler reads is the number that was meant."""

import math

import numpy as np
import pytest

from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.dialect import C
from plusequals.lowering.ir import dtypes

from .harness import load, needs_compiler

FLOATS = [0.0, -0.0, 0.1, 1.0, -2.5, 1e-45, 5e-324, 1.1754944e-38, 3.4028235e38,
          1.7976931348623157e308, 1 / 3, 16777217.0, 1e22, math.inf, -math.inf]  # fmt: skip


@needs_compiler
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_compiler_reads_every_literal_back() -> None:
    f64 = ", ".join(C.literal(v, dtypes.float64) for v in FLOATS)
    f32 = ", ".join(C.literal(v, dtypes.float32) for v in FLOATS)
    i64 = [-(2**63), -(2**63) + 1, -1, 0, 2**31, 2**63 - 1]
    u64 = [0, 2**63, 2**64 - 1]
    ints = ", ".join(C.literal(v, dtypes.int64) for v in i64)
    unsigned = ", ".join(C.literal(v, dtypes.uint64) for v in u64)
    infinity = prelude.prelude_definitions(prelude.C_FILES)["INFINITY"]
    text = (
        f"{C.header}\n{infinity}\nconst double d[] = {{{f64}}};\nconst float f[] = {{{f32}}};\n"
        f"const int64_t i[] = {{{ints}}};\nconst uint64_t u[] = {{{unsigned}}};\n"
    )
    count = len(FLOATS)
    library = load(text, f"extern double d[{count}]; extern float f[{count}]; extern int64_t i[6];"
                   " extern uint64_t u[3];",
                   ["-Wno-overflow"])  # fmt: skip
    assert np.array(list(library.d)).tobytes() == np.array(FLOATS).tobytes()
    assert np.float32(list(library.f)).tobytes() == np.float32(FLOATS).tobytes()
    assert list(library.i) == i64
    assert list(library.u) == u64


def test_literals_read_well() -> None:
    assert C.literal(0.1, dtypes.float32) == "0.1f"
    assert C.literal(1, dtypes.float64) == "1.0"
    assert C.literal(-math.inf, dtypes.float32) == "-INFINITY"
    assert C.literal(-(2**63), dtypes.int64) == "INT64_MIN"
    assert C.literal(7, dtypes.uint32) == "7u"
    assert C.literal(True, dtypes.bool_) == "true"
    assert C.literal(1.5, dtypes.bfloat16) == "0x3fc0"
    assert C.literal(1 - 2j, dtypes.complex64) == "(pe_c64){1.0f, -2.0f}"
    assert C.literal(math.nan, dtypes.float64) == "NAN"


def test_arrays_that_vectors_are_loaded_from_are_aligned() -> None:
    assert C.array(dtypes.float32, "a", 8) == "_Alignas(64) float a[8]"
    assert C.array(dtypes.float32, "a", 7) == "float a[7]"
