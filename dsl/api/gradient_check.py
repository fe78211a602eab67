"""Gradients held against differences of the function itself.

    report = pe.check_gradient(loss, (x, w, b), wrt=("w", "b"))
    print(report)

Central differences of steps that are halved, with Richardson's extrapolation, choose the step by
themselves and say how far they are to be trusted; where the function is one of complex numbers,
too, and its complex step agrees with them, that has all digits.

Sources: C. J. F. Ridders, Accurate computation of F'(x) and F'(x) F''(x), Advances in Engineering
Software 4 (1982); W. Squire, G. Trapp, Using complex variables to estimate derivatives of real
functions, SIAM Review 40 (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdValueError, Diagnostic
from .cd import CdFunction
from .compare import require_items
from .gradients import gradient

_FEW = 64
"""So many elements of a parameter are checked one by one."""
_DIRECTIONS = 8
"""Along so many random directions are larger ones."""
_LEVELS = 10
"""How often steps are halved."""
_SMALL = 1e-3
"""Elements that are smaller than this, relative to the largest, are held to that."""
_KINK = 0.25
"""Slopes of two sides that differ by this part of what they did for the largest step differ for all
steps."""
_IMAGINARY = 1e-30
_EXACT = 16.0
"""The digits of numbers that are equal."""


@dataclass(frozen=True, slots=True)
class ParameterCheck:
    """What became of one parameter: where its gradient disagrees most."""

    name: str
    shape: tuple[int, ...]
    count: int
    """How many derivatives were compared."""
    by_element: bool
    """Whether these are of the elements; otherwise they are along random directions."""
    index: tuple[int, ...]
    """The element of the largest disagreement, or the number of its direction."""
    derivative: float
    """What the gradient says there."""
    reference: float
    """What the differences or the complex step say."""
    disagreement: float
    """The difference of these, relative to the larger one."""
    reference_digits: float
    """To how many digits the differences agree among themselves there."""
    is_zero: bool = False
    """Whether all derivatives are zero, by both: the function may be constant by steps."""

    @property
    def digits(self) -> float:
        """To how many decimal digits they agree, 16 at most."""
        return _digits(self.disagreement)


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """A gradient against differences, by parameter. Its text is a table."""

    function: str
    parameters: tuple[ParameterCheck, ...]

    @property
    def disagreement(self) -> float:
        """The largest relative disagreement of all parameters."""
        return max((one.disagreement for one in self.parameters), default=0.0)

    @property
    def digits(self) -> float:
        """To how many decimal digits all of them agree."""
        return _digits(self.disagreement)

    def __str__(self) -> str:
        head = ("parameter", "shape", "compared", "at", "gradient", "differences", "digits")
        rows = [head, *(_row(one) for one in self.parameters)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in rows)
        zeros = [f"`{one.name}`" for one in self.parameters if one.is_zero]
        notes = [
            f"all derivatives in {', '.join(zeros)} are 0: the function depends on it through "
            "integers, positions or tests alone, or not at all"
        ]
        return "\n".join([*(line.rstrip() for line in lines), *(notes if zeros else ())])


@dataclass(frozen=True, slots=True)
class _Compared:
    """One derivative, by the gradient and by reference."""

    index: tuple[int, ...]
    derivative: float
    reference: float
    uncertain: float
    """How far the reference is to be trusted."""
    size: float
    """The size to which a disagreement is relative."""

    @property
    def disagreement(self) -> float:
        if self.derivative == self.reference:
            return 0.0
        gap = abs(self.derivative - self.reference) / self.size if self.size else math.inf
        return gap if math.isfinite(gap) else math.inf


def check_gradient(
    function: CdFunction[..., Any],
    args: Sequence[Any],
    wrt: str | Sequence[str],
    digits: float | None = None,
    seed: int = 0,
) -> GradientCheck:
    """Return how far the gradient of a function agrees with differences of it, for arguments.

    `wrt` names parameters as in `gradient`: arrays of floats of any shape, or numbers. Up to 64
    elements are compared one by one, larger arrays along 8 random directions, which `seed` draws.
    Disagreements are relative: to the derivative, or to a thousandth of the largest one of its
    parameter. Arrays among the arguments are copied for each call, and stay as they are. Of
    float64 about 10 digits can be expected, of float32 about 3; where the function has a kink
    nearby there are fewer.

    Raises CdValueError CD0485 where a parameter agrees to fewer than `digits`, CdTypeError CD0480
    for what has no gradient, CD0875 for arguments in no tuple or list, and what a call raises.
    """
    require_items("args", args, "(x,)")
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    found = gradient(function, names)(*_copied(args))
    positions = _positions(function, names)
    checks: list[ParameterCheck] = []
    for name, derivative in zip(names, found, strict=True):
        at = _Argument(function, tuple(args), positions[name])
        compared = list(_compared(at, np.asarray(derivative), np.random.default_rng(seed)))
        checks.append(_check(name, at, compared))
        if digits is not None:
            _require(function.__name__, name, at, compared, digits)
    return GradientCheck(function.__name__, tuple(checks))


def _positions(function: CdFunction[..., Any], names: Sequence[str]) -> dict[str, int]:
    parameters = list(function.__signature__.parameters)
    return {name: parameters.index(name) for name in names}


@dataclass(frozen=True, slots=True)
class _Argument:
    """A function as one of an argument."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    position: int

    @property
    def value(self) -> np.ndarray:
        return np.asarray(self.args[self.position])

    def moved(self, move: np.ndarray) -> Any:
        """Return the function's value where the argument is moved."""
        args, old = _copied(self.args), self.args[self.position]
        new = (self.value + move).astype(
            np.result_type(self.value, move) if np.iscomplexobj(move) else self.value.dtype
        )
        args[self.position] = new if isinstance(old, np.ndarray) else type(old)(new)
        return self.function(*args)

    def slope(self, direction: np.ndarray) -> tuple[float, float]:
        """Return the derivative along a direction, and how far it is to be trusted."""
        slope, error = _extrapolated(lambda step: float(self.moved(step * direction)), self.step)
        if not isinstance(self.args[self.position], np.ndarray):
            return slope, error
        by_complex = self._complex_slope(direction)
        if by_complex is not None and abs(by_complex - slope) <= 10 * error:
            return by_complex, 0.0
        return slope, error

    @property
    def step(self) -> float:
        """The largest step, as a power of two that suits the sizes of the numbers."""
        size = float(np.max(np.abs(self.value), initial=0.0))
        few = 2.0**-3 if self.value.dtype.itemsize < 8 else 2.0**-6
        return few * 2.0 ** math.floor(math.log2(size)) if size else few

    def _complex_slope(self, direction: np.ndarray) -> float | None:
        """Return the imaginary part of a step in that direction; None where the function is none of
        complex numbers."""
        try:
            found = self.moved(1j * _IMAGINARY * direction)
        except (CdError, ArithmeticError, TypeError, ValueError):
            return None
        slope = float(np.imag(found)) / _IMAGINARY
        return slope if np.iscomplexobj(found) and math.isfinite(slope) else None


def _extrapolated(function: Callable[[float], float], step: float) -> tuple[float, float]:
    """Return the derivative at zero by extrapolated differences, and an estimate of its error."""
    best, error = math.nan, math.inf
    middle, gaps = function(0.0), list[float]()
    before: list[float] = []
    for _ in range(_LEVELS):
        high, low = function(step), function(-step)
        gaps.append(abs(high - 2 * middle + low) / step)
        row = [(high - low) / (2 * step)]
        for order, coarse in enumerate(before):
            weight = 4.0 ** (order + 1)
            row.append((weight * row[-1] - coarse) / (weight - 1))
            found = max(abs(row[-1] - row[-2]), abs(row[-1] - coarse))
            if found < error:
                best, error = row[-1], found
        before, step = row, step / 2
    if gaps[-1] > max(_KINK * gaps[0], _SMALL * abs(best)):
        error = max(error, gaps[-1] / 2)  # of the slopes of the two sides, which agree in the limit
    return best, error


def _compared(
    at: _Argument, derivative: np.ndarray, rng: np.random.Generator
) -> Iterator[_Compared]:
    """Yield derivatives and their references: of all elements, or along directions."""
    pairs: list[tuple[tuple[int, ...], float, tuple[float, float]]] = []
    shape = at.value.shape
    if at.value.size <= _FEW:
        for index in np.ndindex(*shape):
            direction = np.zeros(shape)
            direction[index] = 1.0
            pairs.append((index, float(derivative[index]), at.slope(direction)))
    else:
        for number in range(_DIRECTIONS):
            direction = rng.standard_normal(shape)
            along = float(np.sum(np.asarray(derivative, np.float64) * direction))
            pairs.append(((number,), along, at.slope(direction)))
    sizes = [max(abs(value), abs(reference)) for _, value, (reference, _) in pairs]
    least = _SMALL * max((size for size in sizes if math.isfinite(size)), default=0.0)
    for (index, value, (reference, error)), size in zip(pairs, sizes, strict=True):
        yield _Compared(index, value, reference, error, max(size, least))


def _check(name: str, at: _Argument, compared: Sequence[_Compared]) -> ParameterCheck:
    few = at.value.size <= _FEW
    none = _Compared((), 0.0, 0.0, 0.0, 0.0)
    worst = max(compared, key=lambda one: one.disagreement, default=none)
    return ParameterCheck(
        name, at.value.shape, len(compared), few, worst.index, worst.derivative,
        worst.reference, worst.disagreement, _reference_digits(worst),
        bool(compared) and all(one.derivative == 0 == one.reference for one in compared),
    )  # fmt: skip


def _require(
    function: str, name: str, at: _Argument, compared: Sequence[_Compared], digits: float
) -> None:
    """Raise CdValueError CD0485 for the first derivative that agrees to fewer digits."""
    for one in compared:
        if _digits(one.disagreement) >= digits:
            continue
        where = f"`{_place(name, at.value.size <= _FEW, one.index)}`"
        message = (
            f"the gradient of `{function}` in {where} is {one.derivative:.10g}, differences give "
            f"{one.reference:.10g}: {_digits(one.disagreement):.1f} digits agree, not {digits:g}"
        )
        helps = ("look at the statements: `pe.gradient(...).text(...)`",)
        if _reference_digits(one) < digits:
            known = f"{_reference_digits(one):.1f}"
            text = (
                f"the differences agree among themselves to {known} digits: is there a kink, or a "
                "step (an integer, a position, a rounding)?"
            )
            helps = (text,)
        raise CdValueError(Diagnostic("CD0485", message, helps=helps))


def _reference_digits(one: _Compared) -> float:
    return _digits(one.uncertain / one.size if one.size else one.uncertain)


def _digits(relative: float) -> float:
    if not relative < math.inf:
        return 0.0
    return min(_EXACT, max(0.0, -math.log10(relative))) if relative else _EXACT


def _place(name: str, by_element: bool, index: tuple[int, ...]) -> str:
    if not by_element:
        return f"{name} along direction {index[0]}"
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _row(one: ParameterCheck) -> tuple[str, ...]:
    kind = "elements" if one.by_element else "directions"
    place = _place("", one.by_element, one.index).strip()
    values = (f"{one.derivative:.10g}", f"{one.reference:.10g}", f"{one.digits:.1f}")
    return (one.name, str(one.shape), f"{one.count} {kind}", place, *values)


def _copied(args: Sequence[Any]) -> list[Any]:
    return [np.copy(one) if isinstance(one, np.ndarray) else one for one in args]
