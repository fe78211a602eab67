"""Returns and raises in the middle of the sides of an `if`: on every path what Python gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import plusequals as pe


def a_number(x):
    if x[1] < 0:
        if x[2] > 0:
            return 7.0
        raise KeyError("r")
    return x[0]


def an_array(x):
    if x[1] < 0:
        if x[2] > 0:
            return x * 2
        raise KeyError("r")
    return x + 1


def mirrored(x):
    if x[1] >= 0:
        return x[0]
    else:
        if x[2] > 0:
            return 7.0
        raise KeyError("r")


def after_a_for(x):
    if x[1] < 0:
        for k in range(3):
            if x[k] > 2:
                return x[k]
        raise KeyError("r")
    return x[0]


def after_a_while(x):
    if x[1] < 0:
        k = 0
        while True:
            if x[k] > 2:
                return x[k]
            k += 1
            if k == 3:
                break
        raise KeyError("r")
    return x[0]


def a_chain(x):
    if x[0] < 0:
        if x[1] > 0:
            return 1.0
        raise KeyError("a")
    elif x[1] < 0:
        if x[2] > 0:
            return 3.0
        raise ValueError("b")
    return 5.0


def called(a, b):
    if a < 0:
        if b > 2:
            return a * 2
        raise KeyError("z")
    return b * 2


def of_a_called_function(x):
    y = np.zeros(2)
    y[0] = called(x[0], 3.0)
    y[1] = called(x[1], 1.0)
    return y.sum()


def in_a_loop(x):
    for k in range(3):
        if x[k] < 0:
            if x[2] > 0:
                return k + 10.0
            raise KeyError("q")
        if x[k] > 3:
            if x[1] > 0:
                return k + 20.0
            break
    return -1.0


def both_sides(x):
    s = 0.0
    if x[1] < 0:
        s = 5.0
        if x[2] > 0:
            return s
        s = 6.0
        raise KeyError("r")
    else:
        s = 7.0
        if x[0] > 0:
            return s + 1
        raise ValueError("n")


def twice_inside(x):
    t = 1.0
    if x[0] < 0:
        t = 2.0
        if x[1] < 0:
            if x[2] < 0:
                return t
            raise KeyError("q")
        t = 3.0
    return t


def goes_on(x):
    t = 1.0
    if x[0] < 0:
        t = 2.0
        if x[1] < 0:
            return t
        t = 3.0
    return t


def deep(x):
    t = 1.0
    if x[0] < 0:
        if x[1] < 0:
            if x[2] < 0:
                return 5.0
            raise KeyError("q")
    return t


def deep_chain(x):
    t = 1.0
    if x[0] < 0:
        if x[1] < 0:
            if x[2] < 0:
                return 5.0
            elif x[2] > 2:
                raise ValueError("z")
            else:
                raise KeyError("q")
        else:
            t = 2.0
    return t


def a_raise_inside(x):
    if x[0] < 0:
        if x[1] < 0:
            raise KeyError("q")
        t = 3.0
    else:
        t = 4.0
    if x[2] > 0:
        return t
    return -t


def two_raises(x):
    if x[0] < 0:
        if x[1] < 0:
            raise KeyError("a")
        else:
            raise ValueError("b")
    return x[2]


def returns_and_a_raise(x):
    if x[0] < 0:
        if x[1] < 0:
            return 3.0
        elif x[2] > 0:
            raise ValueError("b")
        else:
            return 4.0
    return x[2]


def three_in_a_row(x):
    s = 0.0
    if x[0] < 0:
        if x[1] < 0:
            return 3.0
        s += 1
    if x[1] > 0:
        if x[2] < 0:
            return s
        s += 2
    if x[2] > 0:
        s += 4
        if x[0] > 0:
            return s * 2
    return s


def behind_a_loop(x):
    for k in range(3):
        if x[k] < 0:
            if x[2] > 2:
                return 9.0
            x[k] = 1.0
        x[k] += 1
    if x[0] > 2:
        if x[1] > 2:
            return x[0]
        x[0] = -1
    return x.sum()


def a_while_that_raises(x):
    if x[0] < 0:
        while x[1] < 3:
            if x[2] < 0:
                return 1.0
            x[1] += 1
        raise KeyError("k")
    return x[0]


FUNCTIONS = [
    value
    for name, value in list(vars().items())
    if isinstance(value, FunctionType) and value.__module__ == __name__ and name != "called"
]


def _outcome(function: Callable[..., Any], values: tuple[float, ...]) -> object:
    """Return what a call gives, as text, or the class of what it raises."""
    try:
        return repr(np.asarray(function(np.array(values))).tolist())
    except (KeyError, ValueError) as error:
        return KeyError if isinstance(error, KeyError) else ValueError


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_path_gives_what_python_gives(function: Callable[..., Any], backend: str) -> None:
    compiled = pe.cd(function).on(backend)
    for values in itertools.product((-1.0, 1.0, 4.0), repeat=3):
        assert _outcome(compiled, values) == _outcome(function, values), values
