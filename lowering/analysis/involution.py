"""Iterations paired by an involution, of which one does the work of both: none share an element.

    for i: j = i ^ k; if j > i: exchange x[i] and x[j]           the partner of j is i
    for i: if i & k == 0: x[i], x[i + k] = ...                   the iteration i + k does nothing

Exclusive or is its own inverse, so that each element has one partner; where all accesses of an
iteration to an array are under a test that fails in the partner's iteration, iterations are
independent (butterflies of sorting networks and transforms). Analysis only.

>>> program = lowered('''
... for i in range(8):
...     j = i ^ k
...     if j > i and x[i] > x[j]:
...         t = x[i]
...         x[i] = x[j]
...         x[j] = t
... ''', x="f32[8]", k="i64")
>>> loop = next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
>>> from plusequals.lowering.analysis.accesses import collect_accesses
>>> are_paired(loop, collect_accesses((loop,)).of(program.parameters[0].node))
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...base.dataclass import dataclass
from ..ir.assignments import Let
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read, reads, rebuild
from ..ir.indexing import Affine, var
from ..ir.loops import For, If, Stmt, Store
from ..ir.walk import binds, bodies, direct_reads, direct_writes, free_symbols, statements
from .accesses import Site

Body = tuple[Stmt, ...]
DISJOINT_BIT_OPS = ("add", "bitor", "bitxor")
"""Operations that are equal where their operands have no bit in common."""


@dataclass(frozen=True, slots=True)
class IterationValues:
    """The values of scalars and symbols in an iteration."""

    loop: For
    values: dict[int, Expr]
    """Values of scalars that are stored once, before all reads, by their ids."""
    names: dict[Affine, Expr]
    """Values of symbols that are bound once."""

    def resolve(self, expr: Expr) -> Expr:
        """Return an expression in terms of the loop's variable and of loop-invariant values, as far
        as possible."""
        match expr:
            case Read(node, ()) if node.id in self.values:
                return self.resolve(self.values[node.id])
            case Position(index) if index in self.names:
                return self.resolve(self.names[index])
            case _:
                return rebuild(expr, self.resolve, lambda index: index)

    def stays(self, expr: Expr) -> bool:
        """Whether an expression is loop-invariant."""
        inside = statements((self.loop,))
        bound = {symbol for stmt in inside for symbol in binds(stmt)}
        written = {node for stmt in inside for node in direct_writes(stmt)}
        return not free_symbols(expr) & bound and not any(r.node in written for r in reads(expr))

    def partner(self, index: Index, names: Sequence[str]) -> Expr | None:
        """Return the operand that a subscript combines with the loop's variable to get the
        partner's; None where it does not."""
        expr = self.resolve(index.value if isinstance(index, Dynamic) else Position(index))
        here = Position(var(self.loop.symbol))
        match expr:
            case Apply(op, (left, right)) if op.name in names and here in (left, right):
                operand = right if left == here else left
            case Position(at) if "add" in names and at.coefficient(self.loop.symbol) == 1:
                operand = Position(at - var(self.loop.symbol))
            case _:
                return None
        return operand if self.stays(operand) else None


def are_paired(loop: For, sites: Sequence[Site]) -> bool:
    """Whether the sites of a node are only reached in one iteration of each pair, whose two
    elements they access."""
    iteration = iteration_values(loop)
    rank = sites[0].node.rank
    indices = [site.index for site in sites if site.index is not None]
    if len(indices) < len(sites):
        return False
    tests = [[iteration.resolve(test) for test in site.tests] for site in sites]
    variable = Position(var(loop.symbol))
    for axis in range(rank):
        subscripts = {index[axis] for index in indices} - {var(loop.symbol)}
        operands = [iteration.partner(subscript, ("bitxor",)) for subscript in subscripts]
        if operands and operands[0] is not None and operands == operands[:1] * len(operands):
            for above in (True, False):
                if all(
                    _requires_order(conjuncts, variable, operands[0], above) for conjuncts in tests
                ):
                    return True
        operands = [iteration.partner(subscript, DISJOINT_BIT_OPS) for subscript in subscripts]
        if operands and operands[0] is not None and operands == operands[:1] * len(operands):
            if all(_requires_no_bit(conjuncts, variable, operands[0]) for conjuncts in tests):
                return True
    return False


def iteration_values(loop: For) -> IterationValues:
    """Return the values of scalars and symbols in an iteration of a loop."""
    values = dict(_single_stores(loop.body, Counter(_read_ids(loop.body)), loop.body))
    lets = [stmt for stmt in statements(loop.body) if isinstance(stmt, Let)]
    bound = [symbol for stmt in statements(loop.body) for symbol in binds(stmt)]
    names = {var(let.symbol): let.value for let in lets if bound.count(let.symbol) == 1}
    return IterationValues(loop, values, names)


def _single_stores(part: Body, total: Counter[int], whole: Body) -> Iterator[tuple[int, Expr]]:
    """Yield the scalars that are stored once in an iteration, before all reads, with the value."""
    written = Counter(node.id for stmt in statements(whole) for node in direct_writes(stmt))
    for at, stmt in enumerate(part):
        if isinstance(stmt, Store) and not stmt.access.index:
            node = stmt.access.node
            is_last_read = Counter(_read_ids(part[at + 1 :]))[node.id] == total[node.id]
            if is_last_read and written[node.id] == 1 and node.dtype is stmt.value.dtype:
                yield node.id, stmt.value
        elif isinstance(stmt, If | For):
            for nested in bodies(stmt):
                yield from _single_stores(nested, total, whole)


def _read_ids(body: Body) -> list[int]:
    return [node.id for stmt in statements(body) for node in direct_reads(stmt)]


def _requires_order(tests: Sequence[Expr], here: Expr, operand: Expr, above: bool) -> bool:
    """Whether one of the tests requires the partner to be after this iteration, or before it."""
    for test in tests:
        match test:
            case Apply(op, (left, right)) if op.name in ("gt", "ge", "lt", "le"):
                greater, lesser = (left, right) if op.name in ("gt", "ge") else (right, left)
                partner, current = (greater, lesser) if above else (lesser, greater)
                if current == here and _is_combination(partner, here, operand, ("bitxor",)):
                    return True
            case _:
                pass
    return False


def _requires_no_bit(tests: Sequence[Expr], here: Expr, operand: Expr) -> bool:
    """Whether one of the tests requires that the loop's variable has no bit of `operand`."""
    for test in tests:
        match test:
            case Apply(op, (bits, Const(0))) if op.name == "eq":
                if _is_combination(bits, here, operand, ("bitand",)):
                    return True
            case _:
                pass
    return False


def _is_combination(expr: Expr, here: Expr, operand: Expr, names: Sequence[str]) -> bool:
    """Whether an expression is one of these operations on two values."""
    return isinstance(expr, Apply) and expr.op.name in names and (
        expr.args in ((here, operand), (operand, here))
    )  # fmt: skip
