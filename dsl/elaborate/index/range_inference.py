"""The ranges of index letters: pinned by plain uses, inferred for new arrays, tightened by tests.

R1 a plain use pins a letter to its axis, and two plain uses agree. R2 binders and guards restrict.
R4 the left letters of a new array may be inferred from shifted reads, by intersection. R5 any other
letter without a plain use or a binder has no range, which is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....base.diagnostic import CdIndexError, CdShapeError, Label, Span
from ....lowering.ir.expressions import Apply, Const, Expr, Select
from ....lowering.ir.indexing import Affine, Range, Symbol, const, floordiv, var
from ....lowering.ir.ops import Op
from ...values.builder import Use, error
from ...values.range_analysis import Known, extreme, facts_of


def pinned(letter: Symbol, uses: Sequence[Use], known: Known) -> Affine | None:
    """Return the extent that plain uses give a letter, None where it has none.

    CdShapeError CD0301 where two uses surely disagree, naming both.
    """
    found: Use | None = None
    for use in uses:
        if not isinstance(use.index, Affine) or use.index.symbol != letter:
            continue
        if found is None:
            found = use
        elif known.differ(found.extent, use.extent):
            raise error(
                "CD0301", CdShapeError,
                f"index `{letter.name}` runs over sizes {found.extent} and {use.extent}", use.span,
                Label(found.span, f"axis {found.axis} of `{found.name}` has size {found.extent}"),
                label=f"axis {use.axis} of `{use.name}` has size {use.extent}",
                notes=("size-1 axes do not stretch under an index letter",),
                helps=(f"to read a single position, write a number: `{use.name}[0]`",),
            )  # fmt: skip
    return None if found is None else found.extent


def undecided(letter: Symbol, uses: Sequence[Use], known: Known) -> list[tuple[Use, Use]]:
    """Return the pairs of plain uses of a letter whose sizes only the run can tell equal."""
    plain = [u for u in uses if isinstance(u.index, Affine) and u.index.symbol == letter]
    return [(plain[0], use) for use in plain[1:] if not known.equal(plain[0].extent, use.extent)]


def inferred(
    letter: Symbol, uses: Sequence[Use], extents: Mapping[Symbol, Affine], known: Known
) -> Affine | None:
    """Return how far a letter of a new array may run so that every shifted read stays inside.

    The other letters must have extents; None where no use bounds the letter.
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
        room = floordiv(use.extent - 1 - top, const(factor)) + 1
        best = room if best is None else known.minimum(best, room)
    return None if best is None else known.maximum(best, const(0))


def bounded(
    letter: Symbol, tests: Sequence[Expr], extents: Mapping[Symbol, Affine], known: Known
) -> Affine | None:
    """Return the extent that guards or binder comparisons give a letter (R2), None for none.

    The letter runs from 0 up to the least bound that uses no letter without an extent.
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
            best = extent if best is None else known.minimum(best, extent)
    return None if best is None else known.maximum(best, const(0))


def no_range(letter: Symbol, span: Span, uses: Sequence[Use]) -> CdIndexError:
    """Return the error for a letter without a range (R5)."""
    shifted = [u for u in uses if isinstance(u.index, Affine) and letter in u.index.symbols()]
    name = letter.name
    if shifted:
        message = f"index `{name}` has no range: it is used only inside `{shifted[0].index}`"
        helps = (f"give it one: `sum[{name} in range(3)](...)`",)
    else:
        message = f"index `{name}` has no range: it subscripts no axis by itself"
        helps = (f"use it to subscript an array, or bind it: `sum[{name} in range(n)](...)`",)
    made = error("CD0604", CdIndexError, message, span, helps=helps)
    assert isinstance(made, CdIndexError)
    return made


def conjuncts(test: Expr) -> list[Expr]:
    """Return the parts of a conjunction, in order."""
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
    ranges: Sequence[Range], tests: Sequence[Expr], known: Known
) -> tuple[tuple[Range, ...], list[Expr]]:
    """Return the ranges narrowed by affine tests, and the tests that no range can express.

    A test narrows the letter that stands last among those it compares, so that bounds only use
    letters further out. A narrowed range stays inside the original one.
    """
    out = list(ranges)
    left: list[Expr] = []
    for test in (part for whole in tests for part in conjuncts(whole)):
        facts = facts_of(test)
        narrowed = [_narrow(out, fact, known) for fact in facts]
        if not facts or not all(narrowed):
            left.append(test)
    return tuple(out), left


def _narrow(ranges: list[Range], fact: Affine, known: Known) -> bool:
    """Narrow one range by `fact >= 0` in place; False where none can express it."""
    order = {r.symbol: n for n, r in enumerate(ranges)}
    inside = [s for s in fact.symbols() if s in order]
    if not inside:
        return False
    last = max(inside, key=order.__getitem__)
    factor = fact.coefficient(last)
    rest = fact - var(last) * factor
    if not factor or last in rest.symbols():
        return False
    at = order[last]
    outer = known.with_ranges(ranges[:at])
    r = ranges[at]
    if factor > 0:
        lowest = -floordiv(rest, const(factor))
        ranges[at] = Range(last, outer.maximum(r.lo, lowest), r.hi)
    else:
        highest = floordiv(rest, const(-factor)) + 1
        ranges[at] = Range(last, r.lo, outer.minimum(r.hi, highest))
    return True
