"""The callable: how it is called, what comes back, on which backend, and what is refused first."""

from __future__ import annotations

import copy
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.cd import BoundFunction

ROOT = Path(__file__).resolve().parents[2]


@cd
def scale(y, x, a=2.0, *, shift=0.0):
    """Fill `y` with `a * x + shift`."""
    y[i] = a * x[i] + shift


@cd(backend="numpy")
def total(x):
    return np.sum(x)


def made(text: str, **names: Any) -> Any:
    """The function that a text defines, among these names."""
    return pe.cd_from_source(textwrap.dedent(text), {"np": np, **names})


# ---------------------------------------------------------------- arguments


def test_arguments_by_place_by_name_and_by_default() -> None:
    x = np.arange(4.0)
    for call, expected in (
        (lambda y: scale(y, x), 2 * x),
        (lambda y: scale(y, x, 3.0), 3 * x),
        (lambda y: scale(y, x, a=-1.0), -x),
        (lambda y: scale(x=x, y=y), 2 * x),
        (lambda y: scale(y, x, shift=1.0), 2 * x + 1),
    ):
        y = np.zeros(4)
        assert call(y) is None
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "missing a required argument: 'y'"),
        ((1, 2, 3, 4), {}, "too many positional arguments"),
        ((1, 2), {"b": 1}, "unexpected keyword argument 'b'"),
        ((1, 2), {"x": 1}, "multiple values for argument 'x'"),
    ],
)
def test_wrong_arguments_are_a_type_error(
    args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    for ask in (scale, scale.explain, scale.procedure):
        with pytest.raises(TypeError, match=says) as caught:
            ask(*args, **kwargs)
        assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0436"
        assert "(y, x, a=2.0, *, shift=0.0)" in str(caught.value)


def test_defaults_of_a_text_are_evaluated_among_its_names() -> None:
    f = made("def f(x, a=K + 1):\n    return a * x", K=2.0)
    np.testing.assert_array_equal(f(np.ones(2)), [3.0, 3.0])


def test_it_looks_like_the_function_that_was_decorated() -> None:
    assert (scale.__name__, scale.__module__) == ("scale", __name__)
    assert scale.__doc__ == "Fill `y` with `a * x + shift`."
    assert scale.__wrapped__.__name__ == "scale"
    assert repr(scale) == "<cd function scale(y, x, a=2.0, *, shift=0.0)>"
    text = made("def f(x):\n    'What f does.'\n    return x")
    assert not hasattr(text, "__wrapped__") and text.__doc__ == "What f does."


def test_it_is_copied_as_a_function_is_and_pickled_by_name() -> None:
    assert copy.deepcopy(scale) is scale
    assert pickle.dumps(scale).count(b"scale") == 1


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


def test_a_view_of_what_had_to_be_packed_has_its_values() -> None:
    f = made("def f(x):\n    return x[1:, ::-2]")
    swapped = np.arange(12.0).astype(">f8").reshape(3, 4)
    assert np.shares_memory(f(swapped), swapped)
    for x in (swapped, swapped[:, ::2], np.arange(24, dtype=">i4").reshape(4, 6)[::-1, ::2].T):
        np.testing.assert_array_equal(f(x), x[1:, ::-2])


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


def test_overlap_that_depends_on_the_order_of_writes_is_refused() -> None:
    base = np.arange(5.0)
    f = cd(chained)
    f(np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="`x` and `y` share memory") as caught:
        f(base[1:], base[:-1])
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0708"
    np.testing.assert_array_equal(base, np.arange(5.0))


# ---------------------------------------------------------------- backends


def test_the_backend_of_the_decorator_wins() -> None:
    x = np.arange(3.0)
    assert total(x) == 3.0
    assert total.explain(x).origin.startswith("not compiled")
    with pe.override("cc"):
        assert total.explain(x).origin.startswith("not compiled")


def test_on_is_the_same_function_elsewhere() -> None:
    assert scale.on("numpy") is scale.on("numpy")
    x, y = np.arange(3.0), np.zeros(3)
    scale.on("numpy")(y, x)
    np.testing.assert_array_equal(y, 2 * x)
    assert scale.on("numpy").explain(y, x).origin.startswith("not compiled")
    assert scale.on("numpy").__wrapped__ is scale.__wrapped__


def test_override_is_for_the_code_inside_and_use_for_the_process() -> None:
    f = made("def f(x):\n    return x + 1")
    x = np.zeros(2)
    f(x)
    assert f.explain(x).loops
    with pe.override("numpy"):
        assert not f.explain(x).loops
    assert f.explain(x).loops
    try:
        pe.use("numpy")
        assert not f.explain(x).loops
        np.testing.assert_array_equal(f(x), x + 1)
    finally:
        pe.settings.reset()


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(RuntimeError, match="no-such") as caught:
        scale.on("no-such")(np.zeros(1), np.zeros(1))
    assert isinstance(caught.value, pe.CdError) and caught.value.code == "CD0801"


def test_the_environment_chooses_the_backend(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from plusequals import cd\n"
        "@cd\n"
        "def f(x):\n    return x + 1\n"
        "print(f(np.zeros(2)), f.explain(np.zeros(2)).origin)\n"
    )
    environment = {**os.environ, "PLUSEQUALS_BACKEND": "numpy", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("[1. 1.] not compiled")


# ---------------------------------------------------------------- methods and nested functions


class Model:
    """Parameters as attributes, the way people write them."""

    def __init__(self, n: int) -> None:
        self.w = np.arange(float(n))
        self.rate = 2.0
        self.sizes = {"a": np.ones(n)}

    @cd
    def step(self, x):
        return self.w * x * self.rate + self.sizes["a"]

    @cd
    def update(self, g):
        self.w[i] -= self.rate * g[i]

    @cd
    def both(self, x):
        return self.step(x) + self.plain(x)

    def plain(self, x):
        return x * self.rate

    def __call__(self, x):
        return self.w + x


def test_methods_read_what_the_object_has_now(backend: str) -> None:
    model, x = Model(3), np.ones(3)
    with pe.override(backend):
        np.testing.assert_array_equal(model.step(x), [1.0, 3.0, 5.0])
        model.rate = 3.0
        np.testing.assert_array_equal(model.step(x), [1.0, 4.0, 7.0])
        model.w, model.sizes["a"] = np.ones(2), np.zeros(2)
        np.testing.assert_array_equal(model.step(np.ones(2)), [3.0, 3.0])
        np.testing.assert_array_equal(Model(3).step(x), [1.0, 3.0, 5.0])


def test_methods_write_arrays_of_the_object() -> None:
    model = Model(3)
    kept = model.w
    model.update(np.ones(3))
    np.testing.assert_array_equal(kept, np.arange(3.0) - 2.0)


def test_methods_call_methods_without_compiling_each_time() -> None:
    model, x = Model(3), np.ones(3)
    form = Model.both.specialise(model, x)
    np.testing.assert_array_equal(model.both(x), 2 * np.arange(3.0) + 1 + 2)
    assert Model.both.specialise(model, x) is form
    model.rate = 1.0
    np.testing.assert_array_equal(model.both(x), np.arange(3.0) + 1 + 1)


def test_a_method_taken_from_an_object_is_asked_like_the_function() -> None:
    model, x = Model(2), np.ones(2)
    assert isinstance(model.step, BoundFunction) and model.step.__self__ is model
    assert "self.w: an array f64[2]" in model.step.explain(x).called
    assert [p.node.label for p in model.step.procedure(x).parameters] == ["x", "w", "a"]
    np.testing.assert_array_equal(model.step.on("numpy")(x), [1.0, 3.0])


def test_objects_that_can_be_called() -> None:
    model, x = Model(3), np.ones(3)
    g = cd(lambda x: model(x))
    np.testing.assert_array_equal(g(x), np.arange(3.0) + 1)
    model.w = np.zeros(3)
    np.testing.assert_array_equal(g(x), np.ones(3))


def test_nested_functions_capture_what_their_function_has() -> None:
    def outer(rate):
        @cd
        def inner(x):
            return rate * x

        return inner

    x = np.arange(3.0)
    np.testing.assert_array_equal(outer(2.0)(x), 2 * x)
    np.testing.assert_array_equal(outer(5)(x), 5 * x)


def test_lambdas_and_functions_defined_inside() -> None:
    twice = cd(lambda x: x * 2)
    np.testing.assert_array_equal(twice(np.ones(2)), [2.0, 2.0])
    f = made("def f(x):\n    def g(t):\n        return t + 1\n    return g(g(x))")
    np.testing.assert_array_equal(f(np.zeros(2)), [2.0, 2.0])


# ---------------------------------------------------------------- threads and notebooks


def test_threads_call_one_function_at_once() -> None:
    f = made("def f(x):\n    return x * 3 + 1")
    wrong: list[int] = []
    start = threading.Barrier(6)

    def work(seed: int) -> None:
        start.wait()
        for n in range(1, 30):
            x = np.full(1 + (n + seed) % 4, float(seed))
            if not np.array_equal(f(x), x * 3 + 1):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len({id(f.specialise(np.zeros(n))) for n in range(1, 5)}) == 4


def run_cell(number: int, text: str, names: dict[str, Any]) -> None:
    """Run a text as a notebook runs a cell: its lines are known under a name of their own."""
    name = f"<ipython-input-{number}-0123abcd>"
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = (len(text), None, lines, name)
    exec(compile(text, name, "exec"), names)


def test_cells_of_a_notebook() -> None:
    names: dict[str, Any] = {"cd": cd, "np": np}
    run_cell(1, "alpha = 2.0\n@cd\ndef f(x):\n    return alpha * g(x)\n", names)
    run_cell(2, "def g(x):\n    return x + 1\n", names)
    x = np.zeros(2)
    assert names["f"](x).tolist() == [2.0, 2.0]
    run_cell(3, "def g(x):\n    return x + 10\n", names)
    assert names["f"](x).tolist() == [20.0, 20.0]
    run_cell(4, "alpha = 3\n", names)
    assert names["f"](x).tolist() == [30.0, 30.0]
    run_cell(5, "@cd\ndef bad(x):\n    return nothing + x\n", names)
    with pytest.raises(NameError, match="<cell 5>:3:12"):
        names["bad"](x)


def test_errors_end_at_the_call() -> None:
    with pytest.raises(pe.CdError) as caught:
        scale(np.zeros(2), np.zeros(3))
    assert len(caught.traceback) <= 2
