"""Checks of many indices at once: the least and the greatest of some decide for all of them.

Changes: a loop that only checks that values lie between bounds, such as indices that are data,
takes some rounds at a time. It finds the least and the greatest value of these, by a loop without a
way out, of which compilers make vectors; where one is out of bounds, it does the rounds as before.

    for i: check 0 <= k[i] and k[i] < n
    for block: least, greatest = ... of k[i] in the block;
        if not (0 <= least and greatest < n): for i in block: check 0 <= k[i] and k[i] < n

Needs: whole numbers, read at places that surely exist; bounds that are the same in all rounds.
Guarantees: the check that fails is the first one that did, with the same values.

>>> show(lambda program: checks(program, Target(schedule=True)),
...      "y[i] = x[k[i]]", y="f32[4096]", x="f32[9]", k="i64[4096]")
for block in 0..4096 step 1024:
    k_least = 9223372036854775807
    k_greatest = -9223372036854775808
    for i in block..block + 1024:
        k_least min= k[i]
        k_greatest max= k[i]
    if not (0 <= k_least and k_greatest < 9):
        for i in block..block + 1024:
            check 0 <= k[i] and k[i] < 9 else CdIndexError('CD0601',
                    'index {0} is out of range for axis 0 of `x` with size {1}, at i = {2}',
                    k[i], 9, i)
for i in 0..4096:
    y[i] = x[k[i]]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import is_in_range, ranges
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Cast, Const, Expr, Read, reads, rebuild
from ...ir.indexing import Affine, Range, Symbol, var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update
from ...ir.ops import OPS, neutral_of
from ...ir.rewrite import substitute
from ...target import Target
from ...transform.outermost import Outermost
from .fused import BLOCK, a_block, is_a_block

Body = tuple[Stmt, ...]


class AtOnce(Reason):
    """Why checks are done for many rounds at once."""

    BOUNDS = "the least and the greatest value say whether one is out of bounds"


class Between(NamedTuple):
    """A check that a value lies between bounds."""

    least: Expr
    value: Expr
    above: Expr


def checks(program: Program, target: Target) -> Program:
    """Return the program with checks of many rounds at once."""
    return in_blocks(program, target).program


def in_blocks(program: Program, target: Target) -> Decided:
    """Return the program with checks of many rounds at once, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop over blocks of rounds, None where it has to stay as it is."""
        found = self.found(loop, outer)
        rounds = (loop.hi - loop.lo).constant
        if not found or (rounds is not None and rounds < BLOCK):
            return None
        span = loop.span
        read = next((one.node for b in found for one in reads(b.value)), None)
        self.decisions.append(Decision("checked", AtOnce.BOUNDS, read, span=span))
        block = self.fresh.symbol("block")
        part = loop if is_a_block(loop) else a_block(loop, block)
        begun: list[Stmt] = []
        inside: list[Stmt] = []
        fits: list[Expr] = []
        for one in found:
            value = _narrow(one.value)
            for op, name in ((OPS["min"], "least"), (OPS["max"], "greatest")):
                node = self.fresh.scalar(f"{_label(value)}_{name}", value.dtype)
                start = Const(neutral_of(op, value.dtype.kind, value.dtype.bits), value.dtype)
                begun.append(Store(Access(node, ()), start, span))
                inside.append(Update(Access(node, ()), op, value, None, span))
                met: Expr = Read(node, (), span)
                met = met if value is one.value else Cast(met, one.value.dtype)
                sides = (one.least, met) if name == "least" else (met, one.above)
                by = OPS["le" if name == "least" else "lt"]
                fits.append(Apply(by, sides, dtypes.bool_))
        symbol = self.fresh.symbol(loop.symbol.name)
        look = For(symbol, part.lo, part.hi, 1,
                   substitute(tuple(inside), {loop.symbol: var(symbol)}), span=span)  # fmt: skip
        every = reduce(lambda one, two: Apply(OPS["and"], (one, two), dtypes.bool_), fits)
        wrong = If(Apply(OPS["logical_not"], (every,), dtypes.bool_), (part,), (), span)
        each = (*begun, look, wrong)
        return each if part is loop else (For(block, loop.lo, loop.hi, BLOCK, each, span=span),)

    def found(self, loop: For, outer: tuple[For, ...]) -> list[Between]:
        """Return what a loop checks, if it does nothing else."""
        if loop.kind != "serial" or loop.step != 1:
            return []
        values: dict[int, Expr] = {}
        found: list[Between] = []
        for stmt in loop.body:
            match stmt:
                case Comment():
                    pass
                case Store(access, value) if self.is_own(access, loop):
                    values[access.node.id] = _inlined(value, values)
                case Check(test):
                    one = _between(_inlined(test, values), loop.symbol)
                    if one is None:
                        return []
                    found.append(one)
                case _:
                    return []
        return found if self.is_there(found, ranges((*outer, loop))) else []

    def is_there(self, found: list[Between], known: tuple[Range, ...]) -> bool:
        """Whether what is looked at exists in all rounds, also in those behind one that fails.

        Where the places do not depend on data, only a check of places could say that it does not.
        """
        read = [one for between in found for one in reads(between.value)]
        if any(not isinstance(at, Affine) for one in read for at in one.index):
            return False
        of_data = all(reads(between.value) for between in found)
        return of_data or all(is_in_range(one.node, one.index, known) for one in read)

    def is_own(self, access: Access, loop: For) -> bool:
        """Whether only the loop uses a scalar."""
        return not access.node.rank and access.node.id in self.only()[id(loop)]


def _inlined(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    """Return an expression with scalars replaced by what they are."""
    if isinstance(expr, Read) and expr.node.id in values:
        return values[expr.node.id]
    return rebuild(expr, lambda one: _inlined(one, values), lambda index: index)


def _between(test: Expr, symbol: Symbol) -> Between | None:
    """Return what a test says of a whole number and bounds that no round changes."""
    match test:
        case Apply(both, (Apply(ge, (one, least), _), below), _) if ge.name == "ge":
            turned = Apply(OPS["le"], (least, one), dtypes.bool_)
            return _between(Apply(both, (turned, below), dtypes.bool_), symbol)
        case Apply(both, (Apply(le, (least, one), _), Apply(lt, (other, above), _)), _):
            named = (both.name, le.name, lt.name) == ("and", "le", "lt")
            same = one == other and one.dtype in (dtypes.int64, dtypes.int32)
            fixed = not any(reads(bound) or symbol in symbols_of(bound) for bound in (least, above))
            return Between(least, one, above) if named and same and fixed else None
        case _:
            return None


def _narrow(value: Expr) -> Expr:
    """Return a whole number of the type that it comes from: narrower ones are looked at faster."""
    match value:
        case Cast(inner, dtype) if inner.dtype.kind == "i" and inner.dtype.bits <= dtype.bits:
            return _narrow(inner)
        case _:
            return value


def _label(value: Expr) -> str:
    """Return what the bounds of a value are named after."""
    found = reads(value)
    return found[0].node.label if found else "value"
