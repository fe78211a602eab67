"""Statements of index notation: letters found, ranges inferred, then one assignment emitted.

A statement is elaborated twice. The first time collects how its letters subscript arrays and is
thrown away; ranges follow from that (`ranges`); the second time every access is proven or checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from ....base.diagnostic import CdIndexError, CdNameError, CdSyntaxError, CdTypeError, Label, Span
from ....base.lazy_import import lazy_modules
from ....lowering.ir.assignments import Access, Assign
from ....lowering.ir.expressions import Domain, Dynamic, Expr
from ....lowering.ir.indexing import Affine, Range, Symbol, const, var
from ....lowering.ir.ops import OPS, Op
from ...numpy import table
from ...source import surface as s
from ...values.arrays import as_scalar, describe
from ...values.builder import Context, Use, error
from ...values.range_analysis import factors
from ...values.stores import part_updated, require_storable
from ...values.types import FALSE, TRUE, Kind, both, cast, negate
from ...values.values import Array, Handle, Scalar, Static, Value
from ..aliasing import looking_at
from ..expressions import evaluate, subscript_value, tested
from ..names import is_letter
from ..operators import value_of
from ..scope import Frame, Guard, Letters, names_in, parts, target_names
from .range_inference import bounded, inferred, no_range, pinned, tighten, undecided
from .subscript_rules import refuse_captured_letters

if TYPE_CHECKING:
    from ...numpy.primitives import accumulate
    from . import refusals
else:  # what few programs need
    accumulate, refusals = lazy_modules(__package__, "...numpy.primitives.accumulate", ".refusals")


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a statement writes: a place, or a new array still to be made (place None)."""

    place: Array | None
    name: str
    letters: tuple[str, ...]


def uses_letters(frame: Frame, node: object) -> bool:
    """Whether a statement is in index notation: a subscript in it holds an index letter."""
    match node:
        case s.Subscript(_, items) if any(
            is_letter(frame, name) for item in items for name in names_in(item)
        ):
            return True
        case s.Lambda() | s.Define():
            return False
        case s.Comprehension(_, target, _, _):
            outer, frame.locals = frame.locals, frame.locals | set(target_names(target))
            found = any(uses_letters(frame, part) for part in parts(node))
            frame.locals = outer
            return found
        case _:
            return any(uses_letters(frame, part) for part in parts(node))


def index_statement(frame: Frame, target: s.Expr, op: Op | None, value: s.Expr, span: Span) -> None:
    """Emit one statement of index notation, `target op= value`."""
    if not isinstance(target, s.Subscript):
        raise error(
            "CD0512",
            CdSyntaxError,
            "a statement with index letters assigns to a subscript",
            span,
            helps=(
                f"write `{target.span.text}[...] = ...`; a scalar is `s[()]` or a reduction over "
                "all its letters",
            ),
        )
    op, value = _accumulator(frame, target, op, value)
    ctx = frame.ctx
    letters, held = Letters(), ctx.uses
    frame.letters = letters
    try:
        fresh = _may_be_new(frame, target, op)
        with ctx.block():
            count = len(ctx.locals)
            ctx.uses = []
            _target(frame, target, fresh)
            letters.on_left = False
            ctx.uses = []
            tests = _guard_tests(frame, span)
            _target(frame, target, fresh)
            _value(frame, value)
            uses, ctx.uses = ctx.uses, None
            del ctx.locals[count:]
        _pin(frame, uses)
        letters.opened = {}
        _settle_sizes(frame)  # what is equal decides what is written
        fresh = _infer(frame, target, uses, tests, fresh)
        _emit(frame, target, op, value, span, fresh)
    finally:
        frame.letters, ctx.uses = None, held


def _accumulator(
    frame: Frame, target: s.Subscript, op: Op | None, value: s.Expr
) -> tuple[Op | None, s.Expr]:
    """Return `t[...] = max(t[...], e)` as the accumulation `t[...] max= e`, others unchanged."""
    if op is not None:
        return op, value
    match value:
        case s.Logical(name, (first, second)) if first == target:
            return OPS[name], second
        case s.Call(function, (first, second), ()) if first == target:
            known = (
                evaluate(frame, function) if isinstance(function, s.Name | s.Attribute) else None
            )
            if isinstance(known, Static):
                row = table.elementwise_name(known.value)
                if row is not None and OPS[row].neutral is not None:
                    return OPS[row], second
    return op, value


def _may_be_new(frame: Frame, target: s.Subscript, op: Op | None) -> bool:
    """Whether the target may be a new array: a local that is unset, or one fully overwritten.

    Under a guard on letters a part of the array is written, whatever its sizes are.
    """
    if not isinstance(target.value, s.Name) or op is not None:
        return False
    name = target.value.id
    if name not in frame.locals or name in frame.parameters:
        return False
    plain = [
        item.id for item in target.items if isinstance(item, s.Name) and is_letter(frame, item)
    ]
    if name not in frame.names:
        return True
    if name in frame.slots:  # where a loop around it looks for it
        return False
    if frame.guards and isinstance(frame.names[name], Array):
        return False
    return len(plain) == len(target.items) == len(set(plain))


def _target(frame: Frame, target: s.Subscript, fresh: bool) -> _Target:
    """Return the target; of a new array only its letters are looked at."""
    name = target.value.span.text
    if fresh:
        found: list[str] = []
        refuse_captured_letters(frame, target, True)
        for item in target.items:
            if isinstance(item, s.Name) and is_letter(frame, item):
                evaluate(frame, item)
                found.append(item.id)
        if len(found) == len(target.items) and len(set(found)) == len(found):
            return _Target(None, name, tuple(found))
        raise error(
            "CD0205", CdNameError,
            f"`{name}` has no value yet, so its size cannot be known from `{target.span.text}`",
            target.span,
            helps=(f"declare it before: `{name}: f32[n, m]`",
                   f"or write plain index letters on the left: `{name}[i, j] = ...`"),
        )  # fmt: skip
    base = evaluate(frame, target.value)
    if isinstance(base, Handle):
        base = frame.inputs.field(frame.ctx, base, "value", target.span)
    try:
        place = subscript_value(frame, base, target, target.value)
    except CdIndexError as problem:
        raise refusals.of_writing(problem, target.span) from None
    if not isinstance(place, Array) or place.base is None or place.sealed:
        raise refusals.no_place(target, base, place)
    if place.rank:
        assert isinstance(base, Array)
        raise refusals.partial_target(target, base, place.rank)
    return _Target(place, name, ())


def _value(frame: Frame, value: s.Expr) -> Scalar:
    found = value_of(evaluate(frame, value))
    if isinstance(found, Array):
        named = refusals.partials(value)
        raise error(
            "CD0513",
            CdTypeError,
            f"`{value.span.text}` is a whole array of rank {found.rank} in a statement "
            "with index letters",
            named[0].span if named else value.span,
            label=f"this is {describe(found)}",
            helps=("index every axis: `y[i, j] = x[i, j]`", "or use slices only: `y[:] = x`"),
        )
    return as_scalar(found, value.span, "the right side")


def _require_factors(ctx: Context, letter: Symbol, uses: list[Use]) -> None:
    """Ask for the integers that multiply a letter without another range: they decide it."""
    for use in uses:
        if isinstance(use.index, Affine) and letter in use.index.symbols():
            for factor in factors(use.index):
                if factor.symbols() <= ctx.origin.keys():
                    ctx.require_static_parameters(factor)


def _pin(frame: Frame, uses: list[Use]) -> None:
    """Fill the extents of letters that are subscripts alone; note which of them have to agree."""
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    for x in (*letters.right.values(), *letters.outer.values()):
        extent = pinned(x, uses, ctx.known)
        letters.open_pairs += undecided(x, uses, ctx.known)
        if extent is not None:
            letters.extents[x] = extent


def _infer(
    frame: Frame, target: s.Subscript, uses: list[Use], tests: list[Expr], fresh: bool
) -> bool:
    """Fill the other extents of the letters; return whether the target is a new array."""
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    bound = isinstance(target.value, s.Name) and frame.names.get(target.value.id)
    if fresh and isinstance(bound, Array):
        assert isinstance(target.value, s.Name)
        fresh = not _is_written(frame, target.value, bound)
        if not fresh:
            letters.extents.update(zip(letters.outer.values(), bound.shape, strict=True))
    for x in letters.outer.values():
        if x in letters.extents:
            continue
        extent = bounded(x, tests, letters.extents, ctx.known)
        if extent is None and fresh:
            _require_factors(ctx, x, uses)
            extent = inferred(x, uses, letters.extents, ctx.known)
        if extent is None:
            raise no_range(x, letters.spans[x], uses)
        letters.extents[x] = extent
    for name, x in letters.right.items():
        if name in letters.implicit:
            raise error(
                "CD0514", CdSyntaxError,
                f"index `{name}` is reduced over, and used outside of that reduction as well",
                letters.spans[x], Label(letters.implicit[name], "reduced here"),
                helps=("rename one of them, and name what is reduced over: `sum[k](...)`",),
            )  # fmt: skip
        if x not in letters.extents:
            raise no_range(x, letters.spans[x], uses)
    return fresh


def _is_written(frame: Frame, name: s.Name, bound: Array) -> bool:
    """Whether a statement over all of its letters writes the array that a name has.

    It makes a new one where the sizes differ. Raises CdShapeError CD0301 where only run time tells
    whether they do, and others see the array that would be written or not.
    """
    letters = frame.letters
    assert letters is not None
    if bound.rank != len(letters.outer) or bound.base is None:
        return False
    same = _has_sizes(frame, bound)
    if same is not None:
        return same
    node = bound.base.node
    given = (*frame.inputs.nodes.values(), *frame.inputs.fleeting.values())
    others = (at for at in looking_at(frame, node) if at != (frame, name.id))
    if node in given or next(others, None) is not None:
        raise refusals.written_or_new(name)
    return False


def _has_sizes(frame: Frame, bound: Array) -> bool | None:
    """Whether an array has the sizes of the letters on the left; None where only run time tells."""
    letters, known = frame.letters, frame.ctx.known
    assert letters is not None
    sizes = [letters.extents.get(x) for x in letters.outer.values()]
    pairs = [(a, b) for a, b in zip(sizes, bound.shape, strict=True) if a is not None]
    if all(known.equal(a, b) for a, b in pairs):
        return True
    return False if any(known.differ(a, b) for a, b in pairs) else None


def _settle_sizes(frame: Frame) -> None:
    """Emit checks that sizes under one letter are equal, where only the run can tell."""
    letters = frame.letters
    assert letters is not None
    for one, two in letters.open_pairs:
        places = (f"axis {use.axis} of `{use.name}`" for use in (one, two))
        what = f"an index runs over {' and '.join(places)}"
        frame.ctx.equal_extents(one.extent, two.extent, what, two.span)


def _guard_tests(frame: Frame, span: Span) -> list[Expr]:
    """Return the tests of the guards around a statement, over its letters."""
    letters = frame.letters
    assert letters is not None
    tests: list[Expr] = []
    for guard in frame.guards:
        for name in guard.names:
            if name not in letters.outer:
                raise error(
                    "CD0515", CdSyntaxError,
                    f"the guard's index `{name}` is not on the left of this statement", span,
                    Label(guard.test.span, "the guard"),
                    helps=("move the statement out of the `if`, or use the index on its left",),
                )  # fmt: skip
        tests.append(_guard_test(frame, guard))
    return tests


def _guard_test(frame: Frame, guard: Guard) -> Expr:
    letters = frame.letters
    assert letters is not None
    if guard.mask is not None:
        index = tuple(var(letters.outer[name]) for name in guard.names)
        for axis, at in enumerate(index):
            extent = guard.mask.shape[axis]
            frame.ctx.require(at, extent, axis, guard.test.span.text, guard.test.span)
        expr = guard.mask.at(index)
    else:
        test = tested(frame, guard.test)
        expr = test.expr if isinstance(test, Scalar) else TRUE if test.value else FALSE
    return negate(expr) if guard.negated else expr


def _emit(
    frame: Frame, target: s.Subscript, op: Op | None, value: s.Expr, span: Span, fresh: bool
) -> None:
    """Elaborate the statement again with its ranges known, and emit the assignment."""
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    outer = [Range(x, const(0), letters.extents[x]) for x in letters.outer.values()]
    right = [Range(x, const(0), letters.extents[x]) for x in letters.right.values()]
    if right and op is None:
        raise refusals.implied_sum(frame, target, value, [r.symbol.name for r in right])
    known, domain, conditions = ctx.known, ctx.domain, ctx.conditions
    try:
        ctx.domain = (*outer, *right)
        ctx.known = known.with_ranges(ctx.domain)
        tests = _guard_tests(frame, span)
        free, rest = tighten(outer, tests, known)
        ctx.domain = (*free, *right)
        ctx.known = known.with_ranges(ctx.domain)
        where = both(*rest)
        if where is None:
            _emit_body(frame, target, op, value, span, Domain(free), Domain(tuple(right)), fresh)
        else:
            with ctx.under(where):
                _emit_body(
                    frame, target, op, value, span, Domain(free, where), Domain(tuple(right)), fresh
                )
    finally:
        ctx.known, ctx.domain, ctx.conditions = known, domain, conditions


def _emit_body(
    frame: Frame,
    target: s.Subscript,
    op: Op | None,
    value: s.Expr,
    span: Span,
    free: Domain,
    reduced: Domain,
    fresh: bool,
) -> None:
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    where = _target(frame, target, fresh)
    scalar = _value(frame, value)
    if where.place is None:
        assert isinstance(target.value, s.Name)
        shape = tuple(letters.extents[letters.outer[name]] for name in where.letters)
        bound = frame.names.get(target.value.id)
        if isinstance(bound, Array) and bound.base is not None and bound.rank == len(shape):
            if bound.kind.dtype is not scalar.kind.dtype and _has_sizes(frame, bound) is None:
                raise refusals.written_or_new(target.value)  # of which type is it
        node = ctx.node(where.name, shape, scalar.kind.dtype)
        frame.names[target.value.id] = ctx.whole(node, target.span)
        access = Access(node, tuple(var(letters.outer[name]) for name in where.letters))
        kind = Kind(node.dtype)
    else:
        read = where.place.base
        assert read is not None
        access, kind = Access(read.node, read.index), where.place.kind
        if where.place.part is not None:
            if reduced.ranges or op is not None and any(isinstance(i, Dynamic) for i in read.index):
                raise accumulate.part_accumulated(target.span, target.value.span.text)
            number = part_updated(where.place, scalar, op, value.span)
            ctx.emit(Assign(access, None, False, number, free, span=span))
            return
    shown: Value = scalar
    if op is None:
        require_storable(scalar.kind, kind.dtype, shown, value.span)
        ctx.emit(Assign(access, None, False, cast(scalar.expr, kind.dtype), free, span=span))
        return
    accumulate.accumulate(ctx, access, kind, op, scalar, free, reduced, span)


def scalar_statement(frame: Frame, value: s.Expr, span: Span) -> Scalar:
    """Return the number of an expression whose letters are all reduced: `sum(x[i] * y[i])`.

    CdSyntaxError CD0519 where a letter stays free.
    """
    ctx = frame.ctx
    outer = frame.letters
    letters = frame.letters = Letters(on_left=False)
    held = ctx.uses
    try:
        with ctx.block():
            count = len(ctx.locals)
            ctx.uses = []
            _value(frame, value)
            ctx.uses = None
            del ctx.locals[count:]
        if letters.right:
            name, symbol = next(iter(letters.right.items()))
            raise error(
                "CD0519", CdSyntaxError, f"index `{name}` is not reduced, and there is no array to "
                "the left for it", letters.spans[symbol],
                helps=(f"reduce it: `sum[{name}](...)`", f"or keep it: `y[{name}] = ...`"),
            )  # fmt: skip
        letters.opened = {}
        _settle_sizes(frame)
        return _value(frame, value)
    finally:
        frame.letters, ctx.uses = outer, held
