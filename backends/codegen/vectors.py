"""Loops over lanes as operations on vectors of the C compiler's own, without a loop.

    for lane in 0..16 vector:           sum_lanes_0 += *(const f32x8_at *)&x[i];
        sum_lanes[lane] += x[i + lane]  sum_lanes_1 += *(const f32x8_at *)&x[i + 8];

A loop is written so where each of its statements reads and writes neighbours, does what vectors
can, and has one value for all lanes elsewhere; all others stay loops. A lane does what it would do
in the loop, so not a bit changes. Which arrays of lanes are variables `held` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Index, Read, Select
from ...lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from ...lowering.ir.loops import For, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import substitute
from ...lowering.ir.walk import own_writes, statements
from .c_expression import Scope
from .c_text import POSTFIX, UNARY, Text, infix
from .names import Names
from .prelude import is_piece
from .quirks.early_unrolling import is_elementwise
from .quirks.vectorizer_dependence import is_in_danger
from .transposes import turn
from .vector_variables import Plan, count, is_unrolled, width_of
from .vectorizable import COMPARED, INFIX, LOGIC, Bound, Shape, is_counted, joined

PEELED = 16
"""Loops of so many rounds compilers write out by themselves; so many steps of a tile should be."""
NARROW, MANY = 256, 8
"""Where vectors are no wider there may be 16 registers, and with so many sums few are left."""


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
        """Return what tells compilers whether to write out the rounds of a short loop.

        They should not where it could be a loop on vectors: then one around it would be, with
        shuffles in between. They should where the rounds are steps of a tile, kept `apart`.
        """
        rounds = (loop.hi - loop.lo).constant
        if rounds is None or rounds > PEELED or not self.plan.bits:
            return None
        if is_elementwise(loop):
            return "#pragma GCC unroll 1"
        return f"#pragma GCC unroll {rounds}" if 0 < self.steps(loop) <= PEELED else None

    def steps(self, loop: For) -> int:
        """Return how many steps of a tile the rounds of a short loop are, 0 where they are none."""
        rounds = (loop.hi - loop.lo).constant or 0
        match loop.body:
            case (For(kind="serial") as inner,):
                return rounds * self.steps(inner)
            case _:
                return rounds if self.is_step(loop) else 0

    def is_apart(self, loop: For) -> bool:
        """Whether rounds must be kept apart for the compiler: where it would make wrong vectors, or
        would keep what steps of a tile have in common in registers, and not the tile."""
        return is_in_danger(loop) or self.is_step(loop)

    def is_step(self, loop: For) -> bool:
        """Whether a round of a short loop is a step of a tile that nearly fills the registers."""
        rounds = (loop.hi - loop.lo).constant
        if rounds is None or rounds > PEELED or not 0 < self.plan.bits <= NARROW:
            return False
        inside = tuple(statements(loop.body))
        used = {node.id for stmt in inside for node in own_writes(stmt)} & self.names.keys()
        loops = (stmt.kind for stmt in inside if isinstance(stmt, For))
        many = sum(len(self.names[number]) for number in used) >= MANY
        return many and all(kind in ("unrolled", "vector") for kind in loops)

    def written(self, loop: For) -> Iterator[Line | tuple[Stmt, ...]] | None:
        """Return the lines of a loop, or its rounds one by one; None where it stays a loop."""
        if self.plan.bits and is_unrolled(loop):
            return rounds_of(loop)
        if (turned := turn(loop, self.plan.bits)) is not None:
            return (Line(call, turned.store.span) for call in turned.calls(self.scope))
        width = width_of(loop, self.plan.bits, self.plan.data)
        return self.lines(loop, width) if width else None

    def lines(self, loop: For, width: int) -> Iterator[Line]:
        """Yield the lines of a loop whose vectors have so many lanes."""
        rounds = loop.hi.constant or 0
        for first in range(0, rounds, width):
            piece = _Piece(self, Shape(loop.symbol), loop.symbol, first, width)
            if not any(piece.shape.changes(stmt, first) for stmt in loop.body):
                continue
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
    shape: Shape
    lane: Symbol
    first: int
    width: int
    named: dict[int, str] = field(default_factory=dict)
    filled: str = ""
    """How many lanes may be read where a value is that the others have not."""

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
        if is_counted(access.node) and isinstance(value, Cast):  # -1 where the test holds
            return f"{place} -= {self.counted(value.value, access.node.dtype)};"
        if stmt.op.name in INFIX:
            return f"{place} {INFIX[stmt.op.name]}= {self.either(value).text};"
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
                if self.filled:
                    element = place[place.index("&") :]
                    vector = type_of(node.dtype, self.width)
                    return Text(f"first_{vector}({element}, {self.filled})", POSTFIX)
                return Text(f"*(const {place[2:]}", UNARY)
            case Apply(op, args, dtype) if op.name not in INFIX:
                return self.called(op.name, dtype, [self.vector(arg) for arg in args])
            case Apply(op, args, _):
                return infix(INFIX[op.name], [self.either(arg) for arg in args])
            case Cast(test, dtype) if test.dtype is dtypes.bool_:
                mask = self.mask(test, dtype.bits)
                sides = (self.vector(Const(number, dtype)) for number in (1.0, 0.0))
                return self.called("pick", dtype, [mask, *sides])
            case Cast(value, dtype):
                inner, to = self.vector(value).text, type_of(dtype, self.width)
                known = f"{to}_of_{type_of(value.dtype, self.width)}"
                if is_piece(known):
                    return Text(f"{known}({inner})", POSTFIX)
                return Text(f"__builtin_convertvector({inner}, {to})", POSTFIX)
            case Select(test, yes, no) if (bound := self.shape.bound(test)) is not None:
                return self.padded(bound, yes, no)
            case Select(test, yes, no):
                mask = self.mask(test, expr.dtype.bits)
                return self.called("pick", expr.dtype, [mask, self.vector(yes), self.vector(no)])
            case _:
                raise AssertionError("loops over lanes were looked at before")

    def padded(self, bound: Bound, yes: Expr, no: Expr) -> Text:
        """Return a vector of which only the first lanes have a value, and the others a number."""
        left = bound.left(self.first)
        if left is not None and left >= self.width:
            return self.vector(yes)
        number = Text(str(left), POSTFIX)
        if left is None:
            count = self.writer.scope.expression(bound.terms)
            before = Text(str(bound.offset + self.first), POSTFIX)
            number = infix("-", [count, before]) if bound.offset + self.first else count
        value = replace(self, filled=number.text).vector(yes)
        other = self.writer.scope.expression(no)
        if self.is_loaded(yes) and isinstance(no, Const) and repr(no.value) == "0.0":
            return value  # what is not read is 0
        return self.called("padded", yes.dtype, [value, number, other])

    def is_loaded(self, expr: Expr) -> bool:
        """Whether lanes of an expression are read from memory, each its own."""
        match expr:
            case Read(node, (_, *_)):
                return node.id not in self.writer.names and self.shape.varies(expr)
            case _:
                return False

    def counted(self, test: Expr, dtype: DType) -> str:
        """Return the mask of a test as integers of a type."""
        mask = self.mask(test, dtype.bits).text
        return mask if dtype.kind == "i" else f"({type_of(dtype, self.width)})({mask})"

    def mask(self, test: Expr, bits: int) -> Text:
        """Return a test as a vector of integers of so many bits, -1 where it holds and else 0."""
        match test:
            case Apply(op, args) if op.name in COMPARED:
                text = infix(COMPARED[op.name], [self.vector(arg) for arg in args]).text
                return self.converted(f"(i{args[0].dtype.bits}x{self.width})({text})", args, bits)
            case Apply(op, args) if op.name in LOGIC:
                return infix(LOGIC[op.name], [self.mask(arg, bits) for arg in args])
            case Apply(_, args):
                return infix("~", [self.mask(arg, bits) for arg in args])
            case Select():
                operator, other = joined(test)
                return infix(operator, [self.mask(one, bits) for one in (test.test, other)])
            case Read(node, index):
                place = self.place(node, index).replace("bool", "u8", 1)
                to = f"i{bits}x{self.width}"
                wide = f"__builtin_convertvector({place.replace('*(', '*(const ', 1)}, {to})"
                return Text(f"({to})({wide} != 0)", UNARY)
            case _:
                raise AssertionError("loops over lanes were looked at before")

    def converted(self, mask: str, compared: tuple[Expr, ...], bits: int) -> Text:
        """Return a mask of what was compared with lanes of so many bits."""
        if compared[0].dtype.bits == bits:
            return Text(mask, UNARY)
        return Text(f"__builtin_convertvector({mask}, i{bits}x{self.width})", POSTFIX)

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
