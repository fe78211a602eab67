"""Named tuples that functions are given, make and return are what Python makes of them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.compare import assert_same
from tests.language.ask import compiled, plain, refused, run


class Point(NamedTuple):
    x: Any
    y: Any = 2.0


class Other(NamedTuple):
    x: Any
    y: Any = 2.0


Pair = namedtuple("Pair", "a b")


class Named(Pair):
    """One with nothing of its own."""


class Sorted(Pair):
    """One that is not made as its fields say."""

    def __new__(cls, a: Any, b: Any) -> Sorted:
        return super().__new__(cls, min(a, b), max(a, b))


class Moving(NamedTuple):
    at: Any
    speed: Any = 3.0

    def moved(self, dt: Any, scale: Any = 1.0) -> Moving:
        return self._replace(at=self.at + self.speed * dt * scale)

    @property
    def energy(self) -> Any:
        return 0.5 * self.speed**2

    def both(self, dt: Any) -> Any:
        return self.moved(dt).at.sum() + self.energy

    @staticmethod
    def twice(a: Any) -> Any:
        return 2 * a


NAMES = {
    "Moving": Moving,
    "Point": Point,
    "Other": Other,
    "Pair": Pair,
    "Named": Named,
    "Sorted": Sorted,
}
X = np.arange(1.0, 4.0)
BODIES = {
    "made and read": "p = Point(x + 1, t)\nreturn p.x * p.y",
    "by name": "p = Pair(b=x, a=t)\na, b = p\nreturn a * b[::-1] + p[0]",
    "returned": "return Point(x * 2, t)",
    "a default": "return Point(x)",
    "of numbers": "return Point(1, 2.5)",
    "in another": "return Pair(Point(x, t), [t, Other(t)])",
    "a subclass": "return Named(t, x)",
    "with a change": "p = Point(t, x)\nq = p._replace(y=p.y + 1)\nreturn p, q",
    "a branch": "if t > 0:\n    p = Point(t, x)\nelse:\n    p = Point(-t, x + 1)\nreturn p",
    "a choice": "return Point(t, 1.0) if t > 0 else Point(-t, 0.0)",
    "given": "return g, g.x + x, g._replace(x=x)",
    "from a helper": "def make(v):\n    return Point(v, v * t)\nreturn make(x).y + make(t).x",
    "compared": "return x if Point(t, 1) == (t, 1) else -x",
    "unpacked": "return Pair(*Point(x, t))",
    "with methods": "p = Moving(x, t)\nreturn p.moved(0.5, scale=t), p.energy, p.both(2)",
    "with a function": "return Moving(x, t).twice(x)",
    "moved in a loop": "p = Moving(x)\nfor k in range(3):\n    p = p.moved(0.1)\nreturn p",
}


@pytest.mark.parametrize("what", BODIES)
def test_named_tuples_are_pythons(what: str, backend: str) -> None:
    for t in (1.5, -2.0):
        args = X, t, Point(X * 3, t)
        found = run(backend, "x, t, g", BODIES[what], *args, **NAMES)
        wanted = plain("x, t, g", BODIES[what], *args, **NAMES)
        assert_alike(found, wanted)


def assert_alike(found: Any, wanted: Any) -> None:
    """Assert that two results are of the same types, tuples with their items."""
    assert type(found) is type(wanted)
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_alike(one, other)
    else:
        assert_same(found, wanted)


def test_classes_with_the_same_fields_are_told_apart() -> None:
    code = compiled("p", "return p._replace(x=p.x + 1)")
    for kind in (Point, Other, Point, Other):
        for _ in range(3):
            assert_alike(code(kind(1.0)), kind(2.0))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return Point(x, 1, 2)", "1 arguments too many"),
        ("return Point(z=x)", "unknown argument `z`"),
        ("return Point(x, x=x)", "unknown argument `x`"),
        ("return Pair(x)", "without its argument `b`"),
        ("return Point(x)._replace(z=1)", "unknown argument `z` of `_replace`"),
        ("return Point(x)._replace(1)", "takes names"),
        ("return Point(x).z", "has no `z`"),
        ("return Point(x)._asdict()", "has no `_asdict`"),
        ("return Sorted(x[0], x[1])", "`Sorted` is not known"),
        ("return Point(1.0) if x[0] > 1 else Other(2.0)", ""),
        ("if x[0] > 1:\n    p = Point(x)\nelse:\n    p = Other(x)\nreturn p", ""),
    ],
)
def test_what_does_not_fit_is_refused(body: str, says: str) -> None:
    refused("x", body, X, says=(says,), **NAMES)


def test_methods_and_properties_are_looked_up_for_each_call() -> None:
    class Other(Moving):
        def both(self, dt: Any) -> Any:
            return -1.0

    code = compiled("p", "return p.both(1.0), p.energy")
    for _ in range(3):
        assert code(Moving(np.float64(1.0), 2.0)) == (5.0, 2.0)
        assert code(Other(1.0, 2.0)) == (-1.0, 2.0)


def test_a_replaced_method_is_the_new_one() -> None:
    class Local(NamedTuple):
        a: Any

        def f(self) -> Any:
            return self.a + 1

        @property
        def g(self) -> Any:
            return self.a + 2

    code = compiled("p", "return p.f(), p.g")
    assert code(Local(1)) == (2, 3)
    Local.f = lambda self: self.a + 10  # type: ignore[method-assign]
    assert code(Local(1)) == (11, 3)
    Local.g = property(lambda self: self.a + 20)  # type: ignore[method-assign,assignment]
    assert code(Local(1)) == (11, 21)
