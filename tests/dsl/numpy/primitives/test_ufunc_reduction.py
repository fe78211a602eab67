"""`reduce` and `accumulate` of the ufuncs that are no sum, product or extreme."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.subtract.reduce(x), np.subtract.reduce(x, 1)",
    "np.subtract.reduce(t, -2), np.subtract.reduce(v)",
    "np.subtract.reduce(x, ()), np.subtract.reduce(x, 1, keepdims=True)",
    "np.subtract.reduce(x[:, :0])",
    "np.subtract.reduce(k), np.subtract.reduce(h), np.subtract.reduce(zf), np.subtract.reduce(u)",
    "np.subtract.reduce(x, dtype=np.int64), np.subtract.reduce(i, dtype=np.float32)",
    "np.divide.reduce(i + 9), np.floor_divide.reduce(x, 1), np.remainder.reduce(i + 9, 1)",
    "np.power.reduce(idx), np.power.accumulate(np.abs(x)), np.float_power.reduce(k, 1)",
    "np.fmax.reduce(nn), np.fmin.reduce(x, None), np.fmax.reduce(t, (0, 2)), np.fmin.reduce(u)",
    "np.fmax.reduce(t, (0, 2), keepdims=True), np.fmax.accumulate(nn), np.fmin.accumulate(x, 1)",
    "np.logical_xor.reduce(b), np.logical_xor.reduce(x, None), np.logical_xor.reduce(v[:0])",
    "np.logical_xor.accumulate(b, 1), np.logical_xor.accumulate(v), np.equal.reduce(b)",
    "np.hypot.reduce(x), np.hypot.reduce(x, None), np.hypot.reduce(v[:0]), np.hypot.reduce(v[:1])",
    "np.logaddexp.reduce(x, 1), np.logaddexp.reduce(v[:0]), np.logaddexp.accumulate(v)",
    "np.copysign.reduce(x), np.heaviside.accumulate(v), np.fmod.reduce(x)",
    "np.left_shift.reduce(idx), np.right_shift.accumulate(idx + 9), np.greater.accumulate(b)",
    "np.subtract.accumulate(x), np.subtract.accumulate(i, 1), np.divide.accumulate(k)",
    "np.subtract.accumulate(x, 1, np.int64), np.subtract.accumulate(u)",
    "np.subtract.accumulate(v[:0])",
    "np.subtract.reduce([[1, 2], [3, 4]]), np.fmax.reduce([x, x + 1])",
    "np.subtract.reduce(x, out=v)\nreturn v",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.subtract.reduce(x, (0, 1))", "CD0446", "depends on the order, and takes one axis: (0, 1)"),
    ("np.subtract.reduce(x, None)", "CD0446", "depends on the order, and takes one axis: (0, 1)"),
    ("np.subtract.reduce(v[:0])", "CD0459", "`subtract.reduce` of nothing has no value"),
    ("np.fmax.reduce(x[:, :0], 1)", "CD0459", "`fmax.reduce` of nothing has no value"),
    ("np.subtract.reduce(b)", "CD0404", "`subtract` does not combine bool values to one of their"),
    (
        "np.equal.reduce(v)",
        "CD0404",
        "`equal` does not combine float64 values to one of their type",
    ),
    ("np.equal.accumulate(v)", "CD0404", "`equal` does not combine float64 values"),
    (
        "np.logical_xor.reduce(v, dtype=np.int64)",
        "CD0404",
        "float64 values in int64 to one of their",
    ),
    ("np.left_shift.reduce(v)", "CD0404", "`left_shift` does not combine float64 values"),
    ("np.power.reduce(-idx)", "CD0450", "integers to negative integer powers"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


def test_dynamic_sizes(backend: str) -> None:
    text = (
        "def f(x):\n    return np.subtract.reduce(x), np.fmin.reduce(x, 1), np.divide.accumulate(x)"
    )
    reduced = pe.cd_from_source(text, globals={"np": np}, backend=backend)
    for n in (2, 3, 4, 5, 6, 9):
        x = np.arange(1.0, 2 * n + 1).reshape(n, 2)[:, ::-1]
        wanted = np.subtract.reduce(x), np.fmin.reduce(x, 1), np.divide.accumulate(x)
        for found, expected in zip(reduced(x), wanted):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("body", ["np.power.reduce(a, axis=1)", "np.power.accumulate(a)"])
def test_powers_of_integers_along_an_axis_of_several(body: str) -> None:
    x = np.array([[2, 3, 1], [2, 1, 2]])
    assert_as_plain(body, x)
    assert_as_plain(body, np.stack([x, x + 1]))
    assert_refused("CD0450", body, np.array([[2, 3, -1], [2, -1, 2]]))


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "subtract", "arctan2", "fmax"])
def test_no_axes_combine_each_element_with_the_identity(name: str) -> None:
    x = np.array([[-1.0, 0.0, 2.5], [np.nan, -0.0, 3.0]])
    assert_as_plain(f"np.{name}.reduce(a, axis=()), np.{name}.reduce(a, axis=(), keepdims=True)", x)
