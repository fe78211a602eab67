r"""Scalarization of complex numbers: pairs of real ones, which can be vectorized.

Changes: where a nest branches, leaves early, selects, divides or accumulates, each complex scalar
becomes two real ones, and complex operations are computed on their parts, by the formulae of the
generated C.

    while abs(z) <= 2:                     while hypot(re, im) <= 2:
        z = z * z + c                          re_2 = re * re - im * im + re_c
                                               im = re * im + im * re + im_c
                                               re = re_2
    y[i] = z                               y[i] = complex(re, im)

Precondition: operations that have such a formula. Postcondition: bit-identical: products and the
sums they are added to are rounded separately, as in those formulae.

>>> show(scalarize_complex, "for i in range(8):\n    u = x[i]\n    while abs(u) < 9:\n"
...      "        u = u * u\n    y[i] = u", y="c128[8]", x="c128[8]")
for i in 0..8:
    u_re = real(x[i])
    u_im = imag(x[i])
    u_re_2 = u_re
    u_im_2 = u_im
    while hypot(u_re_2, u_im_2) < 9.0:
        u_re_3 = u_re_2 * u_re_2 - u_im_2 * u_im_2
        u_im_2 = u_re_2 * u_im_2 + u_im_2 * u_re_2
        u_re_2 = u_re_3
    y[i] = complex(u_re_2, u_im_2)
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...base.diagnostic import Span
from ..analysis.complex_parts import (
    ComplexPair,
    ComplexSplitter,
    add_product,
    has_complex_subscript,
    has_formula,
    is_complex,
    needs_no_temporaries,
)
from ..analysis.effects import remove_unused_scalars, summarize
from ..ir.assignments import Access, Alloc, Break, Continue
from ..ir.expressions import Apply, Dynamic, Expr, Read, Select, reads, walk
from ..ir.fresh import fresh_for
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import expressions_of, statements, writes
from ..ir.walk import reads as reads_of
from .complex_planes import split_planes

Body = tuple[Stmt, ...]
_BRANCHING = frozenset(("div", "recip"))
"""Operations whose formula has branches."""
_KNOWN = Store | Update | If | While | For | Comment | Break | Continue | Alloc


def scalarize_complex(program: Program) -> Program:
    """Return the program with complex numbers as pairs of real ones, where that is a gain."""
    stmts = [stmt for kernel in program.kernels for stmt in kernel.body]
    locals_ = frozenset(n.id for n in program.locals if not n.rank and n.request is None)
    nests = [_Nest(stmt, _scalars(stmt) & locals_, _can_be_pairs(stmt)) for stmt in stmts]
    nests = _separable(nests)
    chosen = _close_over_scalars(nests, [nest for nest in nests if _is_gain(nest.stmt)])
    if not chosen:
        return program
    split = frozenset[int]().union(*(nest.scalars for nest in chosen))
    chosen_ids, parts = (
        {id(nest.stmt) for nest in chosen},
        ComplexSplitter(fresh_for(program), split),
    )
    kernels = tuple(
        replace(kernel, body=tuple(
            new for stmt in kernel.body
            for new in (_scalarize(stmt, parts) if id(stmt) in chosen_ids else (stmt,))
        ))
        for kernel in program.kernels
    )  # fmt: skip
    return remove_unused_scalars(parts.fresh.declared(replace(program, kernels=kernels)))


class _Nest(NamedTuple):
    """An outermost statement."""

    stmt: Stmt
    scalars: frozenset[int]
    """The complex scalars that it touches."""
    can: bool
    """Whether all complex operations in it have a formula of parts."""


def _separable(nests: list[_Nest]) -> list[_Nest]:
    """Return those that can compute with parts, and share no scalar with one that cannot."""
    while True:
        blocked = frozenset[int]().union(*(nest.scalars for nest in nests if not nest.can))
        if all(nest.scalars.isdisjoint(blocked) for nest in nests if nest.can):
            return [nest for nest in nests if nest.can]
        nests = [nest._replace(can=nest.can and not nest.scalars & blocked) for nest in nests]


def _close_over_scalars(nests: list[_Nest], chosen: list[_Nest]) -> list[_Nest]:
    """Return nests, and all others that share a scalar with one of them, directly or not."""
    while True:
        split = frozenset[int]().union(*(nest.scalars for nest in chosen))
        more = [nest for nest in nests if nest in chosen or nest.scalars & split]
        if len(more) == len(chosen):
            return chosen
        chosen = more


def _scalars(stmt: Stmt) -> frozenset[int]:
    """Return the ids of the complex scalars that a statement reads or writes."""
    nodes = (*reads_of((stmt,)), *writes((stmt,)))
    return frozenset(node.id for node in nodes if is_complex(node.dtype) and not node.rank)


def _can_be_pairs(stmt: Stmt) -> bool:
    """Whether each operation of a nest has a formula of parts, and no target depends on a complex
    number."""
    return all(
        isinstance(inner, _KNOWN)
        and all(map(has_formula, expressions_of(inner)))
        and (not isinstance(inner, While) or needs_no_temporaries(inner.test))
        and (not isinstance(inner, Store | Update) or _has_plain_target(inner))
        for inner in statements((stmt,))
    )


def _has_plain_target(stmt: Store | Update) -> bool:
    """Whether no complex number is in a statement's subscripts, and its value has a formula."""
    if has_complex_subscript(stmt.access.index):
        return False
    return isinstance(stmt, Store) or has_formula(_updated_value(stmt))


def _is_gain(stmt: Stmt) -> bool:
    """Whether a nest has complex operations that compilers do not vectorize."""
    inside = statements((stmt,))
    values = [part for nested in inside for value in expressions_of(nested) for part in walk(value)]
    return any(
        isinstance(nested, Update)
        and not nested.access.node.rank
        and is_complex(nested.access.node.dtype)
        for nested in inside
    ) or any(
        is_complex(part.dtype)
        and (
            isinstance(part, Select)
            or (isinstance(part, Apply) and part.op.name in _BRANCHING)
            or not summarize(stmt).kinds.isdisjoint((If, While))
        )
        for part in values
    )


def _scalarize(nest: Stmt, parts: ComplexSplitter) -> Body:
    """Return the statements that replace an outermost statement."""
    body = _body((nest,), parts)
    return tuple(new for stmt in body for new in split_planes(stmt, parts.fresh))


def _body(stmts: Body, parts: ComplexSplitter) -> Body:
    """Return a list of statements that compute with parts."""
    out: list[Stmt] = []
    for stmt in stmts:
        scalarized = _statement(stmt, parts)
        out += (*parts.before, *scalarized)
        parts.before.clear()
    return tuple(out)


def _statement(stmt: Stmt, parts: ComplexSplitter) -> Body:
    """Return a statement that computes with parts; what comes before it is in `parts`."""
    match stmt:
        case Store(Access(node, ()), value, span) if node.id in parts.split:
            return _store_pair(node, parts.pair(value, span), parts, span)
        case Update(access, _, Apply(op, (left, right)), _, span) if is_complex(
            access.node.dtype
        ) and (op.name == "product"):
            return _add_product(stmt, parts.parts(left, span), parts.parts(right, span), parts)
        case Update(Access(node, ()), op, value, _, span) if node.id in parts.split:
            if op.name == "add" and all(read.node != node for read in reads(value)):
                halves = zip(parts.halves(node), parts.pair(value, span))
                return tuple(replace(stmt, access=Access(n, ()), value=v) for n, v in halves)
            return _store_pair(node, parts.pair(_updated_value(stmt), span), parts, span)
        case Store(access, value, span) if is_complex(access.node.dtype):
            return (Store(access, parts.pair(value, span).joined(), span),)
        case Update(access, op, value, _, span) if is_complex(access.node.dtype):
            if op.name == "add" and any(isinstance(at, Dynamic) for at in access.index):
                return (replace(stmt, value=parts.pair(value, span).joined()),)
            return (Store(access, parts.pair(_updated_value(stmt), span).joined(), span),)
        case Store(_, value, span) | Update(_, _, value, _, span):
            return (replace(stmt, value=parts.real(value, span)),)
        case If(test, then, orelse, span):
            test, before = parts.real(test, span), tuple(parts.before)
            parts.before.clear()
            return (*before, If(test, _body(then, parts), _body(orelse, parts), span))
        case While(prelude, test, body, span):
            test = parts.real(test, span)
            return (While(_body(prelude, parts), test, _body(body, parts), span),)
        case For():
            return (replace(stmt, body=_body(stmt.body, parts)),)
        case _:
            return (stmt,)


def _add_product(
    stmt: Update, left: ComplexPair, right: ComplexPair, parts: ComplexSplitter
) -> Body:
    """Return the updates of both parts of a sum by a product of matrices, as in the generated C."""
    access, span = stmt.access, stmt.span
    if access.node.id not in parts.split or any(r.node == access.node for r in reads(stmt.value)):
        old = parts.pair(Read(access.node, access.index, span), span)
        total = add_product(old, left, right)
        if access.node.id in parts.split:
            return _store_pair(access.node, total, parts, span)
        return (Store(access, total.joined(), span),)
    re, im = parts.halves(access.node)
    minus = Apply(OPS["neg"], (right.im,), right.im.dtype)
    terms = (
        (re, left.re, right.re),
        (re, left.im, minus),
        (im, left.re, right.im),
        (im, left.im, right.re),
    )
    return tuple(
        replace(stmt, access=Access(n, ()), value=Apply(OPS["product"], (a, b), n.dtype))
        for n, a, b in terms
    )


def _updated_value(stmt: Update) -> Expr:
    """Return the value that an element has after an update."""
    old = Read(stmt.access.node, stmt.access.index, stmt.span)
    return Apply(stmt.op, (old, stmt.value), stmt.access.node.dtype)


def _store_pair(node: Node, pair: ComplexPair, parts: ComplexSplitter, span: Span) -> Body:
    """Return the stores of a pair to the parts of a scalar, as one assignment."""
    re, im = parts.halves(node)
    first, last = (Store(Access(n, ()), v, span) for n, v in zip((re, im), pair))
    if any(read.node == re for read in reads(pair.im)):
        stored = parts.stored(pair.re, re.label, span)
        first, last = last, Store(first.access, stored, span)
    return (first, last)
