"""Accumulations over letters and by position, in the joined type, however the target is stored."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError, CdTypeError
from plusequals.dsl.numpy.primitives.accumulate import UPDATES
from plusequals.lowering.ir.assignments import Assign
from tests.compare import assert_same
from tests.language.ask import run

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled
from ...elaborate.scenes import found, typed

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


AT = {
    "places that come twice": "np.add.at(x, idx % 2, 1.5)\nx",
    "counted from the end": "np.subtract.at(v, np.array([-1, 3, 0]), v[:3])\nv",
    "of several axes": "np.add.at(x, (np.array([0, 2, 0]), np.array([1, 1, 1])), w[:3])\nx",
    "rows": "np.multiply.at(x, [1, 1], v)\nx",
    "a slice beside positions": "np.maximum.at(x, (slice(1, None), idx[:2]), 0.25)\nx",
    "one element": "np.add.at(x, (0, 1), 7)\nnp.add.at(v, 2, 7)\nx, v",
    "a selection": "np.divide.at(x, x > 0, 2)\nx",
    "a view": "np.add.at(x[::-1].T, (idx, 0), x[0])\nx",
    "in a wider type": "np.add.at(w, [0, 0, 1], v[:3])\nw",
    "whole numbers": "np.add.at(k, [0, 0], 100)\nnp.bitwise_xor.at(k, 1, 5)\nk",
    "shifts, rests, powers": "np.left_shift.at(i, [0, 0], 2)\nnp.remainder.at(i, [0, 1], 7)\n"
    "np.power.at(i, 2, 2)\nnp.right_shift.at(i, [0, 0], 1)\nnp.floor_divide.at(i, [0, 0], 2)\ni",
    "bits": "np.bitwise_and.at(u, [0, 0], 6)\nnp.bitwise_or.at(u, [1, 1], 3)\nu",
    "extremes without NaN": "np.fmin.at(nn, [0, 1], 0.5)\nnp.fmax.at(nn, [3, 3], -1.0)\nnn",
    "least": "np.minimum.at(nn, [0, 4, 4], [0.5, 2.0, 1.0])\nnn",
    "what it reads is from before": "np.add.at(v, idx % 2, v)\nv",
    "nothing": "np.add.at(v, idx[:0], 1)\nv",
    "its result": "np.add.at(v, idx, 1)",
    "numbers that elements cannot be": "for n in (300, 200):\n    np.minimum.at(k, [0], n)\n"
    "    np.floor_divide.at(i, 0, n * 2**40)\nnp.remainder.at(k, 1, 300)\nk, i",
    "negative numbers for unsigned elements": "np.maximum.at(u, [0, 1], -1)\nu",
    "run-time numbers that elements cannot be": "n = int(w[0] * 0) + 300\n"
    "np.minimum.at(k, idx % 3, n)\nnp.floor_divide.at(k, 0, n)\nk",
    "a selection and such a number": "np.minimum.at(k, k > 0, 300)\nk",
    "extremes of whole numbers without NaN": "np.fmax.at(k, [0], 5)\nnp.fmin.at(k, 1, -300)\nk",
    "rests by a number between single floats": "np.remainder.at(w, [0, 1], 0.1)\nw",
}  # fmt: skip


@pytest.mark.parametrize("body", AT.values(), ids=AT)
def test_at_counts_each_contribution_as_numpy_does(body: str) -> None:
    assert_same_as_numpy(body)


def test_every_update_of_the_table_is_numpys() -> None:
    for ufunc in UPDATES:
        values = "x" if "d" in "".join(ufunc.types) else "k"
        assert_same_as_numpy(f"np.{ufunc.__name__}.at({values}, [0, 2, 0], 3)\n{values}")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("np.add.at(2.0, 0, 1)", "CD0452.*`add.at` writes an array, and is given float 2.0"),
        ("np.add.at(v + 1, idx, 1)", "CD0451.*a new value"),
        ("np.add.at(np.broadcast_to(v, (2, 4)), 0, 1)", "CD0462"),
        ("np.add.at(k, [0], 0.5)", "CD0405.*float64, which cannot be stored in int8"),
        ("np.add.at(z.real, [0], 1)", "CD0451.*`a` is one part of complex numbers"),
        ("np.add.at(v, idx, w)", "CD0301.*does not broadcast"),
        ("np.add.at(v, idx)", "CD0440.*add.at.a, indices, b."),
    ],
)
def test_what_at_cannot_write_is_refused(body: str, text: str) -> None:
    with pytest.raises(CdError, match=f"(?s){text}"):
        compiled(body)


def test_a_negative_number_is_no_operand_of_uint64() -> None:
    at = pe.cd_from_source("def f(u, n):\n    np.maximum.at(u, 0, n)", {"np": np}, backend="numpy")
    u = np.array([1, 2**63], "u8")
    at(u, 3)
    with pytest.raises(OverflowError, match="CD0464.*-1 does not fit in uint64"):
        at(u, -1)
    assert u.tolist() == [3, 2**63]


def test_a_position_outside_is_found_in_the_run() -> None:
    with pytest.raises(CdError, match="CD0601.*index 4 is out of range for axis 0 of `a`"):
        compiled("np.add.at(v, idx + 1, 1)")
