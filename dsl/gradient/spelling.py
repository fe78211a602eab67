"""Expressions and subscripts as text whose operations are words of the language."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.diagnostic import NOWHERE
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.ir import dtypes
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Select,
    rebuild,
)
from ...lowering.ir.indexing import Affine, Quasi, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.text import Scope, expr_text
from ...lowering.ir.text import element_text as with_subscripts

_NUMPY = {
    "fmax": "np.fmax", "fmin": "np.fmin", "isnan": "np.isnan",
    "isinf": "np.isinf", "isfinite": "np.isfinite", "signbit": "np.signbit", "hypot": "np.hypot",
    "copysign": "np.copysign", "logaddexp": "np.logaddexp", "heaviside": "np.heaviside",
    "arctan2": "np.arctan2", "cbrt": "np.cbrt", "sign": "np.sign", "fmod": "np.fmod",
    "trunc": "np.trunc", "rint": "np.rint", "recip": "np.reciprocal",
}  # fmt: skip

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_QUOTIENTS = frozenset(("div", "floordiv", "mod"))
UNSPELLED = frozenset(("round_to", "round_decimal"))
"""Operations for which the language has no word: roundings to digits that are no constant."""


def value_text(expr: Expr, scope: Scope) -> str:
    """Return an expression as text. Raises NotDifferentiable where the language has no word."""
    return expr_text(_worded(expr), scope)


def folded(expr: Expr) -> Expr:
    """Return an expression without the sides that constant tests do not choose, whose letters would
    have no ranges."""
    expr = rebuild(expr, folded, lambda index: index)
    match expr:
        case Apply(op, (Const(left), Const(right)), dtypes.bool_) if op.name in _COMPARISONS:
            return Const(bool(op.meaning(left, right)), dtypes.bool_)
        case Select(Const(chosen), yes, no):
            return yes if chosen else no
        case Apply(op, (Const(value, dtypes.bool_),)) if op.name == "logical_not":
            return Const(not value, dtypes.bool_)
        case _:
            return expr


def index_text(index: Affine, scope: Scope) -> str:
    """Return an index expression as text."""
    return expr_text(_positive_first(index), scope)


def element_text(node: Node, index: tuple[Index, ...], scope: Scope) -> str:
    """Return an element of an array as text; the name alone for one of rank 0."""
    return with_subscripts(node, tuple(map(_subscript, index)), scope)


def _subscript(index: Index) -> Index:
    return Dynamic(_worded(index.value) if isinstance(index, Dynamic) else _positive_first(index))


def _worded(expr: Expr) -> Expr:
    """Return an expression whose operations print as words of the language."""
    expr = rebuild(expr, _worded, lambda index: index)
    match expr:
        case Read(node, index):
            return Read(node, tuple(map(_subscript, index)))
        case Position(index):
            return _positive_first(index)
        case Select(test, Const(False, dtypes.bool_), Const(True, dtypes.bool_)):
            return Apply(OPS["logical_not"], (test,), dtypes.bool_)
        case Select(test, yes, Const(False, dtypes.bool_)):
            return Apply(OPS["and"], (test, yes), dtypes.bool_)
        case Select(test, Const(True, dtypes.bool_), no):
            return Apply(OPS["or"], (test, no), dtypes.bool_)
        case Cast(value, dtype) if value.dtype == dtype:
            return value
        case Apply(op, (Const(left, floats), Const(0.0 as zero)), _) if op.name in _QUOTIENTS:
            # of numbers in a text it is Python that divides, which raises
            with np.errstate(all="ignore"):
                quotient = op.meaning(floats.numpy.type(left), floats.numpy.type(zero))
            return Const(float(quotient), floats)
        case Apply(op, (value, Const(float() as digits)), dtype) if op.name == "round_to":
            decimals = Const(int(digits), dtypes.int64)
            return Apply(replace(op, name="np.round"), (value, decimals), dtype)
        case Apply(op, (value, Cast(Position() as decimals)), dtype) if op.name == "round_to":
            return Apply(replace(op, name="np.round"), (value, _worded(decimals)), dtype)
        case Apply(op) if op.name in UNSPELLED:
            raise NotDifferentiable(f"a statement with `{op.name}`", NOWHERE)
        case Apply(op, args, dtype) if op.name == "product":
            return Apply(OPS["mul"], args, dtype)
        case Apply(op, args, dtype) if op.name in _NUMPY:
            return Apply(replace(op, name=_NUMPY[op.name]), args, dtype)
        case _:
            return expr


def _positive_first(index: Affine) -> Expr:
    """Return an index expression as one whose text begins with no sign, where it can."""
    if all(isinstance(atom, Symbol) for atom, _ in index.terms) and (
        not index.terms or index.terms[0][1] > 0
    ):
        return Position(index)
    ordered = sorted(index.terms, key=lambda term: term[1] < 0)
    starts_with_offset = index.offset > 0 and ordered[0][1] < 0
    whole: Expr | None = Position(const(index.offset)) if starts_with_offset else None
    for atom, factor in ordered:
        term = _atom(atom)
        if abs(factor) != 1:
            term = _of_integers("mul", Position(const(abs(factor))), term)
        if whole is None:
            whole = term if factor > 0 else Apply(OPS["neg"], (term,), dtypes.int64)
        else:
            whole = _of_integers("add" if factor > 0 else "sub", whole, term)
    assert whole is not None
    if index.offset and not starts_with_offset:
        sign = "add" if index.offset > 0 else "sub"
        whole = _of_integers(sign, whole, Position(const(abs(index.offset))))
    return whole


def _atom(atom: Symbol | Quasi) -> Expr:
    if isinstance(atom, Symbol):
        return Position(var(atom))
    return _of_integers(atom.op, _positive_first(atom.left), _positive_first(atom.right))


def _of_integers(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[name], (left, right), dtypes.int64)
