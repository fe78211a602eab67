"""Speculation: whether both sides of a select may be evaluated, so that it needs no branch.

C compilers vectorize only loops without branches. The side that is not selected may be guarded by
the test, though: it may read at an index that is in range only where the test holds. Such a range
is derived only from tests of integers. So both sides are evaluated where the test compares floats,
or data of the caller, or values computed from these alone: a pass may have stored a test of indices
in a variable.

Elsewhere a branch is better: a processor predicts it, and evaluates one side. It is not where the
loop carries a short dependence through an array: a misprediction is then on the critical path, and
a value that is read in any case stays in a register.
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
from ...lowering.ir.walk import direct_effects, direct_writes, expressions_of, statements, writes

MAX_UNROLLED = 16
"""The trip count up to which a compiler may unroll a loop completely."""
MAX_DISTANCE = 3
"""Dependences of at most this distance prevent vectors of four lanes."""
_SLOW = frozenset(("floordiv", "mod", "fmod", "round_to", "round_decimal"))
"""Operations that no compiler vectorizes, and which are slow."""
_UNKNOWN = Position(const(0))


@dataclass(frozen=True, slots=True)
class Storage:
    """Facts about the storage of nodes, by their ids."""

    variables: frozenset[int] = frozenset()
    """Nodes that are held by value."""
    late: frozenset[int] = frozenset()
    """Nodes that may not be allocated yet."""
    data: frozenset[int] = frozenset()
    """Nodes whose elements carry no facts about indices: arrays of the caller, and values derived
    from them."""
    numbers: frozenset[Symbol] = frozenset()
    """Symbols bound to run-time values."""
    flags: frozenset[int] = frozenset()
    """Boolean accumulators: compilers do not vectorize `bool`."""


def may_be_vectorized(loop: For, storage: Storage) -> bool:
    """Whether a C compiler may vectorize a loop: its body is straight-line code.

    It must carry no dependence through a variable, except of reductions, nor a short one through
    an array.
    """
    stmts = statements(loop.body)
    variables = {node.id for node in writes(stmts)} & storage.variables
    assigned: set[int] = set()
    for stmt in stmts:
        match stmt:
            case Store(Access(node, index)) | Update(Access(node, index), pair=None):
                if any(isinstance(at, Dynamic) for at in index):
                    return False
            case For(_, lo, hi) if (hi - lo).constant in range(MAX_UNROLLED + 1):
                continue
            case Comment():
                continue
            case _:
                return False
        read = {part.node.id for expr in expressions_of(stmt) for part in reads(expr)}
        if read & variables - assigned:
            return False
        if isinstance(stmt, Store):
            assigned.add(node.id)
    return not has_short_dependence(loop)


def has_short_dependence(loop: For) -> bool:
    """Whether a loop carries a flow dependence through an array of distance at most
    `MAX_DISTANCE`."""
    write_stmts = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store | Update)]
    targets: dict[int, dict[tuple[Index, ...], None]] = {}
    for stmt in write_stmts:
        if stmt.access.node.rank:
            targets.setdefault(stmt.access.node.id, {})[stmt.access.index] = None
    read = dict.fromkeys(
        (read_access.node.id, read_access.index)
        for stmt in write_stmts if targets
        for read_access in direct_effects(stmt).all_reads
    )  # fmt: skip
    return any(
        _is_short_dependence(written, index, loop)
        for node, index in read
        for written in targets.get(node, ())
    )


def _is_short_dependence(written: tuple[Index, ...], read: tuple[Index, ...], loop: For) -> bool:
    """Whether an iteration reads what an iteration `1 .. LAST` before it has written."""
    distances = set[int]()
    for write_at, read_at in zip(written, read, strict=True):
        if not isinstance(write_at, Affine) or not isinstance(read_at, Affine):
            return False
        offset, stride = (
            (write_at - read_at).constant,
            write_at.coefficient(loop.symbol) * loop.step,
        )
        if offset is None or (offset % stride if stride else offset):
            return False
        if stride:
            distances.add(offset // stride)
    return len(distances) == 1 and min(distances) in range(1, MAX_DISTANCE + 1)


def has_select(dtype: DType) -> bool:
    """Whether values of a type can be selected without a branch: those that C computes with."""
    return dtype.compute is dtype and dtype.kind != "c"


def is_speculatable(test: Expr, yes: Expr, no: Expr, storage: Storage) -> bool:
    """Whether both sides of a select may be evaluated whatever the test says."""
    if not all(_is_safe(part, storage) for part in (test, yes, no)):
        return False
    return implies_no_range(test, storage.data) or not any(
        part.node.id not in storage.variables and not part.node.purpose
        for side in (yes, no)
        for part in reads(side)
    )


def find_data_arrays(program: Program) -> frozenset[int]:
    """Return the read-only arrays of the caller, and the locals that depend on no index.

    A local does so by the values stored in it and by the tests that control these stores. Greatest
    fixed point.
    """
    inputs = {p.node.id for p in program.parameters if p.node.rank and not p.written}
    sources: dict[int, list[Expr]] = {}
    for kernel in program.kernels:
        _collect_sources(kernel.body, (), sources)
    candidates = {node.id for node in program.locals} & sources.keys()
    while True:
        data = inputs | candidates
        remaining = {
            candidate
            for candidate in candidates
            if all(implies_no_range(source, data) for source in sources[candidate])
        }
        if remaining == candidates:
            return frozenset(data)
        candidates = remaining


def analyze_storage(program: Program, variables: frozenset[int], late: frozenset[int]) -> Storage:
    """Return the facts about the storage of a program, some of whose nodes are held by value."""
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    let_symbols = frozenset(stmt.symbol for stmt in body if isinstance(stmt, Let))
    accumulators = (stmt.access.node for stmt in body if isinstance(stmt, Update))
    flags = frozenset(n.id for n in accumulators if n.id in variables and n.dtype.kind == "b")
    return Storage(variables, late, find_data_arrays(program), let_symbols, flags)


def _collect_sources(
    body: Iterable[Stmt], tests: tuple[Expr, ...], sources: dict[int, list[Expr]]
) -> None:
    """Collect the values and controlling tests of each written node; a Position where unknown."""
    for stmt in body:
        match stmt:
            case Store(Access(node), value):
                source = value if reads(value) else _UNKNOWN
                sources.setdefault(node.id, []).extend((source, *tests))
            case Fill():
                pass
            case If(test, then, orelse):
                _collect_sources((*then, *orelse), (*tests, test), sources)
            case While(prelude, test, inner):
                _collect_sources((*prelude, *inner), (*tests, test), sources)
            case For():
                _collect_sources(stmt.body, tests, sources)
            case _:
                for node in direct_writes(stmt):
                    sources.setdefault(node.id, []).append(_UNKNOWN)


def implies_no_range(test: Expr, data: AbstractSet[int]) -> bool:
    """Whether no range of an index can be derived from a test."""
    return not any(
        isinstance(part, Position)
        or (isinstance(part, Read) and part.dtype.kind not in "fc" and part.node.id not in data)
        for part in walk(test)
    )


def _is_safe(expr: Expr, storage: Storage) -> bool:
    """Whether an expression can be evaluated speculatively, without out-of-bounds accesses."""
    match expr:
        case Const() | Position():
            return True
        case Read(node, index):
            return node.id not in storage.late and not any(
                isinstance(at, Dynamic) or at.symbols() & storage.numbers for at in index
            )
        case Apply(op, args):
            slow = op.name in _SLOW or (op.name == "pow" and expr.dtype.kind in "iuc")
            return not slow and all(_is_safe(arg, storage) for arg in args)
        case Cast(value):
            return _is_safe(value, storage)
        case Select(test, yes, no):
            sides = (yes, no) if implies_no_range(test, storage.data) else ()
            return all(_is_safe(part, storage) for part in (test, *sides))
        case Reduce():
            return False
        case _:
            assert_never(expr)
