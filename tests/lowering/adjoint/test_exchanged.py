"""Arguments that change places with others: each has the cotangent of what it is at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError

X, Y = np.array([0.5, -0.75, 0.25]), np.array([1.25, 0.5, -1.0])

FUNCTIONS = {
    "swapped": """
def f(x, y, n):
    for t in range(n):
        x, y = y, x
        x += 0.5 * y * x
    return x, y
""",
    "rotated with a local": """
def f(x, y, n):
    held = np.zeros(3)
    for t in range(n):
        held[...] = x * y
        x, y, held = held, x, y
        y *= 0.5
    return x
""",
    "in a while loop": """
def f(x, y, n):
    k = 0
    while k < n and y[0] < 3.0:
        x, y = y, x
        x *= 1 + 0.1 * y * y
        k += 1
""",
}


def copies(values: Sequence[Any]) -> list[Any]:
    return [np.copy(one) if isinstance(one, np.ndarray) else one for one in values]


def outputs_of(text: str) -> tuple[str, ...]:
    """Return what is returned and written."""
    if "return" not in text:
        return "x", "y"
    named = ("x", "y") if "return x, y" in text else ("x",)
    return *named, "x_argument", "y_argument" if len(named) == 2 else "y"


def python_outputs(text: str, x: Any, y: Any, n: int) -> list[Any]:
    """Return the outputs, and what they are after Python ran the text."""
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    x, y = np.copy(x), np.copy(y)
    returned = scope["f"](x, y, n)
    some = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    return [np.copy(one) for one in (*some, x, y)]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_cotangents_and_tangents_are_those_of_python(name: str, n: int) -> None:
    text, rng = FUNCTIONS[name], np.random.default_rng(5)
    f, outputs = pe.cd_from_source(text, {"np": np}, backend="numpy"), outputs_of(text)
    given = [rng.standard_normal(3) for _ in outputs]
    steps = [rng.standard_normal(3) for _ in "xy"]
    h = 1e-6
    sides = [python_outputs(text, X + s * steps[0], Y + s * steps[1], n) for s in (h, -h)]
    changes = [(one - other) / (2 * h) for one, other in zip(*sides, strict=True)]
    expected = sum(np.sum(d * change) for d, change in zip(given, changes, strict=True))
    for memory in (None, 1):
        g = pe.vjp(f, wrt=("x", "y"), outputs=outputs, memory=memory)
        for made in (g, pe.cd_from_source(g.text(X, Y, n, *given), g.names, backend="numpy")):
            arguments = copies((X, Y, n, *given))
            found = made(*arguments)
            product = sum(np.sum(d * step) for d, step in zip(found, steps, strict=True))
            assert product == pytest.approx(expected, rel=1e-7)
            for one, other in zip(arguments, python_outputs(text, X, Y, n)[-2:], strict=False):
                np.testing.assert_allclose(one, other, rtol=1e-14)
    tangents = pe.jvp(f, wrt=("x", "y"), outputs=outputs)(*copies((X, Y, n, *steps)))
    for one, other in zip(tangents, changes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_arguments_in_their_places_are_not_copied() -> None:
    text = "def f(x, n):\n    y, z = x * 2.0, x * 3.0\n    for t in range(n):\n"
    text += "        y, z = z, y\n        y *= z\n    x[...] = y\n"
    g = pe.vjp(pe.cd_from_source(text, backend="numpy"), wrt="x")
    assert "x_argument" not in g.text(X, 3, X)


def test_an_output_without_a_cotangent_is_named() -> None:
    f = pe.cd_from_source(FUNCTIONS["swapped"], backend="numpy")
    says = 'CD0480.*`x_argument` has no cotangent(.|\n)*"x", "y", "x_argument", "y_argument"'
    with pytest.raises(CdTypeError, match=says):
        pe.vjp(f, wrt=("x", "y"))(X.copy(), Y.copy(), 3, X, Y)
    text = "def f(x, z):\n    y = z\n    y *= x\n"
    z = np.ones(3, complex)
    with pytest.raises(CdTypeError, match="`z` has no cotangent"):
        pe.vjp(pe.cd_from_source(text, backend="numpy"), wrt="x")(X, z)


def test_what_is_returned_is_not_the_argument_of_its_name() -> None:
    text = "def f(x, y):\n    x, y = y, x\n    x *= x\n    return y\n"
    f = pe.cd_from_source(text, backend="numpy")
    d = np.array([1.0, 2.0, 3.0])
    for output, expected in {"y": (d, 0 * d), "y_argument": (0 * d, 2 * Y * d)}.items():
        found = pe.vjp(f, wrt=("x", "y"), outputs=output)(X.copy(), Y.copy(), d)
        for one, other in zip(found, expected, strict=True):
            assert one.tolist() == other.tolist()
