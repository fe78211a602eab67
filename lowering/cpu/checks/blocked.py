"""Vectorized bounds checks: the minimum and the maximum of a block decide for all of it.

Changes: a loop that only checks that values, such as indices that are data, are between bounds is
strip-mined. It computes the minimum and the maximum of a block, in a loop without an exit, which
compilers vectorize; where one is out of bounds, it executes the block's checks as before.

    for i: check 0 <= k[i] and k[i] < n
    for block: least, greatest = ... of k[i] in the block;
        if not (0 <= least and greatest < n): for i in block: check 0 <= k[i] and k[i] < n

Precondition: integers whose reads are in bounds; loop-invariant limits. Postcondition: the check
that fails is the first one that did, with the same values.

>>> show(lambda program: block_checks(program, Target(schedule=True)),
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

from ... import thresholds
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
from ...transform.outermost import OutermostRewriter
from .fused import block_loop, is_block

Body = tuple[Stmt, ...]


class BlockedCheckReason(Reason):
    """Why checks are vectorized."""

    BOUNDS = "the least and the greatest value tell whether one is out of bounds"


class BoundsCheck(NamedTuple):
    """A check that a value is between bounds."""

    least: Expr
    value: Expr
    above: Expr


def block_checks(program: Program, target: Target) -> Decided:
    """Return the program with bounds checks by blocks, and the decisions."""
    return _CheckBlocking.on(program, target)


class _CheckBlocking(OutermostRewriter):
    """The blocking of the checks of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop over blocks of iterations; None where it stays as it is."""
        limits = self.find_checks(loop, outer)
        trip_count = (loop.hi - loop.lo).constant
        if not limits or (
            trip_count is not None and trip_count < thresholds.CHECKED_BLOCK_ITERATIONS
        ):
            return None
        span = loop.span
        read = next((operand.node for b in limits for operand in reads(b.value)), None)
        self.decisions.append(Decision("checked", BlockedCheckReason.BOUNDS, read, span=span))
        block = self.fresh.symbol("block")
        part = loop if is_block(loop) else block_loop(loop, block)
        initial: list[Stmt] = []
        inside: list[Stmt] = []
        tests: list[Expr] = []
        for limit in limits:
            value = _narrow(limit.value)
            for op, name in ((OPS["min"], "least"), (OPS["max"], "greatest")):
                node = self.fresh.scalar(f"{_label(value)}_{name}", value.dtype)
                start = Const(neutral_of(op, value.dtype.kind, value.dtype.bits), value.dtype)
                initial.append(Store(Access(node, ()), start, span))
                inside.append(Update(Access(node, ()), op, value, None, span))
                extreme: Expr = Read(node, (), span)
                extreme = extreme if value is limit.value else Cast(extreme, limit.value.dtype)
                sides = (limit.least, extreme) if name == "least" else (extreme, limit.above)
                by = OPS["le" if name == "least" else "lt"]
                tests.append(Apply(by, sides, dtypes.bool_))
        symbol = self.fresh.symbol(loop.symbol.name)
        scan = For(symbol, part.lo, part.hi, 1,
                   substitute(tuple(inside), {loop.symbol: var(symbol)}), span=span)  # fmt: skip
        in_bounds = reduce(
            lambda left, right: Apply(OPS["and"], (left, right), dtypes.bool_), tests
        )
        recheck = If(Apply(OPS["logical_not"], (in_bounds,), dtypes.bool_), (part,), (), span)
        body = (*initial, scan, recheck)
        if part is loop:
            return body
        size = thresholds.CHECKED_BLOCK_ITERATIONS
        return (For(block, loop.lo, loop.hi, size, body, span=span),)

    def find_checks(self, loop: For, outer: tuple[For, ...]) -> list[BoundsCheck]:
        """Return the checks of a loop, if it does nothing else."""
        if loop.kind != "serial" or loop.step != 1:
            return []
        values: dict[int, Expr] = {}
        bounds_checks: list[BoundsCheck] = []
        for stmt in loop.body:
            match stmt:
                case Comment():
                    pass
                case Store(access, value) if self.is_exclusive(access, loop):
                    values[access.node.id] = _inline(value, values)
                case Check(test):
                    check = _match_bounds(_inline(test, values), loop.symbol)
                    if check is None:
                        return []
                    bounds_checks.append(check)
                case _:
                    return []
        return bounds_checks if self.is_readable(bounds_checks, ranges((*outer, loop))) else []

    def is_readable(self, bounds_checks: list[BoundsCheck], domain: tuple[Range, ...]) -> bool:
        """Whether the reads are in bounds in all iterations, also in those after one that fails.

        Where subscripts do not depend on data, only a check of positions could say that they are
        not.
        """
        read = [operand for between in bounds_checks for operand in reads(between.value)]
        if any(not isinstance(at, Affine) for operand in read for at in operand.index):
            return False
        all_read = all(reads(between.value) for between in bounds_checks)
        return all_read or all(is_in_range(operand.node, operand.index, domain) for operand in read)

    def is_exclusive(self, access: Access, loop: For) -> bool:
        """Whether a node is a scalar that only the loop uses."""
        return not access.node.rank and access.node.id in self.only()[id(loop)]


def _inline(expr: Expr, values: Mapping[int, Expr]) -> Expr:
    """Return an expression with scalars replaced by their definitions."""
    if isinstance(expr, Read) and expr.node.id in values:
        return values[expr.node.id]
    return rebuild(expr, lambda operand: _inline(operand, values), lambda index: index)


def _match_bounds(test: Expr, symbol: Symbol) -> BoundsCheck | None:
    """Return the check that a test of an integer against loop-invariant bounds makes; None for
    others."""
    match test:
        case Apply(both, (Apply(ge, (value, least), _), below), _) if ge.name == "ge":
            swapped = Apply(OPS["le"], (least, value), dtypes.bool_)
            return _match_bounds(Apply(both, (swapped, below), dtypes.bool_), symbol)
        case Apply(both, (Apply(le, (least, value), _), Apply(lt, (upper_value, above), _)), _):
            is_range = (both.name, le.name, lt.name) == ("and", "le", "lt")
            is_integer = value == upper_value and value.dtype in (dtypes.int64, dtypes.int32)
            is_invariant = not any(
                reads(bound) or symbol in symbols_of(bound) for bound in (least, above)
            )
            return (
                BoundsCheck(least, value, above)
                if is_range and is_integer and is_invariant
                else None
            )
        case _:
            return None


def _narrow(value: Expr) -> Expr:
    """Return an integer before its widening conversions: narrower ones are compared faster."""
    match value:
        case Cast(inner, dtype) if inner.dtype.kind == "i" and inner.dtype.bits <= dtype.bits:
            return _narrow(inner)
        case _:
            return value


def _label(value: Expr) -> str:
    """Return the name after which the extremes of a value are named."""
    sources = reads(value)
    return sources[0].node.label if sources else "value"
