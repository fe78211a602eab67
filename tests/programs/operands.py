"""The arguments of `expressions`: what each name holds, drawn again alike from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .layouts import lay

NAMES = "x y z v u e d q p m i j n h s o k t".split()
EXTENTS = {"small": (5, 7, (2, 4, 3), 3), "large": (130, 300, (40, 50, 3), 40)}
"""Rows and columns of `x`, the shape of `z`, the rows of the square matrices."""
_LAYOUTS = ("C", "C", "C", "C", "F", "sliced", "negative", "offset", "misaligned", "swapped")


@dataclass(frozen=True, slots=True)
class Given:
    """An argument and how it lies in memory."""

    value: Any
    layout: str = ""

    def __str__(self) -> str:
        if not isinstance(self.value, np.ndarray):
            return repr(self.value)
        shown = f" {self.value.tolist()}" if self.value.size <= 12 else ""
        return f"{self.value.dtype}{list(self.value.shape)} {self.layout}{shown}"


def made(
    names: list[str],
    dtype: str,
    size: str,
    seed: int,
    plain: bool,
    unsigned: bool = False,
    factors: bool = False,
) -> dict[str, Given]:
    """Return the arguments of those names.

    `plain` draws small numbers more often than any; `unsigned` no negative ones, of which C casts
    no float to an unsigned integer; `factors` mostly ones, whose products overflow in no order.
    """
    rng = np.random.default_rng(seed)
    wild = rng.random() < (0.15 if plain else 0.5)
    everything = _values(np.dtype(dtype), size, rng, wild)
    layouts = {name: str(rng.choice(_LAYOUTS)) for name in NAMES}
    if rng.random() < 0.5:
        layouts = dict.fromkeys(NAMES, "C")
    out = {}
    for name in names:
        value = everything[name]
        if unsigned and np.asarray(value).dtype.kind in "fc":
            value = abs(value)
        if factors and np.asarray(value).dtype.kind in "fc":
            value = _mostly_ones(rng, value)
        if not isinstance(value, np.ndarray):
            out[name] = Given(value)
            continue
        layout = layouts[name] if name in "xyzvuo" else "C"
        out[name] = Given(lay(value, layout).array, layout)
    return out


def _values(dtype: np.dtype, size: str, rng: np.random.Generator, wild: bool) -> dict[str, Any]:
    rows, columns, deep, order = EXTENTS[size]
    draw = _wild if wild else _plain
    line = _plain(rng, dtype, (columns + 1,))
    edges = np.unique(line.real).astype(dtype)
    matrix = _plain(rng, dtype, (order, order))
    definite = matrix @ matrix.conj().T + np.eye(order, dtype=dtype)
    edges = (edges if rng.random() < 0.7 else np.sort(line))[:columns]
    out = {
        "x": draw(rng, dtype, (rows, columns)), "y": draw(rng, dtype, (rows, columns)),
        "z": draw(rng, dtype, deep), "v": draw(rng, dtype, (columns,)),
        "u": draw(rng, dtype, (columns,)), "e": edges, "d": edges[::-1].copy(), "q": matrix,
        "p": definite.astype(dtype), "m": rng.random((rows, columns)) < 0.5,
        "i": rng.integers(0, rows, 6), "j": rng.integers(0, columns, (rows, columns)),
        "n": rng.integers(0, 9, columns), "h": (rng.integers(0, 40, columns) / 4).astype("f2"),
        "s": draw(rng, dtype, (1,))[0], "o": np.zeros((rows, columns), dtype),
        "k": int(rng.integers(1, 5)), "t": float(rng.choice([0.75, 0.25, 1.3, 2.675, 0.15])),
    }  # fmt: skip
    return out


def _mostly_ones(rng: np.random.Generator, value: Any) -> Any:
    """Replace all but some eight elements by one and minus one."""
    if np.size(value) <= 16:
        return value
    signs = np.where(rng.random(value.shape) < 0.5, -1, 1).astype(value.dtype)
    return np.where(rng.random(value.shape) < 8 / value.size, value, signs)


def _plain(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """Return small numbers, whose sums and products are exact in any order."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.integers(-6, 7, shape) * 0.5 + 0.5j * rng.integers(-6, 7, shape)).astype(dtype)
    if dtype.kind == "f":
        return (rng.integers(-12, 13, shape) * 0.25).astype(dtype)
    return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)


_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-7, -0.25, 2.5, 1.5, -0.5, 100.0, 1.0)


def _wild(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """Return small numbers, special ones and the ends of the type."""
    usual = _plain(rng, dtype, shape)
    if dtype.kind == "b":
        return usual
    special = rng.random(shape) < 0.3
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = [info.min, info.max, info.max - 1, 0, 1, info.max // 2 + 1, info.max // 3]
        picks = np.array(ends, dtype)[rng.integers(0, len(ends), shape)]
    else:
        special_ones = [x for x in _SPECIAL if dtype.kind == "f" or np.isfinite(x)]
        picks = np.array(special_ones)[rng.integers(0, len(special_ones), shape)].astype(dtype)
    return np.where(special, picks, usual)
