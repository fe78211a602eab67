"""The callable: how it is called, what comes back, on which backend, and what is refused first."""

from __future__ import annotations

import copy
import functools
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.api.cd import BoundFunction

ROOT = Path(__file__).resolve().parents[3]


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


def test_override_is_for_the_code_inside_and_use_for_the_process(as_new: None) -> None:
    f = made("def f(x):\n    return x + 1")
    x = np.zeros(2)
    f(x)
    assert f.explain(x).loops
    with pe.override("numpy"):
        assert not f.explain(x).loops
    assert f.explain(x).loops
    pe.use("numpy")
    assert not f.explain(x).loops
    np.testing.assert_array_equal(f(x), x + 1)


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


def test_what_a_call_gives_may_have_the_name_of_a_local() -> None:
    scale = made("def scale(x):\n    y = x * 2\n    return y")
    around = scale.definition.scope.globals
    first = scale.specialise(np.ones(3))
    for size in (3, 3, 4):
        around["y"] = scale(np.ones(size))
        assert around["y"].tolist() == [2.0] * size
    assert scale.specialise(np.ones(3)) is first


def test_a_name_written_in_parts_stays_a_local_if_it_was_one_at_first() -> None:
    part = made("def part(x):\n    t[i] = x[i]\n    return t")
    around = part.definition.scope.globals
    first = part.specialise(np.ones(3))
    for size in (3, 3, 4, 5, 6, 7):
        around["t"] = part(np.ones(size))
        assert around["t"].tolist() == [1.0] * size
    assert part.specialise(np.ones(3)) is first
    again = made("def part(x):\n    t[i] = x[i]\n    return t")
    again.definition.scope.globals["t"] = np.ones(3)
    with pytest.raises(NameError, match="CD0207"):
        again(np.ones(3))


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


def times_100(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments) * 100

    return call


@times_100
def more(x):
    return x + 1


def test_what_other_decorators_do_is_done() -> None:
    wrapped = cd(times_100(lambda x: x + 1))
    assert wrapped(np.ones(2)).tolist() == [200, 200]
    assert cd(lambda x: more(x) + 1)(np.ones(1)).tolist() == [201]


def test_a_method_that_is_bound_keeps_its_object() -> None:
    class Model:
        rate = 2.0

        def scaled(self, x):
            return x * self.rate

        @classmethod
        def halved(cls, x):
            return x / cls.rate

    assert cd(Model().scaled)(np.ones(1)).tolist() == [2]
    assert cd(Model.halved)(np.ones(1)).tolist() == [0.5]


def test_decorators_of_a_class_stand_above_and_below() -> None:
    class Scaled:
        scale = 3.0

        @classmethod
        @cd
        def times(cls, x):
            return x * cls.scale

        @cd
        @classmethod
        def halved(cls, x):
            return x / (2 * cls.scale)

        @cd
        @staticmethod
        def more(x):
            return x + 1

    assert Scaled.times(np.ones(2)).tolist() == [3.0, 3.0]
    assert Scaled.halved(np.ones(1)).tolist() == [1 / 6]
    assert Scaled().halved(np.ones(1)).tolist() == [1 / 6]
    assert Scaled.more(np.ones(1)).tolist() == Scaled().more(np.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        ImportError("x.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),  # CPython has no room for a frame
    ],
)
def test_memory_that_is_short_is_told_as_memory(
    raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = made("def f(x):\n    return x + 1\n")

    def short(*_: object) -> None:
        raise raised

    monkeypatch.setattr(type(function._forms), "find", short)
    with pytest.raises(pe.CdError, match="CD0705"):
        function(1.0)


def test_reloaders_of_notebooks_renew_functions_that_were_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules: list[Any] = []
    reloader = SimpleNamespace(UPDATE_RULES=rules)
    monkeypatch.setitem(sys.modules, "IPython.extensions.autoreload", reloader)
    old, new = cd(lambda x: x + 1.0, backend="numpy"), cd(lambda x: x + 10.0, backend="numpy")
    assert old(1.0) == 2.0
    ((fits, renew),) = rules
    assert fits(old, new) and not fits(old, np.sin)
    renew(old, new)
    assert old(1.0) == new(1.0) == 11.0 and old.surface is new.surface
