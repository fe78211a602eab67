r"""Index set splitting: loops over wrapped subscripts, split where the subscript wraps.

Changes: an innermost loop of at most `n` iterations with a subscript `(i + s) % n`, where `s` stays
the same in it, is split at the iteration at which that starts over, which only a call may know.
Neither half computes a remainder, and both use neighbours in memory.

    for i in 0..n: y[i] = x[(i - c) % n]

    let shift = -c % n
    for i in 0..n - shift: y[i] = x[i + shift]
    for i in n - shift..n: y[i] = x[i + shift - n]

What stays the same may be data, `c[k]`: it is read before the loop. Where such a number could be so
large that `i - c[k]` overflows, the loop is there as it was as well, for these.

Precondition: iterations in their order, of which none ends the loop; terms of a sum that `lanes`
adds up in another order stay in one loop. Postcondition: bit-identical, as the iterations are the
same, in their order.

>>> show(lambda program: wraps(program, Target(schedule=True)),
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
from ..analysis.conjunctions import every
from ..analysis.cost import is_large
from ..analysis.dependence import confined, private
from ..analysis.effects import bound_in
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Let
from ..ir.bounds import Bounds, as_index, bounds_of
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.indexing import (
    BUILDERS,
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
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, over_kernels, rewrite, substitute, with_bodies
from ..ir.walk import bodies, expressions_of, free_symbols, own_reads, statements, writes
from ..target import Target
from .peel import renewed

Body = tuple[Stmt, ...]
LEAST = 16
"""A loop of fewer iterations stays whole."""
MOST = 2
"""So many subscripts that wrap at iterations of their own split a loop, into twice as many each."""
_PLAIN = frozenset(("add", "sub", "neg", "mul", "min", "max"))
"""What can be computed of all numbers."""


def wraps(program: Program, target: Target) -> Program:
    """Return the program with loops split where their subscripts wrap."""
    work = _Work(fresh_for(program), cache(partial(confined, program)), target.reorders)
    known = bounds_of(parameter.node for parameter in program.parameters)
    made = over_kernels(program, lambda body: work.body(body, known, ()))
    return program if made is program else work.fresh.declared(made)


Piece = tuple[Affine, Affine, dict[Quasi, Affine]]
"""Some iterations of a loop, from one up to another, and what subscripts are in these."""


@dataclass(frozen=True, slots=True)
class _Wrap:
    """A subscript that starts over once in a loop: `(step * symbol + rest) % size`."""

    atom: Quasi
    step: int
    rest: Affine

    def shift(self, loop: For) -> Affine:
        """Return what the subscript is in the first iteration, or of a falling one in the last."""
        start = loop.lo if self.step > 0 else loop.hi - 1
        return mod(self.rest + start * self.step, maximum(self.atom.right, const(1)))

    def split(self, loop: For, shift: Affine, piece: Piece) -> tuple[Piece, Piece]:
        """Return some iterations of a loop up to where the subscript starts over, and from there
        on; `shift` is what it is where it starts."""
        size, here = self.atom.right, var(loop.symbol)
        lo, hi, known = piece
        if self.step > 0:
            cut, late = loop.lo + size - shift, here - loop.lo + shift - size
            before, behind = late + size, late
        else:
            cut, late = loop.hi - size + shift, loop.hi - 1 - here + shift
            before, behind = late - size, late
        inside = (size - loop.hi + loop.lo).constant == 0 and (lo, hi) == (loop.lo, loop.hi)
        end, start = (cut, cut) if inside else (minimum(hi, cut), maximum(lo, cut))
        return (lo, end, {**known, self.atom: before}), (start, hi, {**known, self.atom: behind})


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    fresh: Fresh
    only: Callable[[], Mapping[int, frozenset[int]]]
    """By the `id` of each loop what only its body uses; found out when first asked for."""
    reorders: bool
    lets: set[Symbol] = field(default_factory=set)
    """What was bound before loops."""

    def body(self, body: Body, known: Bounds, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with its loops split."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Let):
                known = known.holding(stmt.symbol, known.value(stmt.value))
            if isinstance(stmt, For):
                out += self.split(stmt, known, outer) or self.inside(stmt, known, outer)
            else:
                inner = (self.body(one, known, outer) for one in bodies(stmt))
                out.append(with_bodies(stmt, tuple(inner)))
        return tuple(out)

    def inside(self, loop: For, known: Bounds, outer: tuple[For, ...]) -> Body:
        """Return a loop with the loops inside split, behind what these need and is the same in all
        of its iterations."""
        body = self.body(loop.body, known.inside(loop), (*outer, loop))
        bound, changed = bound_in(body) | {loop.symbol}, frozenset(writes(body))
        ahead: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Let) and stmt.symbol in self.lets:
                if not free_symbols(stmt.value) & bound and changed.isdisjoint(own_reads(stmt)):
                    ahead.append(stmt)
                    bound -= {stmt.symbol}
        stay = tuple(stmt for stmt in body if not any(stmt is one for one in ahead))
        return (*ahead, with_bodies(loop, (stay,)))

    def split(self, loop: For, known: Bounds, outer: tuple[For, ...]) -> Body:
        """Return what takes the place of a loop, nothing where it stays as it is."""
        rounds, inside = (loop.hi - loop.lo).constant, statements(loop.body)
        if loop.kind != "serial" or loop.step != 1 or (rounds is not None and rounds < LEAST):
            return ()
        plain = [one for one in inside if isinstance(one, Store | Update | Comment | If)]
        if len(plain) + sum(isinstance(one, Let) for one in loop.body) < len(inside):
            return ()
        summed = (at for s in inside if isinstance(s, Update) and self.reorders for at in s.over)
        if any(loop.symbol in at.symbols() for at in summed) or is_large(loop):
            return ()
        named = _Named(self.fresh, loop, outer, known)
        bound = named.loop()
        found = () if bound is None else tuple(dict.fromkeys(_wraps(bound, named.known)))
        if bound is None or not 0 < len(found) <= MOST:
            return ()
        pieces: list[Piece] = [(loop.lo, loop.hi, {})]
        ahead = [*named.lets]
        for wrap in found:
            shift = self.fresh.symbol("shift")
            ahead.append(Let(shift, Position(wrap.shift(loop)), loop.span))
            pieces = [one for piece in pieces for one in wrap.split(loop, var(shift), piece)]
        self.lets.update(let.symbol for let in ahead)
        *most, last = (self.piece(bound, piece) for piece in pieces)
        mine = private(loop, self.only()[id(loop)])
        made = [renewed(one, mine, self.fresh) for one in most]
        if not named.tests:
            return (*ahead, *made, last)
        made.append(renewed(last, mine, self.fresh))
        return (*ahead, If(every(named.tests), tuple(made), (loop,), loop.span))

    def piece(self, loop: For, piece: Piece) -> For:
        """Return some iterations of a loop."""
        lo, hi, values = piece

        def at(index: Affine) -> Affine:
            return _resolved(index, values)

        def expr(value: Expr) -> Expr:
            return rebuild(value, expr, at)

        return replace(loop, lo=lo, hi=hi, body=rewrite(loop.body, Rewrite(expr, at)))


@dataclass(slots=True)
class _Named:
    """Wrapped numbers that read what stays the same in a loop, which is given names before it."""

    fresh: Fresh
    around: For
    outer: tuple[For, ...]
    known: Bounds
    lets: list[Let] = field(default_factory=list)
    tests: list[Expr] = field(default_factory=list)
    """What has to hold for none of them to wrap around."""
    names: dict[Expr, Symbol] = field(default_factory=dict)

    def loop(self) -> For | None:
        """Return the loop with positions in the place of such numbers, also where they have names;
        None where something else has one."""
        values: dict[Symbol, Affine] = {}
        out: list[Stmt] = []
        for stmt in self.around.body:
            (stmt,) = substitute((stmt,), values) if values else (stmt,)
            if not isinstance(stmt, Let):
                out += rewrite((stmt,), Rewrite(expr=self.expr))
                continue
            index = self.index(stmt.value)
            if index is None:
                return None
            values[stmt.symbol] = index
        return replace(self.around, body=tuple(out))

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with positions in the place of such numbers."""
        if isinstance(expr, Apply) and expr.op.name == "mod" and expr.dtype == dtypes.int64:
            index = self.index(expr)
            if index is not None and self.around.symbol in index.symbols():
                return Position(index)
        return rebuild(expr, self.expr, lambda index: index)

    def index(self, expr: Expr) -> Affine | None:
        """Return a whole number as an index expression, None where it is none, or may overflow."""
        found = as_index(expr)
        if found is not None or expr.dtype.kind not in "iu":
            return found
        if self.stays(expr):
            return var(self.name(expr))
        match expr:
            case Cast(value):
                found = self.index(value)
            case Apply(op, args):
                found = self.applied(op.name, [self.index(arg) for arg in args])
            case _:
                return None
        return found if found is not None and self.fits(found, expr.dtype) else None

    def applied(self, name: str, args: list[Affine | None]) -> Affine | None:
        match name, args:
            case "add", [Affine() as left, Affine() as right]:
                return left + right
            case "sub", [Affine() as left, Affine() as right]:
                return left - right
            case "neg", [Affine() as one]:
                return -one
            case "mod", [Affine() as left, Affine() as right] if (self.known.least(right) or 0) > 0:
                return mod(left, right)
            case _:
                return None

    def fits(self, index: Affine, dtype: DType) -> bool:
        """Whether a type has an index expression; of 64 bits, where it has the numbers in it."""
        low, high = self.known.inside(self.around).interval(index)
        least = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
        if dtype == dtypes.int64:
            return True
        if low is None or high is None:
            return False
        return least <= low and high < 2**dtype.bits + least

    def stays(self, expr: Expr) -> bool:
        """Whether an expression is the same in all iterations of the loop, and may be computed
        before it."""
        changed, known = writes(self.around.body), ranges(self.outer)
        for part in walk(expr):
            match part:
                case Const() | Position() | Cast():
                    pass
                case Apply(op) if op.name in _PLAIN:
                    pass
                case Read(node, index) if node not in changed and is_in_range(node, index, known):
                    pass
                case _:
                    return False
        return self.around.symbol not in free_symbols(expr)

    def name(self, expr: Expr) -> Symbol:
        """Return the symbol of what stays the same."""
        if expr in self.names:
            return self.names[expr]
        symbol = self.names[expr] = self.fresh.symbol(label_of(expr))
        low, high = self.known.value(expr)
        safe = 1 << (expr.dtype.bits - 2)
        value = expr if expr.dtype == dtypes.int64 else Cast(expr, dtypes.int64)
        self.lets.append(Let(symbol, value, self.around.span))
        if low is None or low < -safe:
            self.tests.append(_test("ge", symbol, -safe))
            low = -safe
        if high is None or high > safe:
            self.tests.append(_test("le", symbol, safe))
            high = safe
        self.known = self.known.holding(symbol, (low, high))
        return symbol


def _test(name: str, symbol: Symbol, number: int) -> Expr:
    sides = Position(var(symbol)), Const(number, dtypes.int64)
    return Apply(OPS[name], sides, dtypes.bool_)


def _wraps(loop: For, known: Bounds) -> Iterator[_Wrap]:
    """Yield the subscripts in a loop that start over once at most, at an iteration that is not
    static."""
    symbol, rounds = loop.symbol, loop.hi - loop.lo
    for atom in _atoms(loop):
        step, right = atom.left.coefficient(symbol), atom.right
        rest = atom.left - var(symbol) * step
        if atom.op != "mod" or step not in (1, -1) or symbol in rest.symbols() | right.symbols():
            continue
        start = loop.lo if step > 0 else loop.hi
        fits = known.least(right - rounds)
        if (rest + start * step).constant is None and fits is not None and fits >= 0:
            yield _Wrap(atom, step, rest)


def _atoms(loop: For) -> Iterator[Quasi]:
    """Yield what is not affine in the index expressions of a loop."""
    for stmt in statements(loop.body):
        left = [*stmt.access.index] if isinstance(stmt, Store | Update) else []
        for expr in expressions_of(stmt):
            for part in walk(expr):
                left += part.index if isinstance(part, Read) else ()
                left += (part.index,) if isinstance(part, Position) else ()
        while left:
            index = left.pop()
            for atom, _ in index.terms if isinstance(index, Affine) else ():
                if isinstance(atom, Quasi):
                    yield atom
                    left += (atom.left, atom.right)


def _resolved(index: Affine, values: Mapping[Quasi, Affine]) -> Affine:
    """Return an index expression with values in the place of what is not affine."""
    if not any(isinstance(atom, Quasi) for atom, _ in index.terms):
        return index
    total = const(index.offset)
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            total += var(atom) * factor
        elif atom in values:
            total += values[atom] * factor
        else:
            sides = _resolved(atom.left, values), _resolved(atom.right, values)
            total += BUILDERS[atom.op](*sides) * factor
    return total
