"""Everything NumPy-named: the same results, types and shapes as NumPy, or a refusal that helps."""

from __future__ import annotations

import ast
import copy
import math
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate import numpy_table as table
from plusequals.lowering.ir import dtypes
from tests.compare import assert_same

from . import numpy_cases as cases

SCOPE = {"np": np, "math": math}


def _inputs() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    m = rng.standard_normal((4, 4))
    return {
        "x": rng.standard_normal((3, 4)),
        "y": rng.standard_normal((3, 4)).astype("f4"),
        "v": rng.standard_normal(4),
        "w": rng.standard_normal(5).astype("f4"),
        "i": rng.integers(-5, 6, (3, 4)),
        "k": rng.integers(1, 5, (3, 4)).astype("i1"),
        "u": rng.integers(0, 250, 4).astype("u1"),
        "b": rng.random((3, 4)) > 0.5,
        "b1": rng.random(4) > 0.5,
        "h": rng.standard_normal((3, 4)).astype("f2"),
        "z": rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)),
        "zf": (rng.standard_normal(4) + 1j).astype("c8"),
        "m": m,
        "spd": m @ m.T + 4 * np.eye(4),
        "t": rng.standard_normal((2, 3, 4)),
        "q": rng.standard_normal((2, 4, 3)),
        "p": np.abs(rng.standard_normal(6)) + 0.1,
        "nn": np.array([1.0, np.nan, -2.0, np.nan, 5.0]),
        "idx": np.array([2, 0, 1, 3]),
        "n": 5,
        "s": 2.5,
    }


INPUTS = _inputs()
_ROUNDING = {2: 2e-3, 1: 2e-3, 4: 2e-5}


def _run(body: str) -> None:
    """Run a function of that body in NumPy and compiled; compare results and arguments."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    names = [name for name in INPUTS if name in used]
    lines = body.strip().split("\n")
    lines[-1] = lines[-1] if lines[-1].startswith("return") else f"return {lines[-1]}"
    text = f"def f({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)
    scope: dict[str, Any] = dict(SCOPE)
    exec(text, scope)
    plain, compiled = (copy.deepcopy([INPUTS[name] for name in names]) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = scope["f"](*plain)
        with pe.override(backend="numpy"):
            got = pe.cd_from_source(text, globals=SCOPE)(*compiled)
    sizes = [_ROUNDING.get(np.asarray(a).dtype.itemsize, 1e-11) for a in plain if np.ndim(a)]
    sizes += [2e-5] * ("zf" in used or "float32" in body)
    assert_same(got, expected, max(sizes, default=1e-11))
    assert_same(compiled, plain, max(sizes, default=1e-11), "arguments")


@pytest.mark.parametrize(
    "body",
    [
        *cases.ELEMENTWISE, *cases.REDUCTIONS, *cases.SHAPES, *cases.CREATION, *cases.PRODUCTS,
        *cases.ORDER,
    ],
)  # fmt: skip
def test_an_expression_is_what_numpy_says(body: str) -> None:
    _run(body)


@pytest.mark.parametrize("body", cases.PROGRAMS)
def test_a_program_does_what_numpy_does(body: str) -> None:
    _run(body)


REFUSED = (
    ("np.random.rand(3)", "random", "outside"),
    ("np.linalg.eig(m)", "np.linalg.eig", "outside"),
    ("np.linalg.svd(m)", "np.linalg.svd", "outside"),
    ("np.fft.fft(v)", "np.fft", "outside"),
    ("np.where(x > 0)", "one-argument", "np.where(condition, x, y)"),
    ("np.nonzero(x)", "run time", "np.where"),
    ("np.unique(v)", "np.unique", "outside"),
    ("x.tolist()", "tolist", "keep the array"),
    ("x.nonzero()", "run time", "np.where"),
    ("x.flat", ".flat", "ravel"),
    ("x.strides", "strides", "shape"),
    ("sum(x)", "first axis only", "np.sum"),
    ("max(x)", "first axis only", "np.max"),
    ("int(x)", "takes one number", "astype"),
    ("round(v)", "takes one number", "np.round"),
    ("math.floor(v)", "takes one number", "np.floor"),
    ("np.add.at(v, idx, 1.0)", "np.add.at", "index letter"),
    ("i ** -1", "negative integer powers", "float"),
    ("np.max(x[:0])", "of nothing", ""),
    ("np.argmin(v[:0])", "of nothing", ""),
    ("np.sum(x, axis=2)", "axis 2 is out of bounds", ""),
    ("np.sum(x, where=b)", "where", "supported here"),
    ("np.add(x, y, where=b)", "where", "np.where"),
    ("np.add(x)", "1 arguments", ""),
    ("x.reshape(5, -1)", "cannot be reshaped", ""),
    ("np.reshape(x, (2, 5))", "cannot be reshaped", ""),
    ("x @ x", "do not fit in a product", ""),
    ("np.einsum('ij,jk', x, v)", "does not fit", ""),
    ("np.concatenate([x, v])", "same number of axes", ""),
    ("np.zeros(-1)", "negative", ""),
    ("np.zeros(2.5)", "has to be an integer", "int"),
    ("np.zeros(3, dtype='nothing')", "not an element type", ""),
    ("np.repeat(v, idx)", "one number for all elements", "loop"),
    ("np.linalg.norm(x, 2)", "norm 2", "outside"),
    ("np.linalg.solve(t, v)", "one matrix", "loop"),
    ("np.min(z)", "complex", ""),
    ("~x", "not defined", ""),
    ("np.less(u, x, out=3)", "`out` has to be an array", ""),
    ("math.sqrt(-1.0)", "not defined", ""),
    ("np.sin()", "not defined", ""),
    ("x[x > 0].argmax()", "masked selection", "np.where"),
)  # fmt: skip


@pytest.mark.parametrize(("body", "message", "way_out"), REFUSED)
def test_a_refusal_names_the_construct_and_the_way_out(
    body: str, message: str, way_out: str
) -> None:
    with pytest.raises(pe.CdError) as caught:
        _compiled(body)
    problem = caught.value.diagnostics[0]
    assert message in problem.message
    assert way_out in " ".join(problem.helps)


def _compiled(body: str) -> Any:
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    names = [name for name in INPUTS if name in used]
    text = f"def f({', '.join(names)}):\n    return {body}\n"
    with pe.override(backend="numpy"):
        return pe.cd_from_source(text, globals=SCOPE)(*copy.deepcopy([INPUTS[n] for n in names]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("np.linalg.solve(m * 0, v)", "singular matrix"),
        ("np.linalg.inv(np.zeros((3, 3)))", "singular matrix"),
        ("np.linalg.cholesky(-spd)", "positive definite"),
        ("i ** i", "negative integer powers"),
        ("np.bincount(i[0] - 9, minlength=3)", "bincount"),
        ("np.histogram(nn)", "not finite"),
        ("x[x > 9].max()", "of nothing"),
    ],
)
def test_a_wrong_value_is_found_in_the_run(body: str, message: str) -> None:
    with pytest.raises(pe.CdError, match=message) as caught:
        _compiled(body)
    assert isinstance(caught.value, ValueError)


def test_functions_are_found_by_object_and_not_by_name() -> None:
    assert table.lookup(np.exp) is not None
    assert table.lookup(np.add.outer) is not None
    assert table.lookup(lambda exp: exp) is None
    assert table.lookup([]) is None
    assert table.lookup(dtypes.float32) is not None


def test_reductions_and_accumulators_are_known_by_object() -> None:
    assert table.reduction_of(sum) == table.reduction_of(np.sum) == "sum"
    assert table.reduction_of(table.Word("argmin")) == "argmin"
    assert table.reduction_of(np.exp) is None and table.reduction_of({}) is None
    assert table.elementwise_name(max) == table.elementwise_name(np.maximum) == "max"
    assert table.elementwise_name(np.logical_or) == "or"
    assert table.elementwise_name(table.Word("relu_gate")) == "relu_gate"


def test_every_word_is_a_static_value_that_can_be_looked_up() -> None:
    elsewhere = {"pad", "clamp", "wrap", "comment", "inf", "nan", "pi"}
    for name, value in table.WORDS.items():
        assert name in elsewhere or table.lookup(getattr(value, "value", None)) is not None


WORDS = (
    ("y[i] = relu(x[i])", lambda x: np.maximum(x, 0)),
    ("y[i] = sat01(x[i])", lambda x: np.clip(x, 0, 1)),
    ("y[i] = recip(x[i])", lambda x: 1 / x),
    ("y[i] = erf(x[i]) + exp(x[i])", lambda x: np.vectorize(math.erf)(x) + np.exp(x)),
    ("y[i] = where(x[i] > 0, x[i], -inf)", lambda x: np.where(x > 0, x, -np.inf)),
    ("y[i] = f64(f32(x[i]))", lambda x: x.astype("f4").astype("f8")),
    ("y[i] = fma(x[i], 2.0, 1.0)", lambda x: x * 2 + 1),
    ("y[i] = relu_gate(x[i], 3.0)", lambda x: np.where(x > 0, 3.0, 0.0)),
)


@pytest.mark.parametrize(("line", "meaning"), WORDS)
def test_a_bare_word_is_the_operation_of_the_language(line: str, meaning: Any) -> None:
    x = np.array([-1.5, 0.25, 2.0, 7.0])
    y = np.zeros(4)
    with pe.override(backend="numpy"):
        pe.cd_from_source(f"def f(y, x):\n    {line}\n")(y, x)
    np.testing.assert_allclose(y, meaning(x), rtol=1e-12)


def test_python_numbers_adapt_and_numpy_numbers_do_not() -> None:
    y = np.ones(3, "f4")
    text = "def f(y, s):\n    return y * s, y * math.sqrt(s), y * np.sqrt(s), y * np.float32(s)\n"
    with pe.override(backend="numpy"):
        got = pe.cd_from_source(text, globals=SCOPE)(y, 2.0)
    assert [part.dtype.name for part in got] == ["float32", "float32", "float64", "float32"]
