"""Loops over lanes as operations on vectors of the C compiler's own, without a loop.

    for lane in 0..16 vector:           sum_lanes_0 += *(const f32x8_at *)&x[i];
        sum_lanes[lane] += x[i + lane]  sum_lanes_1 += *(const f32x8_at *)&x[i + 8];

A loop is written so where each of its statements reads and writes neighbours, does what vectors
can, and has one value for all lanes elsewhere; all others stay loops. A lane does what it would do
in the loop, so not a bit changes. Arrays that a schedule made and that only such loops touch, whole
and at fixed places, are variables: `Plan.held` says which, and in which list of statements they are
declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from math import prod
from typing import NamedTuple

from ...lowering.dataclass import dataclass
from ...lowering.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Dynamic, Expr, Index, Read, reads
from ...lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from ...lowering.ir.loops import Comment, For, Program, Stmt, Store, Update, While
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import substitute
from ...lowering.ir.walk import bodies, expressions_of, free_symbols, own_writes, parts, statements
from ...lowering.passes.cells import stride
from .c_expression import POSTFIX, UNARY, Scope, Text, infix
from .forms import behind_zero
from .names import Names
from .prelude import is_piece

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-"}
_KNOWN = frozenset((*_INFIX, "max", "min", "fma"))
"""What is done to all lanes at once, by an operator or by a function of the prelude."""
_REALS = dtypes.float32, dtypes.float64
MOST_UNROLLED, PEELED = 32, 16
"""How many rounds of a loop are written out, at most; compilers do it up to so many."""
NARROW, MANY = 256, 8
"""Where vectors are no wider there are 16 registers, and with so many sums few are left."""


def width_of(loop: For, bits: int) -> int:
    """Return how many lanes a vector has in a loop, 0 where it stays a loop.

    It is a power of two that divides the number of rounds, for the widest type in the loop.
    """
    rounds = loop.hi.constant
    if loop.kind != "vector" or loop.lo != const(0) or loop.step != 1 or rounds is None:
        return 0
    found = _Shape(loop.symbol)
    if not all(found.fits(stmt) for stmt in loop.body):
        return 0
    lanes = min(bits // max(found.bits, default=bits), rounds)
    return lanes if lanes > 1 and not lanes & (lanes - 1) and not rounds % lanes else 0


@dataclass(slots=True)
class _Shape:
    """What a loop over lanes does, statement by statement."""

    lane: Symbol
    bits: set[int] = field(default_factory=set)
    """The sizes of the types of what differs from lane to lane."""
    named: set[int] = field(default_factory=set)
    """The ids of scalars that have a value for each lane."""

    def fits(self, stmt: Stmt) -> bool:
        """Whether a statement can be one on vectors; it is noted."""
        match stmt:
            case Comment():
                return True
            case Store(Access(node, ()), value):
                self.note(stmt)
                return self.is_real(node.dtype) and self.can(value)
            case Store(Access(node, index), value):
                return self.is_real(node.dtype) and self.step(node, index) == 1 and self.can(value)
            case Update(Access(node, index), op, value, None) if op.name in _KNOWN:
                return self.is_real(node.dtype) and self.step(node, index) == 1 and self.can(value)
            case _:
                return False

    def note(self, stmt: Stmt) -> None:
        """Note what a statement that fits makes, without a look at whether it does."""
        if isinstance(stmt, Store) and not stmt.access.index:
            self.named.add(stmt.access.node.id)

    def is_real(self, dtype: DType) -> bool:
        self.bits.add(dtype.bits)
        return dtype in _REALS

    def can(self, expr: Expr) -> bool:
        """Whether an expression is of one value for all lanes, or one of vectors."""
        if not self.varies(expr):
            return True
        match expr:
            case Read(node, ()):
                return True
            case Read(node, index):
                return self.is_real(node.dtype) and self.step(node, index) == 1
            case Apply(op, args, dtype) if op.name in _KNOWN:
                return (
                    self.is_real(dtype)
                    and behind_zero(expr) is None
                    and all(arg.dtype is dtype and self.can(arg) for arg in args)
                )
            case Cast(value, dtype):
                wider = value.dtype is dtypes.float32 and dtype is dtypes.float64
                return wider and self.is_real(dtype) and self.can(value)
            case _:
                return False

    def varies(self, expr: Expr) -> bool:
        """Whether an expression may have another value in each lane."""
        named = any(not read.index and read.node.id in self.named for read in reads(expr))
        return named or self.lane in free_symbols(expr)

    def step(self, node: Node, index: tuple[Index, ...]) -> int | None:
        """Return how far apart neighbouring lanes are in an array, None where that is unclear."""
        if any(isinstance(at, Dynamic) and self.varies(at.value) for at in index):
            return None
        return stride(node, index, self.lane)


# --------------------------------------------------------------------------------- variables


@dataclass(frozen=True, slots=True)
class Plan:
    """Which arrays are variables, and where these are declared."""

    bits: int
    """How wide vectors are, 0 where there are none."""
    held: Mapping[int, int] = field(default_factory=dict)
    """How many lanes each variable has, by node id."""
    homes: Mapping[int, tuple[Node, ...]] = field(default_factory=dict)
    """By the `id` of a list of statements, which lives as long as the program."""


Lists = tuple[tuple[Stmt, ...], ...]


@dataclass(slots=True)
class _Search:
    """The search for arrays that may be variables."""

    bits: int
    widths: dict[int, set[int]] = field(default_factory=dict)
    """The lanes of each node in each of its uses, 0 where it has to be an array."""
    lists: dict[int, Lists] = field(default_factory=dict)
    """The lists around all uses of a node so far, outermost first."""
    nodes: dict[int, Node] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], around: Lists, loops: tuple[For, ...]) -> None:
        """Look at a list of statements, and at those inside."""
        for stmt in body:
            if not isinstance(stmt, Comment):
                self.statement(stmt, around, loops)
            inside = (*loops, stmt) if isinstance(stmt, For) else loops
            lists = around
            if isinstance(stmt, For) and stmt.kind == "parallel":
                lists = ()  # it becomes a function, which has variables of its own
            named = not isinstance(stmt, While)  # its lists are written as one
            named = named and not any(loop.kind == "unrolled" for loop in inside)
            for inner in bodies(stmt):
                self.body(inner, (*lists, inner) if named else lists, inside)

    def statement(self, stmt: Stmt, around: Lists, loops: tuple[For, ...]) -> None:
        """Note what a statement itself uses."""
        places = [(one.node, one.index) for one in parts(stmt).targets]
        places += [(r.node, r.index) for e in expressions_of(stmt) for r in reads(e)]
        places += [(node, ()) for node in own_writes(stmt)] if not places else []
        for node, index in places:
            if node.purpose in ("lanes", "tile"):
                self.widths.setdefault(node.id, set()).add(self.width(node, index, loops))
                known = self.lists.get(node.id, around)
                shared = [a for a, b in zip(known, around, strict=False) if a is b]
                self.lists[node.id] = tuple(shared)
                self.nodes[node.id] = node

    def width(self, node: Node, index: tuple[Index, ...], loops: tuple[For, ...]) -> int:
        """Return how many lanes the variable has that is this place, 0 where none is."""
        if not loops or not index or index[-1] != var(loops[-1].symbol):
            return 0
        if loops[-1].hi != node.shape[-1]:
            return 0
        fixed = {loop.symbol for loop in loops if is_unrolled(loop)}
        if not all(isinstance(at, Affine) and at.symbols() <= fixed for at in index[:-1]):
            return 0
        return width_of(loops[-1], self.bits)


def is_unrolled(loop: For) -> bool:
    """Whether the rounds of a loop are written out."""
    rounds = (loop.hi - loop.lo).constant
    fixed = loop.lo.constant is not None and rounds is not None
    return loop.kind == "unrolled" and fixed and loop.step == 1 and (rounds or 0) <= MOST_UNROLLED


def plan_of(program: Program, bits: int) -> Plan:
    """Return which arrays of a program are variables, for vectors of that many bits."""
    if not bits:
        return Plan(0)
    search = _Search(bits)
    for kernel in program.kernels:
        search.body(kernel.body, (kernel.body,), ())
    held: dict[int, int] = {}
    homes: dict[int, list[Node]] = {}
    for number, widths in search.widths.items():
        lists = search.lists[number]
        if len(widths) == 1 and 0 not in widths and lists:
            held[number] = min(widths)
            homes.setdefault(id(lists[-1]), []).append(search.nodes[number])
    return Plan(bits, held, {at: tuple(nodes) for at, nodes in homes.items()})


def count(node: Node, width: int) -> int:
    """Return how many variables an array is."""
    return prod(node.static_shape or ()) // width


# --------------------------------------------------------------------------------- text


class Line(NamedTuple):
    """A line of text, and the statement that it is of."""

    text: str
    span: Span


@dataclass(slots=True)
class Writer:
    """Writes loops over lanes; `names` are those of variables by node id, in order."""

    plan: Plan
    scope: Scope
    texts: Names
    names: dict[int, list[str]] = field(default_factory=dict)
    bound: list[str] = field(default_factory=list)
    """The variables that lines of blocks around have declared."""

    def declared(self, node: Node) -> str:
        """Return the declaration of the variables of an array; their names hold from now on."""
        width = self.plan.held[node.id]
        base = self.scope.nodes[node.id]
        names = [self.texts.fresh(f"{base}_{n}") for n in range(count(node, width))]
        self.names[node.id] = names
        return f"{type_of(node.dtype, width)} {', '.join(names)};"

    def fill(self, nodes: tuple[Node, ...]) -> bool:
        """Whether the variables of the tiles among arrays leave few registers."""
        tiles = (node for node in nodes if node.purpose == "tile")
        many = sum(count(node, self.plan.held[node.id]) for node in tiles) >= MANY
        return many and self.plan.bits <= NARROW

    def forget(self, nodes: tuple[Node, ...]) -> None:
        """End the names of arrays that were declared."""
        for node in nodes:
            self.texts.release(self.names.pop(node.id))

    def hook(self, loop: For) -> str | None:
        """Return what keeps the rounds of a short loop whose variables nearly fill the registers
        from being written out: compilers would keep what they have in common, and no variable."""
        rounds = (loop.hi - loop.lo).constant
        if rounds is None or rounds > PEELED or self.plan.bits > NARROW:
            return None
        inside = tuple(statements(loop.body))
        used = {node.id for stmt in inside for node in own_writes(stmt)} & self.names.keys()
        loops = (stmt.kind for stmt in inside if isinstance(stmt, For))
        many = sum(len(self.names[number]) for number in used) >= MANY
        inner = all(kind in ("unrolled", "vector") for kind in loops)
        return "#pragma GCC unroll 1" if many and inner else None

    def written(self, loop: For) -> Iterator[Line | tuple[Stmt, ...]] | None:
        """Return the lines of a loop, or its rounds one by one; None where it stays a loop."""
        if self.plan.bits and is_unrolled(loop):
            return rounds_of(loop)
        width = width_of(loop, self.plan.bits)
        return self.lines(loop, width) if width else None

    def lines(self, loop: For, width: int) -> Iterator[Line]:
        """Yield the lines of a loop whose vectors have so many lanes."""
        rounds = loop.hi.constant or 0
        for first in range(0, rounds, width):
            piece = _Piece(self, _Shape(loop.symbol), loop.symbol, first, width)
            for stmt in loop.body:
                piece.shape.note(stmt)
                if isinstance(stmt, Store | Update):
                    yield Line(piece.line(stmt), stmt.span)
            self.bound += piece.named.values()

    def end(self, start: int) -> None:
        """End the names of variables that lines declared from there on: their block is over."""
        self.texts.release(self.bound[start:])
        del self.bound[start:]


@dataclass(slots=True)
class _Piece:
    """Some lanes of a loop, as many as one vector has."""

    writer: Writer
    shape: _Shape
    lane: Symbol
    first: int
    width: int
    named: dict[int, str] = field(default_factory=dict)

    def line(self, stmt: Store | Update) -> str:
        """Return a statement on all lanes of the piece."""
        access, value = stmt.access, stmt.value
        if isinstance(stmt, Store) and not access.index:
            text = self.vector(value).text
            vector = type_of(access.node.dtype, self.width)
            if access.node.id in self.named:
                return f"{self.named[access.node.id]} = {text};"
            name = self.named[access.node.id] = self.writer.texts.fresh(access.node.label)
            return f"{vector} {name} = {text};"
        place = self.place(access.node, access.index)
        if isinstance(stmt, Store):
            return f"{place} = {self.vector(value).text};"
        if stmt.op.name in _INFIX:
            return f"{place} {_INFIX[stmt.op.name]}= {self.either(value).text};"
        call = self.called(
            stmt.op.name, access.node.dtype, [Text(place, POSTFIX), self.vector(value)]
        )
        return f"{place} = {call.text};"

    def place(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return the variable or the part of an array that has these lanes of a place."""
        here = tuple(self.at(one) for one in index)
        if node.id in self.writer.names:
            numbers = [evaluate(one, {}) for one in here if isinstance(one, Affine)]
            flat = 0
            for number, extent in zip(numbers, node.static_shape or (), strict=True):
                flat = flat * extent + number
            return self.writer.names[node.id][flat // self.width]
        element = self.writer.scope.element(node, here)
        return f"*({type_of(node.dtype, self.width)}_at *)&{element}"

    def at(self, index: Index) -> Index:
        """Return a subscript for the first lane."""
        if not isinstance(index, Affine):
            return index
        step = index.coefficient(self.lane)
        return index - var(self.lane) * step + step * self.first

    def either(self, expr: Expr) -> Text:
        """Return a vector, or a number that stands for all lanes."""
        if self.shape.varies(expr):
            return self.vector(expr)
        return self.writer.scope.expression(expr)

    def vector(self, expr: Expr) -> Text:
        """Return an expression as a vector."""
        if not self.shape.varies(expr):
            text = self.writer.scope.expression(expr).text
            return Text(f"all_{type_of(expr.dtype, self.width)}({text})", POSTFIX)
        match expr:
            case Read(node, ()):
                return Text(self.named[node.id], POSTFIX)
            case Read(node, index):
                place = self.place(node, index)
                if place[0] != "*":
                    return Text(place, POSTFIX)
                return Text(f"*(const {place[2:]}", UNARY)
            case Apply(op, args, dtype) if op.name not in _INFIX:
                return self.called(op.name, dtype, [self.vector(arg) for arg in args])
            case Apply(op, args, _):
                return infix(_INFIX[op.name], [self.either(arg) for arg in args])
            case Cast(value, dtype):
                inner, to = self.vector(value).text, type_of(dtype, self.width)
                known = f"{to}_of_{type_of(value.dtype, self.width)}"
                if is_piece(known):
                    return Text(f"{known}({inner})", POSTFIX)
                return Text(f"__builtin_convertvector({inner}, {to})", POSTFIX)
            case _:
                raise AssertionError("loops over lanes were looked at before")

    def called(self, name: str, dtype: DType, args: list[Text]) -> Text:
        texts = ", ".join(arg.text for arg in args)
        return Text(f"{name}_{type_of(dtype, self.width)}({texts})", POSTFIX)


def type_of(dtype: DType, width: int) -> str:
    """Return the name of a vector type: `f32x8`."""
    return f"{dtype.short}x{width}"


def rounds_of(loop: For) -> Iterator[tuple[Stmt, ...]]:
    """Yield the body of an unrolled loop for each of its rounds."""
    first, last = loop.lo.constant or 0, loop.hi.constant or 0
    for value in range(first, last):
        yield substitute(loop.body, {loop.symbol: const(value)})
