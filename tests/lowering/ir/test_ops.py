"""The operation table: neutral elements, result types, and that each row is complete."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.ops import (
    OPS,
    PAIR_OPS,
    Op,
    _fma_exactly,
    _fma_in_doubles,
    neutral_of,
)

COMPUTE = [dtype for dtype in dtypes.ALL if dtype is dtype.compute]
SAMPLES = {
    "b": [False, True],
    "i": [-128, -3, -1, 0, 1, 2, 127],
    "u": [0, 1, 2, 7, 255],
    "f": [-np.inf, -2.5, -0.0, 0.0, 0.25, 1.0, 3.0, np.inf, np.nan],
    "c": [0j, 1 + 2j, -2.5 + 0.5j],
}


def admitted(*, neutral: bool) -> list[tuple[Op, DType]]:
    return [
        (op, dtype)
        for op in OPS.values()
        for dtype in COMPUTE
        if dtype.kind in op.admits and not (neutral and op.neutral is None)
        if op.result != "float" or dtype.bits >= 32  # no float has 8 bits
    ]


def scalar(value: object, dtype: DType) -> np.generic:
    return dtype.numpy.type(value)


@pytest.mark.parametrize(("op", "dtype"), admitted(neutral=True))
def test_neutral_elements_are_neutral_on_the_side_stated(op: Op, dtype: DType) -> None:
    neutral = scalar(neutral_of(op, dtype.kind, dtype.bits), dtype)
    sides = {"both": (True, True), "right": (True, False), "none": (False, False)}[op.side]
    with np.errstate(all="ignore"):
        for value in (scalar(v, dtype) for v in SAMPLES[dtype.kind]):
            # by ==, for which -0.0 and 0.0 are one: the neutral 0 of a sum makes -0.0 positive
            assert not sides[0] or _equal(op.meaning(value, neutral), value)
            assert not sides[1] or _equal(op.meaning(neutral, value), value)


def _equal(got: np.generic, wanted: np.generic) -> bool:
    return bool(got == wanted or (got != got and wanted != wanted))


@pytest.mark.parametrize(("op", "dtype"), admitted(neutral=False))
def test_results_are_of_the_type_stated(op: Op, dtype: DType) -> None:
    one = scalar(1, dtype)
    with np.errstate(all="ignore"):
        got = op.meaning(*[one] * op.arity)
    wanted = {
        "same": dtype,
        "bool": dtypes.bool_,
        "real": dtype.real,
        "complex": dtypes.complex64 if dtype.bits == 32 else dtypes.complex128,
        "unsigned": dtypes.BY_SHORT.get(f"u{dtype.bits}", dtype),
        "signed": dtypes.BY_SHORT.get(f"i{dtype.bits}", dtype),
        "float": dtypes.BY_SHORT.get(f"f{dtype.bits}", dtype),
    }[op.result]
    assert np.asarray(got).dtype == wanted.numpy


@pytest.mark.parametrize("op", [*OPS.values(), *PAIR_OPS.values()], ids=repr)
def test_rows_are_complete(op: Op) -> None:
    assert op.name in PAIR_OPS or OPS[op.name] is op
    assert op.name in PAIR_OPS or set(op.admits) <= set(op.infix_kinds) or op.call
    assert set(op.infix_kinds) <= set(op.admits)
    assert bool(op.infix) == bool(op.infix_kinds)
    assert (op.neutral is None) <= (op.side == "none")


def test_ops_are_equal_by_name() -> None:
    assert OPS["add"] == Op("add", 2, "f", np.add)
    assert len({OPS["add"], Op("add", 2, "f", np.add), OPS["sub"]}) == 2
    assert OPS["add"] != "add"


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("relu", (-2.0,), 0.0),
        ("relu", (3.0,), 3.0),
        ("sat01", (0.25,), 0.25),
        ("sat01", (7.0,), 1.0),
        ("sat01", (-7.0,), 0.0),
        ("relu_gate", (0.0, 5.0), 0.0),
        ("relu_gate", (0.1, 5.0), 5.0),
        ("sat01_gate", (1.0, 5.0), 0.0),
        ("sat01_gate", (0.5, 5.0), 5.0),
        ("recip", (4.0,), 0.25),
        ("recip_sqrt", (4.0,), 0.5),
        ("erf", (0.0,), 0.0),
        ("fma", (2.0, 3.0, 4.0), 10.0),
        ("round_to", (1.26, 1.0), 1.3),
        ("mod", (-1.0, 3.0), 2.0),
        ("fmod", (-1.0, 3.0), -1.0),
        ("complex", (1.0, np.inf), complex(1.0, np.inf)),
    ],
)
def test_meanings_that_are_ours(name: str, args: tuple[float, ...], wanted: complex) -> None:
    got = OPS[name].meaning(*(np.float64(arg) for arg in args))
    assert got == pytest.approx(wanted) if np.isfinite(wanted) else got == wanted


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_rounds_once(kind: type) -> None:
    fma, one, tiny = OPS["fma"].meaning, kind(1), np.finfo(kind).eps
    a = one + tiny
    assert fma(a, a, -(one + 2 * tiny)) == kind(float(tiny) ** 2)  # the part that a product loses
    largest = np.finfo(kind).max
    with np.errstate(all="ignore"):
        assert fma(largest, kind(2), -largest) == largest
        assert fma(largest, kind(2), largest) == np.inf
        assert np.isnan(fma(kind(np.inf), kind(0), one))
        assert fma(largest, largest, kind(-np.inf)) == -np.inf
    assert np.signbit(fma(kind(-0.0), one, kind(-0.0)))
    assert not np.signbit(fma(one, one, -one))


@np.errstate(all="ignore")
def test_fma_of_doubles_is_that_of_integers() -> None:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 32, (3, 2000), dtype=np.uint64).astype(np.uint32).view(np.float32)
    units = np.ldexp(rng.integers(-(1 << 24), 1 << 24, (3, 6000)), rng.integers(-30, 0, (3, 6000)))
    halves = rng.integers(1 << 23, 1 << 24, 2000) * 2.0 ** rng.integers(-3, 4, 2000)
    ties = np.stack([1 + 2.0 ** rng.integers(-23, 2, 2000), rng.choice([-0.5, 0.5], 2000), halves])
    ended = 0
    for a, b, c in np.concatenate([bits, units.astype(np.float32), ties], 1, dtype=np.float32).T:
        if np.isfinite(a) and np.isfinite(b) and np.isfinite(c):
            got, exact = _fma_in_doubles(a, b, c), _fma_exactly(a, b, c)
            assert got.tobytes() == exact.tobytes(), (a, b, c)
            ended += float(got) != float(a) * float(b) + float(c)
    assert ended > 1000


@np.errstate(all="ignore")
def test_fma_of_float64_is_the_rounded_fraction() -> None:
    """A Fraction is exact, and Python rounds it once, below the normal numbers too."""
    rng = np.random.default_rng(11)
    raw = rng.integers(0, 1 << 63, (1000, 3), dtype=np.uint64).view(np.float64)
    near = np.ldexp(rng.integers(-(1 << 53), 1 << 53, (1000, 3)), rng.integers(-60, -40, (1000, 3)))
    near[::2, 2] = -near[::2, 0] * near[::2, 1]  # what the product loses is left
    small = near * np.array([np.finfo(float).tiny, 0.25, np.finfo(float).smallest_subnormal])
    for a, b, c in np.concatenate([raw, near, small]):
        if np.isfinite(a) and np.isfinite(b) and np.isfinite(c):
            exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
            got = OPS["fma"].meaning(a, b, c)
            if np.isfinite(got) and exact:
                assert got.tobytes() == np.float64(float(exact)).tobytes(), (a, b, c)


def test_fma_of_float32_is_not_rounded_twice() -> None:
    """The exact sum is just above the middle of two floats, the nearest float64 in the middle."""
    a, b, c = np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(2**-60)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    low = np.float32(1 + 2**-11)
    assert exact - Fraction(float(low)) == Fraction(1, 2**24) + Fraction(1, 2**60)
    assert OPS["fma"].meaning(a, b, c) == np.nextafter(low, np.float32(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint64])
def test_ordinals_compare_as_numbers_do_with_nan_last(dtype: type) -> None:
    values = [dtype(v) for v in (0, 1, 2, 100)]
    if dtype is not np.uint64:
        values = [dtype(-100), dtype(-1), *values]
    if issubclass(dtype, np.floating):
        info = np.finfo(dtype)
        ends = [dtype(-np.inf), info.min, *values[:2], -info.smallest_subnormal]
        values = [*ends, *values[2:], info.max, dtype(np.inf), dtype(np.nan)]
    meaning = OPS["ordinal"].meaning
    ordinals = [int(meaning(v)) for v in values]
    assert ordinals == sorted(set(ordinals))
    if issubclass(dtype, np.floating):
        assert meaning(dtype(-0.0)) == meaning(dtype(0))
        assert meaning(dtype(-np.nan)) == meaning(dtype(np.nan))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_tell_all_numbers_apart_and_lead_back(dtype: type) -> None:
    info: Any = np.finfo(dtype)
    small, inf = info.smallest_subnormal, dtype(np.inf)
    values = [-inf, info.min, dtype(-1), -small, dtype(-0.0), dtype(0), small, info.max, inf]
    rank, back = OPS["rank"].meaning, OPS["of_rank"].meaning
    ranks = [rank(v) for v in [*values, dtype(np.nan)]]
    assert ranks == sorted(set(ranks))
    assert [str(back(r)) for r in ranks] == [str(v) for v in [*values, dtype(np.nan)]]
    assert rank(dtype(-np.nan)) == ranks[-1]
