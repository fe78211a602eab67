"""`self.u += v` writes the array of an object in place; shapes of local arrays are assigned."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from tests.compare import assert_same
from tests.language.ask import plain, run


class State:
    def __init__(self, n: int, dtype: str = "f8") -> None:
        self.u = np.arange(n).astype(dtype)
        self.inner = [self.u]


class Slotted:
    __slots__ = ("u",)

    def __init__(self) -> None:
        self.u = np.ones(3)


@dataclass(frozen=True)
class Frozen:
    u: Any


def step(self: Any, v: Any) -> Any:
    self.u += v
    self.u[1:] *= 2
    self.u -= self.u[0]
    return self.u.sum()


def stops(self: Any, v: Any) -> None:
    self.u += v
    assert v[0] < 0
    self.u *= 2


def compiled(function: Callable[..., Any]) -> Any:
    return cd(function, backend="numpy")


def test_arrays_of_objects_are_updated_in_place_as_python_does() -> None:
    run = compiled(step)
    objects = [State(3), State(3), State(5), State(3, "f4"), Slotted(), State(3)]
    for given in [*objects, objects[0]]:
        expected = copy.deepcopy(given)
        held, v = given.u, np.ones(len(given.u), given.u.dtype)
        assert run(given, v) == step(expected, v)
        assert given.u is held
        np.testing.assert_array_equal(given.u, expected.u)


def test_an_update_before_an_error_stays() -> None:
    given, expected = State(3), State(3)
    with pytest.raises(AssertionError):
        compiled(stops)(given, np.ones(3))
    with pytest.raises(AssertionError):
        stops(expected, np.ones(3))
    np.testing.assert_array_equal(given.u, expected.u)


def test_what_would_be_rebound_is_refused_with_its_sign() -> None:
    listed = State(3)
    listed.u = [1.0, 2.0, 3.0]
    for given, text in (listed, "changes the list"), (Frozen(np.ones(3)), "would rebind"):
        with pytest.raises(pe.CdError, match=rf"`self.u \+= ...` {text}"):
            compiled(stops)(given, np.ones(3))


def shapes(x: Any, n: Any) -> Any:
    a, b, c = x + 1.0, x * 2.0, x[1:]
    a.shape = b.shape = n
    c.shape = (1, 5)
    a[0] += 5.0
    c[0, 1] = 7.0
    return a, b, c.sum(axis=0)


@pytest.mark.parametrize("n", [(2, 3), (3, -1), 6])
def test_the_shape_of_a_local_array_is_assigned(n: Any) -> None:
    given, expected = np.arange(6.0), np.arange(6.0)
    for one, other in zip(compiled(shapes)(given, n), shapes(expected, n), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(given, expected)


def of_parameter(x: Any) -> None:
    x.shape = (2, 3)


def of_another_name(x: Any) -> Any:
    y = x + 1.0
    z = y
    y.shape = (2, 3)
    return z


def in_a_loop(x: Any) -> Any:
    y = x + 1.0
    for _ in range(int(x[0]) + 2):
        y.shape = (2, 3)
    return y


@pytest.mark.parametrize("function", [of_parameter, of_another_name, in_a_loop])
def test_a_shape_that_others_would_see_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(pe.CdError, match=r"CD0418(.|\n)*reshape"):
        compiled(function)(np.arange(6.0))


class Rebinding:
    def __init__(self) -> None:
        self.u, self.w = np.array([1.0, 2.0, 3.0]), np.zeros(3)

    def scale(self) -> Any:
        self.u = self.u * 5
        return 1.0


REBOUND = (
    "p.u[0] += p.scale()",
    "p.u += p.scale()\n    p.u = p.u + 1",
    "v = p.u\n    v += p.scale()\n    p.w += v",
    "p.u[p.u > 1] += p.scale()",
    "p.u[int(p.scale())] += 1",
    "p.u[int(p.scale())] = 1",
)
"""Statements of a loop that write the array that an attribute was before the call."""


@pytest.mark.parametrize("line", REBOUND)
def test_the_array_from_before_a_rebinding_is_updated(line: str) -> None:
    body = f"p.u = p.u + 0\nfor k in range(2):\n    {line}\nreturn p.u, p.w"
    mine, given = Rebinding(), Rebinding()
    assert_same(run("numpy", "p", body, mine), plain("p", body, given))
    assert_same([mine.u, mine.w], [given.u, given.w])


@pytest.mark.parametrize("line", REBOUND)
def test_where_the_caller_has_that_array_it_is_refused(line: str) -> None:
    with pytest.raises(pe.CdError, match="CD0208"):
        run("numpy", "p", f"for k in range(2):\n    {line}\nreturn p.u, p.w", Rebinding())


@pytest.mark.parametrize(
    "line",
    [
        "p.w[k] = p.u[int(p.scale())]",
        "p.w += p.u.clip(p.scale(), 5)",
        "p.w += p.u[::-1].copy() * p.scale() + p.u.dot(p.u * p.scale())",
        "p.u[:] = p.u * p.scale()",
        "p.u -= p.scale()",
    ],
)
def test_an_operand_is_the_array_from_before_a_rebinding(line: str) -> None:
    body = f"for k in range(2):\n    {line}\nreturn p.u, p.w"
    mine, given = Rebinding(), Rebinding()
    assert_same(run("numpy", "p", body, mine), plain("p", body, given))
    assert_same([mine.u, mine.w], [given.u, given.w])
