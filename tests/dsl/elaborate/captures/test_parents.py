"""`super()` gives what the classes above have, as Python finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError


class Base:
    offset = 3.0

    def scale(self, v: Any) -> Any:
        return v * 2.0

    @staticmethod
    def less(v: Any) -> Any:
        return v - 1.0

    @property
    def size(self) -> int:
        return 1


class Middle(Base):
    def __init__(self) -> None:
        self.by = 4.0

    def scale(self, v: Any) -> Any:
        return super().scale(v) + self.by


class Derived(Middle):
    def scale(self, v: Any) -> Any:
        return super().scale(v) + super().offset + super().less(v)

    @pe.cd(backend="numpy")
    def run(self, x: Any) -> Any:
        return self.scale(x) + super(Middle, self).scale(x)

    @pe.cd(backend="numpy")
    def wrong(self, x: Any) -> Any:
        return x * super().size


def test_functions_and_constants_of_the_classes_above() -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(Derived().run(x), (x * 2 + 4 + 3 + x - 1) + x * 2)


def test_what_super_does_not_give_is_named() -> None:
    with pytest.raises(CdError, match=r"`super\(\)\.size`"):
        Derived().wrong(np.ones(2))
    with pytest.raises(CdError, match="`super` stands in a method"):
        pe.cd_from_source("def f(x):\n    return super().scale(x)\n", {}, backend="numpy")(1.0)


class First:
    by = 2.0

    def scale(self, v: Any) -> Any:
        return v * 2.0


class Between(First):
    pass


class Second(Between):
    def scale(self, v: Any) -> Any:
        return super().scale(v) * super().by


@pe.cd
def scaled(owner: Any, x: Any) -> Any:
    return owner.scale(x)


def test_a_class_above_that_was_changed_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, x = Second(), np.arange(3.0)
    np.testing.assert_array_equal(scaled(owner, x), x * 4)
    np.testing.assert_array_equal(scaled(owner, x), x * 4)
    monkeypatch.setattr(First, "scale", lambda self, v: v * 5.0)
    np.testing.assert_array_equal(scaled(owner, x), x * 10)
    monkeypatch.setattr(First, "by", 3.0)
    np.testing.assert_array_equal(scaled(owner, x), x * 15)
    monkeypatch.setattr(Between, "scale", lambda self, v: v * 7.0, raising=False)
    np.testing.assert_array_equal(scaled(owner, x), x * 21)
