"""What a call may be given, what it returns, and what is refused before anything is written."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.arrays import copy_with_strides
from plusequals.dsl.dispatch.execute import _view
from plusequals.dsl.elaborate.typed import Strided


@cd
def scale(y, x, a=2.0):
    y[i] = a * x[i]


def made(text: str, **names: Any) -> Any:
    """The function that a text defines, among these names."""
    return pe.cd_from_source(textwrap.dedent(text), {"np": np, **names})


# ---------------------------------------------------------------- what comes back


def test_new_arrays_scalars_and_tuples(backend: str) -> None:
    f = made(
        """
        def f(x, n):
            return x + 1, np.sum(x), (n * 2, 7, None), [x * 2]
        """
    )
    x = np.arange(3.0)
    with pe.override(backend):
        new, total, (twice, seven, nothing), listed = f(x, 4)
    np.testing.assert_array_equal(new, x + 1)
    assert isinstance(total, np.float64) and total == 3.0
    assert (type(twice), twice, seven, nothing) == (int, 8, 7, None)
    assert isinstance(listed, list)
    np.testing.assert_array_equal(listed[0], 2 * x)


@pytest.mark.parametrize("view", ["z[None]", "z.reshape(1, 1)", "z[..., None]", "z.ravel()"])
def test_a_view_of_an_argument_without_axes_shares_it(view: str, backend: str) -> None:
    f = made(f"def f(z):\n    z += 1\n    y = np.zeros(())\n    return {view}, y, y[None]")
    with pe.override(backend):
        for value in (1.0, 2.0):  # the first call, and the later ones
            z = np.array(value)
            part, y, of_y = f(z)
            assert part.base is not None and np.shares_memory(part, z)
            assert np.shares_memory(of_y, y)
            part[:] = 9
            assert z == 9


def test_a_returned_parameter_is_that_object(backend: str) -> None:
    f = made("def f(x, y):\n    x[0] = 5\n    return y, x")
    for x in (np.zeros(3), np.zeros((3, 2)).T[0], np.zeros(3).view(np.recarray)):
        y = np.ones(2)
        with pe.override(backend):
            got = f(x, y)
        assert got[0] is y and got[1] is x and x[0] == 5


def test_a_returned_view_is_a_view(backend: str) -> None:
    f = made("def f(x):\n    return x[1:, ::-2], x.T, x[0]")
    for x in (np.arange(12.0).reshape(3, 4), np.arange(24.0).reshape(4, 6)[::-1, ::2].T):
        with pe.override(backend):
            got = f(x)
        for one, expected in zip(got, (x[1:, ::-2], x.T, x[0]), strict=True):
            np.testing.assert_array_equal(one, expected)
            assert np.shares_memory(one, x) and one.strides == expected.strides
            assert one.flags.writeable
    x.flags.writeable = False
    assert not f(x)[0].flags.writeable


def test_a_view_of_what_had_to_be_packed_is_one_of_what_was_given() -> None:
    f = made("def f(x):\n    return x[1:, ::-2], x.T, x[:, None], x[2], x.reshape(-1)")
    swapped = np.arange(12.0).astype(">f8").reshape(3, 4)
    fields = np.zeros(12, [("a", "i1"), ("b", "f8")])
    fields["b"] = np.arange(12)
    others = (swapped[:, ::2], np.arange(24, dtype=">i4").reshape(4, 6)[::-1, ::2].T, swapped.T)
    for x in (swapped, *others, fields["b"].reshape(3, 4)):
        wanted = (x[1:, ::-2], x.T, x[:, None], x[2])
        *found, flat = f(x)
        for one, other in zip(found, wanted, strict=True):
            assert np.shares_memory(one, x) and one.strides == other.strides
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(flat, x.reshape(-1))
        assert np.shares_memory(flat, x) == np.shares_memory(x.reshape(-1), x)


FLAT = {
    "ravel": "w = x.ravel()",
    "reshape": "w = x.reshape(-1)",
    "of the transpose": "w = x.T.ravel()",
    "of a part": "w = x[1:].ravel()",
    "of a reversed one": "w = x[::-1].ravel()",
}


def in_records(shape: tuple[int, ...], fields: object = (("a", "i1"), ("b", "f8"))) -> np.ndarray:
    return np.zeros(shape, list(fields))["b"]


@pytest.mark.parametrize("flat", FLAT.values(), ids=list(FLAT))
@pytest.mark.parametrize(
    "make",
    [
        lambda: in_records((4,)),
        lambda: in_records((3, 2)),
        lambda: in_records((3, 2)).T,
        lambda: in_records((4,), (("a", "i1"), ("b", "i2"), ("c", "i1"))),
        lambda: in_records((3,), (("a", "i1"), ("b", "f8", 2))),
        lambda: np.zeros((3, 2), ">f8"),
        lambda: np.zeros((3, 2), ">f8").T,
        lambda: np.zeros(8, ">f8")[::2],
    ],
)
def test_what_is_packed_is_flattened_as_numpy_does(make: Callable[[], Any], flat: str) -> None:
    text = f"def f(x):\n    {flat}\n    w[0] = 9\n    w += 1\n    return w, x.sum()"
    names: dict[str, Any] = {}
    exec(text, names)
    x, y = make(), make()
    expected, total = names["f"](x)
    try:
        found, found_total = made(text)(y)
    except pe.CdError as problem:
        assert problem.code == "CD0462" and not np.shares_memory(expected, x)
        return
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(found, expected)
    assert found_total == total
    assert np.shares_memory(found, y) == np.shares_memory(expected, x)


def test_results_are_new_every_time() -> None:
    f = made("def f(x):\n    return x + 1")
    x = np.zeros(3)
    first, second = f(x), f(x)
    first[:] = 9
    np.testing.assert_array_equal(second, np.ones(3))


# ---------------------------------------------------------------- what may be given


class Interface:
    """An object with NumPy's array interface and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.kept = array
        self.__array_interface__ = array.__array_interface__


class Capsule:
    """An object with DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.kept = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.kept.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kept.__dlpack_device__()


class Copying:
    """An object that makes a new array of itself each time."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values)


@pytest.mark.parametrize("wrap", [Interface, Capsule])
def test_foreign_arrays_are_read_and_written_in_place(wrap: Callable[..., Any]) -> None:
    x, y = np.arange(3.0), np.zeros(3)
    scale(wrap(y), wrap(x))
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("given", [[1.0, 2.0], (1.0, 2.0), Copying([1.0, 2.0])])
def test_what_only_a_copy_can_be_made_of_is_read_and_not_written(given: Any) -> None:
    f = made("def f(y, x):\n    y[:] = 2 * np.array(x)")
    y = np.zeros(2)
    f(y, given)
    np.testing.assert_array_equal(y, [2.0, 4.0])
    with pytest.raises(TypeError) as caught:
        f(given, y)
    assert isinstance(caught.value, pe.CdError)


def test_a_list_of_arrays_is_its_items() -> None:
    f = made("def f(xs):\n    xs[0][:] = xs[1] + 1")
    for n in (2, 3):
        xs = [np.zeros(n), np.ones(n)]
        f(xs)
        np.testing.assert_array_equal(xs[0], np.full(n, 2.0))


def test_lists_are_compared_by_shape_not_by_value() -> None:
    f = made("def f(x):\n    return np.sum(np.array(x))")
    assert [f([1.0, 2.0]), f([3.0, 4.0]), f([1.0])] == [3.0, 7.0, 1.0]


def test_zero_d_and_empty(backend: str) -> None:
    with pe.override(backend):
        f = made("def f(y, x):\n    y[()] = x * 2")
        y = np.zeros(())
        f(y, np.array(4.0))
        assert y == 8.0
        y = np.zeros(0)
        scale(y, np.zeros(0))
        assert y.shape == (0,)
        assert made("def f(x):\n    return np.sum(x, axis=0)")(np.zeros((0, 2))).tolist() == [0, 0]


def test_read_only_inputs_are_read() -> None:
    x, y = np.arange(3.0), np.zeros(3)
    x.flags.writeable = False
    scale(y, x)
    np.testing.assert_array_equal(y, 2 * x)


def test_read_only_outputs_are_refused_before_anything_runs() -> None:
    f = made("def f(y, z, x):\n    y[i] = x[i]\n    z[i] = x[i]")
    x, y, z = np.ones(3), np.zeros(3), np.zeros(3)
    f(y, z, x)
    y[:], z[:] = 0, 0
    z.flags.writeable = False
    with pytest.raises(ValueError, match="`z` is read-only") as caught:
        f(y, z, x)
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0703"
    np.testing.assert_array_equal(y, np.zeros(3))
    z.flags.writeable = True
    f(y, z, x)
    np.testing.assert_array_equal(z, x)


def test_unusual_layouts_are_read_and_written(backend: str) -> None:
    raw = np.zeros(33, np.uint8)
    for y in (
        np.zeros(8)[::-2],
        np.zeros(4, ">f8"),
        raw[1:].view(np.float64),
        np.zeros((4, 2), order="F")[:, 1],
    ):
        x = np.arange(4.0)
        with pe.override(backend):
            scale(y, x)
        np.testing.assert_array_equal(y, 2 * x)


def test_arrays_of_no_known_type_are_named() -> None:
    with pytest.raises(TypeError, match="`x` has elements of type object") as caught:
        scale(np.zeros(2), np.array([None, 1]))
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0701"
    assert "def scale(y, x" in str(caught.value)


def test_a_layout_changed_in_place_is_noticed() -> None:
    x, y = np.arange(6.0), np.zeros(6)
    scale(y, x)
    x.shape = y.shape = (2, 3)
    with pytest.raises(pe.CdError):
        scale(y, x)
    x.shape = y.shape = (6,)
    y.dtype = np.int64
    with pytest.raises(pe.CdError):
        scale(y, x)


# ---------------------------------------------------------------- shared memory


def chained(x: np.ndarray, y: np.ndarray) -> None:
    """What `test_identical_arguments_are_one_array` compiles."""
    x[:] = x + y
    y[:] = x * 2


def test_identical_arguments_are_one_array(backend: str) -> None:
    f = cd(chained)
    with pe.override(backend):
        for _ in range(2):
            x, expected = np.arange(4.0), np.arange(4.0)
            f(x, x)
            chained(expected, expected)
            np.testing.assert_array_equal(x, expected)
            x, y = np.arange(4.0), np.ones(4)
            f(x, y)
            np.testing.assert_array_equal(x, np.arange(4.0) + 1)
            np.testing.assert_array_equal(y, (np.arange(4.0) + 1) * 2)


def test_overlap_that_is_only_read_is_fine(backend: str) -> None:
    x, y = np.arange(5.0), np.zeros(4)
    f = made("def f(y, a, b):\n    y[i] = a[i] + b[i]")
    with pe.override(backend):
        f(y, x[1:], x[:-1])
        np.testing.assert_array_equal(y, x[1:] + x[:-1])
        f(y, x[1:], x[1:])
        np.testing.assert_array_equal(y, 2 * x[1:])


@pytest.mark.parametrize("first", [slice(1, None), slice(None, -1), slice(None, None, -1)])
def test_overlap_gives_numpys_result_where_one_assignment_decides(
    backend: str, first: slice
) -> None:
    base, expected = np.arange(6.0), np.arange(6.0)
    written, read = base[first], base[: len(base[first])]
    expected[first] = 2 * expected[: len(expected[first])].copy()
    with pe.override(backend):
        scale(written, read, 2)  # an integer is read before the assignment
    np.testing.assert_array_equal(base, expected)


@pytest.mark.parametrize(
    "body",
    [
        "y[np.argsort(x)] = x", "y[:] = np.sort(x)", "np.cumsum(x, out=y)",
        "y[::-1] = np.cumsum(x)",
        "y -= x[:3].sum()", "t = x * 2\n    y[:] = t - x + y", "y += np.outer(x, x).sum(axis=0)",
        "v = x[::-1]\n    s = 0.0\n    for i in range(3):\n        s += x[i]\n    y[:] = v * s",
        "y[x > 2] = -1", "t = np.sort(x)\n    y[:] = x\n    return t, x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shift", [-2, 1, 3])
def test_overlap_gives_numpys_result_where_the_last_statement_writes(body: str, shift: int) -> None:
    text = f"def f(y, x):\n    {body}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    bases = [np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3]) for _ in range(2)]
    compiled = pe.cd_from_source(text, globals={"np": np})
    results = [
        function(base[3:7], base[3 + shift : 7 + shift])
        for function, base in zip((compiled, scope["f"]), bases, strict=True)
    ]
    np.testing.assert_array_equal(*bases)
    for one, other in zip(*(result or () for result in results), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("body", ["y[:] = x\n    return x * 1", "y[:] = x\n    y += x"])
def test_overlap_that_is_read_after_the_write_is_refused(body: str) -> None:
    base = np.arange(5.0)
    with pytest.raises(pe.CdError, match="CD0708"):
        pe.cd_from_source(f"def f(y, x):\n    {body}\n")(base[1:], base[:-1])


def test_overlap_that_depends_on_the_order_of_writes_is_refused() -> None:
    base = np.arange(5.0)
    f = cd(chained)
    f(np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="`x` and `y` share memory") as caught:
        f(base[1:], base[:-1])
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0708"
    np.testing.assert_array_equal(base, np.arange(5.0))


# ---------------------------------------------------------------- views and copies

BASE = np.arange(24.0)
LAYOUTS = [
    BASE.reshape(4, 6),
    BASE.reshape(4, 6).T,
    BASE.reshape(4, 6)[::-1, ::2],
    BASE.reshape(6, 4)[::-2, ::-1].T,
    BASE.reshape(2, 3, 4)[:, ::-1],
    np.broadcast_to(BASE[:4], (3, 4)),
]


def picked(array: np.ndarray, index: Any) -> tuple[np.ndarray, Strided]:
    """What NumPy gives for an index, and the same as offset and strides in elements."""
    found = array[index]
    starts = [a.__array_interface__["data"][0] for a in (array, found)]
    strides = tuple(step // array.itemsize for step in found.strides)
    return found, Strided((starts[1] - starts[0]) // array.itemsize, found.shape, strides)


@pytest.mark.parametrize("array", LAYOUTS)
@pytest.mark.parametrize("index", [(slice(1, None),), (..., slice(None, None, -2)), (1,), (..., 2)])
def test_a_view_is_the_one_numpy_makes(array: np.ndarray, index: Any) -> None:
    expected, view = picked(array, index)
    got = _view(array, view)
    np.testing.assert_array_equal(got, expected)
    assert np.shares_memory(got, array) and got.strides == expected.strides
    assert got.flags.writeable == array.flags.writeable


def test_an_empty_view() -> None:
    assert _view(np.zeros((0, 3)), Strided(0, (3, 0), (1, 3))).shape == (3, 0)
    assert _view(np.zeros(3), Strided(3, (0, 2), (1, 1))).shape == (0, 2)


@pytest.mark.parametrize("array", LAYOUTS[:5])
def test_a_copy_keeps_the_strides_it_is_compiled_for(array: np.ndarray) -> None:
    strides = tuple(step // array.itemsize for step in array.strides)
    for wanted in (None, strides):
        copy = copy_with_strides(array, wanted)
        np.testing.assert_array_equal(copy, array)
        assert not np.shares_memory(copy, array)
        assert copy.flags.c_contiguous if wanted is None else copy.strides == array.strides
