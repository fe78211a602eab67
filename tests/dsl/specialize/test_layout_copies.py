"""What may not be copied: what is written, seen in a view, or one with what is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe


def _turned(n: int) -> np.ndarray:
    return np.asfortranarray(np.arange(3.0 * n).reshape(n, 3))


@pytest.mark.parametrize(
    "body", ["    x += 1\n    return x.sum()", "    return x[1:]", "    return x.T, x * 2"]
)
def test_what_is_written_or_returned_in_part_has_code_for_each_layout(body: str) -> None:
    function = pe.cd_from_source(f"def f(x):\n{body}", backend="numpy")
    scope: dict[str, Any] = {}
    exec(f"def f(x):\n{body}", scope)
    for n in (2, 3, 4, 5, 6):
        x, plain = _turned(n), _turned(n)
        got, wanted = function(x), scope["f"](plain)
        pairs = zip(got, wanted, strict=True) if "," in body else [(got, wanted)]
        for mine, other in pairs:
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(x, plain)
        if "return x[1:]" in body:
            assert np.shares_memory(got, x)
        assert "copied" not in function.specialise(x).reason


def test_one_argument_is_copied_and_another_is_written() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[...] = x + y", backend="numpy")
    for n in (2, 3, 4, 5, 6):
        x, y = _turned(n), np.ones((n, 3))
        function(y, x)
        np.testing.assert_array_equal(y, x + 1)
    assert "`x` lay in memory" in function.specialise(y, x).reason


def test_the_array_that_is_written_is_given_twice() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[...] = x + y", backend="numpy")
    for n in (2, 3, 4, 5, 6):
        y = _turned(n)
        function(y, y)
        np.testing.assert_array_equal(y, 2 * _turned(n))


def test_what_is_returned_whole_is_what_was_given() -> None:
    function = pe.cd_from_source("def f(x):\n    return x", backend="numpy")
    for n in (2, 3, 4, 5, 6):
        x = _turned(n)
        assert function(x) is x


@pytest.mark.parametrize(
    ("body", "copied", "given"),
    [
        ("    return x * m.rate", True, True),
        ("    return x * [1, 2, 3][int(m.rate) - 2] if m.rate < 5 else x * m.rate", True, False),
        ("    for v in [*x]:\n        x = x + v * m.rate\n    return x", False, True),
        ("    x += m.rate\n    return x.sum()", False, True),
    ],
)
def test_copies_and_numbers_of_objects_close_on_their_own(
    backend: str, body: str, copied: bool, given: bool
) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f(m, x):\n{body}", scope)
    function = pe.cd_from_source(f"def f(m, x):\n{body}", backend=backend)
    found = []
    for n in (2, 3, 4, 5, 6):
        for _ in range(2):
            mine, plain = _turned(n), _turned(n)
            m = SimpleNamespace(rate=float(n))
            wanted = scope["f"](m, plain)
            np.testing.assert_allclose(function(m, mine), wanted)
            np.testing.assert_array_equal(mine, plain)
        found.append(function.specialise(m, mine).reason)
    assert ["copied to C order" in reason for reason in found[3:]] == [copied] * 2
    assert ["`m.rate` came with more" in reason for reason in found[3:]] == [given] * 2


@pytest.mark.parametrize("call", ["x.ravel(order='A')", "np.ascontiguousarray(x)[::2]"])
def test_where_it_matters_how_an_array_lies_there_is_no_copy(call: str) -> None:
    function = pe.cd_from_source(f"def f(x):\n    return {call} * 1\n", {"np": np}, backend="numpy")
    for n in (2, 3, 4, 5, 6):
        for x in (_turned(n), np.ascontiguousarray(_turned(n)), np.ones((n, 8))[:, ::2]):
            expected = x.ravel(order="A") if "ravel" in call else x[::2]
            np.testing.assert_array_equal(function(x), expected)
    assert "copied" not in function.specialise(_turned(9)).reason
