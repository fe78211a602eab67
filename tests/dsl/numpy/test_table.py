"""The table: objects are found by identity; words and methods lead to handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.numpy import table
from plusequals.lowering.ir import dtypes


def test_functions_are_found_by_object_and_not_by_name() -> None:
    assert table.lookup(np.exp) is not None
    assert table.lookup(np.add.outer) is not None
    assert table.lookup(np.maximum.accumulate) is not None
    assert table.lookup(dtypes.float32) is not None
    assert table.lookup(lambda exp: exp) is None
    assert table.lookup([]) is None


def test_reductions_and_accumulators_are_known_by_object() -> None:
    assert table.reduction_of(sum) == table.reduction_of(np.sum) == "sum"
    assert table.reduction_of(table.Word("argmin")) == "argmin"
    assert table.reduction_of(np.exp) is None
    assert table.reduction_of({}) is None
    assert table.elementwise_name(max) == table.elementwise_name(np.maximum) == "max"
    assert table.elementwise_name(np.logical_or) == "or"
    assert table.elementwise_name(table.Word("relu_gate")) == "relu_gate"
    assert table.elementwise_name({}) is None


def test_every_word_is_a_constant_or_has_a_meaning() -> None:
    elsewhere = {"pad", "clamp", "wrap", "comment", "memory", "inf", "nan", "pi"}
    for name, value in table.WORDS.items():
        assert name in elsewhere or table.lookup(getattr(value, "value", None)) is not None, name


def test_methods_and_subscripted_objects_are_known() -> None:
    assert table.method("sum") is not None
    assert table.method("tolist") is not None, "a refused method has a handler that says so"
    assert table.method("nothing") is None
    assert table.special_subscript(np.mgrid) is not None
    assert table.special_subscript(3) is None


WORDS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("y[i] = relu(x[i])", lambda x: np.maximum(x, 0)),
    ("y[i] = sat01(x[i])", lambda x: np.clip(x, 0, 1)),
    ("y[i] = recip(x[i])", lambda x: 1 / x),
    ("y[i] = exp(x[i]) + sqrt(abs(x[i]))", lambda x: np.exp(x) + np.sqrt(np.abs(x))),
    ("y[i] = where(x[i] > 0, x[i], -inf)", lambda x: np.where(x > 0, x, -np.inf)),
    ("y[i] = f64(f32(x[i]))", lambda x: x.astype("f4").astype("f8")),
    ("y[i] = fma(x[i], 2.0, 1.0)", lambda x: x * 2 + 1),
    ("y[i] = relu_gate(x[i], 3.0)", lambda x: np.where(x > 0, 3.0, 0.0)),
    ("y[i] = min(x[i], pi)", lambda x: np.minimum(x, np.pi)),
)


@pytest.mark.parametrize(("line", "meaning"), WORDS)
def test_a_bare_word_is_the_operation_of_the_language(
    line: str, meaning: Callable[[Any], Any]
) -> None:
    x = np.array([-1.5, 0.25, 2.0, 7.0])
    y = np.zeros(4)
    with pe.override(backend="numpy"):
        pe.cd_from_source(f"def f(y, x):\n    {line}\n")(y, x)
    np.testing.assert_allclose(y, meaning(x), rtol=1e-12)
