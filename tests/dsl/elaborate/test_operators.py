"""Operators are Python's on what is known, and fold on indices."""

from __future__ import annotations

import itertools
import operator
import warnings

import numpy as np
import pytest

from plusequals.base.diagnostic import NOWHERE, CdError, CdTypeError, CdValueError
from plusequals.dsl.elaborate.operators import as_affine, as_python, now
from plusequals.dsl.values.types import WEAK_INT
from plusequals.dsl.values.values import Group, Scalar, Static
from plusequals.lowering.ir.assignments import Assign
from plusequals.lowering.ir.expressions import Position
from plusequals.lowering.ir.indexing import const, var
from tests.compare import assert_same
from tests.language.ask import compiled, plain, run

from .points import I
from .scenes import found, typed

X = np.array([[1.5, -2.0], [0.25, 4.0]])
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
COMPARED = ("==", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARED])
@pytest.mark.parametrize("pair", list(itertools.permutations(["n", "s", "x", "3", "2.5"], 2)))
def test_operators_are_numpys_on_every_kind_of_operand(op: str, pair: tuple[str, str]) -> None:
    body = f"return {pair[0]} {op} {pair[1]}"
    arguments = np.abs(X), 2, 0.75
    assert_same(
        run("numpy", "x, n, s", body, *arguments), plain("x, n, s", body, *arguments), 1e-12
    )


EXPRESSIONS = (
    "not n", "not s", "-n", "+x", "~n", "n > 1 and s < 1", "n > 3 or s < 1", "1 < n < 3",
    "n > 2 and x[n, 0] > 0", "n < 3 or x[n, 0] > 0", "s if n > 1 else x[n, 1]", "n in (1, 2, 3)",
    "n not in (1, 2)", "(1, 2) == (1, 2)", "(n, 1) == (2, 1)", "(1, 2) + (n,)", "[0] * 3",
    "None is None", "n is not None", "'a' == 'b'", "1 if x[0, 0] else 2", "n << 3", "n & 6 | 1 ^ n",
    "[0, 1] < np.argmax(0)", "(1, 2) * np.int64(2)", "np.uint8(2) * [1, 2]", "range(3) + x[0, 0]",
    "(1, 2) + np.int64(3)", "range(3) * np.float32(2)", "np.array(2) * (1, 2)",
    "-7 // n", "-7 % n", "n ** 3", "2 ** n", "True + n", "x > 0 & True", "(n > 1) + (s > 0)",
)  # fmt: skip


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_expressions_are_pythons(body: str) -> None:
    given = X, 2, 0.75
    assert_same(run("numpy", "x, n, s", f"return {body}", *given),
                plain("x, n, s", f"return {body}", *given))  # fmt: skip


def test_indices_stay_indices() -> None:
    body = "for i in range(1):\n    k = (2 * i + 3) // 2 - 3 * i\n    x[k, i] = 1.0"
    form = typed("x", body, X)
    (store,) = [one for one in found(form.procedure, Assign) if one.target.node.label == "x"]
    assert [str(index) for index in store.target.index] == ["-2*i + 1", "i"]


def test_integers_known_as_index_expressions() -> None:
    assert as_affine(Static(3)) == const(3)
    assert as_affine(Scalar(Position(var(I)), WEAK_INT)) == var(I)
    assert as_affine(Static(True)) is None and as_affine(Static(2.0)) is None


def test_what_is_wholly_known() -> None:
    assert as_python(Group((Static(1), Group((Static(2),), "list")))) == Static((1, [2]))
    assert as_python(Group((Static(1), Scalar(Position(var(I)), WEAK_INT)))) is None


def test_errors_of_constants_are_errors_at_the_place() -> None:
    with pytest.raises(CdTypeError, match="CD0407"):
        now(len, (3,), NOWHERE)
    with pytest.raises(ZeroDivisionError, match="CD0407.*division by zero"):
        now(lambda a, b: a / b, (1, 0), NOWHERE)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("x and x", "CD0408"),
        ("not x", "CD0408"),
        ("0 < x < 1", "CD0408|CD0409"),
        ("1 / 0", "CD0407"),
        ("~x", "CD0404"),
    ],
)
def test_what_has_no_one_meaning_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, n", f"return {body}", X, 2)


@pytest.mark.parametrize("value", ["x", "x[0, 0]", "np.float32(2)", "(3, 4)", "range(3)"])
def test_a_list_takes_items_in_and_becomes_an_array_beside_one(value: str) -> None:
    body = f"q = [1, n]\nq += {value}\nreturn q"
    assert_same(run("numpy", "x, n", body, X, 2), plain("x, n", body, X, 2))


@pytest.mark.parametrize(
    ("body", "code"),
    {
        "q = [1, n]\nnp.copyto(q, x[0])\nreturn q": "CD0441",
        "return (1, 2) * x[0, 0]": "CD0404", "return np.float64(2) * [1, 2]": "CD0404",
        "return [1, 2] * np.True_": "CD0404", "return range(3) * n": "CD0404",
        "return (1, 2) * x.astype(int).sum()": "CD0410", "return n + range(3)": "CD0404",
        "return 1 if [0, 0] < np.argmax(0) else 2": "CD0408",
    }.items(),
)  # fmt: skip
def test_sequences_refuse_what_python_refuses_or_only_the_run_knows(body: str, code: str) -> None:
    with pytest.raises(CdTypeError, match=code):
        run("numpy", "x, n", body, X, 2)


@pytest.mark.parametrize("body", ["return a + b", "return a * 2", "return 2 * a"])
def test_lists_are_not_joined_or_repeated(body: str) -> None:
    with pytest.raises(CdTypeError, match="CD0404.*lists in Python"):
        run("numpy", "a, b", body, [1.0, 2.0], [3.0, 4.0])


@pytest.mark.parametrize(
    "body", ["return np.asarray(a) + np.asarray(b)", "return np.add(a, b)", "return a * x, a + x"]
)
def test_lists_beside_arrays_are_arrays(body: str, backend: str) -> None:
    arguments = [1.0, 2.0], [3.0, 4.0], np.array([5.0, 6.0])
    assert_same(run(backend, "a, b, x", body, *arguments), plain("a, b, x", body, *arguments))


def test_the_square_of_bools_is_numpys(backend: str) -> None:
    body = "return m ** 2, m ** 3, m ** 2.0, np.power(m, 2)"
    m = np.array([True, False])
    assert_same(run(backend, "m", body, m), plain("m", body, m))
    f = compiled("m, k", "return m ** k")
    for k in (1, 2, 3, 4, 5, 2, 6):
        assert_same(f(m, k), m**k)


def test_an_array_without_axes_gives_numbers(backend: str) -> None:
    body = "return s + 1, np.exp(s), s.astype(int), np.where(s > 1, s, 0.0), -s"
    s = np.array(2.0)
    assert_same(run(backend, "s", body, s), plain("s", body, s), 1e-12)


@pytest.mark.parametrize(
    "body",
    ["np.float64(1) / 0", "np.int64(1) // 0", "-np.int8(-128)", "np.float64(0) % 0",
     "np.int8(100) * np.int8(100)", "x * 1e300", "np.full(2, 1e300, np.float32)", "~True",
     "x.sum(initial=1e300)", "float(np.complex128(2 + 1j))", "C / 0", "np.float64(-1) ** 0.5"],
)  # fmt: skip
@pytest.mark.parametrize("how", ["error", "ignore"])
def test_constants_depend_on_no_warning_filter(body: str, how: str) -> None:
    x = X.astype(np.float32)
    names = {"C": np.float64(3)}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = plain("x", f"return {body}", x, **names)
    with warnings.catch_warnings(), np.errstate(all="raise" if how == "ignore" else "warn"):
        warnings.simplefilter("error")
        assert_same(run("numpy", "x", f"return {body}", x, **names), expected)


@pytest.mark.parametrize(
    ("body", "a", "b", "wanted"),
    [
        ("return a * b % 1000007", 2**40, 2**40, 0),
        ("return (a + b) // 2", 2**62, 2**62, -(2**62)),
        ("return a + b > a", 2**63 - 1, 5, False),
        ("return np.arange(7)[(a * b) % 7]", 2**40 + 1, 2**40 + 1, (2**41 + 1) % 7),
        ("return 1.5 + a * b", 2**40, 2**40, 1.5),
        ("return -a - b", -(2**63), 0, -(2**63)),
    ],
)
def test_python_integers_wrap_as_those_of_64_bits(
    backend: str, body: str, a: int, b: int, wanted: object
) -> None:
    assert run(backend, "a, b", body, a, b) == wanted


@pytest.mark.parametrize(
    "value",
    ["n + 2**63", "n - 2**63", "n * 2**70", "n % 2**64", "2**70 - n", "n // 2**64", "max(n, 2**63)",
     "operator.add(n, 2**70)"],
)  # fmt: skip
def test_a_number_that_64_bits_do_not_hold_is_no_operand(backend: str, value: str) -> None:
    with pytest.raises(CdValueError, match="CD0461.* does not fit in int64"):
        run(backend, "n", f"return {value}", 3, operator=operator)


def test_factors_that_64_bits_do_not_hold_wrap(backend: str) -> None:
    body = """s = n
for k in (1, 2, 3):
    s = s * 6364136223846793005 + 1442695040888963407
return s, n * 2**32 * 2**31, n * 2**32 * 2**32, n + 2**62 + 2**62, n * 2**32 * 2**31 < 0"""
    least, total = -(2**63), 3
    for _ in range(3):
        total = (total * 6364136223846793005 + 1442695040888963407 + 2**63) % 2**64 - 2**63
    assert run(backend, "n", body, 3) == (total, least, 0, least + 3, True)


class _Owner:
    @property
    def late(self) -> float:
        raise ZeroDivisionError("never fitted")


PYTHON_ERRORS = {
    'return d["b"] + x': KeyError,
    "return o.q": AttributeError,
    "return np.nope": AttributeError,
    "return x.nope": AttributeError,
    "return (1, 2).nope": AttributeError,
    "return v.nope": AttributeError,
    "return (1, 2)[5]": IndexError,
    "return t[5]": IndexError,
    "return 1 // 0 + x": ZeroDivisionError,
    "return np.int8(300)": OverflowError,
    "return b * 1000": OverflowError,
    "return v + 1000": OverflowError,
    "v[0] = 1\nreturn v ** 300": OverflowError,
    "s = 0\nfor p in pair: s += p\nreturn s": OverflowError,
    "return 1 << -1": ValueError,
    'return f"{3:zz}"': ValueError,
    "return math.sqrt(-1)": ValueError,
    "return len(5)": TypeError,
    'return -"a"': TypeError,
    'return x < "a"': TypeError,
}


@pytest.mark.parametrize(("body", "kind"), PYTHON_ERRORS.items())
def test_an_error_is_also_of_pythons_class(body: str, kind: type[Exception]) -> None:
    names = {"d": {"a": 1}, "o": _Owner(), "pair": (np.int8(1), 300), "t": (1, 2)}
    given = 2, np.uint8(3), np.ones(2, np.uint8)
    with pytest.raises(kind):
        plain("x, b, v", body, *given, **names)
    with pytest.raises(kind) as caught:
        run("numpy", "x, b, v", body, *given, **names)
    assert isinstance(caught.value, CdError)
    assert str(caught.value).startswith("error[CD0")


def test_a_property_that_raises_is_not_said_to_be_missing() -> None:
    with pytest.raises(ZeroDivisionError, match="reading `late` .* raises ZeroDiv.*: never"):
        run("numpy", "x", "return owner[0].late", 1, owner=(_Owner(),))


def test_a_key_that_the_program_raises_is_the_argument() -> None:
    with pytest.raises(KeyError) as caught:
        run("numpy", "x", 'if x > 0: raise KeyError("k")\nreturn x', 1)
    assert caught.value.args == ("k",)


@pytest.mark.parametrize("value", ['"a" if x > 1 else "b"', "x if x > 1 else None", "x or None"])
def test_a_text_that_the_run_chooses_is_named(value: str) -> None:
    with pytest.raises(CdTypeError, match="CD0463.* depending on a test") as caught:
        run("numpy", "x", f"y = {value}\nreturn 1", 0.5)
    assert "put the test around" in str(caught.value)


def test_a_text_of_both_sides_is_known() -> None:
    assert run("numpy", "x", 'return "a" if x > 1 else "a"', 0.5) == "a"


@pytest.mark.parametrize(
    "body",
    [
        "x[m] == (1, 2, 3, 4)", "x[m] != [1, 2, 3, 4]", "range(4) > x[m]", "x[m] + (1, 2, 3, 4)",
        "[1] * x[m]",
    ],
)  # fmt: skip
def test_a_selection_is_an_array_beside_a_sequence(body: str) -> None:
    args = np.arange(12.0).reshape(3, 4), np.array([True, False, True])
    text = f"return np.sum({body}, axis=0), np.sum({body})"
    assert_same(run("numpy", "x, m", text, *args), plain("x, m", text, *args))


@pytest.mark.parametrize(
    "body", ["[v for v in x if v > 0] + [1.0]", "[v for v in x if v > 0] * 2", "x[x > 0] == None"]
)
def test_a_tested_comprehension_is_joined_and_repeated_by_python_only(body: str) -> None:
    with pytest.raises(CdTypeError, match="CD0404"):
        run("numpy", "x", f"return len({body})", np.arange(3.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'%d of %d' % (n, x[0, 0])", "f-string here, not by `%`"),
        ("'#' * int(x[0, 0])", "as often as is known when compiling"),
        ("int(x[0, 0]) * '#'", "as often as is known when compiling"),
    ],
)
def test_a_text_of_what_the_run_computes_is_refused(text: str, message: str) -> None:
    with pytest.raises(CdTypeError, match=f"CD0402.*{message}"):
        run("numpy", "x, n", f"print({text})", X, 2)


def test_a_text_is_repeated_by_a_parameter(capfd: pytest.CaptureFixture[str]) -> None:
    run("numpy", "n", "print('=' * n, n * 'ab', 'a' * 0)", 3)
    assert capfd.readouterr().out == "=== ababab \n"


@pytest.mark.parametrize(
    ("text", "told", "help"),
    [
        ("n & (2**64 - 1)", "CD0464", "convert to unsigned integers first: `np.uint64(v)`"),
        ("k + 2**63", "CD0464", "convert to unsigned integers first: `x.astype(np.uint64)`"),
        ("k + 2**64", "CD0464", "convert to floats first: `x.astype(np.float64)`"),
    ],
)
def test_a_way_out_of_large_integers_is_followed(text: str, told: str, help: str) -> None:
    k = np.arange(3)
    with pytest.raises(CdError) as raised:
        run("numpy", "k, n", f"return {text}", k, 5)
    assert (raised.value.code, raised.value.diagnostics[0].helps) == (told, (help,))
    way = help.split("`")[1]
    fixed = f"return {way.replace('v', 'n').replace('x', 'k', 1)}{text[1:]}"
    if "2**64" not in text.replace("(2**64 - 1)", ""):
        assert_same(run("numpy", "k, n", fixed, k, 5), plain("k, n", fixed, k, 5))


def test_a_large_integer_of_a_loop_may_be_one_of_numpys() -> None:
    body = "h = {}\nfor v in k:\n    h ^= {}\nreturn h"
    with pytest.raises(CdValueError, match="CD0461") as raised:
        run("numpy", "k", body.format(2**63 + 5, "int(v)"), np.arange(4))
    way = raised.value.diagnostics[0].helps[0]
    assert way == f"make it one of NumPy's: `np.uint64({2**63 + 5})`"
    fixed = body.format(way.split("`")[1], "np.uint64(v)")
    assert_same(run("numpy", "k", fixed, np.arange(4)), plain("k", fixed, np.arange(4)))
