"""Contractions by tensor cores on the device: of each type, with edges that are no whole tiles.

Factors are of few digits, so that products and sums are exact, whatever the order in which a unit
adds and however it rounds: results have to be those of NumPy, bit by bit. Factors of any digits are
held to the error that the type of the factors explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import plusequals as pe

from .jobs import Job

Array = np.ndarray[Any, Any]
TYPES: dict[str, Any] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "tf32": np.float32,
}  # fmt: skip
BITS = {"float16": 11, "bfloat16": 8, "tf32": 11}
"""Of the mantissa of a factor, the one before the point included."""
SIZES = ((64, 64, 64), (65, 63, 66), (16, 17, 200), (129, 40, 33), (300, 128, 257))
"""Rows, terms and columns: whole tiles, one more and less, less than one, several."""


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction in index notation, and what NumPy says to it."""

    text: str
    shapes: Callable[[int, int, int], tuple[tuple[int, ...], ...]]
    """Those of `c`, `a` and `b`, for rows, terms and columns."""
    meaning: Callable[[Array, Array, Array], Array]


PRODUCTS = {
    "plain": Product(
        "c[i, j] = sum[k](a[i, k] * b[k, j])", lambda m, k, n: ((m, n), (m, k), (k, n)),
        lambda c, a, b: a @ b,
    ),
    "turned": Product(
        "c[i, j] = sum[k](a[k, i] * b[j, k])", lambda m, k, n: ((m, n), (k, m), (n, k)),
        lambda c, a, b: a.T @ b.T,
    ),
    "into": Product(
        "c[i, j] += a[i, k] * b[k, j]", lambda m, k, n: ((m, n), (m, k), (k, n)),
        lambda c, a, b: c + a @ b,
    ),
    "each": Product(
        "c[n, i, j] = sum[k](a[n, i, k] * b[n, k, j])",
        lambda m, k, n: ((3, m, n), (3, m, k), (3, k, n)), lambda c, a, b: a @ b,
    ),
    "shifted": Product(
        "c[i, j] = sum[k](a[i, k + 1] * b[k, j])", lambda m, k, n: ((m, n), (m, k + 1), (k, n)),
        lambda c, a, b: a[:, 1:] @ b,
    ),
}  # fmt: skip


def settings_of(kind: str) -> AbstractContextManager[Any]:
    """Let contractions of a kind of factors go to tensor cores."""
    return pe.override(tf32=kind == "tf32")


def arguments(product: Product, kind: str, size: tuple[int, int, int], exact: bool) -> list[Array]:
    """Return `c`, which is of float32, and the factors: of few digits, or of any."""
    random = np.random.default_rng(sum(size))
    shapes, made = product.shapes(*size), []
    for at, shape in enumerate(shapes):
        found = random.integers(-8, 9, shape) / 4 if exact else random.standard_normal(shape)
        made.append(found.astype(np.float32 if at == 0 else TYPES[kind]))
    return made


def bound(product: Product, kind: str, held: list[Array]) -> Array:
    """Return how far each element may be off: factors are rounded once, sums in float32."""
    size = [np.abs(one.astype(np.float64)) for one in held]
    terms = held[1].shape[-1] + 2
    rounded = 2.0 ** (1 - BITS[kind]) if kind == "tf32" else 0.0
    return product.meaning(*size) * (2 * rounded + terms * 2.0**-22)


def jobs(
    sizes: Iterable[tuple[int, int, int]] = SIZES,
    names: Iterable[str] = tuple(PRODUCTS),
    backend: str = "cuda",
) -> list[Job]:
    """Return a job for each contraction and type of factors."""
    sizes = tuple(sizes)
    return [
        Job(f"{name}, {kind}", partial(look, name, kind, sizes, backend))
        for name in names for kind in TYPES
    ]  # fmt: skip


def look(name: str, kind: str, sizes: Iterable[tuple[int, int, int]], backend: str) -> None:
    """Raise AssertionError where a contraction does not compute what it should, the same in each
    run, or where tensor cores were not used for it.

    One function is called with all sizes, so that it gets code for any size, too.
    """
    product, wrong = PRODUCTS[name], []
    function = pe.cd_from_source(f"def {name}(c, a, b):\n    {product.text}\n").on(backend)
    with settings_of(kind):
        for size in sizes:
            try:
                _compare(function, product, kind, size)
            except Exception as why:  # other sizes are looked at all the same
                wrong.append(f"{size}: {type(why).__name__}: {str(why).strip()}")
    assert not wrong, "\n".join(wrong)


def _compare(function: Any, product: Product, kind: str, size: tuple[int, int, int]) -> None:
    for exact in (True, False):
        given = arguments(product, kind, size, exact)
        runs = [[one.copy() for one in given] for _ in range(2)]
        for held in runs:
            function(*held)
        right = product.meaning(*(one.astype(np.float64) for one in given))
        got = runs[0][0].astype(np.float64)
        assert runs[0][0].tobytes() == runs[1][0].tobytes(), "it differs from run to run"
        most = np.zeros(right.shape) if exact else bound(product, kind, given)
        assert (np.abs(got - right) <= most).all(), f"off by {np.abs(got - right).max()}"
        assert np.array_equal(runs[0][1], given[1]), "it writes a factor"
    text = function.explain(*given).code
    used = "multiplied<" in text or "multiplied_wide<" in text
    assert used, "tensor cores are not used"
