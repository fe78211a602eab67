"""Results of the fast path are those of the slow path, of all forms that a function returns."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.dispatch.returned_parts import kinds_of_result, view_words
from plusequals.dsl.elaborate import typed as t
from plusequals.dsl.values.types import WEAK_FLOAT, WEAK_INT
from tests.compare import assert_same
from tests.language.ask import compiled, plain

FORMS = (
    "x + 1", "x.sum()", "n + 2", "x, n", "[x * 2, n]", "(x, (x + 1, [n, x.sum()]))", "x[1:]",
    "x[n:]", "(x + 1)[1:]", "x, x[n:], (n, x[::-1])", "None", "(x > 0).any(), True",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_later_calls_return_what_the_first_one_returned(form: str) -> None:
    body, f = f"return {form}", compiled("x, n", f"return {form}")
    for size in (4, 4, 5, 6, 7, 7, 4):
        x = np.arange(float(size))
        with pe.override(backend="cc"):
            assert_same(f(x, 1), plain("x, n", body, x, 1))


def test_a_result_is_returned_as_one_kind() -> None:
    number, array = t.New(0, None, WEAK_FLOAT), t.New(1, None, None)
    both = t.Many((number, array, t.New(0, None, None)), "tuple", None)
    assert kinds_of_result(both, 0) == {WEAK_FLOAT, None}
    assert kinds_of_result(both, 1) == {None}
    bound = t.Result(2)
    view = t.Sliced(((bound, 1, 3),), (bound,))
    assert kinds_of_result(t.New(1, view, None), 2) == {WEAK_INT}


def test_a_view_that_repeats_elements_cannot_be_written() -> None:
    repeated = t.Strided(0, (3, 4), (0, 1))
    (_, _, flags, rank, *shape_and_strides) = view_words(2, 8, repeated, True)
    assert (flags, rank, shape_and_strides) == (0, 2, [3, 4, 0, 8])
    (_, offset, flags, *_) = view_words(2, 8, t.Strided(5, (4,), (2,)), True)
    assert flags and offset == 40
