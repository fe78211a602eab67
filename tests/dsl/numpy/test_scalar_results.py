"""Which functions give an array without axes, and which a scalar, as an in-place update shows it.

`v *= k` writes an array without axes in place, in its own type, and every other name of it sees
that; a scalar is replaced by a product of the joined type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

BODY = """
def f(b, k, x, m, z):
    v = {}
    w = v
    v *= k[0]
    return v, w
"""
FORMS = (
    "np.where(1, 1, b[0])", "np.where(b[0] > 1, b[0], b[0])", "np.select([b[0] > 1], [b[0]], 0)",
    "np.squeeze(b)", "m.squeeze()", "b.reshape(())", "np.asarray(b[0])", "np.array(3)",
    "np.copy(b[0])", "b[0].copy()", "z.copy()", "np.zeros((), np.int32)", "np.full((), 3)",
    "np.transpose(b[0])", "b[0].T", "np.transpose(z)", "np.transpose(3)", "np.flip(z)",
    "np.flip(b[0])", "b[0, ...]", "z[...]", "z[()]", "z", "z * 1", "-z", "np.clip(b[0], 0, 2)",
    "np.maximum(b[0], b[0])", "np.ones_like(b[0])", "np.zeros_like(z)", "np.take(b, 0)",
    "np.trace(m)", "np.dot(b, b)", "np.einsum('i,i->', b, b)", "np.median(x[0])", "np.round(b[0])",
    "z.astype(np.int32)", "b[0].astype(np.int32)", "np.nan_to_num(b[0])", "np.searchsorted(b, 2)",
    "np.percentile(b, 50)", "np.argmax(b)", "np.roll(z, 1)", "np.fix(x[0, 0])", "b.sum()",
)  # fmt: skip


def described(value: Any) -> tuple[Any, ...]:
    return type(value), getattr(value, "dtype", None), np.asarray(value).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_updates_show_what_is_an_array_without_axes(form: str) -> None:
    given = (
        np.array([3], np.int32), np.array([2]), np.array([[1.5, 2]], np.float32),
        np.array([[3]], np.int32), np.array(3, np.int32),
    )  # fmt: skip
    names: dict[str, Any] = {"np": np}
    exec(BODY.format(form), names)
    expected = names["f"](*[array.copy() for array in given])
    got = pe.cd_from_source(BODY.format(form), {"np": np}, backend="numpy")(*given)
    assert [described(value) for value in got] == [described(value) for value in expected]


def test_a_choice_that_a_loop_carries_is_an_array_where_the_loop_has_run() -> None:
    def f(x):
        s = 0.0
        for t in range(x.shape[0]):
            s = np.where(x[t] > 0, s + x[t], s)
        return s

    for given in (np.array([1.0, -2.0, 3.0]), np.zeros(0)):
        assert described(pe.cd(backend="numpy")(f)(given)) == described(f(given))
