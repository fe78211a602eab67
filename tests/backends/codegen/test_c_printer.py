"""Whole texts beside golden files, and what calls of them come to."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from plusequals.backends.codegen import records
from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.source import Source
from plusequals.lowering.ir import assignments as ir1
from plusequals.lowering.ir import dtypes, loops
from plusequals.lowering.ir.assignments import Access, Fault, Pair, Procedure
from plusequals.lowering.ir.expressions import Cast, Const
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.ops import PAIR_OPS
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from .harness import FFI, compiled, needs_compiler
from .programs import (
    apply,
    assign,
    at,
    node,
    number,
    over,
    position,
    procedure,
    read,
    softmax,
    symbols,
)

F64, I64 = dtypes.float64, dtypes.int64
i, j, k, n = symbols("i j k n")
X = node(0, "x", (6,), F64)
Golden = Callable[[str], Callable[[str], None]]


def text_of(whole: Procedure) -> Source:
    return print_program(*optimize(lower(whole), HOST, stop_after="lower"))


def scaled() -> Procedure:
    """A scalar argument, a strided array, a print and a check."""
    alpha = node(1, "alpha", (), F64)
    a = node(2, "a", (3, 4), F64, (1, 8))
    fault = Fault("CD0301", "CdIndexError", "index {0} of {1}")
    check = ir1.Check(apply("lt", position(i), Const(5, I64)), fault, (position(i), read(alpha)),
                      over((i, 0, 4)))  # fmt: skip
    value = apply("mul", read(alpha), read(a, j, k))
    body = (
        check,
        assign("a[j, k] *= alpha", a, at(j, k), value, over((j, 0, 3), (k, 0, 4))),
        ir1.Print(("alpha is ", read(alpha), " and a ", read(a, 0, 0))),
    )
    return procedure("scaled", [(alpha, False), (a, True)], body)


def nearest() -> Procedure:
    """A pair accumulator, and a guard on an index letter."""
    a, best = node(0, "d", (5, 7), F64), node(1, "best", (5,), F64)
    label = node(2, "label", (5,), I64)
    stmt = ir1.Assign(
        Access(best, at(i)), PAIR_OPS["argmin"], True, read(a, i, j),
        over((i, 0, 5), where=apply("ne", position(i), Const(2, I64))), over((j, 0, 7)),
        Pair(Access(label, at(i)), var(j)),
    )  # fmt: skip
    return procedure("nearest", [(a, False)], [stmt], [best], [label])


def sized() -> Procedure:
    """Run-time sizes: of a parameter, of a temporary, of a result."""
    x, y = node(0, "x", (var(n),), F64), node(1, "y", (var(n) + 1, 2), F64)
    w = node(2, "w", (var(n),), F64)
    body = (
        ir1.Alloc(w),
        assign("w[i] = x[i]", w, at(i), read(x, i), over((i, 0, var(n)))),
        ir1.Alloc(y),
        assign("y[j, 0] = w[j]", y, at(var(j) + 1, 1), read(w, j), over((j, 0, var(n)))),
    )
    return procedure("sized", [(x, False)], body, [w], [y])


def swapped() -> Procedure:
    """Arrays that trade places in a loop."""
    u, v = node(0, "u", (600,), F64), node(1, "v", (600,), F64)
    step = assign("v[i] = u[i] + 1", v, at(i), apply("add", read(u, i), number(1, F64)),
                  over((i, 0, 600)))  # fmt: skip
    loop = ir1.For(k, const(0), const(3), 1, (step, ir1.Permute((u, v), (v, u))))
    return procedure("swapped", [], [loop], [v], [u])


@pytest.mark.parametrize("make", [softmax, scaled, nearest, sized, swapped])
def test_the_text_is_what_a_person_would_want_to_read(
    make: Callable[[], Procedure], golden: Golden
) -> None:
    source = text_of(make())
    assert max(map(len, source.text.splitlines())) <= 100
    assert source == text_of(make())
    golden(f"{make.__name__}.c")(source.text)


def test_lines_lead_back_to_the_statement() -> None:
    source = text_of(softmax())
    lines = source.text.splitlines()
    (at_line,) = [number for number, line in enumerate(lines, 1) if "exp_f32(x" in line]
    assert source.line_map[at_line].text == "e[i, j] = exp(x[i, j] - m[i])"
    assert lines[min(source.line_map) - 2].strip() == "/* m[i] = max(x[i, j]) */"


@needs_compiler
def test_a_call_scales_a_strided_array_and_prints() -> None:
    run = compiled(scaled())
    a = np.arange(32.0)
    done = run(np.array(0.5), a)
    assert done.status == 0
    want = np.arange(32.0)
    view = np.lib.stride_tricks.as_strided(want, (3, 4), (8, 64))
    view *= 0.5
    assert a.tobytes() == want.tobytes()
    assert done.printed == [(0, (0.5, 0.0))]


@needs_compiler
def test_a_failed_check_stops_the_routine_with_its_values() -> None:
    fault = Fault("CD0301", "CdIndexError", "{0} {1}")
    values = (position(i), read(X, i), Const(1 + 2j, dtypes.complex64), Const(True, dtypes.bool_))
    check = ir1.Check(apply("lt", read(X, i), number(3, F64)), fault, values, over((i, 0, 6)))
    store = assign("x[j] = 0", X, at(j), number(0, F64), over((j, 0, 6)))
    run = compiled(procedure("checked", [(X, True)], [check, store]))
    x = np.arange(6.0)
    done = run(x)
    assert (done.status, done.fault[0]) == (1, 0)
    assert done.values == (3, 3.0, 1 + 2j, True)
    assert x[5] == 5.0
    assert run.source.faults == ((fault, check.span),)
    assert run(np.zeros(6)).status == 0


@needs_compiler
def test_a_fault_keeps_only_the_values_that_fit() -> None:
    fault = Fault("CD0301", "CdIndexError", "")
    check = ir1.Check(Const(False, dtypes.bool_), fault, tuple(Const(v, I64) for v in range(20)))
    done = compiled(procedure("many", [], [check]))()
    assert done.values == tuple(range(records.SLOTS // 2 - 1))


@needs_compiler
def test_run_time_sizes_come_in_and_go_out() -> None:
    run = compiled(sized())
    assert [(size.parameter, size.axis) for size in run.source.memory.sizes] == [(0, 0)]
    block = FFI.new("int64_t[3]")
    assert run(np.arange(1.0, 5.0), blocks=[block]).status == 0
    assert list(block)[1:] == [5, 2]
    data = FFI.cast("double *", block[0])
    got = np.array([data[at_] for at_ in range(10)]).reshape(5, 2)
    assert got[:, 1].tolist() == [0, 1, 2, 3, 4]


@needs_compiler
@pytest.mark.parametrize("extent", [2**62, 2**45])
def test_memory_that_is_not_there_is_reported(extent: int) -> None:
    size = node(0, "size", (), I64)
    w = node(1, "w", (var(n), var(n)), F64)
    body = (ir1.Let(n, read(size)), ir1.Alloc(w))
    done = compiled(procedure("large", [(size, False)], body, [w]))(np.array(extent))
    assert done.status == 2
    assert done.fault[0] == 2**63 - 1


@needs_compiler
def test_fills_reach_every_element_of_a_strided_array() -> None:
    a = node(0, "a", (3, 4), F64, (1, 8))
    kernel = loops.Kernel("fill", (loops.Fill(a, number(2, F64)),))
    program = loops.Program("fill", (ir1.Parameter(a, True),), (), (), (kernel,))
    data = np.zeros(32)
    assert compiled(program)(data).status == 0
    assert data.sum() == 24
    assert data[:3].tolist() == [2, 2, 2]


@needs_compiler
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.int8, dtypes.complex64])
def test_updates_stay_in_their_type(dtype: dtypes.DType) -> None:
    x = node(0, "x", (4,), dtype)
    two = Const(100 if dtype is dtypes.int8 else 2, dtype)
    steps = [assign(f"x {op}= 2", x, at(symbol), two, over((symbol, 0, 4)), op)
             for op, symbol in zip(("add", "mul", "sub"), (i, j, k))]  # fmt: skip
    data = np.array([1, 2, 3, 4], dtype.numpy)
    want = (data + two.value) * two.value - two.value
    if dtype is dtypes.int8:
        factor = np.int8(100)
        want = (data + factor) * factor - factor
    assert compiled(procedure("updates", [(x, True)], steps))(data).status == 0
    assert data.tobytes() == want.astype(dtype.numpy).tobytes()


@needs_compiler
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_names_and_texts_compile() -> None:
    labels = ["int", "*/ int main(void) { return 1; }", "exp_f64", "a\\", "fault", "args", "i",
              "größe", "x" * 300]  # fmt: skip
    nodes = [node(at_, label, (2,), F64) for at_, label in enumerate(labels)]
    body = [
        assign(f"{one.label} */ #error ??/\\", one, at(symbol), read(other, symbol),
               over((symbol, 0, 2)), "add")
        for one, other, symbol in zip(nodes, nodes[::-1], symbols("i " * 9))
    ]  # fmt: skip
    block = ir1.Block('*/\n#error "no"\\\n', tuple(body))
    whole = procedure("<lambda> */", [(one, True) for one in nodes], [block])
    run = compiled(whole)
    assert run(*(np.ones(2) for _ in nodes)).status == 0
    assert run.source.text.isascii()
    assert re.fullmatch(r"pe_[A-Za-z0-9_]+", run.source.entry)


@needs_compiler
def test_an_expression_of_two_hundred_terms_is_broken_into_lines() -> None:
    value = read(X, i)
    for _ in range(200):
        value = apply("add", value, apply("mul", read(X, i), Cast(position(i), F64)))
    stmt = assign("x[i] = ...", X, at(i), value, over((i, 0, 6)))
    run = compiled(procedure("long", [(X, True)], [stmt]))
    assert max(map(len, run.source.text.splitlines())) <= 100
    x = np.arange(6.0)
    assert run(x).status == 0
    assert x.tolist() == [v + 200 * v * v for v in range(6)]
