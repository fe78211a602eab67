"""Classes that are made faster: what they do is what the library's do."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import math
import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import field
from types import FrameType
from typing import Any

import pytest

from plusequals.base import dataclass as quick

NAN = math.nan


def point(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        name: str = field(default="p", compare=False)
        tags: list[int] = field(default_factory=list, repr=False, compare=False)
        depth: int = field(default=0, kw_only=True)

    return Point


def one(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class One:
        value: object

    return One


def none(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    return Nothing


def mutable(dataclass: Any) -> Any:
    @dataclass(slots=True)
    class Mutable:
        x: int
        y: list[int] = field(default_factory=list)

    return Mutable


def open_(dataclass: Any) -> Any:
    @dataclass(frozen=True)
    class Open:
        x: int = 3

    return Open


def own(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    return Own


def derived(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Base:
        x: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        y: int = 2

    return Derived


def apart(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True, eq=False)
    class Apart:
        x: int

    return Apart


def posted(dataclass: Any) -> Any:
    @dataclass(slots=True)
    class Posted:
        x: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            self.twice = 2 * self.x

    return Posted


def held(dataclass: Any) -> Any:
    @dataclass(slots=True)
    class Above:
        x: int = 1

    @dataclass(eq=False)
    class Held(Above):
        """One that has a dictionary, and a field that is made."""

        made: list[int] = field(default_factory=list)
        y: int = field(default=2)

    return Held


def named(dataclass: Any) -> Any:
    @dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
    class Named:
        x: int = 1
        y: int = 2

    return Named


MAKE = [
    (point, [(1,), (1, "q"), (1, "q", [2]), (2,)], [{}, {"depth": 3}]),
    (one, [(1,), (NAN,), (float("nan"),), ((1, 2),)], [{}]),
    (none, [()], [{}]),
    (mutable, [(1,), (1, [2]), (2, [])], [{}]),
    (open_, [(), (3,), (4,)], [{}]),
    (own, [(1,), (2,)], [{}]),
    (derived, [(1,), (1, 2), (2, 1)], [{}]),
    (apart, [(1,), (1,)], [{}]),
    (posted, [(1,), (2,)], [{}]),
    (held, [(1,), (1,)], [{}, {"y": 3}]),
    (named, [()], [{}, {"x": 3}, {"y": 3}]),
]
Make = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("make", "args", "keywords"), MAKE, ids=lambda x: getattr(x, "__name__", "")
)
def test_it_is_what_the_library_makes(make: Make, args: list[Any], keywords: list[Any]) -> None:
    ours, theirs = make(quick.dataclass), make(dataclasses.dataclass)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__doc__ in (theirs.__doc__, ours.__name__)
    assert [f.name for f in dataclasses.fields(ours)] == [
        f.name for f in dataclasses.fields(theirs)
    ]
    some = [(ours(*a, **k), theirs(*a, **k)) for a in args for k in keywords]
    for one, other in some:
        if make not in (apart, held):
            assert repr(one) == repr(other)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert hasattr(one, "__dict__") == hasattr(other, "__dict__")
        assert (type(one).__hash__ is None) == (type(other).__hash__ is None)
        for two, another in some:
            assert (one == two) == (other == another)
            if type(one).__hash__ is not None and one == two and make not in (apart, held, own):
                assert hash(one) == hash(two)


@pytest.mark.parametrize(
    ("make", "args", "keywords"), MAKE, ids=lambda x: getattr(x, "__name__", "")
)
def test_the_first_object_is_as_the_others(
    make: Make, args: list[Any], keywords: list[Any]
) -> None:
    for a, k in ((a, k) for a in args for k in keywords):
        made, theirs = make(quick.dataclass), make(dataclasses.dataclass)
        found = [dataclasses.asdict(one) for one in (made(*a, **k), made(*a, **k), theirs(*a, **k))]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("args", "keywords"), [((), {}), ((1, "q", [], 4), {}), ((1,), {"x": 1}), ((1,), {"z": 2})]
)
def test_the_first_object_takes_what_the_others_take(args: Any, keywords: Any) -> None:
    made, said = point(quick.dataclass), []
    for _ in range(2):
        with pytest.raises(TypeError) as caught:
            made(*args, **keywords)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_first_object_may_have_a_field_of_any_name() -> None:
    @quick.dataclass
    class Words:
        self_: int
        one: int
        declared: int = 0

    assert dataclasses.astuple(Words(self_=1, one=2)) == (1, 2, 0)


def test_a_method_of_a_class_above_is_called_as_its_own() -> None:
    base = mutable(quick.dataclass)

    class Below(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(5)

    assert (Below().x, base(6).x, Below().y) == (5, 6, [])
    assert dataclasses.asdict(Below()) == {"x": 5, "y": []}


def test_what_is_made_later_is_made_once() -> None:
    made = named(quick.dataclass)
    assert weakref.ref(kept := made())() is kept
    assert made.__dataclass_fields__ is made.__dataclass_fields__
    assert made.__init__ is made.__init__


def test_nothing_of_it_can_be_set() -> None:
    made = point(quick.dataclass)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del made.x
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional"):
        point(quick.dataclass)()
    assert dataclasses.replace(made, x=5).x == 5
    assert made.tags is not point(quick.dataclass)(1).tags


@quick.dataclass(frozen=True, slots=True)
class Kept:
    """Pickled by its name."""

    x: int
    y: tuple[int, ...] = ()


def test_it_is_copied_and_pickled() -> None:
    made = Kept(1, (2, 3))
    kept = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert kept == copy.copy(made) == copy.deepcopy(made) == made
    assert repr(made) == "Kept(x=1, y=(2, 3))"


def test_what_contains_itself_is_shown() -> None:
    held: list[object] = []
    made = one(quick.dataclass)(held)
    held.append(made)
    assert "value=[...]" in repr(made)


class Interrupted(BaseException):
    """What comes while a member is made."""


def _interrupted_at(number: int) -> bool:
    """Use a new class, interrupted at one of its calls; return whether it had so many."""

    @quick.dataclass(frozen=True, slots=True)
    class Sample:
        first: int
        second: int = 2

    left = number

    def interrupt(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event == "call"
        if left == 0:
            sys.setprofile(None)
            raise Interrupted

    came, collects = False, gc.isenabled()
    gc.disable()  # a call of its is none of the class's
    sys.setprofile(interrupt)
    try:
        dataclasses.replace(Sample(1), second=3)
    except Interrupted:
        came = True
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    assert dataclasses.replace(Sample(1), second=3) == Sample(1, 3)
    assert [field.name for field in dataclasses.fields(Sample)] == ["first", "second"]
    return came


def test_an_interrupt_while_a_member_is_made_comes_as_it_is() -> None:
    """At each call of it: the interrupt is raised itself, and the class works after it."""
    number = 1
    while _interrupted_at(number):
        number += 1
    assert number > 20
