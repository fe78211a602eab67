"""The IR verifier: invariants that hold between any two passes, one named check each.

A check is a function from a `Unit` (the common view of procedures and programs) to the problems it
found, each with its statement. `verify_procedure` and `Verifier` run all of them and raise with
every problem. Checks that need one statement only are in `verify_local`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdInternalError, Diagnostic, Label
from . import assignments, loops, verify_local
from .assignments import Block, Parameter, Procedure
from .indexing import Symbol
from .instructions import AwaitProducts, MatMul
from .loops import AnyStatement, Program
from .memo import memoize
from .node import Node
from .printer import print_statement
from .rewrite import with_bodies
from .walk import (
    Body,
    binds,
    bodies,
    direct_reads,
    direct_writes,
    free_symbols,
    parallel_loops,
    statements,
    uses,
)

Problems = Iterator[tuple[AnyStatement, str]]
Verified = dict[int, AnyStatement]
"""Verified statements, by their `id`."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What is verified: a procedure, or a program with its kernels concatenated."""

    name: str
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    results: tuple[Node, ...]
    body: Body
    new: Sequence[AnyStatement]
    """The statements that are not verified yet, nested ones included, in program order."""
    fine: Verified = field(default_factory=dict)
    """The verified statements: they are valid in their old context, with all that is nested in
    them."""
    grown: bool = True
    """Whether every node that was declared then still is."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every declared node."""
        return tuple(p.node for p in self.parameters) + self.locals + self.results

    @property
    def sizes(self) -> frozenset[Symbol]:
        """The symbols bound by the shapes of the arguments."""
        extents = (extent for p in self.parameters for extent in p.node.shape)
        return frozenset(e.symbol for e in extents if e.symbol is not None)


def verify_procedure(procedure: Procedure, *, built: bool = True) -> None:
    """Verify IR 1; `built=False` admits `Reduce`. Raises CdInternalError naming every problem."""
    p = procedure
    _verify(Unit(p.name, p.parameters, p.locals, p.results, p.body, statements(p.body)), built)


def verify_program(program: Program) -> None:
    """Verify IR 2. Raises CdInternalError naming every problem."""
    Verifier()(program)


class Verifier:
    """Incremental verification of successive programs: unchanged statements are not verified
    again."""

    __slots__ = ("_fine", "_known")

    def __init__(self) -> None:
        self._fine: Verified = {}
        self._known: tuple[tuple[Parameter, ...], frozenset[Node]] = (), frozenset()

    def __call__(self, program: Program) -> None:
        """Verify IR 2. Raises CdInternalError naming every problem."""
        p = program
        body = tuple(statement for kernel in p.kernels for statement in kernel.body)
        parameters, nodes = self._known
        if parameters != p.parameters:
            self._fine.clear()
        self._known = p.parameters, frozenset((*p.locals, *p.results))
        new = _unverified(self._fine, body)
        keeps_nodes = nodes <= self._known[1]
        _verify(Unit(p.name, p.parameters, p.locals, p.results, body, new, self._fine, keeps_nodes))


def _unverified(fine: Verified, body: Iterable[AnyStatement]) -> list[AnyStatement]:
    """Return every statement, nested ones included, that is not verified yet, in program order."""
    result: list[AnyStatement] = []
    for statement in body:
        if id(statement) not in fine:
            result.append(statement)
            for nested in bodies(statement):
                result += _unverified(fine, nested)
    return result


def _verify(unit: Unit, built: bool = True) -> None:
    problems = [
        _problem(unit, name, statement, detail)
        for name, check in CHECKS.items()
        for statement, detail in check(unit)
    ]
    for statement in unit.new:
        view = verify_local.StatementView.at(statement)
        problems += [
            _problem(unit, name, statement, detail)
            for name, rule in LOCAL.items()
            if built or rule is not verify_local.no_reduce
            for detail in rule(view)
        ]
    if problems:
        raise CdInternalError(*problems)
    unit.fine.update({id(statement): statement for statement in unit.new})


def _problem(unit: Unit, check: str, statement: AnyStatement, detail: str) -> Diagnostic:
    empty = with_bodies(statement, ((),) * len(bodies(statement)))
    where = print_statement(empty).splitlines()[0].strip()
    return Diagnostic(
        "CD0901",
        f"{unit.name}: {check}: {detail}, in `{where}`",
        (Label(getattr(statement, "span", NOWHERE)),),
        ("this is a fault of plusequals, not of your function; please report this text",),
    )


def symbols_are_bound(unit: Unit) -> Problems:
    """Every symbol is bound, once, by an enclosing statement or an earlier one of its list."""
    yield from find_unbound(unit.body, unit.sizes, unit.fine)


class _Scope(NamedTuple):
    """The free symbols of statements, and those that they bind at any depth."""

    free: frozenset[Symbol]
    bound: frozenset[Symbol]

    def fits(self, visible: frozenset[Symbol]) -> bool:
        """Whether valid statements stay valid where these symbols are bound."""
        return self.free <= visible and self.bound.isdisjoint(visible)


def _scope(statement: AnyStatement) -> _Scope:
    """Return the scope of a statement with all nested ones; memoized."""
    try:
        memo: _Scope = statement.scope
    except AttributeError:
        direct = frozenset(binds(statement))
        free, bound = set(uses(statement)), set(direct)
        match statement:
            case assignments.While() | loops.While():
                lists = [(*statement.prelude, *statement.body)]
                free -= _let_symbols(statement.prelude)
            case _:
                lists = [*bodies(statement)]
        for nested in lists:
            inner = direct
            for inside in nested:
                scope = _scope(inside)
                free |= scope.free - inner
                bound |= scope.bound
                inner |= _let_symbols((inside,))
        memo = memoize(statement, "scope", _Scope(frozenset(free), frozenset(bound)))
    return memo


def _let_symbols(body: Body) -> frozenset[Symbol]:
    return frozenset(
        [statement.symbol for statement in body if isinstance(statement, assignments.Let)]
    )


def find_unbound(body: Body, visible: frozenset[Symbol], fine: Verified) -> Problems:
    """Yield statements that use a symbol where it is not bound, or bind it again, with a message.

    `visible` are those bound around the body; statements in `fine` were verified before.
    """
    for statement in body:
        if id(statement) in fine and _scope(statement).fits(visible):
            visible |= _let_symbols((statement,))
            continue
        match statement:
            case assignments.While() | loops.While():
                yield from find_unbound(statement.prelude, visible, fine)
                # the test sees the prelude's bindings
                inner = visible | _let_symbols(statement.prelude)
                yield from _unbound_uses(statement, free_symbols(statement.test) - inner)
                yield from find_unbound(statement.body, inner, fine)
                continue
            case _:
                if not uses(statement) <= visible:
                    yield from _unbound_uses(statement, uses(statement) - visible)
        bound = binds(statement)
        for symbol in bound:
            if symbol in visible:
                yield statement, f"symbol {symbol.name} is bound again in its own scope"
        if isinstance(statement, assignments.Let):
            visible |= {statement.symbol}
        for nested in bodies(statement):
            yield from find_unbound(nested, visible.union(bound) if bound else visible, fine)


def _unbound_uses(statement: AnyStatement, symbols: frozenset[Symbol]) -> Problems:
    for name in sorted(symbol.name for symbol in symbols):
        yield statement, f"symbol {name} is used before it is bound"


def nodes_are_declared(unit: Unit) -> Problems:
    """Every node that is accessed is a parameter, local or result, and ids are unique."""
    declared = {node.id: node for node in unit.nodes}
    if len(declared) < len(unit.nodes):
        yield Block("declarations", ()), "two nodes have the same id"
    for statement in unit.new if unit.grown else statements(unit.body):
        wrong = [
            n
            for n in _direct_nodes(statement)
            if (declaration := declared.get(n.id)) is not n and declaration != n
        ]
        for node in dict.fromkeys(wrong):
            yield statement, f"node {node} is not declared, or declared differently"


def _direct_nodes(statement: AnyStatement) -> tuple[Node, ...]:
    """The nodes that a statement reads or writes itself."""
    return direct_reads(statement) + direct_writes(statement)


def written_nodes_are_writable(unit: Unit) -> Problems:
    """Only locals, results, and parameters declared as written are written."""
    fixed = {p.node.id for p in unit.parameters if not p.written}
    for statement in unit.new:
        if isinstance(statement, assignments.Permute):
            continue  # permutes arrays, and writes into none
        for node in dict.fromkeys([n for n in direct_writes(statement) if n.id in fixed]):
            yield statement, f"parameter {node} is written but not declared as written"


def jumps_are_in_loops(unit: Unit) -> Problems:
    """Break and Continue are inside a loop."""
    yield from _jumps(unit.body)


def _jumps(body: Body) -> Problems:
    for statement in body:
        match statement:
            case assignments.Break() | assignments.Continue():
                yield statement, "there is no loop around it"
            case assignments.For() | loops.For() | assignments.While() | loops.While():
                continue
            case _:
                for nested in bodies(statement):
                    yield from _jumps(nested)


def allocations_come_first(unit: Unit) -> Problems:
    """A node of run-time shape is accessed or returned only after its `Alloc`."""
    sized = [n for n in unit.results if _symbols_of(n) <= unit.sizes]
    have = frozenset(
        [p.node.id for p in unit.parameters]
        + [n.id for n in sized]
        + [n.id for n in unit.nodes if n.static_shape is not None]
    )
    if have.issuperset([node.id for node in unit.nodes]):
        return  # every shape is static
    missing, have = find_unallocated(unit.body, have)
    for statement, node in missing:
        yield statement, f"{node} has no storage yet"
    for node in unit.results:
        if node.id not in have:
            yield Block("the end", ()), f"result {node} may have no storage"


def _symbols_of(node: Node) -> frozenset[Symbol]:
    return frozenset[Symbol]().union(*(extent.symbols() for extent in node.shape))


def find_unallocated(
    body: Body, have: frozenset[int]
) -> tuple[list[tuple[AnyStatement, Node]], frozenset[int]]:
    """Return accesses to nodes that may have no storage, and the nodes that surely have it after
    the body.

    `have` are the ids of those that have it before the body.
    """
    missing: list[tuple[AnyStatement, Node]] = []

    def after(body: Body, have: frozenset[int]) -> frozenset[int]:
        for statement in body:
            needed = dict.fromkeys(n for n in _accessed_nodes(statement) if n.id not in have)
            missing.extend((statement, node) for node in needed)
            match statement:
                case assignments.Alloc(node):
                    have |= {node.id}
                case assignments.For() | loops.For():
                    inner = after(statement.body, have)
                    if _has_iteration(statement):
                        have = inner
                case assignments.While() | loops.While():
                    have = after(statement.prelude, have)
                    after(statement.body, have)
                case assignments.Block() | loops.LastBlock():
                    have = after(statement.body, have)
                case assignments.Branch() | loops.If():
                    then = after(statement.then, have)
                    have = then & after(statement.orelse, have)
                case _:
                    pass
        return have

    return missing, after(body, have)


def _has_iteration(loop: assignments.For | loops.For) -> bool:
    """Whether a loop surely completes an iteration."""
    size = (loop.hi - loop.lo).constant or 0
    return size * loop.step > 0 and not _may_jump(loop.body)


def _may_jump(body: Body) -> bool:
    """Whether an iteration with this body may be left early; jumps of inner loops are theirs."""
    loop_types = (assignments.For, assignments.While, loops.For, loops.While)
    return any(
        isinstance(statement, assignments.Break | assignments.Continue)
        or not isinstance(statement, loop_types)
        and any(map(_may_jump, bodies(statement)))
        for statement in body
    )


def _accessed_nodes(statement: AnyStatement) -> tuple[Node, ...]:
    """The nodes whose storage a statement itself accesses; a loop's test belongs to its prelude."""
    if isinstance(statement, assignments.Alloc | assignments.While | loops.While):
        test = getattr(statement, "test", None)
        return () if test is None else verify_local.nodes_in(test)
    return _direct_nodes(statement)


def parallel_loops_do_not_nest(unit: Unit) -> Problems:
    """Parallel loops are not nested, as an outer one would hide copies of private arrays."""
    for outer in parallel_loops(unit.body):
        for inner in parallel_loops(outer.body):
            yield inner, f"it is inside of the parallel loop over {outer.symbol.name}"


def last_blocks_follow_blocks(unit: Unit) -> Problems:
    """What the last block does is after the loop over the blocks, in the same list."""
    for body in (unit.body, *(body for one in unit.new for body in bodies(one))):
        follows_block = False
        for statement in body:
            if isinstance(statement, loops.LastBlock) and not follows_block:
                yield statement, "there is no loop over blocks before it"
            follows_block |= isinstance(statement, loops.For) and statement.kind == "block"


def products_are_awaited(unit: Unit) -> Problems:
    """Sums of warpgroups are read only where an `AwaitProducts` is after the last products."""
    pending = set[int]()
    for statement in statements(unit.body):
        match statement:
            case MatMul(accumulator, unit="warpgroup"):
                pending.add(accumulator.node.id)
            case AwaitProducts(node):
                pending.discard(node.id)
            case _:
                for node in direct_reads(statement) if pending else ():
                    if node.id in pending:
                        yield statement, f"the products that are added to {node} may not be there"


CHECKS: dict[str, Callable[[Unit], Problems]] = {
    "nodes are declared": nodes_are_declared,
    "symbols are bound": symbols_are_bound,
    "written nodes are writable": written_nodes_are_writable,
    "jumps are in loops": jumps_are_in_loops,
    "storage comes first": allocations_come_first,
    "parallel loops do not nest": parallel_loops_do_not_nest,
    "last blocks follow blocks": last_blocks_follow_blocks,
    "products are awaited": products_are_awaited,
}
LOCAL: dict[str, Callable[[verify_local.StatementView], Iterable[str]]] = {
    "ranks match": verify_local.ranks_match,
    "constants fit": verify_local.constants_fit,
    "operands fit": verify_local.operands_fit,
    "selects agree": verify_local.selects_agree,
    "tests are bool": verify_local.tests_are_bool,
    "indices are integers": verify_local.indices_are_integers,
    "stored types agree": verify_local.stored_types_agree,
    "accumulators fit": verify_local.accumulators_fit,
    "pairs fit": verify_local.pairs_fit,
    "vectors fit": verify_local.vectors_fit,
    "products fit": verify_local.products_fit,
    "no reduce": verify_local.no_reduce,
    "allocations are of run-time shape": verify_local.allocations_are_dynamic,
    "permutations fit": verify_local.permutations_fit,
    "faults can be raised": verify_local.faults_can_be_raised,
    "steps are not zero": verify_local.steps_are_not_zero,
}
