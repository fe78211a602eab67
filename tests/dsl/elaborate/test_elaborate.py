"""A whole function: what it returns, which parameters become static, what it depends on."""

from __future__ import annotations

import types

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.elaborate.typed import Argument, Constant, Many, New, Strided
from plusequals.dsl.values.values import Path
from plusequals.lowering.ir.assignments import Let
from tests.language.ask import run

from .scenes import found, typed

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        ("pass", Constant(None)),
        ("return 3", Constant(3)),
        ("return x", Argument(Path("x"), None)),
        ("y = x\nreturn y", Argument(Path("x"), None)),
        ("return x[1:, ::2]", Argument(Path("x"), Strided(4, (2, 2), (4, 2)))),
        ("return x.T", Argument(Path("x"), Strided(0, (4, 3), (1, 4)))),
        ("return x[::-1]", Argument(Path("x"), Strided(8, (3, 4), (-4, 1)))),
        ("return x + 1.0", New(0, None, None)),
        ("y = x + 1.0\nreturn y, y[0]",
         Many((New(0, None, None), New(0, Strided(0, (4,), (1,)), None)), "tuple")),
        ("return np.broadcast_to(x[0], (2, 4))",
         Argument(Path("x"), Strided(0, (2, 4), (0, 1), False))),
        ("return np.broadcast_to(x[0] + 1, (2, 4))", New(0, None, None)),
    ],
)  # fmt: skip
def test_what_is_returned_is_told_by_reference(body: str, returns: object) -> None:
    assert typed("x", body, X).returns == returns


def test_a_returned_number_has_a_kind() -> None:
    returned = typed("x", "return x[0, 0] * 2.0", X).returns
    assert isinstance(returned, New) and repr(returned.kind) == "float64"


def test_written_parameters_are_marked() -> None:
    form = typed("x, y", "x[0] = y[0]", X.copy(), X)
    assert [(p.node.label, p.written) for p in form.procedure.parameters] == [
        ("x", True), ("y", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "statics"),
    [
        ("return x[n]", set()),
        ("return x * n", set()),
        ("for i in range(n):\n    x[i, 0] = 1.0", set()),
        ("y[i] = x[n * i, 0]\nreturn y", {"n"}),
        ("return np.zeros(n)", {"n"}),
        ("return x.sum(axis=n)", {"n"}),
        ("y[i] = sum[k in range(n)](x[i, k])\nreturn y", {"n"}),
        ("if n > 1:\n    return x\nreturn x + 1.0", {"n"}),
    ],
)
def test_an_integer_becomes_static_where_its_number_is_needed(body: str, statics: set[str]) -> None:
    assert typed("x, n", body, X, 1).statics == statics


def test_run_time_integers_are_read_once_at_the_start() -> None:
    form = typed("x, n", "x[n] = x[n - 1]\nx[n, 0] = 0.0", X, 1)
    assert len(found(form.procedure, Let)) == 1
    assert isinstance(form.procedure.body[0], Let)


def test_what_is_captured_is_watched() -> None:
    own = types.SimpleNamespace(w=X, unused=3)
    form = typed("x", "x[0] = own.w[0] * k", X, own=own, k=2.0, other=1)
    watched = {str(path) for path in form.used if path.captured}
    assert {"own.w", "k"} <= watched and not watched & {"other", "own.unused"}
    assert form.passed == (Path("x"), Path("own", ("w",), True))


@pytest.mark.parametrize(
    "body",
    [
        "w = x * 2\nreturn w",
        "w, v = x, 1\nreturn v",
        "w = 0.0\nw += x[0, 0]\nreturn w",
        "w = x.copy()\nw[0] = 1.0\nreturn w",
        "for w in x:\n    pass",
        "w: f64[2]\nw[i] = 1.0\nreturn w",
        "def w(v):\n    return v + 1\nreturn w(x)",
        "if x.shape[0] > 5:\n    w = 1\nreturn x",
    ],
)
def test_a_name_that_is_assigned_plainly_is_no_matter_of_what_is_around(body: str) -> None:
    alone, around = typed("x", body, X), typed("x", body, X, w=np.zeros(3))
    assert alone.procedure == around.procedure
    for form in (alone, around):
        assert not {name for _, name in form.read} & {"w", "v"}
        assert not [path for path in form.used if path.captured and path.root in "wv"]


def test_a_name_written_in_parts_alone_is_no_input_where_it_is_nothing() -> None:
    found = typed("x", "w[i] = x[0, i]\nreturn w", X)
    assert found.alone == {"w"}
    assert [path.root for path in found.used if path.captured] == ["i"]  # the letter's role


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("w[0] = 1.0", "CD0207"),
        ("w += 1.0", "CD0207"),
        ("w[:] = x[0, 0]", "CD0207"),
        ("return lambda: 1", "CD0434"),
        ("return x[x > 2.0]", "CD0403"),
    ],
)
def test_what_a_function_cannot_be_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X, w=np.zeros(3))


def test_annotations_of_parameters_are_contracts_that_share_sizes() -> None:
    run("numpy", "x: f64[n, m], y: f64[m]", "x[0] = y", X.copy(), np.zeros(4))
    with pytest.raises(CdError, match="size `m` of `y` is not that of `x`"):
        run("numpy", "x: f64[n, m], y: f64[m]", "x[0] = y", X, np.zeros(3))
    run("numpy", "x: 'whatever a checker knows'", "x[0] = 1.0", X.copy())


def test_a_captured_list_is_not_written() -> None:
    scope = {"la": [np.ones(3)], "d": {"a": np.ones(3)}}
    for text, what in (("la[0][:] = x", "a list"), ("d['a'] = x", "a dict")):
        f = pe.cd_from_source(f"def f(x):\n    {text}\n", scope, backend="numpy")
        with pytest.raises(pe.CdError, match=f"CD0207.*is {what} around the function"):
            f(np.ones(3))
