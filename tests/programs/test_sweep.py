"""Expressions of NumPy's functions: a few of all, and those that once gave something else."""

from __future__ import annotations

import pytest

from .check import check_all
from .numpy_expressions import EXPRESSIONS
from .sweep import SHAPES, TYPES, main, program_of, programs
from .ways import Ways

FOUND = {
    "np.nan_to_num(a)": "int8 bool", "np.nan_to_num(a, copy=False)": "float32 int16 complex64",
    "np.nan_to_num(a, nan=2, posinf=3, neginf=-3)": "float64", "np.clip(a, None, None)": "int32",
    "a.astype(np.float32, casting='equiv')": "float16 float32",
    "a.astype(np.float64, casting='safe')": "int8 complex64",
    "a.astype(np.int32).astype(np.float64)": "float64", "l == u": "bool", "u > l": "bool",
    "u >= 2**63": "bool", "u == 2**64 - 1": "bool", "l < 2**70": "bool",
    "a ** 0.5": "uint8 int16 bool", "a ** -1.0": "uint8", "np.cov(v, w)": "float16",
    "np.corrcoef(a)": "float32", "np.vdot(v, w)": "bool", "np.vecdot(a, b)": "bool",
    "np.r_[v, 1]": "uint8", "np.r_[v, 1.5]": "float32", "np.average(v, weights=h)": "uint8",
    "np.average(v, weights=d - d)": "float64", "np.pad(v, (1, 2), constant_values=(4, 6))": "int8",
    "np.pad(a, 1, constant_values=((1, 2), (3, 4)))": "float64", "np.nanmax(a)": "complex64",
    "np.take(v, -1)": "int64", "np.arange(x, 3.0, 0.3)": "bool", "round(x, 1)": "bool",
    "np.digitize(d, r[::-1])": "float64", "np.digitize(d, w)": "float64",
    "np.histogram(d, [3, 1, 2])": "float64", "np.interp(d, r, 1 / d)": "float64",
    "np.interp(d, r, v)": "complex128", "np.interp(v, r, d)": "complex64",
    "np.round(a, 1)": "bool",
}  # fmt: skip
"""By the types of the arrays that differed."""


def test_what_once_differed_is_as_numpy_has_it_or_refused() -> None:
    chosen = [
        program_of(expression, dtype, (3, 4), seed)
        for expression, types in FOUND.items()
        for dtype in types.split()
        for seed in (1, 2)
    ]
    ways = Ways(profile="default", optimize=2, schedule=True, c=False)
    findings = [str(case.finding) for case in check_all(chosen, ways) if case.finding]
    assert not findings, "\n".join(findings)


def test_a_few_of_all() -> None:
    assert main(["--programs", "20", "--seed", "4"]) == 0


def test_each_is_there_for_each_type_and_shape() -> None:
    made = programs(1, TYPES, SHAPES["small"])
    assert len(made) == len(EXPRESSIONS) * len(TYPES) * len(SHAPES["small"])
    assert len({(one.text, one.args[0]) for one in made}) > len(EXPRESSIONS) * len(TYPES)


def test_what_differs_from_numpy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "tests.programs.check.plain"
    monkeypatch.setattr(other, lambda text, names: lambda **given: given["a"] + 1)
    (case,) = check_all([program_of("a", "int64", (3, 4), 1)], Ways(c=False))
    assert case.finding is not None and case.finding.check == "plain"
