"""The sweep over NumPy's functions: its table is complete, and a small sample of it agrees."""

from __future__ import annotations

import ast
import dis
import inspect
import random

import numpy as np
import pytest

from plusequals.dsl.numpy import registry
from plusequals.dsl.numpy.primitives.ufuncs import OP_OF
from plusequals.dsl.values.call_site import Body, Handler, _signature

from . import sweep
from .agreement import Taken, parted
from .expressions import GROUPS

_TEXTS = [text for rows in GROUPS.values() for _, text in rows]
_IGNORED = {
    ("zeros_like", "subok"), ("ones_like", "subok"), ("empty_like", "subok"),
    ("isin", "assume_unique"), ("einsum", "optimize"), ("argsort", "kind"), ("argsort", "stable"),
}  # fmt: skip
"""Parameters without a meaning of their own: classes of arrays, hints, orders that are allowed."""


def _calls() -> dict[str, tuple[int, set[str]]]:
    """Return how many positions, and which keywords, the calls of each function have."""
    found: dict[str, tuple[int, set[str]]] = {}
    for text in _TEXTS:
        for node in ast.walk(ast.parse(text.replace("; ", "\n"))):
            if isinstance(node, ast.Call):
                path = ast.unparse(node.func)
                name, own = path.rsplit(".", 1)[-1], not path.startswith("np.")
                most, keywords = found.get(name, (0, set()))
                named = {one.arg for one in node.keywords if one.arg}
                found[name] = max(most, len(node.args) + own), keywords | named
    return found


def _table(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Body]]:
    """Return the name and the meaning of everything in the table of functions and methods."""
    rows: list[tuple[str, Body]] = []

    def takes(name: str, body: Body) -> Handler:
        rows.append((name, body))
        return lambda site, args, keywords: args[0]

    monkeypatch.setattr(registry, "takes", takes)
    monkeypatch.setattr(registry, "folds", lambda function, handler: handler)
    functions = {function for function, _ in registry.handlers()}
    assert set(OP_OF) <= functions
    list(registry.methods())
    return rows


def test_each_function_stands_in_the_table_with_each_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, missing = _calls(), []
    for name, body in _table(monkeypatch):
        own = name.rsplit(".", 1)[-1]
        most, keywords = calls.get(own, (0, set()))
        parameters = list(_signature(body).parameters.values())[1:]
        for at, one in enumerate(parameters):
            if one.kind in (one.VAR_POSITIONAL, one.KEYWORD_ONLY):
                told = one.name in keywords or (one.kind == one.VAR_POSITIONAL and most > at)
            else:
                told = at < max(most, 1) or one.name in keywords
            if own not in calls or not told:
                missing.append(f"{name}({one.name})")
    assert missing == []


def test_each_parameter_that_is_taken_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = []
    for name, body in _table(monkeypatch):
        if not inspect.isfunction(body):
            continue  # a text of the language, whose own statements read what it takes
        code = body.__code__
        loads = (one for one in dis.get_instructions(code) if one.opname.startswith("LOAD"))
        read = {one.argval for one in loads} | set(code.co_cellvars)
        taken = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        unread += [(name, one) for one in taken if one not in read and (name, one) not in _IGNORED]
    assert unread == []


FOUND = {
    "+x": "?", "np.gradient(v)": "?", "np.ediff1d(v)": "?", "np.quantile(x, 0.3)": "? c8",
    "np.quantile(v, 1)": "?", "np.percentile(v, k)": "?", "np.polyval(v[:3], u)": "?",
    "np.linalg.slogdet(p)": "f2", "np.linalg.solve(a=p, b=p[0])": "f2",
    "x * t": "f2", "x % t": "f2", "np.multiply(x, t)": "f2", "np.histogram(v, 4, weights=n)": "c8",
    "np.arange(0, 5, 1.5, dtype=np.int32)": "i1", "np.arange(t, 9, t, dtype=np.int32)": "i1",
    "np.arange(1.0, 9.0, t - t)": "i1", "np.linspace(s, s, 3)": "f2 f4", "np.full((), t)": "i1",
    "np.linspace(0, 1, 0, retstep=True)": "i1", "np.full(2, k * 100, x.dtype)": "i1 u1",
    "np.array([k * 100, 1], x.dtype)": "u1", "np.array([[20, -1.5]], dtype=np.uint32)": "i1",
    "np.nan_to_num(x, copy=False); x": "f4 i2 c8", "x ** 0.5": "u1 ?", "np.vdot(v, u)": "?",
    "np.average(v, weights=h)": "u1", "np.take(v, k)": "i8", "np.digitize(v, d)": "f8",
    "np.interp(v, e, u[:len(e)] * 1j)": "f8", "np.cov(v, u)": "f2",
    "np.histogram(v)": "f2", "np.bincount(n, v)": "c8", "np.isin(x, v, kind='table')": "i1 u8",
    "np.histogram(v, 3, range=(0, 4), weights=u, density=True)": "f4 u1", "x[k]": "f8",
    "np.quantile(np.nan_to_num(v), np.float32(0.3))": "f2 i2",
    "np.concatenate((v, u), dtype=np.float64)": "c8",
}  # fmt: skip
"""Rows that once differed from NumPy, and the types of the arrays."""


def test_what_once_differed_is_as_numpy_has_it_or_refused() -> None:
    rows = {text: tolerance for some in GROUPS.values() for tolerance, text in some}
    cases = [
        sweep.Case(rows[text], text, dtype, "small", seed)
        for text, types in FOUND.items()
        for dtype in types.split()
        for seed in (1, 2)
    ]
    found = [f"{v.case}: {v.why}" for v in sweep.check(cases, "numpy") if v.kind == "differs"]
    assert found == []


def test_a_sample_is_what_numpy_gives() -> None:
    cases = sweep.cases_of(_options("--shapes", "both"))
    sample = random.Random(20).sample(cases, 120)
    found = [f"{v.case}: {v.why}" for v in sweep.check(sample, "numpy") if v.kind == "differs"]
    assert found == []


def test_a_small_sample_is_what_numpy_gives_in_c() -> None:
    cases = sweep.cases_of(_options())
    sample = random.Random(21).sample(cases, 24)
    found = [f"{v.case}: {v.why}" for v in sweep.check(sample) if v.kind == "differs"]
    assert found == []


def _options(*arguments: str) -> sweep.argparse.Namespace:
    return sweep.options_of(list(arguments))


_ZEROS = "result: 1 of 1, at (0,) np.float64(-0.0), not np.float64(0.0)"


@pytest.mark.parametrize(
    ("got", "want", "why"),
    [
        (np.float64(1.0), 1.0, "result: np.float64(1.0) is float64, not float 1.0"),
        (np.zeros(2, "f4"), np.zeros(2), "result: float32, not float64"),
        (np.zeros(2), np.zeros(3), "result: shape (2,), not (3,)"),
        (-np.zeros(1), np.zeros(1), _ZEROS),
        ((1, 2), [1, 2], "result: (1, 2), not [1, 2]"),
        ((1, np.nan), (1, np.nan), None),
    ],
)
def test_results_are_told_apart(got: object, want: object, why: str | None) -> None:
    assert parted(Taken(got), Taken(want), 0.0, "exact") == why


def test_memory_that_is_shared_is_told() -> None:
    why = parted(Taken(1, (), ((True,),)), Taken(1, (), ((False,),)), 0.0, "exact")
    assert why == "shares memory with arguments ((True,),), not ((False,),)"


def test_one_case_runs_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = sweep.main(["--types", "f8", "--only", "np.cumsum(x, 1)", "--backend", "numpy"])
    assert status == 0
    assert "1/1 cases" in capsys.readouterr().out
