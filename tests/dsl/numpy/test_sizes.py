"""Functions of several arrays whose sizes may not fit: what NumPy raises is raised, nothing is read
out of bounds. The interpreter, which raises CD0991 on an access outside of an array, is the oracle.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdInternalError
from plusequals.dsl.numpy import registry
from plusequals.dsl.numpy.primitives.accumulate import UPDATES
from tests.compare import assert_same

CALLS: dict[str, tuple[str, ...]] = {
    "where": ("np.where(p > 2, q, 0.0)", "np.where(p > 2, p, q)"),
    "clip": ("np.clip(p, q, 9.0)", "np.clip(p, 0.0, q)"),
    "select": ("np.select([p > 2], [q])", "np.select([p > 2, q > 1], [p, q], 1.0)"),
    "isclose": ("np.isclose(p, q)",),
    "allclose": ("np.allclose(p, q)",),
    "array_equal": ("np.array_equal(p, q)",),
    "nan_to_num": ("np.nan_to_num(p, nan=q)",),
    "sum": ("np.sum(p, initial=q)",),
    "prod": ("np.prod(p, initial=q)",),
    "max": ("np.max(p, initial=q)",),
    "min": ("np.min(p, initial=q)",),
    "average": ("np.average(p, weights=q)", "np.average(P, 0, q)", "np.average(R, 1, q)",
                "np.average(P, weights=Q)"),
    "cov": ("np.cov(p, q)", "np.cov(P, Q)", "np.cov(R, q)"),
    "corrcoef": ("np.corrcoef(p, q)",),
    "gradient": ("np.gradient(p, q)",),
    "convolve": ("np.convolve(p, q)", "np.convolve(p, q, 'same')", "np.convolve(p, q, 'valid')"),
    "correlate": ("np.correlate(p, q)", "np.correlate(p, q, 'full')", "np.correlate(q, p, 'same')"),
    "polyval": ("np.polyval([1.0, 2.0], p) + q", "np.polyval(R, q)"),
    "trapezoid": ("np.trapezoid(p, q)", "np.trapezoid(P, q, axis=0)", "np.trapezoid(R, q)",
                  "np.trapezoid(p, dx=q)", "np.trapezoid(p, P[:, 0] if 0 else q)",
                  "np.trapezoid(p > 1, q)"),
    "linspace": ("np.linspace(p, q, 3)",),
    "logspace": ("np.logspace(p, q, 3)",),
    "stack": ("np.stack([p, q])", "np.stack([P, Q], 1)"),
    "concatenate": ("np.concatenate([P, Q], 1)", "np.concatenate([P, Q])"),
    "hstack": ("np.hstack([P, Q])", "np.hstack([p, q])"),
    "vstack": ("np.vstack([p, q])", "np.vstack([R, q])"),
    "dstack": ("np.dstack([p, q])",),
    "column_stack": ("np.column_stack([p, q])", "np.column_stack([P, q])"),
    "append": ("np.append(p, q)", "np.append(P, Q, 1)"),
    "block": ("np.block([[P, Q]])", "np.block([[R], [S]])"),
    "fill_diagonal": ("np.fill_diagonal(P, q)",),
    "pad": ("np.pad(P, q.astype(int))", "np.pad(p, 1, constant_values=q)"),
    "roll": ("np.roll(P, p.astype(int), q.astype(int))",),
    "take": ("np.take(p, np.arange(q.size))",),
    "take_along_axis": ("np.take_along_axis(P, np.argsort(Q, 1), 1)",
                        "np.take_along_axis(P, np.argsort(Q, 0), 0)"),
    "copyto": ("np.copyto(p, q)", "np.copyto(P, Q)", "np.copyto(P, q[:, None])"),
    "full": ("np.full(p.shape, q)", "np.full((2, p.size), q)"),
    "full_like": ("np.full_like(p, q)",),
    "meshgrid": ("np.meshgrid(p, q)", "np.meshgrid(P, q)"),
    "matmul": ("np.matmul(p, q)", "np.matmul(R, Q)", "np.matmul(R, q)", "np.matmul(q, P)",
               "P.reshape(-1, 3, 1) @ Q.reshape(-1, 1, 3)"),
    "dot": ("np.dot(p, q)", "np.dot(R, Q)", "p.dot(q)", "np.dot(R, q)", "np.dot(p, Q)"),
    "inner": ("np.inner(p, q)", "np.inner(R, S)", "np.inner(R, q)"),
    "outer": ("np.outer(p, q)",),
    "vdot": ("np.vdot(p, q)", "np.vdot(P, Q)", "np.vdot(P, q)"),
    "vecdot": ("np.vecdot(p, q)", "np.vecdot(R, S)", "np.vecdot(R, q)", "np.vecdot(P, Q)"),
    "matvec": ("np.matvec(R, q)", "np.matvec(R, S)", "np.matvec(P, Q)"),
    "tensordot": ("np.tensordot(p, q, 1)", "np.tensordot(P, Q)", "np.tensordot(P, Q, ([0], [0]))",
                  "np.tensordot(R, Q, 1)", "np.tensordot(P, S, ([0, 1], [1, 0]))"),
    "einsum": ("np.einsum('i,i', p, q)", "np.einsum('ij,ij->i', P, Q)", "np.einsum('ii', R[:, :3])",
               "np.einsum('ij,jk->ik', R, Q)", "np.einsum('i,i->i', p, q)"),
    "kron": ("np.kron(p, q)", "np.kron(P, q)"),
    "cross": ("np.cross(P, Q)", "np.cross(P, q)"),
    "linalg.multi_dot": ("np.linalg.multi_dot([R, Q, S])", "np.linalg.multi_dot([p, Q, S])"),
    "linalg.cross": ("np.linalg.cross(P, Q)",),
    "linalg.outer": ("np.linalg.outer(p, q)",),
    "linalg.matmul": ("np.linalg.matmul(R, Q)",),
    "linalg.tensordot": ("np.linalg.tensordot(p, q, axes=1)",),
    "linalg.solve": ("np.linalg.solve(np.eye(p.size), q)", "np.linalg.solve(np.eye(p.size), Q)"),
    "searchsorted": ("np.searchsorted(p, q)", "np.searchsorted(p, Q)"),
    "digitize": ("np.digitize(p, q)",),
    "quantile": ("np.quantile(p, q / (1 + q))", "np.quantile(P, q / (1 + q), axis=0)"),
    "percentile": ("np.percentile(p, q)",),
    "histogram": ("np.histogram(p, 3, weights=q)", "np.histogram(p, q)",
                  "np.histogram(P, 2, weights=Q)", "np.histogram(P, 2, weights=S)",
                  "np.histogram(p, q, weights=p)"),
    "bincount": ("np.bincount(p.astype(int), weights=q)", "np.bincount(p.astype(int), weights=Q)"),
    "interp": ("np.interp(p, q, q)", "np.interp([0.5, 1.5], p, q)", "np.interp(0.5, q, p + 0.0)"),
    "partition": ("np.partition(p, q.size - 1)[q.size - 1]",),
    "argpartition": ("p[np.argpartition(p, (0, q.size - 1))[q.size - 1]]",),
    "lexsort": ("np.lexsort((p, q))", "np.lexsort((q, p, q))"),
    "isin": ("np.isin(p, q)", "np.isin(P, q)"),
    "unravel_index": ("np.unravel_index(p.astype(int), (q.size, 2))",),
    "ediff1d": ("np.ediff1d(p, to_end=q)",),
    "unwrap": ("np.unwrap(p, q)", "np.unwrap(p, period=1 + q)"),
    "ix_": ("P[np.ix_(p.astype(int) % 2, q.astype(int) % 3)]",),
    "broadcast_to": ("np.broadcast_to(p, q.shape)", "np.broadcast_to(p, (2, q.size))"),
    "reshape": ("np.reshape(p, q.shape)", "np.reshape(P, (3, q.size))"),
    "lib.stride_tricks.sliding_window_view": (
        "np.lib.stride_tricks.sliding_window_view(p, q.size)",),
    "split": ("np.split(p, [1, q.size])",),
    "array_split": ("np.array_split(p, [q.size, 1])",),
    "hsplit": ("np.hsplit(p, [q.size])",),
    "vsplit": ("np.vsplit(P, [1, q.size])",),
    "tile": ("np.tile(p, q.size)",),
    "repeat": ("np.repeat(p, q.size)",),
}  # fmt: skip
"""Function -> calls of it on arrays of two sizes: `p` of n, `q` of m, matrices `P` of (n, 3), `Q`
of (m, 3), `R` of (3, n), `S` of (3, m)."""

ONE_ARRAY = frozenset(
    """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
    complex128 isposinf isneginf round around fix real imag angle sinc amax amin any all argmax
    argmin mean var std ptp count_nonzero nansum nanprod nanmax nanmin nanmean nanvar nanstd cumsum
    cumprod diff cumulative_sum transpose matrix_transpose swapaxes moveaxis ravel expand_dims
    squeeze atleast_1d atleast_2d atleast_3d flip fliplr flipud rot90 diagonal triu tril diag zeros
    ones empty zeros_like ones_like empty_like array asarray ascontiguousarray copy ndarray arange
    eye identity tri indices dtype shape ndim size iscomplexobj isrealobj isscalar result_type trace
    linalg.matrix_power linalg.norm linalg.trace linalg.diagonal linalg.vector_norm
    linalg.matrix_norm linalg.inv linalg.det linalg.cholesky linalg.slogdet sort argsort median
    nancumsum nancumprod vander diag_indices triu_indices tril_indices hanning hamming blackman
    bartlett modf
    """.split()
)
"""Functions of one array, or of numbers: no sizes that could differ."""


def _functions() -> Iterator[tuple[str, object]]:
    """Yield each function of the table that is no method of a ufunc, with its name."""
    for function, _ in registry.handlers():
        if not isinstance(getattr(function, "__self__", None), np.ufunc):
            module, name = getattr(function, "__module__", "numpy"), function.__name__
            yield f"{module}.{name}".removeprefix("numpy."), function


def _expressions() -> list[str]:
    """Return all calls: of the functions in `CALLS`, and of all ufuncs of two operands."""
    calls = [expression for each in CALLS.values() for expression in each]
    for name, function in _functions():
        if isinstance(function, np.ufunc) and function.nin == 2 and not function.signature:
            whole = name.startswith(("bitwise", "left", "right"))
            left, right = ("p.astype(int)", "q.astype(int)") if whole else ("p", "q")
            calls.append(f"np.{name}({left}, {right})")
            if function.nout == 1:
                calls.append(f"np.{name}.outer({left}, {right})")
    for ufunc in UPDATES:
        whole = ufunc.__name__.startswith(("bitwise", "left", "right"))
        if not whole:
            calls.append(f"np.{ufunc.__name__}.at(p, np.arange(p.size), q)")
    return calls


def test_every_function_of_several_arrays_is_called_here() -> None:
    known = {*CALLS, *ONE_ARRAY}
    others = {
        name
        for name, function in _functions()
        if not (isinstance(function, np.ufunc) and not function.signature)
    }
    assert others - known == set()
    assert known - others - {"modf"} == set()


def _arrays(n: int, m: int) -> dict[str, np.ndarray]:
    p, q = np.arange(float(n)), np.arange(float(m))
    return {
        "p": p, "q": q, "P": p[:, None] + np.arange(3.0), "Q": q[:, None] + np.arange(3.0),
        "R": p - np.arange(3.0)[:, None], "S": q - np.arange(3.0)[:, None],
    }  # fmt: skip


def _outcome(function: Callable[..., Any], args: list[np.ndarray]) -> tuple[Any, Exception | None]:
    """Return the result of a call with the arguments after it, or what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return (function(*args), args), None
        except Exception as raised:
            return None, raised


def _check(expression: str, compiled: Callable[..., Any], sizes: tuple[int, int]) -> None:
    """Assert that a call gives what NumPy gives, or raises; and raises where NumPy does."""
    arrays = _arrays(*sizes)
    names = _names(expression)
    scope: dict[str, Any] = {"np": np}
    exec(_text(expression), scope)
    wanted, refused = _outcome(scope["f"], [arrays[name].copy() for name in names])
    found, raised = _outcome(compiled, [arrays[name].copy() for name in names])
    where = f"{expression} of sizes {sizes}"
    assert raised is None or isinstance(raised, pe.CdError), f"{where}: {raised!r}"
    assert not isinstance(raised, CdInternalError), f"{where}: {raised}"
    if refused is not None:
        assert raised is not None, f"{where}: {found}, where NumPy raises {refused!r}"
    elif raised is None:
        assert_same(found, wanted, 1e-12, where)


def _names(expression: str) -> list[str]:
    words = "".join(c if c.isidentifier() else " " for c in expression).split()
    return [name for name in _arrays(2, 2) if name in words]


def _text(expression: str) -> str:
    return f"def f({', '.join(_names(expression))}):\n    return {expression}\n"


def _compiled(expression: str) -> Callable[..., Any]:
    return pe.cd_from_source(_text(expression), globals={"np": np}, backend="numpy")


STATIC = ((3, 4), (4, 3), (3, 1), (1, 3), (2, 5), (5, 2), (0, 3), (3, 0), (3, 3))
DYNAMIC = ((9, 7), (7, 9), (2, 8), (8, 2), (11, 12), (10, 10))
FEW = 3
"""How many of the sizes the ufuncs, which are all broadcast by one function, are called with."""


def _sizes(expression: str, sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    of_tables = any(expression in calls for calls in CALLS.values())
    return sizes if of_tables else sizes[:: len(sizes) // FEW]


@pytest.mark.parametrize("expression", _expressions())
def test_static_sizes_that_do_not_fit_are_refused(expression: str) -> None:
    for sizes in _sizes(expression, STATIC):
        _check(expression, _compiled(expression), sizes)


@pytest.mark.parametrize("expression", _expressions())
def test_dynamic_sizes_that_do_not_fit_are_refused(expression: str) -> None:
    compiled = _compiled(expression)
    for size in (3, 4, 5, 6, 7):  # the sizes become dynamic at the fourth
        _check(expression, compiled, (size, size))
    for sizes in _sizes(expression, DYNAMIC):
        _check(expression, compiled, sizes)
