"""Counted work is what the interpreter really does: each operation, each element, each byte."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import operation_counts as counting
from plusequals.lowering.analysis.iteration_domains import CallValues, call_values
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.lower import lower
from plusequals.lowering.operation_counts import OperationCounts, count_operations
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ..programs.check import NAMES as SCOPE
from ..programs.generate import generate
from .observed import Seen, observed
from .shown import NAMES, array


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What the interpreter does, told from outside."""
    return observed(monkeypatch)


def programs(text: str, *arguments: Any) -> tuple[Program, Program]:
    """The loops of a function as they come, and after every pass."""
    procedure = pe.cd_from_source(text, NAMES).procedure(*arguments)
    program = lower(procedure)
    return program, optimize(program, HOST)[0]


def same_as_seen(
    program: Program, arguments: list[Any], known: CallValues, seen: Seen
) -> OperationCounts:
    """Compare with a run, and return what was counted."""
    seen.forget()
    run_program(program, arguments + [None] * len(program.results), lambda text: None)
    found = count_operations(program, known)
    assert dict(found.operations) == dict(seen.operations)
    assert found.total == sum(seen.operations.values())
    for one in found.arrays:
        node, each = one.node, one.node.dtype.itemsize
        assert one.loads == each * seen.loads[node.id], node
        assert one.stores == each * seen.stores[node.id], node
        if not one.is_temporary:
            assert one.reads == each * len(seen.read.get(node.id, ())), node
            assert one.writes == each * len(seen.written.get(node.id, ())), node
    return found


F32 = "f32[6, 5]"
EXACT: dict[str, tuple[str, tuple[str, ...]]] = {
    "softmax": (
        "def f(y, x):\n    m[i] = max(x[i, j])\n    e[i, j] = exp(x[i, j] - m[i])\n"
        "    y[i, j] = e[i, j] / sum[k](e[i, k])\n", (F32, F32),
    ),
    "a product": ("def f(c, a, b):\n    c[i, j] += a[i, k] * b[k, j]\n",
                  ("f32[4, 3]", "f32[4, 5]", "f32[5, 3]")),
    "a stencil reads no corners": (
        "def f(u, v):\n    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2]\n"
        "                                + u[1:-1, 2:])\n", ("f64[6, 7]", "f64[6, 7]"),
    ),
    "triangles": (
        "def f(a, b):\n    for k in range(6):\n        for i in range(k, 6):\n"
        "            b[i] += a[i, k] * b[k]\n", ("f64[6, 6]", "f64[6]"),
    ),
    "backwards": ("def f(x):\n    for k in range(5, 0, -2):\n        x[k] = x[k - 1] * 2\n",
                  ("f64[6]",)),
    "zeros around": (
        "def f(y, x):\n    p = np.pad(x, 1)\n    y[:] = p[:-2] + p[1:-1] + p[2:]\n",
        ("f64[5]", "f64[5]"),
    ),
    "guarded corners": ("def f(y, x):\n    y[i] = x[pad(i - 3)] * 2.0\n",
                        ("f64[7]", "f64[7]")),
    "the first best": ("def f(y, x):\n    y[i] = argmax[j](x[i, j])\n", ("i64[6]", F32)),
    "strided and reversed": ("def f(y, x):\n    y[::2] = x[::-1][::2]\n", ("f64[9]", "f64[9]")),
    "read back": ("def f(y, z, x):\n    y[:] = x * 2\n    z[:] = np.cumsum(y)\n",
                  ("f64[6]", "f64[6]", "f64[6]")),
    "written in two parts, then read": (
        "def f(y, x):\n    y[:3] = x[:3]\n    y[3:] = 2 * x[3:]\n    x[:] = y * y\n",
        ("f64[7]", "f64[7]"),
    ),
    "a recurrence": (
        "def f(y, x):\n    y[0] = x[0]\n    for t in range(1, 9):\n"
        "        y[t] = y[t - 1] * 0.5 + x[t]\n", ("f64[9]", "f64[9]"),
    ),
    "a recurrence that starts from before": (
        "def f(y, x):\n    for t in range(7, -1, -1):\n        y[t] = y[t + 1] * 0.5 + x[t]\n",
        ("f64[9]", "f64[9]"),
    ),
    "cholesky": (
        "def f(w, a):\n    for j in range(6):\n        w[j, j] = a[j, j]\n"
        "        for k in range(j):\n            w[j, j] -= w[j, k] * w[j, k]\n"
        "        for i in range(j + 1, 6):\n            w[i, j] = a[i, j]\n"
        "            for k in range(j):\n                w[i, j] -= w[i, k] * w[j, k]\n"
        "            w[i, j] /= w[j, j]\n", ("f64[6, 6]", "f64[6, 6]"),
    ),
    "zeros of each round": (
        "def f(y, x):\n    for t in range(3):\n        y[...] = 0\n"
        "        for i in range(1, 5):\n            y[i] += y[i - 1] + x[t]\n",
        ("f64[5]", "f64[3]"),
    ),
    "sweeps over what is there": (
        "def f(u):\n    for t in range(3):\n        for i in range(1, 5):\n"
        "            u[i] = u[i - 1] + u[i + 1]\n", ("f64[6]",),
    ),
    "conversions": ("def f(y, x):\n    y[:] = x * 2.5\n", ("f32[6]", "i32[6]")),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_counts_are_what_a_run_does(name: str, seen: Seen) -> None:
    text, specs = EXACT[name]
    arguments = [array(spec) for spec in specs]
    for value in arguments:
        value[...] = np.arange(1, 1 + value.size).reshape(value.shape)
    for program in programs(text, *arguments):
        found = same_as_seen(program, [value.copy() for value in arguments], CallValues(), seen)
        assert found.assumed == ()
        assert not found.is_sampled


def test_sizes_and_numbers_of_a_call_are_put_in(seen: Seen) -> None:
    function = pe.cd_from_source(
        "def f(y, x, n):\n    for t in range(n):\n        y[i] += x[i] * 0.5\n", {}
    )
    for size in (3, 4, 5, 6):
        function(np.zeros(size), np.ones(size), 2)
    form = function.specialise(np.zeros(7), np.ones(7), 3)
    _, program = (p := lower(form.procedure)), optimize(p, HOST)[0]
    arguments = [np.zeros(7), np.ones(7), np.array(3)]
    known = call_values(program.parameters, arguments)
    assert sorted(known.symbols.values()) == [7, 7]
    found = same_as_seen(program, arguments, known, seen)
    assert found.operations == {"add": 21, "lt": 21, "mul": 21, "eq": 3}  # the sizes are checked
    assert found.assumed == ()
    blind = count_operations(program)
    assert blind.operations == {"add": 1, "eq": 1, "lt": 1, "mul": 1}
    assert any("one iteration" in one.text for one in blind.assumed)


def test_what_data_decides_is_counted_as_done_and_said() -> None:
    text = (
        "def f(y, x, p):\n    for i in range(6):\n        if x[i] > 0:\n"
        "            y[i] = exp(x[p[i]])\n            if x[i] > 9:\n                break\n"
    )
    arguments = array("f64[6]"), array("f64[8]"), array("i64[6]")
    _, program = programs(text, *arguments)
    found = count_operations(program)
    assert found.operations["exp"] == 6
    said = {one.text for one in found.assumed}
    assert any("counted as always done" in text for text in said)
    assert any("left early" in text for text in said)
    assert all(one.span.line for one in found.assumed)
    by_name = {one.node.label: one for one in found.arrays}
    assert by_name["x"].reads == 8 * 8  # any element may be looked up


def test_recurrences_need_nothing_of_what_they_wrote() -> None:
    least = {}
    for name in ("a recurrence", "cholesky"):
        text, specs = EXACT[name]
        _, program = programs(text, *(array(spec) for spec in specs))
        found = count_operations(program)
        assert [one.reads for one in found.arrays][0] == 0
        least[name] = found.least
    assert least == {"a recurrence": 2 * 9 * 8, "cholesky": 2 * 21 * 8}


def test_what_a_loop_that_data_ends_reads_is_counted_and_said() -> None:
    text = (
        "def f(y, x):\n    for t in range(1, 9):\n        if x[t] < 0:\n            break\n"
        "        y[t] = y[t - 1] + x[t]\n"
    )
    _, program = programs(text, array("f64[9]"), array("f64[9]"))
    found = count_operations(program)
    assert [one.reads for one in found.arrays] == [8 * 8, 8 * 8]
    assert any("left early" in one.text for one in found.assumed)


def test_what_data_looks_up_may_be_from_before_and_is_said() -> None:
    text = "def f(y, p):\n    for t in range(9):\n        y[t] = y[p[t]] + 1\n"
    _, program = programs(text, array("f64[9]"), array("i64[9]"))
    found = count_operations(program)
    assert found.arrays[0].reads == 9 * 8
    assert any("what it wrote to `y` itself" in one.text for one in found.assumed)


def test_the_sums_and_quotients() -> None:
    text, specs = EXACT["softmax"]
    _, program = programs(text, *(array(spec) for spec in specs))
    found = count_operations(program)
    assert found.total == 5 * 30
    assert found.least == 2 * 30 * 4
    assert found.moved == sum(one.loads + one.stores for one in found.arrays)
    assert [one.node.label for one in found.arrays if one.is_temporary] == ["e"]
    assert list(found.operations.values()) == sorted(found.operations.values(), reverse=True)


def test_large_arrays_are_estimated_where_only_parts_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "MAX_TRACKED_ELEMENTS", 10)
    for name, parts in (("softmax", False), ("a stencil reads no corners", True)):
        text, specs = EXACT[name]
        arguments = [array(spec) for spec in specs]
        _, program = programs(text, *arguments)
        found = count_operations(program)
        assert found.is_sampled == parts
        assert found.least == sum(value.nbytes for value in arguments)


@pytest.mark.parametrize("seed", range(700, 712))
def test_counts_of_random_programs(seed: int, seen: Seen) -> None:
    program = generate(random.Random(seed))
    function = pe.cd_from_source(program.text, SCOPE)
    arguments = program.make()
    try:
        form, _ = function._forms.peek(arguments, compiled=False)
    except pe.CdError:
        return  # refused, so there is nothing to count
    given = [get(arguments) for get in form.inputs]
    lowered = lower(form.procedure)
    for one in (lowered, optimize(lowered, HOST)[0]):
        known = call_values(one.parameters, given)
        pairs = zip(given, one.parameters, strict=True)
        arrays = [np.array(value, p.node.dtype.numpy) for value, p in pairs]
        if count_operations(one, known).assumed:
            continue
        try:
            same_as_seen(one, arrays, known, seen)
        except pe.CdError:
            continue  # a check failed, and the rest was not run
