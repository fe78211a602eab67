"""`build`: Typed to Assignments: every reduction inside an expression becomes its own assignment.

    y[i, j] = e[i, j] / sum[k](e[i, k])    becomes    t[i] = sum over k of e[i, k]
                                                      y[i, j] = e[i, j] / t[i]

The new array is indexed by the symbols that the reduction uses, so that work is done once for
each value of them. An assignment whose whole value is one reduction keeps it as its own where each
of its cells has another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import takewhile
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (  # fmt: skip
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    Fault,
    For,
    Let,
    Pair,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.expressions import (  # fmt: skip
    Apply,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
    conjuncts,
    rebuild,
    walk,
)
from ...lowering.ir.indexing import Affine, Range, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, PAIR_OPS
from ...lowering.ir.walk import binds, free_symbols, statements
from ..values.fix_hints import WAYS_OUT
from ..values.range_analysis import Known, extreme
from ..values.types import both, negate

Conditions = tuple[Expr | None, ...]
"""Tests under which an expression is evaluated, outermost first; None says nothing."""

Spanned = Assign | For | While | Branch | Block | Let | Alloc | Permute | Check | Print


@dataclass
class _Builder:
    """New nodes and symbols of one build; ids continue those of the elaboration."""

    serial: int
    checked: bool
    """Whether what is computed for nothing could be told."""
    locals: list[Node] = field(default_factory=list)

    def node(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        self.serial += 1
        node = Node(self.serial, label, shape, dtype)
        self.locals.append(node)
        return node


def build(procedure: Procedure, checked: bool = False) -> Procedure:
    """Return the procedure without `Reduce`: IR 1 as `verify` wants it.

    Where it will be `checked` nothing is computed for points that do not need it.
    """
    builder = _Builder(_last_serial(procedure), checked)
    known = Known()
    for symbol in (x for p in procedure.parameters for e in p.node.shape for x in e.symbols()):
        known = known.with_bounds(symbol, const(2), None)
    body = _body(builder, procedure.body, known)
    nodes = tuple(procedure.locals) + tuple(builder.locals)
    return replace(procedure, body=body, locals=nodes)


def _last_serial(procedure: Procedure) -> int:
    nodes = [p.node for p in procedure.parameters]
    ids = [node.id for node in (*nodes, *procedure.locals, *procedure.results)]
    return max([*ids, *_serials(procedure.body)], default=0) + 1


def _serials(body: Iterable[Statement]) -> Iterable[int]:
    for statement in statements(body):
        for symbol in binds(statement):
            yield symbol.serial


@dataclass(frozen=True, slots=True)
class _Place:
    """Where reductions are taken out of a statement: what goes before it, and what is known there.

    `seen` are the arrays made for it so far, by reduction, domain and conditions.
    """

    builder: _Builder
    out: list[Statement]
    known: Known
    span: Span
    seen: dict[tuple[Expr, Domain, Conditions], Expr] = field(default_factory=dict)

    def allocate(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        node = self.builder.node(label, shape, dtype)
        if node.static_shape is None:
            self.out.append(Alloc(node, self.span))
        return node


def _body(builder: _Builder, body: Sequence[Statement], known: Known) -> tuple[Statement, ...]:
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Break | Continue):
            out.append(statement)
        else:
            at = _Place(builder, out, known, statement.span)
            out.append(_statement(at, statement))
    return tuple(out)


def _statement(at: _Place, statement: Spanned) -> Statement:
    """Return a statement without reductions; what they become is emitted before it."""
    builder, known = at.builder, at.known
    match statement:
        case Assign():
            return _direct(at, statement) or _assign(at, statement)
        case For(symbol, lo, hi, step, inner):
            ends = (lo, hi - 1) if step > 0 else (hi + 1, lo)
            inside = known.with_bounds(symbol, *ends).with_facts(ends[1] - ends[0])
            return replace(statement, body=_body(builder, inner, inside))
        case While(prelude, test, inner):
            made = list(_body(builder, prelude, known))
            test = _hoist(_Place(builder, made, known, at.span), test, Domain())
            done = _body(builder, inner, known.assuming(test))
            return replace(statement, prelude=tuple(made), test=test, body=done)
        case Branch(test, then, other):
            test = _hoist(at, test, Domain())
            yes = _body(builder, then, known.assuming(test))
            no = _body(builder, other, known.assuming(negate(test)))
            return replace(statement, test=test, then=yes, other=no)
        case Block(_, inner):
            return replace(statement, body=_body(builder, inner, known))
        case Let(_, value):
            return replace(statement, value=_hoist(at, value, Domain()))
        case Check(test, _, values, over):
            test = _hoist(at, test, over)
            values = tuple(_hoist(at, value, over) for value in values)
            return replace(statement, test=test, values=values)
        case Print(pieces):
            done_pieces = tuple(
                piece if isinstance(piece, str) else _hoist(at, piece, Domain()) for piece in pieces
            )
            return replace(statement, pieces=done_pieces)
        case Alloc() | Permute():
            return statement
        case _:
            assert_never(statement)


def _assign(at: _Place, statement: Assign) -> Assign:
    whole = Domain((*statement.free.ranges, *statement.reduced.ranges), statement.free.where)
    free = _predicate(at, statement.free, Domain(statement.free.ranges))
    value = _hoist(at, statement.value, whole)
    index = tuple(
        Dynamic(_hoist(at, i.value, whole)) if isinstance(i, Dynamic) else i
        for i in statement.target.index
    )
    target = Access(statement.target.node, index)
    return replace(statement, target=target, value=value, free=free)


def _predicate(at: _Place, domain: Domain, over: Domain) -> Domain:
    """Return a domain whose test has no reductions; it is evaluated over another domain."""
    if domain.where is None:
        return domain
    return Domain(domain.ranges, _hoist(at, domain.where, over))


def _direct(at: _Place, statement: Assign) -> Assign | None:
    """Return the statement with its one reduction as its own accumulation; None where it is not."""
    value = statement.value
    if statement.op is not None or not isinstance(value, Reduce) or value.position is not None:
        return None
    if value.dtype is not statement.target.node.dtype or not _covers(statement):
        return None
    if not _differs(at, value, statement.free):
        return None
    free = _predicate(at, statement.free, Domain(statement.free.ranges))
    over = Domain((*free.ranges, *value.domain.ranges), free.where)
    reduced = _predicate(at, value.domain, over)
    inner = _hoist(at, value.value, over, (value.domain.where,))
    _check_not_empty(at, value, free)
    return replace(statement, op=value.op, initialize=True, value=inner, free=free, reduced=reduced)


def _covers(statement: Assign) -> bool:
    """Whether each target element is visited once: every free symbol is an index of its own."""
    plain = [i.symbol for i in statement.target.index if isinstance(i, Affine)]
    if any(isinstance(i, Dynamic) for i in statement.target.index):
        return False
    return all(symbol in plain for symbol in statement.free.symbols)


def _differs(at: _Place, reduce: Reduce, free: Domain) -> bool:
    """Whether a reduction is another one for each point, and not the same along some range."""
    needed = _needed(reduce, _tests(at, reduce, free), free)
    known = at.known.with_ranges(free.ranges)
    return all(r in needed or not known.less(r.lo + 1, r.hi) for r in free.ranges)


def _hoist(at: _Place, expr: Expr, domain: Domain, conditions: Conditions = ()) -> Expr:
    """Return the expression with each reduction replaced by a read of its own array.

    `domain` is what the expression is evaluated over, `conditions` the tests under which it is.
    """
    if not any(isinstance(part, Reduce) for part in walk(expr)):
        return expr
    match expr:
        case Reduce():
            for n in range(len(conditions) + 1):  # fewer tests: computed for these points too
                if (made := at.seen.get((expr, domain, conditions[:n]))) is not None:
                    return made
            made = at.seen[expr, domain, conditions] = _own_array(at, expr, domain, conditions)
            return made
        case Select(test, yes, no):
            test = _hoist(at, test, domain, conditions)
            yes = _hoist(at, yes, domain, (*conditions, test))
            return Select(test, yes, _hoist(at, no, domain, (*conditions, negate(test))))
        case _:
            return rebuild(
                expr, lambda inner: _hoist(at, inner, domain, conditions), lambda index: index
            )


def _own_array(at: _Place, reduce: Reduce, domain: Domain, conditions: Conditions) -> Expr:
    """Emit `t[used symbols] = reduction` and return the read of `t`."""
    where = _tests(at, reduce, domain, conditions)
    ranges = _needed(reduce, where, domain)
    where = both(where, *_points(at, reduce, domain, ranges))
    inner_domain = Domain((*ranges, *reduce.domain.ranges), where)
    reduced = _predicate(at, reduce.domain, inner_domain)
    value = _hoist(at, reduce.value, inner_domain, (reduce.domain.where,))
    lows = [extreme(r.lo, ranges[:n], upwards=False) for n, r in enumerate(ranges)]
    highs = [extreme(r.hi, ranges[:n], upwards=True) for n, r in enumerate(ranges)]
    # an empty range may have its ends crossed
    sizes = (at.known.maximum(hi - lo, const(0)) for lo, hi in zip(lows, highs, strict=True))
    shape = tuple(sizes)
    index = tuple(var(r.symbol) - lo for r, lo in zip(ranges, lows, strict=True))
    free = Domain(ranges, where)
    _check_not_empty(at, reduce, free)
    op, pair = reduce.op, None
    node = target = at.allocate(_label(reduce), shape, reduce.dtype)
    if reduce.position is not None:  # the position is what is asked for, beside the best value
        op, pair = PAIR_OPS[op.name], Pair(Access(node, index), reduce.position)
        target = at.allocate("best", shape, value.dtype)
    at.out.append(Assign(Access(target, index), op, True, value, free, reduced, pair, span=at.span))
    made = Read(node, index, at.span)
    if reduce.position is not None:
        _check_not_empty(at, reduce, free, made)
    return made


def _label(reduce: Reduce) -> str:
    names = {"add": "total", "mul": "product", "max": "largest", "min": "smallest", "or": "any",
             "and": "all", "argmin": "argmin", "argmax": "argmax"}  # fmt: skip
    return names.get(reduce.op.name, reduce.op.name)


def _needed(reduce: Reduce, where: Expr | None, domain: Domain) -> tuple[Range, ...]:
    """Return the ranges of the domain that a reduction depends on, through bounds and tests too."""
    wanted = set(free_symbols(replace(reduce, op=OPS["add"])))
    own = {r.symbol for r in domain.ranges}
    tested = frozenset() if where is None else free_symbols(where) & own
    wanted |= tested  # what is read may be in range only where the test holds
    while True:
        more = {
            s for r in domain.ranges if r.symbol in wanted
            for s in (r.lo.symbols() | r.hi.symbols()) & own
        }  # fmt: skip
        if more <= wanted:
            return tuple(r for r in domain.ranges if r.symbol in wanted)
        wanted |= more


def _tests(at: _Place, reduce: Reduce, domain: Domain, conditions: Conditions = ()) -> Expr | None:
    """Return the test under which a reduction is computed.

    `e[i] / sum[k](e[k]) if m[i] else 0` needs one sum, for some `i` or for none: tests that tell
    apart points for which it is the same are left out, where it can do no harm.
    """
    whole, needed = both(domain.where, *conditions), _needed(reduce, None, domain)
    others = {r.symbol for r in domain.ranges if r not in needed}
    if whole is None or at.builder.checked or others.isdisjoint(free_symbols(whole)):
        return whole
    if not _is_harmless(at, reduce, needed):
        return whole
    same = lambda test: others.isdisjoint(free_symbols(test))  # noqa: E731
    return both(*takewhile(same, conjuncts(whole)))  # an earlier test may guard a later one


def _is_harmless(at: _Place, reduce: Reduce, over: tuple[Range, ...]) -> bool:
    """Whether a reduction has a value for all points of some ranges: what it reads is there."""
    parts = list(walk(reduce))
    inner = [part.domain for part in parts if isinstance(part, Reduce)]
    known = at.known.with_ranges((*over, *(r for domain in inner for r in domain.ranges)))
    return not any(_fails(part, known) for part in parts)


def _fails(part: Expr, known: Known) -> bool:
    """Whether a part of an expression may have no value."""
    match part:
        case Read(node, index):
            pairs = zip(index, node.shape, strict=True)
            return not all(_is_inside(at, size, known) for at, size in pairs)
        case Reduce(op) if part.position is not None or op.name in ("max", "min"):
            sure = part.domain.where is None
            return not (sure and all(known.less(r.lo, r.hi) for r in part.domain.ranges))
        case _:
            return False


def _is_inside(index: Index, size: Affine, known: Known) -> bool:
    return isinstance(index, Affine) and known.less(index, size) and known.nonnegative(index)


def _points(at: _Place, reduce: Reduce, domain: Domain, kept: tuple[Range, ...]) -> Iterator[Expr]:
    """Yield tests that the ranges that are not kept have points: where there is none, what the
    reduction reads may be out of range."""
    inside = at.known.with_ranges((*kept, *reduce.domain.ranges))
    reads = (e for e in walk(reduce) if isinstance(e, Read))
    pairs = (pair for read in reads for pair in zip(read.index, read.node.shape, strict=True))
    if all(_is_inside(i, size, inside) for i, size in pairs):
        return
    known = at.known.with_ranges(domain.ranges)
    for n, r in enumerate(domain.ranges):
        if r not in kept and not known.less(r.lo, r.hi):
            others = tuple(one for one in domain.ranges[:n] if one not in kept)
            size = extreme(r.hi - r.lo, others, upwards=True)
            yield Apply(OPS["lt"], (Position(const(0)), Position(size)), dtypes.bool_)


def _check_not_empty(at: _Place, reduce: Reduce, free: Domain, place: Read | None = None) -> None:
    """Emit a check where an argmin, or an integer max or min, might have nothing to go over.

    Its ranges tell, or whether they have a point; of positions the `place` found, afterwards.
    """
    name, over, is_place = reduce.op.name, reduce.domain, reduce.position is not None
    is_limit = name in ("max", "min") and reduce.dtype.kind in "iu" and over.where is None
    if not is_place and not is_limit:
        return
    inside = at.known.with_ranges((*free.ranges, *over.ranges))
    open_ = [r for r in over.ranges if not inside.less(r.lo, r.hi)]
    bounds = [index for r in open_ for index in (r.lo, r.hi)]
    is_sought = over.where is not None or any(b.symbols() & {*over.symbols} for b in bounds)
    if (place is not None) != (is_sought and is_place):
        return
    test: Expr | None
    if place is not None:
        test = Apply(OPS["ge"], (place, Const(0, dtypes.int64)), dtypes.bool_)
    elif is_sought:
        any_ = Reduce(OPS["or"], over, Const(True, dtypes.bool_), dtypes.bool_)
        test = _hoist(at, any_, free)
    else:
        sides = ((Position(r.lo), Position(r.hi)) for r in open_)
        test = both(*(Apply(OPS["lt"], pair, dtypes.bool_) for pair in sides))
    if test is not None:
        text, helps = f"`{name}` of no elements has no value", WAYS_OUT["CD0603"]
        fault = Fault("CD0603", "CdValueError", text, helps)
        at.out.append(Check(test, fault, (), free, at.span))
