"""Run a line plain and compiled on given values, and compare types, bits and arguments."""

from __future__ import annotations

import cmath
import copy
import math
import warnings
from typing import Any

import numpy as np
import pytest

import plusequals as pe

SCOPE: dict[str, Any] = {"np": np, "math": math, "cmath": cmath}


def _text(body: str, count: int) -> str:
    lines = body.strip().split("\n")
    if not lines[-1].startswith("return"):
        lines[-1] = f"return {lines[-1]}"
    return f"def f({', '.join('abcd'[:count])}):\n" + "".join(f"    {line}\n" for line in lines)


def _run(body: str, values: tuple[Any, ...], is_compiled: bool) -> Any:
    text, scope = _text(body, len(values)), dict(SCOPE)
    exec(text, scope)
    function = pe.cd_from_source(text, globals=SCOPE) if is_compiled else scope["f"]
    with pe.override(backend="numpy"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*values)


def assert_as_plain(body: str, *values: Any) -> None:
    """Assert that a function of a, b, ... gives and leaves what Python and NumPy do.

    Floats may be 8 units in the last place apart, zeros have the same sign, types are the same.
    """
    plain, given = (copy.deepcopy(values) for _ in range(2))
    expected = _run(body, plain, is_compiled=False)
    _assert_equal(_run(body, given, is_compiled=True), expected, body)
    _assert_equal(given, plain, f"arguments of {body}")


def _assert_equal(got: Any, expected: Any, where: str) -> None:
    assert type(got) is type(expected), f"{where}: {got!r}, not {expected!r}"
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected), where
        for n, pair in enumerate(zip(got, expected, strict=True)):
            _assert_equal(*pair, f"{where}[{n}]")
        return
    one, other = np.asarray(got), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape), f"{where}: {got!r}, {expected!r}"
    if one.dtype.kind not in "fc":
        np.testing.assert_array_equal(one, other, err_msg=where)
        return
    rounding = 8 * float(np.finfo(one.dtype).eps)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(one), part(other), rtol=rounding, atol=0, err_msg=where)
        signed = ~np.isnan(part(other))
        signs = (np.signbit(part(side))[signed] for side in (one, other))
        np.testing.assert_array_equal(*signs, err_msg=f"{where}: {got!r}, not {expected!r}")


def assert_refused(code: str, body: str, *values: Any) -> None:
    """Assert that Python raises for a function of a, b, ..., and compiled it raises the class."""
    with pytest.raises((ValueError, TypeError, OverflowError, AttributeError)) as plain:
        _run(body, copy.deepcopy(values), is_compiled=False)
    with pytest.raises(pe.CdError, match=code) as refused:
        _run(body, copy.deepcopy(values), is_compiled=True)
    known = (OverflowError, ValueError, TypeError, AttributeError)
    raised = next(kind for kind in known if isinstance(plain.value, kind))
    assert isinstance(refused.value, raised), f"{refused.value!r}, not {plain.value!r}"
