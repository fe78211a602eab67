"""How the caller gets values back: as arguments, views of them, new arrays, or numbers."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.elaborate.typed import Argument, Many, New, Sliced, Strided
from tests.language.ask import compiled, plain, refused

from .scenes import typed

X = np.arange(12.0).reshape(3, 4)


def returned(body: str) -> object:
    return typed("x", body, X).returns


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return x", None), ("return x[1:]", Strided), ("return x.T", Strided),
        ("return x[:, ::2]", Strided),
    ],
)  # fmt: skip
def test_arguments_and_their_views_are_not_copied(body: str, kind: type | None) -> None:
    result = returned(body)
    assert isinstance(result, Argument)
    assert result.view is None if kind is None else isinstance(result.view, kind)


def test_new_arrays_are_numbered_in_order_and_shared_by_their_views() -> None:
    result = returned("y = x + 1; return y, x * 2, y[1:]")
    assert isinstance(result, Many)
    first, second, view = result.items
    assert all(isinstance(item, New) for item in result.items)
    assert [item.number for item in (first, second, view)] == [0, 1, 0]
    assert view.view is not None


@pytest.mark.parametrize("body", ["return y, y[1:]", "return y[k:], y", "return y[::-1], y[:k]"])
def test_views_of_a_new_array_share_it_at_any_size(body: str, backend: str) -> None:
    f = compiled("x, k", f"y = x * 2; {body}").on(backend)
    for size in range(3, 9):
        one, other = f(np.ones(size), 1)
        expected = plain("x, k", f"y = x * 2; {body}", np.ones(size), 1)
        one[:] = 7
        expected[0][:] = 7
        np.testing.assert_array_equal(other, expected[1])


def test_a_slice_whose_bounds_the_run_knows_is_a_view_by_slices() -> None:
    f = compiled("x, k", "return x[k:]")
    for k in range(3):
        assert np.shares_memory(f(X, k), X)
    for n in (3, 4, 5, 6, 7):
        f(np.ones(n), n - 1)[:] = 5
    result = typed("x, k", "return x[k[0]:]", X, np.array([1])).returns
    assert isinstance(result, Argument) and isinstance(result.view, Sliced)


def test_what_is_returned_on_some_paths_only_is_refused() -> None:
    assert refused("x, t", "if t > 0:\n    return x", X, 1.0).code == "CD0434"


ONE_MEMORY = {
    "the second": "x += 1\nreturn y",
    "both": "x += 1\nreturn y, x, [y], (x, y)[1]",
    "by another name": "z = y\ny[0] = 3\nreturn z, x",
    "of an object": "x += 1\nm.v = y\nreturn m.v",
}


@pytest.mark.parametrize("body", ONE_MEMORY.values(), ids=ONE_MEMORY)
def test_a_parameter_is_returned_itself_beside_one_of_the_same_memory(body: str) -> None:
    class Owner:
        pass

    def given(result: object, x: np.ndarray, y: np.ndarray) -> object:
        if isinstance(result, tuple | list):
            return [given(item, x, y) for item in result]
        return ["x", "y"][[x is result, y is result].index(True)]

    found = []
    for call in (compiled("x, y, m", body), lambda *args: plain("x, y, m", body, *args)):
        x, m = np.zeros(3), Owner()
        y = x[:]
        found.append(given(call(x, y, m), x, y))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "body",
    [
        "x += 1\nif x[0] > 1: return y\nreturn x",
        "for k in range(3):\n    x[k] += 1\n    if x[k] > 1: return x\nreturn y",
    ],
)
def test_what_may_be_one_of_two_objects_of_one_memory_is_a_view_of_it(body: str) -> None:
    for value in (0.0, 1.0):
        x = np.full(3, value)
        assert np.shares_memory(compiled("x, y", body)(x, x[:]), x)
