"""Loops split where their subscripts wrap: bit-identical, with no remainder left inside of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.cpu.split_wrapped import split_wrapped_loops
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Comment, For, If, Program
from plusequals.lowering.ir.printer import print_statement
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.simplify import simplify

from ...compare import run_on
from ..scheduled import MODEST, function, interpreted, of_any_size, scheduled

SPLIT = {
    "rolled by data": "for k in range(3):\n    y[k] = np.roll(x[k], c[k])",
    "wrapped by data": "for k in range(3):\n    y[k, i] = x[k, wrap(i - c[k])]",
    "wrapped by small integers": "for k in range(3):\n    y[k, i] = x[k, wrap(i - d[k])]",
    "falling": "for k in range(3):\n    y[k, i] = x[k, wrap(c[k] - i)]",
    "where it is written": "for k in range(3):\n    y[k, wrap(i + c[k])] = x[k, i]",
    "by hand": "n = x.shape[1]\nfor k in range(3):\n    s = c[k]\n    for j in range(n):\n"
    "        y[k, j] += x[k, (j + s) % n] * j",
    "from the second on": "n = x.shape[1]\nfor k in range(3):\n    s = c[k]\n"
    "    for i in range(1, n - 1):\n        y[k, i] = x[k, (i + s) % n]",
    "falling from the second on": "n = x.shape[1]\nfor k in range(3):\n    s = c[k]\n"
    "    for i in range(1, n - 1):\n        y[k, i] = x[k, (s - i) % n]",
    "two at once": "for k in range(3):\n"
    "    y[k, i] = x[k, wrap(i - c[k])] + x[k, wrap(i + c[2 - k])]",
    "by a loop around it": "for k in range(3):\n    y[k, i] = x[k, wrap(i + 7 * k)]",
    "with temporaries": "for k in range(3):\n    s = c[k]\n    n = x.shape[1]\n"
    "    for i in range(n):\n        t = x[k, (i + s) % n]\n        y[k, i] = t * t - t",
    "under a test": "for k in range(3):\n    if x[k, wrap(i - c[k])] > 0:\n        y[k, i] = 1.0",
}
STAY = {
    "a sum, for lanes": "y[0, 0] = sum[i](x[0, i] * x[1, wrap(i + c[0])])",
    "left early": "n = x.shape[1]\ns = c[0]\nfor i in range(n):\n    if x[0, (i + s) % n] > 9:\n"
    "        break\n    y[0, i] = x[0, (i + s) % n]",
    "longer than its period": "s = c[0]\nfor i in range(x.shape[1]):\n"
    "    y[0, i] = x[0, (i + s) % 20]",
    "changed in the loop": "n = x.shape[1]\nfor i in range(n):\n"
    "    y[0, i] = x[0, (i + c[i % 3]) % n]",
    "three shifts": "y[0, i] = x[0, wrap(i + c[0])] + x[0, wrap(i + c[1])] + x[0, wrap(i + c[2])]",
}


def made(name: str) -> Any:
    body = ({**SPLIT, **STAY})[name].replace("\n", "\n    ")
    return function(f"def f(y, x, c, d):\n    {body}\n")


def arguments(size: int, *shifts: int) -> tuple[Any, ...]:
    x = np.random.default_rng(size).standard_normal((3, size))
    c = np.array(shifts)
    return np.zeros((3, size)), x, c, c.astype("i4")


def remainders(program: Program) -> list[For]:
    """Return the innermost loops that compute a remainder."""
    inside = [s for kernel in program.kernels for s in statements(kernel.body)]
    loops = [s for s in inside if isinstance(s, For)]
    return [
        loop for loop in loops
        if not any(isinstance(s, For) for s in statements(loop.body))
        and any("%" in print_statement(s) for s in loop.body if not isinstance(s, Comment))
    ]  # fmt: skip


def split(procedure: Any, *given: Any) -> Program:
    """Return the loops before the pass and behind it, which have the same meaning."""
    before = simplify(lower(procedure))
    after = split_wrapped_loops(before, MODEST)
    for want, got in zip(interpreted(before, *given), interpreted(after, *given), strict=True):
        np.testing.assert_array_equal(got, want)
    return after


@pytest.mark.parametrize("name", SPLIT)
def test_bits_stay_for_all_shifts(name: str) -> None:
    for size in (thresholds.MIN_WRAPPED_ITERATIONS + 2, 37):
        for shifts in ((0, 1, -1), (size, -size, size - 1), (1000, -777, 3)):
            given = arguments(size, *shifts)
            after = split(made(name).procedure(*given), *given)
            tested = any(
                isinstance(s, If) and s.orelse for k in after.kernels for s in statements(k.body)
            )
            assert len(remainders(after)) <= tested, "what is left is for what may overflow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plusequals.lowering.thresholds.MIN_WRAPPED_ITERATIONS", 1)
        for size in (1, 2, 3):
            given = arguments(size, 1, -1, 5)
            split(made(name).procedure(*given), *given)


@pytest.mark.parametrize("name", STAY)
def test_loops_that_stay(name: str) -> None:
    given = arguments(37, 1, -1, 5)
    program = simplify(lower(made(name).procedure(*given)))
    assert split_wrapped_loops(program, MODEST) is program


@pytest.mark.parametrize("name", ["rolled by data", "by hand", "falling", "two at once"])
def test_run_time_sizes(name: str) -> None:
    procedure = of_any_size(made(name), *arguments(20, 1, -1, 5))
    for size in (1, 3, 20, 41):
        given = arguments(size, 1, -1, 5)
        program = scheduled(procedure)
        plain = interpreted(lower(procedure), *given)
        for got, want in zip(interpreted(program, *given), plain, strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_overflows_is_done_as_written() -> None:
    least = np.iinfo("i8").min
    y, x, c, d = arguments(20, least, least + 3, 2**62 + 5)
    d = np.array([-(2**31), 2**31 - 1, 5], "i4")
    for name in ("wrapped by data", "wrapped by small integers", "falling"):
        with np.errstate(over="ignore"):
            split(made(name).procedure(y, x, c, d), y, x, c, d)


WRAPPED = {
    "i + k": lambda i, k, c: i + k,
    "k - i": lambda i, k, c: k - i,
    "i + c[0] + c[1]": lambda i, k, c: i + c[0] + c[1],
    "c[0] - i - c[2]": lambda i, k, c: c[0] - i - c[2],
    "i + k - c[2]": lambda i, k, c: i + k - c[2],
}


@pytest.mark.parametrize("at", WRAPPED)
def test_sums_with_large_numbers_wrap(at: str) -> None:
    """Loops are split where `i + k` reaches the size only if it does not overflow before."""
    f = function(f"def f(y, x, k, c):\n    y[i] = x[wrap({at})]\n")
    x, c = np.arange(90.0), np.array([2**62, 2**62 - 5, -(2**62) - 3])
    for k in (-(2**63), -(2**63) + 3, 2**63 - 1, 2**63 - 5, 2**62 - 4, -5, 7):
        y = np.zeros(90)
        run_on("cc", f, y, x, k, c)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y, x[WRAPPED[at](np.arange(90), np.int64(k), c) % 90])


def test_an_empty_array_computes_no_remainder() -> None:
    procedure = of_any_size(made("by hand"), *arguments(20, 1, -1, 5))
    program = split_wrapped_loops(simplify(lower(procedure)), MODEST)
    y, x, c, d = arguments(0, 1, -1, 5)
    assert not run_program(program, [y, x, c, d], lambda text: None)


def test_code_gives_the_bits_of_the_interpreter() -> None:
    text = "def f(y, x, c, d):\n" + "".join(
        f"    {line}\n"
        for name in ("rolled by data", "two at once", "by hand")
        for line in SPLIT[name].replace("y[k, i] =", "y[k, i] +=").split("\n")
    )
    for size in (5, 97):
        results = []
        for backend in ("cc", "numpy"):
            given = arguments(size, 3, -size - 1, 10**6)
            run_on(backend, function(text), *given)
            results.append(given[0])
        np.testing.assert_array_equal(*results)
