"""Arrays out of nothing, and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.eye(3)",
    "np.eye(n, 4, 1)",
    "np.identity(4, dtype=np.float32)",
    "np.tri(3, 4)",
    "np.tri(-1), np.tri(3, -2), np.tri(-2, n), np.tri(n - 9, n - 8)",
    "np.zeros(3)",
    "np.zeros((n, 2), dtype=int)",
    "np.ones((2, 3), np.float32)",
    "np.zeros_like(x)",
    "np.ones_like(i)",
    "np.full((2, 2), 7)",
    "np.full(3, s)",
    "np.full(3, 2.5, dtype=np.float32)",
    "np.full_like(i, 2.7)",
    "np.array([1, 2, 3])",
    "np.array([[1, 2.5], [3, 4]])",
    "np.array(x)",
    "np.array(x, ndmin=3)",
    "np.array(v, ndmin=3), np.array(s, ndmin=2), np.array(x, ndmin=1)",
    "y = np.array(x, copy=False, ndmin=3)\ny[0, 0] = 7.0\nx, y.copy()",
    "y = np.array(x, copy=None)\nx[0] = 7.0\ny.copy(), x",
    "y = np.array(x, np.float32, copy=None)\nx[0] = 7.0\ny.copy(), x",
    "y = np.array(x, copy=True)\nx[0] = 7.0\ny.copy(), x",
    "y = x.astype(np.float64, copy=False)\nx[0] = 7.0\ny.copy(), x",
    "y = x.astype(np.float32, copy=False)\nx[0] = 7.0\ny.copy(), x",
    "y = x.astype(np.float64)\nx[0] = 7.0\ny.copy(), x",
    "np.array([s, 2.0], dtype=np.float32)",
    "np.array([v[0], w[0]])",
    "np.asarray(x)",
    "np.asarray(x, dtype=np.float32)",
    "x.copy()",
    "np.arange(5)",
    "np.arange(1, 10, 2)",
    "np.arange(10, 0, -3)",
    "np.arange(n)",
    "np.arange(0, 1, 0.1)",
    "np.arange(3.0)",
    "np.arange(0, 3, np.inf), np.arange(0, -3, np.inf), np.arange(3, 0, -np.inf)",
    "np.arange(s, s + 3, np.inf), np.arange(s, s, np.inf), np.arange(s, s - 3, -np.inf)",
    "np.arange(0, 3, np.inf, dtype=np.float32), np.arange(s, s + 3, s * np.inf, np.float32)",
    "np.arange(0, 1e-320, 1e300), np.arange(v[0] * 0, 1e-320, 1e300)",
    "np.arange(1.0, 3e300, 1e300, dtype=np.float32), np.arange(-1e300, 1e300, 1e300, np.float32)",
    "np.arange(s, s + 3e300, 1e300, np.float32), np.arange(0, 3e5, 1e5, np.float16)",
    "np.signbit(np.arange(-0.0, 3)), np.signbit(np.arange(-v[0] * 0, 3))",
    "np.arange(4, dtype=np.float32)",
    "np.linspace(0, 1, 5)",
    "np.linspace(0, s, n)",
    "np.linspace(1, 2, 4, endpoint=False)",
    "np.linspace(0, 1, 1)",
    "np.linspace(0, 1, 4, retstep=True)",
    "np.linspace(0, 10, 5, dtype=int)",
    "np.finfo(np.float32).eps",
    "np.finfo(x.dtype).max",
    "v.item(1)",
    "y * v.item(0), y * v[0]",
    "k.item(2), h.item(3), b.item(1), z.item(0), u.item(0), y[:1, :1].item()",
    "v.fill(3.0) or v",
    "np.zeros(3, dtype=x.dtype) + np.ones(3, dtype=v.dtype)",
    "np.arange(n) * 2.0",
    "np.arange(n)[::-1]",
    "np.arange(2, n + 2)",
    "np.linspace(s, n, 4)",
    "np.full((2, 3), np.inf)",
    "np.full(3, True)",
    "np.ones(3, dtype=bool)",
    "np.zeros((2, 2), dtype=complex)",
    "np.eye(3)[1]",
    "np.array([v, v * 2])",
    "np.array([1, 2, 3], dtype=np.int8)",
    "np.array([True, False])",
    "np.array([1, 2j])",
    "np.array([])",
    "np.array(3.5)",
    "np.array((v[0], 1))",
    "np.logspace(0, 2, 5)",
    "np.ones_like(x, dtype=int)",
    "np.zeros_like(x, shape=(2, 2))",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, np.float32(0.6), 0.1), (np.float32(0.1), 0.7, 0.1), (np.float32(1.5), 9, 0.15),
        (np.float16(0), np.float16(1), np.float16(0.1)), (np.float16(1.5), 2.5, 0.1),
        (np.float32(0.6), -1, np.float32(-0.1)), (0.1, np.float32(0.7), np.float64(0.1)),
        (np.uint64(2**63), np.uint64(2**63 + 3), 1), (np.int8(100), np.int8(-100), -0.5),
        (np.int8(-100), np.int8(100), 30), (np.uint8(5), np.uint8(2), 1), (np.uint8(2), 9, 1),
        (np.int32(-(2**31)), np.int32(2**31 - 1), 10**9), (np.int8(-3), np.int64(9), 2),
    ],
    ids=str,
)  # fmt: skip
def test_a_range_is_computed_in_the_types_of_its_numbers(start: Any, stop: Any, step: Any) -> None:
    whole = isinstance(step, int)
    given = (start, stop) if whole else (start, stop, step)
    assert_as_plain(f"np.arange(a, b, {step if whole else 'c'})", *given)
    scope = {"np": np, "a": start, "b": stop, "c": step}
    known = pe.cd_from_source("def f():\n    return np.arange(a, b, c)", scope, backend="numpy")
    with np.errstate(over="ignore"):
        assert_same(known(), np.arange(start, stop, step))


@pytest.mark.parametrize(
    "part", ["x", "x.T", "x[:, ::2]", "x[1:]", "x[1]", "x[:, 1]", "x[:1].T", "x[::-1]", "x + 1"]
)
def test_only_what_lies_in_c_order_is_not_copied(part: str) -> None:
    body = f"y = np.ascontiguousarray({part})\n    y[0] = 7\n    return y + 0"
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    {body}", scope)
    function = pe.cd_from_source(f"def f(x):\n    {body}", {"np": np}, backend="numpy")
    lay: tuple[Callable[[], Any], ...] = (
        lambda: np.ones((4, 6)), lambda: np.ones((6, 4)).T, lambda: np.ones((4, 12))[:, ::2],
    )  # fmt: skip
    for made in lay:
        mine, plain = made(), made()
        np.testing.assert_array_equal(function(mine), scope["f"](plain))
        np.testing.assert_array_equal(mine, plain)


@pytest.mark.parametrize("body", ["np.array(x, np.float32, copy=False)", "np.array(s, copy=False)"])
def test_what_needs_a_copy_is_refused_without_one(body: str) -> None:
    with pytest.raises(pe.CdError, match="cannot be had without a copy"):
        compiled(body)


@pytest.mark.parametrize("flag", ["0", "1", "False", "np.False_", "None", "b"])
@pytest.mark.parametrize("values", [np.array([1.0, 2.0]), np.array([1, 2])], ids=["f8", "i8"])
def test_any_false_value_copies_only_what_is_converted(values: np.ndarray, flag: str) -> None:
    assert_as_plain(f"v = a.astype(float, copy={flag})\nv[0] = 9\na, v", values, 0)


def test_a_view_of_an_array_without_axes() -> None:
    assert_as_plain("v = np.ascontiguousarray(a)\nv[0] = 5\na, v + 0", np.array(2.5))
    assert_as_plain("v = np.asarray(a, order='C')\nv[...] = 5\na", np.array(2.5))


@pytest.mark.parametrize("call", ["np.array(a, np.int8)", "np.asarray(a, dtype=np.uint8)"])
@pytest.mark.parametrize("values", [[300, 1], [[1, 300]], [2**40, 1]], ids=repr)
def test_the_integers_of_a_list_fit_in_its_type(call: str, values: list[object]) -> None:
    assert_refused("CD0464", call, values)
    assert_as_plain(f"{call}, np.array(a), np.asarray(a, np.float32)", [[1, 2], [3, 4]])


def test_an_array_is_filled_with_one_number() -> None:
    assert_refused("CD0452", "a.fill(b)\na", np.zeros(2), np.ones(2))
    assert_as_plain("a.fill(b)\na", np.zeros(2), np.array(3.0))
