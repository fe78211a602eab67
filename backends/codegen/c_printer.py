"""A program as text of a C-like language: the only walk from loops to C.

The text has the pieces of the prelude that it names, a body function whose parameters are the
program's arrays by name, and the entry `int NAME(void **args)` that a caller finds:

    args[k]          data of parameter k, then of result k (in C order; the strides are in the text)
    args[P + R]      int64_t[record.SLOTS]: the fault, see `record`
    args[P + R + 1]  void (*show)(int64_t number, const int64_t *record): called by each print
    args[P + R + 2]  const int64_t *: the sizes of `Source.memory`, then, where those decide the
                     layout of the arena, its size and the places of its arrays
    args[P + R + 3]  const shared_run *: the run-time library, where `Source.asks` for it

A result whose shape no sizes of arguments tell is given as `int64_t[1 + rank]` instead: the routine
puts the address of a block from `calloc` there, which the caller frees, and the extents after it.
The entry returns 0, or 1 where a fault was recorded, 2 where memory ran out, 3 where the call was
interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.analysis.cost import rounds_of, surely_fails, work_of
from ...lowering.analysis.effects import without_unused
from ...lowering.ir.algebra import TRUE
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
from ...lowering.ir.expressions import Apply, Expr
from ...lowering.ir.indexing import Symbol, const
from ...lowering.ir.loops import (
    Barrier,
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
from ...lowering.placement import Placement
from . import intrinsic_loops, loop_headers, records, vector_variables, vectors
from .c_expression import Scope
from .c_text import ADD, MUL, SHIFT, Text, infix
from .cancellation import Counted, Cut, Poll, poll_of
from .dialect import C, Dialect
from .entry import entry_of
from .frame import LIBRARY, WORK, Around, Frame, frame_of
from .names import identifier
from .parallel_regions import Part, Written, part_of, stacked
from .quirks.counter_overflow import Binding, may_wrap
from .source import Body, Source, above
from .text_layout import STEP, broken, comment, laid_out, words

Add = Callable[[], None]
"""Adds lines to the text."""
_COMPOUND = frozenset("+ - * / & | ^".split())


def emit(program: Program, placement: Placement, dialect: Dialect = C) -> Source:
    """Return the text of a program in a dialect; the same program gives the same text."""
    program = without_unused(program)
    frame = frame_of(program, placement, dialect)
    walk = _Walk(dialect, frame, vectors.Writer(frame.vectors, frame.scope, frame.names))
    for kernel in program.kernels:
        walk.statements(kernel.body)
    return walk.source(program, frame)


def emit_body(frame: Around, body: tuple[Stmt, ...], before: Sequence[Body] = ()) -> Body:
    """Return the text of a function's statements, its numbers behind those of other functions."""
    faults = [fault for one in before for fault in one.faults]
    prints = [print_ for one in before for print_ in one.prints]
    none = vectors.Writer(vector_variables.Plan(0), frame.scope, frame.names)
    walk = _Walk(frame.dialect, frame, none, faults=[*faults], prints=[*prints])
    walk.statements(body)
    return Body(walk.lines, walk.spans, walk.faults[len(faults) :], walk.prints[len(prints) :])


@dataclass(slots=True)
class _Walk:
    """The text of a function so far, and the names that hold at its end."""

    dialect: Dialect
    frame: Around
    vectors: vectors.Writer
    lines: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    depth: int = 1
    faults: list[tuple[Fault, Span]] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    """The place in the program: numbers of statements and, of loops, how far they have come."""
    part: Part | None = None
    """The parallel loop whose function is written."""
    parts: list[tuple[Written, dict[int, Span]]] = field(default_factory=list)
    """The functions of parallel loops, with the statement behind each line of the loop."""
    loops: int = 0
    """How many loops of the function are around."""
    bound: dict[Symbol, Binding] = field(default_factory=dict)
    """What binds the symbols that hold here, outermost first."""

    @property
    def scope(self) -> Scope:
        return self.frame.scope

    def line(self, text: str, span: Span = NOWHERE) -> None:
        """Add a line of code, broken where it is too long."""
        for part in broken(text, self.depth):
            self.lines.append(part)
            if span is not NOWHERE:
                self.spans[len(self.lines)] = span

    def texts(self, texts: Iterable[str], span: Span = NOWHERE) -> None:
        """Add lines of code, which may begin and end blocks."""
        for text in texts:
            self.depth -= text == "}"
            self.line(text, span)
            self.depth += text.endswith("{")

    def text(self, expr: Expr) -> str:
        return self.scope.expression(expr).text

    def statements(self, body: tuple[Stmt, ...]) -> None:
        """Add statements, whose names bound here are known to those that follow."""
        own = self.vectors.plan.homes.get(id(body), ())
        for node in own:
            self.line(self.vectors.declared(node))
        if self.vectors.fill(own):
            self.line("free_registers();")
        for at, stmt in enumerate(body):
            self.path.append(str(at))
            self.statement(stmt)
            self.path.pop()
        self.vectors.forget(own)

    def block(
        self, head: str, body: tuple[Stmt, ...], span: Span, first: Add | None = None
    ) -> None:
        """Add `head { body }`, `first` adding what comes first; names bound inside end with it."""
        self.line(head + " {" if head else "{", span)
        known, bound = set(self.scope.symbols), len(self.vectors.bound)
        self.depth += 1
        if first is not None:
            first()
        self.statements(body)
        self.depth -= 1
        self.forget(set(self.scope.symbols) - known)
        self.vectors.end(bound)
        self.line("}")

    def close(self, blocks: int = 1) -> None:
        """Add the end of a block, or of several."""
        for _ in range(blocks):
            self.depth -= 1
            self.line("}")

    def forget(self, symbols: set[Symbol]) -> None:
        self.frame.names.release(self.scope.symbols.pop(symbol) for symbol in symbols)
        for symbol in symbols:
            self.scope.narrow.pop(symbol, None)
            self.bound.pop(symbol, None)

    def bind(self, stmt: Binding) -> str:
        symbol, self.bound[stmt.symbol] = stmt.symbol, stmt
        name = self.scope.symbols[symbol] = self.frame.names.fresh(symbol.name)
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
                self.line(f"{self.element(access)} = {self.scope.stored(value).text};", span)
            case Update(pair=Pair() as pair):
                self.pair(stmt, pair)
            case Update():
                self.update(stmt)
            case Fill(node, value, span):
                self.statement(loop_headers.filling(node, value, span))
            case Let(symbol, value, span):
                text = self.scope.held(symbol, value).text
                self.line(f"const int64_t {self.bind(stmt)} = {text};", span)
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
            case Barrier(later):
                self.texts(self.frame.meeting(later))
            case Break() | Continue():
                self.line("break;" if isinstance(stmt, Break) else "continue;")
            case _:
                assert_never(stmt)

    def element(self, access: Access) -> str:
        return self.scope.element(access.node, access.index)

    def for_(self, loop: For) -> None:
        if loop.kind == "parallel":
            return self.parallel(loop)
        if loop.kind == "last":
            return self.block(self.frame.coming_last(), loop.body, loop.span)
        if (call := intrinsic_loops.call(loop, self.scope)) is not None:
            self.line(call, loop.span)
            return
        written = self.vectors.written(loop)
        for one in written or ():
            if isinstance(one, vectors.Line):
                self.line(one.text, one.span)
            else:
                self.statements(one)
        if written is not None:
            return
        lo, hi = self.scope.number(loop.lo).text, self.scope.number(loop.hi).within(SHIFT)
        name, outside, kind = self.bind(loop), self.scope.known, self.scope.narrowed(loop)
        if hook := loop_headers.hook(loop, self.dialect) or self.vectors.hook(loop):
            self.line(hook)
        self.path.append(loop_headers.place(loop, name))
        if loop.kind in self.dialect.spread:
            self.block(
                loop_headers.spread(loop, name, lo, hi, self.dialect, kind), loop.body, loop.span
            )
        else:
            first = partial(self.line, "apart();") if self.vectors.is_apart(loop) else None
            self.rounds(loop, name, lo, hi, loop.step, first, kind)
        self.path.pop()
        self.forget({loop.symbol})
        self.scope.known = outside

    def rounds(
        self, loop: For, name: str, lo: str, hi: str, step: int, first: Add | None = None,
        kind: str = "int64_t",
    ) -> None:  # fmt: skip
        """Add the rounds of a loop over `name`, and the questions whether it is to end."""
        poll, left = self.poll_of(loop), None
        self.loops += 1
        outside = self.scope.entered(loop)
        outer = self.bound, self.scope.known, self.frame.sizes
        if kind == "int64_t" and may_wrap(loop, step, *outer):
            left = self.frame.names.fresh(f"{name}_left")
        if isinstance(poll, Cut):
            begin, end = (self.frame.names.fresh(f"{name}_{side}") for side in ("from", "to"))
            head, later, ending = loop_headers.pieces(begin, end, lo, hi, poll.rounds * step)
            self.line(f"{head} {{", loop.span)
            self.depth += 1
            self.leave_if(f"{later} && {LIBRARY}->interrupted()")
            self.line(ending, loop.span)
            self.block(
                loop_headers.head(name, begin, end, step, kind, left), loop.body, loop.span, first
            )
            self.close()
            self.frame.names.release((begin, end))
        else:
            ask = self.asking(poll, first)
            self.block(loop_headers.head(name, lo, hi, step, kind, left), loop.body, loop.span, ask)
        self.frame.names.release([left] if left else ())
        self.scope.left(outside)
        self.loops -= 1

    def poll_of(self, loop: For | While) -> Poll:
        """Return how a loop asks whether it is to end."""
        frame = self.frame
        if not isinstance(frame, Frame) or not frame.polls:
            return None
        return poll_of(loop, not self.loops, frame.sizes)

    def asking(self, poll: Counted | None, then: Add | None = None) -> Add | None:
        """Return what adds a question to the beginning of a round, and something else."""
        if poll is None:
            return then

        def add() -> None:
            work = self.scope.affine(poll.work).text
            self.leave_if(f"is_over({LIBRARY}, &{WORK}, {work})")
            if then is not None:
                then()

        return add

    def leave_if(self, test: str) -> None:
        """Add the way out of an interrupted call."""
        self.block(f"if ({test})", (), NOWHERE, lambda: self.leave(3))

    def parallel(self, loop: For) -> None:
        """Add the call that shares the rounds of a loop, and the function that runs some."""
        assert isinstance(self.frame, Frame), "kernels have threads of their own"
        part, scope = part_of(loop, self.frame), self.scope
        rounds = scope.affine(rounds_of(loop)).text
        work = scope.affine(work_of(loop, self.frame.sizes)).text
        outside = self.lines, self.spans, self.depth, self.loops, self.part
        self.lines, self.spans, self.depth, self.loops, self.part = [], {}, 1, 0, part
        lo, name = scope.affine(loop.lo), self.bind(loop)
        if loop.step == 1:
            first, last = (
                one if loop.lo == const(0) else f"{lo.within(ADD)} + {one}"
                for one in (part.first, part.last)
            )
            self.rounds(loop, name, first, last, 1)
        else:
            count = self.frame.names.fresh("round")
            value = infix("+", [lo, Text(f"{count}*{loop.step}", MUL)]).text
            self.rounds(
                loop, count, part.first, part.last, 1,
                lambda: self.line(f"const int64_t {name} = {value};", loop.span),
            )  # fmt: skip
            self.frame.names.release([count])
        self.forget({loop.symbol})
        inner, spans = self.lines, self.spans
        self.lines, self.spans, self.depth, self.loops, self.part = outside
        written = part.written(inner)
        self.parts.append((written, spans))
        names = [one.name for one in written.held]
        fault = "fault" if written.reports else "NULL"
        self.call(part, names, f"{rounds}, {work}, {fault}", loop.span)

    def call(self, part: Part, names: Sequence[str], numbers: str, span: Span) -> None:
        """Add the call of the run-time library for a part."""
        self.line("{", span)
        self.depth += 1
        given, ended = "NULL", self.frame.names.fresh("ended")
        if names:
            given = f"&{part.given}"
            self.line(f"const struct {part.name} {part.given} = {{{', '.join(names)}}};", span)
        call = f"{LIBRARY}->parallel({LIBRARY}, {part.caller}, {given}, {numbers})"
        self.line(f"const int {ended} = {call};", span)
        self.line(f"if ({ended}) {{", span)
        self.depth += 1
        self.leave(ended)
        self.close(2)
        self.frame.names.release([ended, *part.names])

    def while_(self, loop: While) -> None:
        over = Apply(OPS["logical_not"], (loop.test,), loop.test.dtype)
        leave = () if loop.test == TRUE else (If(over, (Break(),), (), loop.span),)
        poll = self.poll_of(loop)
        assert not isinstance(poll, Cut), "only loops that count are cut"
        self.loops += 1
        body = (*loop.prelude, *leave, *loop.body)
        self.block("for (;;)", body, loop.span, self.asking(poll))
        self.loops -= 1

    def if_(self, stmt: If) -> None:
        self.block(f"if ({self.text(stmt.test)})", stmt.then, stmt.span)
        if stmt.other:
            self.lines.pop()
            self.block("} else", stmt.other, stmt.span)

    def update(self, stmt: Update) -> None:
        node, op, value, target = stmt.access.node, stmt.op, stmt.value, self.element(stmt.access)
        plain = node.dtype.compute is node.dtype and self.dialect.is_infix(op, node.dtype)
        if plain and op.infix in _COMPOUND:
            self.line(f"{target} {op.infix}= {self.text(value)};", stmt.span)
            return
        after = self.scope.accumulated(stmt.access, op, value)
        self.line(f"{target} = {after.text};", stmt.span)

    def pair(self, stmt: Update, pair: Pair) -> None:
        """Add an argmin or argmax step: the first found, a better one, or the first NaN."""
        dtype, value = stmt.access.node.dtype, self.frame.names.fresh("candidate")
        best, found = self.element(stmt.access), self.element(pair.access)
        self.line("{")
        self.depth += 1
        self.line(
            f"const {self.dialect.types[dtype]} {value} = {self.text(stmt.value)};", stmt.span
        )
        better = loop_headers.better(stmt.op.name, dtype.kind, value, best)
        self.line(f"if ({found} < 0 || {better}) {{", stmt.span)
        self.depth += 1
        self.line(f"{best} = {value};", stmt.span)
        self.line(f"{found} = {self.scope.number(pair.position).text};", stmt.span)
        self.close(2)
        self.frame.names.release([value])

    def check(self, stmt: Check) -> None:
        test = infix("!", [self.scope.expression(stmt.test)])
        self.line("{" if surely_fails(stmt) else f"if ({test.text}) {{", stmt.span)
        self.depth += 1
        self.texts(self.frame.failing(len(self.faults), self.path), stmt.span)
        self.record("fault", stmt.values, records.SLOTS, stmt.span)
        self.leave(1)
        self.close()
        self.faults.append((stmt.fault, stmt.span))

    def print(self, stmt: Print) -> None:
        values = tuple(piece for piece in stmt.pieces if not isinstance(piece, str))
        slots = 2 + sum(records.width(value.dtype) for value in values)
        number = len(self.prints)
        self.line("{", stmt.span)
        self.depth += 1
        self.texts(self.frame.printing(number, slots), stmt.span)
        self.record("printed", values, slots, stmt.span)
        self.texts(self.frame.printed(number), stmt.span)
        self.close()
        self.prints.append(stmt)

    def record(self, name: str, values: tuple[Expr, ...], slots: int, span: Span) -> None:
        """Add the lines that put values into a record, as many as it has slots for, and its end."""
        at = 1
        for value in values:
            if at + records.width(value.dtype) > slots:
                break
            for kind, text in records.parts(value, self.text):
                self.line(
                    f"record_{kind}({name} + {at}, {records.tag(value.dtype)}, {text});", span
                )
                at += 2
        if at < slots:
            self.line(f"{name}[{at}] = 0;", span)

    def alloc(self, node: Node, span: Span) -> None:
        frame = self.frame
        assert isinstance(frame, Frame), "kernels are given their storage"
        if node.id in frame.program.sized:
            return  # whoever calls has made it
        name, total = self.scope.nodes[node.id], str(node.dtype.itemsize)
        for extent in node.shape:
            total = f"bytes_of({total}, {self.scope.affine(extent).text})"
        planned = [buffer for buffer in frame.memory.arena if buffer.node == node]
        if planned:
            if planned[0].zeroed:
                self.line(f"cleared({name}, {total});", span)
            return
        bytes_ = self.frame.names.fresh("bytes")
        self.line("{", span)
        self.depth += 1
        self.line(f"const int64_t {bytes_} = {total};", span)
        if node.id in frame.exchanged:
            self.line(f"{name} = chained(&chain, {bytes_});", span)
        else:
            room = frame.rooms[node.id]
            self.line(f"{name} = grown({name}, &{room}, {bytes_});", span)
        self.line(f"if (!{name}) {{", span)
        self.depth += 1
        self.line(f"fault[0] = {bytes_};", span)
        self.leave(2)
        self.close()
        for axis, extent in enumerate(node.shape, 1):
            if block := frame.blocks.get(node.id):
                self.line(f"{block}[{axis}] = {self.scope.affine(extent).text};", span)
        self.close()
        self.frame.names.release([bytes_])

    def permute(self, stmt: Permute) -> None:
        moves = loop_headers.exchange(stmt, self.scope, self.frame.names)
        self.block("", (), stmt.span, partial(self.texts, moves, stmt.span))

    def leave(self, status: int | str) -> None:
        """Add the way out of the function."""
        self.texts((self.part or self.frame).leaving(status))

    def source(self, program: Program, frame: Frame) -> Source:
        """Return the whole text: header, prelude, parallel loops, body function, entry."""
        name = f"pe_{identifier(program.name)}"
        opening, closing = laid_out(frame.opening()), laid_out(frame.closing())
        used = words([*opening, *closing, *self.lines])
        if WORK in used:
            opening.append(f"{STEP}int64_t {WORK} = 0;")
        reports, asks = "fault" in used, LIBRARY in used
        head, calling = entry_of(frame, name, reports, bool(self.prints), asks)
        before, spans, parts = stacked(self.parts)
        before += (*broken(frame.head(reports, bool(self.prints), asks), 0), "{", *opening)
        spans |= {len(before) + at: span for at, span in self.spans.items()}
        after = [*closing, "}", "", head, "{", *laid_out(calling), "}"]
        code = "\n".join((*before, *self.lines, *after)) + "\n"
        top = above(code, self.dialect)
        return Source(
            top + code,
            name,
            {top.count("\n") + line: span for line, span in spans.items()},
            tuple(self.faults),
            tuple(self.prints),
            frame.memory,
            top.count("\n"),
            asks,
            frozenset(at for at, node in enumerate(program.results) if node.id in program.whole),
            frozenset(at for at, node in enumerate(program.results) if node.id in frame.blocks),
            tuple(part.down(top.count("\n")) for part in parts),
        )
