"""Which objects are known by their type."""

from __future__ import annotations

import enum
import functools
import types
from typing import NamedTuple

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.elaborate.captures.instances import (
    fields_of,
    is_instance,
    is_method,
    runs_source,
)
from plusequals.dsl.source.function_source import MISSING


class Plain:
    def step(self) -> int:
        return 1

    @cd
    def compiled(self, x):
        return x


class Callable(Plain):
    def __call__(self) -> int:
        return 2


class Inherits(Callable):
    pass


class Mode(enum.Enum):
    FAST = 1


@pytest.mark.parametrize(
    "value", [Plain(), Callable(), Inherits(), {"a": 1}, types.SimpleNamespace(a=1)], ids=type
)
def test_another_instance_is_as_good(value: object) -> None:
    assert is_instance(value)


@pytest.mark.parametrize(
    "value",
    [
        Plain, np, np.sin, len, Plain.step, Plain().step, Plain().compiled, Mode.FAST,
        object(), MISSING, functools.partial(len, ()), cd(lambda x: x), pe,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_another_one_is_not(value: object) -> None:
    assert not is_instance(value)


def test_what_is_called_by_a_function_of_its_class() -> None:
    assert runs_source(Callable()) and runs_source(Inherits()) and not runs_source(Plain())


def test_methods() -> None:
    assert is_method(Plain().step) and is_method(Plain().compiled)
    assert not is_method(Plain.step) and not is_method(functools.partial(len, ()))


def test_fields_of_a_named_tuple_are_its_items_unless_a_class_says_otherwise() -> None:
    class Point(NamedTuple):
        x: float
        y: float

    class Other(Point):
        x = property(lambda self: 77.0)

    class Same(Point):
        pass

    assert [fields_of(t(1, 2)) for t in (Point, Same, Other)] == [("x", "y"), ("x", "y"), ()]
    assert fields_of([1]) == fields_of((1,)) == ()
