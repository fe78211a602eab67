"""Partitions: the contract of NumPy, which leaves the order on either side open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled

EXPRESSIONS = (
    "np.partition(p, 2)[2], np.partition(p, -1)[-1], np.partition(p, (1, 4))[[1, 4]]",
    "np.sort(np.partition(x, 1, axis=0)[:2], axis=0)",
    "np.partition(x, 5, axis=None)[5]",
    "np.sort(p[np.argpartition(p, -3)[-3:]])",
    "p[p.argpartition(2)[2]]",
    "p.partition(3)\np[3]",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("np.partition(v, 4)", "CD0601.*index 4 is out of range for axis 0 of `a` with size 4"),
        ("np.argpartition(v, -5)", "CD0601.*index -5"),
        ("np.partition(x, (0, 3), axis=0)", "CD0601.*index 3"),
    ],
)
def test_what_is_refused_is_refused_at_the_call(body: str, text: str) -> None:
    with pytest.raises(pe.CdError, match=f"(?s){text}"):
        compiled(body)


ROWS: dict[str, Callable[[Any, int], Any]] = {
    "any": lambda rng, n: rng.standard_normal(n) * 50,
    "few values": lambda rng, n: rng.integers(0, 4, n),
    "one value": lambda rng, n: np.full(n, 7),
    "falling": lambda rng, n: np.arange(n)[::-1],
    "up and down": lambda rng, n: np.minimum(np.arange(n), np.arange(n)[::-1]),
    "no numbers": lambda rng, n: rng.choice([-np.inf, -0.0, 0.0, 1.0, np.inf, np.nan], n),
}


@pytest.mark.parametrize(("size", "dtype"), [(66, "f8"), (6000, "f4"), (100, "i4"), (99, "u1")])
def test_long_rows_are_parted_around_each_place(size: int, dtype: str) -> None:
    places = (size // 3 + 1, -1, size // 3)
    text = "lambda x: (np.partition(x, K), np.argpartition(x, K))"
    with pe.override(backend="cc", optimize=1):
        f = pe.cd_from_source(text, {"np": np, "K": places})
        for name, make in ROWS.items():
            if name == "no numbers" and not dtype.startswith("f"):
                continue
            x = make(np.random.default_rng(size), size).astype(dtype)
            values, order = f(x)
            np.testing.assert_array_equal(np.sort(order), np.arange(size))
            for found in (values, x[order]):
                _assert_parted(found, np.sort(x), places)


def _assert_parted(found: Any, ordered: Any, places: tuple[int, ...]) -> None:
    for place in places:
        at = place % len(found)
        np.testing.assert_array_equal(found[at], ordered[at])
        np.testing.assert_array_equal(np.sort(found[:at]), ordered[:at])
        np.testing.assert_array_equal(np.sort(found[at:]), ordered[at:])


def test_a_long_row_is_not_sorted() -> None:
    f = pe.cd_from_source("lambda x: np.partition(x, 5)", {"np": np})
    x = np.random.default_rng(1).random(3000)
    assert "select_rows" in str(f.explain(x))
    assert "sort_rows" in str(f.explain(x[:64]))
    assert (np.diff(f(x)) < 0).any()


def test_rows_of_any_axis_are_parted() -> None:
    x = np.random.default_rng(2).random((3, 90, 2))
    f = pe.cd_from_source("lambda x: np.partition(x, 40, axis=1)", {"np": np}, backend="cc")
    np.testing.assert_array_equal(f(x)[:, 40], np.sort(x, 1)[:, 40])
    x.partition(40, axis=1)
    g = pe.cd_from_source("def g(x):\n    x.partition(3, axis=1)", {"np": np}, backend="cc")
    g(x)
    np.testing.assert_array_equal(x[:, 3], np.sort(x, 1)[:, 3])


def test_a_place_of_the_run_counts_from_the_end_too() -> None:
    f = pe.cd_from_source("lambda x, k: np.partition(x, -k)[0]", {"np": np}, backend="numpy")
    assert f(np.array([3.0, 1.0, 2.0]), 3) == 1
    x = np.random.default_rng(3).random(100)
    assert f(x, 100) == x.min()
    with pytest.raises(pe.CdError, match="index -4 is out of range"):
        f(np.array([3.0, 1.0, 2.0]), 4)
