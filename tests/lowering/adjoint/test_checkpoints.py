"""Loops that keep few states: the same gradients as with all of them, in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.checkpoints import Memory, Segments
from plusequals.lowering.adjoint.segments import sweeps

from .programs import PARAMETERS, WHILES, function_of, values_of

LOOPS = {
    "heat in place": """
        for t in range(STEPS):
            x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]) * x[1:-1]
        return np.sum(x * y)""",
    "leapfrog with arrays that change places": """
        old, now, new = x.copy(), y.copy(), np.zeros(len(x))
        for t in range(STEPS):
            new[1:-1] = 2 * now[1:-1] - old[1:-1] + lim * now[1:-1] * (now[2:] + now[:-2])
            old, now, new = now, new, old
        return np.sum(now * old * y)""",
    "a network": """
        h = x * 0.1
        loss = 0.0
        for t in range(STEPS):
            h = np.tanh(a[:, 1:] @ h + y * np.sin(0.1 * t))
            loss += np.sum((h - y) ** 2)
        return loss""",
    "a recurrence": """
        s = x[0]
        for t in range(STEPS):
            s = s + 0.1 * np.sin(s * lim) * y[1]
        return s""",
    "space in time": """
        for t in range(STEPS):
            for q in range(1, len(x)):
                x[q] = 0.5 * x[q] + 0.4 * x[q - 1] * y[q] + 0.01 * t
        return np.sum(x * x)""",
    "a triangle": """
        s = lim
        for t in range(STEPS):
            for q in range(t):
                s = s * 0.9 + x[q % 3] * s * 0.1
            for q in range(t, -1, -4):
                s = s * 0.99 + 0.01 * y[q % 3] * s
        return s""",
    "a test": """
        for t in range(STEPS):
            if x[t % 3] > 0.4:
                x = x * y + 0.1
            else:
                x = x + 0.3 * y
        return np.sum(x)""",
    "positions": """
        for t in range(STEPS):
            k = np.argmax(x)
            x[k] *= y[k] * 0.9
            y[i] = 0.9 * y[i] + 0.1 * x[k]
        return np.sum(x * y)""",
    "a step": """
        for t in range(2, 2 + 3 * STEPS, 3):
            x = np.sin(x * y + 0.1 * t)
        return np.sum(x)""",
    "backwards": """
        for t in range(2 * STEPS, 0, -2):
            x = np.sin(x * y + 0.1 * t)
        return np.sum(x)""",
    "loops before and after": """
        for t in range(STEPS):
            y = y * (1.0 + 0.1 * x)
        for t in range(STEPS):
            x = np.cos(x) * y
        for t in range(STEPS):
            y = y * x + 0.1
        return np.sum(x * y)""",
    "what is overwritten afterwards": """
        s = 1.0
        for t in range(STEPS):
            s = s * 0.9 + x[t % 3] * y[0] * s
        x *= s
        y[...] = 2.0
        return np.sum(x * y) * s""",
    "a break": """
        s = x[0] + 0.1
        for t in range(STEPS):
            s = s * (1.0 + 0.2 * y[t % 3])
            if s > 1.5:
                break
        return s * s""",
    "under a test": """
        s = x[0]
        if lim > -1.0:
            s = s * 2.0
            for t in range(STEPS):
                s = np.sin(s) + y[0]
        else:
            s = y[0]
        return s * s""",
    "inlined": """
        s = x[0]
        with comment("loop"):
            n = len(x) + 2
            for t in range(STEPS + n):
                s = np.sin(s) * x[t % n % 3] + y[0]
        return s * s""",
}
HOW: tuple[dict[str, Any], ...] = ({"memory": 1}, {"memory": 4}, {"keep": "recompute"})


def copies(values: tuple[Any, ...]) -> list[Any]:
    return [np.copy(value) if np.ndim(value) else value for value in values]


def assert_same(body: str, how: dict[str, Any], backend: str | None = None) -> Any:
    """Compare values, gradients and written arguments, natively and of the text."""
    f = function_of(body, backend)
    values = values_of(3)
    first, second, third = copies(values), copies(values), copies(values)
    value, expected = pe.value_and_gradient(f, wrt=PARAMETERS)(*first)
    g = pe.value_and_gradient(f, wrt=PARAMETERS, **how)
    again, found = g(*second)
    other, of_text = pe.cd_from_source(g.text(*third), g.names, backend=backend)(*third)
    assert value == again == other
    for one, two, three in zip(expected, found, of_text, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(three, one, rtol=1e-12, atol=1e-12)
    for one, two, three in zip(first, second, third, strict=True):
        np.testing.assert_array_equal(two, one)
        np.testing.assert_array_equal(three, one)
    return g


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_are_those_with_all_states(name: str) -> None:
    for steps, how in ((0, HOW[0]), (1, HOW[0]), (6, HOW[0]), (20, HOW[2])):
        g = assert_same(LOOPS[name].replace("STEPS", str(steps)), how, backend="numpy")
        assert steps < 20 or "segment" in g.source


@pytest.mark.parametrize("name", list(LOOPS)[::3])
def test_compiled_gradients_are_those_with_all_states(name: str) -> None:
    assert_same(LOOPS[name].replace("STEPS", "11"), {"memory": 5})


@pytest.mark.parametrize("how", HOW)
def test_numbers_of_iterations_that_are_known_at_run_time(how: dict[str, Any]) -> None:
    body = LOOPS["what is overwritten afterwards"].replace("STEPS", "k")
    text = f"def f(x, y, k):\n{body}\n".replace("\n        ", "\n    ")
    f = pe.cd_from_source(text, {"np": np})
    whole = pe.gradient(f, wrt=("x", "y"))
    g = pe.gradient(f, wrt=("x", "y"), **how)
    _, x, y, _ = values_of(3)
    for steps in (7, 0, 1, 2, 31, 100):
        expected = whole(x.copy(), y.copy(), steps)
        for one, two in zip(expected, g(x.copy(), y.copy(), steps), strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-12)
    assert "length = " in g.source


@pytest.mark.parametrize("how", HOW)
def test_numbers_of_iterations_that_are_known_on_one_side_of_a_test(how: dict[str, Any]) -> None:
    f = pe.cd_from_source(
        """def f(x, n, s):
        if s > 0.5:
            for t in range(n[0] + 1):  # no state: each iteration sets all elements first
                x[:] = s
                x[t] = x[t] * x[1] + x[0]
        return np.sum(x * x)
        """,
        {"np": np},
        backend="numpy",
    )
    x, n = np.array([0.5, 0.2, 0.9]), np.array([2])
    for s in (0.7, 0.3):
        d_x, d_s = pe.gradient(f, wrt=("x", "s"), **how)(x.copy(), n, s)
        of_elements = 2 * (s * s + s) * (2 * s + 1) + 4 * s
        np.testing.assert_allclose(d_x, 2 * x * (s < 0.5))
        np.testing.assert_allclose(d_s, of_elements * (s > 0.5))


@pytest.mark.parametrize("name", ["a while of an array", "a while in a for"])
def test_loops_whose_iterations_are_counted(name: str) -> None:
    assert_same(WHILES[name], {"memory": 1}, backend="numpy")


def test_how_loops_are_cut() -> None:
    assert Memory(64).segments(64) is None
    assert Memory(64).segments(65) == Segments(8, 9)
    assert Memory().segments(10_000) == Segments(100, 100)
    assert Memory().segments(3) is None
    assert Memory(1).segments(10) == Segments(1, 1)
    for states in (2, 5, 64, 5000):
        for iterations in (6, 100, 10_000, 10**7):
            cut = Memory(states).segments(iterations)
            assert cut is None or cut.checkpoints + cut.length <= states
            assert (cut is None) == (iterations <= states)
    cut = Memory(64).segments(10_000)
    assert cut and sweeps(-(-10_000 // cut.length), cut.checkpoints) * cut.length < 19_000


@pytest.mark.parametrize("memory", [2, 3, 5])
def test_every_number_of_iterations_is_as_with_all_states(memory: int) -> None:
    text = "def f(x, n):\n    s = x[0]\n    for t in range(n):\n"
    text += "        s = np.sin(s) * x[t % 2] + 0.5\n    return s\n"
    f = pe.cd_from_source(text, {"np": np})
    x = np.array([0.5, 1.25])
    g, whole = pe.gradient(f, wrt="x", memory=memory), pe.gradient(f, wrt="x")
    for n in range(40):
        np.testing.assert_allclose(g(x, n), whole(x, n), rtol=1e-12)
    for n in (memory + 1, 17, 40):
        of_text = function_with(text, n)
        found = pe.gradient(of_text, wrt="x", memory=memory)
        np.testing.assert_allclose(found(x), whole(x, n), rtol=1e-12)
        held = sum(array.shape[0] for array in found.kept(x).arrays if array.is_checkpoint)
        assert held + found.kept(x).arrays[0].shape[0] <= memory


def function_with(text: str, n: int) -> Any:
    text = text.replace("f(x, n)", "f(x)").replace("range(n)", f"range({n})")
    return pe.cd_from_source(text, {"np": np}, backend="numpy")


def test_loops_that_keep_no_values_stay_as_they_are() -> None:
    body = "for t in range(100): x[1:] += 0.1 * x[:-1]\n        return np.sum(x * y)"
    g = assert_same(f"\n        {body}", {"memory": 2}, backend="numpy")
    assert "segment" not in g.source


def test_loops_whose_state_is_larger_than_what_they_keep_keep_all() -> None:
    g = assert_same(
        """
        z = np.zeros(200)
        z[0] = x[0]
        for t in range(199):
            z[t + 1] = z[t] * 0.9 + 0.1 * np.sin(z[t]) * y[1]
        return np.sum(z * z)""",
        {"memory": 8},
        backend="numpy",
    )
    assert "segment" not in g.source
    (reason,) = [reason for _, reason in g.kept(*values_of(3)).whole]
    assert reason == "its state is larger than what its iterations keep"


def test_arrays_whose_lengths_are_known_inside_of_a_loop() -> None:
    f = function_of("""
        s = x[0]
        for t in range(20):
            n = int(a[t % 3, 0] * 3.0) + 1
            z = np.zeros(n)
            for q in range(n):
                z[q] = x[q] * s
            s = np.sum(z * z) + y[0] * s * 0.1
        return s""")
    values = values_of(3)
    expected = pe.gradient(f, wrt=PARAMETERS)(*copies(values))
    g = pe.gradient(f, wrt=PARAMETERS, memory=2)
    for one, two in zip(expected, g(*copies(values)), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12, atol=1e-12)
    assert "segment" in g.source
