"""Parts of what is written to disk: what each says, and what has no description."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.call_entry import Guard, ValueSource
from plusequals.dsl.dispatch import persist
from plusequals.dsl.elaborate.captures.inputs import CapturedValue, ConstantSpec, ObjectSpec
from plusequals.dsl.source.fingerprint import NotPortable, describe
from plusequals.dsl.source.function_source import Scope
from plusequals.dsl.specialize.guards import CallGuard, GuardProgram
from plusequals.dsl.specialize.signature import describe_input
from plusequals.dsl.values.values import Path

from .found import is_found

X = np.arange(6.0)
pytestmark = pytest.mark.usefixtures("own_cache")


class Holder:
    """What holds functions and numbers."""


HOLDER: Any = Holder()
SCOPES = [Scope({}, {"h": HOLDER, "K": 2.0, "np": np}, vars(builtins), {"i": "letter"}),
          Scope({}, {"K": 3.0}, vars(builtins))]  # fmt: skip


def twin(x: Any) -> Any:
    """Return the argument."""
    return x


def typed(**parts: Any) -> Any:
    """What a function was elaborated to, as far as an entry is made of it."""
    usual: dict[str, Any] = {"read": {}, "used": {}, "constants": {}, "owners": {}, "asked": ()}
    return SimpleNamespace(**{**usual, **parts})


def spec(value: object) -> ObjectSpec:
    return ObjectSpec(id(value), value)


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("root", "expected"),
    [("x", ("", "x")), ("g:x", ("g:", "x")), ("g:h:x", ("g:h:", "x")), (":x", (":", "x"))],
)
def test_a_root_is_the_function_and_the_name(root: str, expected: tuple[str, str]) -> None:
    assert persist._split_root(root) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"read": {("", "g"): twin}}, [0, "g", []]),
        ({"read": {("", "k"): 2.0, ("g:", "t"): twin}}, [1, "t", []]),
        ({"read": {("other:", "t"): twin}}, None),
        ({"read": {("other:", "t"): twin, ("", "t"): twin}}, [0, "t", []]),
        ({"used": {Path("m", ("sub", "g"), True): twin}}, [0, "m", ["sub", "g"]]),
        ({"used": {Path("g:m", ("g",), True): twin}}, [1, "m", ["g"]]),
        ({"used": {Path("other:m", ("g",), True): twin}}, None),
        ({"used": {Path("m", ("g",), True): len}}, None),
        ({"used": {Path("m", ("g",)): twin}}, None),
        ({"used": {Path("m", (0,), True): twin}}, None),
        ({"used": {Path("m", ("g",), True): twin}, "constants": {"m": 1}}, None),
        ({"used": {Path("m", (0,), True): twin, Path("n", ("g",), True): twin}}, [0, "n", ["g"]]),
        ({}, None),
    ],
)  # fmt: skip
def test_the_path_to_a_function_that_is_inlined(parts: Any, expected: Any) -> None:
    read = {at: CapturedValue(value, []) for at, value in parts.get("read", {}).items()}
    used = {path: spec(value) for path, value in parts.get("used", {}).items()}
    made = typed(**{**parts, "read": read, "used": used})
    if expected is not None:
        assert persist._path_to(made, ["", "g:"], twin) == expected
        return
    with pytest.raises(NotPortable):
        persist._path_to(made, ["", "g:"], twin)


def test_functions_of_the_library_have_no_path() -> None:
    made = typed(
        owners={"a:": "a library function", "g:": twin, "g:h:": describe},
        read={("", "g"): CapturedValue(twin, []), ("g:", "h"): CapturedValue(describe, [])},
    )
    prefixes, owners = persist._function_paths(made)
    assert prefixes == ["", "g:", "g:h:"] and owners == [[0, "g", []], [1, "h", []]]


# ---------------------------------------------------------------- captured values


def reads(**parts: Any) -> list[Any]:
    return list(persist._captured_reads(typed(**parts), ["", "g:"], SCOPES))


def test_captured_values_are_described_by_function_and_name() -> None:
    read = {("", "K"): CapturedValue(2.0, ["one"]), ("g:", "K"): CapturedValue(3.0, ["two"]),
            ("", "i"): CapturedValue("letter", ["three"])}  # fmt: skip
    assert reads(read=read) == [([0, "K", [], ["one"]], 2.0), ([1, "K", [], ["two"]], 3.0)]
    used: dict[Path, Any] = {
        Path("h", ("table",), True): describe_input((1, 2), True), Path("K", (), True): None,
        Path("x"): None,
    }  # fmt: skip
    HOLDER.table = (1, 2)
    assert reads(used={Path("K", (), True): None}, constants={"K": 1}) == []
    assert reads(used=used) == [([0, "h", ["table"], describe((1, 2))], (1, 2))]


@pytest.mark.parametrize(
    "parts",
    [
        {"read": {("", "K"): CapturedValue(2.0, None)}},
        {"read": {("other:", "K"): CapturedValue(2.0, ["one"])}},
        {"used": {Path("h", ("table",)): describe_input((1, 2), True)}},
        {"used": {Path("h", ("table", 0), True): ConstantSpec(int, "1", 1)}},
        {"used": {Path("other:h", ("table",), True): describe_input((1, 2), True)}},
        {"used": {Path("h", ("table",), True): describe_input((1, 3), True)}},
        {"used": {Path("h", ("nothing",), True): describe_input((1, 2), True)}},
        {"used": {Path("h", ("table",), True): None}, "constants": {"h": 1}},
        {"used": {Path("other:h", (), True): None}, "constants": {"other:h": 1}},
    ],
)
def test_captured_values_without_a_description(parts: dict[str, Any]) -> None:
    HOLDER.table = (1, 2)
    with pytest.raises(NotPortable):
        reads(**parts)


def test_attributes_are_described_with_their_owner() -> None:
    known, unknown = CapturedValue(np, ["np"]), CapturedValue(HOLDER, None)
    value = CapturedValue(np.pi, ["pi"])
    found = list(persist._attributes(typed(asked=((known, "pi", value), (value, "k", known)))))
    assert found == [[["np"], "pi", ["pi"]], [["pi"], "k", ["np"]]]
    for owner, held in ((unknown, value), (known, unknown), (unknown, unknown)):
        with pytest.raises(NotPortable):
            list(persist._attributes(typed(asked=((owner, "pi", held),))))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (("__code__",), True), (("__defaults__", 0), True), (("__wrapped__", "__code__"), True),
        (("__func__", "__wrapped__", "__kwdefaults__"), True), (("k",), False), ((), False),
        (("other", "__code__"), False),
    ],
)  # fmt: skip
def test_the_code_of_an_inlined_function_is_described_with_it(
    steps: tuple[Any, ...], expected: bool
) -> None:
    used = {Path("g", (), True): spec(twin), Path("g", ("other",), True): spec(len)}
    made = typed(owners={"g:": twin}, used=used)
    assert persist._is_in_description(Path("g", steps, True), made) == expected
    assert not persist._is_in_description(Path("g", steps, True), typed(used=used))


# ---------------------------------------------------------------- steps and checks


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ((ValueSource.ARGUMENT, "x"), [ValueSource.ARGUMENT, "x"]),
        ((ValueSource.NAME, SCOPES[1], "K"), [ValueSource.NAME, 1, "K"]),
        ((ValueSource.NAME, SCOPES[0], "K"), [ValueSource.NAME, 0, "K"]),
        ((ValueSource.NAME, Scope({}, {}, {}), "K"), None),
        ((ValueSource.ATTRIBUTE, 2, "k"), [ValueSource.ATTRIBUTE, 2, "k"]),
        ((ValueSource.ITEM, 2, 1), [ValueSource.ITEM, 2, 1]),
        ((ValueSource.ITEM, 2, "k"), [ValueSource.ITEM, 2, "k"]),
        ((ValueSource.ITEM, 2, (1,)), None),
        ((ValueSource.CONSTANT, (1, "a")), [ValueSource.CONSTANT, "(1, 'a', )"]),
        ((ValueSource.CONSTANT, np.array([[1, 2]], "i2")),
         [ValueSource.CONSTANT, "01000200", "<i2", [1, 2]]),
        ((ValueSource.CONSTANT, HOLDER), None),
        ((ValueSource.MADE, 0, np.asarray), None),
    ],
)  # fmt: skip
def test_sources_of_values(source: tuple[Any, ...], expected: list[Any] | None) -> None:
    if expected is not None:
        assert persist._encode_source(source, SCOPES) == expected
        return
    with pytest.raises(NotPortable):
        persist._encode_source(source, SCOPES)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ((Guard.SAME, HOLDER), [Guard.SAME]), ((Guard.ANY,), [Guard.ANY]),
        ((Guard.BITS, -0.0), [Guard.BITS, "0000000000000080"]),
        ((Guard.ARRAY, np.dtype("i2"), (2, 3), (6, 2), 0x500),
         [Guard.ARRAY, "<i2", [2, 3], [6, 2], 0x500]),
        ((Guard.ARRAY, np.dtype("i2"), (2,), (2,), 0x500, np.recarray), None),
        ((Guard.NUMBER, complex), [Guard.NUMBER, "complex"]),
        ((Guard.NUMBER, np.int16), [Guard.NUMBER, "int16"]),
        ((Guard.SIZED, tuple, 2), [Guard.SIZED, "tuple", 2]),
        ((Guard.SIZED, list, 2), [Guard.SIZED, "list", 2]), ((Guard.SIZED, Holder, 2), None),
        ((Guard.TYPE, Holder), None), ((Guard.EQUAL, 5), [Guard.EQUAL, 5]),
        ((Guard.LISTED,), [Guard.LISTED]),
    ],
)  # fmt: skip
def test_checks_of_values(check: tuple[Any, ...], expected: list[Any] | None) -> None:
    if expected is not None:
        assert persist._check(check) == expected
        return
    with pytest.raises(NotPortable):
        persist._check(check)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "None"), (True, "True"), (7, "7"), (-2.5, "-2.5"), ("it's", '"it\'s"'), ((), "()"),
        ((1, (2.0, None)), "(1, (2.0, None, ), )"), (1 << 2046, str(1 << 2046)),
    ],
)  # fmt: skip
def test_literals_of_constants(value: object, expected: str) -> None:
    assert persist._literal(value) == expected and eval(expected) == value


@pytest.mark.parametrize(
    "value",
    [np.nan, np.inf, 1 << 2047, -(1 << 2048), np.float64(1), 2j, [1], {}, (1, HOLDER), b"a",
     (np.inf,), type("Named", (tuple,), {})()],
)  # fmt: skip
def test_constants_without_a_literal(value: object) -> None:
    with pytest.raises(NotPortable):
        persist._literal(value)


@pytest.mark.parametrize(
    ("constant", "check", "expected"),
    [
        ((), (Guard.ANY,), True), (("n",), (Guard.ANY,), False), (("n",), (Guard.FLOAT,), False),
        (("n",), (Guard.INTEGER,), False), (("n",), (Guard.NUMBER, np.int8), False),
        (("n",), (Guard.EQUAL, 3), True), (("other",), (Guard.INTEGER,), True),
        ((), (Guard.SAME, 3), False), (("n",), (Guard.SAME, 3), True),
        ((), (Guard.BITS, 1.0), True),
    ],
)  # fmt: skip
def test_checks_that_the_key_of_an_entry_makes_unnecessary(
    constant: tuple[str, ...], check: tuple[Any, ...], expected: bool
) -> None:
    match: Any = SimpleNamespace(
        specialization=SimpleNamespace(typed=SimpleNamespace(constant=frozenset(constant)))
    )
    steps = [CallGuard((ValueSource.ARGUMENT, "n"), check), CallGuard((ValueSource.CONSTANT, 1))]
    guards = GuardProgram(steps, [], [], [], [], 0, [])
    assert persist._is_key_sufficient(match, {"n": 3}, guards) == expected
    assert persist._is_key_sufficient(match, {"n": 3}, None)


# ---------------------------------------------------------------- entries of calls


@pytest.mark.usefixtures("short_way")
def test_numbers_that_do_not_decide_are_not_in_the_key(world: Callable[..., Any]) -> None:
    text = "@cd\ndef f(x, n):\n    return x * n\n"
    for n, expected in ((2, False), (3, True), (2, True)):
        f = world(text)
        np.testing.assert_array_equal(f(X, n), X * n)
        assert is_found(f) == expected


@pytest.mark.usefixtures("short_way")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@cd\ndef f(x):\n    return x + 1\n", True),
        ("def g(v):\n    return v * 2\n@cd\ndef f(x):\n    return g(x)\n", True),
        ("class A:\n    def __init__(self):\n        self.k = 2.0\na = A()\n"
         "@cd\ndef f(x):\n    return x * a.k\n", False),
    ],
)  # fmt: skip
def test_which_calls_have_entries(world: Callable[..., Any], text: str, found: bool) -> None:
    first = world(text)
    expected = first(X)
    second = world(text)
    np.testing.assert_array_equal(second(X), expected)
    assert (is_found(first), is_found(second)) == (False, found)


@pytest.mark.usefixtures("short_way")
def test_nothing_is_written_without_a_fingerprint(
    world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    parsed_key = persist.persistent_cache.parsed_key

    def noted(fingerprint: Any) -> str:
        asked.append(fingerprint)
        return parsed_key(fingerprint)

    f, g = (world(f"@cd\ndef f(x):\n    return x + {n}\n") for n in (1, 2))
    f.definition.fingerprint = None
    monkeypatch.setattr(persist.persistent_cache, "parsed_key", noted)
    np.testing.assert_array_equal(f(X), X + 1)
    assert asked == []
    np.testing.assert_array_equal(g(X), X + 2)
    assert asked == [g.definition.fingerprint] * 2
