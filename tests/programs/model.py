"""What a random program is: its text, what plain Python makes of it, and its arguments."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from .layouts import Laid, lay
from .plain_expressions import of_pythons
from .plain_index import translated

SPECIAL = {
    "f": (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-310, 1.0, -1.0),
    "i": (0, 1, -1, 2, -3, 7),
    "u": (0, 1, 2, 3, 7, 100),
}

_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "truth": lambda text: text == "True",
    "tuple": lambda text: tuple(map(int, text.split(", "))),
    "np.int64": lambda text: np.int64(int(text)),
    "np.int32": lambda text: np.int32(int(text)),
    "np.float64": lambda text: np.float64(float(text)),
    "np.float32": lambda text: np.float32(float(text)),
}


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """An argument that can be made again: what it holds and how it lies in memory."""

    name: str
    dtype: str
    """A NumPy type, or `int`, `float`, `truth` for a Python scalar, `tuple` for one of integers,
    `np.int64` and the like for a NumPy scalar."""
    shape: tuple[int, ...] = ()
    kind: str = "exact"
    """`exact`: small multiples of 1/4; `wild`: anything; `rising`: each larger than the one before;
    `index:n`: whole, below n; or a number, or numbers."""
    layout: str = "C"
    seed: int = 0
    view: tuple[str, str] | None = None
    """The argument that this is a view of, and the subscript that makes it."""

    @property
    def is_array(self) -> bool:
        """Whether it is an array rather than a Python scalar."""
        return self.dtype not in _SCALARS


class Owner:
    """An object with attributes, for a function to read."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@dataclass(frozen=True, slots=True)
class Program:
    """A function `f` in the language, and the same one for plain Python and NumPy."""

    text: str
    args: tuple[ArgSpec, ...]
    tier: str = "E"
    reorders: bool = False
    """Whether plain NumPy may add floats in an order of its own."""
    rounds: bool = False
    """Whether it has complex numbers, or functions that are not exactly rounded."""
    features: frozenset[str] = field(default_factory=frozenset)
    calls: tuple[tuple[ArgSpec, ...], ...] = ()
    """The arguments of several calls, for `warm_cache`."""
    orders: tuple[tuple[int, ...], ...] = ()
    """Which of these calls each process makes, in this order."""
    captured: frozenset[str] = frozenset()
    """Those of the names of `args` that are no parameters, but names of the module."""
    owned: frozenset[str] = frozenset()
    """Those that are attributes of an object, which the last parameter, `own`, is."""

    def make(self) -> dict[str, Any]:
        """Return new arguments by name."""
        return {name: value for name, (value, _) in self.make_rooms().items()}

    def make_rooms(self) -> dict[str, tuple[Any, np.ndarray | None]]:
        """Return new arguments by name, each with the bytes that it lies in."""
        made: dict[str, tuple[Any, np.ndarray | None]] = {}
        for spec in self.args:
            if spec.view is not None:
                base, subscript = spec.view
                made[spec.name] = eval(f"base{subscript}", {"base": made[base][0]}), None
            elif spec.is_array:
                laid = laid_out(spec)
                made[spec.name] = laid.array, laid.room
            else:
                made[spec.name] = scalar(spec), None
        return made


def scalar(spec: ArgSpec) -> Any:
    """Return the Python scalar, or the tuple, of a spec."""
    return _SCALARS[spec.dtype](spec.kind)


def laid_out(spec: ArgSpec) -> Laid:
    """Return the array of a spec."""
    return lay(values(spec), spec.layout)


def values(spec: ArgSpec) -> np.ndarray:
    """Return what an array holds, in C order and native bytes."""
    rng, dtype = np.random.default_rng(spec.seed), np.dtype(spec.dtype)
    if spec.kind.startswith("index:"):
        return rng.integers(0, max(int(spec.kind[6:]), 1), spec.shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(spec.shape) < 0.5
    if spec.kind == "rising":
        return np.cumsum(rng.integers(1, 4, spec.shape) * 0.5 - 1e-3).astype(dtype)
    if spec.kind == "exact":
        return _exact(rng, dtype, spec.shape)
    return _wild(rng, dtype, spec.shape)


def _exact(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind == "c":
        parts = rng.integers(-6, 7, (2, *shape)) * 0.5
        return (parts[0] + 1j * parts[1]).astype(dtype)
    if dtype.kind == "f":
        return (rng.integers(-12, 13, shape) * 0.25).astype(dtype)
    low = 0 if dtype.kind == "u" else -9
    return rng.integers(low, 10, shape).astype(dtype)


def _wild(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            real = _wild(rng, np.dtype("f8"), shape)
            return (real + 1j * rng.standard_normal(shape)).astype(dtype)
        special = rng.random(shape) < 0.25
        picks = rng.choice(np.array(SPECIAL[dtype.kind]), shape)
        if dtype.kind == "f":
            usual = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3, shape)
        else:
            info = np.iinfo(dtype)
            usual = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.where(special, picks.astype(dtype), usual.astype(dtype))


def plain(text: str, names: Mapping[str, Any], copies: bool = False) -> Any:
    """Return the function `f` that Python makes of a text in either notation. Raises Unknown.

    Where it `copies`, what is assigned to elements is copied first: NumPy itself overwrites some of
    what it still has to read in `a[::-1, -1] = a[1, 2:6][::-1]`.
    """
    made = translated(text)
    scope = {"max": of_pythons(max), "min": of_pythons(min), **names, **made.names()}
    exec(_compiled(made.text, copies), scope)
    return scope["f"]


@functools.lru_cache(256)
def _compiled(text: str, copies: bool) -> CodeType:
    tree = ast.parse(text)
    if copies:
        tree = ast.fix_missing_locations(_Copies().visit(tree))
    return compile(tree, "<program>", "exec")


class _Copies(ast.NodeTransformer):
    """Lets what is assigned to elements be a copy of it."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if isinstance(node.targets[0], ast.Subscript):
            copy = ast.parse("(lambda v: v.copy() if hasattr(v, 'copy') else v)", mode="eval")
            node.value = ast.Call(copy.body, [node.value], [])
        return node
