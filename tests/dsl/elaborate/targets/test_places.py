"""`target op= value` where the value changes what the target was found from, or what it held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same

WRITERS = {
    "doubles": "    def g():\n        x[:] = x * 2\n        z[:] = z * 2\n        return ",
    "turns": "    def g():\n        k[0], k[1] = k[1], k[0]\n        b[0], b[1] = b[1], b[0]\n"
    "        return ",
}
GATHERS = [
    ("x[np.arange(len(x))] {}= g()", "np.ones(len(x))"),
    ("x[np.arange(1)] {}= g()", "2.0"),
    ("x[k[:1]] {}= g()", "2.0"),
    ("x[(k * 1)[:1]] {}= g()", "np.ones(1)"),
    ("a[np.arange(len(k)), k] {}= g()", "np.arange(len(k)) + 1.0"),
    ("a[k, np.arange(len(k))] {}= g() * x[k]", "2.0"),
    ("a[k[0], 1:] {}= g()", "2.0"),
    ("a[k[0]:, k[1]] {}= g()", "2.0"),
    ("a[1:, k[:1]] {}= g()", "2.0"),
    ("z.imag[1] {}= g()", "2.0"),
    ("z.real[1:] {}= z.imag[:-1] + g()", "2.0"),
    ("z.real[k[0]] {}= g()", "2.0"),
]


def arguments(n: int) -> list[Any]:
    x, k = np.arange(1.0, n + 1), np.roll(np.arange(n), 1)
    return [x, np.arange(n * n, dtype=float).reshape(n, n), k, x > 1, x * (1 + 2j)]


def functions(update: str, writer: str, value: str, backend: str) -> tuple[Any, Any]:
    text = f"def f(x, a, k, b, z):\n{WRITERS[writer]}{value}\n    {update}\n"
    world: dict[str, Any] = {"np": np}
    exec(text, world)
    return pe.cd_from_source(text, {"np": np}, backend=backend), world["f"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("op", ["+", "*", "-"])
@pytest.mark.parametrize(("update", "value"), GATHERS)
def test_old_elements_are_read_before_and_places_found_after(
    update: str, value: str, op: str, writer: str
) -> None:
    mine, plain = functions(update.format(op), writer, value, "numpy")
    for n in (3, 4, 2, 5, 6):
        args, given = arguments(n), arguments(n)
        mine(*args)
        plain(*given)
        assert_same(args, given)


def test_new_places_are_in_range() -> None:
    mine, plain = functions("x[k[:1]] += g()", "turns", "2.0", "numpy")
    for function in (mine, plain):
        args = arguments(3)
        args[2][1] = 7
        with pytest.raises(IndexError):
            function(*args)
        np.testing.assert_array_equal(args[0], [1, 2, 3])


@pytest.mark.parametrize("update", ["x[b] += g()", "x[b] *= x[b] + g()", "a[b] -= g()"])
def test_a_mask_that_the_value_changes_is_refused(update: str, backend: str) -> None:
    mine, _ = functions(update, "turns", "2.0", backend)
    args, given = arguments(3), arguments(3)
    with pytest.raises(pe.CdError, match="masks differ"):
        mine(*args)
    assert_same(args[:2], given[:2])


@pytest.mark.parametrize("update", ["x[b] += g()", "a[b] -= g()", "a[:, b] *= g()"])
def test_a_mask_that_stays_is_where_python_writes(update: str) -> None:
    mine, plain = functions(update, "doubles", "2.0", "numpy")
    args, given = arguments(3), arguments(3)
    mine(*args)
    plain(*given)
    assert_same(args, given)


def test_duplicates_are_refused_of_what_the_value_changes() -> None:
    mine, _ = functions("x[k] += g()", "doubles", "2.0", "numpy")
    with pytest.raises(pe.CdError, match="drops duplicate positions"):
        mine(*arguments(3))
