"""Complex numbers as pairs of reals: not a bit changes, where compilers then make vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.complex_pairs import scalarize_complex
from plusequals.lowering.ir.expressions import Apply, Select, walk
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import expressions_of, reads, statements
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..scheduled import function
from ..shown import lowered

HEAD = "def f(x, y, z, n):\n    for i in range(len(x)):\n"
ROUNDS = {
    "a loop that is left": "u = x[i]\nk = 0\nwhile k < 9 and abs(u) < 4:\n    u = u * u + z[i]\n"
    "    k += 1\ny[i] = u\nn[i] = k",
    "a counted one": "u = 0 * x[i]\nfor k in range(6):\n    if abs(u) > 2:\n        break\n"
    "    u = u * x[i] + z[i]\n    n[i] += 1\ny[i] = u",
    "a branch": "if abs(x[i]) > 1:\n    y[i] = x[i] * z[i]\n    n[i] = 7",
    "both sides": "if x[i] == z[i]:\n    u = -x[i]\nelif x[i] != x[i]:\n    u = 1j\nelse:\n"
    "    u = x[i] / z[i]\ny[i] = u",
    "a choice": "y[i] = x[i] * z[i] if x[i].real < z[i].imag else x[i].conjugate()",
    "a choice of products": "y[i] = x[i] * (z[i] + 2) if abs(z[i]) < 2 else z[i] / x[i]",
    "quotients": "y[i] = (x[i] / z[i] - 1) / (2 * x[i]) + 1 / z[i]",
    "powers": "y[i] = x[i]**2 + z[i]**3 - x[i]**5 / z[i]**8",
    "an exponent that is none": "y[i] = x[i] / z[i] + x[i]**9 + x[i]**0.5",
    "what is not finite": "if np.isfinite(x[i]) and not np.isnan(z[i]) or np.isinf(z[i]):\n"
    "    n[i] = 1\n    y[i] = x[i] * 2",
    "angles": "u = np.angle(x[i] / z[i])\nif u > 0:\n    y[i] = complex(u, abs(x[i]))",
    "two at once": "u = x[i]\nv = z[i]\nfor k in range(5):\n    u, v = v / u, u * v\ny[i] = u + v",
    "sizes of its own": "if abs(x[i]) > 1:\n    y[i] += x[i]\n    y[i] *= z[i]",
    "of its own index": "k = int(abs(z[i]))\nif k < len(x):\n    y[k] = x[k] / z[i]",
    "parts that change places": "u = x[i]\nk = 0\nwhile abs(u) < 9 and k < 5:\n"
    "    u = complex(u.imag, u.real + 1)\n    k += 1\ny[i] = u",
    "an update that has none": "if abs(x[i]) > 1:\n    x[i] **= z[i]",
    "a place that is computed": "u = x[i]\nif abs(u) < 9:\n    u = u + 1\n"
    "y[int(abs(u)) % len(x)] = u",
    "what is added to such a place": "if abs(x[i]) > 1:\n    y[n[i]] += x[i] / z[i]",
    "constant divisors": "y[i] = x[i] / 2 + z[i] / (1 + 2j) - x[i] / 2j",
    "lanes of what has none": "t = 0.0\nfor k in range(9):\n    t += np.exp(x[i] * t).real\n"
    "    if t > 4:\n        break\nn[i] = int(t)",
    "what has no formula": "u = np.exp(x[i])\nif abs(u) > 1:\n    y[i] = u * z[i]",
}
SUMS = {
    "one": "y[0] = np.vdot(x, z)",
    "rows": "w = np.outer(x[:40], z[:70])\ny[:40] = w.sum(axis=1) + w.mean(axis=1)",
    "of quotients": "y[0] = (x / z).sum()",
    "with a loop": "u = 0j\nfor i in range(len(x)):\n    if n[i % 3] == 0:\n        u += x[i]\n"
    "    else:\n        u -= z[i]\ny[0] = u",
    "of itself": "u = 0.1j\nfor i in range(9):\n    u += u * x[i]\ny[0] = u",
}
SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-300, 1e300, 0.3)


def _each(body: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in body.splitlines())


def _whole(body: str) -> str:
    return "def f(x, y, z, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def _arrays(size: int, dtype: str, special: bool) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(size)
    parts = rng.choice(SPECIAL, (2, 2, size)) if special else rng.normal(0, 1.3, (2, 2, size))
    with np.errstate(over="ignore"):
        x, z = (re.astype(dtype) + 1j * np.zeros(1, dtype) for re in parts[:, 0])
        x.imag, z.imag = parts[:, 1].astype(dtype)
    return x, np.zeros_like(x), z, np.zeros(size, np.int64)


def _bits(source: str, size: int, dtype: str, special: bool, **how: object) -> list[bytes]:
    given = _arrays(size, dtype, special)
    with settings.override("cc", **how):
        function(source)(*given)
    return [np.where(np.isnan(one), np.nan, one).tobytes() for one in given]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ROUNDS)
def test_not_a_bit_changes(name: str, dtype: str) -> None:
    for size, special in ((0, False), (1, False), (97, False), (640, True)):
        plain, made = (
            _bits(_each(ROUNDS[name]), size, dtype, special, profile="strict", schedule=schedule)
            for schedule in (False, True)
        )
        assert made == plain


@pytest.mark.parametrize("name", SUMS)
def test_sums_have_the_same_bits_everywhere(name: str) -> None:
    source = _whole(SUMS[name])
    first, *others = (
        _bits(source, 9000, "f4", False, threads=threads, parallel_from=0) for threads in (1, 2, 7)
    )
    assert all(one == first for one in others)
    strict = (_bits(source, 97, "f8", False, profile="strict", schedule=s) for s in (False, True))
    assert len(set(map(tuple, strict))) == 1


@pytest.mark.parametrize("name", [*ROUNDS, *SUMS])
def test_results_are_those_of_numpy(name: str) -> None:
    source = _each(ROUNDS[name]) if name in ROUNDS else _whole(SUMS[name])
    space: dict[str, Any] = {"np": np}
    exec(source, space)
    given, expected = (_arrays(200, "f8", False) for _ in range(2))
    function(source)(*given)
    space["f"](*expected)
    for one, other in zip(given, expected):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("name", ["a loop that is left", "a branch", "a choice", "quotients"])
def test_nothing_complex_is_left_but_elements(name: str) -> None:
    kinds = {"x": "c128[64]", "y": "c128[64]", "z": "c128[64]", "n": "i64[64]"}
    body = "for i in range(64):\n" + "".join(f"    {s}\n" for s in ROUNDS[name].splitlines())
    program = scalarize_complex(lowered(body, **kinds))
    found = [
        part
        for kernel in program.kernels
        for stmt in statements(kernel.body)
        for expr in expressions_of(stmt)
        for part in walk(expr)
        if part.dtype.kind == "c" and isinstance(part, Apply | Select)
    ]
    assert {part.op.name for part in found if isinstance(part, Apply)} == {"complex"}
    assert not any(isinstance(part, Select) for part in found)
    assert not any(node.dtype.kind == "c" for node in program.locals)


@pytest.mark.parametrize("body", [
    "y[i] = x[i] * z[i] + 2", "y[i] = np.exp(x[i]) / z[i]", "y[i] = conj(x[i])",
])  # fmt: skip
def test_what_is_simple_or_has_no_formula_stays(body: str) -> None:
    program = lowered(body, x="c128[64]", y="c128[64]", z="c128[64]")
    assert scalarize_complex(program) is program


def test_lanes_behind_the_last_round_read_nothing() -> None:
    """What has no formula reads whole elements, which lanes without a round do not have."""
    body = (
        "for i in range(40):\n    t = 0.0\n    for k in range(50):\n"
        "        t = t + np.exp(x[i] * t).real\n        if t > 9:\n            break\n    y[i] = t"
    )
    program = lowered(body, x="c128[40]", y="f64[40]")
    program, _ = optimize(program, Target(schedule=True), stop_after="mask_lanes")
    loops = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    lanes = [one for one in loops if one.symbol.name == "lane"]
    reading = [one for one in lanes if any(node.label == "x" for node in reads((one,)))]
    assert lanes and all((one.hi - one.lo).constant is None for one in reading)
