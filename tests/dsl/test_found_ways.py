"""Random modules, one after the other in one cache: what is found does what would be compiled."""

from __future__ import annotations

import tempfile
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import plusequals as pe

from .test_both_ways import seen

pytestmark = pytest.mark.usefixtures("short_way")

TEXT = """
import numpy as np
from plusequals import cd, clamp
{above}
K = {constant}
TABLE = {table}
def deco(function):
    {deco}
def plain(function):
    return function
def helper(v, by={default}):
    {comment}
    return v * by {sign} K
@{decorator}
def outer(v):
    return helper(v) + {inner}
{name} = {value}
@cd
def f(x, n):
    {first}
    r = outer(x) * {number} + TABLE[1]
    {last}
"""
CHOICES = {
    "above": ("", "\n# more\n", "import math"),
    "constant": ("2.0", "2", "np.float32(2)", "-2.0"),
    "table": ("(1, 2.0)", "(1, 2)", "np.arange(3.0)", "np.arange(3)", "np.arange(6.0)[::2]"),
    "deco": ("return function", "return lambda v: function(v) * 2", "return lambda v: v"),
    "default": ("3.0", "3", "K", "None or 4"),
    "comment": ("pass", "# nothing", "'text'", "assert K"),
    "sign": ("+", "-"),
    "decorator": ("plain", "deco", "cd"),
    "inner": ("1", "abs(v)", "helper(v, by=K)"),
    "name": ("other", "abs", "np", "outer", "helper", "i", "exp"),
    "value": ("None", "3", "np", "helper", "lambda v, by=1: v"),
    "first": ("pass", "y = np.zeros(3)", "n = n + 1", "x = x[::-1]", "np = 3"),
    "number": ("1", "2", "n", "exp(0.5)", "np.pi"),
    "last": ("return r", "return r, n", "return np.sum(r)", "x[0] = 1.0\n    return x[n]",
             "q[i] = r[i] + r[clamp(i + 1)]\n    return q"),
}  # fmt: skip
ARGUMENTS = (
    (np.arange(3.0), 1), (np.arange(3.0), 7), (np.arange(3), 1), (np.arange(6.0)[::2], True),
    (np.arange(3, dtype=np.float32), np.int64(1)), (np.arange(3.0), 1.0), ([1.0, 2.0], 1),
)  # fmt: skip
WORLDS = st.fixed_dictionaries({key: st.sampled_from(CHOICES[key]) for key in CHOICES})
CHANGES = st.lists(
    st.sampled_from([(key, value) for key in CHOICES for value in CHOICES[key]]), max_size=5
)


@pytest.mark.filterwarnings("ignore")
@given(WORLDS, CHANGES, st.lists(st.sampled_from(range(len(ARGUMENTS))), min_size=1, max_size=2))
@hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_found_does_what_would_be_compiled(
    module: Callable[..., types.ModuleType], world: dict[str, str], changes: Any, calls: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        worlds = [world]
        for key, value in changes:
            worlds.append({**worlds[-1], key: value})
        for one in (*worlds, *reversed(worlds)):
            with pe.override(cache_dir=folder):
                found = outcomes(module, one, calls)
            with pe.override(cache=False):
                assert found == outcomes(module, one, calls), textwrap.dedent(TEXT).format(**one)


def outcomes(load: Callable[..., types.ModuleType], world: dict[str, str], calls: list[int]) -> Any:
    """What the calls of a new function return or raise, and what they leave in their arguments."""
    try:
        function = load(TEXT.format(**world)).f
    except Exception as problem:
        return type(problem), str(problem)
    results = []
    for call in calls * 2:
        array, number = ARGUMENTS[call]
        fresh = array.copy() if isinstance(array, np.ndarray) else array
        try:
            results.append((seen(function(fresh, number)), seen(fresh)))
        except pe.CdError as problem:
            results.append((type(problem), str(problem)))
    return results
