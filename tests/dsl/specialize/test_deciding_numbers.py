"""Integers that decide sizes, positions or statistics: three values, then code for any value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plusequals as pe

X = np.cos(np.arange(24.0)) * 9
SQUARE = X[:16].reshape(4, 4)
SMALL = (2, 1, 3, 5, 4, 0, 7, 6)
SIGNED = (2, 1, 3, -2, 5, 0, -1, 4)
PARTS = (2, 1, 3, 6, 4, 8, 12, 24)

RUN_TIME: dict[str, tuple[str, np.ndarray, tuple[int, ...]]] = {
    "slice": ("x[n:n + 3] * 2", X, SIGNED),
    "zeros": ("np.zeros((n, 2)) + x[0]", X, SMALL),
    "eye": ("np.eye(4, k=n) + x[0]", X, SIGNED),
    "tri": ("np.triu(x, n)", SQUARE, SIGNED),
    "diagonal matrix": ("np.diag(x[:3], n)", X, SIGNED),
    "steps of a range": ("np.arange(1, 20, n) + x[0]", X, (2, 1, 3, 5, -4, 30, -1, 4)),
    "steps down": ("np.arange(20, 1, n) * x[0]", X, (-2, -1, -3, 5, -4, 30, -30, -7)),
    "float steps": ("np.arange(1, 20, n, dtype=np.float32) * x[0]", X, (2, 1, 3, 5, -4, 30, 6, 4)),
    "ends and steps": ("np.arange(n, 20, n) + x[0]", X, (2, 1, 3, 5, -4, 30, -1, 4)),
    "linspace": ("np.linspace(0, 1, n) + x[0]", X, SMALL),
    "rows": ("x.reshape(n, -1) * 2", X, PARTS),
    "rows of a size": ("x[:n * 2].reshape(n, 2) * 2", X, (2, 1, 3, 5, 4, 7, 6)),
    "columns of a size": ("x[:max(n, 1) * 4].reshape(4, n) * 2", X, (2, 1, 3, -1, 5, 6)),
    "columns in Fortran's order": ("x[:n * 3].reshape((3, n), order='F') + 1", X, (2, 1, 3, 5, 4)),
    "roll": ("np.roll(x, n)", X, SIGNED),
    "repeat": ("np.repeat(x, n)", X, SMALL),
    "tile": ("np.tile(x, (n, 2))", X, SMALL),
    "pad": ("np.pad(x, (n, 1))", X, SMALL),
    "kron": ("np.kron(np.ones(n), x)", X, (2, 1, 3, 5, 4, 7, 6)),
    "var": ("x.var(ddof=n)", X, (1, 0, 2, 3, 24, 30, -1, 5)),
    "std of rows": ("np.std(x, axis=1, ddof=n)", SQUARE, (1, 0, 2, 3, 4, 6, -1, 5)),
    "correction": ("np.var(x, correction=n)", X, (1, 0, 2, 3, 24, 30, -1, 5)),
    "nanvar": ("np.nanvar(x, axis=0, ddof=n)", SQUARE, (1, 0, 2, 3, 4, 6, -1, 5)),
    "var under a mask": ("x.var(ddof=n, where=x > 0)", X, (1, 0, 2, 3, 24, 30, -1, 5)),
    "cov": ("np.cov(x, ddof=n)", SQUARE, (1, 0, 2, 3, -1, 5)),
    "percentile": ("np.percentile(x, n)", X, (10, 50, 90, 0, 100, 33, 75)),
    "percentiles": ("np.percentile(x, [n, 50], axis=0)", SQUARE, (10, 50, 90, 0, 100, 33)),
    "percentile of float32": ("np.percentile(x, n)", X.astype("f4"), (10, 50, 90, 0, 100, 33)),
    "round": ("np.round(x, n)", X, (2, 1, 3, -1, 0, 17, -9)),
    "round of float32": ("x.round(n)", X.astype("f4"), (2, 1, 3, -1, 0, 7)),
    "hanning": ("np.hanning(n) * x[0]", X, SMALL),
    "blackman": ("np.blackman(n) * x[0]", X, SMALL),
    "bartlett": ("np.bartlett(n) * x[0]", X, SMALL),
    "histogram": ("np.histogram(x, bins=n)[0]", X, (2, 1, 3, 5, 4, 7, 6)),
}

STATIC: dict[str, tuple[str, np.ndarray, tuple[int, ...]]] = {
    "differences": ("np.diff(x, n)", X, SMALL),
    "parts": ("np.array_split(x, n)", X, (2, 1, 3, 5, 4, 7)),
    "equal parts": ("np.split(x, n)", X, PARTS),
    "turns": ("np.rot90(x, n)", SQUARE, SIGNED),
    "axis": ("x.sum(axis=n)", SQUARE, (0, 1, -1, -2)),
    "place of an axis": ("np.expand_dims(x, n) * 2", SQUARE, (0, 1, 2, -1, -2)),
    "diagonal": ("np.diag(x, n)", SQUARE, (1, 0, 2, 3, -1, -2)),
    "divisor": ("x * math.gcd(n, 12)", X, SMALL),
}


def plain(text: str, **names: Any) -> Any:
    exec(text, names)
    return names["f"]


def agree(got: Any, wanted: Any) -> None:
    assert isinstance(got, list) == isinstance(wanted, list)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, list) else [(got, wanted)]
    for one, other in pairs:
        assert np.shape(one) == np.shape(other) and np.asarray(one).dtype == np.asarray(other).dtype
        tolerance = 1e-5 if np.asarray(other).dtype == np.float32 else 1e-13
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", RUN_TIME)
@pytest.mark.parametrize("captured", [False, True])
def test_a_number_is_of_the_run_after_three_values(name: str, captured: bool, backend: str) -> None:
    body, x, values = RUN_TIME[name]
    text = f"import numpy as np\ndef f(x{'' if captured else ', n'}):\n    return {body}\n"
    names: dict[str, Any] = {"np": np}
    f = pe.cd_from_source(text.split("\n", 1)[1], names, backend=backend)
    reference, found = plain(text.replace("f(x)", "f(x, n)")), list[int]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in values:
            names["n"] = n
            given = (x,) if captured else (x, n)
            agree(f(*given), reference(x, n))
            found.append(id(f.specialise(*given)))
    assert len(set(found)) <= 4 and len(set(found[3:])) == 1


@pytest.mark.parametrize("name", STATIC)
def test_a_number_that_fixes_results_or_axes_says_so(name: str) -> None:
    body, x, values = STATIC[name]
    text = f"import math\nimport numpy as np\ndef f(x, n):\n    return {body}\n"
    names: dict[str, Any] = {"np": np, "math": __import__("math")}
    f = pe.cd_from_source(text.split("\n", 2)[2], names, backend="numpy")
    reference = plain(text)
    for n in values:
        agree(f(x, n), reference(x, n))
    told = str(f.explain(x, values[0]))
    assert f"n: {values[0]}, static: line 2 needs its value, `return {body}`" in told


@pytest.mark.parametrize(
    ("body", "n", "code"),
    [
        ("x.reshape(4, n) * 2", 5, "CD0312"),
        ("x.reshape(4, n) * 2", -2, "CD0312"),
        ("x.reshape(5, n) * 2", 5, "CD0312"),
        ("np.arange(0, 9, n) + x[0]", 0, "CD0453"),
        ("np.percentile(x, n)", 101, "CD0442"),
        ("np.percentile(x, n)", -1, "CD0442"),
    ],
)
def test_what_a_number_of_the_run_may_not_be(body: str, n: int, code: str, backend: str) -> None:
    text = f"def f(x, n):\n    return {body}\n"
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    with pytest.raises(pe.CdError) as first:
        f(X, n)
    for value in (6, -1, 6, 8, 3, 2):
        try:
            f(X, value)
        except pe.CdError:
            continue
    with pytest.raises(pe.CdError) as later:
        f(X, n)
    assert first.value.code == later.value.code == code
    assert type(first.value) is type(later.value)


@pytest.mark.parametrize(
    "name", ["percentile", "percentile of float32", "round", "var", "cov", "hanning", "nanvar"]
)
def test_static_code_and_code_for_any_number_give_the_same_bits(name: str) -> None:
    body, x, values = RUN_TIME[name]
    text = f"def f(x, n):\n    return {body}\n"
    f = pe.cd_from_source(text, {"np": np}, backend="cc")
    for n in values[:3]:
        f(x, n)
    for n in values[3:6]:
        fresh = pe.cd_from_source(text, {"np": np}, backend="cc")
        assert np.asarray(f(x, n)).tobytes() == np.asarray(fresh(x, n)).tobytes()
