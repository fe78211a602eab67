"""Parts of the entries on disk: what is read back of each, and what is compared with now."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.call_entry import Guard, PartKind, ResultKind, ReturnKind, ValueSource
from plusequals.backends.runtime.state import RUNTIME
from plusequals.dsl.dispatch import persistent_cache as cached
from plusequals.dsl.source.definition import Definition
from plusequals.dsl.source.fingerprint import NotPortable, describe
from plusequals.dsl.source.function_source import MISSING, Scope, scope_of
from plusequals.dsl.specialize.guards import CallShape

from .found import is_found

X, Y = np.arange(4.0), np.ones(2)
pytestmark = pytest.mark.usefixtures("own_cache")


class Owner:
    """An object with an attribute."""

    k = (1, 2.5)


OWNER = Owner()
SCOPE = Scope({}, {"o": OWNER, "K": 2.0}, vars(builtins))


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []), ([X, Y, X], [0, 1, 0]), ([1, X, 1, X], [-1, 1, -1, 1]), ([X, X, X], [0, 0, 0]),
        ([None, "a", 2.5, np.float32(1)], [-1] * 4), ([X, [], Y, Y], [0, 1, 2, 2]),
    ],
)  # fmt: skip
def test_identities_are_those_of_what_can_change(values: list[Any], expected: list[int]) -> None:
    assert cached.identity_classes(values) == expected


def test_values_are_valid_while_descriptions_and_identities_are_the_same() -> None:
    names: dict[str, Any] = {"K": 2.0, "A": X, "B": X, "o": OWNER}
    scope = Scope({}, names, vars(builtins))
    reads = [[0, "K", [], describe(2.0)], [0, "A", [], describe(X)], [0, "B", [], describe(X)],
             [0, "o", ["k"], describe((1, 2.5))],
             [0, "unknown", [], describe(MISSING)]]  # fmt: skip
    asked = [[describe(np), "pi", describe(np.pi)]]
    classes = cached.identity_classes([2.0, X, X, Owner.k, MISSING])
    assert cached.is_valid(reads, asked, classes, [scope])
    assert not cached.is_valid(reads, [[describe(np), "pi", describe(3.0)]], classes, [scope])
    for name, value in (("K", 3.0), ("K", 2), ("A", X.copy()), ("B", Y), ("unknown", 1)):
        changed = Scope({}, {**names, name: value}, vars(builtins))
        assert not cached.is_valid(reads, asked, classes, [changed])
    with pytest.raises(NotPortable):
        cached.is_valid(reads, asked, classes, [Scope({}, {**names, "o": 1}, vars(builtins))])


def test_paths_lead_to_what_they_lead_to_now() -> None:
    other = Scope({}, {"K": 3.0}, vars(builtins))
    assert cached.current_value([SCOPE, other], 1, "K", []) == 3.0
    assert cached.current_value([SCOPE, other], 0, "K", []) == 2.0
    assert cached.current_value([SCOPE], 0, "o", ["k", "__class__"]) is tuple
    assert cached.current_value([SCOPE], 0, "len", []) is len
    with pytest.raises(NotPortable):
        cached.current_value([SCOPE], 0, "o", ["nothing"])


@pytest.mark.parametrize(
    ("value", "static", "expected"),
    [
        (3, False, ["any", "int"]), (2**63, False, describe(2**63)), (3, True, describe(3)),
        (-(2**63), False, ["any", "int"]), (2**63 - 1, False, ["any", "int"]),
        (-(2**63) - 1, False, describe(-(2**63) - 1)), (True, False, describe(True)),
        (2.5, False, ["any", "float"]), (2.5, True, ["any", "float"]),
        (2j, True, ["any", "complex"]),
        (np.float32(1), True, ["any", "float32"]), (np.int8(1), False, ["any", "int8"]),
        (np.int8(1), True, describe(np.int8(1))), ("a", False, describe("a")),
        (None, False, describe(None)), (X, False, describe(X)), (X, True, describe(X)),
    ],
)  # fmt: skip
def test_arguments_are_described(value: Any, static: bool, expected: list[Any]) -> None:
    assert cached.describe_argument(value, static) == expected


@pytest.mark.parametrize("value", [(1, 2), [1.0], X.view(np.recarray), OWNER, np, b"a", len])
def test_other_arguments_are_not_described(value: Any) -> None:
    with pytest.raises(NotPortable):
        cached.describe_argument(value, False)


def test_functions_that_are_inlined_are_known_by_their_definition() -> None:
    def g(x: Any) -> Any:
        return x

    marked: Any = types.FunctionType(g.__code__, {})
    marked.__cd_function__ = True
    definition = Definition(scope_of(g), g)
    compiled: Any = pe.cd(g)
    assert cached.inlined_function(g) is g and cached.inlined_function(marked) is marked
    assert cached.inlined_function(compiled) is compiled.definition
    assert cached.inlined_function(definition) is definition
    assert cached.enclosing_scope(definition) is definition.scope
    assert cached.enclosing_scope(g) == scope_of(g)
    for other in (len, OWNER, Owner, None):
        with pytest.raises(NotPortable):
            cached.inlined_function(other)


# ---------------------------------------------------------------- guard programs


def decoded(*steps: Any, **other: Any) -> Any:
    data = {"steps": steps, "pairs": [[0, 1]], "equals": [], "inputs": [[0, True]], "results": [],
            "whole": ReturnKind.ONE, "parts": [], **other}  # fmt: skip
    return cached._decode_program(data, [SCOPE], {"x": X, "p": (1, [7.0, 8.0])})


def test_steps_are_read_back_with_the_objects_of_now() -> None:
    made = decoded(
        [[ValueSource.ARGUMENT, "x"], [Guard.ARRAY, "<f8", [4], [8], 0x500]],
        [[ValueSource.ARGUMENT, "p"], [Guard.SIZED, "tuple", 2]],
        [[ValueSource.NAME, 0, "o"], [Guard.SAME]],
        [[ValueSource.ATTRIBUTE, 2, "k"], [Guard.SAME]],
        [[ValueSource.ITEM, 3, 1], [Guard.BITS, "0000000000000080"]],
        [[ValueSource.ITEM, 1, 1], [Guard.SIZED, "list", 2]],
        [[ValueSource.CONSTANT, "('a', 2)"], [Guard.SAME]],
        [[ValueSource.CONSTANT, X[:2].tobytes().hex(), "<f8", [2, 1]], [Guard.ANY]],
        [[ValueSource.ARGUMENT, "p"], [Guard.NUMBER, "int16"]],
        [[ValueSource.ARGUMENT, "p"], [Guard.NUMBER, "complex"]],
        [[ValueSource.ARGUMENT, "p"], [Guard.EQUAL, 5]],
    )
    sources = [step.source for step in made.steps]
    assert sources[:7] == [
        (ValueSource.ARGUMENT, "x"), (ValueSource.ARGUMENT, "p"), (ValueSource.NAME, SCOPE, "o"),
        (ValueSource.ATTRIBUTE, 2, "k"), (ValueSource.ITEM, 3, 1), (ValueSource.ITEM, 1, 1),
        (ValueSource.CONSTANT, ("a", 2)),
    ]  # fmt: skip
    kind, table = sources[7]
    assert kind == ValueSource.CONSTANT and table.dtype == X.dtype
    np.testing.assert_array_equal(table, [[0.0], [1.0]])
    checks = [step.check for step in made.steps]
    assert checks[:2] == [(Guard.ARRAY, X.dtype, [4], [8], 0x500), (Guard.SIZED, tuple, 2)]
    assert checks[2][1] is OWNER and checks[3][1] is Owner.k
    assert str(checks[4]) == str((Guard.BITS, -0.0)) and checks[5] == (Guard.SIZED, list, 2)
    assert checks[6:8] == [(Guard.SAME, ("a", 2)), (Guard.ANY,)]
    assert checks[8] == (Guard.NUMBER, np.int16) and checks[9] == (Guard.NUMBER, complex)
    assert checks[10] == (Guard.EQUAL, 5)
    assert (made.pairs, made.equals, made.inputs) == ([[0, 1]], [], [[0, True]])


def test_results_and_parts_are_read_back() -> None:
    made = decoded(
        results=[[ResultKind.ARRAY, "<f4", [2, 3]], [ResultKind.INTEGER, "<i8", []]],
        parts=[[PartKind.RESULT, 1], [PartKind.OBJECT, "(1, None)"], [PartKind.VIEW, [0, 8]]],
        whole=ReturnKind.TUPLE,
    )
    assert made.results == [
        (ResultKind.ARRAY, np.dtype("f4"), (2, 3)), (ResultKind.INTEGER, np.dtype("i8"), ())
    ]  # fmt: skip
    assert made.parts == [(PartKind.RESULT, 1), (PartKind.OBJECT, (1, None)),
                          (PartKind.VIEW, [0, 8])]  # fmt: skip
    assert made.whole == ReturnKind.TUPLE


@pytest.mark.parametrize(
    "source",
    [
        [ValueSource.ITEM, 0, 9], [ValueSource.ITEM, 1, "k"], [ValueSource.ATTRIBUTE, 0, "nothing"],
        [ValueSource.ITEM, 1, 2],
    ],
)  # fmt: skip
def test_values_that_are_gone_make_an_entry_invalid(source: list[Any]) -> None:
    with pytest.raises(NotPortable):
        decoded(
            [[ValueSource.ARGUMENT, "x"], [Guard.ANY]],
            [[ValueSource.ARGUMENT, "p"], [Guard.ANY]],
            [source, [Guard.ANY]],
        )


@pytest.mark.parametrize("which", ["globals", "builtins"])
def test_names_are_looked_up_in_plain_dictionaries(which: str) -> None:
    class Names(dict[str, Any]):
        """Names that compute what they are bound to."""

    scope = SCOPE._replace(**{which: Names(getattr(SCOPE, which))})
    assert cached._require_dicts(SCOPE) is SCOPE
    with pytest.raises(NotPortable):
        cached._require_dicts(scope)


# ---------------------------------------------------------------- entries of calls


@pytest.mark.usefixtures("short_way")
def test_two_helpers_have_names_of_their_own(world: Callable[..., Any]) -> None:
    text = """
def made(scale):
    def inner(v):
        return v * scale
    return inner
def moved(by):
    def inner(v):
        return v + by
    return inner
g, h = made(G), moved(H)
@cd
def f(x):
    return h(g(x)) - g(x)
"""
    for g, h, expected in ((2.0, 5.0, False), (2.0, 5.0, True), (2.0, 6.0, False),
                           (3.0, 5.0, False), (3.0, 5.0, True), (2.0, 6.0, True)):  # fmt: skip
        f = world(text, G=g, H=h)
        np.testing.assert_array_equal(f(X), X * g + h - X * g)
        assert is_found(f) == expected


def test_the_cache_is_not_used_where_compilation_is_observed() -> None:
    with pe.override(verify=False):
        assert cached.is_cache_enabled()
        for change in ({"cache": False}, {"verify": True}, {"stop_after": "lower"}, {"debug": 1},
                       {"debug_log_from_routines": True}, {"dump_dir": "dumps"}):  # fmt: skip
            with pe.override(**change):
                assert not cached.is_cache_enabled(), change
        with pe.profile():
            assert not cached.is_cache_enabled()


@pytest.mark.usefixtures("short_way")
def test_a_definition_that_was_parsed_is_known(world: Callable[..., Any]) -> None:
    text = "@cd\ndef f(x):\n    return x + 1\n"
    f = world(text)
    assert not cached.was_parsed_before(f.definition)
    f(X)
    assert cached.was_parsed_before(f.definition)
    assert cached.was_parsed_before(world(text).definition)
    assert not cached.was_parsed_before(world(text.replace("1", "2")).definition)
    with pe.override(cache=False):
        assert not cached.was_parsed_before(f.definition)
    f.definition.fingerprint = None
    assert not cached.was_parsed_before(f.definition)


@pytest.mark.usefixtures("short_way")
def test_wrong_settings_are_no_error_before_a_call(
    world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    f = world("@cd\ndef f(x):\n    return x + 1\n")
    f(X)

    def wrong() -> Any:
        raise pe.CdError(cast(Any, None))

    monkeypatch.setattr(cached.settings, "current", wrong)
    entries = cached.PersistentEntries(f.definition, None)
    assert not cached.was_parsed_before(f.definition)
    assert entries.find({"x": X}, CallShape(1, (), {"x": None})) is None


@pytest.mark.usefixtures("short_way")
def test_the_compiler_is_looked_for_while_a_new_function_is_parsed(
    world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(RUNTIME, "begin", begun.append)
    f, shape = world("@cd\ndef f(x):\n    return x + 1\n"), CallShape(1, (), {"x": None})
    assert cached.PersistentEntries(f.definition, "cc").find({"x": X}, shape) is None
    assert begun == ["cc"]
    f(X)
    begun.clear()
    entries = cached.PersistentEntries(f.definition, None)
    assert entries.find({"x": X}, shape) is not None
    assert entries.find({"x": X}, shape) is None, "each key is looked up once"
    assert entries.find({"x": X.astype("f4")}, shape) is None and begun == []
    assert cached.PersistentEntries(f.definition, "numpy").find({"x": X}, shape) is None


@pytest.mark.usefixtures("short_way")
def test_keys_of_calls(world: Callable[..., Any]) -> None:
    backend = cached.storing_backend("cc")
    assert backend is not None and cached.storing_backend("numpy") is None

    def keys(fingerprint: str = "f", **arguments: Any) -> Any:
        return cached.entry_keys(fingerprint, backend, arguments)

    (one,) = keys(x=X)
    others = [keys("g", x=X), keys(y=X), keys(x=Y), keys(x=X.astype("f4")), keys(x=X, y=X),
              keys(x=X, y=X.copy()), keys(x=2.5), keys(x=np.float32(2.5)), keys()]  # fmt: skip
    assert keys(x=X + 1) == [one] and all(len(other) == 1 for other in others)
    assert len({one, *(other[0] for other in others)}) == 1 + len(others)
    for kind in (int, np.int8, bool):
        given, static = keys(x=X, n=kind(0))
        assert (given != static) == (kind is not bool)
        assert (keys(x=X, n=kind(1))[0] == given) == (kind is not bool)
        assert keys(x=X, n=kind(1))[1] != static
    assert keys(x=(1, 2)) == keys(x=OWNER, y=1) == ()
