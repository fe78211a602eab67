"""Objects of a user's classes that a function makes, and attributes of members and texts."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

FACTOR = 2.0


@dataclass(frozen=True)
class Rate:
    value: float
    unit = 3.0

    def scaled(self, x: Any) -> Any:
        return self.value * x * FACTOR

    @property
    def doubled(self) -> float:
        return self.value * FACTOR


@dataclass
class Counter:
    count: float

    def step(self) -> float:
        self.count = self.count + 1
        return self.count


class Mode(enum.Enum):
    A = 1
    B = 2

    @property
    def factor(self) -> float:
        return FACTOR


class Text(enum.StrEnum):
    A = "a"

    @property
    def factor(self) -> float:
        return FACTOR


class Level(enum.IntEnum):
    A = 1

    @property
    def factor(self) -> float:
        return FACTOR


class Marks(enum.Flag):
    A = 1
    B = 2

    @property
    def factor(self) -> float:
        return FACTOR


class Odd(enum.Flag):
    A = 1
    B = 2

    def __bool__(self) -> bool:
        return FACTOR == 2.0


class Missing(enum.Enum):
    A = 1
    B = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.A if FACTOR == 2.0 else cls.B


class Tagged(str):
    tag: float


def of_property(x: Any) -> Any:
    return Rate(2.0).doubled * x


def of_method(x: Any) -> Any:
    return Rate(2.0).scaled(x)


def of_class(x: Any) -> Any:
    return Rate(2.0).unit * x


def of_member(x: Any) -> Any:
    return Mode(1).factor * x, Mode(1) is Mode.A, Mode(2).value * x


def of_text(x: Any) -> Any:
    return Text("a").factor * x, Text.A.factor * x, Text.A.value == "a"


def of_level(x: Any) -> Any:
    return Level.A.factor * x


def of_flags(x: Any) -> Any:
    return (Marks.A | Marks.B).factor * x, (Marks.A | Marks.B).value


@pytest.mark.parametrize(
    "function", [of_property, of_method, of_class, of_member, of_text, of_level, of_flags]
)
def test_attributes_of_made_objects_are_looked_up_in_every_call(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, x = cd(function), np.arange(3.0)
    for factor in (2.0, 5.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        monkeypatch.setattr(Rate, "unit", factor)
        got, wanted = compiled(x), function(x)
        got, wanted = (v if isinstance(v, tuple) else (v,) for v in (got, wanted))
        assert [type(v) for v in got] == [type(v) for v in wanted]
        assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))


def adds(x: Any) -> Any:
    counter = Counter(1.0)
    counter.count = counter.count + 1
    return counter.count * x


def steps(x: Any) -> Any:
    return Counter(1.0).step() * x


def returns(x: Any) -> Any:
    return Counter(1.0)


def asks_flags(x: Any) -> Any:
    return x if Odd.A & Odd.B else -x


def asks_member(x: Any) -> Any:
    return x if Odd.A else -x


def finds_missing(x: Any) -> Any:
    return Missing(7).value * x


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (adds, "CD0418"), (steps, "CD0418"), (returns, "CD0434"), (asks_flags, "CD0408"),
        (asks_member, "CD0408"), (finds_missing, "CD0427"),
    ],
)  # fmt: skip
def test_what_code_of_the_user_decides_is_refused(function: Any, code: str) -> None:
    with pytest.raises(pe.CdError) as caught:
        cd(function)(np.arange(3.0))
    assert caught.value.code == code


def test_attributes_of_texts_of_a_user_class_are_refused() -> None:
    """Equal texts may have other attributes."""

    @cd
    def f(x: Any, text: Any) -> Any:
        return x * text.tag

    text = Tagged("a")
    text.tag = 2.0
    with pytest.raises(pe.CdError) as caught:
        f(np.ones(2), text)
    assert caught.value.code == "CD0414"


@pytest.mark.parametrize("name", ["__eq__", "__bool__", "__len__", "__getitem__"])
def test_texts_with_operators_of_their_own_are_refused(name: str) -> None:
    kind = type("Own", (str,), {name: lambda self, *args: True, "__hash__": str.__hash__})

    @cd
    def f(x: Any, text: Any) -> Any:
        return x * 2 if text == "b" else x

    with pytest.raises(pe.CdError) as caught:
        f(np.ones(2), kind("a"))
    assert caught.value.code == "CD0701"
