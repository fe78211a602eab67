"""Forms for any size: after three sizes of an axis one more form serves all others."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.inputs import ArraySpec
from plusequals.dsl.sizes import SizesSeen, fits, opened_axes, reason_of
from plusequals.lowering.ir import dtypes

SOFTMAX = """
def softmax(y, x):
    m[i] = max(x[i, j])
    e[i, j] = exp(x[i, j] - m[i])
    y[i, j] = e[i, j] / sum[k](e[i, k])
"""


def _reasons(function: pe.CdFunction, sizes: list[int]) -> list[str]:
    out = []
    for n in sizes:
        x, y = np.random.default_rng(n).random((n, 3)), np.zeros((n, 3))
        function(y, x)
        np.testing.assert_allclose(y.sum(axis=1), np.ones(n))
        out.append(function.specialise(y, x).reason)
    return out


def test_the_fourth_size_is_for_any_size(backend: str) -> None:
    reasons = _reasons(pe.cd_from_source(SOFTMAX, backend=backend), [2, 3, 4, 5, 6, 9])
    assert ["any size" in reason for reason in reasons] == [False] * 3 + [True] * 3


def test_sizes_0_and_1_keep_forms_of_their_own() -> None:
    reasons = _reasons(pe.cd_from_source(SOFTMAX, backend="numpy"), [2, 3, 4, 5, 1])
    assert "any size" in reasons[3] and "any size" not in reasons[4]


def test_sizes_that_clash_are_found_in_the_run(backend: str) -> None:
    function = pe.cd_from_source(SOFTMAX, backend=backend)
    _reasons(function, [2, 3, 4, 5])
    with pytest.raises(pe.CdError, match="sizes 9 and 8 differ"):
        function(np.zeros((9, 3)), np.ones((8, 3)))


def test_equal_sizes_have_one_name_so_that_one_row_is_kept() -> None:
    function = pe.cd_from_source(SOFTMAX, backend="cc")
    _reasons(function, [2, 3, 4, 5, 7])
    told = function.explain(np.zeros((9, 3)), np.ones((9, 3)))
    assert "any size" in told.why
    assert [row.mode for row in told.arrays if row.name == "e"] == ["local, f64[3] of each thread"]
    assert told.counts is not None and told.counts.allocated == 0


def test_what_needs_its_sizes_is_compiled_for_each() -> None:
    text = (
        "def f(x):\n    a, b = x[:2]\n    total = 0.0\n    for v in [*x]:\n"
        "        total += v\n    return total"
    )
    function = pe.cd_from_source(text, backend="numpy")
    for n in range(2, 8):
        assert function(np.arange(float(n))) == sum(range(n))
    assert "any size" not in function.specialise(np.arange(7.0)).reason


def test_new_arrays_have_the_size_of_the_call(backend: str) -> None:
    function = pe.cd_from_source("def f(x):\n    return x[1:] + x[:-1]", backend=backend)
    for n in range(2, 9):
        x = np.arange(float(n))
        np.testing.assert_array_equal(function(x), x[1:] + x[:-1])


def test_only_axes_that_varied_are_opened() -> None:
    seen = SizesSeen()
    specs = [{"x": ArraySpec(dtypes.float32, (n, 7), None)} for n in (2, 3, 4, 5)]
    for each in specs[:3]:
        assert seen.opened(each) is None
        seen.note(each)
    opened = seen.opened(specs[3])
    assert opened == {"x": ArraySpec(dtypes.float32, (None, 7), None)}
    assert opened_axes(opened) == "axis 0 of `x`"
    sizes = "axis 0 of `x` came in more than 3 sizes: this form is for any size from 2"
    numbers = "`m.a`, `m.b` came with more than 3 values: this form is for any value"
    assert reason_of(opened, []) == sizes and reason_of({}, ["m.a", "m.b"]) == numbers
    assert reason_of(opened, ["m.a", "m.b"]) == f"{sizes}; {numbers}" and not reason_of({}, [])
    assert fits(specs[0]["x"], opened["x"])
    assert not fits(ArraySpec(dtypes.float32, (1, 7), None), opened["x"])
    assert not fits(ArraySpec(dtypes.float64, (5, 7), None), opened["x"])
    seen.close(specs[3])
    assert seen.opened(specs[3]) is None
