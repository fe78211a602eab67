"""Comparisons of values: of numbers, elementwise of arrays, of tuples and lists item by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....base.diagnostic import CdTypeError, Span
from ....base.lazy_import import lazy_modules
from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Const, Expr, Position, Select
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe, elementwise
from ...values.builder import Context, error
from ...values.call_site import Site, is_list, items_of
from ...values.exact_comparison import of_int_and_float
from ...values.folding import PYTHON
from ...values.types import BOOL, TRUE, WEAK_BOOL, WEAK_INT, Kind, apply, fits, kind_of_number
from ...values.values import Array, Group, Masked, Opaque, Scalar, Static, Value
from ..bindings import frozen, is_number
from ..operators import (
    as_affine,
    as_python,
    is_numpy,
    is_range,
    is_sequence,
    now,
    refuse_overridden,
    sequence_kind,
)
from ..scope import Frame

if TYPE_CHECKING:
    from ...numpy.primitives import reductions
    from .. import select, truth
    from . import identity
else:  # imported lazily: few programs need them
    identity, select, truth, reductions = lazy_modules(
        __package__, ".identity", "..select", "..truth", "...numpy.primitives.reductions"
    )

_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def compare_values(
    frame: Frame, op: str, left: Value, right: Value, span: Span, as_test: bool = False,
    by_value: bool = False,
) -> Value:  # fmt: skip
    """Return one comparison; `as_test`: only its truth is used, not whose bool it is; `by_value`:
    whether items of tuples are one object, which matters for NaN, is not asked."""
    if op in ("is", "is not"):
        if not identity.are_dynamic_bools(left, right):
            return identity.identity(frame, op, left, right, span)
        op = "==" if op == "is" else "!="
    refuse_overridden(op, left, right, span)
    first, second = as_python(left), as_python(right)
    if first is not None and second is not None:
        folded = now(PYTHON[op], (first.value, second.value), span)
        if not isinstance(folded.value, np.ndarray):  # a sequence and a number of NumPy's
            return folded
    if op in ("==", "!=") and (member_pair := identity.members(left, right)) is not None:
        return now(PYTHON[op], member_pair, span)
    if op in ("in", "not in"):
        if isinstance(right, Group):
            return _test_membership(frame, op, left, right, span)
        if (marks := identity.flags(op, left, right)) is not None:
            return now(PYTHON[op], marks, span)
        if isinstance(right, Array | Masked) and not is_list(right) and not frame.letters:
            if is_number(left):
                return _is_element(frame, op, left, right, span)
        raise error("CD0410", CdTypeError, f"`{op}` needs a sequence known when compiling", span)
    if is_list(left) and is_list(right):
        return _compare_sequences(frame, op, left, right, span, as_test, by_value)
    unlike = is_sequence(left) != is_sequence(right) or is_range(left) or is_range(right)
    if unlike and not any(is_numpy(side) or isinstance(side, Opaque) for side in (left, right)):
        return _compare_unlike(op, left, right, span)
    is_converted = unlike and (is_numpy(left) or is_numpy(right))  # a range becomes an array
    if isinstance(left, Opaque) and isinstance(right, Opaque) and op in ("==", "!="):
        if _is_no_number(left) and _is_no_number(right):
            return identity.identity(frame, "is" if op == "==" else "is not", left, right, span)
    elif not is_converted and (_is_no_number(left) or _is_no_number(right)):
        arrays = (
            isinstance(v, Array | Masked) and v.rank and not is_list(v) for v in (left, right)
        )
        if op in ("==", "!=") and not any(arrays):
            return Static(op == "!=")
        text = f"`{op}` is not defined for {describe(left)} and {describe(right)}"
        raise error("CD0404", CdTypeError, text, span, helps=("compare with a number: `x == 0`",))
    a, b = as_affine(left), as_affine(right)
    result = elementwise(
        frame.ctx, lambda x, y: _compare_typed(frame.ctx, op, x, y), [left, right], span
    )
    if a is not None and b is not None and isinstance(result, Scalar):
        outcome = truth.folded_test(frame, result.expr)
        if outcome is not None and not frame.letters:
            return Static(outcome)
    return result


def _is_element(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    """Return whether a number equals any element of an array (`in`), or none (`not in`)."""
    equal = compare_values(frame, "==", left, right, span)
    found = reductions.truth_reducer("any")(Site(frame.ctx, span), equal)
    found = reductions.as_pythons(found)
    return found if op == "in" else compare_values(frame, "==", found, Static(False), span)


def _compare_unlike(op: str, left: Value, right: Value, span: Span) -> Value:
    """Return the comparison of a list, tuple or range with what is none: by `==` they differ."""
    if op in ("==", "!="):
        return Static(op == "!=")
    text = f"`{op}` is not defined for {describe(left)} and {describe(right)}"
    helps = ("to compare each item, make an array: `np.array([1, 2]) < x`",)
    raise error("CD0404", CdTypeError, text, span, helps=helps)


def _is_no_number(value: Value) -> bool:
    """Whether a value equals no number, by Python's rules: a text, None, an object whose class does
    not say what it equals."""
    match value:
        case Static(inner):
            return kind_of_number(inner) is None
        case Opaque(inner, _):
            return type(inner).__eq__ is object.__eq__
        case _:
            return False


def _compare_sequences(
    frame: Frame, op: str, left: Value, right: Value, span: Span, as_test: bool, by_value: bool
) -> Value:
    """Return a lexicographic comparison of tuples or lists, as in Python."""
    left_items, right_items = items_of(left), items_of(right)
    if left_items is None or right_items is None:
        raise error(
            "CD0404", CdTypeError, f"`{op}` compares lists as a whole in Python, and a list is "
            "given here", span,
            helps=("ask whether all items are equal: `np.array_equal(x, y)`",
                   "or pass arrays: `np.array([1.0, 2.0])`"),
        )  # fmt: skip
    alike = sequence_kind(left) == sequence_kind(right)
    pairs = list(zip(left_items, right_items, strict=False))
    if op in ("==", "!="):
        equal: Value = Static(alike and len(left_items) == len(right_items))
        for pair in pairs:
            if equal != Static(False):
                equal = truth.both_hold(frame, equal, _items_equal(frame, *pair, span), span)
        return truth.negation(frame, equal, span) if op == "!=" else truth.of_python(equal)
    if not alike:
        text = f"`{op}` is not defined for {describe(left)} and {describe(right)}"
        raise error("CD0404", CdTypeError, text, span)
    result: Value = now(PYTHON[op], (len(left_items), len(right_items)), span)
    for pair in reversed(pairs):
        equal_items = _items_equal(frame, *pair, span, by_value)
        if isinstance(equal_items, Static) and equal_items.value:
            continue
        differs = compare_values(frame, op, *pair, span, as_test, by_value)
        if isinstance(equal_items, Static):
            result = differs
            continue
        result = _one_or_other(frame, equal_items.expr, result, differs, span, as_test)
    return result


def extreme_of_sequences(frame: Frame, name: str, values: Sequence[Value], span: Span) -> Value:
    """Return the first largest ("max") or smallest ("min") of tuples or lists, as Python compares
    them. CdTypeError CD0404 beside values of another type, CD0463 for a choice without one type."""
    op = ">" if name == "max" else "<"
    extreme, *rest = (frozen(frame, value, name, span) for value in values)
    for value in rest:
        compared = compare_values(frame, op, value, extreme, span, as_test=True, by_value=True)
        test = truth.test_of(frame, compared, span)
        if isinstance(test, Static):
            extreme = value if test.value else extreme
        else:
            chosen = select.select_value(frame.ctx, test.expr, value, extreme, span)
            extreme = frozen(frame, chosen, name, span)
    return extreme


def extreme_by_key(
    frame: Frame, name: str, values: Sequence[Value], keys: Sequence[Value], span: Span
) -> Value:
    """Return the first value with the largest ("max") or smallest ("min") key."""
    op = ">" if name == "max" else "<"
    pairs = [Group(pair) for pair in zip(keys, values, strict=True)]
    extreme, *rest = (frozen(frame, pair, name, span) for pair in pairs)
    for pair in rest:
        assert isinstance(pair, Group) and isinstance(extreme, Group)
        sides = pair.items[0], extreme.items[0]
        compared = compare_values(frame, op, *sides, span, as_test=True, by_value=True)
        test = truth.test_of(frame, compared, span)
        if isinstance(test, Static):
            extreme = pair if test.value else extreme
            continue
        both = zip(pair.items, extreme.items, strict=True)
        chosen = (select.select_value(frame.ctx, test.expr, *side, span) for side in both)
        extreme = frozen(frame, Group(tuple(chosen)), name, span)
    assert isinstance(extreme, Group)
    return extreme.items[1]


def sorted_values(
    frame: Frame, values: Sequence[Value], keys: Sequence[Value], op: str, span: Span
) -> list[Value]:
    """Return values in the order of their keys, in place of those that are equal: by exchanges of
    neighbours, ascending for `op` "<" and descending for ">"."""
    pairs = [Group((key, value)) for key, value in zip(keys, values, strict=True)]
    ordered: list[Value] = [frozen(frame, pair, "sorted", span) for pair in pairs]
    for end in range(len(ordered) - 1, 0, -1):
        for n in range(end):
            first, second = ordered[n : n + 2]
            assert isinstance(first, Group) and isinstance(second, Group)
            later, earlier = second.items[0], first.items[0]
            compared = compare_values(frame, op, later, earlier, span, as_test=True, by_value=True)
            test = truth.test_of(frame, compared, span)
            if isinstance(test, Static):
                ordered[n : n + 2] = (second, first) if test.value else (first, second)
                continue
            sides = (second, first), (first, second)
            chosen = (select.select_value(frame.ctx, test.expr, *side, span) for side in sides)
            both = frozen(frame, Group(tuple(chosen)), "sorted", span)
            assert isinstance(both, Group)
            ordered[n : n + 2] = both.items
    return [pair.items[1] for pair in ordered if isinstance(pair, Group)]


def _one_or_other(
    frame: Frame, equal: Expr, rest: Value, differs: Value, span: Span, as_test: bool
) -> Value:
    """Return the comparison of one pair of items where they differ, else that of the rest.

    CdTypeError CD0463 where it is a bool of Python's on one side, and of NumPy's on the other.
    """
    kinds = {as_scalar(side, span).kind for side in (rest, differs)}
    if len(kinds) > 1 and not as_test:
        raise error(
            "CD0463", CdTypeError, "this is a bool of Python's or one of NumPy's, depending on "
            "which items differ", span,
            helps=("use it as a test: `if a < b: ...`, `True if a < b else False`",),
        )  # fmt: skip
    tests = [truth.test_of(frame, side, span) for side in (rest, differs)]
    kind = kinds.pop() if len(kinds) == 1 else BOOL
    if tests[0] == tests[1]:
        return differs
    return Scalar(Select(equal, *(as_scalar(test, span).expr for test in tests)), kind)


def _items_equal(
    frame: Frame, left: Value, right: Value, span: Span, by_value: bool = False
) -> Static | Scalar:
    """Return whether two items are one object, unless `by_value`, or equal: Python does not compare
    an object with itself, so that NaN is in a list of it."""
    if not by_value and identity.is_same_item(frame, left, right, span):
        return Static(True)
    return truth.test_of(frame, compare_values(frame, "==", left, right, span, True), span)


def _compare_typed(
    ctx: Context, op: str, left: tuple[Expr, Kind], right: tuple[Expr, Kind]
) -> tuple[Expr, Kind]:
    """Return one comparison; a Python int out of the other type's range decides it statically."""
    exact = of_int_and_float(ctx, OPS[_COMPARE[op]], left, right)
    if exact is not None:
        return exact, WEAK_BOOL
    sides = (left, right), (right, left)
    for at, ((expr, kind), (_, other_kind)) in enumerate(sides):
        value = expr.index.constant if isinstance(expr, Position) else None
        value = expr.value if isinstance(expr, Const) and isinstance(expr.value, int) else value
        if kind == WEAK_INT and not other_kind.weak and value is not None:
            if not fits(value, other_kind.dtype):
                outcome = PYTHON[op](*((value, 0) if at == 0 else (0, value)))
                return Const(bool(outcome), dtypes.bool_), BOOL
    return apply(_COMPARE[op], left, right)


def _test_membership(frame: Frame, op: str, left: Value, right: Group, span: Span) -> Value:
    """Return whether an item of a tuple or list is a value, or equals it."""
    found: Value = Static(False)
    for item in right.items:
        test = _items_equal(frame, left, item, span)
        so_far = truth.test_of(frame, found, span)
        if isinstance(so_far, Static):
            found = Static(True) if so_far.value else test
        elif isinstance(test, Static):
            found = Static(True) if test.value else so_far
        else:
            found = Scalar(Select(so_far.expr, TRUE, test.expr), WEAK_BOOL)
    return truth.negation(frame, found, span) if op == "not in" else truth.of_python(found)
