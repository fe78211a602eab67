"""Chains of functions in stages: for some rounds at a time one function, then what uses it.

Changes: a loop whose rounds compute functions such as `exp` of what others give takes some rounds
at a time. For all of them it does what needs no other function, then what needs the results of
that, and so on; small arrays have what a stage hands to later ones. A processor looks ahead for
some hundreds of instructions: where a round is as long a chain, it waits for the results of that
one; of a stage, which is short, it works on many rounds at once.

    for i: y[i] = exp(log(x[i]) + z[i])
    for block: for i in block: log[i - block] = log(x[i])
               for i in block: y[i] = exp(log[i - block] + z[i])

Needs: rounds of nothing but stores that may run in any order. What is computed under a test stays
there. Guarantees: not a bit changes: of two statements of a round of which one needs the other, the
first one stays first.

>>> show(lambda program: stages(program, Target(schedule=True)),
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
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.assignments import Access
from ..ir.expressions import Apply, Expr, Index, Read, Select, rebuild, walk
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, minimum, var
from ..ir.loops import Comment, For, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import substitute
from ..ir.walk import own_reads
from ..later import Later
from ..passes.cells import ranges
from ..passes.cost import cost
from ..passes.decision import Decided, Decision, Reason
from ..target import Target
from .effort import DEAR
from .legal import independent, private
from .outermost import Outermost

if TYPE_CHECKING:
    from . import elsewhere
else:  # what few programs need
    elsewhere = Later(".elsewhere", __package__)

Body = tuple[Stmt, ...]
ROUNDS = 256
"""So many rounds are done at a time, or fewer where the first cache has no room for them."""
FEW = 32
"""Loops of fewer rounds stay."""


class Chained(Reason):
    """Why a loop is done in stages."""

    LONG = "they are chains, longer than what processors look ahead for"


def stages(program: Program, target: Target) -> Program:
    """Return the program with chains of functions in stages."""
    return in_stages(program, target).program


def in_stages(program: Program, target: Target) -> Decided:
    """Return the program with chains of functions in stages, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in stages, None where it has to stay as it is."""
        rounds = (loop.hi - loop.lo).constant
        if loop.kind != "serial" or loop.step != 1 or (rounds is not None and rounds < FEW):
            return None
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store | Update)]
        if any(not isinstance(stmt, Store | Update | Comment) for stmt in loop.body):
            return None
        if any(isinstance(stmt, Update) and stmt.pair is not None for stmt in stores):
            return None
        if sum(_is_dear(part) for stmt in stores for part in walk(stmt.value)) < 2:
            return None
        mine = private(loop, self.only()[id(loop)])
        if independent(loop, mine, self.own, ranges(outer)) is not None:
            return None
        name, span, before = loop.symbol.name, loop.span, len(self.fresh.nodes)
        found = _apart(loop, self.fresh)
        if len(found) < 2:
            del self.fresh.nodes[before:]
            return None
        self.decisions.append(Decision("staged", Chained.LONG, span=span, variable=name))
        return self.made(loop, found)

    def made(self, loop: For, found: list[Body]) -> Body:
        """Return the loops over stages, for some rounds at a time."""
        crossing = _crossing(found)
        room = self.target.l1_bytes // 2 // max(1, sum(n.dtype.itemsize for n in crossing))
        size = min(ROUNDS, max(FEW, 1 << max(room, 1).bit_length() - 1))
        rounds = (loop.hi - loop.lo).constant
        if rounds is not None and rounds <= size:
            return self.stages(loop, found, crossing, loop.lo, loop.hi, rounds)
        block = self.fresh.symbol("block")
        end = var(block) + size
        if rounds is None or rounds % size:
            end = minimum(loop.hi, end)
        body = self.stages(loop, found, crossing, var(block), end, size)
        return (For(block, loop.lo, loop.hi, size, body, span=loop.span),)

    def stages(
        self, loop: For, found: list[Body], crossing: list[Node], lo: Affine, hi: Affine, size: int
    ) -> Body:  # fmt: skip
        """Return a loop for each stage, over the same rounds."""
        kept = {n.id: self.fresh.array(n.label, (size,), n.dtype, "stage") for n in crossing}

        def moved(node: Node, index: tuple[Index, ...]) -> elsewhere.Place:
            return (kept[node.id], (var(loop.symbol) - lo,)) if node.id in kept else (node, index)

        out: list[Stmt] = []
        for stage in found:
            symbol = self.fresh.symbol(loop.symbol.name)
            body = substitute(elsewhere.elsewhere(stage, moved), {loop.symbol: var(symbol)})
            out.append(replace(loop, symbol=symbol, lo=lo, hi=hi, body=body))
        return tuple(out)


def _is_dear(expr: Expr) -> bool:
    """Whether an expression is a function that takes many instructions, of numbers computed."""
    return isinstance(expr, Apply) and cost(expr) - sum(map(cost, expr.args)) >= DEAR


def _apart(loop: For, fresh: Fresh) -> list[Body]:
    """Return what a round does in stages: by how many functions the longest chain up to it has."""
    ahead: list[Stmt] = []
    found: dict[int, Body] = {}
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    for stmt in (one for given in loop.body for one in _parts(given, fresh)):
        if not isinstance(stmt, Store | Update):
            ahead.append(stmt)
            continue
        target, used = stmt.access.node.id, {node.id for node in own_reads(stmt)}
        depth = max(written.get(target, 0), read.get(target, 0))
        depth = max([depth, *(written.get(number, 0) for number in used)])
        depth += any(map(_is_dear, walk(stmt.value)))
        written[target] = max(written.get(target, 0), depth)
        read |= {number: max(read.get(number, 0), depth) for number in used}
        stage = max(depth, 1)
        found[stage] = (*found.get(stage, ()), *ahead, stmt)
        ahead.clear()
    return [found[stage] for stage in sorted(found)]


def _parts(stmt: Stmt, fresh: Fresh) -> Body:
    """Return a statement of one function at most, behind those that it uses otherwise."""
    if not isinstance(stmt, Store | Update):
        return (stmt,)
    out: list[Store] = []

    def without(expr: Expr) -> Expr:
        if isinstance(expr, Select) or (isinstance(expr, Apply) and expr.dtype.kind == "b"):
            return expr  # it may be that only a test keeps it from reading what is not there
        new = rebuild(expr, without, lambda index: index)
        if not _is_dear(new):
            return new
        assert isinstance(new, Apply), "only operations are dear"
        node = fresh.scalar(f"{new.op.name}_part", new.dtype)
        out.append(Store(Access(node, ()), new, stmt.span))
        return Read(node, ())

    value = without(stmt.value)
    if out and value == Read(out[-1].access.node, ()):
        value = out.pop().value
    return (*out, replace(stmt, value=value))


def _crossing(found: list[Body]) -> list[Node]:
    """Return the scalars that more than one stage uses."""
    used: Counter[Node] = Counter()
    for stage in found:
        stores = [stmt for stmt in stage if isinstance(stmt, Store | Update)]
        nodes = {node for stmt in stores for node in (stmt.access.node, *own_reads(stmt))}
        used.update(node for node in nodes if not node.rank)
    written = {s.access.node for stage in found for s in stage if isinstance(s, Store | Update)}
    return sorted((n for n, times in used.items() if times > 1 and n in written),
                  key=lambda node: node.id)  # fmt: skip
