"""Recipes as the words of plans: where values are, what they have to be, what is kept for them."""

from __future__ import annotations

import builtins
import struct
from typing import Any, NoReturn

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.call_entry import (
    VALUES,
    Guard,
    PartKind,
    ResultKind,
    ReturnKind,
    ValueSource,
)
from plusequals.base.diagnostic import CdError, Diagnostic
from plusequals.dsl.source.function_source import MISSING, FunctionSnapshot, Scope
from plusequals.dsl.specialize.guards import CallGuard, CallShape, GuardProgram, pack_guards

from ..dispatch.test_fast_path import made, repeated

FORM = CallShape(1, ("y",), {"x": None, "y": None, "k": 5})


def fail(*fault: int) -> NoReturn:
    raise CdError(Diagnostic("CD0000", str(fault)))


def words_of(*steps: CallGuard, **other: Any) -> tuple[list[int], tuple[object, ...]]:
    """The words of the values of a recipe, and what is kept for them."""
    parts = other.pop("parts", [(PartKind.OBJECT, None)])
    recipe = GuardProgram(steps, [], [], [], other.pop("results", []), ReturnKind.ONE, parts)
    made = pack_guards(recipe, FORM, None, (1, 2), "held", fail)
    assert made is not None
    error = made[2](1, 2, 3)
    assert isinstance(error, CdError) and error.__traceback__ is None and "(1, 2, 3)" in str(error)
    words = struct.unpack(f"{len(made[0]) // 8}q", made[0])
    return list(words[14 : words[10]]), made[1]


def test_arguments_are_found_as_they_were_given() -> None:
    steps = [CallGuard((ValueSource.ARGUMENT, name)) for name in ("x", "y", "k")]
    words, kept = words_of(*steps)
    assert words[:6] == [ValueSource.ARGUMENT, 0, 0, 0, Guard.ANY, 6]
    assert words[6:9] == [ValueSource.KEYWORD, 0, 0] and words[9] == id(kept[2]) and kept[2] == "y"
    assert words[12:16] == [ValueSource.CONSTANT, 0, 0, id(kept[3])] and kept[3] == 5


@pytest.mark.parametrize(
    ("positional", "named", "defaults", "keyword_only"),
    [
        (1, (), True, ["k", "m"]), (2, (), False, ["k", "m"]), (1, ("y",), False, ["k", "m"]),
        (2, ("m",), False, ["k"]), (1, ("m", "k"), True, []), (1, ("k", "y", "m"), False, []),
        (0, ("x", "m"), True, ["k"]),
    ],
)  # fmt: skip
def test_code_and_the_defaults_that_a_call_takes_are_compared(
    positional: int, named: tuple[str, ...], defaults: bool, keyword_only: list[str]
) -> None:
    def f(x: Any, y: Any = 1.5, *, k: Any = 2, m: Any = "m") -> None:
        """Do nothing."""

    parameters = {"x": None, "y": 1.5, "k": 2, "m": "m"}
    shape = CallShape(positional, named, parameters, FunctionSnapshot.of(f))
    expected: list[tuple[Any, Any]] = [
        ((ValueSource.CONSTANT, f), (Guard.ANY,)),
        ((ValueSource.ATTRIBUTE, 7, "__code__"), (Guard.SAME, f.__code__)),
    ]
    if defaults:
        expected += [((ValueSource.ATTRIBUTE, 7, "__defaults__"), (Guard.SAME, f.__defaults__))]
    if keyword_only:
        owner = 7 + len(expected)
        expected += [((ValueSource.ATTRIBUTE, 7, "__kwdefaults__"), (Guard.ANY,))]
        expected += [
            ((ValueSource.ITEM, owner, name), (Guard.SAME, parameters[name]))
            for name in keyword_only
        ]
    assert [(step.source, step.check) for step in shape.current(7)] == expected
    assert CallShape(positional, named, parameters).current(7) == []


@pytest.mark.usefixtures("short_way")
def test_other_defaults_make_another_call(long_ways: list[str]) -> None:
    def function(x: Any, y: Any = 1.0, *, k: Any = 2.0, m: Any = 3.0) -> Any:
        return x * y + k - m

    f, x = pe.cd(function), np.arange(3.0)
    assert function.__kwdefaults__ is not None
    np.testing.assert_array_equal(repeated(long_ways, lambda: f(x, k=0.0))[0], x - 3)
    function.__kwdefaults__["k"] = 9.0  # which the call gives
    np.testing.assert_array_equal(f(x, k=0.0), x - 3)
    assert long_ways == []
    function.__kwdefaults__["m"] = 4.0
    np.testing.assert_array_equal(f(x, k=0.0), x - 4)
    function.__defaults__ = (2.0,)
    np.testing.assert_array_equal(f(x, k=0.0), 2 * x - 4)


@pytest.mark.parametrize("code", ["CD0301", "CD0601"])
@pytest.mark.parametrize("general", [False, True])
def test_sizes_that_may_broadcast_are_no_error_yet(code: str, general: bool) -> None:
    def wrong(*fault: int) -> NoReturn:
        raise CdError(Diagnostic(code, str(fault)))

    recipe = GuardProgram([], [], [], [], [], ReturnKind.ONE, [(PartKind.OBJECT, None)])
    packed = pack_guards(recipe, FORM, None, (1, 2), None, wrong, general)
    assert packed is not None
    problem = packed[2](1, 4)
    assert (problem is None) == (general and code == "CD0301")
    assert problem is None or (code in str(problem) and problem.__traceback__ is None)


def test_results_and_views_of_them() -> None:
    f4, i2 = np.dtype("f4"), np.dtype("i2")
    results = [(ResultKind.ARRAY, f4, (2, 3)), (ResultKind.ARRAY, i2, ())]
    view = (0, 4, 0x500, 1, 3, 4)
    parts = [(PartKind.VIEW, view), (PartKind.RESULT, 1), (PartKind.VIEW, (-1, 8, 0, 0))]
    recipe = GuardProgram([], [], [], [], results, ReturnKind.ONE, parts)
    packed = pack_guards(recipe, FORM, None, (1, 2), None, fail)
    assert packed is not None
    words = struct.unpack(f"{len(packed[0]) // 8}q", packed[0])
    found = [at for at in range(len(words)) if words[at : at + 3] == (ResultKind.ARRAY, id(f4), 24)]
    assert len(found) == 1 and words[found[0] + 3 : found[0] + 6] == (2, 2, 3)
    tail = words[-(2 + 6 + len(view) + 4) :]
    assert tail[:2] == (ReturnKind.ONE, 3)
    assert tail[2:8] == (PartKind.VIEW, 8, PartKind.RESULT, 1, PartKind.VIEW, 14)
    assert tail[8:] == (*view, -1, 8, 0, 0)


def test_names_are_found_in_cells_or_around() -> None:
    cell = (lambda: np).__closure__
    inner = (lambda n: lambda: n)(3)
    cells = dict(zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True))
    scope = Scope(cells, {"g": 1}, vars(builtins))
    words, kept = words_of(
        CallGuard((ValueSource.NAME, scope, "n")),
        CallGuard((ValueSource.NAME, scope, "g"), (Guard.SAME, MISSING)),
        CallGuard((ValueSource.ATTRIBUTE, 0, "a"), (Guard.EQUAL, 7)),
        CallGuard((ValueSource.ITEM, 2, 4)),
    )  # fmt: skip
    assert cell is None
    assert words[:3] == [ValueSource.CELL, id(cells["n"]), 0]
    assert words[6:9] == [ValueSource.NAME, id(scope.globals), id(scope.builtins)]
    assert words[10:13] == [Guard.SAME, 7, 0]
    assert words[13:15] == [ValueSource.ATTRIBUTE, 0] and words[17:20] == [Guard.EQUAL, 7, 7]
    assert words[20:22] == [ValueSource.ITEM, 2] and id(kept[-2]) == words[23]


def test_checks() -> None:
    value, dtype = object(), np.dtype("float32")
    wanted = [
        (Guard.SAME, value), (Guard.TYPE, list), (Guard.SIZED, tuple, 3), (Guard.FLOAT,),
        (Guard.NUMBER, np.int16), (Guard.ARRAY, dtype, (2, 3), (-4, 8), 0x500),
        (Guard.BITS, -0.0), (Guard.LISTED,), (Guard.SHARED, 4),
        (Guard.ARRAY, dtype, (), (), 0x400, np.recarray),
    ]  # fmt: skip
    words, kept = words_of(*(CallGuard((ValueSource.CONSTANT, value), check) for check in wanted))
    read = []
    assert words[:4] == [ValueSource.CONSTANT, 0, 0, id(value)]
    while words:
        read.append(words[4 : words[5]])
        words = words[words[5] :]
    assert read[0] == [Guard.SAME, 7, id(value)]
    assert read[1] == [Guard.TYPE, 7, id(list)]
    assert read[2] == [Guard.SIZED, 8, id(tuple), 3]
    assert read[3] == [Guard.FLOAT, 6]
    assert read[4] == [Guard.NUMBER, 8, id(np.int16), 2]
    head = [id(dtype), 2, 0x500, 0x500, -4, 20]
    assert read[5] == [Guard.ARRAY, 17, id(np.ndarray), *head, 2, 3, -4, 8]
    assert read[6] == [Guard.BITS, 7, -(2**63)]
    assert read[7] == [Guard.LISTED, 6] and read[8] == [Guard.SHARED, 7, 4]
    assert read[9] == [Guard.ARRAY, 13, id(np.recarray), id(dtype), 0, 0x500, 0x400, 0, 4]
    assert any(one is dtype for one in kept) and any(one is value for one in kept)


def test_an_array_is_made_of_a_list() -> None:
    make = np.asarray
    words, _ = words_of(
        CallGuard((ValueSource.ARGUMENT, "x"), (Guard.LISTED,)),
        CallGuard((ValueSource.MADE, 0, make)),
    )
    assert words[6:10] == [ValueSource.MADE, 0, 0, id(make)]


def test_one_that_is_too_long_is_no_plan() -> None:
    recipe = GuardProgram(
        [CallGuard((ValueSource.ARGUMENT, "x"))] * (VALUES + 1), [], [], [], [], ReturnKind.ONE, []
    )
    assert pack_guards(recipe, FORM, None, (1, 2), None, fail) is None
    results = [(ResultKind.ARRAY, np.dtype(float), (2,))]
    assert words_of(results=results, parts=[(PartKind.RESULT, 0)])[0] == []


@pytest.mark.usefixtures("short_way")
def test_views_of_results_go_the_short_way(long_ways: list[str]) -> None:
    body = """
    c, w = x * 2, x[0] * 1j
    return (c, c[1:], c.T, c[::-1, ::2], c[1:1], c.reshape(-1), c[:, None, 1], w[1:],
            np.broadcast_to(c[0], (2, 3)), c.sum())
    """
    text, x = f"def f(x):{body}", np.arange(6.0).reshape(2, 3)
    plain: dict[str, Any] = {"np": np}
    exec(text, plain)
    expected = plain["f"](x)
    for got in repeated(long_ways, lambda f=made(text): f(x)):
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert type(one) is type(other) and one.dtype == other.dtype
            if isinstance(other, np.ndarray) and other.size:
                assert one.strides == other.strides
                assert one.flags.writeable == other.flags.writeable
        got[1][:] = 7  # which all views see, and nobody else
        assert (got[2][:, 1] == 7).all() and got[1].base is got[0]
    (alone,) = {part.sum() for part in repeated(long_ways, lambda f=made(text): f(x)[1])}
    assert alone == expected[1].sum()
