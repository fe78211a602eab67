"""Run a line of NumPy plain and compiled, on inputs of every element type, and compare."""

from __future__ import annotations

import ast
import copy
import math
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same

SCOPE: dict[str, Any] = {"np": np, "math": math}


def _inputs() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    m = rng.standard_normal((4, 4))
    return {
        "x": rng.standard_normal((3, 4)),
        "y": rng.standard_normal((3, 4)).astype("f4"),
        "v": rng.standard_normal(4),
        "w": rng.standard_normal(5).astype("f4"),
        "i": rng.integers(-5, 6, (3, 4)),
        "k": rng.integers(1, 5, (3, 4)).astype("i1"),
        "u": rng.integers(0, 250, 4).astype("u1"),
        "b": rng.random((3, 4)) > 0.5,
        "b1": rng.random(4) > 0.5,
        "h": rng.standard_normal((3, 4)).astype("f2"),
        "z": rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)),
        "zf": (rng.standard_normal(4) + 1j).astype("c8"),
        "m": m,
        "spd": m @ m.T + 4 * np.eye(4),
        "t": rng.standard_normal((2, 3, 4)),
        "q": rng.standard_normal((2, 4, 3)),
        "p": np.abs(rng.standard_normal(6)) + 0.1,
        "nn": np.array([1.0, np.nan, -2.0, np.nan, 5.0]),
        "idx": np.array([2, 0, 1, 3]),
        "n": 5,
        "s": 2.5,
    }


INPUTS = _inputs()
_ROUNDING = {1: 2e-3, 2: 2e-3, 4: 2e-5}
"""How far results may be apart, by the size of the smallest element among the inputs."""


def _function(body: str) -> tuple[str, list[str]]:
    """Return the text of a function that returns the last line of a body, and its inputs."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    names = [name for name in INPUTS if name in used]
    lines = body.strip().split("\n")
    if not lines[-1].startswith("return"):
        lines[-1] = f"return {lines[-1]}"
    return f"def f({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines), names


def _rounding(body: str, names: list[str]) -> float:
    sizes = [np.asarray(INPUTS[name]).dtype.itemsize for name in names if np.ndim(INPUTS[name])]
    found = [_ROUNDING.get(size, 1e-11) for size in sizes]
    single = "zf" in names or "float32" in body
    return max([*found, 2e-5 if single else 1e-11])


def compiled(body: str, *args: Any) -> Any:
    """Return what a function of that body returns, compiled, for its inputs (or those given)."""
    text, names = _function(body)
    with pe.override(backend="numpy"), np.errstate(all="ignore"):
        given = args or copy.deepcopy([INPUTS[name] for name in names])
        return pe.cd_from_source(text, globals=SCOPE)(*given)


def assert_same_as_numpy(body: str) -> None:
    """Assert that a function of that body gives NumPy's results, types, shapes and writes."""
    text, names = _function(body)
    scope = dict(SCOPE)
    exec(text, scope)
    plain, given = (copy.deepcopy([INPUTS[name] for name in names]) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = scope["f"](*plain)
    got = compiled(body, *given)
    rounding = _rounding(body, names)
    assert_same(got, expected, rounding)
    assert_same(given, plain, rounding, "arguments")


def assert_refused_as_by_numpy(body: str, code: str, message: str) -> None:
    """Assert that NumPy raises for a function of that body, and compiled it raises the same class.

    `code` is that of the error, and `message` a part of its text; of the errors of an axis, which
    are of two classes in NumPy, either one.
    """
    text, names = _function(body)
    scope = dict(SCOPE)
    exec(text, scope)
    with np.errstate(all="ignore"), pytest.raises(Exception) as plain:
        scope["f"](*copy.deepcopy([INPUTS[name] for name in names]))
    known = (ValueError, IndexError, TypeError, OverflowError)
    expected = tuple(each for each in known if isinstance(plain.value, each))
    assert expected, f"NumPy raises {plain.value!r}"
    with pytest.raises(pe.CdError) as refused:
        compiled(body)
    assert isinstance(refused.value, expected), f"{refused.value!r}, not {plain.value!r}"
    assert f"error[{code}]: " in str(refused.value)
    assert message in str(refused.value)
