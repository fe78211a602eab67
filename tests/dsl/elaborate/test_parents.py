"""`super()`: functions and constants of the classes above, as Python finds them."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals import cd
from plusequals.lowering.diagnostic import CdNameError, CdTypeError


class Base:
    factor = 3

    def scale(self, v):
        return v * 2

    @staticmethod
    def shifted(v):
        return v + 1


class Middle(Base):
    def scale(self, v):
        return super().scale(v) + 10


class Derived(Middle):
    factor = 5

    def scale(self, v):
        return super().scale(v) + 1

    @cd
    def run(self, x):
        return self.scale(x)

    @cd
    def behind(self, x):
        return super(Middle, self).scale(x) * super().factor + super().shifted(x)

    @cd
    def missing(self, x):
        return super().scales(x)


def test_each_class_asks_the_one_above_it() -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(Derived().run(x), x * 2 + 11)


def test_a_class_that_is_named_is_asked_and_constants_are_read() -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(Derived().behind(x), x * 2 * 3 + x + 1)


def test_what_no_class_above_has_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(CdNameError, match="did you mean `scale`"):
        Derived().missing(np.ones(2))


def test_outside_of_a_method_there_is_no_class_above() -> None:
    def alone(x):
        return super().scale(x)

    with pytest.raises(CdTypeError, match="super"):
        cd(alone)(np.ones(2))
