"""Scalars whose values reach another iteration, or what comes after a loop.

A scalar that each iteration assigns before it reads it, and that nothing else reads, is a name for
a value of one iteration: lanes may each have one. Any other carries a value on:

    for t: { d = x[t];  s += d * d }            d is a name
    for t: last = x[t]                          last is carried to what reads it afterwards
    for t: s = s / 2 + x[t]                     s is carried from one iteration to the next

>>> program = lowered('''
... for t in range(9):
...     d = x[t] * 2
...     y[t] = d * d
...     last = x[t]
... y[0] = last
... ''', y="f32[9]", x="f32[9]")
>>> carried = carried_scalars(program)
>>> sorted(node.label for node in program.locals if not node.rank and node.id in carried)
['last']

Lanes share no scalar: `verify_scalars` refuses a vector loop that stores one which another lane, or
what comes after the loop, reads (by liveness, in each list of statements from its end).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.diagnostic import CdInternalError, Diagnostic, Label
from ..ir.assignments import Break, Continue
from ..ir.loops import For, If, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.walk import bodies, direct_reads, direct_writes, statements, writes


def carried_scalars(program: Program) -> frozenset[int]:
    """Return the ids of the scalars that may be read where no statement before, in the same list
    or around it and in the same iteration, assigned them; those that the caller reads included."""
    given = (parameter.node for parameter in program.parameters)
    carried = {node.id for node in (*program.results, *given) if not node.rank}
    for kernel in program.kernels:
        _visit(kernel.body, set(), carried)
    return frozenset(carried)


def stores_carried(body: Iterable[Stmt], carried: frozenset[int]) -> bool:
    """Whether statements store scalars that are carried; accumulators that they only update are
    for a reduction."""
    targets = (stmt.access.node for stmt in statements(body) if isinstance(stmt, Store))
    return any(not node.rank and node.id in carried for node in targets)


def _visit(body: Iterable[Stmt], defined: set[int], carried: set[int]) -> None:
    """Add the scalars that are read before they are assigned; `defined` are those that this
    iteration has assigned, which is updated."""
    for stmt in body:
        if isinstance(stmt, For | While):
            _forget(writes((stmt,)), defined)
        carried |= {
            node.id for node in direct_reads(stmt) if not node.rank and node.id not in defined
        }
        sides = [set(defined) for _ in bodies(stmt)]
        for inner, side in zip(bodies(stmt), sides, strict=True):
            _visit(inner, side, carried)
        if isinstance(stmt, If):
            defined |= sides[0] & sides[1]
        if isinstance(stmt, Store) and not stmt.access.node.rank:
            defined.add(stmt.access.node.id)
        elif not isinstance(stmt, If | For | While):
            _forget(() if isinstance(stmt, Store) else direct_writes(stmt), defined)


def _forget(nodes: Iterable[Node], defined: set[int]) -> None:
    defined.difference_update(node.id for node in nodes)


# ----------------------------------------------------------------------------------- the invariant


def verify_scalars(program: Program) -> None:
    """Verify that vector loops store no scalar that another lane, or what comes after, reads.
    Raises CdInternalError naming every problem."""
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    given = (*program.results, *(parameter.node for parameter in program.parameters))
    live = frozenset(node.id for node in given if not node.rank)
    helps = ("this is a fault of plusequals, not of your function; please report this text",)
    problems = [
        Diagnostic(
            "CD0901",
            f"{program.name}: lanes of the loop over {loop.symbol.name} share `{label}`",
            (Label(loop.span),),
            helps,
        )
        for loop, label in _Liveness().shared(body, live, live)
    ]
    if problems:
        raise CdInternalError(*problems)


Scalars = frozenset[int]


@dataclass(frozen=True, slots=True)
class _Liveness:
    """The liveness of scalars in the statements of one program."""

    effects: dict[int, tuple[Scalars, Scalars]] = field(default_factory=dict)
    """What a statement reads before it stores it, and what it surely stores, by its `id`."""

    def shared(
        self, body: Iterable[Stmt], after: Scalars, jump: Scalars
    ) -> Iterator[tuple[For, str]]:
        """Yield the vector loops among statements, and inside of them, with each scalar that they
        store and that is live elsewhere: `after` are live after all of them, `jump` after those
        that leave early."""
        for stmt in reversed(tuple(body)):
            exposed, stored = self.of(stmt)
            end = jump
            if isinstance(stmt, For | While):
                end = after = after | exposed
            if isinstance(stmt, For) and stmt.kind == "vector":
                stores = (s for s in statements(stmt.body) if isinstance(s, Store))
                nodes = {s.access.node.id: s.access.node for s in stores}
                yield from ((stmt, nodes[n].label) for n in sorted(after & nodes.keys()))
            for inner in bodies(stmt):
                yield from self.shared(inner, after, end)
            after = exposed | (after - stored)
            if _leaves(stmt):
                after |= jump

    def of(self, stmt: Stmt) -> tuple[Scalars, Scalars]:
        """Return what a statement reads before it stores it, and what it surely stores."""
        if id(stmt) not in self.effects:
            self.effects[id(stmt)] = self.effects_of(stmt)
        return self.effects[id(stmt)]

    def effects_of(self, stmt: Stmt) -> tuple[Scalars, Scalars]:
        """Return the same, not remembered."""
        exposed = frozenset(node.id for node in direct_reads(stmt) if not node.rank)
        stored = Scalars()
        sides = [self.of_list(inner) for inner in bodies(stmt)]
        for inner, _ in sides:
            exposed |= inner
        match stmt:
            case Store():
                stored = frozenset((stmt.access.node.id,))
            case If():
                stored = sides[0][1] & sides[1][1]
            case For() if ((stmt.hi - stmt.lo).constant or 0) * stmt.step > 0:
                stored = sides[0][1]
        return exposed, stored

    def of_list(self, body: Iterable[Stmt]) -> tuple[Scalars, Scalars]:
        """Return the same for statements one after the other."""
        exposed, stored, leaves = Scalars(), Scalars(), False
        for stmt in body:
            inner, after = self.of(stmt)
            exposed |= inner - stored
            leaves |= _leaves(stmt)
            stored |= Scalars() if leaves else after
        return exposed, stored


def _leaves(stmt: Stmt) -> bool:
    """Whether a statement may leave the list that it is in early."""
    if isinstance(stmt, If):
        return any(_leaves(nested) for inner in bodies(stmt) for nested in inner)
    return isinstance(stmt, Break | Continue)
