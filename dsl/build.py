"""`build`: Typed to Assignments: every reduction inside an expression becomes its own assignment.

    y[i, j] = e[i, j] / sum[k](e[i, k])    becomes    t[i] = sum over k of e[i, k]
                                                      y[i, j] = e[i, j] / t[i]

The new array is indexed by the symbols that the reduction uses, so that work is done once for
each value of them. An assignment whose whole value is one reduction keeps it as its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..lowering.diagnostic import Span
from ..lowering.ir import dtypes
from ..lowering.ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Check,
    Fault,
    For,
    Let,
    Pair,
    Print,
    Procedure,
    Statement,
    While,
)  # fmt: skip
from ..lowering.ir.expressions import (
    Apply,
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
    Reduce,
    Select,
    rebuild,
    walk,
)  # fmt: skip
from ..lowering.ir.indexing import Affine, Range, Symbol, const, var
from ..lowering.ir.node import Node
from ..lowering.ir.ops import OPS, PAIR_OPS
from ..lowering.ir.walk import binds, free_symbols, statements
from .elaborate.proof import Known, extreme
from .elaborate.types import both, negate
from .elaborate.ways_out import WAYS_OUT


@dataclass
class _Builder:
    """New nodes and symbols of one build; ids continue those of the elaboration."""

    serial: int
    locals: list[Node] = field(default_factory=list)

    def node(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        self.serial += 1
        node = Node(self.serial, label, shape, dtype)
        self.locals.append(node)
        return node

    def symbol(self, name: str) -> Symbol:
        self.serial += 1
        return Symbol(name, self.serial)


def build(procedure: Procedure) -> Procedure:
    """Return the procedure without `Reduce`: IR 1 as `verify` wants it."""
    builder = _Builder(_last_serial(procedure))
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


def _body(builder: _Builder, body: Sequence[Statement], known: Known) -> tuple[Statement, ...]:
    out: list[Statement] = []
    for statement in body:
        match statement:
            case Assign():
                out += _assign(builder, statement, known)
            case For(symbol, lo, hi, step, inner):
                ends = (lo, hi - 1) if step > 0 else (hi + 1, lo)
                inside = known.with_bounds(symbol, *ends).with_facts(ends[1] - ends[0])
                out.append(replace(statement, body=_body(builder, inner, inside)))
            case While(prelude, test, inner):
                made = list(_body(builder, prelude, known))
                test = _hoist(builder, test, Domain(), (), made, known, statement.span, {})
                done = _body(builder, inner, known.assuming(test))
                out.append(replace(statement, prelude=tuple(made), test=test, body=done))
            case Branch(test, then, other):
                test = _hoist(builder, test, Domain(), (), out, known, statement.span, {})
                yes = _body(builder, then, known.assuming(test))
                no = _body(builder, other, known.assuming(negate(test)))
                out.append(replace(statement, test=test, then=yes, other=no))
            case Block(_, inner):
                out.append(replace(statement, body=_body(builder, inner, known)))
            case Let(_, value):
                value = _hoist(builder, value, Domain(), (), out, known, statement.span, {})
                out.append(replace(statement, value=value))
            case Check(test, _, values, over):
                seen: dict[Expr, Expr] = {}
                test = _hoist(builder, test, over, (), out, known, statement.span, seen)
                values = tuple(
                    _hoist(builder, v, over, (), out, known, statement.span, seen) for v in values
                )
                out.append(replace(statement, test=test, values=values))
            case Print(pieces):
                seen = {}
                done_pieces = tuple(
                    p if isinstance(p, str)
                    else _hoist(builder, p, Domain(), (), out, known, statement.span, seen)
                    for p in pieces
                )  # fmt: skip
                out.append(replace(statement, pieces=done_pieces))
            case _:
                out.append(statement)
    return tuple(out)


def _assign(builder: _Builder, statement: Assign, known: Known) -> list[Statement]:
    out: list[Statement] = []
    seen: dict[Expr, Expr] = {}
    whole = Domain((*statement.free.ranges, *statement.reduced.ranges), statement.free.where)
    direct = _direct(builder, statement, known)
    if direct is not None:
        return direct
    free = _predicate(builder, statement.free, out, known, statement.span, seen)
    value = _hoist(builder, statement.value, whole, (), out, known, statement.span, seen)
    index = tuple(
        Dynamic(_hoist(builder, i.value, whole, (), out, known, statement.span, seen))
        if isinstance(i, Dynamic) else i
        for i in statement.target.index
    )  # fmt: skip
    target = Access(statement.target.node, index)
    out.append(replace(statement, target=target, value=value, free=free))
    return out


def _predicate(
    builder: _Builder,
    domain: Domain,
    out: list[Statement],
    known: Known,
    span: Span,
    seen: dict[Expr, Expr],
) -> Domain:
    if domain.where is None:
        return domain
    ranges = Domain(domain.ranges)
    return Domain(domain.ranges, _hoist(builder, domain.where, ranges, (), out, known, span, seen))


def _direct(builder: _Builder, statement: Assign, known: Known) -> list[Statement] | None:
    """Return the statement with its one reduction as its own accumulation; None where it is not."""
    value = statement.value
    if statement.op is not None or not isinstance(value, Reduce) or value.position is not None:
        return None
    if value.dtype is not statement.target.node.dtype or not _covers(statement):
        return None
    out: list[Statement] = []
    span, seen = statement.span, dict[Expr, Expr]()
    free = _predicate(builder, statement.free, out, known, span, seen)
    over = Domain((*free.ranges, *value.domain.ranges), free.where)
    reduced = _predicate_within(builder, value.domain, over, out, known, span, seen)
    inner = _hoist(builder, value.value, over, (value.domain.where,), out, known, span, seen)
    out += _empty_check(value, free, known, span)
    out.append(
        replace(statement, op=value.op, initialize=True, value=inner, free=free, reduced=reduced)
    )
    return out


def _predicate_within(
    builder: _Builder,
    domain: Domain,
    over: Domain,
    out: list[Statement],
    known: Known,
    span: Span,
    seen: dict[Expr, Expr],
) -> Domain:
    if domain.where is None:
        return domain
    return Domain(domain.ranges, _hoist(builder, domain.where, over, (), out, known, span, seen))


def _covers(statement: Assign) -> bool:
    """Whether each target element is visited once: every free symbol is an index of its own."""
    plain = [i.symbol for i in statement.target.index if isinstance(i, Affine)]
    if any(isinstance(i, Dynamic) for i in statement.target.index):
        return False
    return all(symbol in plain for symbol in statement.free.symbols)


def _hoist(
    builder: _Builder,
    expr: Expr,
    domain: Domain,
    conditions: tuple[Expr | None, ...],
    out: list[Statement],
    known: Known,
    span: Span,
    seen: dict[Expr, Expr],
) -> Expr:
    """Return the expression with each reduction replaced by a read of its own array.

    `domain` is what the expression is evaluated over, `conditions` the tests under which it is.
    """
    if not any(isinstance(part, Reduce) for part in walk(expr)):
        return expr
    match expr:
        case Reduce():
            if expr not in seen:
                seen[expr] = _own_array(builder, expr, domain, conditions, out, known, span, seen)
            return seen[expr]
        case Select(test, yes, no):
            test = _hoist(builder, test, domain, conditions, out, known, span, seen)
            inside = (*conditions, test), (*conditions, negate(test))
            return Select(
                test,
                _hoist(builder, yes, domain, inside[0], out, known, span, seen),
                _hoist(builder, no, domain, inside[1], out, known, span, seen),
            )
        case _:
            return rebuild(
                expr,
                lambda e: _hoist(builder, e, domain, conditions, out, known, span, seen),
                lambda index: index,
            )


def _own_array(
    builder: _Builder,
    reduce: Reduce,
    domain: Domain,
    conditions: tuple[Expr | None, ...],
    out: list[Statement],
    known: Known,
    span: Span,
    seen: dict[Expr, Expr],
) -> Expr:
    """Emit `t[used symbols] = reduction` and return the read of `t`."""
    where = both(domain.where, *conditions)
    ranges = _needed(reduce, where, domain)
    inner_domain = Domain((*ranges, *reduce.domain.ranges), where)
    reduced = _predicate_within(builder, reduce.domain, inner_domain, out, known, span, seen)
    value = _hoist(
        builder, reduce.value, inner_domain, (reduce.domain.where,), out, known, span, seen
    )
    lows = [extreme(r.lo, ranges[:n], upwards=False) for n, r in enumerate(ranges)]
    highs = [extreme(r.hi, ranges[:n], upwards=True) for n, r in enumerate(ranges)]
    # an empty range may have its ends crossed
    shape = tuple(known.maximum(hi - lo, const(0)) for lo, hi in zip(lows, highs, strict=True))
    index = tuple(var(r.symbol) - lo for r, lo in zip(ranges, lows, strict=True))
    free = Domain(ranges, where)
    out += _empty_check(reduce, free, known, span)
    if reduce.position is not None:
        return _pair(builder, reduce, reduced, value, shape, index, free, out, span)
    node = _allocated(builder, _label(reduce), shape, reduce.dtype, out, span)
    target = Access(node, index)
    out.append(Assign(target, reduce.op, True, value, free, reduced, span=span))
    return Read(node, index, span)


def _pair(
    builder: _Builder,
    reduce: Reduce,
    reduced: Domain,
    value: Expr,
    shape: tuple[Affine, ...],
    index: tuple[Affine, ...],
    free: Domain,
    out: list[Statement],
    span: Span,
) -> Expr:
    assert reduce.position is not None
    best = _allocated(builder, "best", shape, value.dtype, out, span)
    at = _allocated(builder, _label(reduce), shape, dtypes.int64, out, span)
    pair = Pair(Access(at, index), reduce.position)
    op = PAIR_OPS[reduce.op.name]
    out.append(Assign(Access(best, index), op, True, value, free, reduced, pair, span))
    return Read(at, index, span)


def _allocated(
    builder: _Builder,
    label: str,
    shape: tuple[Affine, ...],
    dtype: dtypes.DType,
    out: list[Statement],
    span: Span,
) -> Node:
    node = builder.node(label, shape, dtype)
    if node.static_shape is None:
        out.append(Alloc(node, span))
    return node


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


def _empty_check(reduce: Reduce, free: Domain, known: Known, span: Span) -> list[Statement]:
    """Return a check where an argmin, or an integer max or min, might have nothing to go over."""
    name = reduce.op.name
    strict = reduce.position is not None or name in ("max", "min") and reduce.dtype.kind in "iu"
    if not strict or reduce.domain.where is not None:
        return []
    inside = known.with_ranges(free.ranges)
    tests: list[Expr] = []
    for r in reduce.domain.ranges:
        if not inside.less(r.lo, r.hi):
            tests.append(Apply(OPS["lt"], (Position(r.lo), Position(r.hi)), dtypes.bool_))
    if not tests:
        return []
    test = both(*tests)
    assert test is not None
    text, helps = f"`{name}` of no elements has no value", WAYS_OUT["CD0603"]
    fault = Fault("CD0603", "CdValueError", text, helps)
    return [Check(test, fault, (), free, span)]
