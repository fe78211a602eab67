"""The adjoint of a procedure: its statements, then those that propagate cotangents backward.

    forward                                     adjoint, in reverse order
    x[I] += v(a[J], ...)  for p                 d_a[J] += d_x[I] * dv/da      for p
    x[I]  = v(a[J], ...)  for p                 d_a[J] += d_x[I] * dv/da;  d_x[I] = 0
    for t in lo..hi: body                       for t in hi-1..lo-1 step -1: adjoint of the body
    if test: ... else: ...                      the same test, on the values that it read

Every array of floats that depends on an input which is asked for, and on which the output depends,
has a cotangent of its shape. What the adjoint statements read again is kept where it is overwritten
later (see `kept`).

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., section 3.3 and chapter 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ..analysis.self_dependence import is_injective
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    DerivativeRule,
    For,
    Let,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ..ir.expressions import (
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
)
from ..ir.indexing import Symbol, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import direct_reads, direct_writes, free_symbols, reads, statements, uses
from ..ir.walk import inside as within
from ..ir.walk import writes as written
from .activity import active_nodes, differentiable_reads
from .bindings import with_own_symbols
from .checkpoints import Checkpoints, Memory
from .complex_rules import as_type
from .contributions import with_joined_contributions
from .derivative_rules import Operand, applied, outer_reads, require_closed, require_taken
from .exchanged import with_arguments_at_end
from .extremes import at_points, points_of, positioned
from .gathers import gathered
from .kept import Kept, Names, UnknownSize, places, trip_count, writes
from .normalize import normalized
from .origins import with_origins
from .products import Product
from .rules import NotDifferentiable, apply, number
from .simplify import simplified
from .statement_order import with_column_sums_last
from .structured import structured
from .terms import Terms
from .windows import summed_over_windows

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """A procedure that computes cotangents of inputs after what it computed before."""

    procedure: Procedure
    cotangents: tuple[Node, ...]
    """The results that are the cotangents of the inputs, in their order."""
    whole: tuple[tuple[str, Span], ...] = ()
    """The loops that keep all states though fewer were asked for, with the reasons."""


def adjoint(
    procedure: Procedure,
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    given: Sequence[Node | None],
    memory: Memory | None = None,
) -> Adjoint:
    """Return the procedure with the cotangents of inputs, from those of outputs.

    Outputs are results, or parameters that are written; `given` are the parameters that hold their
    cotangents, None where these are 1. Without `memory` the states of all iterations are kept.

    Precondition: no `Reduce`. Postcondition: the results are those of the procedure, then the
    cotangent of each input. Raises NotDifferentiable.
    """
    procedure, outputs = with_arguments_at_end(procedure, outputs)
    inside = {s.symbol for stmt in procedure.body for s in within(stmt) if isinstance(s, Let)}
    measured: frozenset[Symbol] = frozenset()
    while True:
        try:
            return _adjoint(procedure, inputs, outputs, given, memory, measured)
        except UnknownSize as size:
            more = (size.symbols & inside) - measured
            if not more:
                raise
            measured |= more


def _adjoint(
    procedure: Procedure,
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    given: Sequence[Node | None],
    memory: Memory | None,
    measured: Collection[Symbol],
) -> Adjoint:
    """Return the adjoint; a first run finds limits of the `measured` sizes."""
    names = Names.above(procedure)
    body = with_origins(procedure.body, names, inputs)
    active = active_nodes(body, inputs, outputs)
    require_closed(body, active)
    stored = [parameter.node for parameter in procedure.parameters]
    known = structured(body, names, active, stored, measured)
    body = normalized(known.body, names, active)
    at = places(body)
    sized = {s for p in procedure.parameters for e in p.node.shape for s in e.symbols()}
    unsure = _created_in_branches(body)
    late = _created_late(body, unsure, sized)
    kept = Kept(names, at, writes(body, at), known.limits, late)
    labels = {node.label for node in given if node is not None}
    cotangents = {
        node.id: names.array(
            f"d_{node.label}{'_now' * (f'd_{node.label}' in labels)}",
            node.shape,
            node.dtype.compute,
        )
        for node in {**active, **{node.id: node for node in inputs}}.values()
    }
    checkpoints = None if memory is None else Checkpoints(names, kept, memory, unsure)
    writer = _Writer(names, kept, cotangents, active.keys(), checkpoints)
    forward, backward = writer.body(body, is_outermost=True)
    backward = with_own_symbols(backward, names)
    outer = sized | {stmt.symbol for stmt in forward if isinstance(stmt, Let)}
    allocated = [
        Alloc(n) for n in cotangents.values()
        if n.static_shape is None and _symbols_of(n) <= outer
    ]  # fmt: skip
    _require_known(forward, writer.kept_allocated, outer, procedure.span)
    pairs = [_rounded(cotangents[node.id], node, names) for node in inputs]
    results, rounded = tuple(node for node, _ in pairs), [s for _, body in pairs for s in body]
    first, seeds = _seeds(outputs, given, cotangents, names, frozenset(written(body)))
    new_locals = (n for n in names.nodes if n not in results)
    new = replace(
        procedure,
        locals=(*procedure.locals, *new_locals),
        results=(*procedure.results, *results),
        body=(
            *first,
            *_created_first(forward, backward, outer),
            *(*allocated, *seeds, *backward, *rounded),
        ),
    )
    whole = tuple(checkpoints.whole) if checkpoints else ()
    new = with_column_sums_last(with_joined_contributions(simplified(new)))
    return Adjoint(new, results, whole)


def _require_known(
    forward: Body, kept: Sequence[Node], known: Collection[Symbol], span: Span
) -> None:
    """Refuse arrays that are kept, and integers of outermost statements, that depend on integers
    which are bound inside of statements."""
    outer = frozenset(known)
    if lost := [n for n in kept if not _symbols_of(n) <= outer]:
        symbols = {symbol for node in lost for symbol in _symbols_of(node)} - outer
        raise UnknownSize(symbols, f"`{lost[0].label}`", span)
    used = {s for stmt in forward if isinstance(stmt, Let) for s in free_symbols(stmt.value)}
    if not used <= outer:
        raise UnknownSize(used - outer, "the segments of a loop", span)


def _created_in_branches(body: Body) -> set[int]:
    """Return the arrays that are created on one side of a test."""
    branches = [stmt for stmt in statements(body) if isinstance(stmt, Branch)]
    inside = statements([one for stmt in branches for one in (*stmt.then, *stmt.orelse)])
    return {stmt.node.id for stmt in inside if isinstance(stmt, Alloc)}


def _created_late(body: Body, unsure: Collection[int], known: Collection[Symbol]) -> set[int]:
    """Return those of arrays that are created on one side of a test whose sizes are known only
    there."""
    outer = {*known, *(stmt.symbol for stmt in body if isinstance(stmt, Let))}
    created = [s.node for s in statements(body) if isinstance(s, Alloc) and s.node.id in unsure]
    return {node.id for node in created if not _symbols_of(node) <= outer}


def _created_first(forward: Body, backward: Body, known: Collection[Symbol]) -> Body:
    """Return forward statements before which arrays are created that they create on one side of a
    test alone, and that the adjoint statements read."""
    again = {node.id for stmt in statements(backward) for node in direct_reads(stmt)}
    out: list[Statement] = []
    for stmt in forward:
        nested = [s for s in within(stmt) if isinstance(s, Alloc) and s.node.id in again]
        out += [Alloc(s.node) for s in nested if _symbols_of(s.node) <= set(known)]
        out.append(stmt)
    return tuple(out)


def _rounded(cotangent: Node, node: Node, names: Names) -> tuple[Node, Body]:
    """Return a cotangent in the type of its array, and what makes it; those of 16-bit floats are
    computed in 32 bits."""
    if cotangent.dtype == node.dtype:
        return cotangent, ()
    new = names.array(cotangent.label, node.shape, node.dtype)
    create = (Alloc(new),) if new.static_shape is None else ()
    return new, (*create, names.copied(new, cotangent))


def _seeds(
    outputs: Sequence[Node],
    given: Sequence[Node | None],
    cotangents: dict[int, Node],
    names: Names,
    changed: Collection[Node],
) -> tuple[list[Statement], list[Statement]]:
    """Return what sets the cotangents of outputs, and what has to run first for that: copies of
    those that the procedure writes as arguments."""
    copies: list[Statement] = []
    seeds: list[Statement] = []
    seeded: set[Node] = set()
    for node, source in zip(outputs, given, strict=True):
        if node.id not in cotangents:
            continue
        ranges = names.axes(node.shape)
        index = tuple(var(r.symbol) for r in ranges)
        value: Expr = number(1.0, node.dtype.compute)
        if source is not None:
            value = Read(source, index)
            if source in changed:
                kept = names.array(f"{source.label}_given", source.shape, source.dtype)
                copies += [] if kept.static_shape is not None else [Alloc(kept)]
                copies += [names.copied(kept, source)]
                value = Read(kept, index)
            value = as_type(value, node.dtype.compute)
        op = OPS["add"] if node in seeded else None
        seeded.add(node)
        target = Access(cotangents[node.id], index)
        seeds.append(Assign(target, op, False, value, Domain(ranges)))
    return copies, seeds


def _symbols_of(node: Node) -> set[Symbol]:
    return {symbol for extent in node.shape for symbol in extent.symbols()}


@dataclass(slots=True)
class _Writer:
    """Writes forward and adjoint statements."""

    names: Names
    kept: Kept
    cotangents: dict[int, Node]
    active: Collection[int]
    checkpoints: Checkpoints | None = None
    kept_allocated: list[Node] = field(default_factory=list)
    """What is allocated before the outermost loops."""

    def body(self, body: Body, is_outermost: bool = False) -> tuple[Body, Body]:
        """Return the forward statements of a body, and its adjoint ones."""
        forward: list[Statement] = []
        backward: list[Statement] = []
        for stmt in body:
            before: list[Statement] = []
            kept, reverse = self.statement(stmt, before)
            if is_outermost:
                if self.checkpoints:
                    forward += self.checkpoints.sizes
                    self.checkpoints.sizes.clear()
                forward += self.kept.allocations
                self.kept_allocated += [stmt.node for stmt in self.kept.allocations]
                self.kept.allocations.clear()
            forward += [*before, *kept]
            backward[:0] = reverse
        if not is_outermost and backward:
            created = [s.node for s in body if isinstance(s, Alloc) and s.node.id in self.active]
            backward[:0] = [Alloc(self.cotangents[node.id]) for node in created]
            backward[:0] = self._bound_again(body, backward, forward)
        return tuple(forward), tuple(backward)

    def _bound_again(
        self, body: Body, backward: Sequence[Statement], forward: list[Statement]
    ) -> list[Statement]:
        """Return the integers that a body binds, for its adjoint statements."""
        inside = statements(backward)
        used = {symbol for stmt in inside for symbol in uses(stmt)}
        used |= {s for stmt in inside if isinstance(stmt, Alloc) for s in _symbols_of(stmt.node)}
        again: list[Statement] = []
        for stmt in reversed(body):
            if isinstance(stmt, Let) and stmt.symbol in used:
                before: list[Statement] = []
                value = self.kept.reads(stmt.value, stmt, before)
                at = next(n for n, other in enumerate(forward) if other is stmt)
                forward[at:at] = before
                again.insert(0, replace(stmt, value=value))
                used |= free_symbols(value)
        return again

    def statement(self, stmt: Statement, before: list[Statement]) -> tuple[Body, Body]:
        """Return a statement and its adjoint; `before` receives what keeps values for that."""
        match stmt:
            case Assign():
                after: list[Statement] = []
                reverse = tuple(self.assign(stmt, before, after))
                return (*(positioned(stmt) if reverse else (stmt,)), *after), reverse
            case For():
                cut = self.checkpoints and self.checkpoints.loop(stmt, before, self._on_copies)
                return cut or self.loop(stmt)
            case Branch(test, then, orelse):
                forward, backward = zip(self.body(then), self.body(orelse), strict=True)
                if not any(backward):
                    return (replace(stmt, then=forward[0], orelse=forward[1]),), ()
                again = self.kept.reads(test, stmt, before)
                reversed_branch = Branch(again, *backward, stmt.span)
                return (replace(stmt, then=forward[0], orelse=forward[1]),), (reversed_branch,)
            case Block(rule=rule) if rule and any(n.id in self.active for n in rule.outputs):
                kept_after: list[Statement] = []
                by_rule = self.by_rule(stmt, rule, before, kept_after)
                return (stmt, *kept_after), by_rule
            case Block():
                inside, reverse_body = self.body(stmt.body)
                reverse_block = replace(stmt, body=reverse_body)
                return (replace(stmt, body=inside),), (reverse_block,) if reverse_body else ()
            case Alloc():
                return (stmt,), ()
            case Permute(nodes, sources):
                pairs = [
                    (self.cotangents[n.id], self.cotangents[s.id])
                    for n, s in zip(nodes, sources, strict=True)
                    if n.id in self.active and s.id in self.active
                ]
                if not pairs:
                    return (stmt,), ()
                if len(pairs) < len(nodes):
                    raise NotDifferentiable(
                        "an exchange of arrays of which some are inactive", stmt.span
                    )
                back = Permute(tuple(s for _, s in pairs), tuple(n for n, _ in pairs), stmt.span)
                return (stmt,), (back,)
            case While():
                if any(self._is_active(s) for s in statements((stmt,))):
                    raise AssertionError("such loops are counted before")
                return (stmt,), ()
            case Let() | Check() | Print() | Break() | Continue():
                return (stmt,), ()

    def _is_active(self, stmt: Statement) -> bool:
        return any(node.id in self.active for node in direct_writes(stmt))

    def loop(self, stmt: For) -> tuple[Body, Body]:
        """Return a loop, and the loop that runs the adjoint of its body in reverse."""
        forward, backward = self.body(stmt.body)
        ahead = replace(stmt, body=forward)
        if not backward:
            return (ahead,), ()
        last = stmt.lo + (trip_count(stmt) - 1) * stmt.step
        end = stmt.lo - (1 if stmt.step > 0 else -1)
        return (ahead,), (For(stmt.symbol, last, end, -stmt.step, backward, stmt.span),)

    def _on_copies(self, loop: For, kept: Kept, instead: Mapping[int, Node]) -> tuple[Body, Body]:
        """Return a loop in which arrays have others in their place, and its adjoint."""
        cotangents = dict(self.cotangents)
        for old, new in instead.items():
            if old in cotangents:
                cotangents[new.id] = cotangents[old]
        active = {*self.active, *(new.id for old, new in instead.items() if old in self.active)}
        return _Writer(self.names, kept, cotangents, active).loop(loop)

    def assign(
        self, stmt: Assign, before: list[Statement], after: list[Statement]
    ) -> list[Statement]:
        """Return the adjoint of an assignment; `after` receives what keeps its own results."""
        target = stmt.target
        if target.node.id not in self.active or _is_empty(stmt.free):
            return []
        replaces = stmt.op is None or stmt.initialize
        if replaces and not is_injective(target.index, stmt.free.ranges):
            raise NotDifferentiable("an element that is assigned more than once", stmt.span)
        if stmt.op is None and stmt.reduced.ranges:
            raise NotDifferentiable("an element that is assigned more than once", stmt.span)
        index = self.kept.index(target.index, stmt, before)
        cotangent: Expr = Read(self.cotangents[target.node.id], index)
        active_reads = [r for r in differentiable_reads(stmt.value) if r.node.id in self.active]
        out: list[Statement] = []
        zero = Assign(
            Access(self.cotangents[target.node.id], index), None, False,
            number(0.0, cotangent.dtype), self._domain(stmt.free, stmt, before), span=stmt.span,
        )  # fmt: skip
        reads_itself = any(r.node == target.node for r in active_reads)
        if reads_itself:
            copy, cotangent = self._copy(stmt, cotangent, before)
            out.append(copy)
            if replaces:
                out.append(zero)
        if stmt.op is not None and stmt.op.name == "sub":
            cotangent = apply("neg", cotangent)
        found, points = self._found(stmt, after), points_of(stmt)
        selected = None
        if found is not None and stmt.pair is not None and points is None:
            selected = apply("eq", found, Position(stmt.pair.position))
        terms = Terms(
            self.kept, self.names, self.cotangents, self.active, stmt, before, selected,
            self._result(stmt),
        )  # fmt: skip
        terms.add(stmt.value, Product(cotangent.dtype).times(cotangent), ())
        in_loop = bool(self.kept.places[id(stmt)].loops)
        sums: Iterable[Statement] = terms.statements()
        if found is not None and points is not None:
            sums = at_points(sums, stmt, found, points)
        for new in gathered(sums):
            out += summed_over_windows(new, self.names, self.kept.allocations, in_loop)
        if replaces and not reads_itself:
            out.append(zero)
        return out

    def by_rule(
        self,
        stmt: Block,
        rule: DerivativeRule,
        before: list[Statement],
        after: list[Statement],
    ) -> Body:
        """Return the adjoint of a block by its rule; `before` and `after` receive what keeps the
        arrays that the rule reads."""
        if rule.cotangents is None:
            raise NotDifferentiable(
                f"a call of `{rule.name}`, whose `jvp_rule` has no transpose (write a `vjp_rule`),",
                stmt.span,
            )
        require_taken(rule, rule.cotangents, rule.outputs, self.active, stmt)
        parameters = [parameter.node for parameter in rule.cotangents.procedure.parameters]
        used = reads(rule.cotangents.procedure.body)
        given: list[Node] = []
        first: list[Statement] = []
        for node in rule.outputs:
            if node.id not in self.active:  # nothing depends on it: its cotangent is zero
                zero = self.names.array(f"d_{node.label}", node.shape, node.dtype)
                first += [Alloc(zero)] if zero.static_shape is None else []
                given.append(zero)
                continue
            given.append(self.cotangents[node.id])
        operands: list[Operand] = []
        for node, formal in zip((*rule.inputs, *rule.outputs), parameters, strict=False):
            if formal not in used:
                operands.append(Operand(node))
            elif node in rule.inputs:
                operands.append(Operand(*self.kept.whole(node, stmt, before)))
            else:
                operands.append(Operand(*self.kept.whole_after(node, stmt, after)))
        operands += map(Operand, given)
        captured = {
            node.id: Operand(*self.kept.whole(node, stmt, before))
            for node in outer_reads(rule.cotangents)
        }
        body, results = applied(rule.cotangents, operands, self.names, captured)
        sums: list[Statement] = []
        for node, result in zip(rule.inputs, results, strict=True):
            if node.id not in self.active:
                continue
            if result is None:
                text = f"`{node.label}`, for which the `vjp_rule` of `{rule.name}` gives nothing,"
                raise NotDifferentiable(text, stmt.span)
            copied = self.names.copied(self.cotangents[node.id], result, span=stmt.span)
            sums.append(replace(copied, op=OPS["add"]))
        zeros = [
            self.names.filled(self.cotangents[n.id], number(0.0, self.cotangents[n.id].dtype))
            for n in rule.outputs if n.id in self.active
        ]  # fmt: skip
        return (replace(stmt, body=(*first, *body, *sums, *zeros), rule=None),)

    def _result(self, stmt: Assign) -> Read | None:
        """Return the element that a statement assigns, where it still has that value at the end."""
        target, place = stmt.target, self.kept.places[id(stmt)]
        is_last = all(w.number <= place.number for w in self.kept.written[target.node.id])
        if stmt.op is not None or place.loops or not is_last:
            return None
        if any(isinstance(at, Dynamic) for at in target.index):
            return None
        if stmt.value.dtype != target.node.dtype:
            return None
        after = replace(target.node, id=-1 - target.node.id)  # distinct from what it was before
        return Read(after, target.index)

    def _domain(self, domain: Domain, stmt: Statement, before: list[Statement]) -> Domain:
        if domain.where is None:
            return domain
        return Domain(domain.ranges, self.kept.reads(domain.where, stmt, before))

    def _copy(self, stmt: Assign, cotangent: Expr, before: list[Statement]) -> tuple[Assign, Expr]:
        """Return the assignment that copies the cotangents of a statement's points, and a read."""
        target, read = stmt.target.node, cotangent
        assert isinstance(read, Read)
        shape = tuple(self.kept.sizes(target, self.kept.places[id(stmt)]))
        node = self.names.array(f"{read.node.label}_new", shape, read.dtype)
        if node.static_shape is None:
            self.kept.allocations.append(Alloc(node))
        free = self._domain(stmt.free, stmt, before)
        copy = Assign(Access(node, read.index), None, False, cotangent, free, span=stmt.span)
        return copy, Read(node, read.index)

    def _found(self, stmt: Assign, after: list[Statement]) -> Expr | None:
        """Return the position of the point whose value a maximum or minimum is; None for other
        statements."""
        if stmt.pair is None:
            return None
        access = stmt.pair.access
        if any(isinstance(at, Dynamic) for at in access.index):
            raise NotDifferentiable("a position at a run-time subscript", stmt.span)
        return self.kept.result(Read(access.node, access.index), stmt, after)


def _is_empty(domain: Domain) -> bool:
    sizes = [(r.hi - r.lo).constant for r in domain.ranges]
    return any(size is not None and size <= 0 for size in sizes)
