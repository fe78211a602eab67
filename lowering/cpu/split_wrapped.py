r"""Index-set splitting of loops over wrapped subscripts, where the subscript wraps.

Changes: an innermost loop of at most `n` iterations with a subscript `(i + s) % n`, where `s` is
loop-invariant, is split at the iteration in which the subscript wraps, often a run-time value.
Neither half computes a remainder, and both have unit stride.

    for i in 0..n: y[i] = x[(i - c) % n]

    let shift = -c % n
    for i in 0..n - shift: y[i] = x[i + shift]
    for i in n - shift..n: y[i] = x[i + shift - n]

The invariant may be data, `c[k]`: it is read before the loop. Where a run-time value could be so
large that `i - c[k]` overflows, the original loop remains as an alternative for these (versioning).

Precondition: iterations in their order, of which none ends the loop; terms of a reduction that
`vectorize_reductions` reorders stay in one loop. Postcondition: bit-identical, as the iterations
are the same, in their order.

>>> show(lambda program: split_wrapped_loops(program, Target(schedule=True)),
...      "for k in range(3):\n    y[k, i] = x[k, wrap(i - 7 * k)]",
...      y="f32[3, 90]", x="f32[3, 90]")
for k in 0..3:
    let shift = -7*k%90
    for i in 0..-shift + 90:
        y[k, i] = x[k, shift + i]
    for i in -shift + 90..90:
        y[k, i] = x[k, i + shift - 90]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache, partial

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.conjunctions import conjunction
from ..analysis.cost import is_large
from ..analysis.dependence import find_privatizable, loop_local_nodes
from ..analysis.effects import bound_symbols
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Let
from ..ir.bounds import Bounds, as_index, bounds_of
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.indexing import (
    QUASI_BUILDERS,
    Affine,
    Quasi,
    Symbol,
    const,
    maximum,
    minimum,
    mod,
    var,
)
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.rewrite import Rewrite, map_kernels, rewrite, substitute, with_bodies
from ..ir.walk import bodies, direct_reads, expressions_of, free_symbols, statements, writes
from ..target import Target
from ..transform.overflow import (
    SAFE_BITS,
    find_unbounded,
    has_unbounded_products,
    magnitude_tests,
    overflow_tests,
)
from .peel import clone_loop

Body = tuple[Stmt, ...]
_PLAIN = frozenset(("add", "sub", "neg", "mul", "min", "max"))
"""Operations that are defined for all operands."""


def split_wrapped_loops(program: Program, target: Target) -> Program:
    """Return the program with loops split where their subscripts wrap."""
    exclusive = cache(partial(loop_local_nodes, program))
    unbounded = cache(partial(find_unbounded, program))
    splitter = _WrapSplitter(fresh_for(program), exclusive, unbounded, target.reorders)
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    split_program = map_kernels(program, lambda body: splitter.body(body, bounds, ()))
    return program if split_program is program else splitter.fresh.declared(split_program)


IterationRange = tuple[Affine, Affine, dict[Quasi, Affine]]
"""A range of a loop's iterations, and the values of wrapped subscripts in it."""


@dataclass(frozen=True, slots=True)
class _Wrap:
    """A subscript that wraps once in a loop: `(step * symbol + rest) % size`."""

    atom: Quasi
    step: int
    rest: Affine

    def shift(self, loop: For) -> Affine:
        """Return the subscript's value in the first iteration or, if it falls, in the last one."""
        start = loop.lo if self.step > 0 else loop.hi - 1
        return mod(self.rest + start * self.step, maximum(self.atom.right, const(1)))

    def split(
        self, loop: For, shift: Affine, subrange: IterationRange
    ) -> tuple[IterationRange, IterationRange]:
        """Return a range of iterations up to where the subscript wraps, and from there on; `shift`
        is its value at the start."""
        size, here = self.atom.right, var(loop.symbol)
        lo, hi, values = subrange
        if self.step > 0:
            middle, wrapped = loop.lo + size - shift, here - loop.lo + shift - size
            before, after = wrapped + size, wrapped
        else:
            middle, wrapped = loop.hi - size + shift, loop.hi - 1 - here + shift
            before, after = wrapped - size, wrapped
        is_single = (size - loop.hi + loop.lo).constant == 0 and (lo, hi) == (loop.lo, loop.hi)
        end, start = (middle, middle) if is_single else (minimum(hi, middle), maximum(lo, middle))
        return (lo, end, {**values, self.atom: before}), (start, hi, {**values, self.atom: after})


@dataclass(frozen=True, slots=True)
class _WrapSplitter:
    """The splitting of the loops of one program."""

    fresh: Fresh
    exclusive: Callable[[], Mapping[int, frozenset[int]]]
    """The nodes that only a loop's body uses, by the loop's `id`; computed on first use."""
    unbounded: Callable[[], frozenset[Symbol]]
    """Run-time integers of any magnitude; computed on first use."""
    reorders: bool
    lets: set[Symbol] = field(default_factory=set)
    """The symbols that were bound before loops."""

    def body(self, body: Body, bounds: Bounds, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with its loops split."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Let):
                bounds = bounds.with_interval(stmt.symbol, bounds.value(stmt.value))
            if isinstance(stmt, For):
                out += self.split(stmt, bounds, outer) or self.split_inside(stmt, bounds, outer)
            else:
                inner = (self.body(nested, bounds, outer) for nested in bodies(stmt))
                out.append(with_bodies(stmt, tuple(inner)))
        return tuple(out)

    def split_inside(self, loop: For, bounds: Bounds, outer: tuple[For, ...]) -> Body:
        """Return a loop with its inner loops split, after the loop-invariant values that these
        need."""
        body = self.body(loop.body, bounds.inside(loop), (*outer, loop))
        variant, written = bound_symbols(body) | {loop.symbol}, frozenset(writes(body))
        hoisted: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Let) and stmt.symbol in self.lets:
                if not free_symbols(stmt.value) & variant and written.isdisjoint(
                    direct_reads(stmt)
                ):
                    hoisted.append(stmt)
                    variant -= {stmt.symbol}
        rest = tuple(stmt for stmt in body if not any(stmt is binding for binding in hoisted))
        return (*hoisted, with_bodies(loop, (rest,)))

    def split(self, loop: For, bounds: Bounds, outer: tuple[For, ...]) -> Body:
        """Return the statements that replace a loop; none where it stays as it is."""
        trip_count, inside = (loop.hi - loop.lo).constant, statements(loop.body)
        if (
            loop.kind != "serial"
            or loop.step != 1
            or (trip_count is not None and trip_count < thresholds.MIN_WRAPPED_ITERATIONS)
        ):
            return ()
        plain = [stmt for stmt in inside if isinstance(stmt, Store | Update | Comment | If)]
        if len(plain) + sum(isinstance(stmt, Let) for stmt in loop.body) < len(inside):
            return ()
        term_positions = (
            at for s in inside if isinstance(s, Update) and self.reorders for at in s.over
        )
        if any(loop.symbol in at.symbols() for at in term_positions) or is_large(loop):
            return ()
        bindings = _InvariantBindings(self.fresh, loop, outer, bounds)
        bound_loop = bindings.bind_loop()
        wrapped = (
            ()
            if bound_loop is None
            else tuple(dict.fromkeys(_find_wraps(bound_loop, bindings.bounds)))
        )
        if bound_loop is None or not 0 < len(wrapped) <= thresholds.MAX_WRAPPED_SUBSCRIPTS:
            return ()
        sums = [wrap.atom.left for wrap in wrapped]
        if any(has_unbounded_products(index, self.unbounded()) for index in sums):
            return ()
        tests = (*bindings.tests, *overflow_tests(sums, self.unbounded()))
        subranges: list[IterationRange] = [(loop.lo, loop.hi, {})]
        lets = [*bindings.lets]
        for wrap in wrapped:
            shift = self.fresh.symbol("shift")
            lets.append(Let(shift, Position(wrap.shift(loop)), loop.span))
            subranges = [
                part for subrange in subranges for part in wrap.split(loop, var(shift), subrange)
            ]
        self.lets.update(let.symbol for let in lets)
        *most, last = (self.build_subrange_loop(bound_loop, subrange) for subrange in subranges)
        privates = find_privatizable(loop, self.exclusive()[id(loop)])
        loops = [clone_loop(earlier, privates, self.fresh) for earlier in most]
        if not tests:
            return (*lets, *loops, last)
        loops.append(clone_loop(last, privates, self.fresh))
        return (*lets, If(conjunction(tests), tuple(loops), (loop,), loop.span))

    def build_subrange_loop(self, loop: For, subrange: IterationRange) -> For:
        """Return a loop over a range of iterations."""
        lo, hi, values = subrange

        def at(index: Affine) -> Affine:
            return _substitute_terms(index, values)

        def expr(value: Expr) -> Expr:
            return rebuild(value, expr, at)

        return replace(loop, lo=lo, hi=hi, body=rewrite(loop.body, Rewrite(expr, at)))


@dataclass(slots=True)
class _InvariantBindings:
    """Loop-invariant operands of wrapped subscripts, which are bound to symbols before the loop."""

    fresh: Fresh
    enclosing: For
    outer: tuple[For, ...]
    bounds: Bounds
    lets: list[Let] = field(default_factory=list)
    tests: list[Expr] = field(default_factory=list)
    """Conditions under which no operand overflows."""
    names: dict[Expr, Symbol] = field(default_factory=dict)

    def bind_loop(self) -> For | None:
        """Return the loop with positions instead of such integers, also of those that are bound to
        symbols; None where another value is bound."""
        values: dict[Symbol, Affine] = {}
        out: list[Stmt] = []
        for stmt in self.enclosing.body:
            (stmt,) = substitute((stmt,), values) if values else (stmt,)
            if not isinstance(stmt, Let):
                out += rewrite((stmt,), Rewrite(expr=self.expr))
                continue
            index = self.index(stmt.value)
            if index is None:
                return None
            values[stmt.symbol] = index
        return replace(self.enclosing, body=tuple(out))

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with positions instead of such integers."""
        if isinstance(expr, Apply) and expr.op.name == "mod" and expr.dtype == dtypes.int64:
            index = self.index(expr)
            if index is not None and self.enclosing.symbol in index.symbols():
                return Position(index)
        return rebuild(expr, self.expr, lambda index: index)

    def index(self, expr: Expr) -> Affine | None:
        """Return an integer as an index expression; None where it is none, or may overflow."""
        result = as_index(expr)
        if result is not None or expr.dtype.kind not in "iu":
            return result
        if self.is_invariant(expr):
            return var(self.name(expr))
        match expr:
            case Cast(value):
                result = self.index(value)
            case Apply(op, args):
                result = self.apply(op.name, [self.index(arg) for arg in args])
            case _:
                return None
        return result if result is not None and self.fits(result, expr.dtype) else None

    def apply(self, name: str, args: list[Affine | None]) -> Affine | None:
        match name, args:
            case "add", [Affine() as left, Affine() as right]:
                return left + right
            case "sub", [Affine() as left, Affine() as right]:
                return left - right
            case "neg", [Affine() as operand]:
                return -operand
            case "mod", [Affine() as left, Affine() as right] if (
                self.bounds.least(right) or 0
            ) > 0:
                return mod(left, right)
            case _:
                return None

    def fits(self, index: Affine, dtype: DType) -> bool:
        """Whether a type holds an index expression; 64 bits do where it has few terms."""
        low, high = self.bounds.inside(self.enclosing).interval(index)
        least = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
        if dtype == dtypes.int64:
            return sum(abs(k) for _, k in index.terms) < 1 << 63 - SAFE_BITS
        if low is None or high is None:
            return False
        return least <= low and high < 2**dtype.bits + least

    def is_invariant(self, expr: Expr) -> bool:
        """Whether an expression is loop-invariant, and may be computed before the loop."""
        written, domain = writes(self.enclosing.body), ranges(self.outer)
        for part in walk(expr):
            match part:
                case Const() | Position() | Cast():
                    pass
                case Apply(op) if op.name in _PLAIN:
                    pass
                case Read(node, index) if node not in written and is_in_range(node, index, domain):
                    pass
                case _:
                    return False
        return self.enclosing.symbol not in free_symbols(expr)

    def name(self, expr: Expr) -> Symbol:
        """Return the symbol of an invariant expression."""
        if expr in self.names:
            return self.names[expr]
        symbol = self.names[expr] = self.fresh.symbol(label_of(expr))
        low, high = self.bounds.value(expr)
        safe = 1 << min(expr.dtype.bits - 2, SAFE_BITS)
        value = expr if expr.dtype == dtypes.int64 else Cast(expr, dtypes.int64)
        self.lets.append(Let(symbol, value, self.enclosing.span))
        least, greatest = magnitude_tests(symbol, safe)
        if low is None or low < -safe:
            self.tests.append(least)
            low = -safe
        if high is None or high > safe:
            self.tests.append(greatest)
            high = safe
        self.bounds = self.bounds.with_interval(symbol, (low, high))
        return symbol


def _find_wraps(loop: For, bounds: Bounds) -> Iterator[_Wrap]:
    """Yield the subscripts in a loop that wrap at most once, at an iteration that is not static."""
    symbol, trip_count = loop.symbol, loop.hi - loop.lo
    for atom in _find_quasi_terms(loop):
        step, right = atom.left.coefficient(symbol), atom.right
        rest = atom.left - var(symbol) * step
        if atom.op != "mod" or step not in (1, -1) or symbol in rest.symbols() | right.symbols():
            continue
        start = loop.lo if step > 0 else loop.hi
        fits = bounds.least(right - trip_count)
        if (rest + start * step).constant is None and fits is not None and fits >= 0:
            yield _Wrap(atom, step, rest)


def _find_quasi_terms(loop: For) -> Iterator[Quasi]:
    """Yield the quasi-affine terms in the index expressions of a loop."""
    for stmt in statements(loop.body):
        indices = [*stmt.access.index] if isinstance(stmt, Store | Update) else []
        for expr in expressions_of(stmt):
            for part in walk(expr):
                indices += part.index if isinstance(part, Read) else ()
                indices += (part.index,) if isinstance(part, Position) else ()
        while indices:
            index = indices.pop()
            for atom, _ in index.terms if isinstance(index, Affine) else ():
                if isinstance(atom, Quasi):
                    yield atom
                    indices += (atom.left, atom.right)


def _substitute_terms(index: Affine, values: Mapping[Quasi, Affine]) -> Affine:
    """Return an index expression with quasi-affine terms replaced by values."""
    if not any(isinstance(atom, Quasi) for atom, _ in index.terms):
        return index
    total = const(index.offset)
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            total += var(atom) * factor
        elif atom in values:
            total += values[atom] * factor
        else:
            sides = _substitute_terms(atom.left, values), _substitute_terms(atom.right, values)
            total += QUASI_BUILDERS[atom.op](*sides) * factor
    return total
