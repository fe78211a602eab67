"""What is measured: workloads at sizes, with inputs, a float64 reference and the work there is.

A peer's function is called `f(*outputs, *inputs, *numbers)`, with arrays that are there before the
clock starts. Calls change nothing but the outputs, so that any number of them does the same work.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Regime = Literal["small", "medium", "large"]
Number = int | float
REGIMES: tuple[Regime, ...] = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Size:
    """One size of a workload. Small ones measure the call, medium ones fit a cache, large none."""

    name: str
    regime: Regime
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """An output before it is written."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    def empty(self) -> Array:
        """Return an array for it, whose pages are there, and hold what no result may be."""
        return np.full(self.shape, np.nan if self.dtype.startswith("float") else -1, self.dtype)


@dataclass(frozen=True, slots=True)
class Case:
    """The arguments of one cell: inputs as arrays, numbers, and what the outputs look like."""

    inputs: tuple[Array, ...]
    results: tuple[Result, ...]
    numbers: tuple[Number, ...] = ()

    @property
    def footprint(self) -> int:
        """How many bytes inputs and outputs have together."""
        outputs = (np.dtype(r.dtype).itemsize * int(np.prod(r.shape)) for r in self.results)
        return sum(a.nbytes for a in self.inputs) + sum(outputs)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be off: `bound` times the largest absolute value of the reference.

    A `share` of the elements may be off by anything, for work that is chaotic at some points.
    """

    bound: float = 1e-5
    share: float = 0.0

    def __str__(self) -> str:
        most = f", for {1 - self.share:.0%} of the elements" if self.share else ""
        return f"{self.bound:g} of the largest value{most}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to compute, whoever computes it."""

    name: str
    kind: str
    """The folder that has it: `benchmarks/<kind>/with_<peer>.py` has a function of its name."""
    sizes: tuple[Size, ...]
    make: Callable[..., Case]
    """`make(generator, *dims)`."""
    reference: Callable[..., Any]
    """`reference(*inputs, *numbers)` on float64 arrays; returns one array or a tuple of them."""
    flops: Callable[..., float]
    """`flops(*dims)`: the fewest operations: an exp or log is 10 of them, a root or division 4."""
    tolerance: Tolerance = Tolerance()
    traffic: Callable[..., float] | None = None
    """`traffic(*dims)` in bytes, where it is more than reading inputs and writing outputs once."""
    precision: Literal["f32", "f64"] = "f32"
    constants: tuple[int, ...] = ()
    """Positions of inputs in which no gradient is taken, beside those of integers."""

    def size(self, name: str) -> Size:
        """Return the size of that name."""
        return next(size for size in self.sizes if size.name == name)

    def case(self, size: Size) -> Case:
        """Return inputs for a size, the same ones every time."""
        seed = zlib.crc32(self.name.encode())
        return self.make(np.random.default_rng([seed, *size.dims]), *size.dims)

    def right(self, case: Case) -> tuple[Array, ...]:
        """Return what the outputs have to be."""
        wide = [a.astype(np.float64) if a.dtype.kind in "fV" else a for a in case.inputs]
        found = self.reference(*wide, *case.numbers)
        return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True, slots=True)
class Cell:
    """A workload at one size."""

    workload: Workload
    size: Size

    @property
    def name(self) -> str:
        """What tables call it: `saxpy:small`."""
        return f"{self.workload.name}:{self.size.name}"

    @property
    def differentiable(self) -> bool:
        """Whether there is a gradient: results are floats, and so is an input."""
        case = self.workload.case(self.workload.sizes[0])
        results = {np.dtype(result.dtype).kind for result in case.results}
        return results == {"f"} and any(array.dtype.kind == "f" for array in case.inputs)

    @property
    def flops(self) -> float:
        """The fewest operations."""
        return float(self.workload.flops(*self.size.dims))

    def traffic(self, case: Case) -> float:
        """Return the fewest bytes that are read or written."""
        given = self.workload.traffic
        return float(given(*self.size.dims)) if given else float(case.footprint)


def three(small: tuple[int, ...], medium: tuple[int, ...], large: tuple[int, ...]) -> Any:
    """Return the three sizes of most workloads."""
    dims = (small, medium, large)
    return tuple(Size(regime, regime, d) for regime, d in zip(REGIMES, dims))


def wrong(found: tuple[Array, ...], right: tuple[Array, ...], allowed: Tolerance) -> str | None:
    """Return what is wrong with results in one sentence, None where they are within bounds."""
    if len(found) != len(right):
        return f"{len(found)} results, {len(right)} expected"
    for number, (got, want) in enumerate(zip(found, right)):
        if got.shape != want.shape:
            return f"result {number} has shape {got.shape}, not {want.shape}"
        if not want.size:
            continue
        scale = float(np.max(np.abs(want)))
        off = np.abs(got.astype(np.float64) - want)
        beyond = ~(off <= allowed.bound * scale)  # so that NaN is beyond
        share = float(np.mean(beyond))
        if share > allowed.share:
            worst = float(np.max(np.where(np.isnan(off), np.inf, off))) / (scale or 1.0)
            return f"result {number} is off by {worst:.1e} of its scale, {share:.2%} beyond bounds"
    return None


def uniform(random: np.random.Generator, *shape: int) -> Array:
    """Return float32 numbers from -1 to 1."""
    made = random.random(shape, dtype=np.float32)
    made *= 2
    made -= 1
    return made
