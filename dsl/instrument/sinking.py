"""Counts of NaNs that are sunk out of loops and branches, so that these stay as they are.

    for t in range(n):                    for t in range(n):
        y[t] = y[t - 1] / x[t]                y[t] = y[t - 1] / x[t]
        count += sum(isnan(y[t]))         count += sum[t](isnan(y[t]))

After a loop all is counted that its iterations wrote, where none overwrites what another one
has. Where they do, as in steps over time, the last one is counted, where NaNs stay: another
statement, or the same one in the next iteration, reads all of it before that, and makes NaN of NaN.
So each NaN goes on from iteration to iteration, until it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Assign,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Permute,
    Statement,
)
from ...lowering.ir.expressions import Apply, Cast, Domain, Expr, Position, Read, Reduce, walk
from ...lowering.ir.indexing import Affine, Range, Symbol, substitute, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import substitute_expr
from ...lowering.ir.walk import binds, direct_writes, statements, writes

_STRICT = frozenset(["add", "sub", "mul", "div", "neg", "abs", "sqrt", "recip", "exp"])
"""Operations on reals that give NaN wherever an operand is NaN."""


@dataclass(frozen=True, slots=True)
class Left:
    """Elements that a statement wrote, which are to be counted."""

    read: Read
    points: Domain
    by: Assign | None = None
    """The statement, None for a call of the library."""

    @property
    def node(self) -> Node:
        """The array that has them."""
        return self.read.node

    @property
    def tests(self) -> tuple[Expr, ...]:
        """What decides which elements these are: subscripts, and the test of the points."""
        inner = tuple(part for part in walk(self.read) if part is not self.read)
        return inner if self.points.where is None else (*inner, *walk(self.points.where))


def permuted(left: Left, swap: Permute) -> Left:
    """Return the same elements after arrays have traded places."""
    if left.node not in swap.sources:
        return left
    node = swap.nodes[swap.sources.index(left.node)]
    return replace(left, read=replace(left.read, node=node))


def out_of_branch(branch: Branch, taken: bool, left: Sequence[Left]) -> Iterator[Left | None]:
    """Yield what is counted after a branch of what the end of one side leaves, None for what
    is not: it is tested again there whether the side was taken."""
    side = branch.then if taken else branch.orelse
    test = branch.test if taken else Apply(OPS["logical_not"], (branch.test,), dtypes.bool_)
    changed = set(writes((branch,)))
    fixed = not branch.many and not _leaves(side) and changed.isdisjoint(_nodes(walk(test)))
    bound = _bound(side)
    for element in left:
        if fixed and _is_steady(element, changed, bound):
            where = element.points.where
            both = test if where is None else Apply(OPS["and"], (test, where), dtypes.bool_)
            yield replace(element, points=replace(element.points, where=both))
        else:
            yield None


def out_of_both_sides(
    branch: Branch, then: Sequence[Left], orelse: Sequence[Left]
) -> Iterator[tuple[Left, Left]]:
    """Yield what the ends of both sides of a branch leave, twice: it is counted after the branch,
    whichever side was taken."""
    changed, sides = set(writes((branch,))), (*branch.then, *branch.orelse)
    if branch.many or _leaves(sides):
        return
    bound = _bound(sides)
    for element in then:
        other = next((x for x in orelse if _is_same(element, x)), None)
        if other is not None and _is_steady(element, changed, bound):
            yield element, other


def _is_same(first: Left, second: Left) -> bool:
    """Whether two are the same elements, in the same order, but for the names of indices."""
    symbols, others = first.points.symbols, second.points.symbols
    if first.node != second.node or len(symbols) != len(others):
        return False
    names = {b: var(a) for a, b in zip(symbols, others, strict=True)}
    ranges = tuple(
        Range(a, substitute(r.lo, names), substitute(r.hi, names))
        for a, r in zip(symbols, second.points.ranges, strict=True)
    )
    where = None if second.points.where is None else substitute_expr(second.points.where, names)
    same_read = substitute_expr(second.read, names) == first.read
    return same_read and ranges == first.points.ranges and where == first.points.where


def out_of_loop(
    loop: For, left: Sequence[Left], is_counted: Callable[[Assign], bool]
) -> Iterator[Left | None]:
    """Yield what is counted after a loop of what the end of its body leaves, None for what is
    not; `is_counted` tells whether what a statement leaves is."""
    bound, changed = _bound(loop.body), set(writes(loop.body))
    whole = abs(loop.step) == 1 and not _leaves(loop.body)
    for element in left:
        steady = whole and _is_steady(element, changed, bound)
        if steady and _writes_distinct_elements(loop, element, bound):
            lo, hi = (loop.lo, loop.hi) if loop.step == 1 else (loop.hi + 1, loop.lo + 1)
            ranges = Range(loop.symbol, lo, hi), *element.points.ranges
            yield replace(
                element, points=replace(element.points, ranges=_ordered(ranges, element.read))
            )
        elif steady and _goes_on(loop, element, is_counted):
            yield element
        else:
            yield None


def _ordered(ranges: tuple[Range, ...], read: Read) -> tuple[Range, ...]:
    """Return ranges in the order of the axes that they go along, where any order will do."""
    names = [r.symbol for r in ranges]
    if any(not (r.lo.symbols() | r.hi.symbols()).isdisjoint(names) for r in ranges):
        return ranges
    axes = [at.symbols() if isinstance(at, Affine) else () for at in read.index]
    first = {x: n for n, symbols in reversed([*enumerate(axes)]) for x in symbols}
    return tuple(sorted(ranges, key=lambda r: first.get(r.symbol, len(axes))))


def _leaves(body: Sequence[Statement]) -> bool:
    """Whether an iteration may end early, so that not all of it is run."""
    return any(isinstance(statement, Break | Continue) for statement in statements(body))


def _bound(body: Sequence[Statement]) -> frozenset[Symbol]:
    """Return the symbols that have no meaning after a list of statements."""
    return frozenset(x for statement in statements(body) for x in binds(statement))


def _nodes(parts: Collection[Expr] | Iterator[Expr]) -> set[Node]:
    return {part.node for part in parts if isinstance(part, Read)}


def _symbols(left: Left) -> set[Symbol]:
    """Return the symbols by which elements are found, without those of their own ranges."""
    symbols = {x for at in left.read.index if isinstance(at, Affine) for x in at.symbols()}
    symbols |= {x for r in left.points.ranges for x in (*r.lo.symbols(), *r.hi.symbols())}
    return symbols - set(left.points.symbols)


def _is_steady(left: Left, changed: Collection[Node], bound: Collection[Symbol]) -> bool:
    """Whether it is the same elements after a nest, whatever that has done meanwhile."""
    tests = left.tests
    names = {x for part in tests for x in _named(part)} - set(left.points.symbols)
    if any(isinstance(part, Reduce) for part in tests) or not names.isdisjoint(bound):
        return False
    return _nodes(tests).isdisjoint(changed) and _symbols(left).isdisjoint(bound)


def _named(part: Expr) -> Iterator[Symbol]:
    """Yield the symbols that a part of an expression names itself."""
    match part:
        case Read(_, index):
            for at in index:
                yield from at.symbols() if isinstance(at, Affine) else ()
        case Position(at):
            yield from at.symbols()


def _writes_distinct_elements(loop: For, left: Left, bound: Collection[Symbol]) -> bool:
    """Whether each iteration writes elements that no other one writes.

    All that write the array have the loop's variable, and nothing that changes beside it, in one
    and the same subscript.
    """
    writers = [
        statement for statement in statements(loop.body) if left.node in direct_writes(statement)
    ]
    for axis, at in enumerate(left.read.index):
        if not isinstance(at, Affine) or not _moves(at, loop.symbol, bound, left.points):
            continue
        if all(
            isinstance(statement, Assign) and statement.target.index[axis] == at
            for statement in writers
        ):
            return True
    return False


def _moves(at: Affine, symbol: Symbol, bound: Collection[Symbol], points: Domain) -> bool:
    """Whether a subscript is a multiple of a symbol and of nothing else that changes."""
    matches = [atom for atom, _ in at.terms if isinstance(atom, Symbol) and atom == symbol]
    rest = at.symbols() - {symbol}
    plain = all(isinstance(atom, Symbol) for atom, _ in at.terms)
    return bool(matches) and plain and rest.isdisjoint(bound) and rest.isdisjoint(points.symbols)


def _goes_on(loop: For, left: Left, is_counted: Callable[[Assign], bool]) -> bool:
    """Whether a NaN of an iteration goes on into something that is counted before it is
    overwritten: by what overwrites it, where nothing else does, or else by a statement after it,
    or of the next iteration."""
    tested = {symbol for part in left.tests for symbol in _named(part)}
    if left.by is None or loop.symbol in tested | _symbols(left):
        return False
    writers = [
        statement for statement in statements(loop.body) if left.node in direct_writes(statement)
    ]
    if [id(statement) for statement in writers] == [id(left.by)] and any(_target_reads(left.by)):
        return True
    if left.points.where is not None:
        return False
    body = list(_flat(loop.body))
    at = next((n for n, statement in enumerate(body) if statement is left.by), None)
    if at is None:
        return False
    node = left.by.target.node
    for statement in (*body[at + 1 :], *body[: at + 1]):
        now = replace(left, read=replace(left.read, node=node))
        if isinstance(statement, Permute):
            node = permuted(now, statement).node
        elif isinstance(statement, Assign) and is_counted(statement) and passes_on(statement, now):
            return True
        elif node in writes((statement,)):
            return False
    return False


def _flat(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements of a list, those under comments among them."""
    for statement in body:
        if isinstance(statement, Block):
            yield from _flat(statement.body)
        else:
            yield statement


Box = tuple[tuple[Affine, Affine], ...]


def passes_on(statement: Assign, left: Left) -> bool:
    """Whether a statement makes NaN of each NaN among some elements, so that it is enough to
    count what it leaves.

    What it writes itself it has to read at the very place, whatever order its points are run in.
    """
    if statement.target.node.dtype.kind != "f" or left.node.dtype.kind != "f":
        return False
    if statement.free.where is not None or statement.call is not None or statement.pair is not None:
        return False
    if any(not isinstance(x, Affine) for x in statement.target.index) or statement.reduced.ranges:
        return False
    if statement.target.node == left.node:
        candidates = list(_target_reads(statement))
    else:
        candidates = [read for read in _strict(statement.value) if read.node == left.node]
    boxes = [box for read in candidates if (box := _box(read, statement.free)) is not None]
    whole = _box(left.read, left.points) if left.points.where is None else None
    return whole is not None and any(
        _covers(x, whole) or _cover(x, y, whole) for x in boxes for y in boxes
    )


def _target_reads(statement: Assign) -> Iterator[Read]:
    """Yield the element that a statement writes, where it is read and NaN of it made NaN."""
    target = Read(statement.target.node, statement.target.index)
    if statement.target.node.dtype.kind == "f":
        if statement.op is not None and statement.op.name in _STRICT:
            yield target
        yield from (
            read for read in _strict(statement.value) if statement.op is None and read == target
        )


def _strict(value: Expr) -> Iterator[Read]:
    """Yield what an expression reads and is NaN of wherever that is."""
    match value:
        case Read():
            yield value
        case Cast(inner) if value.dtype.kind == inner.dtype.kind == "f":
            yield from _strict(inner)
        case Apply(op, args) if op.name in _STRICT and value.dtype.kind == "f":
            for arg in args:
                yield from _strict(arg)


def _box(read: Read, points: Domain) -> Box | None:
    """Return the elements that are read as a box, None where they are none, or not each once."""
    symbols, box = set(points.symbols), list[tuple[Affine, Affine]]()
    unused_ranges = {r.symbol: r for r in points.ranges}
    for at in read.index:
        if not isinstance(at, Affine):
            return None
        axis_symbols = [x for x in at.symbols() if x in symbols]
        if not axis_symbols:
            box.append((at, at + 1))
            continue
        r = unused_ranges.pop(axis_symbols[0], None)
        if (
            len(axis_symbols) > 1
            or r is None
            or not symbols.isdisjoint(r.lo.symbols() | r.hi.symbols())
        ):
            return None
        if (shift := at - var(r.symbol)).symbols() & symbols:
            return None
        box.append((r.lo + shift, r.hi + shift))
    return None if unused_ranges else tuple(box)


def _covers(box: Box, whole: Box) -> bool:
    return all(_within(part, whole[n]) for n, part in enumerate(box))


def _within(wide: tuple[Affine, Affine], part: tuple[Affine, Affine]) -> bool:
    """Whether a range has all of another one, as far as is known now."""
    return _is_least(part[0] - wide[0]) and _is_least(wide[1] - part[1])


def _cover(first: Box, second: Box, whole: Box) -> bool:
    """Whether two boxes, of which one begins where the other goes on, have all of a third."""
    differ = [n for n, parts in enumerate(zip(first, second, strict=True)) if parts[0] != parts[1]]
    if len(differ) != 1:
        return False
    (axis,) = differ
    (lo, mid), (go, hi) = first[axis], second[axis]
    both = (*first[:axis], (lo, hi), *first[axis + 1 :])
    return _is_least(mid - go) and _is_least(go - lo) and _covers(both, whole)


def _is_least(number: Affine) -> bool:
    """Whether a number is at least 0 whatever the sizes are."""
    return number.constant is not None and number.offset >= 0
