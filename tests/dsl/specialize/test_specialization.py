"""When a form fits a call, when another one is made, and that nothing captured is frozen."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.dsl.specialize.specialization import SpecializationCache


def made(text: str, **names: Any) -> Any:
    """The function that a text defines, and the namespace that it looks names up in."""
    names.setdefault("np", np)
    return pe.cd_from_source(text, names), names


def forms(f: Any, *calls: tuple[Any, ...]) -> int:
    """How many different forms the calls use; each is called, so that nothing is left out."""
    found = set()
    for args in calls:
        f(*args)
        found.add(id(f.specialise(*args)))
    return len(found)


DOUBLE = "def f(x):\n    return x * 2"


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (np.zeros(3, "f4"), "`x` has elements of type float32, and had float64"),
        (np.zeros((3, 1)), "`x` has rank 2, and had rank 1"),
        (np.zeros(4), "`x` has shape (4,), and had (3,)"),
        (np.zeros(6)[::2], "`x` lies in memory with strides (2,) in elements, and lay in C order"),
        (2.5, "`x` is a Python float, and was an array f64[3]"),
        ((1, 2), "`x` is (1, 2), and was an array f64[3]"),
    ],
)
def test_type_rank_shape_and_layout_make_another_form(other: Any, says: str) -> None:
    f, _ = made("def f(x):\n    return np.array(x) * 2")
    assert forms(f, (np.zeros(3),), (other,), (np.ones(3),)) == 2
    assert f.explain(other).why == says


class Layer:
    def __init__(self, size: int, rate: float) -> None:
        self.w, self.rate, self.mode = np.ones(size), rate, "up"

    def helper(self, x):
        return self.w * x

    def __call__(self, x):
        return x + self.rate


LAYER = "def f(m, x):\n    return m(m.helper(x)) if m.mode == 'up' else x"


def test_another_object_with_the_like_attributes_takes_the_same_form() -> None:
    f, _ = made(LAYER)
    x = np.ones(3)
    equal = [(Layer(3, 0.5), x), (Layer(3, float("0.5")), x)]
    assert forms(f, *equal) == 1
    equal[1][0].w *= 3
    assert f(*equal[1]).tolist() == [3.5, 3.5, 3.5] and f(*equal[0]).tolist() == [1.5, 1.5, 1.5]
    assert forms(f, *equal, (Layer(1, 0.5), x), (Layer(3, 0.25), x)) == 3
    equal[1][0].mode = "down"
    assert f(*equal[1]).tolist() == [1.0, 1.0, 1.0]
    assert f(type("Layer", (Layer,), {"helper": lambda self, x: x})(3, 0.5), x)[0] == 1.5


def test_a_number_of_an_object_is_given_to_the_code_after_three_values() -> None:
    f, _ = made(LAYER)
    layer, x = Layer(3, 0.5), np.ones(3)
    found = []
    for rate in (0.5, 1.5, 2.5, 3.5, np.inf, -0.0, 0.5):
        layer.rate = rate
        assert f(layer, x)[0] == 1.0 + rate
        found.append(f.specialise(layer, x))
    assert len(set(map(id, found))) == 4 and found[3] is found[5] is found[6]
    told = "`m.rate` came with more than 3 values: this specialization is for any value"
    assert found[3].reason == told
    layer.rate = 7
    assert f(layer, x)[0] == 8.0 and f.specialise(layer, x) not in found
    layer.rate = np.float64(9.0)
    assert f(layer, x)[0] == 10.0


def test_a_number_that_has_to_be_known_stays_one_of_the_code() -> None:
    f, _ = made("def f(m, x):\n    return x.sum(axis=int(m.axis)) * m.rate")
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis, rate in ((0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (-1.0, 4.0), (-2.0, 5.0)):
        own = types.SimpleNamespace(axis=axis, rate=rate)
        np.testing.assert_array_equal(f(own, x), x.sum(axis=int(axis)) * rate)


def test_arguments_are_not_kept_alive() -> None:
    f, _ = made(LAYER)
    x, kept = np.ones(3), []
    for rate in (0.5, 0.25, 0.5, 0.5):
        layer = Layer(3, rate)
        for _ in range(3):
            f(layer, x)
        kept += [weakref.ref(layer), weakref.ref(layer.w)]
    del layer
    gc.collect()
    assert not [one for one in kept if one() is not None]


def test_what_the_code_does_not_depend_on_makes_none() -> None:
    f, _ = made(DOUBLE)
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    moved = np.zeros(25, "u1")[1:].view("f8")
    assert forms(f, (np.zeros(3),), (read_only,), (moved,), (np.zeros(6)[3:],)) == 1
    assert forms(f, (np.zeros(3, ">f8"),), (np.zeros(3),)) == 2  # what it views has its bytes


def test_numbers_are_compared_by_kind_unless_their_value_takes_part() -> None:
    f, _ = made("def f(x, a):\n    return x * a")
    x = np.zeros(3)
    assert forms(f, (x, 1.0), (x, 2.0), (x, 1), (x, 7), (x, np.float32(1)), (x, 2j)) == 4
    assert "`a` is a Python complex, and was" in f.explain(x, 2j).why


def test_a_static_integer_is_compared_by_value() -> None:
    f, _ = made("def f(x, n):\n    return x[:n]")
    x = np.arange(5.0)
    assert forms(f, (x, 1), (x, 3), (x, 1)) == 2
    assert f(x, 3).tolist() == [0.0, 1.0, 2.0]
    assert f.explain(x, 3).why == "`n` is 3, and was 1"


def test_constants_are_compared_bit_for_bit() -> None:
    f, names = made("def f(x):\n    return x * a", a=0.0)
    x = -np.ones(1)
    assert np.signbit(f(x))[0]
    names["a"] = -0.0
    assert not np.signbit(f(x))[0]
    names["a"] = 0
    assert f(x).dtype == np.float64
    assert f.explain(x).why == "the captured `a` is 0, and was -0.0"


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (2.0, 3.0, "the captured `a` is 3.0, and was 2.0"),
        (np.zeros(3), np.zeros(1), "the captured `a` has shape (1,), and had (3,)"),
        (2.0, np.ones(3), "the captured `a` is an array f64[3], and was 2.0"),
        (np.float64(2), np.float32(2), "the captured `a` is np.float32(2.0), and was"),
    ],
)
def test_changed_captured_values_make_another_form(first: Any, second: Any, says: str) -> None:
    f, names = made("def f(x):\n    return x + a", a=first)
    x = np.arange(3.0)
    for value in (first, second, first):
        names["a"] = value
        np.testing.assert_array_equal(f(x), x + value)
    names["a"] = second
    assert says in f.explain(x).why
    assert len(list(f._forms._situations({"x": x}))) == 2


def test_captured_arrays_are_given_by_reference() -> None:
    w = np.zeros(3)
    f, names = made("def f(x):\n    return x + w", w=w)
    x = np.ones(3)
    f(x)
    w[:] = 5
    np.testing.assert_array_equal(f(x), [6.0, 6.0, 6.0])
    names["w"] = np.full(3, 9.0)
    np.testing.assert_array_equal(f(x), [10.0, 10.0, 10.0])
    names["w"] = np.full(6, 1.0)[::2]
    np.testing.assert_array_equal(f(x), [2.0, 2.0, 2.0])
    misaligned = np.zeros(25, "u1")[1:].view("f8")
    names["w"] = misaligned
    np.testing.assert_array_equal(f(x), x)


def test_captured_functions_and_words_defined_later() -> None:
    f, names = made("def f(x):\n    y[i] = square(x[i])\n    return y")
    x = np.array([3.0])
    assert f(x).tolist() == [9.0]
    names["square"] = lambda t: t + 100
    assert f(x).tolist() == [103.0]
    assert "the captured `square` is the function `<lambda>`, and was not defined" in (
        f.explain(x).why
    )
    del names["square"]
    assert f(x).tolist() == [9.0]


def test_modules_and_classes_of_the_user_are_looked_up_each_time() -> None:
    settings_of_user = types.ModuleType("settings_of_user")
    settings_of_user.rate = 2.0  # type: ignore[attr-defined]
    holder = type("Holder", (), {"shift": 1.0, "__module__": "__main__"})
    f, _ = made("def f(x):\n    return x * m.rate + H.shift", m=settings_of_user, H=holder)
    x = np.ones(1)
    assert f(x)[0] == 3.0
    settings_of_user.rate = 5.0  # type: ignore[attr-defined]
    holder.shift = 0.5
    assert f(x)[0] == 5.5
    assert f.explain(x).why == (
        "the captured `m.rate` is 5.0, and was 2.0; the captured `H.shift` is 0.5, and was 1.0"
    )


def test_captured_values_of_inlined_functions_are_watched() -> None:
    names: dict[str, Any] = {"rate": 2.0}
    inner = pe.cd_from_source("def inner(x):\n    return rate * x", names)
    f, _ = made("def f(x):\n    return inner(x) + 1", inner=inner)
    x = np.ones(1)
    assert f(x)[0] == 3.0
    names["rate"] = 10.0
    assert f(x)[0] == 11.0
    assert f.explain(x).why == "the captured `rate` is 10.0, and was 2.0"


def test_items_of_captured_dictionaries_are_watched() -> None:
    table: dict[str, Any] = {"w": np.ones(2), "rate": 3.0}
    f, _ = made("def f(x):\n    return x * t['rate'] + t['w']", t=table)
    x = np.ones(2)
    assert f(x).tolist() == [4.0, 4.0]
    table["w"], table["rate"] = np.zeros(2), 1.0
    assert f(x).tolist() == [1.0, 1.0]
    assert f.explain(x).why == "the captured `t['rate']` is 1.0, and was 3.0"


def test_captured_and_given_tensors() -> None:
    p = pe.tensor("p", (3,), dtype="f8", init=1.0, fields=("vel",))
    f, names = made("def f(rate):\n    p.vel = p.vel + p.value\n    p.value -= rate * p.vel", p=p)
    for _ in range(2):
        f(0.5)
    np.testing.assert_array_equal(p.numpy(), np.full(3, -0.25))
    names["p"] = q = pe.tensor("q", (2,), dtype="f8", init=2.0, fields=("vel",))
    f(1.0)
    np.testing.assert_array_equal(q.numpy("vel"), [2.0, 2.0])
    assert f.explain(1.0).why == (
        "the captured `p` is a tensor f64[2] with fields value, grad, vel, and was a tensor f64[3] "
        "with fields value, grad, vel"
    )
    g, _ = made("def g(p):\n    p.value += 1")
    g(q)
    np.testing.assert_array_equal(q.numpy(), [1.0, 1.0])
    with pytest.raises(TypeError, match="constant"):
        g(pe.tensor("c", (2,), dtype="f8", constant=True))


@pe.override(optimize=3)
def test_settings_and_backends_make_another_form() -> None:
    f, _ = made(DOUBLE)
    x = np.ones(2)
    f(x)
    with pe.override("numpy"):
        f(x)
        assert f.explain(x).why == "the backend is `numpy`, and was `cc`"
    with pe.override(optimize=1):
        f(x)
        assert f.explain(x).why == "the setting `optimize` is 1, and was 3"
    assert f.explain(x).why == "this is the first call of the function"


def test_which_arrays_are_one_is_part_of_the_form() -> None:
    f, _ = made("def f(x, y):\n    x[:] = x + y\n    y[:] = x * 2")
    x, y = np.ones(3), np.ones(3)
    assert forms(f, (x, y), (x, x), (y, x), (y, y)) == 2
    assert f.explain(x, x).why == "`x` and `y` are the same array"
    g, _ = made("def g(z, x, y):\n    z[:] = x + y\n    z[:] = z * 2")
    assert forms(g, (np.ones(3), x, y), (np.ones(3), x, x)) == 1


def test_a_captured_array_may_be_the_one_that_is_written() -> None:
    w = np.arange(3.0)
    f, _ = made("def f(x):\n    x[:] = x + w\n    x[:] = x * w", w=w)
    f(np.ones(3))
    expected = np.arange(3.0)
    expected[:] = expected + expected
    expected[:] = expected * expected
    f(w)
    np.testing.assert_array_equal(w, expected)


def test_the_nearest_form_is_the_one_compared_with() -> None:
    f, _ = made("def f(x, y):\n    return x + y")
    f(np.zeros((3,), "f4"), np.zeros(3))
    f(np.zeros((2, 2)), np.zeros((2, 2)))
    f(np.zeros(3), np.zeros(3))
    assert f.explain(np.zeros(3), np.zeros(3)).why == (
        "`x` has elements of type float64, and had float32"
    )


def test_a_form_found_once_is_found_by_its_key() -> None:
    f, _ = made(DOUBLE)
    x = np.ones(2)
    form = f.specialise(x)
    assert not form.direct
    f(x)
    f(x)
    assert form.direct and f.specialise(np.zeros(2)) is form
    assert isinstance(f._forms, SpecializationCache)


def test_what_is_refused_is_refused_again_and_what_is_mended_works() -> None:
    f, names = made("def f(x):\n    return later(x)")
    for _ in range(2):
        with pytest.raises(NameError, match="later"):
            f(np.ones(1))
    names["later"] = lambda t: t + 1
    assert f(np.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize("take", [lambda: sys.modules["math"], lambda: np])
def test_library_modules_are_not_watched(take: Callable[[], Any]) -> None:
    f, _ = made("def f(x):\n    return x * m.pi", m=take())
    x = np.ones(1)
    assert f(x)[0] == np.pi
    assert {str(watch.path) for watch in f.specialise(x).watched} == {"m"}


@pytest.mark.parametrize("use", ["call", "compile"])
def test_a_form_keeps_no_tensor_alive(use: str) -> None:
    def f(y, pair):
        p, q = pair
        y[i] = p[i] + q[i]

    function = pe.cd(f, backend="numpy")
    y, p, q = (pe.tensor(name, 2) for name in "ypq")
    held = [weakref.ref(tensor) for tensor in (y, p, q)]
    if use == "call":
        function(y, [p, q])
    else:
        function.compile(y, [p, q])
    del y, p, q
    gc.collect()
    assert [one() for one in held] == [None, None, None]


def test_lists_of_any_length_take_the_form_for_any_size() -> None:
    f, _ = made("def f(x, a):\n    return np.sum(x) * a\n")
    with settings.override("cc"):
        for size in (2, 3, 4, 5, 5, 5, 7, 7, 7, 3, 9, 2):
            assert f([1.0] * size, 2.0) == 2.0 * size


@pytest.mark.parametrize("order", ["abx", "axb", "bax", "xab"])
def test_one_array_three_times_of_which_one_is_written(order: str) -> None:
    body = "    b[:] = x * 3\n    return a.sum() + x[0]\n"
    f, _ = made(f"def f({', '.join(order)}):\n{body}")
    v = np.arange(3.0)
    assert f(v, v, v) == 9.0 and v.tolist() == [0.0, 3.0, 6.0]


def test_a_list_that_is_given_twice_has_a_specification_at_each_place() -> None:
    f, _ = made("def f(m, x, y):\n    return m.row[0] * y, np.sum(x)\n")
    m = types.SimpleNamespace()
    for size in (2, 3, 4, 5, 6):
        m.row = [1.5] * size
        product, total = f(m, m.row, np.ones(3, "f4"))
        assert product.dtype == np.float32 and total == 1.5 * size


IS_PRIME = """
def f(n):
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True
"""
HEATED = """
def f(n):
    x = np.arange(3.0)
    if n > 3:
        return x * n
    return x - n
"""
FILLED = """
def f(n):
    t = np.zeros(n)
    for i in range(n):
        t[i] = i * i
    return t
"""


@pytest.mark.parametrize("text", [IS_PRIME, HEATED, FILLED])
@pytest.mark.parametrize("kind", [int, np.int64])
def test_a_static_integer_is_a_value_of_the_run_from_the_fourth_value_on(
    text: str, kind: type
) -> None:
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    for n in range(1, 12):
        got, wanted = f(kind(n)), names["f"](kind(n))
        assert type(got) is type(wanted)
        np.testing.assert_array_equal(got, wanted)
    told = "`n` came with more than 3 values: this specialization is for any value"
    assert f.explain(kind(50)).why == told


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("return x * a if n > 3 else x + a", ""),
        ("return x[n:n + 10] * a", ""),
        ("return np.zeros(n) + a", ""),
        ("return a * sum[k in range(n)](x[k])", "return a * x[:n].sum()"),
        ("return np.linspace(a, 2.0, n)", ""),
        ("h = 1 / n\n    return np.zeros((n, n // 2)) + h * n**2", ""),
        ("return x[::n] * a", ""),
        ("y = np.zeros(2)\n    y[i] = x[n * i] * a\n    return y", "return x[: 2 * n : n] * a"),
        ("x[60:1:-n] += a\n    return x", ""),
        ("s = a\n    for k in range(0, 60, n):\n        s += x[k]\n    return x[:n] * s", ""),
        ("return a + max[k in range(n, 70)](x[k])", "return a + x[n:70].max()"),
        ("t: f64[n]\n    t += a\n    return t", "return np.full(n, a)"),
    ],
)
def test_fifty_values_of_a_static_integer_and_floats_after_them(body: str, plain: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x, n, a):\n    {plain or body}\n", names)
    scope = {"np": np, "f64": pe.f64}
    f = pe.cd_from_source(f"def f(x, n, a):\n    {body}\n", scope, backend="numpy")
    x, made = np.arange(70.0), {}
    for n in range(2, 52):
        np.testing.assert_array_equal(f(x.copy(), n, 0.5 * n), names["f"](x.copy(), n, 0.5 * n))
        form = f.specialise(x, n, 0.5 * n)
        made[id(form.procedure)] = form
    assert len(made) <= 4
    assert made[id(form.procedure)].reason.startswith("`n` came with more than 3 values")


@pytest.mark.parametrize(
    ("body", "value", "code"),
    [
        ("return x[::n] * 2", 0, "CD0503"),
        ("return np.zeros(n) + 1 / n", 0, "CD0407"),
        ("return x[:n] * (100 % n)", 0, "CD0407"),
        ("return x[:n * n] * 2", 2**40, "CD0461"),
    ],
)
def test_what_python_refuses_of_an_integer_is_refused_of_any_value(
    body: str, value: int, code: str
) -> None:
    f = pe.cd_from_source(f"def f(x, n):\n    {body}\n", {"np": np}, backend="numpy")
    x = np.arange(9.0)
    for n in (1, 2, 3, 4, 5):
        f(x, n)
    assert "for any value" in f.explain(x, 6).why
    with pytest.raises(pe.CdError, match=code):
        f(x, value)


def test_a_slice_whose_step_the_run_decides() -> None:
    f, _ = made("def f(x, s, lo, hi):\n    return x[::int(s)] + 0, x[int(lo):int(hi):int(s)] + 0")
    x = np.arange(10.0)
    for step in (1, 2, 7, 10, 11, -1, -2, -7, -10, -11):
        for lo, hi in ((2, 9), (9, 2), (-3, -9), (-20, 20), (20, -20), (4, 4)):
            whole, part = f(x, float(step), float(lo), float(hi))
            assert whole.tolist() == x[::step].tolist() and part.tolist() == x[lo:hi:step].tolist()


def test_a_returned_view_whose_ends_the_run_decides_is_one(backend: str) -> None:
    text = "def f(x, n):\n    return x[n:, ::2].T, x[1, :n], x[0, ::n]\n"
    f = pe.cd_from_source(text, {}, backend=backend)
    x = np.arange(50.0).reshape(5, 10)
    for n in (1, 2, 3, 4, 5, -1, -4, 9, 4, 4):
        for one, wanted in zip(f(x, n), (x[n:, ::2].T, x[1, :n], x[0, ::n]), strict=True):
            np.testing.assert_array_equal(one, wanted)
            assert np.shares_memory(one, x) == np.shares_memory(wanted, x)
    assert "for any value" in f.explain(x, 3).why
    f(x, 4)[1][0] = -1.0
    assert x[1, 0] == -1.0


def test_a_returned_row_at_a_position_of_the_run_is_a_view(backend: str) -> None:
    rows = "x[k], x[:, k][::-1], x[k, k:], x[x[0].argmax() % 5], x.T[k + 1]"
    text = f"def f(x, k):\n    return {rows}\n"
    f = pe.cd_from_source(text, {}, backend=backend)
    whole = np.arange(60.0).reshape(5, 12) % 7
    for x in (whole[:, :5], np.asfortranarray(whole[:, :5]), whole[::-1, 1::2], whole):
        for k in (1, 0, 3, 2):
            wanted = x[k], x[:, k][::-1], x[k, k:], x[x[0].argmax() % 5], x.T[k + 1]
            for one, other in zip(f(x, k), wanted, strict=True):
                np.testing.assert_array_equal(one, other)
                assert np.shares_memory(one, other) and one.strides == other.strides


def test_a_line_of_so_many_points_as_the_run_decides() -> None:
    f, _ = made("def f(n):\n    return np.linspace(2.0, 5.0, int(n), retstep=True)")
    for count in (0, 1, 2, 3):
        line, step = f(float(count))
        wanted, other = np.linspace(2.0, 5.0, count, retstep=True)
        np.testing.assert_array_equal(line, wanted)
        np.testing.assert_array_equal(step, other)


@pytest.mark.parametrize(
    "body",
    [
        "return 1 if n > 4 else 2.5",  # the type
        "return n * (n + 1) // 2",
        "return 10 // n if n > 4 else n",
        "return x[n] if n != 4 else x[0]",  # a negative one counts from the end
        "return x if n > 4 else x[:]",  # the array itself
        "return 2 ** n if n > 4 else n",
    ],
)
def test_an_integer_that_decides_more_than_numbers_stays_static(body: str) -> None:
    text = f"def f(x, n):\n    if n == 100:\n        return 0\n    {body}\n"
    names: dict[str, Any] = {}
    exec(text, names)
    f, x = pe.cd_from_source(text, {}, backend="numpy"), np.arange(9.0)
    for n in (7, 6, 5, 4, 3, -2, 1):
        got, wanted = f(x, n), names["f"](x, n)
        assert type(got) is type(wanted)
        np.testing.assert_array_equal(got, wanted)


BROADCASTING = {
    "a number": ("return x[:n] * y", False),
    "sizes": ("return x[1:] * y[:-1]", False),
    "written after": ("x[:2] = (x[:n] * y)[:2]", False),
    "written before": ("x[:1] = 3.0\n    return x[:n] * y", True),
    "printed before": ("print(n)\n    return x[:n] * y", True),
}


@pytest.mark.parametrize("name", BROADCASTING)
def test_a_run_time_size_of_1_broadcasts_where_nothing_was_done_before(
    name: str, backend: str
) -> None:
    body, is_refused = BROADCASTING[name]
    text = f"def f(x, y, n):\n    {body}\n"
    plain: dict[str, Any] = {"np": np}
    exec(text, plain)
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    refused = 0
    for n, size in [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (1, 3), (7, 7), (1, 4), (1, 3), (3, 2)]:
        x, y = np.arange(9.0 if name != "sizes" else n + 1.0), np.arange(1.0, size + 1)
        given, wanted = x.copy(), None
        try:
            wanted = plain["f"](x, y, n)
        except ValueError:
            with pytest.raises(pe.CdError, match=r"CD030[12]"):
                f(given, y, n)
            continue
        try:
            np.testing.assert_array_equal(f(given, y, n), wanted)
        except pe.CdError as problem:
            assert problem.code == "CD0301" and n == 1
            refused += 1
            continue
        np.testing.assert_array_equal(given, x)
    assert bool(refused) == is_refused


def test_a_float_is_no_constant_where_an_integer_was_one() -> None:
    text = "def f(a, by):\n    if by == 0:\n        return 0.0\n    return a + by"
    f, _ = made(text)
    fresh, _ = made(text)
    f(1, np.int8(3)), f(1, 3)
    for call in ((np.float64(2.5), -0.0), (np.float64(2.5), 1.0), (1, 0), (1, 0.0), (2.5, 0j)):
        assert type(f(*call)) is type(fresh(*call))
        fresh, _ = made(text)
    assert forms(f, (1.5, 2.5), (1.5, 3.5), (1.5, 0.0)) == 1


def test_sizes_are_checked_before_anything_is_written() -> None:
    lines = "b[0] -= 1", "v = d[2:, 0:]", "c -= (a > v) * 1.0", "return v"
    text = "def f(a, b, c, d):\n" + "".join(f"    {line}\n" for line in lines)
    plain: dict[str, Any] = {"np": np}
    exec(text, plain)
    f, _ = made(text)
    for rows in (7, 6, 5, 4, 3):  # of three rows one is left, which is broadcast
        size = 3 if rows == 3 else rows - 2
        given = [np.ones((3 if rows == 3 else 1, 4)), np.ones(4), np.ones((size, 4))]
        given.append(np.ones((rows, 4)))
        wanted = [one.copy() for one in given]
        result = plain["f"](*wanted)
        np.testing.assert_array_equal(f(*given), result)
        for one, other in zip(given, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
