"""Selections under masks: which are of the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE
from plusequals.dsl.values.arrays import renamed
from plusequals.dsl.values.masks import aligned, of_same_elements
from plusequals.dsl.values.values import Masked

from ..elaborate.bench import Bench

BODIES = (
    "m = w > 0; xs = x[m]; ys = y[m]; return (xs * ys).sum() / len(xs)",
    "m = w > 0; v = x[m]; x[m] = v - v.mean(); return x",
    "m = w > 0; v = a[[1, 0]][:, m]; a += 1; a[:, m] = v; return a",
    "v = x[x > 2]; u = v * 2; t = u + v; x[x > 2] = t; return x",
)


@pytest.mark.parametrize("body", BODIES)
def test_a_selection_with_a_name_is_of_the_same_elements(body: str, backend: str) -> None:
    text = f"def f(x, y, w, a):\n    {body}\n"
    plain: dict[str, Any] = {"np": np}
    exec(text, plain)
    wanted = plain["f"](*_given())
    with pe.override(optimize=0):
        found = pe.cd_from_source(text, {"np": np}).on(backend)(*_given())
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def _given() -> tuple[np.ndarray, ...]:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    return x, x * 2, np.array([1, -1, 1, 1]), np.arange(8.0).reshape(2, 4)


def test_masks_that_have_become_others_are_refused_in_the_run() -> None:
    text = "def f(x, m):\n    v = x[m]\n    m[1] = False\n    x[m] = v\n    return x\n"
    x, m = np.arange(3.0), np.array([True, True, False])
    function = pe.cd_from_source(text, {"np": np}, backend="numpy")
    with pytest.raises(pe.CdError, match="masks differ, first at position 1") as caught:
        function(x, m)
    assert caught.value.code == "CD0403"
    m[:] = True, False, False
    assert function(x, m) is x


def test_masks_are_the_same_by_what_they_say_not_by_the_names_of_their_axes() -> None:
    bench = Bench()
    x = bench.array("x", np.zeros(2))
    mask, other = (bench.array(name, np.array([True, False])) for name in "mn")
    assert of_same_elements(
        bench.ctx, Masked(x, mask), Masked(x, renamed(bench.ctx, mask)), NOWHERE
    )
    assert not of_same_elements(bench.ctx, Masked(x, mask), Masked(x, other), NOWHERE)
    longer = bench.array("o", np.zeros(3, bool))
    assert not of_same_elements(bench.ctx, Masked(x, mask, held=True), Masked(x, longer), NOWHERE)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((4,), (4,)), ((), ()), ((1, 4), (1, 1, 4)), ((2, 1, 1), (2, 1, 1, 1)), ((3, 4), None),
        ((6, 4), None),
    ],
)  # fmt: skip
def test_an_array_meets_the_other_axes_of_a_selection(
    shape: tuple[int, ...], found: tuple[int, ...] | None
) -> None:
    bench = Bench()
    selection = Masked(
        bench.array("x", np.zeros((2, 3, 4))), bench.array("m", np.zeros((2, 3), bool))
    )
    assert (selection.rank, selection.trailing, selection.spanned) == (2, 1, range(2))
    given = bench.array("y", np.zeros(shape))
    got = aligned(bench.ctx, given, selection, NOWHERE)
    assert (got and tuple(size.constant for size in got.shape)) == found


def test_a_selection_meets_one_with_the_same_axis_only() -> None:
    bench = Bench()
    x, y = bench.array("x", np.zeros((2, 2))), bench.array("y", np.zeros(2))
    mask = bench.array("m", np.array([True, False]))
    rows, columns = Masked(x, mask), Masked(x, mask, start=1)
    assert aligned(bench.ctx, Masked(y, mask), columns, NOWHERE) is y
    assert aligned(bench.ctx, Masked(y, mask), rows, NOWHERE) is None
    assert aligned(bench.ctx, columns, rows, NOWHERE) is None
