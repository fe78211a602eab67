"""Hoisting of reductions out of expressions: each becomes an assignment to a temporary.

`build` lowers `Typed` to IR 1:

    y[i, j] = e[i, j] / sum[k](e[i, k])    becomes    t[i] = sum over k of e[i, k]
                                                      y[i, j] = e[i, j] / t[i]

The temporary is indexed by the symbols that the reduction depends on, so that it is computed once
for each value of them. An assignment whose whole value is one reduction becomes an accumulation
into its target where the reduction depends on every free symbol.
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
from ..values.range_analysis import Assumptions, extreme
from ..values.types import both, negate

Conditions = tuple[Expr | None, ...]
"""Predicates under which an expression is evaluated, outermost first; None is always true."""

Spanned = Assign | For | While | Branch | Block | Let | Alloc | Permute | Check | Print


@dataclass
class _Builder:
    """Allocator of nodes for one build; ids continue those of the elaboration."""

    serial: int
    checked: bool
    """Whether speculative evaluation is observable: checks are on."""
    locals: list[Node] = field(default_factory=list)

    def node(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        self.serial += 1
        node = Node(self.serial, label, shape, dtype)
        self.locals.append(node)
        return node


def build(procedure: Procedure, checked: bool = False) -> Procedure:
    """Return the procedure without `Reduce`.

    Postcondition: IR 1 that `verify` accepts. Where `checked`, no reduction is evaluated
    speculatively, for points that do not need it.
    """
    builder = _Builder(_last_serial(procedure), checked)
    assumptions = Assumptions()
    for symbol in (x for p in procedure.parameters for e in p.node.shape for x in e.symbols()):
        assumptions = assumptions.with_bounds(symbol, const(2), None)
    body = _normalize_body(builder, procedure.body, assumptions)
    nodes = tuple(procedure.locals) + tuple(builder.locals)
    return replace(procedure, body=body, locals=nodes)


def _last_serial(procedure: Procedure) -> int:
    nodes = [p.node for p in procedure.parameters]
    ids = [node.id for node in (*nodes, *procedure.locals, *procedure.results)]
    return max([*ids, *_bound_serials(procedure.body)], default=0) + 1


def _bound_serials(body: Iterable[Statement]) -> Iterable[int]:
    for statement in statements(body):
        for symbol in binds(statement):
            yield symbol.serial


@dataclass(frozen=True, slots=True)
class _InsertionPoint:
    """Insertion point for the reductions of a statement: the statements before it, and the facts.

    `seen` memoizes the reads of temporaries by reduction, domain and conditions.
    """

    builder: _Builder
    out: list[Statement]
    assumptions: Assumptions
    span: Span
    seen: dict[tuple[Expr, Domain, Conditions], Expr] = field(default_factory=dict)

    def allocate(self, label: str, shape: tuple[Affine, ...], dtype: dtypes.DType) -> Node:
        node = self.builder.node(label, shape, dtype)
        if node.static_shape is None:
            self.out.append(Alloc(node, self.span))
        return node


def _normalize_body(
    builder: _Builder, body: Sequence[Statement], assumptions: Assumptions
) -> tuple[Statement, ...]:
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Break | Continue):
            out.append(statement)
        else:
            at = _InsertionPoint(builder, out, assumptions, statement.span)
            out.append(_normalize_statement(at, statement))
    return tuple(out)


def _normalize_statement(at: _InsertionPoint, statement: Spanned) -> Statement:
    """Return a statement without reductions; their assignments are emitted before it."""
    builder, assumptions = at.builder, at.assumptions
    match statement:
        case Assign():
            return _accumulate_directly(at, statement) or _normalize_assign(at, statement)
        case For(symbol, lo, hi, step, inner):
            ends = (lo, hi - 1) if step > 0 else (hi + 1, lo)
            inside = assumptions.with_bounds(symbol, *ends).with_facts(ends[1] - ends[0])
            return replace(statement, body=_normalize_body(builder, inner, inside))
        case While(prelude, test, inner):
            new_prelude = list(_normalize_body(builder, prelude, assumptions))
            test = _hoist(
                _InsertionPoint(builder, new_prelude, assumptions, at.span), test, Domain()
            )
            new_body = _normalize_body(builder, inner, assumptions.assuming(test))
            return replace(statement, prelude=tuple(new_prelude), test=test, body=new_body)
        case Branch(test, then, orelse):
            test = _hoist(at, test, Domain())
            yes = _normalize_body(builder, then, assumptions.assuming(test))
            no = _normalize_body(builder, orelse, assumptions.assuming(negate(test)))
            return replace(statement, test=test, then=yes, orelse=no)
        case Block(_, inner):
            return replace(statement, body=_normalize_body(builder, inner, assumptions))
        case Let(_, value):
            return replace(statement, value=_hoist(at, value, Domain()))
        case Check(test, _, values, over):
            test = _hoist(at, test, over)
            values = tuple(_hoist(at, value, over) for value in values)
            return replace(statement, test=test, values=values)
        case Print(parts):
            new_parts = tuple(
                part if isinstance(part, str) else _hoist(at, part, Domain()) for part in parts
            )
            return replace(statement, fragments=new_parts)
        case Alloc() | Permute():
            return statement
        case _:
            assert_never(statement)


def _normalize_assign(at: _InsertionPoint, statement: Assign) -> Assign:
    domain = Domain((*statement.free.ranges, *statement.reduced.ranges), statement.free.where)
    free = _hoist_predicate(at, statement.free, Domain(statement.free.ranges))
    value = _hoist(at, statement.value, domain)
    index = tuple(
        Dynamic(_hoist(at, i.value, domain)) if isinstance(i, Dynamic) else i
        for i in statement.target.index
    )
    target = Access(statement.target.node, index)
    return replace(statement, target=target, value=value, free=free)


def _hoist_predicate(at: _InsertionPoint, domain: Domain, over: Domain) -> Domain:
    """Return a domain whose predicate, evaluated over another domain, has no reductions."""
    if domain.where is None:
        return domain
    return Domain(domain.ranges, _hoist(at, domain.where, over))


def _accumulate_directly(at: _InsertionPoint, statement: Assign) -> Assign | None:
    """Return a statement whose value is one reduction as an accumulation into its target.

    None where that is not possible.
    """
    value = statement.value
    if statement.op is not None or not isinstance(value, Reduce) or value.position is not None:
        return None
    if value.dtype is not statement.target.node.dtype or not _is_injective(statement):
        return None
    if not _depends_on_all_ranges(at, value, statement.free):
        return None
    free = _hoist_predicate(at, statement.free, Domain(statement.free.ranges))
    over = Domain((*free.ranges, *value.domain.ranges), free.where)
    reduced = _hoist_predicate(at, value.domain, over)
    inner = _hoist(at, value.value, over, (value.domain.where,))
    _check_not_empty(at, value, free)
    return replace(statement, op=value.op, initialize=True, value=inner, free=free, reduced=reduced)


def _is_injective(statement: Assign) -> bool:
    """Whether each target element is written once: every free symbol is a subscript by itself."""
    plain = [i.symbol for i in statement.target.index if isinstance(i, Affine)]
    if any(isinstance(i, Dynamic) for i in statement.target.index):
        return False
    return all(symbol in plain for symbol in statement.free.symbols)


def _depends_on_all_ranges(at: _InsertionPoint, reduce: Reduce, free: Domain) -> bool:
    """Whether a reduction depends on every free range of more than one point."""
    needed = _needed_ranges(reduce, _evaluation_predicate(at, reduce, free), free)
    assumptions = at.assumptions.with_ranges(free.ranges)
    return all(r in needed or not assumptions.less(r.lo + 1, r.hi) for r in free.ranges)


def _hoist(at: _InsertionPoint, expr: Expr, domain: Domain, conditions: Conditions = ()) -> Expr:
    """Return the expression with each reduction replaced by a read of its temporary.

    The expression is evaluated over `domain`, under the predicates `conditions`.
    """
    if not any(isinstance(part, Reduce) for part in walk(expr)):
        return expr
    match expr:
        case Reduce():
            for n in range(len(conditions) + 1):  # a weaker predicate covers these points, too
                if (read := at.seen.get((expr, domain, conditions[:n]))) is not None:
                    return read
            read = at.seen[expr, domain, conditions] = _emit_temporary(at, expr, domain, conditions)
            return read
        case Select(test, yes, no):
            test = _hoist(at, test, domain, conditions)
            yes = _hoist(at, yes, domain, (*conditions, test))
            return Select(test, yes, _hoist(at, no, domain, (*conditions, negate(test))))
        case _:
            return rebuild(
                expr, lambda inner: _hoist(at, inner, domain, conditions), lambda index: index
            )


def _emit_temporary(
    at: _InsertionPoint, reduce: Reduce, domain: Domain, conditions: Conditions
) -> Expr:
    """Emit `t[used symbols] = reduction` and return the read of `t`."""
    where = _evaluation_predicate(at, reduce, domain, conditions)
    ranges = _needed_ranges(reduce, where, domain)
    where = both(*_nonempty_tests(at, (reduce, where), domain, ranges), where)
    inner_domain = Domain((*ranges, *reduce.domain.ranges), where)
    reduced = _hoist_predicate(at, reduce.domain, inner_domain)
    value = _hoist(at, reduce.value, inner_domain, (reduce.domain.where,))
    lows = [extreme(r.lo, ranges[:n], upwards=False) for n, r in enumerate(ranges)]
    highs = [extreme(r.hi, ranges[:n], upwards=True) for n, r in enumerate(ranges)]
    # an empty range may have hi < lo
    sizes = (at.assumptions.maximum(hi - lo, const(0)) for lo, hi in zip(lows, highs, strict=True))
    shape = tuple(sizes)
    index = tuple(var(r.symbol) - lo for r, lo in zip(ranges, lows, strict=True))
    free = Domain(ranges, where)
    _check_not_empty(at, reduce, free)
    op, pair = reduce.op, None
    node = target = at.allocate(_label(reduce), shape, reduce.dtype)
    if reduce.position is not None:  # argmin, argmax: a pair of best value and position
        op, pair = PAIR_OPS[op.name], Pair(Access(node, index), reduce.position)
        target = at.allocate("best", shape, value.dtype)
    at.out.append(Assign(Access(target, index), op, True, value, free, reduced, pair, span=at.span))
    result = Read(node, index, at.span)
    if reduce.position is not None:
        _check_not_empty(at, reduce, free, result)
    return result


def _label(reduce: Reduce) -> str:
    names = {"add": "total", "mul": "product", "max": "largest", "min": "smallest", "or": "any",
             "and": "all", "argmin": "argmin", "argmax": "argmax"}  # fmt: skip
    return names.get(reduce.op.name, reduce.op.name)


def _needed_ranges(reduce: Reduce, where: Expr | None, domain: Domain) -> tuple[Range, ...]:
    """Return the ranges of the domain that a reduction depends on, also by bounds and predicate."""
    wanted = set(free_symbols(replace(reduce, op=OPS["add"])))
    bound = {r.symbol for r in domain.ranges}
    predicate_symbols = frozenset() if where is None else free_symbols(where) & bound
    wanted |= predicate_symbols  # reads may be in bounds only where the predicate holds
    while True:
        bound_symbols = {
            s for r in domain.ranges if r.symbol in wanted
            for s in (r.lo.symbols() | r.hi.symbols()) & bound
        }  # fmt: skip
        if bound_symbols <= wanted:
            return tuple(r for r in domain.ranges if r.symbol in wanted)
        wanted |= bound_symbols


def _evaluation_predicate(
    at: _InsertionPoint, reduce: Reduce, domain: Domain, conditions: Conditions = ()
) -> Expr | None:
    """Return the predicate under which a reduction is computed.

    `e[i] / sum[k](e[k]) if m[i] else 0` needs one sum, for some `i` or for none: predicates on
    symbols that the reduction does not depend on are dropped, where speculation is safe.
    """
    full, needed = both(domain.where, *conditions), _needed_ranges(reduce, None, domain)
    others = {r.symbol for r in domain.ranges if r not in needed}
    if full is None or at.builder.checked or others.isdisjoint(free_symbols(full)):
        return full
    if not _can_speculate(at, reduce, needed):
        return full
    alike = lambda test: others.isdisjoint(free_symbols(test))  # noqa: E731
    return both(*takewhile(alike, conjuncts(full)))  # an earlier conjunct may guard a later one


def _can_speculate(at: _InsertionPoint, reduce: Reduce, over: tuple[Range, ...]) -> bool:
    """Whether a reduction is safe to speculate over some ranges: its reads are in bounds."""
    parts = list(walk(reduce))
    inner = [part.domain for part in parts if isinstance(part, Reduce)]
    assumptions = at.assumptions.with_ranges(
        (*over, *(r for domain in inner for r in domain.ranges))
    )
    return not any(_may_fail(part, assumptions) for part in parts)


def _may_fail(part: Expr, assumptions: Assumptions) -> bool:
    """Whether a subexpression may have no value."""
    match part:
        case Read(node, index):
            pairs = zip(index, node.shape, strict=True)
            return not all(_is_in_bounds(at, size, assumptions) for at, size in pairs)
        case Reduce(op) if part.position is not None or op.name in ("max", "min"):
            unconditional = part.domain.where is None
            return not (
                unconditional and all(assumptions.less(r.lo, r.hi) for r in part.domain.ranges)
            )
        case _:
            return False


def _is_in_bounds(index: Index, size: Affine, assumptions: Assumptions) -> bool:
    return (
        isinstance(index, Affine)
        and assumptions.less(index, size)
        and assumptions.nonnegative(index)
    )


def _nonempty_tests(
    at: _InsertionPoint,
    evaluated: tuple[Reduce, Expr | None],
    domain: Domain,
    used: tuple[Range, ...],
) -> Iterator[Expr]:
    """Yield predicates that the dropped ranges are nonempty: where one is empty, the reads of the
    reduction, or of the predicate under which it is evaluated, may be out of bounds."""
    reduce, where = evaluated
    inside = at.assumptions.with_ranges((*used, *reduce.domain.ranges))
    parts = (*walk(reduce), *(() if where is None else walk(where)))
    reads = (part for part in parts if isinstance(part, Read))
    pairs = (pair for read in reads for pair in zip(read.index, read.node.shape, strict=True))
    if all(_is_in_bounds(i, size, inside) for i, size in pairs):
        return
    assumptions = at.assumptions.with_ranges(domain.ranges)
    for n, r in enumerate(domain.ranges):
        if r not in used and not assumptions.less(r.lo, r.hi):
            others = tuple(outer for outer in domain.ranges[:n] if outer not in used)
            size = extreme(r.hi - r.lo, others, upwards=True)
            yield Apply(OPS["lt"], (Position(const(0)), Position(size)), dtypes.bool_)


def _check_not_empty(
    at: _InsertionPoint, reduce: Reduce, free: Domain, position: Read | None = None
) -> None:
    """Emit a check where an argmin, or an integer max or min, may be over an empty domain.

    The bounds of its ranges decide, or an `or` reduction over them; for positions the result read
    at `position`, afterwards.
    """
    name, over, is_position = reduce.op.name, reduce.domain, reduce.position is not None
    is_limit = name in ("max", "min") and reduce.dtype.kind in "iu" and over.where is None
    if not is_position and not is_limit:
        return
    inside = at.assumptions.with_ranges((*free.ranges, *over.ranges))
    open_ = [r for r in over.ranges if not inside.less(r.lo, r.hi)]
    bounds = [index for r in open_ for index in (r.lo, r.hi)]
    is_sought = over.where is not None or any(b.symbols() & {*over.symbols} for b in bounds)
    if (position is not None) != (is_sought and is_position):
        return
    test: Expr | None
    if position is not None:
        test = Apply(OPS["ge"], (position, Const(0, dtypes.int64)), dtypes.bool_)
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
