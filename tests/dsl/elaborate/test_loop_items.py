"""Items of loops are what they were when their iteration began, whatever the body writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.dsl.elaborate.loop_items import Stored, read_by
from plusequals.dsl.source import surface as s
from plusequals.dsl.values.values import Group
from plusequals.lowering.ir.assignments import Assign
from tests.compare import assert_same
from tests.language.ask import plain, run

from .bench import NOWHERE, Bench
from .scenes import found, typed

X = np.array([1.0, 2.0, 3.0])
A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def bump(x: Any) -> Any:
    x[:] = x + 10
    return 1


class State:
    def __init__(self) -> None:
        self.u, self.w = X.copy(), X * 3

    def scale(self) -> Any:
        self.u = self.u * 5
        return 1.0

    def make(self) -> Any:
        self.w = self.u * 2
        return self.w


def loop(header: str, *lines: str, s: str = "s * 10 + v") -> str:
    """Return a loop that writes and reads its target `v` afterwards."""
    return "\n    ".join((f"s = 0.0\nfor {header}:", *lines, f"s = {s}")) + "\nreturn s"


def twice(header: str, *lines: str, s: str = "s * 10 + v") -> str:
    """Return the loop inside a loop, which carries what it rebinds."""
    inner = loop(header, *lines, s=s).split("\n")
    return "\n".join(
        (inner[0], "for t in range(2):", *("    " + x for x in inner[1:-1]), inner[-1])
    )


WRITTEN = (
    "y = np.zeros(3)\nfor i, v in enumerate(x):\n    x[i] = v * 2\n    y[i] = v\nreturn y",
    loop("v in x", "x[:] = 0"),
    loop("v in reversed(x)", "bump(x)"),
    loop("u, v in zip(x, x[1:])", "x[:] = x * 2", s="s * 10 + u + v"),
    loop("v in (x[0], x[1])", "bump(x)"),
    loop("v in [x[0], x[1] * 2]", "bump(x)"),
    loop("k, v in enumerate([x[0], x[1] * 2])", "bump(x)"),
    loop("u, v in zip((1, 2, 3), x)", "bump(x)", s="s * 100 + u * v"),
    loop("u, v in zip((x[0], x[1], x[2]), x)", "bump(x)", s="s * 100 + u * v"),
    loop("v in x[[0, 1]]", "bump(x)"),
    loop("m in (x * 2, x)", "bump(x)", s="s * 100 + m[0]"),
    "y = x[::-1]\n" + loop("v in x", "y[:] = y + 10"),
    "def read():\n    return v\n" + loop("v in x", "bump(x)", s="s * 10 + read()"),
    loop("v in x", "x[:] = x + 1", "if v > 1: break") + ", v",
    loop("v in (x[0], x[1], x[2])", "bump(x)", "if v > 1: continue") + ", v",
    loop("v in (x[0], x[1])", "for w in x:", "    x[:] = x + 1", "    s += v * w"),
    loop("v in x", "while v < 5:", "    x[:] = x + 1", "    if x[0] > 9: break"),
    "for v in x:\n    if v > 1:\n        x[:] = 7\n        return v\nreturn 0.0",
    "y = 0\nfor v in x:\n    x[:] = x + 1\n    y = y + x * v\nreturn y",
    "return [v + bump(x) + v for v in x]",
    "return [v + bump(x) + v for v in (x[0], x[1])]",
    "return [v + bump(x) + v for v in x[:len(x)]]",
)


@pytest.mark.parametrize("body", WRITTEN)
def test_a_number_stays_when_the_body_writes_its_array(body: str) -> None:
    mine, given = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine, bump=bump), plain("x", body, given, bump=bump))
    assert_same(mine, given)


@pytest.mark.parametrize(
    "body",
    [
        loop("u, v in a", "a[:] = a + 10", s="s * 10 + u * v"),
        loop("i, (u, v) in enumerate(a)", "a[:] = a + 10", s="s * 10 + u * v"),
        loop("r in a", "a[:] = a + 10", s="s * 10 + r[0]"),
        loop("r in a", "for v in r:", "    r[:] = r + 1", "    s += v", s="s * 10"),
        "return [u + bump(a) + v for u, v in a]",
    ],
)
def test_a_row_sees_the_writes_and_its_unpacked_numbers_do_not(body: str) -> None:
    mine, given = A.copy(), A.copy()
    assert_same(run("numpy", "a", body, mine, bump=bump), plain("a", body, given, bump=bump))
    assert_same(mine, given)


@pytest.mark.parametrize(
    "body",
    [
        twice("v in x", "x = x + 1"),
        twice("i, v in enumerate(x)", "x = x + 1") + ", x",
        twice("v in reversed(x[1:])", "x = x + 1"),
        twice("k, v in zip(range(3), x)", "x = x + 1"),
        twice("m in (x, x * 2)", "x = x + 1", s="s * 10 + m[0]"),
        twice("v in x", "x = x + 1", "if v > 2: break"),
        loop("v in x", "x, b = b, x"),
        loop("u, v in zip(x, b)", "x, b = b, x", s="s * 10 + u + 2 * v"),
        twice("v in x", "x, b = b, x"),
        twice("m in (x, b, x)", "x, b = b, x", s="s * 10 + m[0]"),
    ],
)
def test_a_loop_goes_on_over_the_array_that_a_name_was_bound_to(body: str) -> None:
    given = X, X + 4
    assert_same(run("numpy", "x, b", body, *given), plain("x, b", body, *given))


@pytest.mark.parametrize(
    "body",
    [
        twice("v in p.u", "p.u = p.u + 1"),
        twice("v in p.u", "p.scale()"),
        loop("v in p.u", "p.u, p.w = p.w, p.u"),
        loop("v in p.make()", "p.u, p.w = p.w, p.u"),
        loop("v in p.make()", "p.w[:] = 0"),
        twice("v, q in zip(p.u, p.u * p.scale())", "s += q"),
        "s = 0.0\nfor t in range(2):\n    s += sum([v + p.scale() + v for v in p.u])\nreturn s",
    ],
)
def test_a_loop_goes_on_over_the_array_of_an_attribute(body: str) -> None:
    mine, given = State(), State()
    assert_same(run("numpy", "p", body, mine), plain("p", body, given))
    assert_same(list(vars(mine).values()), list(vars(given).values()))


def test_a_view_of_what_was_exchanged_is_not_written() -> None:
    body = loop("u in a", "u[1] = 9", "a, b = b, a", s="s * 10 + u[0]")
    with pytest.raises(CdError, match="CD0208"):
        run("numpy", "a, b", body, A.copy(), A * 3)


def test_nothing_is_stored_where_the_body_writes_other_arrays() -> None:
    body = "for i, v in enumerate(x):\n    y[i] = v * v"
    form = typed("x, y", body, X, X.copy())
    assert len(found(form.procedure, Assign)) == 1
    swapped = (
        "s = 0.0\nfor k in range(3):\n    for v in x:\n        s += v\n    x, b = b, x\nreturn s"
    )
    procedure = typed("x, b", swapped, X, X.copy()).procedure
    assert [node.label for node in procedure.locals] == ["s"]


def test_items_are_read_from_arrays_and_rows_are_views() -> None:
    bench = Bench()
    x, a = bench.array("x", X), bench.array("a", A)
    assert x.base is not None and a.base is not None
    name = s.Name("v", NOWHERE)
    pair = s.Sequence((name, name), "tuple", NOWHERE)
    assert read_by([(name, x)]).nodes == frozenset()
    assert read_by([(name, x)]).rebound == {x.base.node}
    assert read_by([(pair, x)]).nodes == {x.base.node}
    assert read_by([(pair, a)]).nodes == frozenset()
    assert read_by([(pair, Group((x, a)))]).rebound == {x.base.node, a.base.node}


def test_what_is_not_written_is_left_as_it_is() -> None:
    bench = Bench()
    number = bench.number("n", np.float64(2.0))
    assert Stored().item(bench.ctx, number, "v", NOWHERE) is number
    kept = Stored(values=True).item(bench.ctx, number, "v", NOWHERE)
    assert kept != number and len(bench.ctx.out) == 1


def test_it_holds_on_each_backend(backend: str) -> None:
    mine, given = X.copy(), X.copy()
    assert_same(run(backend, "x", WRITTEN[0], mine), plain("x", WRITTEN[0], given))
    assert_same(mine, given)
