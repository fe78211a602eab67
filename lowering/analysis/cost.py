"""How much work a loop is, as an index expression: a number, or what a call computes from sizes.

The unit is an addition of one lane of a vector. What `cost` counts is worth `SCALAR` of these, but
in innermost loops that compilers make vectors of: stores side by side, of cheap operations. What a
tile in registers has is only computed, `AT_ONCE` for a unit: each read is for many elements. Bounds
that depend on a loop inside are taken in its middle, what data decides is taken to be `UNKNOWN`: it
is a guess, and nothing but speed may depend on it. It changes nothing.

>>> program = lowered("y[i] = sum(x[i, j] * x[i, j])", y="f32[9]", x="f32[9, 50]")
>>> rounds_of(program.kernels[0].body[-1]), work_of(program.kernels[0].body[-1])
(9, 2416)
>>> program = lowered("y[i, j] = x[i, j] * x[i, j]", y="f32[9, 50]", x="f32[9, 50]")
>>> work_of(program.kernels[0].body[-1])
208
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ..ir.algebra import FALSE
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import reads, walk
from ..ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    multiply,
    sides,
    substitute,
)
from ..ir.loops import Barrier, Check, Comment, Fill, For, If, Stmt, Store, Update, While
from ..ir.memo import keep
from ..ir.node import Node
from ..ir.walk import bodies, expressions_of, statements
from .expression_cost import READ, UNKNOWN, cost

WRITE = 1
"""What a store of an element costs, while it is computed anyway."""
PRINTED = 1000
"""What a print is taken to cost."""
SCALAR = 8
"""What an operation costs that is none of a vector."""
DEAR = 16
"""What `cost` says of a call of the C library, of which no vectors are made."""
AT_ONCE = 16
"""So many bytes of a tile of rows and columns are computed for a unit."""
MOST = 1 << 40
"""No number is larger than that, so that products with sizes stay numbers."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of symbols: what some are taken to be, and which are sizes, never negative."""

    sizes: frozenset[Symbol] | None
    """None: all are."""
    values: Mapping[Symbol, Affine] = field(default_factory=dict)

    def inside(self, symbol: Symbol, value: Affine) -> _Known:
        """Return what is known where a symbol is taken to be a value."""
        return _Known(self.sizes, {**self.values, symbol: value})

    def rounds(self, loop: For) -> Affine:
        """Return how many rounds a loop has, at least 0."""
        rounds = _most(loop, self.values)
        return rounds if self.is_size(rounds) else maximum(rounds, const(0))

    def is_size(self, number: Affine) -> bool:
        """Whether a number is a sum of sizes."""
        sizes = number.symbols() if self.sizes is None else self.sizes
        plain = all(factor > 0 and atom in sizes for atom, factor in number.terms)
        return plain and number.offset >= 0


def _most(loop: For, values: Mapping[Symbol, Affine]) -> Affine:
    """Return how many rounds a loop has, of a tile that may be cut off how many it has in whole."""
    if loop.step > 0:
        if not loop.lo.terms and not loop.hi.terms:  # as most have
            return const(-((loop.lo.offset - loop.hi.offset) // loop.step))
        los, his = sides(substitute(loop.lo, values), "max"), sides(loop.hi, "min")
        gaps = [(substitute(hi, values) - lo).constant for hi in his for lo in los]
        known = [gap for gap in gaps if gap is not None]
        if known:
            return const(-(-min(known) // loop.step))
    return substitute(rounds_of(loop), values)


def rounds_of(loop: For) -> Affine:
    """Return how many rounds a loop has; less than zero may stand for none."""
    gap = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    step = abs(loop.step)
    return gap if step == 1 else floordiv(gap + (step - 1), const(step))


def work_of(loop: For | While, sizes: frozenset[Symbol] | None = None) -> Affine:
    """Return about how much work a round is, in symbols that are known at the loop.

    It is at least 0, where the symbols in `sizes` are, or of None all that are not bound inside.
    """
    known = _Known(sizes)
    if isinstance(loop, While):
        return _work(loop.prelude + loop.body, known, SCALAR) + cost(loop.test) * SCALAR
    return _round(loop, known)


def _round(loop: For, known: _Known) -> Affine:
    """Return how much work a round of a loop is; kept with it where no value is in its sizes."""
    if not known.values.keys().isdisjoint(_extents(loop)):
        return _computed(loop, known)
    try:
        found: dict[frozenset[Symbol] | None, Affine] = loop.work
    except AttributeError:
        found = keep(loop, "work", {})
    work = found.get(known.sizes)
    if work is None:
        work = found[known.sizes] = _computed(loop, known)
    return work


def _computed(loop: For, known: _Known) -> Affine:
    middle = _middle(loop, known, known.rounds(loop))
    return _work(loop.body, known.inside(loop.symbol, middle), _scale(loop))


def _extents(stmt: Stmt) -> frozenset[Symbol]:
    """Return the symbols that ranges and sizes of arrays in a statement use, but for its own."""
    try:
        known: frozenset[Symbol] = stmt.extents
    except AttributeError:
        used = {symbol for body in bodies(stmt) for one in body for symbol in _extents(one)}
        match stmt:
            case For():
                used.discard(stmt.symbol)
                used |= stmt.lo.symbols() | stmt.hi.symbols()
            case Fill(node) | Alloc(node):
                used.update(*(extent.symbols() for extent in node.shape))
            case _:
                pass
        known = keep(stmt, "extents", frozenset(used))
    return known


def _own_cost(stmt: Stmt) -> int:
    """Return what the expressions of a statement cost, without the statements inside of it."""
    try:
        known: int = stmt.cost
    except AttributeError:
        known = keep(stmt, "cost", sum(map(cost, expressions_of(stmt))))
    return known


def total_of(loop: For, sizes: frozenset[Symbol] | None = None) -> Affine:
    """Return about how much work all rounds together are, as `work_of` does."""
    return _product(_Known(sizes).rounds(loop), work_of(loop, sizes))


def _scale(loop: For) -> int:
    """Return what an operation in a loop costs."""
    return 1 if loop.kind == "vector" or _is_vector(loop) else SCALAR


def _in_registers(loop: For, rounds: Affine) -> Affine:
    """Return the rounds of a loop, or with how many units a row of a tile is computed."""
    if loop.kind != "vector" or len(loop.body) != 1:
        return rounds
    match loop.body[0]:
        case Store(access) | Update(access) if _is_tile(access.node):
            some = max(1, AT_ONCE // access.node.dtype.itemsize)
            return floordiv(rounds + (some - 1), const(some))
        case _:
            return rounds


def _is_tile(node: Node) -> bool:
    """Whether a node is a tile of rows and columns, in registers."""
    return node.purpose == "tile" and node.rank > 1


def _is_vector(loop: For) -> bool:
    """Whether compilers make vectors of an innermost loop: neighbours are stored, by cheap work."""
    return all(
        isinstance(stmt, Comment)
        or (
            isinstance(stmt, Store | Update)
            and is_beside(stmt, loop.symbol)
            and cost(stmt.value) < DEAR
        )
        for stmt in loop.body
    )


def is_beside(stmt: Store | Update, symbol: Symbol) -> bool:
    """Whether the next round writes the next element, or the one before, or adds whole numbers."""
    node, index = stmt.access.node, stmt.access.index
    if not index and isinstance(stmt, Update):
        return node.dtype.kind in "iu" and stmt.pair is None
    if not index or node.strides is not None or not isinstance(index[-1], Affine):
        return False
    return index[-1].coefficient(symbol) in (1, -1)


def _work(body: tuple[Stmt, ...], known: _Known, scale: int) -> Affine:
    total = const(0)
    for stmt in body:
        total += _one(stmt, known, scale)
        if isinstance(stmt, Let):
            known = known.inside(stmt.symbol, const(UNKNOWN))
    return _limited(total)


def _one(stmt: Stmt, known: _Known, scale: int) -> Affine:
    if isinstance(stmt, For):
        rounds = _in_registers(stmt, known.rounds(stmt))
        return _product(rounds, _round(stmt, known)) + SCALAR
    own = const(_own_cost(stmt) * scale)
    match stmt:
        case While(prelude, _, body):
            return (own + _work(prelude + body, known, SCALAR)) * UNKNOWN
        case If(_, then, ()) if _looks_for_faults(then) or ends_in_failure(then):
            return own
        case If(_, then, other):
            return own + _larger(_work(then, known, scale), _work(other, known, scale))
        case Store(access, value) if _is_tile(access.node):
            return const(max(1, cost(value) - READ * len(reads(value))) * scale)
        case Store(access):
            return own + (WRITE * scale if access.node.rank else 0)
        case Update(access, _, value) if access.node.purpose == "tile":
            return const(max(1, cost(value) - READ * len(reads(value))) * scale)
        case Update(access):
            return own + (1 + READ + WRITE if access.node.rank else 1) * scale
        case Fill(node) | Alloc(node):
            return _size(node, known)
        case Print():
            return own + PRINTED * scale
        case Let() | Check() | Permute() | Comment() | Barrier() | Break() | Continue():
            return own
        case _:
            assert_never(stmt)


def ends_in_failure(body: tuple[Stmt, ...]) -> bool:
    """Whether the last statement is a check that surely fails: what is before is done once."""
    return bool(body) and isinstance(body[-1], Check) and surely_fails(body[-1])


def surely_fails(check: Check) -> bool:
    """Whether a check fails whenever it is reached."""
    return check.test == FALSE


def going_on(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements but those before a failure."""
    return tuple(s for s in body if not (isinstance(s, If) and ends_in_failure(s.then)))


def _looks_for_faults(body: tuple[Stmt, ...]) -> bool:
    """Whether statements do nothing but checks, and what these need: a test knew that one fails."""
    inside = [stmt for stmt in statements(body) if not isinstance(stmt, For | Let | Comment)]
    return any(isinstance(stmt, Check) for stmt in inside) and all(
        isinstance(stmt, Check) or (isinstance(stmt, Store) and not stmt.access.index)
        for stmt in inside
    )


def _size(node: Node, known: _Known) -> Affine:
    size = const(1)
    for extent in node.shape:
        size = _product(substitute(extent, known.values), size)
    return size


def _middle(loop: For, known: _Known, rounds: Affine) -> Affine:
    """Return the value that the variable of a loop has in its middle round, of so many."""
    if rounds.constant is not None and loop.step == 1:
        return substitute(loop.lo, known.values) + rounds.constant // 2
    return floordiv(substitute(loop.lo + loop.hi, known.values), const(2))


def _larger(one: Affine, other: Affine) -> Affine:
    """Return the greater of two; both together where that is not known before the call."""
    if one.constant is None or other.constant is None:
        return one + other
    return const(max(one.constant, other.constant))


def _product(rounds: Affine, work: Affine) -> Affine:
    if rounds.constant is not None:
        rounds = const(min(max(0, rounds.constant), MOST))
    return _limited(multiply(rounds, work))


def _limited(work: Affine) -> Affine:
    return work if work.constant is None else const(min(work.constant, MOST))


_LARGEST = 1000
"""How many parts the expressions of a loop may have that is written three times."""


def is_large(loop: For) -> bool:
    """Whether a loop is too long to be written three times."""
    inside = statements(loop.body)
    return sum(len(walk(expr)) for stmt in inside for expr in expressions_of(stmt)) > _LARGEST
