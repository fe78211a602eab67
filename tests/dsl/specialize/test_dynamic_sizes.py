"""Forms for any size: after three sizes of an axis one more form serves all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.captures.inputs import ArraySpec
from plusequals.dsl.specialize.dynamic_sizes import (
    SizeHistory,
    dynamic_axes_text,
    erase_sizes,
    generalization_reason,
    matches_spec,
)
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
    seen = SizeHistory()
    specs = [{"x": ArraySpec(dtypes.float32, (n, 7), None)} for n in (2, 3, 4, 5)]
    for each in specs[:3]:
        assert seen.opened(each) is None
        seen.note(each)
    opened = seen.opened(specs[3])
    assert opened == {"x": ArraySpec(dtypes.float32, (None, 7), None)}
    assert dynamic_axes_text(opened) == "axis 0 of `x`"
    sizes = "axis 0 of `x` came in more than 3 sizes: this specialization is for any size from 2"
    numbers = "`m.a`, `m.b` came with more than 3 values: this specialization is for any value"
    assert generalization_reason(specs[3], opened) == sizes
    assert generalization_reason(specs[3], specs[3], ["m.a", "m.b"]) == numbers
    assert generalization_reason(specs[3], opened, ["m.a", "m.b"]) == f"{sizes}; {numbers}"
    assert not generalization_reason(specs[3], specs[3])
    assert matches_spec(specs[0]["x"], opened["x"])
    assert not matches_spec(ArraySpec(dtypes.float32, (1, 7), None), opened["x"])
    assert not matches_spec(ArraySpec(dtypes.float64, (5, 7), None), opened["x"])
    seen.close(erase_sizes(specs[3]))
    assert seen.opened(specs[3]) is None


def _forms(function: pe.CdFunction, arrays: list[np.ndarray]) -> list[str]:
    """Return why the form of each call was made."""
    return [(function(x), function.specialise(x).reason)[1] for x in arrays]


@pytest.mark.parametrize(
    "take",
    [
        lambda n: np.arange(2.0 * n)[::2],
        lambda n: np.arange(float(n))[::-1],
        lambda n: np.arange(3.0 * n).reshape(n, 3).T,
        lambda n: np.broadcast_to(np.float64(3), (n,)),
    ],
)
def test_strides_that_stay_the_same_leave_sizes_open(take: Callable[[int], np.ndarray]) -> None:
    function = pe.cd_from_source("def f(x):\n    return x * 2", backend="numpy")
    reasons = _forms(function, [take(n) for n in (2, 3, 4, 5, 9)])
    assert ["any size" in reason for reason in reasons] == [False] * 3 + [True] * 2
    assert "copied" not in reasons[-1]
    np.testing.assert_array_equal(function(take(11)), take(11) * 2)


def test_sizes_that_decide_whether_a_reshape_is_a_view_stay_closed() -> None:
    first = ArraySpec(dtypes.float64, (4, 5), (20, 2))
    seen = SizeHistory()
    for n in (2, 3, 4):
        seen.note({"x": replace(first, shape=(n, n + 3))})
    opened = seen.opened({"x": replace(first, shape=(5, 5))})
    assert opened == {"x": replace(first, shape=(None, 5))}


@pytest.mark.parametrize(
    "take",
    [
        lambda n: np.asfortranarray(np.random.default_rng(n).random((n, 3))),
        lambda n: np.random.default_rng(n).random((3, 40 + n))[:, :n],
        lambda n: np.random.default_rng(n).random(5 * n)[::n],
    ],
)
def test_layouts_that_change_with_sizes_are_copied(take: Callable[[int], np.ndarray]) -> None:
    function = pe.cd_from_source("def f(x):\n    return x * 2", backend="numpy")
    reasons = _forms(function, [take(n) for n in (2, 3, 4, 5, 6, 9)])
    assert ["copied to C order" in reason for reason in reasons] == [False] * 3 + [True] * 3
    made = {id(function.specialise(take(n))) for n in (5, 7, 11)}
    assert len(made) == 1
    for n in (5, 7, 12):
        np.testing.assert_array_equal(function(take(n)), take(n) * 2)


def test_sums_of_copies_have_the_order_of_what_was_given() -> None:
    """Those over what lies side by side are put together from lanes, the others are not."""
    text = "def f(x):\n    return x.sum(axis=0), x.sum(axis=1)"
    function = pe.cd_from_source(text, backend="cc")
    rng = np.random.default_rng(4)
    arrays = [np.asfortranarray(rng.random((n, n + 1), np.float32)) for n in (40, 41, 42, 43)]
    for x in arrays:
        got = function(x)
    assert "copied" in function.specialise(arrays[-1]).reason
    wanted = pe.cd_from_source(text, backend="cc")(arrays[-1])
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[1], wanted[1])


@pytest.mark.parametrize(
    "returned",
    ["u, u[1:]", "u[:-1], u", "u[1:], u[:-1]", "u, u.T", "u, u[::-1]", "u, [u[0], (u[:, -1],)]",
     "u, u.reshape(-1)", "u, u[None]", "u[1:].real, u", "u, u[i]", "u[i:], u[:, i]"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_views_of_a_new_array_share_it_at_any_size(returned: str, dtype: str) -> None:
    """Also after as many sizes as make the code for any size, and in repeated calls."""
    text = f"def f(a, k):\n    u = a * 2\n    i = int(k[0])\n    return {returned}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    f = pe.cd_from_source(text, globals={"np": np})
    for size in (2, 3, 4, 5, 6, 7, 7, 7, 2, 1):
        given = np.arange(size * 3.0).reshape(size, 3).astype(dtype), np.array([min(size, 2) - 1])
        found, plain = _arrays(f(*given)), _arrays(scope["f"](*given))
        for one, other in zip(found, plain, strict=True):
            np.testing.assert_array_equal(one, other)
            one[...] = other[...] = 7
        for one, other in zip(found, plain, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{size}: they share other elements")


def _arrays(result: Any) -> list[np.ndarray]:
    """Return the arrays of nested tuples and lists."""
    if isinstance(result, np.ndarray):
        return [result]
    return [array for item in result for array in _arrays(item)]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            "def f(x, y):\n    return x.sum() * y.sum()",
            [(2, 5), (3, 5), (4, 5), (5, None), (7, 5), (6, None), (8, 9)],
        ),
        (
            "def f(x, y):\n    y[0] = 7.0\n    return x.sum() + y[0]",
            [(2, 5), (3, 5), (4, 5), (5, None), (7, 5), (5, None), (5, 5)],
        ),
        ("def f(x, y):\n    return x * y", [(5, 5), (5, None), (6, 6), (7, None), (8, None)]),
    ],
)
def test_an_array_may_be_passed_twice_where_one_of_its_sizes_becomes_dynamic(
    text: str, calls: list[tuple[int, int | None]], backend: str
) -> None:
    f, plain = pe.cd_from_source(text, backend=backend), dict[str, Any]()
    exec(text, plain)
    for first, second in calls:
        x, w = np.ones(first), np.ones(first)
        y, v = (x, w) if second is None else (np.ones(second), np.ones(second))
        assert np.array_equal(f(x, y), plain["f"](w, v))
        assert np.array_equal(x, w) and np.array_equal(y, v)


def test_two_captured_paths_may_lead_to_one_array_of_dynamic_size() -> None:
    text = "def f(m):\n    return m.x.sum() * m.y.sum()"
    f, y = pe.cd_from_source(text), np.ones(5)
    for n in (2, 3, 4):
        assert f(SimpleNamespace(x=np.ones(n), y=y)) == 5 * n
    assert f(SimpleNamespace(x=y, y=y)) == 25
    assert f(SimpleNamespace(x=np.ones(7), y=y)) == 35
    assert f(SimpleNamespace(x=np.ones(7), y=np.ones(6))) == 42
