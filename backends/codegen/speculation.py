"""Whether a choice may be computed without a branch: both sides at once, of which one is taken.

Compilers of C make vectors only of loops that have no branches. The side that is not taken may
be there to be left out, though: it may read at an index that the test keeps inside of an array.
That an index is in range is only ever derived from what a test says of integers. So both sides are
computed where the test compares floats, or what a caller passed, or what was computed from these
alone: a pass may have kept a test of indices in a variable.

Elsewhere a branch is better: a processor guesses it and goes on, and computes one side. Not where a
round waits for what one before it left in an array: a wrong guess is then paid in full, and a value
that is read in any case stays in a register.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import assert_never

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Access, Let
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
    reads,
    walk,
)
from ...lowering.ir.indexing import Affine, Symbol, const
from ...lowering.ir.loops import Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ...lowering.ir.walk import expressions_of, own, own_writes, statements, writes

FEW = 16
"""A loop of so many rounds may be written out by a compiler."""
LAST = 3
"""What waits for one of the last so many rounds is not done for four at once."""
_SLOW = frozenset(("floordiv", "mod", "fmod", "round_to", "round_decimal"))
"""Operations that no compiler makes vectors of, and which take long."""
_UNCLEAR = Position(const(0))


@dataclass(frozen=True, slots=True)
class Storage:
    """What is known of the storage of nodes, by their ids."""

    variables: frozenset[int] = frozenset()
    """Nodes that are held by value."""
    late: frozenset[int] = frozenset()
    """Nodes that may have no memory yet."""
    data: frozenset[int] = frozenset()
    """Nodes whose elements say nothing of indices: arrays of the caller, and what is of them."""
    numbers: frozenset[Symbol] = frozenset()
    """Symbols that stand for what the run reads."""
    flags: frozenset[int] = frozenset()
    """Truth values that are accumulated: of `bool` compilers make no vectors."""


def may_be_vectors(loop: For, storage: Storage) -> bool:
    """Whether a compiler may make vectors of a loop: it does the same things in every round.

    None of them may need what the round before left in a variable, unless that is a sum, or in an
    array.
    """
    inside = statements(loop.body)
    variables = {node.id for node in writes(inside)} & storage.variables
    known: set[int] = set()
    for stmt in inside:
        match stmt:
            case Store(Access(node, index)) | Update(Access(node, index), pair=None):
                if any(isinstance(at, Dynamic) for at in index):
                    return False
            case For(_, lo, hi) if (hi - lo).constant in range(FEW + 1):
                continue
            case Comment():
                continue
            case _:
                return False
        read = {part.node.id for expr in expressions_of(stmt) for part in reads(expr)}
        if read & variables - known:
            return False
        if isinstance(stmt, Store):
            known.add(node.id)
    return not waits(loop)


def waits(loop: For) -> bool:
    """Whether a round reads elements that one of the last few before it has written."""
    found = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store | Update)]
    targets: dict[int, dict[tuple[Index, ...], None]] = {}
    for stmt in found:
        if stmt.access.node.rank:
            targets.setdefault(stmt.access.node.id, {})[stmt.access.index] = None
    read = dict.fromkeys(
        (one.node.id, one.index)
        for stmt in found if targets
        for one in own(stmt).found
    )  # fmt: skip
    return any(
        _is_just_written(written, index, loop)
        for node, index in read
        for written in targets.get(node, ())
    )


def _is_just_written(written: tuple[Index, ...], read: tuple[Index, ...], loop: For) -> bool:
    """Whether what a round reads is what the round `1 .. LAST` before it has written."""
    rounds = set[int]()
    for one, other in zip(written, read, strict=True):
        if not isinstance(one, Affine) or not isinstance(other, Affine):
            return False
        gap, by = (one - other).constant, one.coefficient(loop.symbol) * loop.step
        if gap is None or (gap % by if by else gap):
            return False
        if by:
            rounds.add(gap // by)
    return len(rounds) == 1 and min(rounds) in range(1, LAST + 1)


def has_pick(dtype: DType) -> bool:
    """Whether values of that type can be taken without a branch: numbers that C computes with."""
    return dtype.compute is dtype and dtype.kind != "c"


def without_branch(test: Expr, yes: Expr, no: Expr, storage: Storage) -> bool:
    """Whether both sides may be computed whatever the test says."""
    if not all(_is_harmless(part, storage) for part in (test, yes, no)):
        return False
    return is_about_data(test, storage.data) or not any(
        part.node.id not in storage.variables and not part.node.purpose
        for side in (yes, no)
        for part in reads(side)
    )


def of_data(program: Program) -> frozenset[int]:
    """Return the arrays of the caller that are only read, and the locals that depend on no index.

    Of a local that is every value stored there, and every test under which it is.
    """
    given = {p.node.id for p in program.parameters if p.node.rank and not p.written}
    found: dict[int, list[Expr]] = {}
    for kernel in program.kernels:
        _collect(kernel.body, (), found)
    known = {node.id for node in program.locals} & found.keys()
    while True:
        data = given | known
        left = {one for one in known if all(is_about_data(x, data) for x in found[one])}
        if left == known:
            return frozenset(data)
        known = left


def storage_of(program: Program, variables: frozenset[int], late: frozenset[int]) -> Storage:
    """Return what is known of the storage of a program, some of whose nodes are held by value."""
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    lets = frozenset(stmt.symbol for stmt in body if isinstance(stmt, Let))
    taken = (stmt.access.node for stmt in body if isinstance(stmt, Update))
    flags = frozenset(n.id for n in taken if n.id in variables and n.dtype.kind == "b")
    return Storage(variables, late, of_data(program), lets, flags)


def _collect(body: Iterable[Stmt], tests: tuple[Expr, ...], found: dict[int, list[Expr]]) -> None:
    """Collect what decides the elements of each node that is written; a Position where unclear."""
    for stmt in body:
        match stmt:
            case Store(Access(node), value):
                told = value if reads(value) else _UNCLEAR
                found.setdefault(node.id, []).extend((told, *tests))
            case Fill():
                pass
            case If(test, then, other):
                _collect((*then, *other), (*tests, test), found)
            case While(prelude, test, inner):
                _collect((*prelude, *inner), (*tests, test), found)
            case For():
                _collect(stmt.body, tests, found)
            case _:
                for node in own_writes(stmt):
                    found.setdefault(node.id, []).append(_UNCLEAR)


def is_about_data(test: Expr, data: AbstractSet[int]) -> bool:
    """Whether a test says nothing from which an index could be known to be in range."""
    return not any(
        isinstance(part, Position)
        or (isinstance(part, Read) and part.dtype.kind not in "fc" and part.node.id not in data)
        for part in walk(test)
    )


def _is_harmless(expr: Expr, storage: Storage) -> bool:
    """Whether an expression can be computed at every point without reading outside of an array."""
    match expr:
        case Const() | Position():
            return True
        case Read(node, index):
            return node.id not in storage.late and not any(
                isinstance(at, Dynamic) or at.symbols() & storage.numbers for at in index
            )
        case Apply(op, args):
            slow = op.name in _SLOW or (op.name == "pow" and expr.dtype.kind in "iuc")
            return not slow and all(_is_harmless(arg, storage) for arg in args)
        case Cast(value):
            return _is_harmless(value, storage)
        case Select(test, yes, no):
            sides = (yes, no) if is_about_data(test, storage.data) else ()
            return all(_is_harmless(part, storage) for part in (test, *sides))
        case Reduce():
            return False
        case _:
            assert_never(expr)
