"""Random statements of array notation. What is written here is ordinary NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .functions_text import DYNAMIC, EXACT, SUMS
from .writer import Refused, Writer

ARITHMETIC = ("+", "-", "*", "+", "-", "*", "/", "//", "%")
BITWISE = ("&", "|", "^", "<<", ">>")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
UNARY = ("-", "abs", "np.abs", "np.negative", "np.sign", "np.square", "np.floor", "np.ceil")
BINARY = ("np.minimum", "np.maximum", "np.add", "np.multiply", "np.subtract", "np.less",
          "np.logical_and", "np.logical_or", "np.fmax", "np.fmin", "np.copysign")  # fmt: skip
REDUCE = ("sum", "min", "max", "prod", "any", "all", "argmin", "argmax")
TYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool")


FLOATS = TYPES[:2]
SIGNED = TYPES[:4]


def constant(w: Writer, dtype: np.dtype | None = None) -> str:
    """Return a Python number."""
    if dtype is not None and dtype.kind in "iub":
        return str(w.rng.choice((0, 1, 2, 3, 1, 2)))
    return w.rng.choice(("0.5", "2", "1", "-1", "0.25", "3", "1.5", "0", "-2.0"))


def bound(w: Writer, extent: int) -> str:
    """Return one end of a slice, sometimes beyond the axis."""
    if w.dynamic and w.chance(0.4):
        return w.integer()
    pick = w.rng.randrange(8)
    if pick == 0:
        return ""
    if pick == 1:
        return str(w.rng.randrange(-extent - 2, extent + 3))
    return str(w.rng.randrange(-extent, extent + 1))


def slicing(w: Writer, extent: int) -> str:
    """Return a slice of an axis: mostly not empty."""
    if w.dynamic and w.chance(0.3):
        return w.rng.choice(("{}:", ":{}", "::{}", "1:{}")).format(w.integer())
    pick = w.rng.randrange(10)
    if pick < 3 or extent == 0:
        return ":"
    if pick == 3:
        return "::-1"
    if pick == 4:
        return f"{bound(w, extent)}:{bound(w, extent)}:{w.rng.choice((1, 2, -1, -2, 3))}"
    if pick == 5:
        return f"::{w.rng.choice((2, -2, 3))}"
    if pick < 8:
        low = w.rng.randrange(0, extent)
        high = w.rng.randrange(low + 1, extent + 1)
        return f"{low or ''}:{high}" if w.chance(0.5) else f"{low}:{high - extent or ''}"
    if w.chance(0.5):
        return f"{w.rng.randrange(extent)}:"
    return f":{w.rng.randrange(-extent, extent) or 1}"


def loop_names(w: Writer) -> list[str]:
    """Return the loop variables in force."""
    return [n for n in w.scalars() if n.startswith("t") and type(w.env[n]) is int]


def subscript(w: Writer, name: str, scalar: bool = False) -> str:
    """Return a basic subscript of an array, with at least one axis left unless `scalar`."""
    shape = w.env[name].shape
    parts: list[str] = []
    for extent in shape:
        if (scalar or w.chance(0.2)) and extent:
            names = loop_names(w)
            if names and w.chance(0.6):
                shift = w.rng.choice(("", "", "", "", " + 1", " + 1", " - 1"))
                parts.append(w.rng.choice(names) + shift)
            elif w.dynamic and w.chance(0.6):
                at = w.integer()
                parts.append(at if w.chance(0.5) else f"({at}) % {w.extent(extent)}")
            else:
                parts.append(str(w.rng.randrange(-extent, extent)))
        else:
            parts.append(slicing(w, extent))
            if w.chance(0.06):
                parts.append("None")
    if not scalar:
        while len(parts) > 1 and parts[-1] == ":" and w.chance(0.5):
            parts.pop()
        if w.chance(0.06):
            parts[-1:] = ["..."] if parts[-1] == ":" else [*parts[-1:], "..."]
    return f"{name}[{', '.join(parts)}]"


def leaf(w: Writer) -> str:
    """Return an array, part of one, a number, or an element."""
    arrays = [n for n in w.arrays() if w.env[n].ndim]
    pick = w.rng.randrange(10)
    if pick < 4 and arrays:
        return w.rng.choice(arrays)
    if pick < 7 and arrays:
        return subscript(w, w.rng.choice(arrays))
    if pick == 7 and arrays:
        return subscript(w, w.rng.choice(arrays), scalar=True)
    if w.dynamic and pick == 8 and w.chance(0.6):
        return w.integer()
    names = w.scalars()
    return w.rng.choice(names) if names and pick == 8 else constant(w)


def fitting(w: Writer, shape: tuple[int, ...]) -> str:
    """Return part of an array that has the shape, or broadcasts to it; a number where none does."""
    names = w.arrays()
    w.rng.shuffle(names)
    for name in names:
        found = _cut(w, name, shape)
        if found is not None:
            return found
    return constant(w)


def _cut(w: Writer, name: str, shape: tuple[int, ...]) -> str | None:
    have = w.env[name].shape
    if not have:
        return name
    parts: list[str] = []
    extra = len(have) - len(shape)
    if extra > 0:
        parts = [str(w.rng.randrange(e)) if e else "" for e in have[:extra]]
    rest = have[max(extra, 0) :]
    for extent, wanted in zip(rest, shape[len(shape) - len(rest) :]):
        if extent == wanted:
            parts.append(w.rng.choice((":", ":", "::-1")))
        elif extent == 1:
            parts.append(":")
        elif extent > wanted:
            low = w.rng.randrange(extent - wanted + 1)
            parts.append(f"{low}:{low + wanted}")
        else:
            return None
    if "" in parts:
        return None
    return name if all(p == ":" for p in parts) else f"{name}[{', '.join(parts)}]"


def expression(w: Writer, depth: int, shape: tuple[int, ...] | None = None) -> str:
    """Return an expression that has a value here; with a shape, one that broadcasts to it."""
    for _ in range(12):
        text = _expression(w, depth, shape)
        try:
            value = w.evaluate(text)
        except Refused:
            continue
        if isinstance(value, tuple | list | str):
            continue
        if shape is None or _broadcasts(np.shape(value), shape):
            return text
    return constant(w)


def _broadcasts(have: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(have, shape) == shape
    except ValueError:
        return False


def _expression(w: Writer, depth: int, shape: tuple[int, ...] | None) -> str:
    if depth <= 0:
        return leaf(w) if shape is None else fitting(w, shape)
    one = expression(w, depth - w.rng.randrange(1, 3), shape)
    value = w.evaluate(one)
    dtype = np.result_type(value)
    w.reorders |= dtype.kind == "c"
    pick = w.rng.randrange(20)
    if pick >= 9 and dtype.kind == "c":
        return _unary(w, one, value)
    if pick < 9:
        other = _other(w, depth, value)
        ops = BITWISE if dtype.kind in "iub" and w.chance(0.25) else ARITHMETIC
        op = w.rng.choice(ops)
        pair = (one, other) if w.chance(0.7) else (other, one)
        return f"({pair[0]} {op} {pair[1]})"
    if pick < 11:
        return f"({one} {w.rng.choice(COMPARE)} {_other(w, depth, value)})"
    if pick < 13:
        return f"{w.rng.choice(BINARY)}({one}, {_other(w, depth, value)})"
    if pick < 15:
        test = f"({one} {w.rng.choice(COMPARE)} {constant(w, dtype)})"
        return f"np.where({test}, {_other(w, depth, value)}, {_other(w, depth, value)})"
    return _unary(w, one, value)


def _other(w: Writer, depth: int, value: Any) -> str:
    """Return what goes with a value: never complex beside real, which has no order."""
    for _ in range(5):
        text = _any_other(w, depth, value)
        try:
            complex_ = np.asarray(w.evaluate(text)).dtype.kind == "c"
        except Refused:
            continue
        if complex_ <= (np.result_type(value).kind == "c"):
            return text
    return constant(w, np.result_type(value))


def _any_other(w: Writer, depth: int, value: Any) -> str:
    if np.ndim(value) == 0:
        return _expression(w, depth - 2, None)
    if w.chance(0.25):
        return constant(w, np.result_type(value))
    return expression(w, depth - 2, np.shape(value))


def _unary(w: Writer, one: str, value: Any) -> str:
    pick = w.rng.randrange(17) if np.result_type(value).kind != "c" else w.rng.randrange(9, 12)
    array = isinstance(value, np.ndarray)
    if pick >= 12 and array:
        return function_call(w, one, value)
    if pick < 3:
        return f"{w.rng.choice(UNARY)}({one})"
    if pick == 3:
        return f"(~{one})" if np.result_type(value).kind in "iub" else f"(-{one})"
    if pick == 4 and array:
        kind = value.dtype.kind  # out of range, floats become any integer
        types = TYPES if kind in "biu" else SIGNED if w.tier == "E" else FLOATS
        return f"{one}.astype(np.{w.rng.choice(types)})"
    if pick == 5 and array and w.tier != "X":
        power = w.rng.choice((2, 2, 3, 1, 0))
        is_product = power == 3 and value.dtype.kind in "fc"  # of which NumPy takes `pow`
        w.reorders |= is_product
        w.rounds |= is_product
        return f"({one} ** {power})"
    if pick < 8 and array:
        return reduction(w, one, value)
    if pick == 8 and array and value.dtype.itemsize >= 4:  # of smaller ones it is half floats
        return f"np.sqrt(np.abs({one}))"
    if pick == 9 and array and value.dtype.kind == "c":
        return w.rng.choice((f"{one}.real", f"{one}.imag", f"np.conj({one})", f"(-{one})"))
    if pick == 9 and array and value.ndim >= 2:
        return w.rng.choice((f"{one}.T", f"np.flip({one}, 0)", f"np.swapaxes({one}, 0, 1)"))
    if pick == 10 and array:
        return w.rng.choice((f"{one}.copy()", f"{one}.ravel()", f"{one}.reshape(-1)",
                             f"np.roll({one}, 1)", f"{one}[None]"))  # fmt: skip
    return f"{one}[::-1]" if array and value.ndim else one


def function_call(w: Writer, one: str, value: np.ndarray) -> str:
    """Return a call of one of NumPy's functions."""
    if w.dynamic and w.chance(0.4):
        text = w.rng.choice(DYNAMIC)
        return text.format(x=one, p=w.integer(), n=w.extent(value.shape[0] if value.ndim else 1))
    sums = w.chance(0.25)
    template = w.rng.choice(SUMS if sums else EXACT)
    other = _other(w, 1, value) if "{y}" in template else ""
    floats = np.result_type(value).kind in "fc" or "std" in template or "var" in template
    w.reorders |= sums and floats or "median" in template
    w.features.add("function")
    axis = w.rng.randrange(-value.ndim, value.ndim) if value.ndim else 0
    return template.format(x=one, y=other, a=axis, c=w.rng.choice((0, 1, -1, 2)))


def reduction(w: Writer, one: str, value: np.ndarray) -> str:
    """Return a reduction of an array over some axes or all."""
    name = w.rng.choice(REDUCE)
    if value.size == 0 and name not in ("sum", "prod", "any", "all"):
        name = "sum"
    if value.dtype.kind == "f" and name in ("sum", "prod"):
        w.reorders = True
    axis = ""
    if value.ndim and w.chance(0.6):
        axis = f"axis={w.rng.randrange(-value.ndim, value.ndim)}"
    keep = "keepdims=True" if axis and w.chance(0.2) and not name.startswith("arg") else ""
    if w.chance(0.5):
        return f"np.{name}({', '.join(p for p in (one, axis, keep) if p)})"
    return f"{one}.{name}({', '.join(p for p in (axis, keep) if p)})"
