"""Loops over lanes as vectors: the bits of the loops, in any width, and which stay loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.codegen.c_printer import Source, print_program
from plusequals.backends.codegen.vector_variables import vector_width
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.expressions import Cast, Const, Expr, Select
from plusequals.lowering.ir.indexing import const, multiply, var
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import For, Kernel, Program, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.placement import place_nodes

from ...lowering.ir.build import ap, at, bool_, f32, f64, i64, num, pos, read, symbols
from ...lowering.ir.build import node as array
from .brackets import with_brackets
from .harness import FFI, VECTORS, load, needs_compiler
from .random_lanes import LOOPS, differences, made

i, j, r, lane, k = symbols("i j r lane k")
Y, X, Z, W = array(0, "y", 96), array(1, "x", 96), array(2, "z", 96), array(3, "w", 96, dtype=f64)
S, T, N = array(4, "s"), array(5, "t"), array(8, "n", dtype=i64)
B = array(9, "b", 4, dtype=bool_)
TILE = Node(6, "tile", (const(3), const(16)), f32, purpose="tile")
SUMS = Node(7, "sums", (const(16),), f64, purpose="lanes")
LANES = 16


def over(*body: Stmt, lanes: int = LANES) -> For:
    return For(lane, const(0), const(lanes), 1, body, "vector")


def program(*body: Stmt) -> Program:
    made = Program(
        "f", (*(Parameter(n, n in (Y, W)) for n in (Y, X, Z, W)), Parameter(S, False)),
        (T, TILE, SUMS, N, B), (), (Kernel("f", body),),
    )  # fmt: skip
    verify_program(made)
    return made


def source_of(made: Program, bits: int) -> Source:
    return print_program(made, replace(place_nodes(made), vector_bits=bits))


def inputs() -> list[Any]:
    rng = np.random.default_rng(1)
    y, x, z = (rng.standard_normal(96).astype("f4") for _ in range(3))
    x[3], x[20], z[5], z[7], x[7] = np.nan, -0.0, np.inf, -0.0, 0.0
    return [y, x, z, rng.standard_normal(96), np.full((), 1.5, "f4")]


def ran(source: Source, arrays: Sequence[Any]) -> list[bytes]:
    library = load(source.text, f"int {source.entry}(void **);", VECTORS)
    mine = [np.array(one) for one in arrays]
    pointers = [FFI.cast("void *", one.ctypes.data) for one in mine]
    assert getattr(library, source.entry)(FFI.new("void *[]", [*pointers, *[FFI.NULL] * 3])) == 0
    return [np.where(np.isnan(one), np.nan, one).tobytes() for one in mine]


def there(of: Node, shift: int = 0) -> Expr:
    return read(of, var(lane) + shift)


def first(count: int, yes: Expr, no: Expr) -> Expr:
    return Select(ap("lt", pos(var(lane)), Const(count, i64)), yes, no)


def padded(count: int, value: Expr) -> tuple[Stmt]:
    return (Update(at(Y, lane), OPS["add"], first(count, value, num(-0.0))),)


BODIES: dict[str, tuple[Stmt, ...]] = {
    "a number for all": (over(Store(at(Y, lane), num(-0.0))),),
    "a sum": (over(Update(at(Y, lane), OPS["add"], ap("mul", there(X, 16), there(Z)))),),
    "a scalar for all": (
        over(Store(at(Y, lane), ap("sub", read(S), ap("div", there(X), read(S))))),
    ),
    "extremes": (
        over(Update(at(Y, lane), OPS["max"], there(X)), Update(at(Y, lane), OPS["min"], there(Z))),
        over(Store(at(Y, var(lane) + 16), ap("max", there(X), there(Z)))),
    ),
    "names": (
        over(Store(at(T), ap("sub", there(X), read(S))),
             Store(at(T), ap("mul", read(T), read(T))),
             Update(at(Y, lane), OPS["add"], ap("neg", read(T)))),
    ),
    "names of two loops": (
        over(Store(at(T), ap("neg", there(X))), Store(at(Y, lane), read(T))),
        over(Store(at(T), ap("neg", there(Z))), Store(at(Y, var(lane) + 16), read(T))),
        For(i, const(0), const(2), 1, (
            over(Store(at(T), ap("neg", there(X))), Update(at(Y, lane), OPS["add"], read(T))),
            over(Store(at(T), ap("neg", there(Z))), Update(at(Y, lane), OPS["add"], read(T))),
        )),
    ),
    "fused": (over(Store(at(Y, lane), ap("fma", there(X), read(S), there(Z)))),),
    "a choice": (
        over(Store(at(Y, lane), Select(ap("lt", there(X), there(Z)), there(Z, 2), num(-0.0)))),
        over(Update(at(Y, lane), OPS["add"], Select(
            ap("bitand", ap("ge", there(X), read(S)),
               ap("logical_not", ap("eq", there(Z), num(0.0)))),
            there(X), num(-0.0)))),
    ),
    "a choice by wider numbers": (
        over(Store(at(Y, lane), Select(ap("gt", there(W), num(0.5, f64)), there(X), there(Z)))),
    ),
    "a choice of wider numbers": (
        over(Update(at(W, lane), OPS["add"],
                    Select(ap("ne", there(X), there(Z)), there(W, 3), num(-0.0, f64)))),
    ),
    "truths as numbers": (
        over(Update(at(Y, lane), OPS["add"], Cast(ap("lt", there(X), there(Z, 1)), f32))),
        over(Update(at(W, lane), OPS["mul"], Cast(ap("ge", there(X), read(S)), f64))),
        over(Store(at(Y, var(lane) + 16),
                   ap("mul", there(X), Cast(ap("ne", there(Z), there(X)), f32)))),
    ),
    "wider": (over(Update(at(W, lane), OPS["add"], Cast(there(X), f64))),),
    "a truth for all": (
        For(k, const(0), const(4), 1, (Store(at(B, k), ap("gt", read(X, k), num(0.0))),)),
        over(Update(at(W, lane), OPS["add"], Cast(read(B, 0), f64))),
        over(Update(at(W, lane), OPS["mul"], Cast(read(B, 1), f64)), lanes=4),
        over(Update(at(Y, lane), OPS["max"], Cast(ap("lt", read(S), num(2.0)), f32))),
    ),
    "few": (
        over(Update(at(Y, lane), OPS["add"], there(Y, 2)), lanes=2),
        over(Update(at(Y, var(lane) + 8), OPS["mul"], there(X)), lanes=4),
    ),
    "in a loop": (
        For(i, const(0), const(5), 1, (
            over(Store(at(Y, var(lane) + var(i) * 16), there(X, 3))),
        )),
    ),
    "a tile": (
        For(i, const(0), const(2), 1, (
            For(r, const(0), const(3), 1, (over(Store(at(TILE, r, lane), num(0.5))),), "unrolled"),
            For(k, const(0), const(7), 1, (
                For(r, const(0), const(3), 1, (
                    over(Update(at(TILE, r, lane), OPS["add"],
                                ap("mul", read(X, var(k) + var(r)), read(Z, var(lane) + var(k))))),
                ), "unrolled"),
            )),
            For(r, const(0), const(3), 1, (
                over(Store(at(Y, var(lane) + var(r) * 16 + var(i) * 48), read(TILE, r, lane))),
            ), "unrolled"),
        )),
    ),
    "the first ones": (
        over(*padded(11, there(X, 3))),
        over(Update(at(W, lane), OPS["add"], first(13, Cast(there(X), f64), num(-0.0, f64)))),
        over(Store(at(T), first(5, ap("sub", there(X), read(S)), num(0.0))),
             *padded(5, ap("mul", read(T), read(T)))),
        over(Store(at(Y, lane), ap("fma", first(9, there(X), num(-0.0)),
                                   first(9, there(Z), num(0.0)), there(Y)))),
        over(Store(at(Y, var(lane) + 32), first(3, there(X), num(7.0)))),
    ),
    "as many as the run says": (
        Store(at(N), Const(21, i64)),
        over(Update(at(Y, lane), OPS["add"],
                    Select(ap("lt", pos(var(lane)), read(N)), there(X), num(-0.0)))),
        over(Update(at(Y, var(lane) + 16), OPS["add"],
                    Select(ap("lt", pos(var(lane) + 16), read(N)), there(X, 16), num(-0.0)))),
        over(Update(at(Y, var(lane) + 32), OPS["mul"],
                    Select(ap("lt", pos(var(lane) + 32), read(N)), there(X, 16), num(1.0)))),
    ),
    "lanes": (
        over(Store(at(SUMS, lane), num(-0.0, f64))),
        over(Update(at(SUMS, lane), OPS["add"], Cast(there(Z), f64))),
        over(Store(at(W, lane), read(SUMS, lane))),
    ),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("bits", [0, 128, 256, 512])
@pytest.mark.parametrize("name", BODIES)
def test_vectors_give_the_bits_of_loops(name: str, bits: int) -> None:
    made, arrays = program(*BODIES[name]), inputs()
    source = source_of(made, bits)
    expected = [np.array(one) for one in arrays]
    run_program(made, expected, lambda text: None)
    found = ran(source, arrays)
    assert found == [np.where(np.isnan(one), np.nan, one).tobytes() for one in expected]
    loops = sum("lane" in line for line in source.text.splitlines() if "for (" in line)
    assert (loops == 0) == (bits > 0)


@needs_compiler
@pytest.mark.parametrize(("seed", "bits"), [(1, 128), (2, 256)])
def test_random_vectors_give_the_bits_of_loops(seed: int, bits: int) -> None:
    assert made(seed)[1] >= LOOPS // 3
    assert differences(seed, bits) == []


STAYS: dict[str, Stmt] = {
    "every second": over(Store(at(Y, lane), read(X, var(lane) * 2))),
    "backwards": over(Store(at(Y, lane), read(X, -var(lane) + 20))),
    "one cell": over(Update(at(Y, 3), OPS["add"], there(X))),
    "a scalar": over(Update(at(T), OPS["add"], there(X))),
    "a position": over(Store(at(Y, lane), Cast(pos(var(lane)), f32))),
    "a function": over(Store(at(Y, lane), ap("exp", there(X)))),
    "narrower": over(Store(at(Y, lane), Cast(there(W), f32))),
    "a loop inside": over(For(k, const(0), const(2), 1, (Store(at(Y, lane), there(X)),))),
    "a product of indices": over(Store(at(Y, lane), read(X, multiply(var(lane), var(i))))),
    "from zero": over(Store(at(Y, lane), ap("sub", num(0.0), ap("mul", there(X), there(X))))),
    "twelve": over(Store(at(Y, lane), there(X)), lanes=12),
    "another kind": For(lane, const(0), const(16), 1, (Store(at(Y, lane), there(X)),)),
    "from one on": For(lane, const(1), const(17), 1, (Store(at(Y, lane), there(X)),), "vector"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_a_loop(name: str) -> None:
    loop = STAYS[name]
    assert isinstance(loop, For)
    assert vector_width(loop, 256) == 0


def test_the_widest_type_decides_how_many_lanes_a_vector_has() -> None:
    (narrow,), (wide,) = BODIES["a sum"], BODIES["wider"]
    assert isinstance(narrow, For)
    assert isinstance(wide, For)
    assert (vector_width(narrow, 256), vector_width(wide, 256), vector_width(narrow, 1024)) == (
        8,
        4,
        16,
    )


def test_variables_are_declared_where_all_their_uses_are() -> None:
    lines = source_of(program(*BODIES["a tile"]), 256).text.splitlines()
    at_ = next(n for n, line in enumerate(lines) if "f32x8 tile_0, tile_1" in line)
    assert lines[at_ - 1].strip().startswith("for (int64_t i = 0")
    assert "float tile[" not in "\n".join(lines)


def test_registers_are_free_for_variables_that_fill_them() -> None:
    found = [source_of(program(*BODIES["a tile"]), bits).text for bits in (128, 256, 512)]
    assert ["free_registers" in text for text in found] == [True, False, False], "12, 6, 3 of 16"
    lines = [line.strip() for line in found[0].splitlines()]
    at_ = lines.index("free_registers();")
    assert lines[at_ - 1].endswith("tile_11;")
    assert lines[at_ + 1] == "tile_0 = all_f32x4(0.5f);"


def added(outer: int, inner: int) -> Stmt:
    """Return loops around a step of a tile of twelve vectors of four lanes."""
    step = For(r, const(0), const(3), 1, (
        over(Update(at(TILE, r, lane), OPS["add"],
                    ap("mul", read(X, var(k) + var(r)), read(Z, var(lane) + var(i))))),
    ), "unrolled")  # fmt: skip
    rounds = For(k, const(0), const(inner), 1, (step,))
    start, end = (
        For(r, const(0), const(3), 1, (over(one),), "unrolled")
        for one in (Store(at(TILE, r, lane), num(0.5)),
                    Store(at(Y, var(lane) + var(r) * 16), read(TILE, r, lane)))
    )  # fmt: skip
    return For(j, const(0), const(2), 1, (start, For(i, const(0), const(outer), 1, (rounds,)), end))


@pytest.mark.parametrize(
    ("outer", "inner", "bits", "told", "kept"),
    [(3, 3, 128, [3, 3], 1), (4, 7, 128, [7], 1), (3, 17, 128, [], 0), (3, 3, 512, [], 0),
     (3, 3, 256, [], 0), (3, 3, 0, [], 0)],
)  # fmt: skip
def test_short_loops_over_steps_of_a_full_tile_are_written_out_step_by_step(
    outer: int, inner: int, bits: int, told: list[int], kept: int
) -> None:
    lines = source_of(program(added(outer, inner)), bits).text.splitlines()
    pragmas = [line.split()[-1] for line in lines if "#pragma GCC unroll" in line]
    assert pragmas == [str(one) for one in told]
    assert sum(line.strip() == "compiler_barrier();" for line in lines) == kept


def _forms(first: Expr, second: Expr) -> list[Expr]:
    """Return what vectors do with two operands."""
    made = [ap(name, first, second) for name in ("add", "sub", "mul", "div", "max")]
    made += [ap(name, first) for name in ("neg", "sqrt", "abs")]
    made += [Select(ap(name, first, second), first, second) for name in ("lt", "eq", "le")]
    return [*made, Cast(ap("lt", first, second), f32), ap("add", first, first)]


def _vector_text(expr: Expr) -> str:
    text = source_of(program(over(Store(at(Y, lane), expr))), 256).text
    found = re.findall(r"\*\(f32x8_at \*\)&y\[0\] = (.*?);", text, re.DOTALL)
    return found[0] if found else ""


def test_brackets_never_change_what_an_operand_is() -> None:
    element, other, scalar = read(X, lane), read(Z, lane), read(S)
    compared = 0
    for nested in (*_forms(element, scalar), *_forms(scalar, element)):
        nested_text = _vector_text(nested)
        if not nested_text or nested_text.startswith("all_"):
            continue  # no vector, or a scalar, which the operator around it may broadcast
        for at_first in (True, False):
            pairs = [(each, element) if at_first else (element, each) for each in (nested, other)]
            for form, model in zip(*(_forms(*pair) for pair in pairs), strict=True):
                text, model_text = _vector_text(form), _vector_text(model)
                if text and model_text:
                    put = model_text.replace("*(const f32x8_at *)&z[0]", f"({nested_text})")
                    assert with_brackets(text) == with_brackets(put)
                    compared += 1
    assert compared > 400
