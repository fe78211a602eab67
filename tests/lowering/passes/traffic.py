"""Counts the bytes that loops move between a cache and memory, by running their accesses.

Nothing of the passes is used: the loops are walked as they stand, every access of an array becomes
the address of a cell, and a cache of whole lines that drops the least recently used one says what
has to be fetched and written back. Scalars are registers. Branches that depend on data are taken,
and data-dependent subscripts are 0. A line that is overwritten is not fetched first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plusequals.lowering.ir.expressions import Expr, Index, Read, walk
from plusequals.lowering.ir.indexing import Affine, Symbol, evaluate
from plusequals.lowering.ir.loops import Check, For, If, Program, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.walk import expressions_of, parts

LINE = 64
Values = dict[Symbol, int]
Run = Callable[[Values], None]


@dataclass(slots=True)
class Cache:
    """Lines by their number, the least recently used first; True: it was written."""

    lines: int
    held: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    moved: int = 0

    def touch(self, line: int, written: bool) -> None:
        """Read or write a cell of a line."""
        old = self.held.pop(line, None)
        if old is None and not written:
            self.moved += LINE
        self.held[line] = written or bool(old)
        if len(self.held) > self.lines and self.held.popitem(last=False)[1]:
            self.moved += LINE


def bytes_moved(program: Program, cache_bytes: int) -> int:
    """Return the bytes that a run fetches and writes back, what callers see in the end included."""
    cache = Cache(cache_bytes // LINE)
    seen = (*(p.node for p in program.parameters), *program.results)
    bases: dict[int, int] = {}
    end = 0
    for node in (*seen, *program.locals):
        bases[node.id] = end
        end += -(-size_of(node) // LINE)
    run = _body(tuple(s for k in program.kernels for s in k.body), bases, cache)
    run({})
    ours = bases[program.locals[0].id] if program.locals else end
    return cache.moved + LINE * sum(dirty and line < ours for line, dirty in cache.held.items())


def size_of(node: Node) -> int:
    """Return the bytes of an array; those of a scalar do not count."""
    size = node.dtype.itemsize if node.rank else 0
    for extent in node.static_shape or ():
        size *= extent
    return size


def _body(body: tuple[Stmt, ...], bases: Mapping[int, int], cache: Cache) -> Run:
    runs = [_statement(stmt, bases, cache) for stmt in body]

    def run(values: Values) -> None:
        for one in runs:
            one(values)

    return run


def _statement(stmt: Stmt, bases: Mapping[int, int], cache: Cache) -> Run:
    touches = [
        _touch(read.node, read.index, False, bases, cache)
        for expr in expressions_of(stmt) for read in _reads(expr)
    ]  # fmt: skip
    if isinstance(stmt, Update):
        touches += [_touch(a.node, a.index, False, bases, cache) for a in parts(stmt).targets]
    if isinstance(stmt, Store | Update):
        touches += [_touch(a.node, a.index, True, bases, cache) for a in parts(stmt).targets]
    match stmt:
        case For(symbol, lo, hi, step, inner):
            body = _body(inner, bases, cache)

            def loop(values: Values) -> None:
                for number in range(evaluate(lo, values), evaluate(hi, values), step):
                    values[symbol] = number
                    body(values)

            return loop
        case If(_, then, _):
            touches.append(_body(then, bases, cache))
        case _:
            assert isinstance(stmt, Store | Update | Check) or not touches, stmt

    def run(values: Values) -> None:
        for touch in touches:
            touch(values)

    return run


def _reads(expr: Expr) -> list[Read]:
    """Return the reads of arrays in an expression; both sides of a choice count."""
    return [one for one in walk(expr) if isinstance(one, Read) and one.node.rank]


def _touch(
    node: Node, index: tuple[Index, ...], written: bool, bases: Mapping[int, int], cache: Cache
) -> Run:
    if not node.rank:
        return lambda values: None
    strides = [stride.constant or 0 for stride in node.element_strides]
    offset, terms = 0, []
    for at, stride in zip(index, strides, strict=True):
        if isinstance(at, Affine):
            offset += at.offset * stride
            terms += [(atom, k * stride) for atom, k in at.terms if isinstance(atom, Symbol)]
            assert all(isinstance(atom, Symbol) for atom, _ in at.terms), "plain indices only"
    base, size = bases[node.id], node.dtype.itemsize

    def run(values: Values) -> None:
        cell = offset
        for symbol, k in terms:
            cell += values[symbol] * k
        cache.touch(base + cell * size // LINE, written)

    return run
