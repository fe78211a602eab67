"""Chains of functions in stages: not a bit changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cc.backend import translate
from plusequals.backends.codegen import prelude
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.function_stages import FunctionReason, distribute_functions
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.walk import statements

from ..scheduled import LIKE_C, MODEST, function, interpreted, of_any_size, scheduled
from ..shown import lowered

STAGED = {
    "one of another": "y[i] = exp(sin(x[i]))",
    "through arithmetic": "y[i] = log(1 + exp(-x[i])) * z[i]",
    "through scalars": "t[i] = exp(x[i])\ny[i] = sin(t[i] + z[i]) - t[i]",
    "two at each depth": "y[i] = exp(sin(x[i])) - cos(tanh(z[i]) + sin(x[i]))",
    "three deep": "y[i] = sin(exp(sin(x[i])) + z[i])",
    "in place": "x[i] = exp(x[i])\ny[i] = sin(x[i]) + exp(z[i])\nx[i] = cos(x[i] * y[i])",
    "read before it is written": "y[i] = sin(exp(x[i]) + z[i])\nz[i] = exp(x[i])",
    "written twice": "y[i] = exp(sin(x[i]))\ny[i] += exp(z[i])",
    "two results": "y[i] = exp(sin(x[i]))\nz[i] = y[i] + sin(z[i])",
    "added to": "y[i] += exp(sin(x[i]))",
    "rows": "q[i, j] = exp(sin(q[i, j]))",
}
STAY = {
    "under a test": "y[i] = exp(sin(x[i])) if z[i] > 0 else exp(sin(z[i])) + sin(exp(z[i]))",
    "one function": "y[i] = exp(x[i]) + z[i]",
    "side by side": "y[i] = exp(x[i]) * sin(z[i]) + cos(x[i])",
    "one after the other": ("for i in range(1, len(x)):\n    y[i] = exp(sin(y[i - 1]) + x[i])"),
    "a sum": "y[0] = sum(exp(sin(x[i])))",
    "left early": (
        "for i in range(len(x)):\n    if x[i] > 5:\n        break\n    y[i] = exp(sin(x[i]))"
    ),
}
OWN_ARRAYS = {
    "handed on": "t[1] = sin(t[0])\n    y[i] = log(t[1] ** 2 + t[0])",
    "used again": "y[i] = sin(cos(t[0]))\n    t[0] = log(x[i] + 3)\n    y[i] += tanh(t[0])",
    "added to": "t[0] += sin(t[0])\n    y[i] = exp(t[0])\n    y[i] += cos(y[i] + t[0])",
}
"""Iterations with an array of their own, which begins with `t[0] = exp(x[i])`."""
OF_DATA = {
    "a length": "y[i] = np.exp(v.sum() * len(v))",
    "two functions": "y[i] = np.exp(np.log(v.sum() + len(v)) + np.sin(len(v)))",
    "a length and another slice": "y[i] = np.exp(v.sum()) * len(v) + np.exp(x[i, k[i] :].sum())",
    "a product": "u = v @ w[: len(v)]\n        y[i] = np.exp(u) / len(v)",
}
"""Iterations with a slice of an array whose length is data."""
KEPT_APART = "for i in range(len(x)):\n    y[i] = exp(sin(x[i - 1] if i > 0 else 0.0))"


def _names(text: str) -> list[str]:
    return [name for name in "yxzq" if f"{name}[" in text]


def _arrays(text: str, size: int, dtype: str = "f4") -> list[Any]:
    random = np.random.default_rng(size)
    shapes = {"q": (3, size)}
    return [random.random(shapes.get(name, size)).astype(dtype) - 0.5 for name in _names(text)]


def _made(text: str) -> Any:
    inside = text.replace("\n", "\n    ")
    return function(f"def f({', '.join(_names(text))}):\n    {inside}\n")


def _stages(program: Program) -> int:
    """Return the number of loops that use what stages hand on."""
    kept = {node.id for node in program.locals if node.purpose == "stage"}
    return sum(
        isinstance(stmt, For) and any(
            one.access.node.id in kept for one in stmt.body if hasattr(one, "access")
        )
        for kernel in program.kernels for stmt in statements(kernel.body)
    )  # fmt: skip


def _bytes(arrays: Any) -> list[bytes]:
    return [one.tobytes() for one in arrays]


@pytest.mark.parametrize("size", [0, 1, 40, 256, 600])
@pytest.mark.parametrize("name", STAGED)
def test_not_a_bit_changes(name: str, size: int) -> None:
    arrays = _arrays(STAGED[name], size)
    procedure = _made(STAGED[name]).procedure(*arrays)
    plain = scheduled(procedure, replace(MODEST, schedule=False))
    made = scheduled(procedure, MODEST)
    assert bool(_stages(made)) == (size >= 40)
    assert _bytes(interpreted(made, *arrays)) == _bytes(interpreted(plain, *arrays))


@pytest.mark.parametrize("name", [name for name in STAGED if name != "in place"])
def test_sizes_of_the_run_change_no_bit(name: str) -> None:
    arrays, made = _arrays(STAGED[name], 300), _made(STAGED[name])
    fixed = interpreted(scheduled(made.procedure(*arrays)), *arrays)
    program = scheduled(of_any_size(made, *arrays))
    assert _stages(program)
    assert _bytes(fixed) == _bytes(interpreted(program, *arrays))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", STAGED)
def test_c_gives_the_bits_of_loops_without_stages(name: str, dtype: str) -> None:
    results = []
    ways: list[dict[str, Any]] = [{"schedule": False}, {}, {"threads": 3, "parallel_from": 0}]
    for options in ways:
        arrays = _arrays(STAGED[name], 1000, dtype)
        with settings.override(**options):
            _made(STAGED[name]).on("cc")(*arrays)
        results.append(_bytes(arrays))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", STAY)
def test_what_stays(name: str) -> None:
    arrays = _arrays(STAY[name], 600)
    assert not _stages(scheduled(_made(STAY[name]).procedure(*arrays)))


@pytest.mark.parametrize("name", OWN_ARRAYS)
def test_iterations_keep_arrays_of_their_own(name: str) -> None:
    text = f"t = np.zeros(2)\nfor i in range(len(x)):\n    t[0] = exp(x[i])\n    {OWN_ARRAYS[name]}"
    given = _arrays(text, 600, "f8")
    plain, got = ([one.copy() for one in given] for _ in range(2))
    program = scheduled(_made(text).procedure(*given))
    scope = {name: getattr(np, name) for name in ("exp", "sin", "cos", "log", "tanh")}
    lines = text.replace("\n", "\n    ")
    exec(f"def f(y, x):\n    {lines}\n", scope | {"np": np}, scope)
    scope["f"](*plain)
    _made(text).on("cc")(*got)
    for made in (got, interpreted(program, *given)):
        for one, other in zip(made, plain, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("name", OF_DATA)
def test_ends_that_use_what_an_iteration_reads_once(name: str, profile: Any) -> None:
    text = (
        "def f(x, y, w, k):\n    for i in range(600):\n"
        f"        v = x[i, : k[i]]\n        {OF_DATA[name]}\n"
    )
    random = np.random.default_rng(3)
    x, k = random.random((600, 9)) / 8, random.integers(1, 9, 600)
    given = [x, np.zeros(600), random.random(9), k]
    wanted, got = ([one.copy() for one in given] for _ in range(2))
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    scope["f"](*wanted)
    with settings.override(profile=profile, threads=2):
        function(text).on("cc")(*got)
    for one, other in zip(got, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_a_test_guards_stays_behind_it() -> None:
    arrays = _arrays(KEPT_APART, 600)
    made = scheduled(_made(KEPT_APART).procedure(*arrays), LIKE_C)
    plain = scheduled(_made(KEPT_APART).procedure(*arrays), replace(LIKE_C, schedule=False))
    assert _bytes(interpreted(made, *arrays)) == _bytes(interpreted(plain, *arrays))


def test_the_first_cache_has_room_for_what_is_handed_on() -> None:
    def bytes_of(l1_bytes: int) -> int:
        text = "y[i] = exp(sin(x[i])) - cos(tanh(x[i]) + sin(x[i]))"
        program = lowered(text, y="f64[4096]", x="f64[4096]")
        made = distribute_functions(program, replace(MODEST, l1_bytes=l1_bytes))
        assert [one.reason for one in made.decisions] == [FunctionReason.LONG]
        return sum(node.bytes for node in made.program.locals if node.purpose == "stage")

    assert bytes_of(1 << 20) == 3 * 256 * 8
    assert 0 < bytes_of(4096) <= 2048
    assert 0 < bytes_of(16) <= bytes_of(4096)  # no room for one element of each


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-310, -1e-40, 88.8, -104.5, 709.9, -746.2, 1e300, -1e22]
SPECIAL += [float("inf"), float("-inf"), float("nan")]
CHAIN = """
def f(x):
    y = np.exp(-x) + x
    y = np.where(y > 0.5, np.log(y + 1.0), np.sin(x) - y)
    z = np.tanh(y) * np.cos(x + y) + np.arctan2(y, x)
    return np.cbrt(z) + np.arcsinh(y) - np.sqrt(np.exp2(z)), np.log1p(z * z)
"""


def _kinds(program: Program) -> list[str]:
    loops = (s for k in program.kernels for s in statements(k.body) if isinstance(s, For))
    return [loop.kind for loop in loops]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_in_loops_of_their_own_give_the_bits_of_inlined_ones(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.errstate(all="ignore"):
        x = np.resize(np.array(SPECIAL, dtype), 300)  # each value in each lane, and in what is left
    results, texts = [], []
    for inlined in (1000, 0):  # the second is a text that is no other's
        monkeypatch.setattr(thresholds, "MAX_INLINED_FUNCTIONS", inlined)
        monkeypatch.setattr(prelude, "MAX_INLINED_CALLS", inlined)
        made = function(CHAIN.replace("z", f"z{inlined}")).on("cc")
        results.append(_bytes(np.where(np.isnan(y), np.nan, y) for y in made(x)))  # of any sign
        texts.append(translate(made.procedure(x)).text)
    assert results[0] == results[1]
    assert "each_" not in texts[0] and "\noutlined" not in texts[0]
    assert "each_exp_f" in texts[1] and "each_arctan2_f" in texts[1]


@pytest.mark.parametrize("size", [3, 40, 300])
@pytest.mark.parametrize("name", [*STAGED, "side by side", "under a test"])
def test_many_functions_have_loops_of_their_own(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (STAGED | STAY)[name]
    monkeypatch.setattr(thresholds, "MAX_INLINED_FUNCTIONS", 0)
    arrays = _arrays(text, size)
    procedure = _made(text).procedure(*arrays)
    plain, made = (scheduled(procedure, replace(MODEST, schedule=on)) for on in (False, True))
    assert ("elemental" in _kinds(made)) == (size >= 40 and name != "under a test")
    assert _bytes(interpreted(made, *arrays)) == _bytes(interpreted(plain, *arrays))


def test_arrays_of_stages_are_used_again() -> None:
    made = function("def f(x):\n" + "    x = np.sin(x) + 1\n" * 12 + "    return x\n")
    program = scheduled(made.procedure(np.zeros(600)))
    assert sum(node.purpose == "stage" for node in program.locals) == 2


ENDS = {
    "of a sum": "y[i] = exp(sum(q[i, j])) - x[i]",
    "in order": "for i in range(len(x)):\n    s = 0.0\n    for j in range(len(z)):\n"
    "        s = s * 0.5 + q[i, j]\n    y[i] = exp(s) * s",
    "of two": "for i in range(len(x)):\n    y[i] = sin(sum(q[i, :])) + cos(max(q[i, :]))",
    "in place": "for i in range(len(x)):\n    x[i] += exp(sum(q[i, :]) * x[i])",
    "backwards": "for i in range(len(x)):\n    y[len(x) - 1 - i] = log(1 + sum(q[i, :] ** 2))",
}
NO_ENDS = {
    "what another iteration needs": "for i in range(1, len(x)):\n"
    "    y[i] = exp(sum(q[i, :]) + y[i - 1])",
    "apart": "for i in range(len(x)):\n    y[i // 2] = exp(sum(q[i, :]))",
    "left early": "for i in range(len(x)):\n    s = sum(q[i, :])\n    if s > 9:\n        break\n"
    "    y[i] = exp(s)",
    "no function": "y[i] = sum(q[i, j]) / x[i]",
}


def _ending(text: str, rows: int, columns: int = 9) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(rows)
    shapes = {"q": (rows, columns), "z": (columns,)}
    names = ["y", "x", "z", "q"]
    arrays = [random.random(shapes.get(name, (rows,))) - 0.5 for name in names]
    inside = text.replace("\n", "\n    ")
    return function(f"def f({', '.join(names)}):\n    {inside}\n"), arrays


@pytest.mark.parametrize("rows", [0, 1, 40, 5000])
@pytest.mark.parametrize("name", ENDS)
def test_functions_of_what_loops_found_have_a_loop(name: str, rows: int) -> None:
    made, arrays = _ending(ENDS[name], rows)
    plain = scheduled(made.procedure(*arrays), replace(MODEST, schedule=False))
    program = scheduled(made.procedure(*arrays))
    assert any(n.purpose == "stage" for n in program.locals) == (rows >= 40)
    if rows < 100:
        after, before = (interpreted(one, *arrays) for one in (program, plain))
        np.testing.assert_allclose(after[0], before[0], rtol=1e-12)
        with settings.override(profile="strict"):
            strict = scheduled(made.procedure(*arrays), replace(MODEST, reorders=False))
        assert _bytes(interpreted(strict, *arrays)) == _bytes(before)


@pytest.mark.parametrize("name", NO_ENDS)
def test_ends_that_stay(name: str) -> None:
    made, arrays = _ending(NO_ENDS[name], 100)
    assert not _stages(scheduled(made.procedure(*arrays)))


def test_c_gives_the_bits_of_ends_of_any_number_of_threads() -> None:
    text = "\n".join(ENDS[name] for name in ("in order", "in place"))
    results = []
    for options in ({"schedule": False}, {}, {"threads": 3, "parallel_from": 0}):
        made, arrays = _ending(text, 3000)
        with settings.override("cc", profile="strict", **options):
            made(*arrays)
        results.append(_bytes(arrays))
    assert results[0] == results[1] == results[2]
