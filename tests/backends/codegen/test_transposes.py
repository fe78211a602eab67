"""Copies of lines into columns by calls: which loops are, and that the elements are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.vectors import match_transposed_copy
from plusequals.lowering.ir.assignments import Access, Parameter
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import Cast, Expr, Read
from plusequals.lowering.ir.indexing import Affine, const, multiply, var
from plusequals.lowering.ir.loops import For, Kernel, LoopKind, Program, Store
from plusequals.lowering.ir.node import Node, Purpose
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.placement import place_nodes

from ...lowering.ir.build import ap, f32, f64, num, symbols
from ...lowering.ir.build import node as array
from .harness import FFI, load, needs_compiler

C, K, G = symbols("c k g")
X, Y = array(0, "x", 40, 50), array(1, "y", 4000)


def panel(dtype: DType = f32, purpose: Purpose = "panel") -> Node:
    return Node(2, "columns", (const(4000),), dtype, purpose=purpose)


def copy(
    lanes: int = 16, near: int = 8, *, source: Node = X, node: Node | None = None, apart: int = 16,
    lane: int = 1, step: int = 1, kind: LoopKind = "serial", lo: Affine | None = None,
    value: Expr | None = None,
) -> For:  # fmt: skip
    """Return loops that copy `source[c + 3, step*k + 1]` to `columns[apart*k + lane*c + 5]`."""
    lo = const(0) if lo is None else lo
    read = Read(source, (var(C) + 3, multiply(var(K), const(step)) + 1)) if value is None else value
    at = Access(node or panel(source.dtype), (var(K) * apart + var(C) * lane + 5,))
    inner = For(K, lo, lo + near, 1, (Store(at, read),))
    return For(C, const(0), const(lanes), 1, (inner,), kind)


STAY = {
    "lanes that are no whole vectors": copy(lanes=12),
    "steps that are no whole pieces": copy(near=6),
    "lanes that are apart": copy(lane=2),
    "steps that are apart": copy(step=2),
    "one place for all steps": copy(apart=0),
    "an array of the caller's": copy(node=Y),
    "another type": copy(value=Cast(Read(X, (var(C), var(K))), f64), node=panel(f64)),
    "an operation": copy(value=ap("neg", Read(X, (var(C), var(K))))),
    "a number": copy(value=num(0.0)),
    "one line for all lanes": copy(value=Read(X, (const(0), var(K)))),
    "lanes in another order": copy(kind="vector"),
}


@pytest.mark.parametrize("name", STAY)
def test_other_loops_stay(name: str) -> None:
    assert match_transposed_copy(STAY[name], 256) is None


def test_narrow_vectors_have_no_calls() -> None:
    assert (
        match_transposed_copy(copy(), 256) is not None
        and match_transposed_copy(copy(), 512) is not None
    )
    assert match_transposed_copy(copy(), 128) is None and match_transposed_copy(copy(), 0) is None


def _program(loop: For, source: Node, kept: Node) -> Program:
    group = For(G, const(0), const(2), 1, (loop,))
    out = Store(Access(Y, (var(G),)), Read(kept, (var(G),)))
    dump = For(G, const(0), const(4000), 1, (replace(out, value=Cast(out.value, f32)),))
    clear = For(
        G, const(0), const(4000), 1, (Store(Access(kept, (var(G),)), num(0.0, kept.dtype)),)
    )
    body = (clear, group, dump)
    made = Program(
        "f", (Parameter(Y, True), Parameter(source, False)), (kept,), (), (Kernel("f", body),)
    )
    verify_program(made)
    return made


@needs_compiler
@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize(("lanes", "near", "apart"), [(16, 8, 16), (8, 4, 9), (24, 16, 31)])
def test_a_call_copies_what_the_loops_copy(dtype: DType, lanes: int, near: int, apart: int) -> None:
    source = array(0, "x", 40, 50, dtype=dtype)
    kept = panel(dtype)
    loop = copy(lanes, near, source=source, node=kept, apart=apart, lo=var(G) * near)
    made = _program(loop, source, kept)
    x = np.arange(2000, dtype=dtype.numpy).reshape(40, 50)
    wanted = np.zeros(4000, np.float32)
    for k in range(2 * near):
        wanted[apart * k + 5 : apart * k + 5 + lanes] = x[3 : lanes + 3, k + 1]
    for bits in (0, 256):
        source_text = print_program(made, replace(place_nodes(made), vector_bits=bits))
        assert ("turn_" in source_text.text) == bool(bits)
        flags = ("-march=native", "-Wno-psabi")
        library = load(source_text.text, f"int {source_text.entry}(void **);", list(flags))
        found = np.zeros(4000, np.float32)
        pointers = [FFI.cast("void *", one.ctypes.data) for one in (found, x)]
        given = FFI.new("void *[]", [*pointers, *[FFI.NULL] * 3])
        assert getattr(library, source_text.entry)(given) == 0
        assert np.array_equal(found, wanted)


def test_calls_are_given_where_their_first_elements_are() -> None:
    kept = panel(f64)
    source = array(0, "x", 40, 50, dtype=f64)
    made = _program(copy(8, 4, source=source, node=kept, lo=var(G) * 4), source, kept)
    text = print_program(made, replace(place_nodes(made), vector_bits=256)).text
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("turn_")]
    assert lines == [
        "turn_f64x4(&columns[g*64 + 5], 16, &x[g*4 + 151], 50);",
        "turn_f64x4(&columns[g*64 + 37], 16, &x[g*4 + 153], 50);",
        "turn_f64x4(&columns[g*64 + 9], 16, &x[g*4 + 351], 50);",
        "turn_f64x4(&columns[g*64 + 41], 16, &x[g*4 + 353], 50);",
    ]
