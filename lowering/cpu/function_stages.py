"""Loop distribution by stages of elementary functions, with scalar expansion.

Changes: a loop whose iterations compute functions such as `exp` of results of others is
strip-mined. For all iterations of a block it does what depends on no other function, then what
depends on these results, and so on; small arrays hold what a stage passes to later ones (scalar
expansion). The reorder buffer of a processor holds some hundreds of instructions: where one
iteration is a dependence chain as long, the processor waits for it; of a stage, which is short, it
overlaps many iterations.

    for i: y[i] = exp(log(x[i]) + z[i])
    for block: for i in block: log[i - block] = log(x[i])
               for i in block: y[i] = exp(log[i - block] + z[i])

Where an iteration ends in functions of the results of inner loops, these are a stage, too, with a
loop of its own (loop distribution with scalar expansion), which compilers vectorize:

    for i: total = 0; for j: total += x[i, j]; y[i] = exp(total)
    for i: total = 0; for j: total += x[i, j]; kept[i] = total
    for i: y[i] = exp(kept[i])

Precondition: iterations of nothing but stores, and such inner loops, that may run in any order.
What is computed under a test stays there. Where a program computes many functions, each has a loop
of its own, of kind `elemental`: C calls a function for all its iterations, as compiling an inlined
one takes a tenth of a second. Postcondition: results are bit-identical: dependent statements of an
iteration keep their order.

>>> show(lambda program: distribute_functions(program, Target(schedule=True)),
...      "y[i] = exp(x[i]) * log(z[i] + sin(x[i]))", y="f32[512]", x="f32[512]", z="f32[512]")
for block in 0..512 step 256:
    for i in block..block + 256:
        exp_part_2[-block + i] = exp(x[i])
        sin_part_2[-block + i] = sin(x[i])
    for i in block..block + 256:
        log_part = log(z[i] + sin_part_2[-block + i])
        y[i] = exp_part_2[-block + i] * log_part
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from ...base.lazy_import import LazyModule
from .. import thresholds
from ..analysis.cost import is_contiguous_store
from ..analysis.dependence import find_dependence, find_privatizable, has_early_exit
from ..analysis.effects import bound_symbols
from ..analysis.expression_cost import cost
from ..analysis.privatization import has_crossing_arrays
from ..analysis.subscripts import ranges
from ..ir.assignments import Access
from ..ir.decision import Decided, Decision, Reason
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Expr, Index, Read, Select, rebuild, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, minimum, var
from ..ir.loops import Comment, For, LoopKind, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import substitute
from ..ir.walk import direct_reads, expressions_of, reads, statements, uses, writes
from ..target import Target
from ..transform.outermost import OutermostRewriter

if TYPE_CHECKING:
    from ..transform import remap
else:  # what few programs need
    remap = LazyModule("..transform.remap", __package__)

Body = tuple[Stmt, ...]


class FunctionReason(Reason):
    """Why a loop is distributed into stages."""

    LONG = "they form chains, longer than a processor looks ahead"
    MANY = "they are many, and compile faster where each has a loop that calls it"
    ENDS = "its iterations end in functions, which a separate loop computes in vectors"


def distribute_functions(program: Program, target: Target) -> Decided:
    """Return the program with chains of functions in stages, and the decisions."""
    costly = (
        _is_costly(part)
        for kernel in program.kernels for stmt in statements(kernel.body)
        for value in expressions_of(stmt) for part in walk(value)
    )  # fmt: skip
    return (_Calls if sum(costly) > thresholds.MAX_INLINED_FUNCTIONS else _Chains).on(
        program, target
    )


class _Chains(OutermostRewriter):
    """The distribution of the loops of one program into stages."""

    __slots__ = ()
    WHY: ClassVar = FunctionReason.LONG

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in stages; None where it stays as it is."""
        trip_count = (loop.hi - loop.lo).constant
        if (
            loop.kind != "serial"
            or loop.step != 1
            or (trip_count is not None and trip_count < thresholds.MIN_STAGE_ITERATIONS)
        ):
            return None
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store | Update)]
        if any(not isinstance(stmt, Store | Update | Comment) for stmt in loop.body):
            return self.split_tail(loop, outer)
        if any(isinstance(stmt, Update) and stmt.pair is not None for stmt in stores):
            return None
        if sum(_is_costly(part) for stmt in stores for part in walk(stmt.value)) < 2:
            return None
        privates = find_privatizable(loop, self.only()[id(loop)])
        if find_dependence(loop, privates, self.temporaries, ranges(outer)) is not None:
            return None
        name, span, before = loop.symbol.name, loop.span, len(self.fresh.nodes)
        bodies = self.find_stages(loop)
        if len(bodies) < 2 or has_crossing_arrays(bodies, privates):
            del self.fresh.nodes[before:]
            return None
        self.decisions.append(Decision("staged", self.WHY, span=span, variable=name))
        return self.build(loop, bodies)

    def split_tail(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop without the functions in which its iterations end, and a loop over these;
        None where they end in something else."""
        plain = Store | Update | Comment
        last = max(n for n, stmt in enumerate(loop.body) if not isinstance(stmt, plain))
        calls = (n for n, stmt in enumerate(loop.body) if n > last and _is_call(stmt))
        at = next(calls, len(loop.body))
        before, after = loop.body[:at], loop.body[at:]
        if (
            not isinstance(loop.body[last], For)
            or has_early_exit(before)
            or _needs_symbols_of(after, before)
            or not _is_worth_distributing(loop, after)
        ):
            return None
        privates = find_privatizable(loop, self.only()[id(loop)])
        written = dict.fromkeys(node for node in writes(before) if node.id in privates)
        crossing = [node for node in written if node in reads(after)]
        if any(node.rank or node in writes(after) for node in crossing):
            return None
        if find_dependence(loop, privates, self.temporaries, ranges(outer)) is not None:
            return None
        trip_count = (loop.hi - loop.lo).constant
        most = thresholds.MAX_EARLY_EXIT_STAGE_ITERATIONS
        size = most if trip_count is None else min(trip_count, most)
        arrays = {n: self.fresh.array(n.label, (size,), n.dtype, "stage") for n in crossing}

        def halves(lo: Affine, hi: Affine) -> Body:
            here = (var(loop.symbol) - lo,)
            stores = tuple(Store(Access(array, here), Read(n, ())) for n, array in arrays.items())

            def redirect(node: Node, index: tuple[Index, ...]) -> remap.Element:
                return (arrays[node], here) if node in arrays else (node, index)

            symbol = self.fresh.symbol(loop.symbol.name)
            tail = substitute(remap.remap_accesses(after, redirect), {loop.symbol: var(symbol)})
            first = replace(loop, lo=lo, hi=hi, body=(*before, *stores))
            return first, replace(loop, symbol=symbol, lo=lo, hi=hi, body=tail)

        name = loop.symbol.name
        self.decisions.append(
            Decision("staged", FunctionReason.ENDS, span=loop.span, variable=name)
        )
        if trip_count == size:
            return halves(loop.lo, loop.hi)
        block = self.fresh.symbol("block")
        body = halves(var(block), minimum(loop.hi, var(block) + size))
        return (For(block, loop.lo, loop.hi, size, body, span=loop.span),)

    def find_stages(self, loop: For) -> list[Body]:
        """Return the statements of an iteration by stage: the number of functions in the longest
        dependence chain up to a statement."""
        bodies: dict[int, Body] = {}
        for depth, body in _by_depth(loop, self.fresh):
            stage = max(depth, 1)
            bodies[stage] = (*bodies.get(stage, ()), *body)
        return [bodies[stage] for stage in sorted(bodies)]

    def kind(self, stage: Body) -> LoopKind:
        """Return the kind of the loop of a stage."""
        return "serial"

    def build(self, loop: For, bodies: list[Body]) -> Body:
        """Return the loops over stages, in blocks of iterations."""
        crossing = _crossing_lives(bodies)
        live = _live_bytes(crossing)
        capacity = self.target.l1_bytes // 2 // max(1, live)
        size = min(
            thresholds.MAX_STAGE_ITERATIONS,
            max(thresholds.MIN_STAGE_ITERATIONS, 1 << max(capacity, 1).bit_length() - 1),
        )
        trip_count = (loop.hi - loop.lo).constant
        if trip_count is not None and trip_count <= size:
            return self.stages(loop, bodies, crossing, loop.lo, loop.hi, trip_count)
        block = self.fresh.symbol("block")
        end = var(block) + size
        if trip_count is None or trip_count % size:
            end = minimum(loop.hi, end)
        body = self.stages(loop, bodies, crossing, var(block), end, size)
        return (For(block, loop.lo, loop.hi, size, body, span=loop.span),)

    def stages(
        self, loop: For, bodies: list[Body], crossing: LiveRanges, lo: Affine, hi: Affine, size: int
    ) -> Body:  # fmt: skip
        """Return a loop for each stage, over the same iterations."""
        arrays = self.arrays(crossing, size)

        def redirect(node: Node, index: tuple[Index, ...]) -> remap.Element:
            return (
                (arrays[node.id], (var(loop.symbol) - lo,)) if node.id in arrays else (node, index)
            )

        out: list[Stmt] = []
        for stage in bodies:
            symbol = self.fresh.symbol(loop.symbol.name)
            body = substitute(remap.remap_accesses(stage, redirect), {loop.symbol: var(symbol)})
            kind = self.kind(stage)
            out.append(replace(loop, symbol=symbol, lo=lo, hi=hi, body=body, kind=kind))
        return tuple(out)

    def arrays(self, crossing: LiveRanges, size: int) -> dict[int, Node]:
        """Return the array of each scalar. Scalars of one type share an array where their live
        ranges, in stages, are disjoint (linear scan allocation: Poletto and Sarkar, 1999)."""
        free: dict[DType, list[Node]] = {}
        allocated: dict[int, Node] = {}
        live: list[tuple[int, int, Node]] = []
        for node, (first, last) in sorted(
            crossing.items(), key=lambda entry: (entry[1], entry[0].id)
        ):
            while live and live[0][0] < first:
                array = heappop(live)[-1]
                free.setdefault(array.dtype, []).append(array)
            arrays = free.get(node.dtype)
            array = (
                arrays.pop()
                if arrays
                else self.fresh.array(node.label, (size,), node.dtype, "stage")
            )
            allocated[node.id] = array
            heappush(live, (last, array.id, array))
        return allocated


class _Calls(_Chains):
    """The distribution with a loop for each function, whose arguments are stored before it."""

    __slots__ = ()
    WHY: ClassVar = FunctionReason.MANY

    def find_stages(self, loop: For) -> list[Body]:
        """Return the statements of an iteration by stage: functions of one depth, each alone, then
        the statements of that depth and the arguments of the functions that use these."""
        calls: list[tuple[int, Body]] = []
        others: dict[int, Body] = {}
        for depth, body in _by_depth(loop, self.fresh, always=True):
            *comments, stmt = body
            if not isinstance(stmt, Store) or not _is_costly(stmt.value):
                others[depth] = (*others.get(depth, ()), *body)
                continue
            before, call = self.store_arguments(stmt)
            if before:
                others[depth - 1] = (*others.get(depth - 1, ()), *comments, *before)
            calls.append((depth, (call,) if before else (*comments, call)))
        numbered = [(2 * depth, body) for depth, body in calls]
        numbered += [(2 * depth + 1, body) for depth, body in others.items()]
        return [body for _, body in sorted(numbered, key=lambda entry: entry[0])]

    def store_arguments(self, stmt: Store) -> tuple[Body, Store]:
        """Return the stores of a function's arguments that are no elements, and the store of the
        function of these."""
        before: list[Stmt] = []

        def store_argument(argument: Expr) -> Expr:
            if isinstance(argument, Read | Const):
                return argument
            node = self.fresh.scalar("argument", argument.dtype)
            before.append(Store(Access(node, ()), argument, stmt.span))
            return Read(node, ())

        assert isinstance(stmt.value, Apply), "only operations are dear"
        value = replace(stmt.value, args=tuple(map(store_argument, stmt.value.args)))
        return tuple(before), replace(stmt, value=value)

    def kind(self, stage: Body) -> LoopKind:
        """Return the kind of the loop of a stage."""
        stores = [stmt for stmt in stage if not isinstance(stmt, Comment)]
        is_single_call = (
            len(stores) == 1 and isinstance(stores[0], Store) and _is_costly(stores[0].value)
        )
        return "elemental" if is_single_call else "serial"


def _is_call(stmt: Stmt) -> bool:
    """Whether a statement stores a function that takes many instructions."""
    return isinstance(stmt, Store | Update) and any(map(_is_costly, walk(stmt.value)))


def _needs_symbols_of(after: Body, before: Body) -> bool:
    """Whether statements use a symbol that earlier ones of an iteration bind: only scalars are
    expanded to an element for each."""
    bound = bound_symbols(before)
    return any(uses(stmt) & bound for stmt in after)


def _is_worth_distributing(loop: For, after: Body) -> bool:
    """Whether statements after an inner loop are worth a loop of their own: their stores have unit
    stride."""
    stores = [stmt for stmt in after if isinstance(stmt, Store | Update)]
    if any(isinstance(stmt, Update) and stmt.pair is not None for stmt in stores):
        return False
    ranked = [stmt for stmt in stores if stmt.access.index]
    return bool(ranked) and all(is_contiguous_store(stmt, loop.symbol) for stmt in ranked)


def _is_safe(expr: Expr) -> bool:
    """Whether an expression can be computed speculatively, where a test guards it."""
    plain = isinstance(expr, Const | Apply) or (isinstance(expr, Read) and not expr.node.rank)
    return plain and expr.dtype.kind == "f"


def _is_costly(expr: Expr) -> bool:
    """Whether an expression is a function that takes many instructions, of computed values."""
    return (
        isinstance(expr, Apply)
        and cost(expr) - sum(map(cost, expr.args)) >= thresholds.LIBRARY_CALL_COST
    )


def _by_depth(loop: For, fresh: Fresh, always: bool = False) -> Iterator[tuple[int, Body]]:
    """Yield each statement of an iteration, after its comments, with the number of functions in
    the longest dependence chain up to it."""
    comments: list[Stmt] = []
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    for stmt in (part for original in loop.body for part in _split_calls(original, fresh, always)):
        if not isinstance(stmt, Store | Update):
            comments.append(stmt)
            continue
        target, sources = stmt.access.node.id, {node.id for node in direct_reads(stmt)}
        depth = max(written.get(target, 0), read.get(target, 0))
        depth = max([depth, *(written.get(number, 0) for number in sources)])
        depth += any(map(_is_costly, walk(stmt.value)))
        written[target] = max(written.get(target, 0), depth)
        read |= {number: max(read.get(number, 0), depth) for number in sources}
        yield depth, (*comments, stmt)
        comments.clear()


def _split_calls(stmt: Stmt, fresh: Fresh, always: bool) -> Body:
    """Return a statement of one function at most, after stores of the other functions in it; with
    `always` functions under tests, too, if they are of scalars only and safe to compute."""
    if not isinstance(stmt, Store | Update):
        return (stmt,)
    out: list[Store] = []

    def split(expr: Expr, tested: bool = False) -> Expr:
        if isinstance(expr, Select) or (isinstance(expr, Apply) and expr.dtype.kind == "b"):
            tested = True  # it may be that only a test keeps it from reading what is not there
        if tested and not always:
            return expr
        new = rebuild(expr, partial(split, tested=tested), lambda index: index)
        if not _is_costly(new) or (tested and not all(map(_is_safe, walk(new)))):
            return new
        assert isinstance(new, Apply), "only operations are dear"
        node = fresh.scalar(f"{new.op.name}_part", new.dtype)
        out.append(Store(Access(node, ()), new, stmt.span))
        return Read(node, ())

    value = split(stmt.value)
    if out and value == Read(out[-1].access.node, ()):
        value = out.pop().value
    return (*out, replace(stmt, value=value))


LiveRanges = Mapping[Node, tuple[int, int]]
"""The live range of each scalar: the first and the last stage that use it."""


def _crossing_lives(bodies: list[Body]) -> LiveRanges:
    """Return the live ranges of the scalars that more than one stage uses."""
    lives: dict[Node, tuple[int, int]] = {}
    written: set[Node] = set()
    for at, stage in enumerate(bodies):
        for stmt in stage:
            if isinstance(stmt, Store | Update):
                written.add(stmt.access.node)
                for node in (stmt.access.node, *direct_reads(stmt)):
                    if not node.rank:
                        lives[node] = (lives.get(node, (at, at))[0], at)
    return {n: life for n, life in lives.items() if life[0] < life[1] and n in written}


def _live_bytes(crossing: LiveRanges) -> int:
    """Return the most bytes that one iteration has in live arrays in a stage."""
    change: Counter[int] = Counter()
    for node, (first, last) in crossing.items():
        change[first] += node.dtype.itemsize
        change[last + 1] -= node.dtype.itemsize
    return max(accumulate(change[at] for at in sorted(change)), default=0)
