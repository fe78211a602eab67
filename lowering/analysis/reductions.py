"""Reductions over loops, and whether their partial results may be computed out of order.

Such a reduction accesses its accumulator only before and after the loop; the loop may do anything
else that does not access it. Also here: neutral elements, predicated updates, and the tree that
combines SIMD lanes.

>>> program = lowered("y[i] = sum(x[i, j, k])", y="f32[8]", x="f32[8, 9, 3]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> (loop,) = [stmt for stmt in nest.body if isinstance(stmt, For)]
>>> [[one.symbol.name for one in found.letters] for found in find_reductions(loop, (nest,))]
[['j', 'k']]
>>> find_reductions(nest, ())
[]
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir import dtypes
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.expressions import Apply, Cast, Const, Expr, Read, Select, reads, walk
from ..ir.indexing import Affine, var
from ..ir.loops import Check, Comment, For, If, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import Op, neutral_of
from ..ir.walk import bodies, direct_writes, expressions_of, statements
from .accesses import collect_accesses
from .subscripts import is_in_range, ranges

NOT_REORDERABLE = (Alloc, Break, Continue, Permute, Print, While, Check)
"""Statements that a loop may not contain whose reductions are computed outside: results would be
missing after them."""
_CHEAP_OPS = frozenset(
    "add sub mul neg abs isnan eq ne lt le gt ge logical_not bitand bitor".split()
)
"""Operations on floats, and tests of them, that take next to no time."""
_NEVER_MOVED = (Alloc, Break, Continue, Permute, While)
"""Those of `NOT_REORDERABLE` that no pass moves into a loop whose results are visible after an
error."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction: an update, and the loops over its terms."""

    update: Update
    letters: tuple[For, ...]
    """The reduction loops, outermost first, without those that were removed because they had one
    iteration. Of a minimum or maximum only the innermost: a partial result may be combined before
    the other loops."""
    is_guarded: bool
    """Whether the update is predicated in the innermost of these."""

    @property
    def innermost(self) -> For:
        """The loop whose iterations are distributed over SIMD lanes."""
        return self.letters[-1]

    @property
    def is_plain(self) -> bool:
        """Whether the innermost loop runs over the terms in order, in steps of one, and contains no
        loop."""
        loop = self.innermost
        counts = self.update.over[-1] == var(loop.symbol) - loop.lo and loop.step == 1
        simple = (Comment, Store, Update, If)
        return counts and all(isinstance(stmt, simple) for stmt in statements(loop.body))


def find_reductions(loop: For, outer: tuple[For, ...]) -> list[Reduction]:
    """Return the reductions whose outermost loop this is, and that may be computed outside of it.

    `outer` are the loops around it.
    """
    reductions = [
        reduction for reduction in _collect(loop.body, (*outer, loop), False)
        if reduction.letters and reduction.letters[0] is loop and can_reassociate(reduction.update)
    ]  # fmt: skip
    if not reductions or _may_skip(loop.body, {id(r.update) for r in reductions}):
        return []
    bound = frozenset(s.symbol for s in statements((loop,)) if isinstance(s, For | Let))
    sites, domain = collect_accesses((loop,)), ranges(outer)
    found = [
        r for r in reductions
        if not is_min_max(r.update) or (r.is_plain and not r.is_guarded and _is_light(r))
        if len(sites.of(r.update.access.node)) == 1
        and all(isinstance(i, Affine) and not i.symbols() & bound for i in r.update.access.index)
        and is_in_range(r.update.access.node, r.update.access.index, domain)
    ]  # fmt: skip
    return [r for r in found if not is_min_max(r.update) or _finds_all(r.innermost, found)]


def _may_skip(body: tuple[Stmt, ...], updates: set[int]) -> bool:
    """Whether statements may leave some updates out, or move arrays: not by jumps that stay inside
    of a loop without any of them, such as a search."""
    for stmt in body:
        if isinstance(stmt, _NEVER_MOVED):
            return True
        inside = statements((stmt,))
        if isinstance(stmt, For) and not any(id(inner) in updates for inner in inside):
            if any(isinstance(inner, _NEVER_MOVED) and not _is_jump(inner) for inner in inside):
                return True
        elif any(_may_skip(nested, updates) for nested in bodies(stmt)):
            return True
    return False


def _is_jump(stmt: Stmt) -> bool:
    return isinstance(stmt, Break | Continue)


def _finds_all(loop: For, reductions: list[Reduction]) -> bool:
    """Whether each update of a loop is one of these: minima and maxima in lanes take some terms
    twice, and store first ones."""
    ids = {id(reduction.update) for reduction in reductions}
    return all(id(stmt) in ids for stmt in loop.body if isinstance(stmt, Update))


def can_reassociate(update: Update) -> bool:
    """Whether a reduction is reassociable: partial results may be combined in another order.

    Products of complex numbers, which are rare, are order-preserving.
    """
    dtype = update.access.node.dtype
    if dtype.kind == "c":
        return update.op.name == "add"
    is_supported = update.op.name in ("add", "mul") or is_min_max(update)
    return is_supported and dtype in (dtypes.float32, dtypes.float64)


def is_min_max(update: Update) -> bool:
    """Whether it is a maximum or a minimum, which any order leaves the same, but for the sign of
    zeros."""
    return update.op.name in ("max", "min")


def _is_light(reduction: Reduction) -> bool:
    """Whether a loop only finds minima and maxima, of terms so cheap that this takes most of its
    time.

    It may define scalars, each once in an iteration, before it uses them.
    """
    inside = [s for s in statements(reduction.innermost.body) if not isinstance(s, Comment)]
    written = {node.id for stmt in inside for node in direct_writes(stmt)}
    defined: set[int] = set()
    for stmt in inside:
        if not isinstance(stmt, Store | Update) or not all(map(_is_cheap, walk(stmt.value))):
            return False
        if not {read.node.id for read in reads(stmt.value)} & written <= defined:
            return False
        if isinstance(stmt, Update):
            if not (is_min_max(stmt) and can_reassociate(stmt)):
                return False
        elif stmt.access.index or stmt.access.node.id in defined:
            return False
        else:
            defined.add(stmt.access.node.id)
    return True


def split_min_max(loop: For) -> tuple[For, ...]:
    """Return a loop distributed into one that does all but find minima and maxima of cheap terms,
    and one that finds them: each is vectorized, both in one are not. The loop alone where that is
    not legal or not profitable.

    Results are bit-identical: neither loop reads what the other one writes, but for scalars that
    both define.
    """
    extremes: list[Stmt] = []
    others: list[Stmt] = []
    definitions: list[Stmt] = []
    names = {s.access.node.id for s in loop.body if isinstance(s, Store) and not s.access.index}
    defined, written, read = set[int](), list[int](), set[int]()
    for stmt in loop.body:
        if isinstance(stmt, Comment):
            continue
        if not isinstance(stmt, Store | Update):
            return (loop,)
        node = stmt.access.node.id
        is_name = isinstance(stmt, Store) and node in names and node not in defined
        is_candidate = (
            isinstance(stmt, Update) and is_min_max(stmt) and can_reassociate(stmt) and stmt.over
        )
        (definitions if is_name else extremes if is_candidate else others).append(stmt)
        used = {load.node.id for expr in expressions_of(stmt) for load in reads(expr)}
        if not used & names <= defined:
            return (loop,)  # it may be a value of an earlier iteration
        read |= used
        if is_name:
            defined.add(node)
        else:
            written += [output.id for output in direct_writes(stmt)]
    all_cheap = all(
        _is_cheap(x) for s in (*definitions, *extremes) for e in expressions_of(s) for x in walk(e)
    )
    is_disjoint = len(set(written)) == len(written) and (read | names).isdisjoint(written)
    trip_count = (loop.hi - loop.lo).constant
    if (
        not extremes
        or not others
        or not all_cheap
        or not is_disjoint
        or trip_count in range(thresholds.MIN_SEPARATE_MIN_MAX_ITERATIONS)
    ):
        return (loop,)
    rest = tuple(stmt for stmt in loop.body if stmt not in extremes)
    return replace(loop, body=rest), replace(loop, body=(*definitions, *extremes))


def _is_cheap(expr: Expr) -> bool:
    """Whether a subexpression of a term takes next to no time."""
    match expr:
        case Const():
            return True
        case Read():
            return all(isinstance(at, Affine) for at in expr.index)
        case Apply():
            return expr.op.name in _CHEAP_OPS
        case Select():
            return expr.dtype in (dtypes.float32, dtypes.float64)
        case Cast():
            return expr.value.dtype is dtypes.float32
        case _:
            return False


def _collect(body: tuple[Stmt, ...], path: tuple[For, ...], guarded: bool) -> list[Reduction]:
    """Return the updates in a body that know the positions of their terms."""
    reductions: list[Reduction] = []
    for stmt in body:
        if isinstance(stmt, Update) and stmt.over:
            candidates = [reduction_loop(at, path) for at in stmt.over]
            reduction_loops = tuple(loop for loop in candidates if loop is not None)
            reduction_loops = reduction_loops[-1:] if is_min_max(stmt) else reduction_loops
            reductions.append(
                Reduction(stmt, reduction_loops, guarded or reduction_loops[-1:] != path[-1:])
            )
        for nested in bodies(stmt):
            if isinstance(stmt, For):
                reductions += _collect(nested, (*path, stmt), False)
            else:
                reductions += _collect(nested, path, guarded or isinstance(stmt, If))
    return reductions


def reduction_loop(at: Affine, path: tuple[For, ...]) -> For | None:
    """Return the reduction loop of a range: the bounds of a range use loops further out only."""
    return next((loop for loop in reversed(path) if loop.symbol in at.symbols()), None)


def initial_value(op: Op, node: Node) -> float:
    """Return the initial value of a reduction: of floating-point sums -0.0, for 0.0 would change
    the sum of negative zeros."""
    if node.dtype.kind != "f":
        return neutral_of(op, node.dtype.kind, node.dtype.bits)
    return -0.0 if op.name == "add" else float(neutral_of(op, node.dtype.kind, node.dtype.bits))


def predicate_update(update: Update, test: Expr) -> Update:
    """Return an update predicated by a test: where it does not hold, its term is neutral.

    Of a product both factors are selected: `fma(-0.0, 0.0, s)` is s, for -0.0 too.
    """
    match update.value:
        case Apply(op, (left, right)) if op.name == "product":
            zeros = Const(-0.0, left.dtype), Const(0.0, right.dtype)
            sides = tuple(Select(test, a, b) for a, b in zip((left, right), zeros, strict=True))
            return replace(update, value=replace(update.value, args=sides))
        case value:
            nothing = Const(initial_value(update.op, update.access.node), value.dtype)
            return replace(update, value=Select(test, value, nothing))


def combine_lanes(op: Op, terms: list[Expr]) -> Expr:
    """Return partial results combined in the order of SIMD lanes: a tree, but for minima and
    maxima, where the first of two zeros is taken."""
    if op.name in ("max", "min"):
        return reduce(lambda left, right: Apply(op, (left, right), left.dtype), terms)
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
