"""Range inference for index variables: from plain uses, affine subscripts, guards and binders.

R1: a plain use gives an index variable the extent of its axis, and all plain uses agree. R2:
binders and guards restrict it. R4: the index variables on the left of a new array are inferred from
shifted reads, by intersection. R5: any other one without a plain use or a binder has no range,
which is an error. Analysis only: checks that remain are emitted by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....base.diagnostic import CdIndexError, CdShapeError, Label, Span
from ....lowering.ir.expressions import Apply, Const, Expr, Select
from ....lowering.ir.indexing import Affine, Range, Symbol, const, floordiv, var
from ....lowering.ir.ops import Op
from ...values.builder import Use, error
from ...values.range_analysis import Assumptions, extreme, facts_of


def pinned(letter: Symbol, uses: Sequence[Use], assumptions: Assumptions) -> Affine | None:
    """Return the extent of an index variable by R1, None where it has no plain use.

    CdShapeError CD0301 where two uses provably disagree, naming both.
    """
    first: Use | None = None
    for use in uses:
        if not isinstance(use.index, Affine) or use.index.symbol != letter:
            continue
        if first is None:
            first = use
        elif assumptions.differ(first.extent, use.extent):
            raise error(
                "CD0301", CdShapeError,
                f"index `{letter.name}` runs over sizes {first.extent} and {use.extent}", use.span,
                Label(first.span, f"axis {first.axis} of `{first.name}` has size {first.extent}"),
                label=f"axis {use.axis} of `{use.name}` has size {use.extent}",
                notes=("size-1 axes do not stretch under an index letter",),
                helps=(f"to read a single position, write a number: `{use.name}[0]`",),
            )  # fmt: skip
    return None if first is None else first.extent


def undecided(
    letter: Symbol, uses: Sequence[Use], assumptions: Assumptions
) -> list[tuple[Use, Use]]:
    """Return the pairs of plain uses of an index variable whose sizes are not proven equal."""
    plain = [u for u in uses if isinstance(u.index, Affine) and u.index.symbol == letter]
    return [
        (plain[0], use) for use in plain[1:] if not assumptions.equal(plain[0].extent, use.extent)
    ]


def inferred(
    letter: Symbol, uses: Sequence[Use], extents: Mapping[Symbol, Affine], assumptions: Assumptions
) -> Affine | None:
    """Return the largest extent of an index variable with every shifted read in bounds (R4).

    None where no use bounds it. Precondition: the other index variables of the uses have extents.
    """
    best: Affine | None = None
    for use in uses:
        if not isinstance(use.index, Affine) or not use.index.coefficient(letter):
            continue
        factor = use.index.coefficient(letter)
        rest = use.index - var(letter) * factor
        if factor < 0 or letter in rest.symbols():
            continue
        others = [s for s in rest.symbols() if s in extents]
        ranges = tuple(Range(s, const(0), extents[s]) for s in others)
        top = extreme(rest, ranges, upwards=True)
        extent = floordiv(use.extent - 1 - top, const(factor)) + 1
        best = extent if best is None else assumptions.minimum(best, extent)
    return None if best is None else assumptions.maximum(best, const(0))


def bounded(
    letter: Symbol,
    tests: Sequence[Expr],
    extents: Mapping[Symbol, Affine],
    assumptions: Assumptions,
) -> Affine | None:
    """Return the extent of an index variable by guards or binder comparisons (R2), None for none.

    It is the least upper bound that these tests imply, at the maximum of the other index variables.
    """
    best: Affine | None = None
    for test in (part for whole in tests for part in conjuncts(whole)):
        for fact in facts_of(test):
            if fact.coefficient(letter) >= 0:
                continue
            factor = -fact.coefficient(letter)
            rest = fact + var(letter) * factor
            others = tuple(Range(s, const(0), extents[s]) for s in rest.symbols() if s in extents)
            top = extreme(rest, others, upwards=True)
            extent = floordiv(top, const(factor)) + 1
            best = extent if best is None else assumptions.minimum(best, extent)
    return None if best is None else assumptions.maximum(best, const(0))


def no_range(letter: Symbol, span: Span, uses: Sequence[Use]) -> CdIndexError:
    """Return the error for an index variable without a range (R5)."""
    shifted = [u for u in uses if isinstance(u.index, Affine) and letter in u.index.symbols()]
    name = letter.name
    if shifted:
        message = f"index `{name}` has no range: it is used only inside `{shifted[0].index}`"
        helps = (f"give it one: `sum[{name} in range(3)](...)`",)
    else:
        message = f"index `{name}` has no range: it subscripts no axis by itself"
        helps = (f"use it to subscript an array, or bind it: `sum[{name} in range(n)](...)`",)
    problem = error("CD0604", CdIndexError, message, span, helps=helps)
    assert isinstance(problem, CdIndexError)
    return problem


def conjuncts(test: Expr) -> list[Expr]:
    """Return the operands of a conjunction, flattened, in order."""
    match test:
        case Const(True, _):
            return []
        case Apply(Op(name="and"), (left, right), _):
            return conjuncts(left) + conjuncts(right)
        case Select(left, right, Const(False, _)):
            return conjuncts(left) + conjuncts(right)
        case _:
            return [test]


def tighten(
    ranges: Sequence[Range], tests: Sequence[Expr], assumptions: Assumptions
) -> tuple[tuple[Range, ...], list[Expr]]:
    """Return the ranges narrowed by affine tests, and the tests that no range can express.

    A test narrows the innermost index variable that it compares, so that bounds depend on outer
    ones only. A narrowed range is a subset of the original one.
    """
    narrowed_ranges = list(ranges)
    remaining: list[Expr] = []
    for test in (part for whole in tests for part in conjuncts(whole)):
        facts = facts_of(test)
        expressed = [_narrow(narrowed_ranges, fact, assumptions) for fact in facts]
        if not facts or not all(expressed):
            remaining.append(test)
    return tuple(narrowed_ranges), remaining


def _narrow(ranges: list[Range], fact: Affine, assumptions: Assumptions) -> bool:
    """Narrow one range, in place, by `fact >= 0`; False where no range can express it."""
    order = {r.symbol: n for n, r in enumerate(ranges)}
    ranged = [s for s in fact.symbols() if s in order]
    if not ranged:
        return False
    innermost = max(ranged, key=order.__getitem__)
    factor = fact.coefficient(innermost)
    rest = fact - var(innermost) * factor
    if not factor or innermost in rest.symbols():
        return False
    at = order[innermost]
    outer = assumptions.with_ranges(ranges[:at])
    old = ranges[at]
    if factor > 0:
        lowest = -floordiv(rest, const(factor))
        ranges[at] = Range(innermost, outer.maximum(old.lo, lowest), old.hi)
    else:
        highest = floordiv(rest, const(-factor)) + 1
        ranges[at] = Range(innermost, old.lo, outer.minimum(old.hi, highest))
    return True
