"""The same elements under other axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain

EXPRESSIONS = (
    "x.T",
    "np.transpose(t)",
    "t.transpose(1, 0, 2)",
    "np.transpose(t, (2, 0, 1))",
    "t.swapaxes(0, -1)",
    "np.moveaxis(t, 0, -1)",
    "np.moveaxis(t, [0, 1], [2, 0])",
    "np.expand_dims(x, 1)",
    "np.expand_dims(x, (0, -1))",
    "np.squeeze(x[:1])",
    "x[:, :1].squeeze(1)",
    "np.atleast_2d(v)",
    "np.atleast_3d(x)",
    "np.atleast_1d(s)",
    "np.broadcast_to(v, (3, 4))",
    "np.flip(x)",
    "np.flip(x, 0)",
    "np.fliplr(x)",
    "np.flipud(x)",
    "np.rot90(x)",
    "np.rot90(x, 2)",
    "np.rot90(x, -1)",
    "m.diagonal(-1)",
    "np.diagonal(t, axis1=1, axis2=2)",
    "np.split(v, 2)",
    "np.array_split(v, 3)",
    "np.split(x, [1], axis=0)",
    "np.split(v, [-2, 1, 30])",
    "np.linalg.diagonal(m)",
    "np.flip(x, (0, 1))",
    "np.permute_dims(t, (1, 0, 2))",
    "np.flipud(np.fliplr(x))",
    "np.lib.stride_tricks.sliding_window_view(v, 3)",
    "np.lib.stride_tricks.sliding_window_view(x[:, ::-1], (2, 3)).sum((2, 3))",
    "np.lib.stride_tricks.sliding_window_view(t, 3, axis=1)",
    "np.lib.stride_tricks.sliding_window_view(2 * t, (2, 2), axis=(-1, 0))",
    "np.lib.stride_tricks.sliding_window_view(v, 4)",
    "np.lib.stride_tricks.sliding_window_view(v[: n - 3], n - 3)",
    "w = np.lib.stride_tricks.sliding_window_view(v, 2)\nv[:] = 7\nw.sum()",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


WINDOWS = "np.lib.stride_tricks.sliding_window_view"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"{WINDOWS}(v, 5)", "CD0314.*an axis is shorter"),
        (f"{WINDOWS}(v[: idx[2]], 2).sum()", "CD0314.*an axis is shorter"),
        (f"{WINDOWS}(x, 2)", "CD0452.*1 sizes of a window, and 2 axes"),
        (f"{WINDOWS}(v, 2)[0] = 1\nv", "CD0462.*in several windows"),
    ],
)
def test_windows_fit_and_are_only_read(body: str, text: str) -> None:
    with pytest.raises(pe.CdError, match=f"(?s){text}"):
        compiled(body)


LAYOUTS = (
    "x", "x.T", "x[::2]", "x[:, 1:3]", "x[:, ::-1]", "x[:1]", "x[:, :1]", "x.T[:2]", "t[0]",
    "t.transpose(2, 0, 1)", "t.swapaxes(0, 1)[:1]", "x[:0]", "x + 1",
)  # fmt: skip


@pytest.mark.parametrize("array", LAYOUTS)
@pytest.mark.parametrize("order", ["C", "A", "F"])
def test_the_order_of_elements_may_be_that_of_memory(array: str, order: str) -> None:
    assert_same_as_numpy(f"({array}).ravel(order={order!r})")
    assert_same_as_numpy(f"np.reshape({array}, (-1,), order={order!r})")


def _plain(d: Any) -> Any:
    return (
        d[:, 1].ravel(), d[1].ravel(), d[:, :1].ravel(), d[::2].ravel(), d.T.ravel(),
        d[::-1].ravel(), d.T.ravel("F"), np.ravel(d[:, 0]), d[:, 0].reshape(-1), d.ravel(),
    )  # fmt: skip


def test_ravel_shares_memory_where_elements_follow_each_other() -> None:
    raveled = pe.cd(_plain)
    for n in range(1, 7):  # sizes are run-time sizes from the fourth on
        d = np.arange(n + 1.0) * np.ones((n + 2, 1))
        found, wanted = raveled(d), _plain(d)
        shared = [[np.shares_memory(one, d) for one in some] for some in (found, wanted)]
        assert shared[0] == shared[1]
        assert all(map(np.array_equal, found, wanted))


AS_IN_NUMPY = (
    "np.hsplit(v, 2), np.hsplit(v, [1, 3]), np.hsplit(x, 2), np.vsplit(x, 3)",
    "np.rot90(x, 1, (-1, 0)), np.rot90(t, 3, [0, 2])",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.diagonal(m, 0, 0, 0)", "CD0446", "axis 0 is given twice"),
    ("np.diagonal(v)", "CD0452", "a diagonal needs at least two axes, and is of f64[4]"),
    ("np.rot90(m, 1, (0, 0))", "CD0446", "axis 0 is given twice"),
    ("np.rot90(m, 1, (0, -2))", "CD0446", "axis 0 is given twice"),
    ("np.rot90(m, 1, (0,))", "CD0446", "turns the plane of two axes, and is given 1"),
    ("np.rot90(m, 1, (0, 1, 1))", "CD0446", "and is given 3"),
    ("np.rot90(m, 1, 0)", "CD0446", "and is given one number"),
    ("np.rot90(v)", "CD0452", "turns the plane of two axes, and is given f64[4]"),
    ("np.moveaxis(x, (0, 0), (1, 1))", "CD0446", "axis 0 is given twice"),
    ("np.moveaxis(x, (0,), (1, 0))", "CD0311", "1 axes do not move to 2 places"),
    ("np.vsplit(v, 2)", "CD0452", "`vsplit` needs two axes, and is given f64[4]"),
    ("np.hsplit(v[0], 2)", "CD0452", "`hsplit` needs an axis, and is given"),
    ("np.flip(x, (1, 1))", "CD0446", "axis 1 is given twice"),
    ("np.sum(x, (0, -2))", "CD0446", "axis 0 is given twice"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


def test_an_axis_of_run_time_size_is_not_squeezed_in_silence() -> None:
    f = pe.cd_from_source("lambda x, n: np.squeeze(x[:n])", {"np": np}, backend="numpy")
    for size in (3, 4, 5, 0, 2, 1, 6, 1):
        assert f(np.ones((7, 2)), size).shape == np.squeeze(np.ones((7, 2))[:size]).shape
    g = pe.cd_from_source("lambda x: np.squeeze(x[4:5] * 2)", {"np": np}, backend="numpy")
    for size in (2, 7, 5, 4, 9, 8, 3):
        assert g(np.ones(size)).shape == np.squeeze(np.ones(size)[4:5]).shape


@pytest.mark.parametrize("value", [np.int8(3), np.True_, np.array(2.5), 2.5], ids=repr)
def test_a_scalar_has_no_axes_to_squeeze(value: object) -> None:
    assert_as_plain("np.squeeze(a)", value)
