"""Calls that go the short way: they do what the long way does, whatever changed in between."""

from __future__ import annotations

import array
import copy
import ctypes
import datetime
import functools
import gc
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.api.cd import CdFunction


def made(text: str, **names: Any) -> Any:
    """The function that a text defines, among these names."""
    return pe.cd_from_source(textwrap.dedent(text), {"np": np, **names})


pytestmark = pytest.mark.usefixtures("short_way")


def repeated(seen: list[str], call: Callable[[], Any], times: int = 5) -> list[Any]:
    """What several calls return, of which only the first ones went the long way."""
    call(), call(), call()
    seen.clear()
    results = [call() for _ in range(times)]
    assert seen == [], f"a call went the long way: {call}"
    return results


# ---------------------------------------------------------------- what goes the short way


def test_what_comes_back_is_what_the_long_way_returns(long_ways: list[str]) -> None:
    x, n = np.arange(6.0).reshape(2, 3), np.arange(3)
    for text, args, expected in (
        ("def f(x):\n    return x + 1", (x,), x + 1),
        ("def f(x):\n    return np.sum(x)", (x,), np.float64(15)),
        ("def f(n):\n    return np.sum(n)", (n,), np.int64(3)),
        ("def f(x):\n    return np.any(x > 4)", (x,), np.True_),
        ("def f(x):\n    return x * 1j", (x,), x * 1j),
        ("def f(a, b):\n    return a + b", (2, 3), 5),
        ("def f(a, b):\n    return a / b", (2.0, 4.0), 0.5),
        ("def f(a):\n    return a < 2.0", (1.0,), True),
        ("def f(a):\n    return a * 1j", (2.0,), 2j),
        ("def f(a):\n    return a * a", (np.float32(3),), np.float32(9)),
        ("def f(a):\n    return a + 1", (np.complex64(2j),), np.complex64(1 + 2j)),
        ("def f(a):\n    return a - 1", (3 + 1j,), 2 + 1j),
        ("def f(x):\n    return x, 7, None, x", (x,), (x, 7, None, x)),
        ("def f(x):\n    return [x[0] * 2, np.max(x)]", (x,), [x[0] * 2, np.float64(5)]),
        ("def f(x):\n    x[0] = 5.0", (x.copy(),), None),
        ("def f(x, p):\n    return x * p[0] + p[1]", (n, (n, 2)), n * n + 2),
        ("def f(x, p):\n    return x * p[0] + p[1]", (n, [n, n]), n * n + n),
        ("def f(x, p):\n    return x * p, p", (n, [1, 2.0, 3]), (n * [1, 2.0, 3], [1, 2.0, 3])),
        ("def f(x, mode):\n    return x + 1 if mode == 'up' else x", (n, "up"), n + 1),
    ):
        f = made(text)
        for got in repeated(long_ways, lambda f=f, args=args: f(*args)):
            assert type(got) is type(expected)
            parts = zip(got, expected) if isinstance(got, tuple | list) else [(got, expected)]
            for one, other in parts:
                assert type(one) is type(other)
                np.testing.assert_array_equal(one, other)
                if isinstance(one, np.ndarray | np.generic):
                    assert one.dtype == other.dtype


def test_a_returned_argument_is_that_object_and_a_result_is_a_new_one(
    long_ways: list[str],
) -> None:
    f, x = made("def f(x):\n    x[0] = 5\n    return x, x + 1"), np.zeros(3)
    results = repeated(long_ways, lambda: f(x))
    assert all(first is x for first, _ in results)
    assert len({id(second) for _, second in results}) == len(results)
    for _, second in results:
        assert second.flags.owndata and second.flags.writeable and second.base is None


def test_settings_of_a_with_are_compared_by_identity(long_ways: list[str], as_new: None) -> None:
    f, x = made("def f(x):\n    return x + 1"), np.arange(3.0)

    def alternating() -> np.ndarray:
        with pe.override(threads=1):
            f(x)
            with pe.override(tf32=True):
                f(x)
        return f(x)

    assert all((got == x + 1).all() for got in repeated(long_ways, alternating))
    with pe.override(threads=1):
        pe.use(tf32=True)
        repeated(long_ways, lambda: f(x))


def test_arguments_by_name_and_by_default(long_ways: list[str]) -> None:
    f = made("def f(x, a=2.0, *, shift=0.0):\n    return a * x + shift")
    x = np.arange(3.0)
    for call, expected in (
        (lambda: f(x), 2 * x),
        (lambda: f(x, 3.0), 3 * x),
        (lambda: f(shift=1.0, x=x), 2 * x + 1),
        (lambda: f(x, shift=-1.0, a=5.0), 5 * x - 1),
    ):
        for got in repeated(long_ways, call):
            np.testing.assert_array_equal(got, expected)
    with pytest.raises(TypeError, match="multiple values"):
        f(x, x=x)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(x, b=2.0)


def test_methods_and_what_objects_hold(long_ways: list[str]) -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale, self.weights = scale, np.arange(3.0)

        @pe.cd
        def run(self, x):
            return self.scale * x + self.weights

        def double(self, x):
            return x + x

        @pe.cd
        def twice(self, x):
            return self.double(x) * self.scale

    one, other, x = Model(2.0), Model(3.0), np.ones(3)
    for model in (one, other, one):
        for got in repeated(long_ways, lambda model=model: model.run(x)):
            np.testing.assert_array_equal(got, model.scale + model.weights)
        for got in repeated(long_ways, lambda model=model: model.twice(x)):
            np.testing.assert_array_equal(got, 2 * model.scale * x)
    one.scale = 5.0
    np.testing.assert_array_equal(one.run(x), 5.0 + one.weights)
    one.weights = np.full(3, 7.0)
    np.testing.assert_array_equal(one.run(x), 12.0 * x)
    one.weights[:] = 1
    np.testing.assert_array_equal(one.run(x), 6.0 * x)
    more = iter([Model(float(text)) for text in ["6.0"] * 8])
    assert [got[0] for got in repeated(long_ways, lambda: next(more).run(x))] == [6.0] * 5
    one.weights = np.arange(6.0)[::2]
    np.testing.assert_array_equal(one.run(x), 5.0 + one.weights)
    one.double = lambda x: x * 10
    np.testing.assert_array_equal(one.twice(x), 50.0 * x)
    del one.scale
    with pytest.raises(pe.CdError):
        one.run(x)


def test_captured_values_are_looked_up_in_each_call(long_ways: list[str]) -> None:
    names: dict[str, Any] = {"np": np, "K": 2.0, "A": np.arange(3.0)}
    f = pe.cd_from_source("def f(x):\n    return K * x + A", names)
    x = np.ones(3)
    np.testing.assert_array_equal(repeated(long_ways, lambda: f(x))[0], 2 + np.arange(3.0))
    names["K"] = 3.0
    np.testing.assert_array_equal(f(x), 3 + np.arange(3.0))
    names["K"] = np.float32(0.5)
    np.testing.assert_array_equal(f(x), 0.5 + np.arange(3.0))
    names["A"][:] = 7
    np.testing.assert_array_equal(f(x), [7.5, 7.5, 7.5])
    names["A"] = 1
    np.testing.assert_array_equal(f(x), [1.5, 1.5, 1.5])
    del names["K"]
    with pytest.raises(pe.CdError, match="K"):
        f(x)
    scale = 2

    @pe.cd
    def g(x):
        return scale * x

    repeated(long_ways, lambda: g(x))
    scale = 5
    np.testing.assert_array_equal(g(x), 5 * x)


class Gain:
    def __init__(self, by: float) -> None:
        self.by = by

    def of(self, x: Any) -> Any:
        return x * self.by


LISTS: list[tuple[str, list[Any], Callable[[list[Any]], object]]] = [
    ("L[1] * x", [1, 2, 3], lambda items: items.__setitem__(1, 5)),
    ("L[1] * x", [1, 2, 3], lambda items: items.__setitem__(1, 2.5)),
    ("L[1] * x", [1, True, 3], lambda items: items.__setitem__(1, 7)),
    ("len(L) * x", ["a", 1.5], lambda items: items.append(2)),
    ("sum(a + b for a, b in L) * x", [(1, 2), (3, 4)], lambda items: items.__setitem__(0, (8, 1))),
    ("L[0][1] * x", [[1.0, 2.0], []], lambda items: items[0].__setitem__(1, -0.0)),
    ("L[1].by * x - L[0].by", [Gain(2.0), Gain(3.0)], lambda items: setattr(items[1], "by", 0.5)),
    ("L[1].by * x - L[0].by", [Gain(2.0), Gain(3.0)], lambda items: items.reverse()),
    ("L[1].of(L[0].of(x))", [Gain(2.0), Gain(3.0)], lambda items: items.reverse()),
    ("L[1].of(L[0].of(x))", [Gain(2.0), Gain(3.0)], lambda items: items.__setitem__(0, items[1])),
    ("L[1].of(L[0].of(x))", [Gain(2.0), Gain(2.0)], lambda items: setattr(items[1], "by", 0.5)),
    ("sum(v * w for v, w in L) * x", [(k, 0.5) for k in range(99)], lambda items: items.pop()),
    ("L[7] * x", [0.5 * k for k in range(200)], lambda items: items.__setitem__(7, -0.0)),
    ("L[7] * x", list(range(200)), lambda items: items.__setitem__(7, 7.0)),
]


@pytest.mark.parametrize(
    ("text", "items", "change", "is_argument"),
    [
        (*case, is_argument)
        for case in LISTS
        for is_argument in (False, True)  # a list of numbers alone would be an array
        if not is_argument or any(isinstance(item, str | tuple | Gain) for item in case[1])
    ],
)
def test_items_of_lists_are_compared_in_each_call(
    long_ways: list[str], text: str, items: list[Any], change: Any, is_argument: bool
) -> None:
    x, items = np.arange(3.0), copy.deepcopy(items)
    if is_argument:
        f = functools.partial(made(f"def f(L, x):\n    return {text}"), items, x)
    else:
        f = functools.partial(made(f"def f(x):\n    return {text}", L=items), x)
    np.testing.assert_array_equal(repeated(long_ways, f)[0], eval(text, {"L": items, "x": x}))
    change(items)
    for _ in range(3):
        np.testing.assert_array_equal(f(), eval(text, {"L": items, "x": x}))


def test_a_name_that_comes_to_be_hides_the_one_further_out(long_ways: list[str]) -> None:
    names: dict[str, Any] = {}
    f = pe.cd_from_source("def f(y, x):\n    y[i] = abs(x[i])", names)
    x, y = -np.ones(3), np.zeros(3)
    repeated(long_ways, lambda: f(y, x))
    names["abs"] = made("def double(x):\n    return x * 2")
    f(y, x)
    np.testing.assert_array_equal(y, 2 * x)


def test_errors_of_a_run_are_the_same(long_ways: list[str]) -> None:
    f = made("def f(y, x, n):\n    for k in range(3):\n        y[k] = x[n[k]]")
    y, x, n = np.zeros(3), np.arange(3.0), np.array([0, 2, 1])
    repeated(long_ways, lambda: f(y, x, n))
    n[1] = 7
    texts = []
    for call in (f, f, functools.partial(CdFunction._call, f)):
        with pytest.raises(pe.CdError) as caught:
            call(y, x, n)
        texts.append(str(caught.value))
        assert isinstance(caught.value, IndexError)
        assert call is not f or len(caught.traceback) == 1
    assert texts[0] == texts[1] == texts[2]


def test_run_time_sizes(long_ways: list[str]) -> None:
    f = made("def f(y, x):\n    y[:] = np.cumsum(x[::-1]) * 2")
    for size in (5, 6, 7, 8, 9, 10):
        x, y = -np.arange(size), np.zeros(size, int)
        repeated(long_ways, lambda x=x, y=y: f(y, x))
        np.testing.assert_array_equal(y, np.cumsum(x[::-1]) * 2)
    g = made("def g(x):\n    return np.cumsum(x[::-1])[1:] * 2")
    for size in (1, 5, 6, 7, 8, 9, 10):
        x = -np.arange(size)
        for result in repeated(long_ways, lambda x=x: g(x)):
            np.testing.assert_array_equal(result, np.cumsum(x[::-1])[1:] * 2)


def test_large_results_have_the_memory_of_those_that_are_gone(long_ways: list[str]) -> None:
    f = made("def f(x):\n    return x + 1, np.zeros(len(x))")
    x = np.arange(30000.0)
    places = set()
    for _ in range(4):
        ((y, zeros),) = repeated(long_ways, lambda: f(x), 1)
        np.testing.assert_array_equal(y, x + 1)
        assert y.flags.owndata and not zeros.any()
        zeros += 1
        places.add(y.ctypes.data)
        del y
    assert len(places) <= 2


def test_integers_that_become_constants() -> None:
    f = made("def f(x, n):\n    return x.reshape(n, -1) if x.ndim == 1 else x * n")
    x = np.ones((2, 3))
    for n in (2, 3, 2, 3):
        np.testing.assert_array_equal(f(x, n), x * n)
    assert f(np.ones(6), 2).shape == (2, 3)
    for n in (2, 3, 2, 3, 2, 3):
        np.testing.assert_array_equal(f(x, n), x * n)
        assert f(np.ones(6), n).shape == (n, 6 // n)
    big = 2**70
    assert f(x, 2)[0, 0] == 2 and f(x, float(big))[0, 0] == big


# ---------------------------------------------------------------- what does not


def test_profiles_traces_and_logs_see_every_call(long_ways: list[str], tmp_path: Path) -> None:
    f, x = made("def f(x):\n    return x + 1"), np.zeros(3)
    repeated(long_ways, lambda: f(x))
    with pe.trace() as trace:
        f(x)
        f(x)
    assert len(long_ways) == 2 and len(str(trace).splitlines()) > 2
    with pe.profile() as timeline:
        f(x)
    assert "f" in str(timeline) and len(long_ways) == 3
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)):
        f(x)
    assert len(long_ways) == 4 and list(tmp_path.iterdir())
    repeated(long_ways, lambda: f(x))


def test_settings_decide_which_code_runs(long_ways: list[str]) -> None:
    f, x = made("def f(x):\n    return 1 / x"), np.zeros(3)
    repeated(long_ways, lambda: f(x))
    with pe.override(checked=True):
        for _ in range(5):
            with pytest.raises(pe.CdError):
                f(x)
    assert np.isinf(f(x)).all()
    with pe.override("numpy"):
        for _ in range(5):
            assert np.isinf(f(x)).all()
    on = f.on("numpy")
    for _ in range(5):
        assert np.isinf(on(x)).all()


def test_arrays_that_overlap(long_ways: list[str]) -> None:
    f = made("def f(y, x):\n    y[1:] = x[:-1]\n    y[0] = x[-1]")
    x, y = np.arange(8.0), np.zeros(8)
    repeated(long_ways, lambda: f(y, x))
    whole = np.arange(12.0)
    with pytest.raises(pe.CdError, match="share memory"):
        f(whole[:8], whole[4:])
    g = made("def g(y, x):\n    y[:] = x[::-1]")
    repeated(long_ways, lambda: g(y, x))
    g(whole[:8], whole[4:])
    np.testing.assert_array_equal(whole[:8], np.arange(12.0)[4:][::-1])
    g(y, y)
    np.testing.assert_array_equal(y, y)
    h = made("def h(y, x):\n    y[:] = y + x")
    z = np.ones(4)
    repeated(long_ways, lambda: h(z, z))
    before, w = z.copy(), np.ones(4)
    h(z, w)
    np.testing.assert_array_equal(z, before + 1)


def test_other_classes_and_odd_arrays_are_met_the_long_way(long_ways: list[str]) -> None:
    f = made("def f(x):\n    return x + 1")
    x = np.zeros(4)
    repeated(long_ways, lambda: f(x))
    odd = np.zeros(33, np.uint8)[1:].view("float64")
    for other in (x.view(np.recarray), list(x), odd, x.astype(">f8"), memoryview(x), x[::-1]):
        long_ways.clear()
        np.testing.assert_array_equal(f(other), np.ones(4))
        assert long_ways == ["f"]


class Shared:
    """An array by one protocol of NumPy's, or a copy of it."""

    def __init__(self, array: np.ndarray, copies: bool = False) -> None:
        self.array, self.copies = array, copies


class Interface(Shared):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__


class Capsule(Shared):
    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Converted(Shared):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array.copy() if self.copies else self.array


def subclassed(array: np.ndarray) -> np.ndarray:
    return array.view(np.recarray)


FOREIGN = [subclassed, memoryview, Interface, Capsule, Converted]


@pytest.mark.parametrize("wrap", FOREIGN)
def test_arrays_of_other_classes_go_the_short_way(
    long_ways: list[str], wrap: Callable[[Any], Any]
) -> None:
    f = made("def f(y, x):\n    y += x\n    return y, y[1:], np.sum(x)")
    x, y = np.arange(4.0), np.zeros(4)
    for given in ((wrap(y), x), (wrap(y), wrap(x)), (y, wrap(x))):
        y[:] = 0
        for same, view, total in repeated(long_ways, lambda given=given: f(*given)):
            assert same is given[0] and type(view) is np.ndarray and np.shares_memory(view, y)
            assert total == 6.0
        np.testing.assert_array_equal(y, 8 * x)
    short, counts = np.ones(2), np.zeros(4, int)
    f(wrap(short), wrap(short + 1))
    np.testing.assert_array_equal(short, [3.0, 3.0])
    f(y, wrap(counts))
    np.testing.assert_array_equal(y, 8 * x)
    with pytest.raises(pe.CdError, match="share memory"):
        f(wrap(y[1:]), wrap(y[:-1]))
    y.flags.writeable = False
    if wrap is not memoryview and wrap is not Capsule:  # those are not written at all then
        with pytest.raises(pe.CdError, match="read-only"):
            f(wrap(y), wrap(x))
    np.testing.assert_array_equal(y, 8 * x)


@pytest.mark.parametrize("wrap", FOREIGN)
def test_parts_of_complex_arrays_of_other_classes_come_back(wrap: Callable[[Any], Any]) -> None:
    f, x = made("def f(x):\n    return x.real, x.imag"), np.arange(3) * (1 + 2j)
    for _ in range(5):
        real, imag = f(wrap(x))
        np.testing.assert_array_equal(real + 1j * imag, x)


def test_reading_foreign_arrays_that_overlap_the_one_that_is_written(long_ways: list[str]) -> None:
    f = made("def f(y, x):\n    y[:] = x[::-1]")
    for wrap in FOREIGN:
        x, y = np.arange(4.0), np.zeros(4)
        repeated(long_ways, lambda wrap=wrap, x=x, y=y: f(y, wrap(x)))
        f(x, wrap(x))
        np.testing.assert_array_equal(x, y)


def test_a_copy_is_read_and_never_written_in_silence(long_ways: list[str]) -> None:
    f = made("def f(y, x):\n    y[:] = x")
    x, one, other = np.arange(4.0), Converted(np.zeros(4)), Converted(np.zeros(4), copies=True)
    repeated(long_ways, lambda: f(one, Converted(x, copies=True)))
    np.testing.assert_array_equal(one.array, x)
    with pytest.raises(pe.CdError, match="cannot be written in place"):
        f(other, x)
    with pytest.raises(pe.CdError, match="cannot be written in place"):
        CdFunction._call(f, other, x)


def test_buffers_of_python_are_arrays(long_ways: list[str]) -> None:
    f = made("def f(y, x):\n    y[:] = y + x\n    return y")
    for buffer in (array.array("i", [1, 2]), (ctypes.c_int * 2)(1, 2)):
        assert all(y is buffer for y in repeated(long_ways, lambda buffer=buffer: f(buffer, 0)))
        f(buffer, memoryview(buffer))
        assert list(buffer) == [2, 4]
    with pytest.raises(pe.CdError, match="read-only"):
        f(memoryview(b"abc"), 1)


def test_an_array_that_became_read_only_or_another(long_ways: list[str]) -> None:
    f = made("def f(y):\n    y[:] = y + 1")
    y = np.zeros(4)
    repeated(long_ways, lambda: f(y))
    y.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        f(y)
    y.setflags(write=True)
    y[:] = 0
    f(y)
    y.shape = (2, 2)
    f(y)
    np.testing.assert_array_equal(y, np.full((2, 2), 2.0))
    y.dtype = np.int64
    f(y)
    assert (y == np.full(1, 2.0).view(np.int64)[0] + 1).all()


# ---------------------------------------------------------------- around it


def test_a_function_and_its_plans_are_collected(long_ways: list[str]) -> None:
    class Held:
        a = 2.0

    names: dict[str, Any] = {"np": np, "held": Held()}
    names["f"] = pe.cd_from_source("def f(x):\n    return held.a * x", names)
    repeated(long_ways, lambda: names["f"](np.ones(3)))
    gone = weakref.ref(names["held"])
    del names
    gc.collect()
    assert gone() is None


def test_memory_that_is_not_there_is_told_at_the_function(long_ways: list[str]) -> None:
    f = made("def f(x):\n    return x + 1")
    repeated(long_ways, lambda: f(np.ones(3)))
    error = f._plans[0][2]
    problem = error(2, 1 << 40, *[0] * 15)
    assert isinstance(problem, MemoryError)
    assert "CD0705" in str(problem) and "<text>:1:1" in str(problem)


def test_threads(long_ways: list[str]) -> None:
    f = made("def f(x, a):\n    return a * x + 1")
    wrong: list[object] = []

    def work(size: int) -> None:
        x = np.arange(float(size))
        for n in range(300):
            if not np.array_equal(f(x, float(n)), n * x + 1):
                wrong.append((size, n))

    threads = [threading.Thread(target=work, args=(size,)) for size in (2, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_a_getter_changes_is_seen(long_ways: list[str]) -> None:
    class Odd:
        array, harm = np.zeros(4), False

        @property
        def a(self) -> float:
            if self.harm:
                self.array.resize(2, refcheck=False)
            return 2.0

    odd = Odd()
    f = made("def f(x, odd):\n    return odd.a * x")
    repeated(long_ways, lambda: f(odd.array, odd))
    odd.harm = True
    assert f(odd.array, odd).shape == (2,)


def test_an_interrupt_in_a_getter_is_not_lost(long_ways: list[str]) -> None:
    class Odd:
        problem: BaseException | None = None

        @property
        def a(self) -> float:
            if self.problem is not None:
                raise self.problem
            return 2.0

    odd, x = Odd(), np.ones(3)
    f = made("def f(x, odd):\n    return odd.a * x")
    repeated(long_ways, lambda: f(x, odd))
    for problem in (KeyboardInterrupt(), ZeroDivisionError()):
        odd.problem = problem
        with pytest.raises(type(problem)):
            f(x, odd)


@pytest.mark.parametrize(
    ("text", "held", "change", "values"),
    [
        ("x + s.get('k')", {"k": 2.0}, lambda s: s.update(k=3.0), (2.0, 3.0)),
        ("x + s('k', 5)", {}.get, lambda s: s.__self__.update(k=3), (5, 3)),
        ("x + sys.maxsize", None, lambda s: setattr(sys, "maxsize", 7), (5, 7)),
        ("x + s.total_seconds()", datetime.timedelta(seconds=2), lambda s: None, (2.0, 2.0)),
    ],
)  # fmt: skip
def test_what_methods_in_c_and_modules_give_is_compared_on_the_short_way(
    text: str, held: Any, change: Callable[[Any], None], values: tuple[float, float],
    long_ways: list[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "maxsize", 5)
    names = {"np": np, "s": held, "sys": sys}
    f = pe.cd_from_source(f"def f(x):\n    return {text}", names, backend="cc")
    x = np.arange(3.0)
    for value in values:
        assert [one.tolist() for one in repeated(long_ways, lambda: f(x))] == [
            (x + value).tolist()
        ] * 5
        change(held)


def test_a_captured_method_in_c_that_is_replaced_is_seen_on_the_short_way(
    long_ways: list[str],
) -> None:
    names: dict[str, Any] = {"get": {"k": 2.0}.get}
    f = pe.cd_from_source("def f(x):\n    return x + get('k')", names, backend="cc")
    x = np.arange(3.0)
    assert repeated(long_ways, lambda: f(x).tolist()) == [(x + 2).tolist()] * 5
    names["get"] = {"k": 7.0}.get
    assert f(x).tolist() == (x + 7).tolist()
    names["get"] = {"k": 7.0}.pop
    with pytest.raises(pe.CdError, match="changes an object of type `dict`"):
        f(x)
