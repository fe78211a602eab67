"""Private names of classes are those that Python makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


class _Scaled:
    """Private attributes, parameters and locals, in methods and in what stands inside of them."""

    def __init__(self, scale: float) -> None:
        self.__scale = scale

    @cd
    def times(self, __x):
        __y = __x * self.__scale
        return __y + self.__dict__["_Scaled__scale"]

    def inside(self):
        __more = 2.0

        @cd
        def function(x):
            def __twice(v):
                return v * __more

            return __twice(x) * self.__scale

        return function

    @cd
    def unknown(self, x):
        return x * self.__scales


class ___:
    """Nothing is left of this name to stand in front of others."""

    @cd
    def plain(self, __x):
        return __x * 2.0


def test_names_of_methods(backend: str) -> None:
    x = np.arange(3.0)
    with pe.override(backend):
        assert _Scaled(3.0).times(x).tolist() == [3.0, 6.0, 9.0]
        assert _Scaled(3.0).inside()(x).tolist() == [0.0, 6.0, 12.0]
        assert ___().plain(x).tolist() == [0.0, 2.0, 4.0]


def test_an_error_is_where_the_name_was_written() -> None:
    with pytest.raises(pe.CdError, match=r"no attribute `_Scaled__scales`") as caught:
        _Scaled(3.0).unknown(np.ones(3))
    assert "return x * self.__scales" in str(caught.value)
    assert "did you mean `_Scaled__scale`?" in str(caught.value)
