"""Loops over SIMD lanes as operations on the vector types of the C compiler.

    for lane in 0..16 vector:           sum_lanes_0 += *(const f32x8_at *)&x[i];
        sum_lanes[lane] += x[i + lane]  sum_lanes_1 += *(const f32x8_at *)&x[i + 8];

A loop is vectorized where each of its statements accesses memory with stride 1, applies operations
that vectors have, and is otherwise uniform over the lanes; all others stay loops. Each lane does
the operations of its iteration: bit-identical. `vector_variables` says which arrays of lanes are
variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.analysis.subscripts import stride
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Index, Read, Select
from ...lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from ...lowering.ir.loops import For, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import substitute
from ...lowering.ir.walk import direct_writes, statements
from .c_expression import Scope
from .c_text import POSTFIX, UNARY, CText, infix
from .names import Names
from .prelude import is_prelude_name
from .quirks.early_unrolling import is_elementwise
from .quirks.ordered_sums import sums_in_order
from .quirks.vectorizer_dependence import is_miscompiled
from .vector_variables import VectorPlan, is_unrolled, vector_width
from .vector_variables import variable_count as count
from .vectorizable import (
    COMPARISONS,
    INFIX,
    LOGIC,
    LaneBound,
    VectorBody,
    has_integer_lanes,
    mask_operation,
)

STORE_BITS, LOAD_BITS = 256, 128
"""The widths in bits of the vectors that are stored and of those that are loaded."""


class _Strides(NamedTuple):
    """The strides of a copy: of the source in the lane loop, of the target in the inner one."""

    line: int
    gap: int


@dataclass(frozen=True, slots=True)
class TransposedCopy:
    """A transposed copy; a call transposes a tile of `width` lanes by `load_width` elements."""

    lanes: For
    near: For
    store: Store
    steps: _Strides
    width: int
    load_width: int

    def calls(self, scope: Scope) -> Iterator[str]:
        """Yield the calls that replace the loops."""
        for lane in range(0, _trip_count(self.lanes), self.width):
            for step in range(0, _trip_count(self.near), self.load_width):
                substitution = {
                    self.lanes.symbol: self.lanes.lo + lane,
                    self.near.symbol: self.near.lo + step,
                }
                (shifted,) = substitute((self.store,), substitution)
                yield self._call(shifted, scope)

    def _call(self, stmt: Stmt, scope: Scope) -> str:
        assert isinstance(stmt, Store) and isinstance(stmt.value, Read)
        target = scope.element(stmt.access.node, stmt.access.index)
        source = scope.element(stmt.value.node, stmt.value.index)
        name = f"turn_{stmt.value.dtype.short}x{self.width}"
        return f"{name}(&{target}, {self.steps.gap}, &{source}, {self.steps.line});"


def match_transposed_copy(loop: For, bits: int) -> TransposedCopy | None:
    """Return the transposed copy that a loop nest is, for vectors of `bits`; None if it is none."""
    match loop.body:
        case (For(body=(Store(Access(node), Read() as value) as store,)) as near,):
            pass
        case _:
            return None
    if bits < STORE_BITS or value.dtype is not node.dtype or node.purpose != "panel":
        return None
    if value.dtype not in (dtypes.float32, dtypes.float64):
        return None
    width, piece = (size // value.dtype.bits for size in (STORE_BITS, LOAD_BITS))
    if not (_is_divisible(loop, width) and _is_divisible(near, piece)):
        return None
    source_stride = stride(value.node, value.index, loop.symbol)
    target_stride = stride(node, store.access.index, near.symbol)
    is_transposed = stride(node, store.access.index, loop.symbol) == 1
    if (
        not is_transposed
        or stride(value.node, value.index, near.symbol) != 1
        or not source_stride
        or not target_stride
    ):
        return None
    return TransposedCopy(loop, near, store, _Strides(source_stride, target_stride), width, piece)


def _trip_count(loop: For) -> int:
    return (loop.hi - loop.lo).constant or 0


def _is_divisible(loop: For, unit: int) -> bool:
    """Whether the trip count of a serial loop is a multiple of `unit`."""
    trip_count = _trip_count(loop)
    return loop.kind == "serial" and loop.step == 1 and trip_count > 0 and trip_count % unit == 0


MAX_PEELED = 16
"""Trip count up to which compilers unroll a loop completely, and loops over steps of a tile should
be unrolled."""
NARROW_BITS, MANY_ACCUMULATORS = 256, 8
"""Vectors up to this width may have only 16 registers, which so many accumulators nearly fill."""


class Line(NamedTuple):
    """A line of text, and its source statement."""

    text: str
    span: Span


@dataclass(slots=True)
class VectorPrinter:
    """Prints loops over lanes; `names` are the vector variables of each node by its id."""

    plan: VectorPlan
    scope: Scope
    texts: Names
    names: dict[int, list[str]] = field(default_factory=dict)
    crowded: frozenset[int] = frozenset()
    """The loops, by id, whose vectors would take too long to compile."""
    bound: list[str] = field(default_factory=list)
    """The variables that lines of the enclosing blocks have declared."""

    def declared(self, node: Node) -> str:
        """Return the declaration of an array's variables; their names are in scope from here."""
        width = self.plan.held[node.id]
        base = self.scope.nodes[node.id]
        names = [self.texts.fresh(f"{base}_{n}") for n in range(count(node, width))]
        self.names[node.id] = names
        return f"{vector_type(node.dtype, width)} {', '.join(names)};"

    def fill(self, nodes: tuple[Node, ...]) -> bool:
        """Whether the variables of the tiles among arrays nearly fill the registers."""
        tiles = (node for node in nodes if node.purpose == "tile")
        has_many = sum(count(node, self.plan.held[node.id]) for node in tiles) >= MANY_ACCUMULATORS
        return has_many and self.plan.bits <= NARROW_BITS

    def forget(self, nodes: tuple[Node, ...]) -> None:
        """Release the names of arrays that were declared."""
        for node in nodes:
            self.texts.release(self.names.pop(node.id))

    def unroll_pragma(self, loop: For) -> str | None:
        """Return the unroll pragma of a short loop, if any.

        No unrolling where the loop itself may be vectorized: otherwise the loop around it would be,
        with shuffles. Full unrolling where the iterations are steps of a tile, which a
        `compiler_barrier` follows.
        """
        trip_count = (loop.hi - loop.lo).constant
        if trip_count is None or trip_count > MAX_PEELED or not self.plan.bits:
            return None
        if is_elementwise(loop):
            return "#pragma GCC unroll 1"
        return f"#pragma GCC unroll {trip_count}" if 0 < self.steps(loop) <= MAX_PEELED else None

    def steps(self, loop: For) -> int:
        """Return how many steps of a tile a short loop has, 0 where its iterations are none."""
        trip_count = (loop.hi - loop.lo).constant or 0
        match loop.body:
            case (For(kind="serial") as inner,):
                return trip_count * self.steps(inner)
            case _:
                return trip_count if self.is_tile_step(loop) else 0

    def needs_compiler_barrier(self, loop: For) -> bool:
        """Whether iterations need a compiler barrier: where vectorization would miscompile them or
        take too long, or common subexpressions of the steps of a tile would take its registers."""
        prevented = is_miscompiled(loop) or sums_in_order(loop) or id(loop) in self.crowded
        return prevented or self.is_tile_step(loop)

    def is_tile_step(self, loop: For) -> bool:
        """Whether an iteration of a short loop is a step of a tile that nearly fills registers."""
        trip_count = (loop.hi - loop.lo).constant
        if trip_count is None or trip_count > MAX_PEELED or not 0 < self.plan.bits <= NARROW_BITS:
            return False
        stmts = tuple(statements(loop.body))
        used_ids = {node.id for stmt in stmts for node in direct_writes(stmt)} & self.names.keys()
        loops = (stmt.kind for stmt in stmts if isinstance(stmt, For))
        has_many = sum(len(self.names[node_id]) for node_id in used_ids) >= MANY_ACCUMULATORS
        return has_many and all(kind in ("unrolled", "vector") for kind in loops)

    def written(self, loop: For) -> Iterator[Line | tuple[Stmt, ...]] | None:
        """Return the lines of a loop, or its iterations unrolled; None where it stays a loop."""
        if self.plan.bits and is_unrolled(loop):
            return unrolled_bodies(loop)
        if (transpose := match_transposed_copy(loop, self.plan.bits)) is not None:
            return (Line(call, transpose.store.span) for call in transpose.calls(self.scope))
        width = vector_width(loop, self.plan.bits, self.plan.data)
        return self.lines(loop, width) if width else None

    def lines(self, loop: For, width: int) -> Iterator[Line]:
        """Yield the lines of a loop whose vectors have so many lanes."""
        trip_count = loop.hi.constant or 0
        for first in range(0, trip_count, width):
            block = _VectorBlock(self, VectorBody(loop.symbol), loop.symbol, first, width)
            if not any(block.shape.changes(stmt, first) for stmt in loop.body):
                continue
            for stmt in loop.body:
                block.shape.note(stmt)
                if isinstance(stmt, Store | Update):
                    yield Line(block.line(stmt), stmt.span)
            self.bound += block.named.values()

    def end(self, start: int) -> None:
        """Release the names of the variables declared from `start` on: their block has ended."""
        self.texts.release(self.bound[start:])
        del self.bound[start:]


@dataclass(slots=True)
class _VectorBlock:
    """One vector of consecutive lanes of a loop."""

    writer: VectorPrinter
    shape: VectorBody
    lane: Symbol
    first: int
    width: int
    named: dict[int, str] = field(default_factory=dict)
    filled: str = ""
    """The number of lanes that a masked load may read, as text; empty where all may be."""

    def line(self, stmt: Store | Update) -> str:
        """Return a statement on all lanes of the vector."""
        access, value = stmt.access, stmt.value
        if isinstance(stmt, Store) and not access.index:
            text = self.vector(value).text
            vector = vector_type(access.node.dtype, self.width)
            if access.node.id in self.named:
                return f"{self.named[access.node.id]} = {text};"
            name = self.named[access.node.id] = self.writer.texts.fresh(access.node.label)
            return f"{vector} {name} = {text};"
        target = self.element_text(access.node, access.index)
        if isinstance(stmt, Store):
            return f"{target} = {self.vector(value).text};"
        if has_integer_lanes(access.node) and isinstance(value, Cast):  # -1 where the test holds
            return f"{target} -= {self.counted(value.value, access.node.dtype)};"
        if stmt.op.name in INFIX:
            return f"{target} {INFIX[stmt.op.name]}= {self.either(value).text};"
        call = self.called(
            stmt.op.name, access.node.dtype, [CText(target, POSTFIX), self.vector(value)]
        )
        return f"{target} = {call.text};"

    def element_text(self, node: Node, index: tuple[Index, ...]) -> str:
        """Return the vector variable or the vector in memory that holds these lanes."""
        first_index = tuple(self.at(at) for at in index)
        if node.id in self.writer.names:
            numbers = [evaluate(at, {}) for at in first_index if isinstance(at, Affine)]
            flat = 0
            for number, extent in zip(numbers, node.static_shape or (), strict=True):
                flat = flat * extent + number
            return self.writer.names[node.id][flat // self.width]
        element = self.writer.scope.element(node, first_index)
        return f"*({vector_type(node.dtype, self.width)}_at *)&{element}"

    def at(self, index: Index) -> Index:
        """Return a subscript at the first lane."""
        if not isinstance(index, Affine):
            return index
        step = index.coefficient(self.lane)
        return index - var(self.lane) * step + step * self.first

    def either(self, expr: Expr) -> CText:
        """Return a vector, or a scalar that the operator broadcasts."""
        if self.shape.varies(expr):
            return self.vector(expr)
        return self.writer.scope.expression(expr)

    def vector(self, expr: Expr) -> CText:
        """Return an expression as a vector."""
        if not self.shape.varies(expr):
            text = self.writer.scope.expression(expr).text
            return CText(f"all_{vector_type(expr.dtype, self.width)}({text})", POSTFIX)
        match expr:
            case Read(node, ()):
                return CText(self.named[node.id], POSTFIX)
            case Read(node, index):
                operand = self.element_text(node, index)
                if operand[0] != "*":
                    return CText(operand, POSTFIX)
                if self.filled:
                    element = operand[operand.index("&") :]
                    vector = vector_type(node.dtype, self.width)
                    return CText(f"first_{vector}({element}, {self.filled})", POSTFIX)
                return CText(f"*(const {operand[2:]}", UNARY)
            case Apply(op, args, dtype) if op.name not in INFIX:
                return self.called(op.name, dtype, [self.vector(arg) for arg in args])
            case Apply(op, args, _):
                return infix(INFIX[op.name], [self.either(arg) for arg in args])
            case Cast(test, dtype) if test.dtype is dtypes.bool_:
                mask = self.mask(test, dtype.bits)
                sides = (self.vector(Const(number, dtype)) for number in (1.0, 0.0))
                return self.called("pick", dtype, [mask, *sides])
            case Cast(value, dtype):
                inner, to = self.vector(value).text, vector_type(dtype, self.width)
                converter = f"{to}_of_{vector_type(value.dtype, self.width)}"
                if is_prelude_name(converter):
                    return CText(f"{converter}({inner})", POSTFIX)
                return CText(f"__builtin_convertvector({inner}, {to})", POSTFIX)
            case Select(test, yes, no) if (bound := self.shape.bound(test)) is not None:
                return self.padded(bound, yes, no)
            case Select(test, yes, no):
                mask = self.mask(test, expr.dtype.bits)
                return self.called("pick", expr.dtype, [mask, self.vector(yes), self.vector(no)])
            case _:
                raise AssertionError("loops over lanes were looked at before")

    def padded(self, bound: LaneBound, yes: Expr, no: Expr) -> CText:
        """Return a vector whose first lanes have a value, and the others a uniform number."""
        valid = bound.left(self.first)
        if valid is not None and valid >= self.width:
            return self.vector(yes)
        number = CText(str(valid), POSTFIX)
        if valid is None:
            count = self.writer.scope.expression(bound.terms)
            shift = CText(str(bound.offset + self.first), POSTFIX)
            number = infix("-", [count, shift]) if bound.offset + self.first else count
        value = replace(self, filled=number.text).vector(yes)
        padding = self.writer.scope.expression(no)
        if self.is_loaded(yes) and isinstance(no, Const) and repr(no.value) == "0.0":
            return value  # masked lanes are 0
        return self.called("padded", yes.dtype, [value, number, padding])

    def is_loaded(self, expr: Expr) -> bool:
        """Whether an expression is a load of consecutive lanes from memory."""
        match expr:
            case Read(node, (_, *_)):
                return node.id not in self.writer.names and self.shape.varies(expr)
            case _:
                return False

    def counted(self, test: Expr, dtype: DType) -> str:
        """Return the mask of a test as integers of an element type."""
        mask = self.mask(test, dtype.bits).text
        return mask if dtype.kind == "i" else f"({vector_type(dtype, self.width)})({mask})"

    def mask(self, test: Expr, bits: int) -> CText:
        """Return a test as a mask: a vector of integers of `bits`, -1 where it holds, else 0."""
        match test:
            case Apply(op, args) if op.name in COMPARISONS:
                text = infix(COMPARISONS[op.name], [self.vector(arg) for arg in args]).text
                return self.converted(f"(i{args[0].dtype.bits}x{self.width})({text})", args, bits)
            case Apply(op, args) if op.name in LOGIC:
                return infix(LOGIC[op.name], [self.mask(arg, bits) for arg in args])
            case Apply(_, args):
                return infix("~", [self.mask(arg, bits) for arg in args])
            case Select():
                operator, remaining = mask_operation(test)
                return infix(operator, [self.mask(side, bits) for side in (test.test, remaining)])
            case Read(node, index):
                operand = self.element_text(node, index).replace("bool", "u8", 1)
                to = f"i{bits}x{self.width}"
                widened = f"__builtin_convertvector({operand.replace('*(', '*(const ', 1)}, {to})"
                return CText(f"({to})({widened} != 0)", UNARY)
            case _:
                raise AssertionError("loops over lanes were looked at before")

    def converted(self, mask: str, compared: tuple[Expr, ...], bits: int) -> CText:
        """Return the mask of a comparison converted to lanes of `bits`."""
        if compared[0].dtype.bits == bits:
            return CText(mask, UNARY)
        return CText(f"__builtin_convertvector({mask}, i{bits}x{self.width})", POSTFIX)

    def called(self, name: str, dtype: DType, args: list[CText]) -> CText:
        texts = ", ".join(arg.text for arg in args)
        return CText(f"{name}_{vector_type(dtype, self.width)}({texts})", POSTFIX)


def vector_type(dtype: DType, width: int) -> str:
    """Return the name of a vector type: `f32x8`."""
    return f"{dtype.short}x{width}"


def unrolled_bodies(loop: For) -> Iterator[tuple[Stmt, ...]]:
    """Yield the body of an unrolled loop for each of its iterations."""
    first, last = loop.lo.constant or 0, loop.hi.constant or 0
    for value in range(first, last):
        yield substitute(loop.body, {loop.symbol: const(value)})
