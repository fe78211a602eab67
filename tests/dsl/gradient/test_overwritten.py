"""Functions that overwrite what their derivatives read: arrays, elements, variables of loops.

Each is what a tape of values, or one adjoint for all iterations, gets wrong without a word. Held
against differences in extended precision, or refused.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.lowering.adjoint.moved import Moved
from tests.lowering.adjoint.pending import flat
from tests.programs.open_sizes import open_sizes

RNG = np.random.default_rng(5)
X, Y = RNG.uniform(0.3, 1.2, 5), RNG.uniform(0.3, 1.2, 5)
A = RNG.uniform(0.3, 1.2, (5, 5))
N = np.array([3, 0, 2, 4, 1])
"""Numbers of iterations, positions, and what stands before what."""

PROGRAMS = {
    # values from before a loop, after it
    "a number from before a loop of n iterations, read after it": """
        area = np.sin(x[0]) * y[1]
        s = 0.0
        for t in range(n[0]):
            s = s + x[t] * y[t]
        return area * s + area""",
    "an array from before a loop of n iterations, read in it and after it": """
        b = x * y
        f = np.zeros(5)
        for t in range(n[3]):
            f += b * np.cos(x[t])
        return np.sum(f * b)""",
    "what is carried through a loop of no iterations": """
        s = x[0] * x[1]
        for t in range(n[1]):
            s = s * y[t]
        return s * s""",
    # loops inside of loops of data
    "loops between limits in arrays, that carry a state": """
        angle = x.copy()
        total = 0.0
        for b in range(5):
            p = x[b]
            q = y[b]
            for j in range(n[b]):
                p = p * np.cos(angle[j]) - q * np.sin(angle[j])
                q = q + p * angle[j]
            angle[b] = p
            total = total + q * p
        return total""",
    "a chain in which each element reads its parent's": """
        place = np.zeros(5)
        for b in range(1, 5):
            parent = n[b] % b
            place[b] = place[parent] * y[b] + x[b]
            for j in range(n[b]):
                place[b] = place[b] * np.cos(y[j]) + x[j] * place[parent]
        return np.sum(place * place)""",
    "three loops, of which each carries the same number": """
        s = 0.1
        for p in range(n[2]):
            for q in range(n[0] - p):
                for r in range(q, n[3]):
                    s = s * y[r] + x[p] * x[q]
                s = np.tanh(s)
            s = s * s + y[p]
        return s""",
    # arrays that are overwritten after they were read
    "an argument that is overwritten after it was read": """
        z = x * x
        x[:] = 0.0
        return np.sum(z * y)""",
    "an argument that is overwritten again and again": """
        s = 0.0
        for t in range(4):
            s = s + np.sum(x * x * y)
            x *= np.cos(y * s)
            y[t] = x[t + 1] * s
        return s + np.sum(x)""",
    "a copy is made before, a view sees what is written": """
        before = x.copy()
        part = x[1:4]
        x[2] = y[0] * y[1]
        return np.sum(before * before) + np.sum(part * part * y[1:4])""",
    "another name for an array": """
        z = x
        z[1] = x[0] * y[0]
        return np.sum(x * z)""",
    "another name for a number, before a test": """
        a0 = x[0]
        b = a0
        if b > 0.0:
            b = a0 * a0
        else:
            b = a0 * a0 * a0
        return b * a0""",
    # elements that are added to
    "an element that is added to, read, and added to": """
        v = np.zeros(2)
        v[0] += x[0] * y[0]
        v[1] += v[0] * x[1]
        v[0] += v[1] * v[0]
        v[1] = v[1] + v[0]
        v[1] = v[1] * v[1]
        return v[0] * v[1]""",
    "a matrix that Gauss points add to": """
        m = np.zeros((2, 2))
        for g in range(4):
            m[0, 0] += x[g] * y[g]
            m[0, 1] += x[g] * m[0, 0]
            m[1, 0] += m[0, 1] * y[g]
            m[1, 1] += m[1, 0] * m[0, 0] * 0.1
        return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]""",
    "updates of an array by itself": """
        x += x * y
        x *= x
        x[1:] += x[:-1]
        x -= 0.5 * x[::-1]
        x /= 1.0 + x * x
        return np.sum(x * x)""",
    "additions to where data says, read later": """
        sums = np.zeros(5)
        np.add.at(sums, n, x * y)
        np.add.at(sums, n[::-1] // 2, sums * x)
        return np.sum(sums * sums)""",
    "elements that change places": """
        for t in range(4):
            x[t], x[t + 1] = x[t + 1] * y[t], x[t]
        return np.sum(x * y)""",
    "a recurrence in place, backward": """
        for t in range(3, -1, -1):
            x[t] = x[t] * x[t + 1] + y[t] * x[t]
        return x[0] * x[0]""",
    # tests and jumps
    "the largest so far, with continue": """
        best = -10.0
        for p in range(5):
            for q in range(5):
                c = y[q] - 0.6
                if c < 0.0:
                    continue
                v = x[p] * c * (p + q + 1.0)
                if v > best:
                    best = v
        return best * best""",
    "the position of the largest so far": """
        best = -10.0
        at = 0
        for p in range(n[3] + 1):
            if x[p] * y[p] > best:
                best = x[p] * y[p]
                at = p
        return best * y[at] * x[n[at]]""",
    "a choice of which both sides read one array": """
        s = 0.0
        for t in range(5):
            s = s + (x[t] / y[t] if n[t] > 1 else x[t])
        return s * s""",
    "a choice whose other side divides by zero": """
        zero = y * 0.0
        z = np.where(n > 9, x / zero, x * y)
        return np.sum(z * z)""",
    "numbers that change places in a loop of n iterations": """
        p = x[0]
        q = y[0]
        for t in range(n[0]):
            p, q = q * x[t], p + y[t]
        return p * q""",
    "a while whose number of iterations data decides": """
        s = x[0]
        k = 0
        while s < 20.0:
            s = s * (1.2 + y[k % 5])
            x[k % 5] = s * 0.1
            k = k + 1
        return s * x[0] * x[1]""",
}
"""Bodies of functions of vectors `x` and `y`, a matrix `a`, and integers `n`."""

NESTED = """
def mean_of_inverse(x, n):
    total = 1.0
    for t in range(n):
        total += x[t]
    return 1.0 / total
"""


def function_of(body: str, names: dict[str, Any]) -> Any:
    """Return the function that has a body."""
    lines = indent(dedent(body.strip("\n")), "    ")
    return pe.cd_from_source(f"def f(x, y, a, n):\n{lines}\n", names)


def given() -> tuple[np.ndarray, ...]:
    return X.copy(), Y.copy(), A.copy(), N.copy()


def is_right(f: Any, backend: str, memory: int | None = None) -> None:
    """Hold the gradient of a function against differences."""
    after = given()
    value = f.on("numpy")(*after)
    arguments = given()
    derived = pe.value_and_gradient(f.on(backend), wrt=("x", "y", "a"), memory=memory)
    again, gradients = derived(*arguments)
    assert again == pytest.approx(value, rel=1e-14)
    for one, other in zip(arguments, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    match = f.on("numpy").matched(*given())[0]
    typed = match.specialization.typed
    paths = list(map(str, typed.passed))
    used = [n for n, name in enumerate(("x", "y", "a")) if name in paths]
    moved = Moved(typed.procedure, match.held, [paths.index("xya"[n]) for n in used])
    moved.check(value, [flat(gradients)[n] for n in used], "", 7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_overwritten_is_read_as_it_was(name: str, backend: str) -> None:
    is_right(function_of(PROGRAMS[name] + " + np.sum(a * a)", {"np": np}), backend)


@pytest.mark.parametrize("memory", [1, 2])
@pytest.mark.parametrize("name", [name for name, body in PROGRAMS.items() if "range(n" in body])
def test_what_is_computed_again_is_what_it_was(name: str, memory: int) -> None:
    is_right(function_of(PROGRAMS[name] + " + np.sum(a * a)", {"np": np}), "numpy", memory)


def test_a_function_that_adds_up_and_divides(backend: str) -> None:
    inner = pe.cd_from_source(NESTED, {"np": np})
    body = """
        s = 0.0
        for t in range(3):
            s = s + mean_of_inverse(x * y, n[t]) * x[t]
            x[t] = s
        return s * s + np.sum(a * a)"""
    is_right(function_of(body, {"np": np, "mean_of_inverse": inner}), backend)


def test_what_changes_between_two_calls_is_read_anew(backend: str) -> None:
    f = pe.cd_from_source("def f(x, y):\n    return np.sum(x * x * y)\n", {"np": np})
    g, x, y = pe.gradient(f.on(backend), wrt="x"), X.copy(), Y.copy()
    first = g(x, y)
    x[:] = 2.0
    np.testing.assert_array_equal(first, 2.0 * X * Y)
    np.testing.assert_array_equal(g(x, y), 4.0 * Y)


def test_cotangents_given_in_an_array_that_is_overwritten(backend: str) -> None:
    text = "def f(x, y):\n    x *= y\n    z = x * x\n    x[:] = 0.0\n    return z\n"
    f = pe.cd_from_source(text, {"np": np})
    pull = pe.vjp(f.on(backend), wrt=("x", "y"), outputs="z")
    x, y, d_z = X.copy(), Y.copy(), A[0].copy()
    d_x, d_y = pull(x, y, d_z)
    np.testing.assert_allclose(d_x, 2.0 * X * Y * Y * A[0], rtol=1e-14)
    np.testing.assert_allclose(d_y, 2.0 * X * X * Y * A[0], rtol=1e-14)
    assert not x.any()


@pytest.mark.parametrize(
    "text",
    ["return np.sum(x * y * y)", "x *= 2.0\n    return np.sum(x * y * y)",
     "z = x * y\n    y[:-1] = z[1:]\n    return np.sum(x * y)"],
)  # fmt: skip
def test_one_array_for_two_arguments_is_right_or_refused(text: str, backend: str) -> None:
    f = pe.cd_from_source(f"def f(x, y):\n    {text}\n", {"np": np})
    try:
        d_x, d_y = pe.gradient(f.on(backend), wrt=("x", "y"))(both := X.copy(), both)
    except CdError as why:
        assert why.code in ("CD0480", "CD0708")
        return
    step = 1e-6
    for at in range(5):
        ends = []
        for sign in (1, -1):
            moved = X.copy()
            moved[at] += sign * step
            ends.append(f.on("numpy")(moved, moved))
        assert (d_x + d_y)[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_tensors_that_a_function_changes_keep_the_gradient_of_what_they_were(backend: str) -> None:
    text = "def f(w, x):\n    s = np.sum(w * w * x)\n    w *= 0.5\n    return s\n"
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    w = pe.tensor("w", (5,), dtype="float64", init=X)
    for times in range(3):
        value = pe.backward(f, wrt="w")(w, Y.copy())
        was = X * 0.5**times
        assert value == pytest.approx(np.sum(was * was * Y), rel=1e-14)
        np.testing.assert_allclose(w.grad[...], 2.0 * was * Y, rtol=1e-14)


def test_what_is_not_chosen_is_not_kept_either() -> None:
    text = """
def f(x):
    s = 0.4
    for t in range(3):
        x *= 1.1
        s = np.tanh((np.sin(x[2]) if s < -1.0 else 0.7) + 0.5 * s)
    return s + np.sum(x * x)
"""
    with open_sizes(True):
        f = pe.cd_from_source(text, {"np": np}, backend="numpy")
        g = pe.gradient(f, wrt="x")
        for size in (3, 2):  # the interpreter raises where `x[2]` is read of two
            np.testing.assert_allclose(g(X[:size].copy()), 2 * 1.1**6 * X[:size], rtol=1e-14)
