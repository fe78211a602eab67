"""Every case of array notation gives what NumPy makes of the same text, on every backend."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ..compare import assert_same, run_on
from . import array_notation, array_shapes
from .array_case import INPUTS, Case

CASES = array_notation.CASES + array_shapes.CASES


def _expected(case: Case) -> tuple[Any, tuple[Any, ...]]:
    """Return what plain NumPy returns for the case, and what it leaves in the arguments."""
    args = case.make()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.plain()(*args), args


def _rtol(*values: Any) -> float:
    """Return the tolerance for the least precise floating type among the values."""
    flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    dtypes = {np.asarray(value).dtype for value in flat}
    if np.dtype(np.float16) in dtypes:
        return 2e-3
    return 1e-5 if dtypes & {np.dtype(np.float32), np.dtype(np.complex64)} else 1e-9


def test_there_are_many_different_cases() -> None:
    assert len(CASES) >= 250
    assert len({case.line for case in CASES}) == len(CASES)
    assert {name for case in CASES for name in case.names} == set(INPUTS)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_plain_numpy_takes_the_case(case: Case) -> None:
    result, args = _expected(case)
    before = case.make()
    changed = any(
        not np.array_equal(old, new, equal_nan=np.asarray(old).dtype.kind in "fc")
        for old, new in zip(before, args)
    )
    assert result is not None or changed or "empty" in case.line or "[5:2]" in case.line


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_case_agrees_with_numpy(case: Case, backend: str) -> None:
    expected, left = _expected(case)
    args = case.make()
    got = run_on(backend, pe.cd_from_source(case.text, {"np": np}), *args)
    rtol = _rtol(expected, *left)
    assert_same(got, expected, rtol)
    assert_same(args, left, rtol, "arguments")
