"""What checks say: functions on a backend, what has to be the same, and what has to be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError

Array = np.ndarray[Any, Any]


def on(text: str, where: str = "cuda") -> Any:
    """Return a function on a backend."""
    return pe.cd_from_source(text, {"np": np}, backend=where)


def same(got: Any, want: Any, what: str = "it computes something else") -> None:
    """Raise AssertionError where two arrays differ."""
    got = np.asarray(got)
    assert got.shape == np.shape(want), f"{what}: the shape is {got.shape}"
    assert np.array_equal(got, want), f"{what}: {got!r}, not {want!r}"


def refused(code: str, call: Callable[..., Any], *given: Any) -> str:
    """Return the text of an error; raises AssertionError where there is no such one."""
    try:
        call(*given)
    except CdError as why:
        assert why.code == code, f"{why.code} instead of {code}: {why}"
        return str(why)
    raise AssertionError(f"{code} was not raised")
