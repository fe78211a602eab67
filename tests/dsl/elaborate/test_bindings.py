"""Assigning a name: views stay views, values are made real once, numbers get a variable."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.ir.assignments import Assign
from tests.compare import assert_same
from tests.language.ask import plain, run

from .scenes import found, typed

X = np.arange(12.0).reshape(3, 4)
PROGRAMS = {
    "a view sees later writes": "v = x[1:]\nx[2, 0] = 99.0\nreturn v.copy()",
    "an element is a value": "s = x[1, 1]\nx[1, 1] = 99.0\nreturn s",
    "work is a new array": "y = x + 0.0\nx[0, 0] = 99.0\nreturn y",
    "rebinding leaves the old one": "y = x * 1.0\nz = y\ny = y + 1.0\nreturn y, z",
    "in place writes both": "y = x * 1.0\nz = y\ny += 1.0\nreturn y, z",
    "numbers in place are new": "a = 1.0\nb = a\na += 1.0\nreturn a, b",
    "chained targets": "a = b = x[0] * 2.0\na[0] = 9.0\nreturn b",
    "chained numbers": "a = b = x[0, 1]\na += 1.0\nreturn a, b",
    "unpacked rows are views": "a, b, c = x\na[0] = 9.0\nreturn x",
    "swapped numbers": "a, b = x[0, 1], x[0, 2]\na, b = b, a\nreturn a, b",
    "swapped views": "a, b = x[0], x[1]\na, b = b, a\na[0] = 9.0\nreturn x",
    "a mask is kept": "m = x > 3.0\nx[0, 0] = 50.0\nx[m] = 0.0\nreturn x",
    "a selection is kept": "s = x[x > 3.0]\nx[1] = 0.0\nreturn s.sum()",
    "a selection has two names": "s = x[x > 3.0]\nt = s\nt += 1\nreturn s.sum(), x",
    "a selection rebound": "s = x[x > 3.0]\nt = s\nt = t + 1\nreturn s.sum(), t.sum()",
    "a list of values": "l = [x[0, 0], x[0, 1]]\nx[0, 1] = 7.0\nreturn l[0], l[1]",
    "a name of two kinds in turn": "y = 1.0\ny = x * y\ny = y[0]\nreturn y",
}


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_names_are_bound_as_in_python(body: str) -> None:
    mine, pythons = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine), plain("x", body, pythons))
    assert_same(mine, pythons)


def _stored(body: str) -> list[str]:
    procedure = typed("x, n", body, X, 2).procedure
    return [one.target.node.label for one in found(procedure, Assign)]


def test_views_and_indices_need_no_storage() -> None:
    assert _stored("v = x[1:]\nw = v.T\nk = n + 1\nw[0, 0] = k") == ["x"]


def test_a_number_is_stored_once_and_then_in_the_same_place() -> None:
    assert _stored("s = x[0, 0]\ns = s + 1.0\nx[0, 0] = s") == ["s", "s", "x"]
    procedure = typed("x", "s = x[0, 0]\ns = s + 1.0\nx[0, 0] = s", X).procedure
    assert len(procedure.locals) == 1
