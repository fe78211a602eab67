"""The contributions of a statement to the cotangents of what it reads.

The cotangent of its value passes through the operations of its expression to the elements that it
reads, as a product of factors; those of equal elements are added up, under the tests that select
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Assign, Statement
from ..ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Expr,
    Read,
    Select,
    reads,
    rebuild,
)  # fmt: skip
from ..ir.indexing import Range, const, maximum, var
from ..ir.node import Node
from ..ir.ops import OPS
from .activity import differentiable_reads
from .complex_rules import operand_cotangents
from .domains import by_axis, independent, not_empty, parted, within_axes
from .kept import Kept, Names, Tests, index_symbols
from .products import Product, combined, innermost, total
from .rules import NotDifferentiable, apply, number, partials


@dataclass(slots=True)
class Terms:
    """The contributions of a statement to the cotangents of what it reads."""

    kept: Kept
    names: Names
    cotangents: Mapping[int, Node]
    active: Collection[int]
    stmt: Assign
    before: list[Statement]
    selected: Expr | None
    result: Read | None
    """The element that holds the value of the statement where that is needed; None for none."""
    found: dict[tuple[Read, Tests], list[Product]] = field(default_factory=dict)
    """The cotangents of each element that is read, by the tests that select it."""

    def add(self, expr: Expr, cotangent: Product, tests: Tests) -> None:
        """Add what an expression contributes, whose value has a cotangent; `tests` select it."""
        if not any(r.node.id in self.active for r in differentiable_reads(expr)):
            return
        match expr:
            case Read():
                self.found.setdefault((expr, tests), []).append(cotangent)
            case Cast(value, _):
                self.add(value, cotangent.cast(value.dtype.compute), tests)
            case Select(test, yes, no):
                self.add(yes, cotangent, (*tests, (test, True)))
                self.add(no, cotangent, (*tests, (test, False)))
            case Apply(op, args) if any(arg.dtype.kind == "c" for arg in args):
                given = operand_cotangents(expr, cotangent.expr())
                if given is None:
                    text = f"`{op.name}` of complex numbers"
                    raise NotDifferentiable(text, self.stmt.span)
                for arg, part in zip(args, given, strict=True):
                    if part is not None:
                        self.add(arg, Product(part.dtype, 1.0, (part,)), tests)
            case Apply(op, args):
                derivatives = partials(expr)
                if derivatives is None:
                    raise NotDifferentiable(f"`{op.name}`", self.stmt.span)
                for arg, derivative in zip(args, derivatives, strict=True):
                    if derivative is not None:
                        self.add(arg, cotangent.times(self._with_result(derivative)), tests)
            case _:
                raise AssertionError(expr)

    def _with_result(self, expr: Expr) -> Expr:
        """Return an expression that reads the statement's value instead of computing it again."""
        if self.result is None:
            return expr
        if expr == self.stmt.value and isinstance(expr, Apply):
            return self.result
        return rebuild(expr, self._with_result, lambda index: index)

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that add to the cotangents of the elements."""
        kept, stmt, before = self.kept, self.stmt, self.before
        where = [d.where for d in (stmt.free, stmt.reduced) if d.where is not None]
        tests = [kept.reads(test, stmt, before) for test in where]
        if self.selected is not None:
            tests.append(self.selected)
        condition = all_of(tests)
        for (read, choices), products in self.found.items():
            cotangents = combined(products)
            index = kept.index(read.index, stmt, before, choices)
            held = [
                (kept.reads(test, stmt, before, choices[:n]), wanted)
                for n, (test, wanted) in enumerate(choices)
            ]
            chosen = [test if wanted else apply("logical_not", test) for test, wanted in held]
            target = Access(self.cotangents[read.node.id], index)
            used = {symbol for at in index for symbol in index_symbols(at)}
            ranges, bounds = independent((*stmt.free.ranges, *stmt.reduced.ranges), used, stmt)
            free = by_axis([r for r in ranges if r.symbol in used], target)
            reduced = tuple(r for r in ranges if r.symbol not in used)
            conditions = [*bounds, *([condition] if condition is not None else []), *chosen]
            first, rest = parted([*not_empty(reduced, free), *conditions], reduced)
            first += within_axes(target, free) if rest else []
            if not rest:
                guarded = Domain(free, all_of(first))
                yield from self._sum(target, cotangents, guarded, reduced, choices)
                continue
            value = self._written(cotangents, target, ranges, choices)
            if any(reads(test) for test in rest):
                value, rest = _chosen(rest, value), []
            domains = Domain(free, all_of(first)), Domain(reduced, all_of(rest))
            yield Assign(target, OPS["add"], False, value, *domains, span=stmt.span)

    def _sum(
        self,
        target: Access,
        cotangents: list[Product],
        free: Domain,
        reduced: tuple[Range, ...],
        choices: Tests,
    ) -> Iterator[Statement]:
        """Yield the statements that add sums of products, of which factors that all terms of a sum
        have stand outside; what a loop adds to one element is summed apart, in any order."""
        inner = {r.symbol for r in reduced}
        parts = [product.split(inner) for product in cotangents]
        common = parts[0][1]
        place = self.kept.places[id(self.stmt)]
        sizes = [r.hi - r.lo for r in free.ranges]
        static = all(size.constant is not None for size in sizes)
        letters = (*free.ranges, *reduced)
        is_common = (
            not common.is_number
            and all(outside == common for _, outside in parts)
            and not all(inside.is_number for inside, _ in parts)
            and (static or not place.loops)
            and all(size.constant is None or size.constant > 0 for size in sizes)
            and all(size.symbols().isdisjoint(r.symbol for r in free.ranges) for size in sizes)
        )
        if not is_common and not (place.loops and reduced and not free.ranges):
            value = self._written(cotangents, target, letters, choices)
            domain = Domain(reduced)
            yield Assign(target, OPS["add"], False, value, free, domain, span=self.stmt.span)
            return
        terms = [part for part, _ in parts] if is_common else cotangents
        shape = tuple(size if static or size.symbol else maximum(size, const(0)) for size in sizes)
        node = self.names.array(f"{target.node.label}_sum", shape, target.node.dtype)
        if node.static_shape is None:
            self.kept.allocations.append(Alloc(node))
        sums = Access(node, tuple(var(r.symbol) - r.lo for r in free.ranges))
        value = self._written(terms, target, letters, choices)
        yield Assign(sums, OPS["add"], True, value, free, Domain(reduced), span=self.stmt.span)
        outside = common if is_common else Product(node.dtype)
        outer = [outside.times(Read(node, sums.index))]
        whole = self._written(outer, target, free.ranges, choices)
        yield Assign(target, OPS["add"], False, whole, free, span=self.stmt.span)

    def _written(
        self, products: list[Product], target: Access, ranges: Sequence[Range], choices: Tests
    ) -> Expr:
        """Return a sum of products, of forward values that they had at the statement; where these
        were not chosen, they are not read."""
        exprs = [e for one in products for e in (*one.over, *one.under)]
        among = {r.symbol for r in ranges}
        whole = Read(target.node, target.index)
        return self._at_time(total(products, innermost((whole, *exprs), among)), choices)

    def _at_time(self, expr: Expr, choices: Tests) -> Expr:
        """Return a cotangent with the forward values that it had at the statement."""
        known = self.kept.reads(expr, self.stmt, self.before, choices)
        if self.result is None:
            return known
        after, node = self.result.node, self.stmt.target.node

        def change(part: Expr) -> Expr:
            new = rebuild(part, change, lambda index: index)
            if isinstance(new, Read) and new.node == after:
                return Read(node, new.index, new.span)
            return new

        return change(known)


def _chosen(tests: Sequence[Expr], value: Expr) -> Expr:
    """Return a term that is zero where a test does not hold: sums of these are computed in vectors
    and tiles, sums over the points where tests of data hold are not."""
    for test in reversed(tests):
        value = Select(test, value, number(0.0, value.dtype))
    return value


def all_of(tests: Sequence[Expr]) -> Expr | None:
    """Return the conjunction of tests, of which a later one is evaluated where the others hold."""
    whole: Expr | None = None
    for test in tests:
        whole = test if whole is None else Select(whole, test, Const(False, dtypes.bool_))
    return whole
