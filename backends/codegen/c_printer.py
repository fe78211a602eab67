"""C printer: the one traversal from the loop IR to text of a C-like language.

The text has the pieces of the prelude that it names, a body function whose parameters are the
program's arrays by name, and the exported entry point `int NAME(void **args)`:

    args[k]          data of parameter k, then of result k (in C order; the strides are in the text)
    args[P + R]      int64_t[SLOTS]: the fault, see `records`
    args[P + R + 1]  void (*show)(int64_t number, const int64_t *record): called by each print;
                     without prints memory for the arena, at a multiple of 64 bytes, which the
                     caller lends for the call, or NULL: then it is allocated
    args[P + R + 2]  const int64_t *: the sizes of `Source.memory`, then, where those decide the
                     layout of the arena, its size and the offsets of its arrays
    args[P + R + 3]  const shared_run *: the run-time library, where `Source.asks` for it

A result whose shape does not follow from the sizes of the arguments is passed as
`int64_t[1 + rank]`: the routine stores the address of a block from `calloc` there, which the caller
frees, followed by the extents. The entry point returns 0, or 1 where a fault was recorded, 2 where
memory ran out, 3 where the call was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ...lowering.analysis.cost import surely_fails, work_per_iteration
from ...lowering.analysis.effects import remove_unused_scalars
from ...lowering.ir.algebra import TRUE, negate_comparison
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
from ...lowering.ir.expressions import Apply, Const, Expr
from ...lowering.ir.indexing import Symbol, const
from ...lowering.ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ...lowering.ir.loops import (
    Barrier,
    Check,
    Comment,
    Fill,
    For,
    If,
    LastBlock,
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
from .c_text import ADD, MUL, SHIFT, CText, infix
from .cancellation import Poll, StripMining, WorkCounter, choose_poll
from .comments import visible_comments
from .dialect import C, Dialect
from .entry import entry_point
from .frame import LIBRARY, WORK, Frame, FunctionContext, build_frame
from .names import identifier
from .parallel_regions import (
    ParallelRegion,
    RegionText,
    concatenate,
    iterations_text,
    outline_loop,
)
from .quirks.counter_overflow import Binding, may_overflow
from .quirks.crowded_functions import crowded_loops
from .source import BodyText, Source, preamble
from .text_layout import INDENT, comment_line, identifiers_in, indent_lines, wrap_line

AddLines = Callable[[], None]
"""Adds lines to the text."""
_COMPOUND = frozenset("+ - * / & | ^".split())


def print_program(program: Program, placement: Placement, dialect: Dialect = C) -> Source:
    """Return the text of a program in a dialect; it is deterministic."""
    program = remove_unused_scalars(program)
    frame = build_frame(program, placement, dialect)
    crowded = crowded_loops(program)
    printed_vectors = vectors.VectorPrinter(
        frame.vectors, frame.scope, frame.names, crowded=crowded
    )
    printer = _Printer(dialect, frame, printed_vectors)
    for kernel in program.kernels:
        printer.statements(kernel.body)
    return printer.source(program, frame)


def print_body(
    frame: FunctionContext, body: tuple[Stmt, ...], before: Sequence[BodyText] = ()
) -> BodyText:
    """Return the text of a function's statements, its faults and prints numbered after those of
    the functions before it."""
    faults = [fault for earlier in before for fault in earlier.faults]
    prints = [print_ for earlier in before for print_ in earlier.prints]
    scalars = vectors.VectorPrinter(vector_variables.VectorPlan(0), frame.scope, frame.names)
    printer = _Printer(frame.dialect, frame, scalars, faults=[*faults], prints=[*prints])
    printer.statements(body)
    return BodyText(
        printer.lines, printer.spans, printer.faults[len(faults) :], printer.prints[len(prints) :]
    )


def negated(test: Expr) -> Expr:
    """Return the test that holds where another does not: the opposite comparison, if there is one,
    with a constant on its right."""
    inverse = Apply(OPS["logical_not"], (test,), test.dtype)
    match negate_comparison(inverse):
        case Apply(op, (Const() as left, right), dtype) if op.name in _MIRRORED:
            return Apply(OPS[_MIRRORED[op.name]], (right, left), dtype)
        case None:
            return inverse
        case opposite:
            return opposite


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@dataclass(slots=True)
class _Printer:
    """The traversal of a function: its text so far, and the names in scope at its end."""

    dialect: Dialect
    frame: FunctionContext
    vectors: vectors.VectorPrinter
    lines: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    depth: int = 1
    faults: list[tuple[Fault, Span]] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    """The position in the program: statement numbers, and the progress of each loop."""
    part: ParallelRegion | None = None
    """The parallel region whose function is being printed."""
    parts: list[tuple[RegionText, dict[int, Span]]] = field(default_factory=list)
    """The functions of parallel regions, with the source statement of each line of the loop."""
    loops: int = 0
    """The loop depth within the function."""
    heading: str = ""
    """The statement of the source in the last comment, not repeated for what follows."""
    bound: dict[Symbol, Binding] = field(default_factory=dict)
    """The binding statements of the symbols in scope, outermost first."""

    @property
    def scope(self) -> Scope:
        return self.frame.scope

    def line(self, text: str, span: Span = NOWHERE) -> None:
        """Add a line of code, broken where it is too long."""
        for part in wrap_line(text, self.depth):
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
        """Add statements; names that one binds are in scope for those that follow."""
        declared = self.vectors.plan.homes.get(id(body), ())
        for node in declared:
            self.line(self.vectors.declared(node))
        if self.vectors.fill(declared):
            self.line("free_registers();")
        heading = self.heading
        for at, stmt in self.printed(body):
            self.path.append(str(at))
            self.statement(stmt)
            self.path.pop()
        self.heading = heading
        self.vectors.forget(declared)

    def comment(self, comment: Comment) -> None:
        """Add a comment, which heads what follows if it is a statement of the source."""
        self.lines.append(comment_line(comment.text, self.depth))
        self.heading = "" if comment.span is NOWHERE else comment.text

    def block(
        self, head: str, body: tuple[Stmt, ...], span: Span, first: AddLines | None = None
    ) -> None:
        """Add `head { body }`, `first` adding its first lines; names bound inside go out of
        scope."""
        self.line(head + " {" if head else "{", span)
        outer_symbols, bound = set(self.scope.symbols), len(self.vectors.bound)
        self.depth += 1
        if first is not None:
            first()
        self.statements(body)
        self.depth -= 1
        self.forget(set(self.scope.symbols) - outer_symbols)
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
            case Update(atomic=True):
                self.line(intrinsic_loops.atomic_update(stmt, self.scope), stmt.span)
            case Update(pair=Pair() as pair):
                self.pair(stmt, pair)
            case Update():
                self.update(stmt)
            case CopyVector():
                self.line(intrinsic_loops.copy_vector(stmt, self.scope), stmt.span)
            case StoreVector():
                self.line(intrinsic_loops.store_vector(stmt, self.scope), stmt.span)
            case MatMul():
                self.line(intrinsic_loops.multiply(stmt, self.scope))
            case Fill(node, value, span):
                self.statement(loop_headers.fill_loops(node, value, span))
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
            case Comment():
                self.comment(stmt)
            case Barrier(later):
                self.texts(self.frame.meeting(later))
            case LastBlock(body):
                self.block(self.frame.coming_last(), body, NOWHERE)
            case AwaitProducts(node):
                self.line(intrinsic_loops.await_products(node, self.scope))
            case Break() | Continue():
                self.line("break;" if isinstance(stmt, Break) else "continue;")
            case _:
                assert_never(stmt)

    def element(self, access: Access) -> str:
        return self.scope.element(access.node, access.index)

    def for_(self, loop: For) -> None:
        if loop.kind == "parallel":
            return self.parallel(loop)
        if (call := intrinsic_loops.elemental_call(loop, self.scope)) is not None:
            self.line(call, loop.span)
            return
        vector_lines = self.vectors.written(loop)
        for item in vector_lines or ():
            if isinstance(item, vectors.Line):
                self.line(item.text, item.span)
            else:
                self.statements(item)
        if vector_lines is not None:
            return
        lo, hi = self.scope.number(loop.lo).text, self.scope.number(loop.hi).within(SHIFT)
        name, outside, kind = (
            self.bind(loop),
            self.scope.bounds,
            self.scope.loop_variable_type(loop),
        )
        if hook := loop_headers.loop_pragma(loop, self.dialect) or self.vectors.unroll_pragma(loop):
            self.line(hook)
        self.path.append(loop_headers.progress(loop, name))
        if loop.kind in self.dialect.spread:
            self.block(
                loop_headers.distributed_header(loop, name, lo, hi, self.dialect, kind),
                loop.body,
                loop.span,
            )
        else:
            first = (
                partial(self.line, "compiler_barrier();")
                if self.vectors.needs_compiler_barrier(loop)
                else None
            )
            self.iterations(loop, name, lo, hi, loop.step, first, kind)
        self.path.pop()
        self.forget({loop.symbol})
        self.scope.bounds = outside

    def iterations(
        self, loop: For, name: str, lo: str, hi: str, step: int, first: AddLines | None = None,
        kind: str = "int64_t",
    ) -> None:  # fmt: skip
        """Add a loop over `name` with its iterations, and the polls for cancellation."""
        poll, left = self.poll_of(loop), None
        self.loops += 1
        outside = self.scope.enter_loop(loop)
        outer = self.bound, self.scope.bounds, self.frame.sizes
        if kind == "int64_t" and may_overflow(loop, step, *outer):
            left = self.frame.names.fresh(f"{name}_left")
        if isinstance(poll, StripMining):
            begin, end = (self.frame.names.fresh(f"{name}_{side}") for side in ("from", "to"))
            head, later, ending = loop_headers.strip_mined_header(
                begin, end, lo, hi, poll.iterations * step
            )
            self.line(f"{head} {{", loop.span)
            self.depth += 1
            self.leave_if(f"{later} && {LIBRARY}->interrupted()")
            self.line(ending, loop.span)
            self.block(
                loop_headers.loop_header(name, begin, end, step, kind, left),
                loop.body,
                loop.span,
                first,
            )
            self.close()
            self.frame.names.release((begin, end))
        else:
            ask = self.poll_prologue(poll, first)
            self.block(
                loop_headers.loop_header(name, lo, hi, step, kind, left), loop.body, loop.span, ask
            )
        self.frame.names.release([left] if left else ())
        self.scope.left(outside)
        self.loops -= 1

    def poll_of(self, loop: For | While) -> Poll:
        """Return how a loop polls for cancellation."""
        frame = self.frame
        if not isinstance(frame, Frame) or not frame.polls:
            return None
        return choose_poll(loop, not self.loops, frame.sizes)

    def poll_prologue(
        self, poll: WorkCounter | None, then: AddLines | None = None
    ) -> AddLines | None:
        """Return the callback that adds a poll at the start of an iteration, and then `then`."""
        if poll is None:
            return then

        def add() -> None:
            work = self.scope.affine(poll.work).text
            self.leave_if(f"is_over({LIBRARY}, &{WORK}, {work})")
            if then is not None:
                then()

        return add

    def leave_if(self, test: str) -> None:
        """Add the exit of an interrupted call, taken where the test holds."""
        self.block(f"if ({test})", (), NOWHERE, lambda: self.leave(3))

    def parallel(self, loop: For) -> None:
        """Add the call that distributes a loop over threads, and the function that runs a chunk of
        its iterations."""
        assert isinstance(self.frame, Frame), "kernels have threads of their own"
        region, scope = outline_loop(loop, self.frame), self.scope
        trip_count = iterations_text(loop, scope, self.bound, self.frame.sizes)
        work = scope.affine(work_per_iteration(loop, self.frame.sizes)).text
        outside = self.lines, self.spans, self.depth, self.loops, self.part
        self.lines, self.spans, self.depth, self.loops, self.part = [], {}, 1, 0, region
        heading = self.heading
        if loop.span.text:
            self.comment(Comment(loop.span.text, loop.span))
        lo, name = scope.affine(loop.lo), self.bind(loop)
        if loop.step == 1:
            first, last = (
                variable if loop.lo == const(0) else f"{lo.within(ADD)} + {variable}"
                for variable in (region.first, region.last)
            )
            self.iterations(loop, name, first, last, 1)
        else:
            count = self.frame.names.fresh("iteration")
            value = infix("+", [lo, CText(f"{count}*{loop.step}", MUL)]).text
            self.iterations(
                loop, count, region.first, region.last, 1,
                lambda: self.line(f"const int64_t {name} = {value};", loop.span),
            )  # fmt: skip
            self.frame.names.release([count])
        self.forget({loop.symbol})
        inner, spans = self.lines, self.spans
        self.lines, self.spans, self.depth, self.loops, self.part = outside
        self.heading = heading
        text = region.written(inner)
        self.parts.append((text, spans))
        names = [variable.name for variable in text.held]
        fault = "fault" if text.reports else "NULL"
        self.call(region, names, f"{trip_count}, {work}, {fault}", loop.span)

    def call(self, part: ParallelRegion, names: Sequence[str], numbers: str, span: Span) -> None:
        """Add the call of the run-time library for a parallel region."""
        self.line("{", span)
        self.depth += 1
        arguments, status = "NULL", self.frame.names.fresh("ended")
        if names:
            arguments = f"&{part.given}"
            self.line(f"const struct {part.name} {part.given} = {{{', '.join(names)}}};", span)
        call = f"{LIBRARY}->parallel({LIBRARY}, {part.caller}, {arguments}, {numbers})"
        self.line(f"const int {status} = {call};", span)
        self.line(f"if ({status}) {{", span)
        self.depth += 1
        self.leave(status)
        self.close(2)
        self.frame.names.release([status, *part.names])

    def while_(self, loop: While) -> None:
        exit_test = negated(loop.test)
        exit_branch = () if loop.test == TRUE else (If(exit_test, (Break(),), (), loop.span),)
        poll = self.poll_of(loop)
        assert not isinstance(poll, StripMining), "only loops that count are cut"
        self.loops += 1
        body = (*loop.prelude, *exit_branch, *loop.body)
        self.block("for (;;)", body, loop.span, self.poll_prologue(poll))
        self.loops -= 1

    def if_(self, stmt: If, keyword: str = "if") -> None:
        self.block(f"{keyword} ({self.text(stmt.test)})", stmt.then, stmt.span)
        if not stmt.orelse:
            return
        self.lines.pop()
        match self.printed(stmt.orelse):
            case [(at, If() as chained)] if id(stmt.orelse) not in self.vectors.plan.homes:
                self.path.append(str(at))
                self.if_(chained, "} else if")
                self.path.pop()
            case _:
                self.block("} else", stmt.orelse, stmt.span)

    def printed(self, body: tuple[Stmt, ...]) -> list[tuple[int, Stmt]]:
        """Return the statements of a body that are printed, with their positions."""
        shown = visible_comments(body, self.heading)
        every = enumerate(body)
        return [(at, stmt) for at, stmt in every if not isinstance(stmt, Comment) or at in shown]

    def update(self, stmt: Update) -> None:
        node, op, value, target = stmt.access.node, stmt.op, stmt.value, self.element(stmt.access)
        plain = node.dtype.compute is node.dtype and self.dialect.is_infix(op, node.dtype)
        if plain and op.infix in _COMPOUND:
            self.line(f"{target} {op.infix}= {self.text(value)};", stmt.span)
            return
        new_value = self.scope.accumulated(stmt.access, op, value)
        self.line(f"{target} = {new_value.text};", stmt.span)

    def pair(self, stmt: Update, pair: Pair) -> None:
        """Add an argmin or argmax update: the first candidate, a better one, or the first NaN."""
        dtype, value = stmt.access.node.dtype, self.frame.names.fresh("candidate")
        best, position = self.element(stmt.access), self.element(pair.access)
        self.line("{")
        self.depth += 1
        self.line(
            f"const {self.dialect.types[dtype]} {value} = {self.text(stmt.value)};", stmt.span
        )
        better = loop_headers.is_better_test(stmt.op.name, dtype.kind, value, best)
        self.line(f"if ({position} < 0 || {better}) {{", stmt.span)
        self.depth += 1
        self.line(f"{best} = {value};", stmt.span)
        self.line(f"{position} = {self.scope.number(pair.position).text};", stmt.span)
        self.close(2)
        self.frame.names.release([value])

    def check(self, stmt: Check) -> None:
        test = self.text(negated(stmt.test))
        self.line("{" if surely_fails(stmt) else f"if ({test}) {{", stmt.span)
        self.depth += 1
        self.texts(self.frame.failing(len(self.faults), self.path), stmt.span)
        self.record("fault", stmt.values, records.SLOTS, stmt.span)
        self.leave(1)
        self.close()
        self.faults.append((stmt.fault, stmt.span))

    def print(self, stmt: Print) -> None:
        values = tuple(fragment for fragment in stmt.fragments if not isinstance(fragment, str))
        slots = 2 + sum(records.slot_count(value.dtype) for value in values)
        number = len(self.prints)
        self.line("{", stmt.span)
        self.depth += 1
        self.texts(self.frame.printing(number, slots), stmt.span)
        self.record("printed", values, slots, stmt.span)
        self.texts(self.frame.printed(number), stmt.span)
        self.close()
        self.prints.append(stmt)

    def record(self, name: str, values: tuple[Expr, ...], slots: int, span: Span) -> None:
        """Add the lines that store values into a record, as many as fit, and its terminator."""
        at = 1
        for value in values:
            if at + records.slot_count(value.dtype) > slots:
                break
            for kind, text in records.value_parts(value, self.text):
                self.line(
                    f"record_{kind}({name} + {at}, {records.type_tag(value.dtype)}, {text});", span
                )
                at += 2
        if at < slots:
            self.line(f"{name}[{at}] = 0;", span)

    def alloc(self, node: Node, span: Span) -> None:
        frame = self.frame
        assert isinstance(frame, Frame), "kernels are given their storage"
        if node.id in frame.program.sized:
            return  # the caller has allocated it
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
        if node.id in frame.permuted:
            self.line(f"{name} = chained(&chain, {bytes_});", span)
        else:
            capacity = frame.capacity[node.id]
            self.line(f"{name} = grown({name}, &{capacity}, {bytes_});", span)
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
        moves = loop_headers.exchange_pointers(stmt, self.scope, self.frame.names)
        self.block("", (), stmt.span, partial(self.texts, moves, stmt.span))

    def leave(self, status: int | str) -> None:
        """Add the exit of the function."""
        self.texts((self.part or self.frame).leaving(status))

    def source(self, program: Program, frame: Frame) -> Source:
        """Return the whole text: header, prelude, parallel regions, body function, entry point."""
        name = f"pe_{identifier(program.name)}"
        opening, closing = indent_lines(frame.opening()), indent_lines(frame.closing())
        identifiers = identifiers_in([*opening, *closing, *self.lines])
        if WORK in identifiers:
            opening.append(f"{INDENT}int64_t {WORK} = 0;")
        reports, asks = "fault" in identifiers, LIBRARY in identifiers
        head, calling = entry_point(frame, name, reports, bool(self.prints), asks)
        lines, spans, parts = concatenate(self.parts)
        lines += (*wrap_line(frame.head(reports, bool(self.prints), asks), 0), "{", *opening)
        spans |= {len(lines) + at: span for at, span in self.spans.items()}
        epilogue = [*closing, "}", "", head, "{", *indent_lines(calling), "}"]
        code = "\n".join((*lines, *self.lines, *epilogue)) + "\n"
        top = preamble(code, self.dialect)
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
