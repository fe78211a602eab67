"""Checked mode: integer division by zero raises, where it is reached and only there."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import settings
from plusequals.lowering.diagnostic import CdZeroDivisionError


def _divide(backend: str) -> pe.CdFunction:
    return pe.cd_from_source("def f(y, a, b):\n    y[i] = a[i] // b[i]", backend=backend)


def test_zero_is_the_answer_unless_checked(backend: str) -> None:
    y, a, b = np.ones(2, int), np.array([7, 8]), np.array([2, 0])
    _divide(backend)(y, a, b)
    assert y.tolist() == [3, 0]


def test_checked_division_raises_before_anything_is_written(backend: str) -> None:
    y, a, b = np.ones(2, int), np.array([7, 8]), np.array([2, 0])
    with settings.override(checked=True), pytest.raises(CdZeroDivisionError, match="CD0763"):
        _divide(backend)(y, a, b)
    assert y.tolist() == [1, 1]


def test_only_divisions_that_are_reached_count(backend: str) -> None:
    text = "def f(y, a, b):\n    y[i] = a[i] // b[i] if b[i] != 0 else -1"
    y = np.ones(2, int)
    with settings.override(checked=True):
        pe.cd_from_source(text, backend=backend)(y, np.array([7, 8]), np.array([2, 0]))
    assert y.tolist() == [3, -1]
