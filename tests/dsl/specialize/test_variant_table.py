"""How many forms are kept."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd, idx
from plusequals.base import settings
from plusequals.dsl.specialize.signature import describe_input
from plusequals.dsl.specialize.variant_table import (
    MAX_VARIANTS,
    NumberHistory,
    ShapeHistory,
    VariantTable,
    add_general_variant,
    add_variant,
)
from plusequals.dsl.specialize.variants import CaptureGuard
from plusequals.dsl.values.values import Path


def test_the_latest_forms_are_kept() -> None:
    table, made = VariantTable(), [cast("Any", object()) for _ in range(MAX_VARIANTS + 2)]
    for one in made:
        add_variant(table.full, "key", one)
    assert table.full["key"] == tuple(reversed(made[2:]))
    assert table.quick == {}


def test_of_forms_for_many_calls_the_latest_are_kept() -> None:
    table, made = VariantTable(), [cast("Any", object()) for _ in range(MAX_VARIANTS + 2)]
    for one in made:
        add_general_variant(table.general_variants, {}, one)
    assert [form for _, form in table.general_variants] == made[2:]


def form(path: Path, value: object) -> Any:
    """What is asked of a form that was made for a value."""
    watched = (CaptureGuard(path, lambda _: value, describe_input(value, True), 0),)
    return SimpleNamespace(watched=watched, typed=SimpleNamespace(statics=frozenset()))


@pytest.mark.parametrize("kind", [float, np.float32, int])
def test_numbers_are_given_to_the_code_from_the_fourth_value_on(kind: type) -> None:
    seen, path = NumberHistory(), Path("m", ("rate",))
    for value in (1.0, 2.0, 2.0, 3.0):
        assert seen.opened() == frozenset()
        seen.note(form(path, kind(value)))
    assert seen.opened() == {path}
    seen.close(seen.opened())
    assert seen.opened() == frozenset()


@pytest.mark.parametrize("kind", [bool, np.int32, str])
def test_other_values_are_constants(kind: type) -> None:
    seen = NumberHistory()
    for value in range(9):
        seen.note(form(Path("m", ("n",)), kind(value)))
    assert seen.opened() == frozenset()


@pytest.mark.parametrize(
    ("body", "is_opened"),
    [
        ("x * m.n", True), ("x / m.n + 1", True), ("x.sum() * (m.n // 3)", True),
        ("s = 0.0\n    for t in range(m.n):\n        s += x[t]\n    return s", True),
        ("x ** m.n", False), ("x * (1 / m.n)", True), ("x[m.n]", False), ("x[: m.n]", True),
        ("x[min(m.n, 1)]", False), ("x * (m.n * 10**15)", False), ("x * (m.n * m.n)", True),
        ("x if m.n else x + 1", False), ("x * (1 if m.n % 2 else 2)", True),
        ("x * (3 if m.n & 6 and not m.n ^ 4 else 5)", True), ("x * (m.n << 1)", False),
        ("x * abs(m.n)", False), ("x if m.n > 2 else -x", False), ("np.zeros(m.n)", True),
        ("np.convolve(x, np.ones(m.n) / m.n, 'valid')", True), ("x + np.ones(9) // m.n", True),
        ("np.histogram(x, bins=m.n, range=(0, len(np.zeros(m.n))))[0]", True),
        ("x + np.zeros(m.n)[m.n - 1]", True), ("x + np.zeros(m.n + 3)[m.n]", False),
        ("x + np.zeros(9 - m.n)[8 - m.n]", True), ("x + np.zeros(2 * m.n)[m.n - 2]", False),
    ],
)  # fmt: skip
def test_integers_of_objects_are_given_where_it_makes_no_difference(
    body: str, is_opened: bool
) -> None:
    body = body if "return" in body else f"return {body}"
    text, x = f"def f(m, x):\n    {body}\n", np.arange(9.0)
    f, names = pe.cd_from_source(text, {"np": np}, backend="numpy"), {"np": np}
    exec(text, names)
    plain: Any = names["f"]
    for n in (1, 2, 3, 4, 6, -2):
        if n < 0 and ("zeros" in body or "ones" in body):
            continue
        m = SimpleNamespace(n=n)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(m, x), plain(m, x))
    one, two = (f.matched(SimpleNamespace(n=n), x)[0].specialization for n in (4, 6))
    assert (one is two) == is_opened


def test_quotients_at_points_are_not_those_of_arrays() -> None:
    """Python raises for the one with a static divisor, NumPy does not for the other."""
    for at_points, is_opened in (("x[i] / m.n", True), ("x[i] + 1 / m.n", False)):
        text = f"def f(m, x):\n    y = np.ones(3) / m.n\n    y[i] += {at_points}\n    return y\n"
        f = pe.cd_from_source(text, {"np": np, "i": idx.i}, backend="numpy")
        made = set()
        for n in range(1, 8):
            m = SimpleNamespace(n=n)
            f(m, np.ones(3))
            made.add(id(f.matched(m, np.ones(3))[0].specialization))
        assert (len(made) < 7) == is_opened


def test_an_integer_that_has_to_be_known_does_not_keep_others_from_being_given() -> None:
    f = pe.cd_from_source(
        "def f(m, x):\n    return x[: m.n] * m.k * m.rate\n", {"np": np}, backend="numpy"
    )
    x, made = np.arange(9.0), set()
    for n in range(4, 0, -1):
        m = SimpleNamespace(n=n, k=n + 1, rate=n / 2)
        np.testing.assert_array_equal(f(m, x), x[:n] * (n + 1) * n / 2)
    for k in range(5):
        m = SimpleNamespace(n=2, k=k, rate=k / 4)
        np.testing.assert_array_equal(f(m, x), x[:2] * k * (k / 4))
        made.add(id(f.matched(m, x)[0].specialization))
    assert len(made) == 1


def test_an_integer_beyond_64_bits_has_a_form_of_its_own() -> None:
    f = pe.cd_from_source("def f(m, x):\n    return x * m.n\n", backend="numpy")
    for n in (1, 2, 3, 4, 2**70, 5, -(2**65)):
        np.testing.assert_array_equal(f(SimpleNamespace(n=n), np.ones(2)), np.ones(2) * n)


@pytest.mark.parametrize(
    ("body", "is_opened"),
    [
        ("x * rate + 1", True), ("scaled(x)", True), ("np.full(3, rate) * x", True),
        ("x ** rate", False), ("x * round(rate)", False), ("x[: int(rate)]", False),
        ("x * rate if rate > 2.5 else x * 2", True), ("x * rate if rate > 2.5 else x", False),
        ("x * (1 if rate > 2.5 else rate)", False), ("(rate or 1) * x", False),
        ("x * float(str(rate))", False),
    ],
)  # fmt: skip
def test_floats_around_a_function_are_given_where_it_makes_no_difference(
    body: str, is_opened: bool
) -> None:
    names: dict[str, Any] = {"np": np}
    f = pe.cd_from_source(f"def f(x):\n    return {body}\n", names)
    forms, x = set(), np.arange(3.0)
    scaled = {"np": np}
    names["scaled"] = pe.cd_from_source("def scaled(x):\n    return x - rate\n", scaled)
    for rate in (1.0, 2.0, 3.0, 2.25, 4.0):
        names["rate"] = scaled["rate"] = rate
        expected = eval(body, {**names, "x": x, "scaled": lambda x: x - names["rate"]})
        for _ in range(3):
            assert f(x).tolist() == expected.tolist()
        forms.add(id(f.specialise(x).routine))
    assert len(forms) == (4 if is_opened else 5)


@pytest.mark.parametrize(
    ("body", "is_opened"),
    [
        ("x * m.a + m.b", True), ("np.exp(-m.a * x) / m.b", True),
        ("np.where(x > m.a, m.b, x)", True),
        ("x * (m.a / m.b)", True), ("x * m.a**m.b", False), ("x ** m.a", False),
        ("x * int(m.a)", False), ("x * math.sin(m.a)", False), ("x * max(m.a, m.b)", False),
    ],
)  # fmt: skip
def test_a_number_is_given_where_it_makes_no_difference_to_know_it(
    body: str, is_opened: bool
) -> None:
    names = {"np": np, "math": math}
    f = pe.cd_from_source(f"def f(m, x):\n    return {body}\n", names)
    forms, x = set(), np.arange(3.0)
    for a, b in ((1.0, 2.0), (1.5, 3.0), (2.5, 4.0), (3.5, 6.0), (4.5, 7.0)):
        m = SimpleNamespace(a=a, b=b)
        fresh = pe.cd_from_source(f"def f(m, x):\n    return {body}\n", names)
        with settings.override("numpy"):
            assert f(m, x).tolist() == fresh(m, x).tolist()
            forms.add(id(f.specialise(m, x)))
    assert len(forms) == (4 if is_opened else 5)


def test_a_number_that_has_to_be_known_closes_itself_alone() -> None:
    f = pe.cd_from_source("def f(m, x):\n    return x ** m.power + m.rate\n")
    forms, x = [], np.arange(3.0)
    with settings.override("numpy"):
        for power, rate in ((1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (4.0, 5.0), (4.0, 6.0)):
            m = SimpleNamespace(power=power, rate=rate)
            assert f(m, x).tolist() == (x**power + rate).tolist()
            forms.append(f.specialise(m, x))
    assert forms[3] is forms[4] and "`m.rate` came with more" in forms[3].reason
    assert "m.power" not in forms[3].reason


def test_sizes_of_arrays_of_objects_are_those_of_the_run_from_the_fourth_on() -> None:
    seen, path = ShapeHistory(), Path("m", ("w",))
    for size in (2, 3, 3, 4):
        one = form(path, np.zeros((5, size)))
        assert seen.opened({}) == {}
        seen.note(one)
    ((way, (value, spec)),) = seen.opened({}).items()
    assert way == path and value.shape == (5, 4) and spec.shape == (5, None)
    seen.note(form(path, np.zeros((5, 1))))
    assert seen.opened({}) == {}  # of one element, which is spread out
    seen.note(form(path, np.zeros((5, 6), np.float32)))
    assert seen.opened({}) == {}  # of another type
    seen.note(form(path, np.zeros((5, 7))))
    seen.close(seen.opened({}))
    assert seen.opened({}) == {}


LAYER = """
def f(net, x):
    return np.maximum(x @ net.w + net.b, 0.0)
"""


def test_one_form_does_for_arrays_of_objects_of_any_size(backend: str) -> None:
    f = pe.cd_from_source(LAYER, {"np": np})
    made, rng = [], np.random.default_rng(0)
    with pe.override(backend):
        for n in (2, 3, 4, 5, 6, 1, 17, 6, 5):
            net = SimpleNamespace(w=rng.random((5, n)), b=rng.random(n))
            x = rng.random((4, 5))
            for _ in range(4):  # the long way, then the short one
                np.testing.assert_allclose(f(net, x), np.maximum(x @ net.w + net.b, 0.0))
            made.append(f.specialise(net, x))
        assert len({id(one.routine) for one in made}) == 5
        assert "axis 1 of `net.w`, axis 0 of `net.b` came in more" in made[3].reason
        assert "had (5, any from 2)" in made[5].reason
        wrong = SimpleNamespace(w=rng.random((5, 9)), b=rng.random(8))
        with pytest.raises(pe.CdError, match="sizes 9 and 8 differ"):
            f(wrong, x)


def test_what_needs_the_sizes_of_its_objects_has_a_form_for_each() -> None:
    f = pe.cd_from_source(
        "def f(net, x):\n    for v in [*net.w]:\n        x = x + v\n    return x\n"
    )
    forms = set()
    for n in (2, 3, 4, 5, 6):
        net, x = SimpleNamespace(w=np.arange(float(n))), np.zeros(2)
        with settings.override("numpy"):
            assert f(net, x).tolist() == [n * (n - 1) / 2] * 2
            forms.add(id(f.specialise(net, x)))
    assert len(forms) == 5


def test_arrays_around_a_function_that_are_replaced_have_any_size() -> None:
    names = {"w": np.ones(2)}
    f = pe.cd_from_source("def f(x):\n    return (w * x).sum()\n", names)
    made = set()
    for n in (2, 3, 4, 5, 6, 7):
        names["w"] = np.arange(float(n))
        for scale in (1.0, 2.0, 3.0):
            assert f(scale) == scale * n * (n - 1) / 2
        made.add(id(f.specialise(1.0).routine))
    assert len(made) == 4


BIG = np.int8(100)
DECIDED = [
    "{a} if {t} else {a} * 2", "np.int8([1]) * (1 if {t} else 2.5)", "BIG + (100 if {t} else 0.5)",
    "(1, {a}) if {t} else (2.5, {a})", "({t} and 1, 2)", "({t} or 0.5) * 2", "({t} and {a}) is {a}",
]  # fmt: skip
"""What a test decides: `{t}`, `{a}` an array."""
STATEMENTS = {
    "assigned": "k = 1\n    if {t}:\n        k = 2.5\n    return np.int8([1]) * k, 7 // k",
    "test in a variable": "t = {t}\n    k = 1 if t else 2.5\n    return k",
    "variable of a branch": "k = 1\n    if {t}:\n        k = 2\n    return 1 if k > 1 else 2.5",
    "returned early": "if {t}:\n        return {a}\n    return {a} * 2",
    "array in a variable": "y = {a}\n    if {t}:\n        y = {a} * 2\n    return y",
    "only one side": "if {t}:\n        y = {a} * 2\n    return {a}.sum()",
}
"""The same in statements."""


def same(found: Any, wanted: Any, arrays: tuple[Any, Any]) -> None:
    """Assert that results agree in value, type, and in which of two like arrays they are."""
    assert type(found) is type(wanted), (found, wanted)
    if isinstance(found, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other, arrays)
        return
    if isinstance(found, np.ndarray):
        assert (found is arrays[0]) == (wanted is arrays[1])
        assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("body", [f"return {one}" for one in DECIDED] + list(STATEMENTS.values()))
@pytest.mark.parametrize("decided_by", ["float", "integer", "size", "size of an attribute"])
def test_what_decides_a_type_or_an_array_is_static(body: str, decided_by: str) -> None:
    test = {"float": "m.s > 3", "integer": "m.n > 3", "size": "len(x) > 3"}.get(decided_by)
    text = f"def f(m, x):\n    {body.format(t=test or 'len(m.w) > 3', a='x')}\n"
    names: dict[str, Any] = {"np": np, "BIG": BIG}
    f = pe.cd_from_source(text, names)
    plain = {**names}
    exec(text, plain)
    for n in (4, 5, 6, 7, 2, 9, 3):
        x, y = (np.arange(float(n if decided_by == "size" else 3)) for _ in range(2))
        m = SimpleNamespace(s=float(n), n=n, w=np.ones(n))
        with np.errstate(over="ignore"):
            same(f(m, x), plain["f"](m, y), (x, y))


@pytest.mark.parametrize(
    "body",
    [
        "return x * (2.0 if len(x) > 3 else 0.5)", "return (x * 2 if len(x) > 3 else x + 1)",
        "y = x\n    if len(x) > 3:\n        y = x - x.mean()\n    return y.sum()",
        "return (1, x.sum()) if len(x) % 2 else (2, x.max())",
        "k = x[0] > 0\n    j = len(x) if k else 2\n    return 1 if j > 3 else 2.5",
    ],
)  # fmt: skip
def test_sizes_that_decide_only_values_are_dynamic(body: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    {body}\n")
    plain: dict[str, Any] = {}
    exec(f"def f(x):\n    {body}\n", plain)
    for n in (4, 5, 6, 7, 3, 8):
        x = np.arange(float(n)) + 1
        np.testing.assert_allclose(f(x), plain["f"](x))
    assert "any size" in f.specialise(x).reason


def greatest(x: Any, n: Any, part: bool) -> Any:
    total = x[:n].sum() if part else x.sum()
    return max(n, 2.0), total


def powers(x: Any, n: Any, part: bool) -> Any:
    total = x[:n].sum() if part else x.sum()
    return min(n, len(x)), n**2, total


def at(x: Any, n: Any, part: bool) -> Any:
    return x[:n].sum() if part else x[n]


def quotient(x: Any, n: Any, part: bool) -> Any:
    return x[:n].sum() if part else 10 // n


def _outcome(call: Any) -> tuple[Any, ...]:
    try:
        values = call()
    except pe.CdError as problem:
        return (problem.code,)
    values = values if isinstance(values, tuple) else (values,)
    return tuple((type(value), repr(value)) for value in values)


@pytest.mark.parametrize("function", [greatest, powers, at, quotient])
def test_static_parameters_of_other_calls_change_no_result(function: Any) -> None:
    """A call that needs the value of a number leaves it a run-time value in all others."""
    used, x = cd(backend="numpy")(function), np.arange(6.0)
    numbers = (5, 4, 3, 2, 1, -1, 0, np.int8(3), np.int64(3), 2**20)
    for part in (False, True, False):
        for n in numbers:
            new = cd(backend="numpy")(function)
            got, wanted = _outcome(partial(used, x, n, part)), _outcome(partial(new, x, n, part))
            assert got == wanted, (n, part)


def test_run_time_numbers_share_a_specialization_beside_static_ones() -> None:
    used, x = cd(backend="numpy")(greatest), np.arange(6.0)
    for n, part in ((3, True), (3, False)):
        used(x, n, part)
    assert [used.explain(x, n, False).why for n in range(4, 8)] == [
        used.explain(x, 3, False).why
    ] * 4
    for n in (4, 5, 6, 7):
        assert used(x, n, True) == (n, x[:n].sum())
        assert used(x, n, False) == (n, 15.0)
    assert type(used(x, 7, True)[0]) is int and type(used(x, 7, False)[0]) is float
