"""Which accumulations a loop counts the terms of, and whether they may be put together elsewhere.

Such a sum needs its cell only before and after the loop. What else the loop does does not matter,
as long as it touches nothing of that cell.

>>> program = lowered("y[i] = sum(x[i, j, k])", y="f32[8]", x="f32[8, 9, 3]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> (loop,) = [stmt for stmt in nest.body if isinstance(stmt, For)]
>>> [[one.symbol.name for one in found.letters] for found in sums(loop, (nest,))]
[['j', 'k']]
>>> sums(nest, ())
[]
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import Apply, Cast, Const, Expr, Read, Select, reads, walk
from ..ir.indexing import Affine, var
from ..ir.loops import Check, Comment, For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import Op, neutral_of
from ..ir.walk import bodies, expressions_of, own_writes, statements
from .accesses import accesses
from .subscripts import is_in_range, ranges

STAYS = (Alloc, Break, Continue, Permute, Print, While, Check)
"""What a loop may not do whose sums are taken elsewhere: they would be missing after it."""
MANY = 32
"""In loops of so many iterations extremes are found apart from sums."""
_CHEAP = frozenset("add sub mul neg abs isnan eq ne lt le gt ge logical_not bitand bitor".split())
"""Operations on floats, and tests of them, that take next to no time."""
_MOVES = (Alloc, Break, Continue, Permute, While)
"""What of this no pass brings into a loop whose sums can be seen after an error."""


@dataclass(frozen=True, slots=True)
class Sum:
    """An accumulation, and the loops that count its terms."""

    update: Update
    letters: tuple[For, ...]
    """Outermost first; loops that vanished, for they had one round, are not among them. Of an
    extreme the innermost alone: that of a part may be taken before the others."""
    is_guarded: bool
    """Whether the innermost of these does not reach it in every round."""

    @property
    def innermost(self) -> For:
        """The loop whose rounds are spread over the lanes."""
        return self.letters[-1]

    @property
    def is_plain(self) -> bool:
        """Whether the innermost loop counts the terms of its range, and has no loop in it."""
        loop = self.innermost
        counts = self.update.over[-1] == var(loop.symbol) - loop.lo and loop.step == 1
        simple = (Comment, Store, Update, If)
        return counts and all(isinstance(stmt, simple) for stmt in statements(loop.body))


def sums(loop: For, outer: tuple[For, ...]) -> list[Sum]:
    """Return the sums whose outermost loop that is, and that may be taken out of it.

    `outer` are the loops around it.
    """
    found = [
        one for one in _found(loop.body, (*outer, loop), False)
        if one.letters and one.letters[0] is loop and is_regrouped(one.update)
    ]  # fmt: skip
    if not found or any(isinstance(stmt, _MOVES) for stmt in statements((loop,))):
        return []
    bound = frozenset(s.symbol for s in statements((loop,)) if isinstance(s, For | Let))
    sites, known = accesses((loop,)), ranges(outer)
    return [
        one for one in found
        if not is_extreme(one.update) or (one.is_plain and not one.is_guarded and _is_light(one))
        if len(sites.of(one.update.access.node)) == 1
        and all(isinstance(i, Affine) and not i.symbols() & bound for i in one.update.access.index)
        and is_in_range(one.update.access.node, one.update.access.index, known)
    ]  # fmt: skip


def is_regrouped(update: Update) -> bool:
    """Whether partial results of an accumulation may be put together in another order.

    Products of complex numbers, which are rare, stay in theirs.
    """
    dtype = update.access.node.dtype
    if dtype.kind == "c":
        return update.op.name == "add"
    known = update.op.name in ("add", "mul") or is_extreme(update)
    return known and dtype in (dtypes.float32, dtypes.float64)


def is_extreme(update: Update) -> bool:
    """Whether it is a maximum or a minimum, which no order changes, but for the sign of zeros."""
    return update.op.name in ("max", "min")


def _is_light(one: Sum) -> bool:
    """Whether a loop finds extremes alone, of terms so cheap that this takes most of its time.

    It may give values names, each once in a round, before it uses them.
    """
    inside = [s for s in statements(one.innermost.body) if not isinstance(s, Comment)]
    own = {node.id for stmt in inside for node in own_writes(stmt)}
    named: set[int] = set()
    for stmt in inside:
        if not isinstance(stmt, Store | Update) or not all(map(_is_cheap, walk(stmt.value))):
            return False
        if not {read.node.id for read in reads(stmt.value)} & own <= named:
            return False
        if isinstance(stmt, Update):
            if not (is_extreme(stmt) and is_regrouped(stmt)):
                return False
        elif stmt.access.index or stmt.access.node.id in named:
            return False
        else:
            named.add(stmt.access.node.id)
    return True


def extremes_apart(loop: For) -> tuple[For, ...]:
    """Return a loop as one that does all but find extremes of cheap terms, and one that finds them:
    each is done in lanes, both together are not. The loop alone where that is not so.

    Results are bit-identical: neither loop uses what the other one changes, but for names of
    values, which both give.
    """
    found: list[Stmt] = []
    others: list[Stmt] = []
    named: list[Stmt] = []
    names = {s.access.node.id for s in loop.body if isinstance(s, Store) and not s.access.index}
    given, changed, read = set[int](), list[int](), set[int]()
    for stmt in loop.body:
        if isinstance(stmt, Comment):
            continue
        if not isinstance(stmt, Store | Update):
            return (loop,)
        node = stmt.access.node.id
        is_name = isinstance(stmt, Store) and node in names and node not in given
        best = isinstance(stmt, Update) and is_extreme(stmt) and is_regrouped(stmt) and stmt.over
        (named if is_name else found if best else others).append(stmt)
        used = {one.node.id for expr in expressions_of(stmt) for one in reads(expr)}
        if not used & names <= given:
            return (loop,)  # it may be what an earlier iteration has left
        read |= used
        if is_name:
            given.add(node)
        else:
            changed += [one.id for one in own_writes(stmt)]
    cheap = all(_is_cheap(x) for s in (*named, *found) for e in expressions_of(s) for x in walk(e))
    apart = len(set(changed)) == len(changed) and (read | names).isdisjoint(changed)
    rounds = (loop.hi - loop.lo).constant
    if not found or not others or not cheap or not apart or rounds in range(MANY):
        return (loop,)
    rest = tuple(stmt for stmt in loop.body if stmt not in found)
    return replace(loop, body=rest), replace(loop, body=(*named, *found))


def _is_cheap(expr: Expr) -> bool:
    """Whether a part of a term takes next to no time."""
    match expr:
        case Const():
            return True
        case Read():
            return all(isinstance(at, Affine) for at in expr.index)
        case Apply():
            return expr.op.name in _CHEAP
        case Select():
            return expr.dtype in (dtypes.float32, dtypes.float64)
        case Cast():
            return expr.value.dtype is dtypes.float32
        case _:
            return False


def _found(body: tuple[Stmt, ...], path: tuple[For, ...], guarded: bool) -> list[Sum]:
    """Return the accumulations in a body that know where their terms stand."""
    found: list[Sum] = []
    for stmt in body:
        if isinstance(stmt, Update) and stmt.over:
            counting = [counting_loop(at, path) for at in stmt.over]
            letters = tuple(loop for loop in counting if loop is not None)
            letters = letters[-1:] if is_extreme(stmt) else letters
            found.append(Sum(stmt, letters, guarded or letters[-1:] != path[-1:]))
        for one in bodies(stmt):
            if isinstance(stmt, For):
                found += _found(one, (*path, stmt), False)
            else:
                found += _found(one, path, guarded or isinstance(stmt, If))
    return found


def counting_loop(at: Affine, path: tuple[For, ...]) -> For | None:
    """Return the loop that counts a range: the bounds of a range use loops further out only."""
    return next((loop for loop in reversed(path) if loop.symbol in at.symbols()), None)


def start_of(op: Op, node: Node) -> float:
    """Return what a sum starts with: of floats -0.0, for 0.0 would change the sum of zeros."""
    if node.dtype.kind != "f":
        return neutral_of(op, node.dtype.kind, node.dtype.bits)
    return -0.0 if op.name == "add" else float(neutral_of(op, node.dtype.kind, node.dtype.bits))


def chosen(update: Update, test: Expr) -> Update:
    """Return an accumulation of what it adds where a test holds, and else of what changes nothing.

    Of a product both factors are chosen: `fma(-0.0, 0.0, s)` is s, for -0.0 too.
    """
    match update.value:
        case Apply(op, (one, two)) if op.name == "product":
            zeros = Const(-0.0, one.dtype), Const(0.0, two.dtype)
            sides = tuple(Select(test, a, b) for a, b in zip((one, two), zeros, strict=True))
            return replace(update, value=replace(update.value, args=sides))
        case value:
            nothing = Const(start_of(update.op, update.access.node), value.dtype)
            return replace(update, value=Select(test, value, nothing))


def together(op: Op, terms: list[Expr]) -> Expr:
    """Return the terms put together as lanes are, of which the first zero is the greatest."""
    if op.name in ("max", "min"):
        return reduce(lambda one, two: Apply(op, (one, two), one.dtype), terms)
    while len(terms) > 1:
        half = upper_half(len(terms))
        pairs = [terms[n : n + 1] + terms[n + half : n + half + 1] for n in range(half)]
        terms = [p[0] if len(p) == 1 else Apply(op, tuple(p), p[0].dtype) for p in pairs]
    return terms[0]


def upper_half(width: int) -> int:
    """Return where the upper half of some lanes starts: at a power of two.

    >>> upper_half(32), upper_half(5), upper_half(2)
    (16, 4, 1)
    """
    return 1 << (width - 1).bit_length() - 1
