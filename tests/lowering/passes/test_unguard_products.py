"""Products under a test: which are made whole, which are not, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.lowering.ir.loops import If
from plusequals.lowering.ir.memory_mode import MATERIALIZED, Request, join
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.unguard_products import unguard_products

SIZES = {"a": (33, 40), "b": (40, 35), "m": (33, 35), "v": (35,), "w": (33,), "s": (35, 40)}
WHOLE = {
    "chosen by a mask": "return np.where(m > 0, a @ b, 0)",
    "for some columns": "return np.where(v > 0, a @ b, m)",
    "a triangle": "return np.tril(a @ b)",
    "in letters": "y[i, j] = sum(a[i, k] * b[k, j]) if j <= i else 0.5\n    return y",
    "two tests": "y[i, j] = sum(a[i, k] * b[k, j]) if j <= i and m[i, j] > 0 else 0\n    return y",
    "one in the other": (
        "y[i, j] = (sum(a[i, k] * b[k, j]) if m[i, j] > 0 else 1) if j > i else 2\n    return y"
    ),
    "scaled, and more": "return np.where(m > 0, np.exp(-0.1 * (a @ b)) + m, -np.inf)",
    "in a softmax": (
        "t = np.where(m > 0, a @ b, -np.inf)\n"
        "    e = np.exp(t - t.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1)[:, None]"
    ),
}
STAYS = {
    "rows by themselves": "return np.where(w[:, None] > 0, (a * a).sum(axis=1)[:, None], m)",
    "a flag": "y[i, j] = sum(a[i, k] * b[k, j]) if v[0] > 0 else 0\n    return y",
    "out of range without": (
        "y[i, j] = sum(s[j - i, k] * b[k, j]) if j >= i else m[i, j]\n    return y"
    ),
    "out of range of one factor": (
        "y = m * 1\n    y[i, j] = sum(a[i, k] * b[k, j - 2]) if j >= 2 else m[i, j]\n    return y"
    ),
    "terms added to what others see": (
        "t: f64[33, 35]\n    for i in range(33):\n        for j in range(35):\n"
        "            if m[i, j] > 0:\n                t[i, j] = 1.0\n"
        "                for k in range(40):\n                    s[j, 0] += a[i, k] * b[k, j]\n"
        "    for i in range(33):\n        for j in range(35):\n"
        "            if m[i, j] > 0:\n                s[j, i] += t[i, j]\n    return s"
    ),
    "one side of a test": (
        "t: f64[33, 35]\n    for i in range(33):\n        for j in range(35):\n"
        "            if m[i, j] > 0:\n                t[i, j] = 0.0\n"
        "                for k in range(40):\n                    t[i, j] += a[i, k] * b[k, j]\n"
        "            else:\n                s[j, i] = 5\n"
        "    for i in range(33):\n        for j in range(35):\n"
        "            if m[i, j] > 0:\n                s[j, i] += t[i, j]\n    return s"
    ),
    "what the caller gave": (
        "if v[j] > 0:\n        m[i, j] = sum(a[i, k] * b[k, j])\n    return m"
    ),
    "what the caller gets": (
        "t: f64[33, 35]\n    if v[j] > 0:\n        t[i, j] = sum(a[i, k] * b[k, j])\n    return t"
    ),
    "small": "return np.where(m[:3, :3] > 0, a[:3, :4] @ b[:4, :3], 0)",
    "what the user started": (
        "y = np.ones((33, 35))\n    if m[i, j] > 0:\n        y[i, j] = sum(a[i, k] * b[k, j])\n"
        "    return y"
    ),
    "what starts from zeros": (
        "t: f64[33, 35]\n    if m[i, j] > 0:\n        t[i, j] = sum(a[i, k] * b[k, j])\n"
        "    y[i, j] = t[i, j]\n    return y"
    ),
    "what an iteration left": (
        "t: f64[33, 35]\n    for n in range(3):\n        if m[i, j] > n - 1:\n"
        "            t[i, j] = sum((n + 1) * a[i, k] * b[k, j])\n"
        "    y[i, j] = t[i, j]\n    return y"
    ),
    "what the first iteration left": (
        "t: f64[33, 35]\n    for n in range(3):\n        if m[i, j] > n:\n"
        "            t[i, j] = sum((n + 1) * a[i, k] * b[k, j])\n"
        "    y[i, j] = t[i, j] if m[i, j] > 0 else 5\n    return y"
    ),
    "read under another test": (
        "t: f64[33, 35]\n    if m[i, j] > 0:\n        t[i, j] = sum(a[i, k] * b[k, j])\n"
        "    y[i, j] = t[i, j] if m[i, j] < 1 else 5\n    return y"
    ),
    "whole numbers": (
        "p = (9 * a).astype(int)\n    q = (9 * b).astype(int)\n    return np.where(m > 0, p @ q, 0)"
    ),
}


def made(body: str) -> tuple[Any, list[Any]]:
    names = [
        name for name in SIZES
        if any(f"{before}{name}{behind}" in body for before in " (" for behind in " [,)")
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(SIZES[name]) for name in names]
    return pe.cd_from_source(f"def f({', '.join(names)}):\n    {body}\n", {"np": np}), given


def count(f: Any, given: list[Any], after: bool) -> int:
    program = lower(f.procedure(*given))
    program = unguard_products(program) if after else program
    every = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return sum(isinstance(stmt, If) for stmt in every)


@pytest.mark.parametrize("name", WHOLE)
def test_products_are_made_whole(name: str) -> None:
    f, given = made(WHOLE[name])
    assert count(f, given, after=False) > 0 and count(f, given, after=True) == 0
    np.testing.assert_allclose(f.on("cc")(*given), f.on("numpy")(*given), rtol=1e-12)


@pytest.mark.parametrize(
    "body",
    [
        "y: f64[3, 33, 35]\n"
        "    y[n, i, j] = sum((n + a[i, k]) * b[k, j]) if j <= i else 0.5\n    return y",
        "y = m * 1\n    for n in range(2):\n"
        "        y[i, j] += sum(a[i, k] * b[k, j]) if j <= i else 0.5\n    return y",
    ],
)
def test_products_below_another_loop_are_made_whole(body: str) -> None:
    f, given = made(body)
    assert count(f, given, after=False) > 0 == count(f, given, after=True)


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    f, given = made(STAYS[name])
    assert count(f, given, after=True) == count(f, given, after=False) > 0
    again = [array.copy() for array in given]
    np.testing.assert_allclose(f.on("cc")(*given), f.on("numpy")(*again), rtol=1e-12)


def test_an_array_stays_as_the_user_requests_it() -> None:
    f, given = made(WHOLE["chosen by a mask"])
    program = lower(f.procedure(*given))
    assert unguard_products(program) != program
    request = join(None, Request(MATERIALIZED, "the user said so"))
    requested = tuple(replace(node, request=request) for node in program.locals)
    program = replace(program, locals=requested)
    assert unguard_products(program) == program


def test_elements_that_nobody_asked_for_do_not_show() -> None:
    """Where they would be NaN, or infinite, nothing is."""
    f, (a, b, m) = made(WHOLE["chosen by a mask"])
    a[3], m[3] = np.inf, -1
    b[:, 5], m[:, 5] = np.nan, -1
    with settings.override(schedule=True, profile="strict"):
        found = f.on("cc")(a, b, m)
    assert np.isfinite(found).all()


def test_zeros_of_sizes_of_the_run() -> None:
    text = (
        "def f(a, b, m):\n    t = np.zeros(m.shape)\n    u: f64[len(m), len(b)]\n"
        "    if m[i, j] > 0:\n        t[i, j] = sum(a[i, k] * b[k, j])\n"
        "        u[i, j] = sum(a[i, k] * b[k, j])\n    return t, 2 * u\n"
    )
    f = pe.cd_from_source(text, {"np": np})
    rng = np.random.default_rng(1)
    with settings.override("cc"):
        for n in (33, 34, 35, 40, 41):
            a, b, m = rng.standard_normal((3, n, n))
            want = np.where(m > 0, a @ b, 0)
            for found, expected in zip(f(a, b, m), (want, 2 * want), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_sizes_of_the_run() -> None:
    f, given = made(WHOLE["a triangle"])
    with settings.override("cc"):
        for n in (30, 31, 34, 41, 57):
            a, b = np.ones((n, n + 3)), np.ones((n + 3, n + 1))
            np.testing.assert_array_equal(f(a, b), np.tril(a @ b))
    program = lower(f.procedure(*given))
    assert program.parameters[0].node.static_shape is None
    assert count(f, given, after=False) > 0 == count(f, given, after=True)
