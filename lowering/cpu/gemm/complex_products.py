"""Real formulation of complex matrix products: two real terms for each complex one.

    c[i, j] = sum[k](a[i, k] * b[k, j])         p[i, 2 k + (0, 1)] = (re, im) of a[i, k]
                                                q[2 k, 2 j + (0, 1)] = (re, im) of b[k, j]
                                                q[2 k + 1, 2 j + (0, 1)] = (-im, re) of b[k, j]
                                                r[i, j] = sum[k](p[i, k] * q[k, j])
                                                c[i, j] = complex(r[i, 2 j], r[i, 2 j + 1])

Changes: a nest over rows and columns that accumulates such products, as it stands before all
passes, so that it is tiled like a real one. Where it is small, which may be known at run time only,
or does anything else, its products are annotated, and added to both parts of its sum in the same
order.

Precondition: iterations that may run in any order, and an instruction for multiply-add.
Postcondition: in every sum over index variables that is one of a matrix product each term is two of
each part: real by real before imaginary by imaginary, real by imaginary before imaginary by real.
Each is rounded together with its sum, so that sizes, traces and the shape of loops change no bit.
Other sums stay.

It is the real form that Day and Heroux, "Solving complex-valued linear systems via equivalent real
formulations" (2001), call K1.

>>> form = lambda program: use_real_form(program, Target()).program
>>> show(form, "c[i, j] = sum(a[i, k] * b[k, j])", c="c128[90, 60]", a="c128[90, 70]",
...      b="c128[70, 60]")
for i in 0..90:
    for k in 0..70:
        a_parts[i, 2*k] = real(a[i, k])
        a_parts[i, 2*k + 1] = imag(a[i, k])
for k in 0..70:
    for j in 0..60:
        b_parts[2*k, 2*j] = real(b[k, j])
        b_parts[2*k, 2*j + 1] = imag(b[k, j])
        b_parts[2*k + 1, 2*j] = -imag(b[k, j])
        b_parts[2*k + 1, 2*j + 1] = real(b[k, j])
for i in 0..90:
    for j in 0..120:
        c_parts[i, j] = 0.0
        for k in 0..140:
            c_parts[i, j] += a_parts[i, k] * b_parts[k, j]
for i in 0..90:
    for j in 0..60:
        c_sum = complex(c_parts[i, 2*j], c_parts[i, 2*j + 1])
        c[i, j] = c_sum
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import reduce
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.contraction import COMPLEX_TYPES, Contraction, Operand, find_contraction
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import is_in_range, ranges
from ...ir import dtypes
from ...ir.assignments import Access, Alloc
from ...ir.decision import Decided, Decision, Reason
from ...ir.dtypes import DType
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, multiply, var
from ...ir.loops import For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, substitute, with_bodies
from ...ir.walk import bodies
from ...passes.reduction_order import is_matrix_product
from ...target import Target
from ...transform.outermost import OutermostRewriter
from .axes import trip_count_of
from .partial_tiles import all_nonnegative

Body = tuple[Stmt, ...]


class RealFormReason(Reason):
    """Why a complex matrix product is computed of real numbers."""

    REUSED = "each row meets each column, so parts that are stored separately are used many times"


def use_real_form(program: Program, target: Target) -> Decided:
    """Return the program with its complex matrix products in real form, and the decisions."""
    nodes = (*(p.node for p in program.parameters), *program.results, *program.locals)
    if not any(node.dtype in COMPLEX_TYPES for node in nodes):
        return Decided(program, ())
    result, decisions = _RealProducts.on(program, target)
    return Decided(map_kernels(result, lambda body: _annotate_products(body, ())), decisions)


class _RealProducts(OutermostRewriter):
    """The real form of the products of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the nests that replace a product; None where it is none or stays as it is."""
        node_count = len(self.fresh.nodes)
        product = find_contraction(loop, self.fresh, types=COMPLEX_TYPES)
        factors = None if product is None else _factors(product, outer)
        if product is None or factors is None or not self.is_legal(product, outer):
            del self.fresh.nodes[node_count:]
            return None
        span, name = product.nest.update.span, product.rows[-1].symbol.name
        self.decisions.append(Decision("of reals", RealFormReason.REUSED, span=span, variable=name))
        loops = (*product.nest.outer_loops, *product.nest.depth)
        ends = {level.symbol: self.end(level, outer) for level in loops}
        nests = _RealProduct(self.fresh, product, *factors, ends).nests()
        if _count(loops) is not None:
            return nests
        count = reduce(multiply, (ends[level.symbol] - level.lo for level in loops))
        least = Position(const(thresholds.MIN_COMPLEX_GEMM_TERMS))
        is_small = Apply(OPS["lt"], (Position(count), least), dtypes.bool_)
        return (If(is_small, (loop,), nests, span),)

    def is_legal(self, product: Contraction, outer: tuple[For, ...]) -> bool:
        """Whether the bounds of no loop depend on another one, and iterations may run in any
        order."""
        loops = (*product.nest.outer_loops, *product.nest.depth)
        symbols = {loop.symbol for loop in (*outer, *loops)}
        if product.tests or any(
            symbols & (loop.lo.symbols() | loop.hi.symbols()) for loop in loops
        ):
            return False
        element = product.nest.element
        if element is not None and not is_in_range(
            element.node, element.index, ranges((*outer, *loops))
        ):
            return False
        return self.is_free(product.nest.outer_loops, outer)


def _factors(product: Contraction, outer: tuple[For, ...]) -> tuple[Operand, Operand] | None:
    """Return the factors of a contraction, in their order, where it is a large product; else
    None."""
    nest = product.nest
    few = range(1, thresholds.MIN_COMPLEX_GEMM_ROWS)
    if any(_count(loops) in few for loops in (product.rows, product.columns)):
        return None
    count = _count((*nest.outer_loops, *nest.depth))
    if count is not None and count < thresholds.MIN_COMPLEX_GEMM_TERMS:
        return None
    *_, update = (stmt for stmt in nest.depth[-1].body if isinstance(stmt, Update))
    symbols = frozenset[Symbol]().union(*(at.symbols() for at in update.over))
    if not symbols >= {loop.symbol for loop in nest.depth}:
        return None
    if not _is_matrix_product(update, (*outer, *nest.outer_loops, *nest.depth)):
        return None
    match product.term:
        case Apply(op, (Read(left), Read(right))) if op.name == "mul":
            parts = {part.node: part for part in product.parts}
            if left in parts and right in parts and parts[left].side != parts[right].side:
                return parts[left], parts[right]
    return None


def _count(loops: tuple[For, ...]) -> int | None:
    """Return the number of iterations of nested loops; None where it is dynamic."""
    counts = [trip_count_of(loop) for loop in loops]
    static = [size for size in counts if size is not None]
    return prod(static) if len(static) == len(counts) else None


def _is_matrix_product(update: Update, path: tuple[For, ...]) -> bool:
    """Whether an update adds products of complex numbers, as a matrix product does."""
    match update:
        case Update(Access(node, index), op, Apply(product), None) if (
            node.dtype in COMPLEX_TYPES
            and (op.name, product.name) == ("add", "mul")
            and update.over
        ):
            return all(isinstance(at, Affine) for at in index) and is_matrix_product(update, path)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Parts:
    """An array of real numbers with the parts of complex ones."""

    node: Node
    axes: tuple[For, ...]
    twice: Set[Symbol]
    """The loops along whose axes each complex number has two elements."""

    def at(self, *odd: Symbol) -> tuple[Affine, ...]:
        """Return the subscripts of an element: the second one of its number along the axes of
        `odd`."""
        return tuple(
            (var(axis.symbol) - axis.lo) * (2 if axis.symbol in self.twice else 1) + (
                axis.symbol in odd
            )
            for axis in self.axes
        )  # fmt: skip

    def read(self, *odd: Symbol) -> Expr:
        """Return the read of such an element."""
        return Read(self.node, self.at(*odd))


@dataclass(frozen=True, slots=True)
class _RealProduct:
    """The nests of one product."""

    fresh: Fresh
    product: Contraction
    pairs: Operand
    """The first factor: its parts are two terms."""
    squares: Operand
    """The second one: its parts are two terms of each of two rows or columns, along the last axis
    of these."""
    ends: Mapping[Symbol, Affine]

    def nests(self) -> Body:
        """Return the copies of parts, the real product, and the statements on its elements."""
        nest = self.product.nest
        term = nest.depth[-1].symbol
        twin = self.product.loops(self.squares.side)[-1].symbol
        pairs = self.parts(self.pairs, frozenset((term,)))
        squares = self.parts(self.squares, frozenset((term, twin)))
        label = (nest.acc if nest.element is None else nest.element.node).label
        sums = self.new_parts(label, nest.outer_loops, frozenset((twin,)), nest.acc.dtype)
        copies = (
            *self.copy_parts(pairs, self.pairs.value, ((), (term,))),
            *self.copy_parts(squares, self.squares.value, ((), (twin,), (term,), (term, twin))),
        )
        open_ends = [
            self.count(loop) - 1 for loop in nest.outer_loops if trip_count_of(loop) is None
        ]
        return (
            *(
                Alloc(array.node)
                for array in (pairs, squares, sums)
                if array.node.static_shape is None
            ),
            *(
                (If(all_nonnegative(open_ends), copies, span=nest.update.span),)
                if open_ends
                else copies
            ),
            *self.initialize(sums, twin),
            self.accumulate(sums, pairs, squares),
            self.finish(sums, twin),
        )

    def count(self, loop: For) -> Affine:
        """Return the trip count of a loop."""
        return self.ends[loop.symbol] - loop.lo

    def parts(self, of: Operand, twice: frozenset[Symbol]) -> _Parts:
        """Return an array for the parts of a factor in all iterations on which it depends."""
        symbols, product = symbols_of(of.value) | twice, self.product
        depth = product.nest.depth
        loops = (*product.rows, *depth) if of.side == "row" else (*depth, *product.columns)
        axes = tuple(loop for loop in (*product.others, *loops) if loop.symbol in symbols)
        label = next((read.node.label for read in reads(of.value)), "factor")
        return self.new_parts(label, axes, twice, of.value.dtype)

    def new_parts(
        self, label: str, axes: tuple[For, ...], twice: frozenset[Symbol], dtype: DType
    ) -> _Parts:
        """Return a new array."""
        shape = tuple(self.count(axis) * (2 if axis.symbol in twice else 1) for axis in axes)
        return _Parts(self.fresh.like(Node(0, f"{label}_parts", shape, dtype.real)), axes, twice)

    def loops_over(self, loops: tuple[For, ...], body: Body) -> Stmt:
        """Return loops like these, with new index variables."""
        names = {loop.symbol: self.fresh.symbol(loop.symbol.name) for loop in loops}
        body = substitute(body, {old: var(new) for old, new in names.items()})
        for loop in reversed(loops):
            new, end = names[loop.symbol], self.ends[loop.symbol]
            body = (replace(loop, symbol=new, hi=end, body=body),)
        return body[0]

    def copy_parts(
        self, parts: _Parts, value: Expr, subscripts: tuple[tuple[Symbol, ...], ...]
    ) -> Body:
        """Return the loops that copy a factor's parts: each to two elements, or to four."""
        span, dtype = self.product.nest.update.span, value.dtype.real
        real, imag = (Apply(OPS[name], (value,), dtype) for name in ("real", "imag"))
        values = (real, imag, Apply(OPS["neg"], (imag,), dtype), real)
        body = tuple(
            Store(Access(parts.node, parts.at(*subscript)), part, span)
            for subscript, part in zip(subscripts, values)
        )
        return (self.loops_over(parts.axes, body),)

    def initialize(self, sums: _Parts, twin: Symbol) -> Body:
        """Return the initialization of sums that do not start from zero."""
        nest = self.product.nest
        if self.starts_at_zero:
            return ()
        outer, inner = nest.named(nest.start, frozenset())
        acc, span = Read(nest.acc, ()), nest.update.span
        halves = (Apply(OPS[name], (acc,), acc.dtype.real) for name in ("real", "imag"))
        subscripts = (sums.at(), sums.at(twin))
        stores = (Store(Access(sums.node, at), v, span) for at, v in zip(subscripts, halves))
        return (self.loops_over(nest.outer_loops, (*outer, *inner, *nest.start, *stores)),)

    @property
    def starts_at_zero(self) -> bool:
        """Whether sums start from zero."""
        match self.product.nest.start:
            case (Store(_, Const(value)),):
                return value == 0
            case _:
                return False

    def accumulate(self, sums: _Parts, pairs: _Parts, squares: _Parts) -> Stmt:
        """Return the product of real numbers."""
        nest = self.product.nest
        loops = (*nest.outer_loops, *nest.depth)
        names = {level.symbol: self.fresh.symbol(level.symbol.name) for level in loops}
        dtype, span = sums.node.dtype, nest.update.span

        def at(parts: _Parts) -> tuple[Affine, ...]:
            return tuple(var(names[axis.symbol]) for axis in parts.axes)

        def loop(level: For, body: Body) -> Body:
            twice = level.symbol in squares.twice
            end = self.count(level) * (2 if twice else 1)
            return (For(names[level.symbol], const(0), end, 1, body, span=level.span),)

        target = Access(sums.node, at(sums))
        factors = tuple(Read(operand.node, at(operand), span) for operand in (pairs, squares))
        term = Apply(OPS["mul"], factors, dtype)
        over = tuple(var(names[level.symbol]) for level in nest.depth)
        body: Body = (Update(target, OPS["add"], term, span=span, over=over),)
        for level in reversed(nest.depth):
            body = loop(level, body)
        if self.starts_at_zero:
            body = (Store(target, Const(0.0, dtype), span), *body)
        for level in reversed(nest.outer_loops):
            body = loop(level, body)
        return body[0]

    def finish(self, sums: _Parts, twin: Symbol) -> Stmt:
        """Return the loops over the elements, with what the nest does with each."""
        nest = self.product.nest
        outer, inner = nest.named((*nest.again, *nest.rest), frozenset())
        value = Apply(OPS["complex"], (sums.read(), sums.read(twin)), nest.acc.dtype)
        store = Store(Access(nest.acc, ()), value, nest.update.span)
        return self.loops_over(nest.outer_loops, (*outer, *inner, *nest.again, store, *nest.rest))


def _annotate_products(body: Body, path: tuple[For, ...]) -> Body:
    """Return statements in which the updates of matrix products are annotated by the operation
    `product`, so that they round as the others do."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Update):
            match stmt.value:
                case Apply(_, factors, dtype) if _is_matrix_product(stmt, path):
                    stmt = replace(stmt, value=Apply(OPS["product"], factors, dtype))
            out.append(stmt)
            continue
        inside = (*path, stmt) if isinstance(stmt, For) else path
        out.append(
            with_bodies(stmt, tuple(_annotate_products(nested, inside) for nested in bodies(stmt)))
        )
    return tuple(out)
