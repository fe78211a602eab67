"""A program as text of a C-like language: the only walk from loops to C.

The text has the pieces of the prelude that it names, a body function whose parameters are the
program's arrays by name, and the entry `int NAME(void **args)` that a caller finds:

    args[k]          data of parameter k, then of result k (in C order; the strides are in the text)
    args[P + R]      int64_t[record.SLOTS]: the fault, see `record`
    args[P + R + 1]  void (*show)(int64_t number, const int64_t *record): called by each print
    args[P + R + 2]  const int64_t *: the sizes of `Source.memory`, then, where those decide the
                     layout of the arena, its size and the places of its arrays

A result whose shape only `Alloc` knows is given as `int64_t[1 + rank]` instead: the routine puts
the address of a block from `calloc` there, which the caller frees, and the extents after it.
The entry returns 0, or 1 where a fault was recorded, or 2 where memory ran out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from ...lowering.diagnostic import NOWHERE, Span
from ...lowering.ir.assignments import (
    Access,
    Alloc,
    Break,
    Continue,
    Fault,
    Let,
    Pair,
    Permute,
    Print,
)
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Expr, Read
from ...lowering.ir.indexing import Symbol, const, var
from ...lowering.ir.loops import (
    Check,
    Comment,
    Fill,
    For,
    If,
    Program,
    Stmt,
    Store,
    Update,
    While,
)
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.passes.buffers import Memory
from ...lowering.pipeline import Placement
from . import prelude, record, vectors
from .c_expression import SHIFT, Scope, infix
from .dialect import C, Dialect
from .frame import Frame, frame_of
from .layout import STEP, broken, comment
from .names import identifier

_COMPOUND = frozenset("+ - * / & | ^".split())


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text, and what its numbers mean."""

    text: str
    entry: str
    """The name of the function to call."""
    line_map: Mapping[int, Span]
    """The user's statement behind a line of the text, by line number from 1."""
    faults: tuple[tuple[Fault, Span], ...]
    prints: tuple[Print, ...]
    memory: Memory
    """The run-time sizes that the caller passes, and the temporaries whose places follow them."""
    above: int
    """How many lines of the text come before the functions: the header and the prelude."""


def emit(program: Program, placement: Placement, dialect: Dialect = C) -> Source:
    """Return the text of a program in a dialect; the same program gives the same text."""
    frame = frame_of(program, placement, dialect)
    walk = _Walk(dialect, frame, vectors.Writer(frame.vectors, frame.scope, frame.names))
    for kernel in program.kernels:
        walk.statements(kernel.body)
    return walk.source(program)


@dataclass(slots=True)
class _Walk:
    """The text so far, and the names that hold at its end."""

    dialect: Dialect
    frame: Frame
    vectors: vectors.Writer
    lines: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    depth: int = 1
    faults: list[tuple[Fault, Span]] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        return self.frame.scope

    def line(self, text: str, span: Span = NOWHERE) -> None:
        """Add a line of code, broken where it is too long."""
        for part in broken(text, self.depth):
            self.lines.append(part)
            if span is not NOWHERE:
                self.spans[len(self.lines)] = span

    def text(self, expr: Expr) -> str:
        return self.scope.expression(expr).text

    def statements(self, body: tuple[Stmt, ...]) -> None:
        held = self.frame.vectors.homes.get(id(body), ())
        for node in held:
            self.line(self.vectors.declared(node))
        for stmt in body:
            self.statement(stmt)
        self.vectors.forget(held)

    def block(self, head: str, body: tuple[Stmt, ...], span: Span) -> None:
        """Add `head { body }`; names bound in the body end with it."""
        self.line(head + " {" if head else "{", span)
        known = set(self.scope.symbols)
        self.depth += 1
        self.statements(body)
        self.depth -= 1
        self.forget(set(self.scope.symbols) - known)
        self.line("}")

    def forget(self, symbols: set[Symbol]) -> None:
        self.frame.names.release(self.scope.symbols.pop(symbol) for symbol in symbols)

    def bind(self, symbol: Symbol) -> str:
        name = self.frame.names.fresh(symbol.name)
        self.scope.symbols[symbol] = name
        return name

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.for_(stmt)
            case While():
                self.while_(stmt)
            case If():
                self.if_(stmt)
            case Store(access, value, span):
                self.line(f"{self.element(access)} = {self.text(value)};", span)
            case Update():
                if stmt.pair is None:
                    self.update(stmt)
                else:
                    self.pair(stmt, stmt.pair)
            case Fill(node, value, span):
                self.statement(_filling(node, value, span))
            case Let(symbol, value, span):
                text = self.text(value)
                self.line(f"const int64_t {self.bind(symbol)} = {text};", span)
            case Alloc(node, span):
                self.alloc(node, span)
            case Permute():
                self.permute(stmt)
            case Check():
                self.check(stmt)
            case Print():
                self.print(stmt)
            case Comment(text):
                self.lines.append(comment(text, self.depth))
            case Break():
                self.line("break;")
            case Continue():
                self.line("continue;")
            case _:
                assert_never(stmt)

    def element(self, access: Access) -> str:
        return self.scope.element(access.node, access.index)

    def for_(self, loop: For) -> None:
        lines = self.vectors.lines(loop)
        if lines is not None:
            for text, span in lines:
                self.line(text, span)
            return
        if vectors.is_unrolled(loop):
            for body in vectors.rounds_of(loop):
                self.statements(body)
            return
        lo, hi = self.scope.affine(loop.lo).text, self.scope.affine(loop.hi)
        name = self.bind(loop.symbol)
        hook = self.dialect.loop_hooks.get(loop.kind)
        if hook is not None:
            self.line(hook)
        compare = "<" if loop.step > 0 else ">"
        sign = "+" if loop.step > 0 else "-"
        by = abs(loop.step)
        step = f"{name}{sign}{sign}" if by == 1 else f"{name} {sign}= {by}"
        head = f"for (int64_t {name} = {lo}; {name} {compare} {hi.within(SHIFT)}; {step})"
        self.block(head, loop.body, loop.span)
        self.forget({loop.symbol})

    def while_(self, loop: While) -> None:
        over = Apply(OPS["logical_not"], (loop.test,), loop.test.dtype)
        leave = If(over, (Break(),), (), loop.span)
        self.block("for (;;)", (*loop.prelude, leave, *loop.body), loop.span)

    def if_(self, stmt: If) -> None:
        self.block(f"if ({self.text(stmt.test)})", stmt.then, stmt.span)
        if stmt.other:
            self.lines.pop()
            self.block("} else", stmt.other, stmt.span)

    def update(self, stmt: Update) -> None:
        node, op, value = stmt.access.node, stmt.op, stmt.value
        target = self.element(stmt.access)
        plain = node.dtype.compute is node.dtype and node.dtype.kind in op.infix_kinds
        if plain and op.infix in _COMPOUND:
            self.line(f"{target} {op.infix}= {self.text(value)};", stmt.span)
            return
        before = _cast(Read(node, stmt.access.index), value.dtype)
        after = _cast(Apply(op, (before, value), value.dtype), node.dtype)
        self.line(f"{target} = {self.text(after)};", stmt.span)

    def pair(self, stmt: Update, pair: Pair) -> None:
        """Add an argmin or argmax step: the first found, a better one, or the first NaN."""
        dtype = stmt.access.node.dtype
        best, found = self.element(stmt.access), self.element(pair.access)
        value = self.frame.names.fresh("candidate")
        self.line("{")
        self.depth += 1
        ctype = self.dialect.types[dtype]
        self.line(f"const {ctype} {value} = {self.text(stmt.value)};", stmt.span)
        sign = "<" if stmt.op.name == "argmin" else ">"
        better = f"{value} {sign} {best}"
        if dtype.kind == "f":
            better += f" || ({value} != {value} && {best} == {best})"
        self.line(f"if ({found} < 0 || {better}) {{", stmt.span)
        self.depth += 1
        self.line(f"{best} = {value};", stmt.span)
        self.line(f"{found} = {self.scope.affine(pair.position).text};", stmt.span)
        for _ in range(2):
            self.depth -= 1
            self.line("}")
        self.frame.names.release([value])

    def check(self, stmt: Check) -> None:
        test = infix("!", [self.scope.expression(stmt.test)])
        self.line(f"if ({test.text}) {{", stmt.span)
        self.depth += 1
        self.line(f"fault[0] = {len(self.faults)};", stmt.span)
        self.record("fault", stmt.values, record.SLOTS, stmt.span)
        self.leave(1)
        self.depth -= 1
        self.line("}")
        self.faults.append((stmt.fault, stmt.span))

    def print(self, stmt: Print) -> None:
        values = tuple(piece for piece in stmt.pieces if not isinstance(piece, str))
        slots = 2 + sum(record.width(value.dtype) for value in values)
        number = len(self.prints)
        self.line("{", stmt.span)
        self.depth += 1
        self.line(f"int64_t printed[{slots}] = {{{number}}};", stmt.span)
        self.record("printed", values, slots, stmt.span)
        self.line(f"show({number}, printed);", stmt.span)
        self.depth -= 1
        self.line("}")
        self.prints.append(stmt)

    def record(self, name: str, values: tuple[Expr, ...], slots: int, span: Span) -> None:
        """Add the lines that put values into a record, as many as it has slots for, and its end."""
        at = 1
        for value in values:
            if at + record.width(value.dtype) > slots:
                break
            for kind, text in self.recorded(value):
                self.line(f"record_{kind}({name} + {at}, {record.tag(value.dtype)}, {text});", span)
                at += 2
        if at < slots:
            self.line(f"{name}[{at}] = 0;", span)

    def recorded(self, value: Expr) -> list[tuple[str, str]]:
        dtype = value.dtype
        if dtype.kind == "c":
            text = self.text(value)
            return [("real", f"{part}_{dtype.short}({text})") for part in ("real", "imag")]
        text = self.text(Cast(value, dtype.compute) if dtype.compute is not dtype else value)
        return [("real" if dtype.kind == "f" else "int", text)]

    def alloc(self, node: Node, span: Span) -> None:
        name = self.scope.nodes[node.id]
        total = str(node.dtype.itemsize)
        for extent in node.shape:
            total = f"bytes_of({total}, {self.scope.affine(extent).text})"
        planned = [buffer for buffer in self.frame.memory.arena if buffer.node == node]
        if planned:
            if planned[0].zeroed:
                self.line(f"cleared({name}, {total});", span)
            return
        bytes_ = self.frame.names.fresh("bytes")
        self.line("{", span)
        self.depth += 1
        self.line(f"const int64_t {bytes_} = {total};", span)
        if node.id in self.frame.exchanged:
            self.line(f"{name} = chained(&chain, {bytes_});", span)
        else:
            room = self.frame.rooms[node.id]
            self.line(f"{name} = grown({name}, &{room}, {bytes_});", span)
        self.line(f"if (!{name}) {{", span)
        self.depth += 1
        self.line(f"fault[0] = {bytes_};", span)
        self.leave(2)
        self.depth -= 1
        self.line("}")
        for axis, extent in enumerate(node.shape, 1):
            if node.id in self.frame.blocks:
                block = self.frame.blocks[node.id]
                self.line(f"{block}[{axis}] = {self.scope.affine(extent).text};", span)
        self.depth -= 1
        self.line("}")
        self.frame.names.release([bytes_])

    def permute(self, stmt: Permute) -> None:
        moves = [(n, s) for n, s in zip(stmt.nodes, stmt.sources, strict=True) if n.id != s.id]
        self.line("{", stmt.span)
        self.depth += 1
        held: dict[int, str] = {}
        for node, _ in moves:
            name = self.scope.nodes[node.id]
            held[node.id] = self.frame.names.fresh(f"old_{name}")
            ctype = self.dialect.types[node.dtype]
            self.line(f"{ctype} *const {held[node.id]} = {name};", stmt.span)
        for node, source in moves:
            old = held.get(source.id, self.scope.nodes[source.id])
            self.line(f"{self.scope.nodes[node.id]} = {old};", stmt.span)
        self.depth -= 1
        self.line("}")
        self.frame.names.release(held.values())

    def leave(self, status: int) -> None:
        """Add the way out of the function; through the label where there is something to free."""
        if self.frame.frees:
            self.line(f"status = {status};")
            self.line("goto done;")
        else:
            self.line(f"return {status};")

    def source(self, program: Program) -> Source:
        """Return the whole text: header, prelude, body function, entry."""
        frame = self.frame
        entry = f"pe_{identifier(program.name)}"
        opening, closing = _laid_out(frame.opening()), _laid_out(frame.closing())
        reports = any("fault[" in line for line in (*opening, *closing, *self.lines))
        head, calling = frame.entry(entry, reports, bool(self.prints))
        before = [*broken(frame.head(reports, bool(self.prints)), 0), "{", *opening]
        after = [*closing, "}", "", head, "{", *_laid_out(calling), "}"]
        code = "\n".join((*before, *self.lines, *after)) + "\n"
        top = above(code, self.dialect)
        skipped = top.count("\n") + len(before)
        return Source(
            top + code,
            entry,
            {skipped + line: span for line, span in self.spans.items()},
            tuple(self.faults),
            tuple(self.prints),
            frame.memory,
            top.count("\n"),
        )


def above(code: str, dialect: Dialect = C) -> str:
    """Return what functions need above them: the header and the pieces of the prelude they name."""
    return "\n".join([dialect.header + "\n", *prelude.needed(code)]) + "\n"


def joined(sources: Sequence[Source], dialect: Dialect = C) -> tuple[Source, ...]:
    """Return sources that share one text, in which each has the functions that it had before.

    Their entries have different names.
    """
    codes = [source.text.split("\n", source.above)[-1] for source in sources]
    top = above("\n".join(codes), dialect)
    text, line, out = top + "\n".join(codes), top.count("\n"), []
    for source, code in zip(sources, codes, strict=True):
        shift = line - source.above
        spans = {at + shift: span for at, span in source.line_map.items()}
        out.append(replace(source, text=text, line_map=spans, above=top.count("\n")))
        line += code.count("\n") + 1
    return tuple(out)


def _laid_out(lines: Iterable[str]) -> list[str]:
    """Return the lines of a frame indented into the function; labels stay at the left."""
    out: list[str] = []
    for line in lines:
        bare = line.lstrip()
        depth = 0 if bare == "done:" else 1 + (len(line) - len(bare)) // len(STEP)
        out += broken(bare, depth)
    return out


def _cast(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype is dtype else Cast(expr, dtype)


def _filling(node: Node, value: Expr, span: Span) -> Stmt:
    """Return the loops that store a value into every element."""
    symbols = [Symbol("ijklmn"[axis % 6], -1 - axis) for axis in range(node.rank)]
    out: Stmt = Store(Access(node, tuple(var(symbol) for symbol in symbols)), value, span)
    for symbol, extent in reversed(list(zip(symbols, node.shape, strict=True))):
        out = For(symbol, const(0), extent, 1, (out,), "serial", span)
    return out
