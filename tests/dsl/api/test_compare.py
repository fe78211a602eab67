"""One call that finds where backends, or stages, part. Eleven planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.runtime import device
from plusequals.backends.runtime.transfer import merge_copy
from plusequals.lowering import pipeline
from plusequals.lowering.ir import loops
from plusequals.lowering.ir.assignments import Access, Assign, Procedure
from plusequals.lowering.ir.dtypes import bool_
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Position, Read, Select, rebuild
from plusequals.lowering.ir.indexing import Affine, const, var
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.rewrite import map_statements
from plusequals.lowering.ir.walk import statements
from tests.language.index_functions import merge_grad, set_grad

from ..tracing.functions import CALLS, matrix, softmax, steps

TEXT = """def f(x, y, w):
    t = x * 2 - 1
    y[i, j] = t[i, j] - w[j]
    s = y.sum(axis=1)
    y[i, j] /= s[i]
    return y.max()
"""


ELEMENTARY = """def f(x, y):
    t[i] = np.exp(x[i]) + np.sin(x[i]) ** 2.5
    y[i] = np.log(t[i]) - x[i]
    s = y.sum()
    y[i] = np.tanh(y[i] * s) / t[i]
    return y
"""


def test_elementary_functions_may_differ_in_their_last_bits() -> None:
    f = pe.cd_from_source(ELEMENTARY, {"np": np})
    args = np.linspace(0.1, 3.0, 301), np.zeros(301)
    found = pe.compare(f, args)
    assert found and "agree in all" in str(found)
    exact = pe.compare(f, args, rtol=0)
    assert not exact and exact.difference is not None, "NumPy's and ours differ in some bit"
    for line, factor in ((2, 1 + 1e-13), (3, 1 + 1e-12), (4, 1 + 1e-12)):
        with planted(line, lambda one, by=factor: replace(one, value=_times(one.value, by))):
            wrong = pe.compare(pe.cd_from_source(ELEMENTARY, {"np": np}), args)
        assert wrong.difference is not None, line
        record = wrong.difference.records[0]
        assert record is not None and record.line == line


@pytest.mark.parametrize("text", ["abs(z)", "np.sign(z)", "np.sqrt(z)", "abs(z).max()"])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_complex_functions_may_differ_in_their_last_bits(text: str, dtype: type) -> None:
    rng = np.random.default_rng(3)
    z = (rng.standard_normal(200) * 5 + 1j * rng.standard_normal(200)).astype(dtype)
    f = pe.cd_from_source(f"def f(z):\n    return {text}", {"np": np})
    assert pe.compare(f, (z,))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return np.vander(np.exp(x[:6]))", {}),
        ("return np.vander(np.exp(x[:6].astype(np.float32)))", {}),
        ("return np.exp(x.astype(np.float32)).astype(np.float64)", {}),
        ("return np.interp(np.exp(-x), np.sort(x), np.sin(x))", {}),
        ("t = np.exp(x)\n    return t * 2.0", {"arrays": "result"}),
        (
            "s = 1.0\n    for k in range(23):\n        s = s * np.exp(x[k])\n    return s + 0.5",
            {"arrays": "result"},
        ),
        (
            "s = 1.0\n    for k in range(len(x)):\n        s = s * np.exp(x[k])\n        y = s + 1"
            "\n    return y",
            {"arrays": "y"},
        ),
    ],
)
def test_statements_that_are_not_recorded_may_differ_too(body: str, wanted: dict[str, str]) -> None:
    x = np.abs(np.random.default_rng(3).standard_normal(60))
    f = pe.cd_from_source(f"def f(x):\n    {body}", {"np": np})
    assert not pe.compare(f, (x,), rtol=0, **wanted)
    found = pe.compare(f, (x,), **wanted)
    assert found, found
    last = 1 + len(body.splitlines())
    with planted(last, with_value(lambda value: _times(value, 1 + 1e-4))):
        assert not pe.compare(pe.cd_from_source(f"def f(x):\n    {body}", {"np": np}), (x,))


def _times(value: Expr, factor: float) -> Expr:
    return Apply(OPS["mul"], (value, Const(factor, value.dtype)), value.dtype)


def call() -> tuple[np.ndarray, ...]:
    return matrix() + 1, matrix() * 0, np.arange(4.0)


@contextmanager
def planted(line: int, change: Callable[[Assign], Assign]) -> Iterator[None]:
    """Have the C backend compile another statement in the place of the first one of a line."""
    original = CompiledC.compile_all

    def compile_all(self: CompiledC, procedures: Any) -> Any:
        return original(self, [wrong(one) for one in procedures])

    def wrong(procedure: Procedure) -> Procedure:
        own = [
            one for one in statements(procedure.body)
            if isinstance(one, Assign) and one.span.line == line
            and not one.target.node.label.startswith("trace")
        ]  # fmt: skip
        changed = [change(one) for one in own[:1]]

        def instead(one: Any) -> Iterator[Any]:
            yield changed[0] if changed and one is own[0] else one

        return replace(procedure, body=map_statements(procedure.body, instead))

    with mock.patch.object(CompiledC, "compile_all", compile_all):
        yield


def with_value(change: Callable[[Expr], Expr]) -> Callable[[Assign], Assign]:
    return lambda one: replace(one, value=change(one.value))


def inside(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return an expression with every part changed."""
    return change(rebuild(expr, lambda part: inside(part, change), lambda index: index))


def swapped(expr: Expr) -> Expr:
    match expr:
        case Apply(op, (left, right), dtype):
            return Apply(op, (right, left), dtype)
        case _:
            return expr


def other_op(name: str) -> Callable[[Expr], Expr]:
    def change(expr: Expr) -> Expr:
        match expr:
            case Apply(_, (left, right), dtype):
                return Apply(OPS[name], (left, right), dtype)
            case _:
                return expr

    return change


def moved(expr: Expr) -> Expr:
    """Read one element further on the last axis, around its end."""

    def index(read: Read) -> Expr:
        *first, last = read.index
        assert isinstance(last, Affine)
        (symbol,) = last.symbols()
        turned = Affine(((symbol, -1),), 3)
        return replace(read, index=(*first, turned))

    return inside(expr, lambda part: index(part) if isinstance(part, Read) and part.index else part)


def nan_at_one(one: Assign) -> Assign:
    test = Apply(OPS["eq"], (Position(var(one.free.symbols[-1])), Position(const(2))), bool_)
    nan = Const(float("nan"), one.value.dtype)
    return replace(one, value=Select(test, nan, one.value))


def elsewhere(one: Assign) -> Assign:
    *first, last = one.target.index
    assert isinstance(last, Affine)
    (symbol,) = last.symbols()
    turned = Affine(((symbol, -1),), 3)
    return replace(one, target=Access(one.target.node, (*first, turned)))


BUGS: dict[str, tuple[int, Callable[[Assign], Assign]]] = {
    "swapped operands": (3, with_value(swapped)),
    "plus for minus": (3, with_value(other_op("add"))),
    "a wrong index of what is read": (3, with_value(moved)),
    "a wrong index of what is written": (3, elsewhere),
    "a NaN in some elements": (3, nan_at_one),
    "a constant that is off": (
        2, with_value(lambda e: inside(e, lambda x: Const(2.5, x.dtype) if x == Const(2.0, x.dtype)
                                       else x) if isinstance(e, Apply) else e),
    ),
    "another reduction": (4, lambda one: replace(one, op=OPS["max"])),
    "a reduction that begins with what was there": (6, lambda one: replace(one, op=OPS["min"])),
    "an accumulation that overwrites": (5, lambda one: replace(one, op=OPS["mul"])),
    "one element less": (
        2, lambda one: replace(one, free=replace(one.free, ranges=(
            *one.free.ranges[:-1], replace(one.free.ranges[-1], hi=one.free.ranges[-1].hi - 1)))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_in_one_call(name: str) -> None:
    line, change = BUGS[name]
    f = pe.cd_from_source(TEXT)
    with planted(line, change), pe.override(cache=False, verify=False):
        found = pe.compare(f, call())
    assert not found and found.difference is not None
    one, other = found.difference.records
    assert one is not None and other is not None
    assert one.line == other.line == line, str(found)


def rounds() -> None:
    """Merge the gradient of another stream twice."""
    p = pe.tensor("p", 2, dtype="float64")
    one, two = (pe.device().stream().context() for _ in range(2))
    merge = merge_grad.compile(p).link(one)
    fill = set_grad.compile(p, np.ones(2)).link(two)
    for n in (1.0, 2.0):
        fill(np.full(2, n))
        fill.context.merge_into(merge, p.grad)
        merge()


def test_a_merge_of_what_was_there_before_is_found_in_one_call() -> None:
    def stale(queue: Any, field: Any, source: Any, once: bool) -> None:
        if queue.merge_storage is None or not queue.name.startswith("cc"):
            merge_copy(queue, field, source, once)

    with mock.patch.object(device, "merge_copy", stale):
        found = pe.compare(rounds)
    assert not found and found.difference is not None
    one, other = found.difference.records
    assert one is not None and other is not None
    assert one.text == "p_grad[0] += p_grad_merge[0]{=2.0}" and one.run == 3
    assert other.text == "p_grad[0] += p_grad_merge[0]{=1.0}"
    assert pe.compare(rounds)


def test_backends_that_agree_say_so() -> None:
    function, make = CALLS["steps"]
    arguments = make()
    kept = [array.copy() for array in arguments]
    found = pe.compare(function, arguments)
    assert found and "numpy and cc agree in all of" in str(found)
    for array, old in zip(arguments, kept, strict=True):
        np.testing.assert_array_equal(array, old)
    assert len(found.results) == 2 and len(found.traces) == 2


def test_a_comparison_without_a_call_says_so() -> None:
    found = pe.compare(lambda x: x.sum(), (np.ones(3),))
    assert str(found) == "no @cd function was called: there was nothing to compare"


def test_arguments_and_backends_stand_in_tuples() -> None:
    f = pe.cd_from_source("def f(x):\n    return x.sum()\n")
    x = np.ones(3)
    for call in (pe.compare, pe.bisect):
        with pytest.raises(TypeError, match=r"CD0875(.|\n)*type `ndarray`(.|\n)*`\(x,\)`"):
            call(f, x)
    for wrong in ({"backend": "cuda"}, {"backends": "cuda"}):
        with pytest.raises(TypeError, match=r"CD0875(.|\n)*'cuda'(.|\n)*`backends=\('numpy', '"):
            pe.compare(f, (x,), **wrong)
    assert pe.compare(f, [x], backends=["numpy", "cc"])


def test_tensors_are_as_they_were() -> None:
    p = pe.tensor("p", 3, dtype="float64", init=2.0)
    f = pe.cd_from_source("def f(ps):\n    ps[0][i] *= 3\n    ps[0].grad[i] = 1\n")
    assert pe.compare(f, ([p],))
    assert p.numpy().tolist() == [2.0] * 3 and p.grad.numpy().tolist() == [0.0] * 3


def test_tensors_that_a_function_captures_are_as_they_were() -> None:
    p = pe.tensor("p", 3, dtype="float64", init=2.0)
    fixed = pe.tensor("fixed", 3, dtype="float64", init=1.0, constant=True)
    f = pe.cd_from_source("def f(x):\n    p[i] *= x[i] + fixed[i]\n", {"p": p, "fixed": fixed})
    assert pe.compare(f, (np.ones(3),))
    assert p.numpy().tolist() == [2.0] * 3

    def twice() -> None:
        f(p.numpy())
        f(np.ones(3))

    assert pe.compare(twice)
    assert p.numpy().tolist() == [2.0] * 3 and fixed.numpy().tolist() == [1.0] * 3


def test_only_what_is_asked_is_compared() -> None:
    found = pe.compare(softmax, (matrix(),), arrays="result")
    assert found and len(found.traces[0]) == 12


def test_no_stage_changes_anything() -> None:
    for function, make in (CALLS["softmax"], CALLS["steps"]):
        assert pe.bisect(function, make()) is None


def test_a_pass_that_is_wrong_is_named() -> None:
    def broken(program: loops.Program) -> loops.Program:
        def change(one: Any) -> Iterator[Any]:
            is_sum = isinstance(one, loops.Update) and one.op is OPS["add"]
            yield replace(one, op=OPS["sub"]) if is_sum else one

        return replace(
            program,
            kernels=tuple(replace(k, body=map_statements(k.body, change)) for k in program.kernels),
        )

    stages = tuple(
        pipeline.Pass("fuse", pipeline.rewriting(broken)) if one.name == "fuse" else one
        for one in pipeline.PASSES
    )
    _, make = CALLS["steps"]
    with mock.patch.object(pipeline, "PASSES", stages):
        found = pe.bisect(steps, make())
    assert found is not None and found.stage == "fuse" and "became" in str(found)
    assert "+=" in found.before and found.after != found.before


def test_a_compiler_that_is_wrong_is_named() -> None:
    f = pe.cd_from_source(TEXT)
    with planted(3, with_value(other_op("add"))), pe.override(cache=False, verify=False):
        found = pe.bisect(f, call())
    assert found is not None and found.stage == "compile" and "pe_f" in found.after


class Model:
    def __init__(self) -> None:
        self.w = pe.tensor("w", 3, dtype="float64", init=1.0)
        self.rate = 0.5

    @pe.cd
    def step(self, x):
        self.w.value -= self.rate * x
        return self.w * x


@pe.cd
def forward(model, x):
    model.w.value -= model.rate * x
    return model.w * x


MODEL = Model()


def helper(x: Any) -> Any:
    return forward(MODEL, x)


def program(x: Any) -> Any:
    return helper(x)


@pytest.mark.parametrize("way", ["argument", "global", "method", "module"])
def test_a_tensor_that_an_object_holds_stays_as_it_is(way: str) -> None:
    model, x = Model() if way in ("argument", "method") else MODEL, np.arange(3.0)
    match way:
        case "argument":
            found = pe.compare(forward, (model, x))
        case "method":
            found = pe.compare(model.step, (x,))
        case _:
            found = pe.compare(program if way == "global" else lambda x: program(x), (x,))
    assert found, str(found)
    assert model.w.numpy().tolist() == [1, 1, 1]
    assert found.results[0].tolist() == [0, 0.5, 0]
