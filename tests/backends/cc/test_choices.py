"""Choices without branches: what they choose, and that loops around them become vectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plusequals import cd
from plusequals.backends.cc.probe import probe_compiler
from plusequals.backends.cc.toolchain import Toolchain, find_compiler, run_command
from plusequals.base import settings

from ...compare import run_on

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 300.0, -1e30, np.inf, -np.inf, np.nan])


@cd
def chosen(x, y):
    return np.where(x > 0, y, 0.5 * x), np.where((x > 0) & (y < 2), x, y), np.where(x == y, 1, 0)


@cd
def clipped(x, y):
    return np.maximum(x, y), np.minimum(x, y), np.clip(x, -1, 1), np.sign(x), np.fmax(x, y)


@cd
def marked(x, y):
    return (x > 0) & (y > 0), (x > 0) | ~(y > 0), np.where(x > y, x > 0, y > 0)


@cd
def converted(x, y):
    return i32(x), u8(x), i16(y)


@cd
def bounded(x, y):
    return np.maximum(x, 0), np.minimum(2.5, x), np.clip(y, -1, np.inf), np.minimum(y, np.nan)


@cd
def widened(x, y):
    return i64(x), u64(y)


@cd
def carried(x, y):
    up, down, runs = x.copy(), y.copy(), np.ones(len(x))
    for t in range(1, len(x)):
        up[t] = max(up[t - 1], x[t]) if t % 8 else x[t]
        down[t] = np.minimum(down[t], down[t - 1]) if t % 5 else y[t]
        runs[t] = runs[t - 1] + 1 if x[t] == x[t - 1] else y[t]
    return up, down, runs


@cd
def remaining(x, y):
    return np.fmod(x, y), x % y, x // y


@cd
def totalled(x, y):
    flags = x > y
    return np.count_nonzero(flags), flags.any(), flags.all(), np.sum(~flags)


VECTORS = (chosen, clipped, marked, converted, bounded)
FUNCTIONS = (*VECTORS, carried, totalled, widened)
# few processors convert a vector of reals to 64-bit whole numbers


def pairs(dtype: type) -> tuple[Any, Any]:
    """Return all pairs of the special values, and some more: vectors, and a rest."""
    x, y = (grid.reshape(-1).astype(dtype) for grid in np.meshgrid(SPECIAL, SPECIAL))
    return np.concatenate([x, x[:37]]), np.concatenate([y, y[1:38]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_choices_are_those_of_the_interpreter(function: Callable[..., Any], dtype: type) -> None:
    x, y = pairs(dtype)
    for level in (1, 3):
        with settings.override(optimize=level, schedule=True):
            got = run_on("cc", function, x, y)
        for mine, wanted in zip(got, run_on("numpy", function, x, y)):
            np.testing.assert_array_equal(mine, wanted)
            assert np.array_equal(np.signbit(mine), np.signbit(wanted)) or mine.dtype.kind != "f"


@pytest.mark.parametrize("function", VECTORS, ids=lambda f: f.__name__)
def test_loops_with_choices_become_vectors(function: Callable[..., Any], tmp_path: Path) -> None:
    toolchain = gcc(tmp_path)
    with settings.override(schedule=True):
        text = function.explain(*pairs(np.float32)).code
    assert are_vectors(text, toolchain, tmp_path)


def gcc(folder: Path) -> Toolchain:
    """Return the compiler, which tells what it made vectors of if it is gcc: others skip a test."""
    toolchain = probe_compiler(find_compiler(), folder)
    if "gcc" not in toolchain.version.splitlines()[0].lower():
        pytest.skip("only gcc tells which loops it made vectors of")
    return toolchain


def are_vectors(text: str, toolchain: Toolchain, folder: Path) -> bool:
    """Whether the compiler makes vectors of all loops of a function."""
    (folder / "code.c").write_text(text, "ascii")
    flags = (*toolchain.flags, "-O3", "-fopt-info-vec-optimized", "-c", "-o", "code.o", "code.c")
    ran = run_command([*toolchain.command, *flags], folder)
    assert ran.status == 0, ran.said
    made = {int(n) for n in re.findall(r"code\.c:(\d+):\d+: optimized: loop vectorized", ran.said)}
    loops = {n for n, line in enumerate(text.splitlines(), 1) if line.startswith("    for (")}
    return bool(loops) and loops <= made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_casts_stop_at_the_limits_of_whole_numbers(dtype: type) -> None:
    @cd
    def cast(x):
        return i8(x), u8(x), i16(x), u16(x), i32(x), u32(x)

    limits = [s * 2.0**n for n in (7, 8, 15, 16, 31, 32, 40) for s in (1, -1)]
    near = [limit + by for limit in limits for by in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    x = np.array([*near, *SPECIAL]).astype(dtype)
    with settings.override(schedule=True):
        got = run_on("cc", cast, x)
    for mine, wanted in zip(got, run_on("numpy", cast, x), strict=True):
        np.testing.assert_array_equal(mine, wanted)
        limit = np.iinfo(mine.dtype)
        inside = np.clip(np.nan_to_num(x.astype(np.float64), nan=0), limit.min, limit.max)
        np.testing.assert_array_equal(mine, np.trunc(inside).astype(mine.dtype))


@cd
def magnitudes(x, s):
    return np.abs(x), np.minimum(np.abs(x) + np.abs(s), 100)


@cd
def by_constants(x, s):
    return x // 7, x % 7, x // -3, x % -3, s // 10, s % 8


@cd
def shifted(x, s):
    return x << s, x >> s


SIGNED, UNSIGNED = [np.int8, np.int16, np.int32, np.int64], [np.uint8, np.uint32]


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(function, dtype) for function in (magnitudes, by_constants, shifted)
     for dtype in (SIGNED if function is by_constants else SIGNED + UNSIGNED)],
)  # fmt: skip
def test_whole_numbers_are_numpys(function: Callable[..., Any], dtype: type) -> None:
    limit, rng = np.iinfo(dtype), np.random.default_rng(3)
    ends = [limit.min, limit.min + 1, 0, 1, limit.max - 1, limit.max]
    x = np.concatenate([ends, rng.integers(limit.min, limit.max, 200, dtype)]).astype(dtype)
    most = limit.bits + 3 if function is shifted else limit.max
    s = rng.integers(0, most, x.size).astype(dtype)
    with settings.override(schedule=True):
        got = run_on("cc", function, x, s)
    for mine, wanted in zip(got, run_on("numpy", function, x, s), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(magnitudes, np.int8), (magnitudes, np.int16), (by_constants, np.int16),
     (by_constants, np.int32), (shifted, np.int32), (shifted, np.uint32)],
)  # fmt: skip
def test_loops_of_whole_numbers_become_vectors(
    function: Callable[..., Any], dtype: type, tmp_path: Path
) -> None:
    toolchain = gcc(tmp_path)
    with settings.override(schedule=True):
        text = function.explain(np.ones(999, dtype), np.ones(999, dtype)).code
    assert are_vectors(text, toolchain, tmp_path)


def test_truth_values_are_bytes_of_which_vectors_are_made(tmp_path: Path) -> None:
    @cd
    def count(flags):
        return np.count_nonzero(flags)

    toolchain = gcc(tmp_path)
    (tmp_path / "code.c").write_text(count.explain(np.ones(1000, bool)).code, "ascii")
    flags = (*toolchain.flags, "-O3", "-fopt-info-vec-optimized", "-c", "-o", "code.o", "code.c")
    said = run_command([*toolchain.command, *flags], tmp_path).said
    assert "loop vectorized" in said


def test_what_a_test_keeps_in_range_is_not_read() -> None:
    @cd
    def shifted(x, k, w):
        y[i] = x[i - 1] if i > 0 else 0.0
        z[i] = x[k[i]] if w[i] > 0 else -1.0
        return y, z

    x, far = np.arange(1.0, 5.0), 2**40
    k, w = np.array([0, far, 3, -far]), np.array([1.0, -1.0, 1.0, np.nan])
    with settings.override(schedule=True):
        first, second = run_on("cc", shifted, x, k, w)
    np.testing.assert_array_equal(first, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(second, [1, -1, 4, -1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_remains_of_reals_is_exact(dtype: Any) -> None:
    rng = np.random.default_rng(8)
    kind = np.dtype(dtype)
    bits = rng.integers(0, 2 ** (8 * kind.itemsize) - 1, (2, 3000), np.uint64)
    x, y = bits.astype(f"u{kind.itemsize}").view(dtype)  # of every size
    small = np.finfo(dtype).smallest_subnormal * rng.integers(0, 2**20, (2, 3000)).astype(dtype)
    times = rng.integers(1, 10**6, 3000).astype(dtype)
    with np.errstate(all="ignore"):
        whole = (times * y).astype(dtype)
        below = np.nextafter(whole, dtype(0))
        far = (rng.random(3000) * 2.0**60).astype(dtype)
        for a, b in ((x, y), small, (whole, y), (below, -y), (far, times), pairs(dtype)):
            wanted = np.fmod(a, b), a % b, a // b
            with settings.override(schedule=True):
                got = run_on("cc", remaining, a, b)
            for mine, theirs in zip(got, wanted):
                np.testing.assert_array_equal(mine, theirs)
                signs = np.signbit(mine) == np.signbit(theirs)
                assert np.all(signs | np.isnan(theirs))


@cd
def shifted(x, y):
    return x << y, x >> y, x << 3, x >> 3, 1 << y


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u8"])
def test_numbers_are_shifted_by_any_number(dtype: str) -> None:
    info = np.iinfo(dtype)
    by = [*range(max(info.min, -3), 70), info.min, info.max, info.max - 1]
    some = [*range(-5, 6), 100, 85, info.min, info.max, info.min + 1]
    lines = (np.array([n % 2**info.bits for n in every], "u8") for every in (some, by))
    x, y = (one.ravel().astype(dtype) for one in np.meshgrid(*lines))
    for found, expected in zip(shifted(x, y), shifted.__wrapped__(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
