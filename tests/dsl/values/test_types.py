"""Kinds join as NumPy 2 promotes, and casts, truths and negations mean what they say."""

from __future__ import annotations

import enum
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.dsl.values.types import (
    BOOL,
    FALSE,
    TRUE,
    WEAK_BOOL,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    Kind,
    admit,
    apply,
    both,
    cast,
    constant_text,
    join,
    join_all,
    kind_of_number,
    negate,
    same_kind,
    typed_text,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.evaluate import State, compile_value, symbol_key
from plusequals.lowering.ir.expressions import Apply, Const, Expr, Position
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.ops import OPS

from ..elaborate.points import LETTERS, comparison

STRONG = [dtype for dtype in dtypes.ALL if dtype.name != "bfloat16"]
PYTHON = ((True, WEAK_BOOL), (1, WEAK_INT), (1.0, WEAK_FLOAT), (1j, WEAK_COMPLEX))


def _value(expr: Expr) -> object:
    """Return what an expression without reads is."""
    return compile_value(expr)(State(print))


@pytest.mark.parametrize(
    ("left", "right"), list(itertools.product(STRONG, STRONG)), ids=lambda dtype: dtype.short
)
def test_strong_kinds_join_as_numpy_promotes(left: DType, right: DType) -> None:
    expected = np.result_type(left.numpy, right.numpy)
    assert join(Kind(left), Kind(right)) == Kind(dtypes.from_numpy(expected) or dtypes.bool_)


@pytest.mark.parametrize("dtype", STRONG, ids=repr)
@pytest.mark.parametrize(("number", "kind"), PYTHON, ids=repr)
def test_python_numbers_adapt_as_in_numpy(dtype: DType, number: complex, kind: Kind) -> None:
    expected = (np.ones(1, dtype.numpy) + number).dtype
    assert join(Kind(dtype), kind).dtype.numpy == join(kind, Kind(dtype)).dtype.numpy == expected
    assert not join(Kind(dtype), kind).weak


@pytest.mark.parametrize(("left", "right"), list(itertools.product(PYTHON, PYTHON)))
def test_python_numbers_join_as_in_python(
    left: tuple[complex, Kind], right: tuple[complex, Kind]
) -> None:
    expected = type(left[0]) if left[1] == right[1] else type(left[0] + right[0])
    assert join(left[1], right[1]) == kind_of_number(expected(1))


@pytest.mark.parametrize("source", STRONG, ids=repr)
@pytest.mark.parametrize("target", STRONG, ids=repr)
def test_what_may_be_stored_is_numpys_same_kind(source: DType, target: DType) -> None:
    allowed = np.can_cast(source.numpy, target.numpy, "same_kind")
    signs = source.kind in "iu" and target.kind in "iu"  # integers wrap here, of either sign
    assert same_kind(Kind(source), target) == (allowed or signs)


@pytest.mark.parametrize("dtype", STRONG, ids=repr)
def test_divisions_and_roots_have_numpys_types(dtype: DType) -> None:
    one = np.ones(1, dtype.numpy)
    assert admit(OPS["div"], Kind(dtype)).dtype.numpy == (one / one).dtype
    assert admit(OPS["sqrt"], Kind(dtype)).dtype.numpy == np.sqrt(one).dtype


def test_what_has_no_meaning_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="is not defined for complex64"):
        admit(OPS["lt"], Kind(dtypes.complex64))


@given(st.sampled_from(dtypes.ALL), st.integers(-(2**63), 2**63 - 1))
def test_a_folded_cast_is_the_cast_of_the_run(dtype: DType, number: int) -> None:
    folded = cast(Const(number, dtypes.int64), dtype)
    with np.errstate(over="ignore"):
        run = _value(_unfolded(Const(number, dtypes.int64), dtype))
    assert folded.dtype is dtype
    assert np.asarray(_value(folded)) == np.asarray(run)


def _unfolded(expr: Expr, dtype: DType) -> Expr:
    """Return a cast that is done in the run."""
    same = Apply(OPS["add"], (expr, Const(0, dtypes.int64)), dtypes.int64)
    return cast(same, dtype)


@given(comparison(LETTERS), st.tuples(*[st.integers(-5, 5)] * 3))
def test_a_negation_holds_where_the_test_does_not(test: Expr, at: tuple[int, ...]) -> None:
    state = State(print)
    state.numbers.update(zip(map(symbol_key, LETTERS), at, strict=True))
    assert bool(compile_value(negate(test))(state)) != bool(compile_value(test)(state))
    assert bool(compile_value(negate(negate(test)))(state)) == bool(compile_value(test)(state))


def test_comparisons_of_floats_are_not_turned_around() -> None:
    nan = Const(float("nan"), dtypes.float64)
    test = Apply(OPS["lt"], (nan, nan), dtypes.bool_)
    assert _value(negate(test)), "nothing is less than NaN"


def test_conjunctions_drop_what_is_true() -> None:
    assert both(None, TRUE) is None
    assert both(TRUE, FALSE, None) == FALSE
    assert both(FALSE, FALSE) == Apply(OPS["and"], (FALSE, FALSE), dtypes.bool_)


def test_sixteen_bit_floats_are_computed_in_thirty_two() -> None:
    half = Const(1.5, dtypes.float16)
    expr, kind = apply("add", (half, Kind(dtypes.float16)), (half, Kind(dtypes.float16)))
    assert expr.dtype is dtypes.float32 and kind == Kind(dtypes.float16)


def test_results_of_comparisons_and_complex_parts() -> None:
    one = Position(const(1)), WEAK_INT
    z = Const(1j, dtypes.complex64), Kind(dtypes.complex64)
    assert apply("lt", one, one)[1] == WEAK_BOOL
    assert apply("abs", z)[1] == Kind(dtypes.float32)
    assert apply("eq", z, z)[1] == BOOL


def test_numbers_are_told_apart_by_their_bits() -> None:
    class Called(float):
        def __repr__(self) -> str:
            return "called"

    nan = float("nan")
    pairs = [(nan, -nan), (np.float32(nan), -np.float32(nan)), (0.0, -0.0), (Called(1), Called(2))]
    assert all(constant_text(one) != constant_text(two) for one, two in pairs)
    assert [constant_text(one) for one in (True, 3, "a", 1.5)] == ["True", "3", "'a'", "1.5"]


class Named:
    """Classes with this `repr` show all their values alike."""

    def __repr__(self) -> str:
        return "named"


class Real(Named, float): ...


class Whole(Named, int): ...


class Complex(Named, complex): ...


class Wide(Named, np.int64): ...


class Text(Named, str): ...


class Raw(Named, bytes): ...


class Mode(Named, enum.Enum):
    A = 1
    B = 2


class Level(Named, enum.IntEnum):
    A = 1
    B = 2


class Word(Named, enum.StrEnum):
    A = "a"
    B = "b"


ALIKE = [
    (Real(1), Real(2)), (Whole(1), Whole(2)), (Complex(1), Complex(2)), (Wide(1), Wide(2)),
    (Text("a"), Text("b")), (Raw(b"a"), Raw(b"b")), (Mode.A, Mode.B), (Level.A, Level.B),
    (Word.A, Word.B), (slice(Level.A), slice(Level.B)),
    (slice(None, None, Whole(1)), slice(None, None, Whole(2))),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), ALIKE)
def test_texts_of_constants_do_not_depend_on_a_repr(one: object, two: object) -> None:
    assert constant_text(one) != constant_text(two)
    assert typed_text((one,)) != typed_text((two,))
    assert typed_text((one,)) == typed_text((one,))


@pytest.mark.parametrize(
    ("one", "two"),
    [(1, True), (1, 1.0), (1.0, np.float64(1)), (1, Whole(1)), (Level.A, 1), ("1", 1), ("a", b"a"),
     (Word.A, "a"), (None, "None"), ((1,), (True,)), (slice(1), slice(True)), (object(), object()),
     (np.int64(1), np.int32(1)), (frozenset([1]), frozenset([True])), (frozenset([1]), (1,))],
)  # fmt: skip
def test_typed_texts_tell_types_apart(one: object, two: object) -> None:
    assert typed_text(one) != typed_text(two)


def test_several_kinds_join_as_the_result_type_of_numpy() -> None:
    numbers = ((WEAK_INT, 1), (WEAK_FLOAT, 1.0), (WEAK_COMPLEX, 1j))
    for types in itertools.combinations_with_replacement(STRONG, 3):
        for chosen in itertools.permutations(types):
            kinds, given = [Kind(each) for each in chosen], [each.numpy for each in chosen]
            assert join_all(kinds).dtype.numpy == np.result_type(*given)
            for weak, number in numbers:
                joined = join_all([weak, *kinds]).dtype.numpy
                assert joined == np.result_type(*given, number)
    assert join_all([WEAK_INT, WEAK_FLOAT]) == WEAK_FLOAT
