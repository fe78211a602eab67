"""The elementary functions in C: how near they are, at the edges too, and the same bits everywhere.

The reference is the next wider type of NumPy. The bounds are those of `lowering.ir.accuracy`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

from plusequals.backends.cc.probe import probe_compiler
from plusequals.backends.cc.toolchain import Toolchain, find_compiler, run_command
from plusequals.backends.codegen.source import preamble
from plusequals.lowering.ir.accuracy import ULPS

Array = np.ndarray[Any, Any]
BOUNDS = {
    (name, short): bound
    for name, bounds in ULPS.items()
    for short, bound in zip(("f32", "f64"), bounds)
}
TYPES: dict[str, tuple[str, Any, Any]] = {
    "f32": ("float", np.float32, np.float64),
    "f64": ("double", np.float64, np.longdouble),
}
"""Of each type its name in C, NumPy's, and the type of the reference."""
ARITY = {"pow": 2, "whole_pow": 2, "half_pow": 2, "arctan2": 2, "hypot": 2}
PI_LOW = 1.2246467991473532e-16
"""What pi has beyond float64."""
LEVELS = ("-O3", "-O1", "-O0")


def loops() -> str:
    """Return C with a loop for each function and type."""
    lines = []
    for name, short in BOUNDS:
        ctype = TYPES[short][0]
        given = [f"x{k}" for k in range(ARITY.get(name, 1))]
        head = "".join(f"const {ctype} *restrict {x}, " for x in given)
        args = ", ".join(f"{x}[i]" for x in given)
        lines.append(f"void loop_{name}_{short}({head}{ctype} *restrict y, int64_t n)")
        lines.append(f"{{ for (int64_t i = 0; i < n; i++) y[i] = {name}_{short}({args}); }}")
    for ctype, short in (("float", "f32"), ("double", "f64")):  # an exponent that is known
        head = f"const {ctype} *restrict x, {ctype} *restrict y"
        lines.append(f"void loop_20_{short}({head}, int64_t n)")
        lines.append(f"{{ for (int64_t i = 0; i < n; i++) y[i] = whole_pow_{short}(x[i], 20); }}")
        lines.append(f"void loop_half_{short}({head}, int64_t n)")
        lines.append(f"{{ for (int64_t i = 0; i < n; i++) y[i] = half_pow_{short}(x[i], -1.5); }}")
    code = "\n".join(lines) + "\n"
    return preamble(code) + code


def built(toolchain: Toolchain, folder: Path, *flags: str) -> Any:
    """Return the loops compiled, and what the compiler said."""
    (folder / "loops.c").write_text(loops(), "ascii")
    made = folder / f"loops{'_'.join(flags)}.so"
    command = [*toolchain.command, *toolchain.flags, *flags, "-shared", "-o", str(made), "loops.c"]
    ran = run_command([*command, "-lm"], folder)
    assert ran.status == 0, ran.said[:4000]
    ffi = cffi.FFI()
    for name, short in BOUNDS:
        pointers = "void *, " * (ARITY.get(name, 1) + 1)
        ffi.cdef(f"void loop_{name}_{short}({pointers}int64_t);")
    return ffi, ffi.dlopen(str(made)), ran.said


def call(library: Any, name: str, short: str, *given: Array) -> Array:
    """Return a function of arrays, computed by its loop."""
    ffi, functions, _ = library
    out = np.full_like(given[0], 77)
    pointers = [ffi.cast("void *", array.ctypes.data) for array in (*given, out)]
    getattr(functions, f"loop_{name}_{short}")(*pointers, out.size)
    return out


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return probe_compiler(find_compiler(), tmp_path_factory.mktemp("toolchain"))


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return built(toolchain, tmp_path_factory.mktemp("loops"), "-O3", "-fopt-info-vec-optimized")


@pytest.fixture(scope="module")
def plain(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The loops without fused multiply-add, None where it cannot be left out."""
    folder = tmp_path_factory.mktemp("plain")
    native = [flag for flag in toolchain.flags if flag.startswith(("-march", "-mcpu"))]
    if not native or "avx" not in (run_command(["cat", "/proc/cpuinfo"], folder).said):
        return None
    return built(toolchain, folder, "-O2", "-mno-fma", "-mno-avx512f")


@cache
def points(short: str) -> Array:
    """Return numbers of all sizes, those at which functions change their way, and the special."""
    _, dtype, _ = TYPES[short]
    info, draw = np.finfo(dtype), np.random.default_rng(3)
    powers = np.ldexp(1.0, np.arange(np.log2(info.smallest_subnormal).astype(int), info.maxexp))
    tenths = 10.0 ** np.arange(-30, 31)
    turns = np.arange(1, 400) * (np.pi / 4)
    with np.errstate(all="ignore"):
        exact = np.concatenate([[0.0, np.inf, np.nan, info.max, info.smallest_normal], powers,
                                powers * 1.5, tenths, turns, np.arange(1, 800.0)])  # fmt: skip
        exact = exact.astype(dtype)
        around = [exact, np.nextafter(exact, dtype(0)), np.nextafter(exact, dtype(np.inf))]
        log2 = draw.uniform(np.log2(info.smallest_subnormal), info.maxexp, 20000)
        drawn = [np.exp2(log2), *(draw.uniform(0, top, 20000) for top in (1, 2, 20, 100, 750))]
        positive = np.concatenate([*around, *(some.astype(dtype) for some in drawn)])
    return np.concatenate([positive, -positive])


def pairs(name: str, short: str) -> tuple[Array, Array]:
    """Return pairs of numbers of all sizes, and some for which the function is ordinary."""
    dtype, draw = TYPES[short][1], np.random.default_rng(4)
    x, y = (draw.permutation(points(short)) for _ in range(2))
    with np.errstate(all="ignore"):
        base, share = np.abs(x), draw.uniform(-1, 1, x.size)
        reach = (share * np.finfo(dtype).maxexp / np.log2(base)).astype(dtype)
        few = draw.integers(-20, 20, x.size).astype(dtype)
        near = draw.uniform(0, 2, x.size).astype(dtype)
        second = {"pow": reach, "arctan2": (x * near).astype(dtype), "hypot": x * near}.get(name)
    if second is None:
        size = np.where(np.arange(x.size) % 2, draw.integers(9, 65, x.size), 0)
        whole = np.where(size > 0, size, -draw.integers(2, 65, x.size)).astype(dtype)
        if name == "half_pow":
            whole = whole - np.sign(whole) * dtype(0.5)
        small = np.exp2(draw.uniform(-1.05, 1.05, x.size) * np.finfo(dtype).maxexp / whole)
        return np.concatenate([x, small.astype(dtype), -near]), np.tile(whole, 3)
    return np.concatenate([x, base, x, near]), np.concatenate([y, second, few, few])


def arguments(name: str, short: str) -> tuple[Array, ...]:
    """Return the arrays on which a function is tested."""
    return pairs(name, short) if name in ARITY else (points(short),)


def erf(x: Array) -> Array:
    """Return erf of numbers below 2 by its series without cancellation."""
    term = x * np.exp(-x * x) * 2 / np.sqrt(x.dtype.type(np.pi) + x.dtype.type(PI_LOW))
    total = term
    for n in range(1, 80):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return total


def erfc(x: Array) -> Array:
    """Return erfc of numbers from 2 on by its continued fraction."""
    fraction = x
    for n in range(200, 0, -1):
        fraction = x + n / fraction / 2
    upper = x.astype(np.float32).astype(x.dtype)  # its square is exact
    power = np.exp(-upper * upper) * np.exp(-(x - upper) * (x + upper))
    return power / fraction / np.sqrt(x.dtype.type(np.pi) + x.dtype.type(PI_LOW))


def meaning(name: str, *given: Array) -> Array:
    """Return what a function of arrays of a wide type is."""
    with np.errstate(all="ignore"):
        if name in ("whole_pow", "half_pow"):
            return np.asarray(np.power(*given))
        if not name.startswith("erf"):
            return np.asarray(getattr(np, name)(*given))
        x = np.clip(given[0], -50, 50)
        near = np.abs(x) < 2
        low, high, out = erf(x[near]), erfc(np.abs(x[~near])), np.empty_like(x)
        sign = np.sign(x[~near])
        out[near] = low if name == "erf" else 1 - low
        out[~near] = sign * (1 - high) if name == "erf" else np.where(sign < 0, 2 - high, high)
        return out


def errors(got: Array, wide: Array) -> Array:
    """Return the distance of each result in units of its last place, infinite where it is wrong."""
    with np.errstate(all="ignore"):
        want = wide.astype(got.dtype)
        units = np.spacing(np.abs(want)).astype(wide.dtype)
        distance = np.abs(got - wide) / units
    special = ~np.isfinite(want) | (want == 0) | ~np.isfinite(got)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    same &= np.isnan(want) | (np.signbit(got) == np.signbit(want))
    return np.where(special & ~same, np.inf, np.where(special & same, 0, distance))


def assert_near(name: str, short: str, got: Array, want: Array, *given: Array) -> None:
    """Assert that results are within the bound of the page."""
    found = errors(got, want)
    worst = int(np.argmax(found))
    at = ", ".join(repr(x[worst]) for x in given)
    message = f"{name}({at}) = {got[worst]!r} is off by {found[worst]:.3f} ulp"
    assert found[worst] <= BOUNDS[name, short], message


@pytest.mark.parametrize(("name", "short"), BOUNDS)
def test_results_are_within_the_bounds_of_the_page(
    library: Any, plain: Any, name: str, short: str
) -> None:
    given, wide = arguments(name, short), TYPES[short][2]
    if np.finfo(wide).nmant == np.finfo(given[0].dtype).nmant:
        pytest.skip("no floating type here is wider than float64")
    want = meaning(name, *(x.astype(wide) for x in given))
    for loops_ in (library, plain) if plain else (library,):
        assert_near(name, short, call(loops_, name, short, *given), want, *given)


def test_multiply_add_was_left_out_as_well(plain: Any) -> None:
    if plain is None:
        pytest.skip("multiply-add cannot be left out on this processor")
    assert plain


@pytest.mark.parametrize("level", LEVELS)
def test_bits_are_the_same_at_all_lengths_and_alignments(
    library: Any, toolchain: Toolchain, tmp_path: Path, level: str
) -> None:
    other = built(toolchain, tmp_path, level)
    for name, short in BOUNDS:
        order = np.random.default_rng(5).permutation(arguments(name, short)[0].size)[:2000]
        given = [x[order] for x in arguments(name, short)]
        whole = call(library, name, short, *given)
        np.testing.assert_array_equal(call(other, name, short, *given), whole, name)
        for length in range(1, 41):
            at = (length * 7) % 1900
            few = [x[at : at + length] for x in given]
            got = call(other, name, short, *few)
            np.testing.assert_array_equal(got, whole[at : at + length], f"{name} {length}")
            same = np.signbit(got) == np.signbit(whole[at : at + length])
            assert np.all(same | np.isnan(got)), (name, length)


def test_loops_become_vectors(library: Any, toolchain: Toolchain) -> None:
    if "gcc" not in toolchain.version.splitlines()[0].lower():
        pytest.skip("only gcc tells which loops it made vectors of")
    text = loops().splitlines()
    made = {
        int(n) for n in re.findall(r"loops\.c:(\d+):\d+: optimized: loop vectorized", library[2])
    }
    names = [
        line for n, line in enumerate(text) if line.startswith("void loop_") and n + 2 not in made
    ]
    # how many squares there are decides what is done
    in_the_run = ("void loop_whole_pow_", "void loop_half_pow_")
    assert [name for name in names if not name.startswith(in_the_run)] == []
