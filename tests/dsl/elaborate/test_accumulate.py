"""Accumulations over letters are computed in the joined type, however the target is stored."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.diagnostic import CdTypeError
from plusequals.lowering.ir.assignments import Assign
from tests.compare import assert_same
from tests.language.ask import run

from .scenes import found, typed

V = np.array([0.25, 0.5, 4.0])


def test_one_type_is_one_accumulating_assignment() -> None:
    (only,) = found(typed("y, v", "y[0] += v[i]", np.zeros(1), V).procedure, Assign)
    assert str(only.op) == "add" and len(only.reduced.ranges) == 1


def test_a_wider_value_over_a_reduced_letter_goes_through_one_wide_array() -> None:
    y = np.array([2.0**24], "f4")
    form = typed("y, v", "y[0] += v[i]", y, np.ones(4))
    made = found(form.procedure, Assign)
    assert [one.target.node.dtype.name for one in made] == ["float64", "float64", "float32"]
    run("numpy", "y, v", "y[0] += v[i]", y, np.ones(4))
    assert_same(y, np.array([2.0**24 + 4], "f4"))


def test_a_wider_value_without_reduced_letters_needs_no_temporary() -> None:
    form = typed("y, v", "y[i] *= v[i]", np.ones(3, "f4"), V)
    (only,) = found(form.procedure, Assign)
    assert only.op is None and not form.procedure.locals


def test_every_contribution_to_one_place_counts() -> None:
    h, p = np.zeros(2, "f4"), np.array([1, 0, 1])
    run("numpy", "h, p, v", "h[p[i]] += v[i]", h, p, V)
    assert_same(h, np.array([0.5, 4.25], "f4"))


def test_bools_accumulate_by_or_and_and() -> None:
    b = np.array([False, True])
    run("numpy", "b, v", "b[0] |= v[i] > 1.0\nb[1] &= v[i] > 1.0", b, V)
    assert b.tolist() == [True, False]


def test_what_cannot_be_stored_back_is_refused() -> None:
    with pytest.raises(CdTypeError, match="CD0405"):
        run("numpy", "n, v", "n[0] += v[i]", np.zeros(1, int), V)
