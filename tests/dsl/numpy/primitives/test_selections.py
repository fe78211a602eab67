"""Masked selections in every function that takes them, against NumPy.

A mask of each rank, at each position of arrays of ranks 1 to 3: its axes are one axis of unknown
length. What keeps that axis is summed along it.
"""

from __future__ import annotations

import copy
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import plusequals as pe

SHAPES = ((5,), (3, 4), (2, 3, 4))
PLACES = [
    (shape, spanned, start)
    for shape in SHAPES
    for spanned in range(1, len(shape) + 1)
    for start in range(len(shape) - spanned + 1)
]
FUNCTIONS = (
    "sum", "prod", "mean", "var", "max", "min", "ptp", "any", "all", "count_nonzero",
    "median", "quantile(S, 0.3", "quantile(S, [0.3, 0.5]", "quantile(S, w[:2] / 9",
    "quantile(S, 1", "sum(S.astype(np.int8)", "mean(S.astype(np.float32)",
    "sum(S > 1", "max(S, initial=3", "sum(S, initial=2, where=S > 0", "mean(S, where=S > 0",
    "sum(S, dtype=np.float32", "median(S.astype(np.int8)", "sum(2 * S - S ** 2",
)  # fmt: skip
METHODS = (
    "S.sum(axis=A)", "S.mean(A)", "S.std(A, ddof=1)", "S.max(axis=A)", "S.any(axis=A)",
    "np.add.reduce(S, axis=A)", "np.maximum.reduce(S, axis=A)", "np.logical_or.reduce(S, axis=A)",
    "S.sum(axis=A) / len(S)", "np.sum((S - S.mean(axis=A, keepdims=True)) ** 2, axis=A)",
)  # fmt: skip
OTHERS = (
    "len(S), S.shape, S.ndim, S.size, np.shape(S), np.ndim(S), np.size(S)",
    "S.size * np.float32([1]), len(S) * np.float32([1]), S.shape[S.ndim - 1] * np.float32([1])",
    "np.zeros(len(S)), np.zeros(S.shape), S.dtype, S.itemsize",
    "np.add.reduce(S) if S.ndim == 1 or START == 0 else 0",
    "np.sum(S), S.sum() / len(S), np.median(S), np.any(S == 2), np.allclose(S, S)",
    "math.prod(S) if S.ndim == 1 else 0, max(S) if S.ndim == 1 else 0",
    "np.sum(np.where(S > 0, S, 0)), np.clip(S, 0, 2).sum(), np.isnan(S).any(), abs(S).max()",
)


def _run(text: str, args: tuple[Any, ...], backend: str = "numpy") -> None:
    """Hold a function against plain Python: its results, and its arguments after the call."""
    names = {"np": np, "math": math}
    plain: dict[str, Any] = dict(names)
    exec(text, plain)
    wanted_args, found_args = copy.deepcopy(args), copy.deepcopy(args)
    wanted = plain["f"](*wanted_args)
    with pe.override(optimize=0), np.errstate(all="ignore"):
        found = pe.cd_from_source(text, names).on(backend)(*found_args)
    _agree(found, wanted)
    for given, expected in zip(found_args, wanted_args, strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-14)


def _agree(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for item, expected in zip(found, wanted, strict=True):
            _agree(item, expected)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        rtol = 1e-5 if wanted.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-12)
    else:
        assert found == wanted


def _given(shape: tuple[int, ...], spanned: int, start: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(spanned + 3 * start)
    mask = rng.random(shape[start : start + spanned]) < 0.6
    mask.flat[:2] = True, False
    return rng.integers(-5, 9, shape).astype(float), mask, np.arange(1.0, shape[-1] + 1)


def _selection(start: int) -> str:
    return f"a[{':, ' * start}m]"


def _axes(rank: int) -> list[Any]:
    pairs = combinations(range(rank), 2)
    return [None, *range(rank), -1, *pairs, *([(-1, 0)] if rank > 1 else [])]


def _reduced(call: str, axis: Any, start: int, rank: int, keepdims: bool, added: int = 0) -> str:
    """Return a call, summed along the selected axis where its result has that."""
    over = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {n % rank for n in over}
    if start in gone:
        return call
    at = start + added - (0 if keepdims else sum(n < start for n in gone))
    return f"np.sum({call}, axis={at})"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("shape", "spanned", "start"), PLACES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_reductions(function: str, shape: tuple[int, ...], spanned: int, start: int) -> None:
    call = f"np.{function}" if "(" in function else f"np.{function}(S"
    added = int("[" in function)
    rank = len(shape) - spanned + 1
    calls = [
        _reduced(f"{call}, axis={axis}, keepdims={keeps})", axis, start, rank, keeps, added)
        for axis in _axes(rank)
        for keeps in (False, True)
    ]
    body = ", ".join(calls).replace("S", _selection(start))
    _run(f"def f(a, m, w):\n    return {body}\n", _given(shape, spanned, start))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("shape", "spanned", "start"), PLACES)
def test_methods_and_ufuncs(shape: tuple[int, ...], spanned: int, start: int) -> None:
    rank = len(shape) - spanned + 1
    calls = [
        _reduced(call.replace("A", str(axis)), axis, start, rank, False)
        for call in METHODS
        for axis in range(rank)
        if not (call.endswith("len(S)") and axis != start)
    ]
    body = ", ".join(calls).replace("S", _selection(start))
    _run(f"def f(a, m, w):\n    return {body}\n", _given(shape, spanned, start))


@pytest.mark.parametrize(("shape", "spanned", "start"), PLACES)
@pytest.mark.parametrize("body", OTHERS)
def test_shapes_and_elements(body: str, shape: tuple[int, ...], spanned: int, start: int) -> None:
    text = body.replace("START", str(start)).replace("S.", f"{_selection(start)}.")
    for before in "( -*":
        text = text.replace(f"{before}S", f"{before}{_selection(start)}")
    _run(f"def f(a, m, w):\n    return {text}\n", _given(shape, spanned, start))


@pytest.mark.parametrize(("shape", "spanned", "start"), PLACES)
@pytest.mark.parametrize(
    "body",
    [
        "S = 7", "S *= 2", "S = S * 2 - 1", "S += S", "S **= 2", "S = [7]", "S = w[0]",
        "S += w[:1]", "S -= S.mean()", "S -= S.mean(axis=START, keepdims=True)",
        "S /= 1 + abs(S).max(axis=-1, keepdims=True)", "np.add.at(a, (AT), 3)",
        "x = S; S = 0; a[...] += x.sum()", "x = S; x += 1; a[...] -= x.sum()",
        "S = a[::-1][AT]",
    ],
)  # fmt: skip
def test_stores(body: str, shape: tuple[int, ...], spanned: int, start: int) -> None:
    rank = len(shape) - spanned + 1
    if "axis=-1" in body and rank - 1 == start:
        body = body.replace("abs(S).max(axis=-1, keepdims=True)", "2")
    if "[::-1]" in body and start + spanned < len(shape) and not start:
        body = body.replace("[::-1]", "[..., ::-1]")
    at = f"{'slice(None), ' * start}m"
    body = body.replace("AT", at if "add.at" in body else f"{':, ' * start}m")
    body = body.replace("(m)", "m").replace("START", str(start)).replace("S", _selection(start))
    body = body.replace("; ", "\n    ")
    _run(f"def f(a, m, w):\n    {body}\n    return a.sum()\n", _given(shape, spanned, start))


TRAILING = (
    "return np.sum(a[m] * w), np.sum(a[m] * w, axis=0), np.sum(w[None] - a[m]), (w + a[m]).shape",
    "return np.sum(a[m], axis=0, where=w > 2), np.sum(a[m, 0] * a[m, 1]), len(a[m, :2])",
    "return np.sum(a[m] * a[m, 0, None], axis=0), np.sum(a[m] / a[m].sum(axis=1, keepdims=True))",
    "return np.sum([1, 2, 3, 4] * a[m], axis=0), np.sum((1, 2, 3, 4) - a[m], axis=0)",
    "return np.sum(a[:, w > 2] * a[:, :1], axis=1), np.sum(a[:2, w > 2] + [[1], [2]], axis=1)",
    "a[m] = w; return a",
    "a[m] += w; a[:, w > 2] -= a[:, :1]; return a",
    "a[m] = a[0] * 2; a[m, 1:3] = w[:2]; a[m, 0] += 1; return a",
    "a[m] = a[m].sum(axis=1, keepdims=True); a[:, 0][m] = a[m].max(axis=1); return a",
    "v = a[m]; v += w; t = v * 2; t *= 2; a[m] = v; return v.sum(axis=0), t.mean(axis=0), a",
    "v = a[m].sum(axis=1); return len(v), v.shape, v.sum(), np.median(v), v.max()",
    "c = a[w[:3] > 1]; return c.sum(axis=0) / c.shape[0], np.mean(np.mean(c, axis=1))",
)


@pytest.mark.parametrize("body", TRAILING)
def test_the_other_axes_broadcast(body: str, backend: str) -> None:
    args = np.arange(12.0).reshape(3, 4) - 5, np.array([True, False, True]), np.arange(1.0, 5)
    _run(f"def f(a, m, w):\n    {body}\n", args, backend)


@pytest.mark.parametrize(
    "subscript",
    [
        "0, :, r", "0, ..., r", ":, 0, ..., r", ":, 0, r", "r3, ..., 0", ":, q, 0", ":, q, None, 0",
        "None, 0, q", "..., r", "1:, q, 1:3", ":, q, ::-1", "0, q, :2", "r3, :, 1", "0, 1, r",
    ],
)  # fmt: skip
def test_the_selected_axis_is_where_numpy_has_it(subscript: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    masks = np.array([1, 0, 1, 1], bool), np.array([1, 0, 1], bool), np.array([False, True])
    expr = f"x[{subscript}]"
    at = x[subscript_of(subscript, *masks)].shape
    counts = {int(mask.sum()) for mask in masks}
    text = f"return {expr}.shape, {expr}.sum(), len({expr}), {expr}.size"
    assert set(at) & counts
    _run(f"def f(x, r, q, r3):\n    {expr} += 1\n    {text}\n", (x, *masks))


def subscript_of(text: str, r: np.ndarray, q: np.ndarray, r3: np.ndarray) -> Any:
    """Return a subscript from its text."""
    return eval(f"np.s_[{text}]", {"np": np, "r": r, "q": q, "r3": r3})


@pytest.mark.parametrize("subscript", [":, 0, ..., k", "0, ..., k", "k, ..., 0", ":, k, None, 0"])
def test_gathers_beside_an_ellipsis_come_first(subscript: str) -> None:
    args = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0])
    _run(f"def f(x, k):\n    return x[{subscript}]\n", args)


REFUSED = (
    ("return a[m]", "CD0403"), ("return np.sum(a[m], axis=1)", "CD0403"),
    ("return np.median(a[m], axis=1)", "CD0403"), ("return np.sum(a[a > 0], axis=1)", "CD0446"),
    ("return np.sum(a[m], axis=2)", "CD0446"), ("return a[m] * w[:3, None]", "CD0403"),
    ("return np.sum(a[m] * a)", "CD0403"), ("return np.sum(a[m] * a[m, 0])", "CD0403"),
    ("return np.sum(a[m, 0], where=m)", "CD0403"), ("a[m] = a", "CD0403"),
    ("a[m, 0] = w", "CD0403"), ("a[a > 0] = w", "CD0403"), ("a[m] @= w", "CD0403"),
    ("np.add(a[m], 1, out=a[m])", "CD0462"), ("return sum(a[m])", "CD0553"),
    ("return np.max(a[m & (w[:3] > 9)], axis=0)", "CD0459"),
    ("return np.bincount(a[m].astype(int), minlength=9)", "CD0458"),
    ("return np.argmax(a[m], axis=1)", "CD0403"), ("return np.max(a[m, 0], where=m)", "CD0403"),
)  # fmt: skip


@pytest.mark.parametrize(("body", "code"), REFUSED)
def test_what_is_refused(body: str, code: str) -> None:
    names = {"np": np, "math": math}
    function = pe.cd_from_source(f"def f(a, m, w):\n    {body}\n", names, backend="numpy")
    with pytest.raises(pe.CdError) as caught:
        function(np.arange(12.0).reshape(3, 4), np.array([True, False, True]), np.arange(4.0))
    assert caught.value.code == code


@pytest.mark.parametrize("given", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("function", ["sum", "max", "median"])
def test_results_are_in_the_memory_order_of_numpy(
    function: str, keepdims: bool, given: Any
) -> None:
    for start in range(3):
        x = given(np.arange(24.0).reshape(2, 3, 4))
        mask = np.arange(x.shape[start]) != 1
        call = f"np.{function}({_selection(start)}, axis={start}, keepdims={keepdims})"
        _run(f"def f(a, m):\n    y = {call}\n    y.ravel()[0] = 99\n    return y\n", (x, mask))


def test_a_maximum_under_a_mask_for_each_point() -> None:
    text = "def f(x, t, y):\n    y[i] = x[x > t[i]].max()\n    return y\n"
    function = pe.cd_from_source(text, {"np": np, "i": pe.idx.i}, backend="numpy")
    x = np.arange(4.0)
    np.testing.assert_array_equal(function(x, np.array([2.5, -1.0]), np.zeros(2)), [3.0, 3.0])
    with pytest.raises(pe.CdError, match="CD0459"):
        function(x, np.array([2.5, 3.0]), np.zeros(2))
