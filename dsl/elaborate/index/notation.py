"""Elaboration of index notation: ranges of index variables inferred, one assignment emitted.

A statement is elaborated twice. The first pass only collects the uses of index variables as
subscripts, from which their ranges are inferred (`range_inference`); in the second every access is
proven in bounds or checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from ....base.diagnostic import CdIndexError, CdNameError, CdSyntaxError, CdTypeError, Label, Span
from ....base.lazy_import import lazy_modules
from ....lowering.ir.assignments import Access, Assign, Statement
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
from ..bindings import bind
from ..expressions import evaluate, subscript_value, tested
from ..names import is_letter
from ..operators import value_of
from ..scope import Frame, Guard, Letters
from .point_writes import at_points
from .range_inference import bounded, inferred, no_range, pinned, tighten, undecided
from .subscript_rules import refuse_captured_letters

if TYPE_CHECKING:
    from ...numpy.primitives import accumulate
    from . import refusals
else:  # few programs need these modules
    accumulate, refusals = lazy_modules(__package__, "...numpy.primitives.accumulate", ".refusals")


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a statement: an element, or an array still to be defined (element None)."""

    element: Array | None
    name: str
    letters: tuple[str, ...]


def index_statement(frame: Frame, target: s.Expr, op: Op | None, value: s.Expr, span: Span) -> None:
    """Emit one statement of index notation, `target op= value`.

    CdSyntaxError CD0512 where the target is no subscript.
    """
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
    op, value = _as_update(frame, target, op, value)
    ctx = frame.ctx
    letters, outer_uses = Letters(), ctx.uses
    frame.letters = letters
    try:
        fresh = _may_define(frame, target, op)
        count = len(ctx.locals)
        with ctx.block(), at_points(ctx, span):
            ctx.uses = []
            _elaborate_target(frame, target, fresh)
            letters.on_left = False
            ctx.uses = []
            tests = _guard_tests(frame, span)
            _elaborate_target(frame, target, fresh)
            _elaborate_value(frame, value)
            uses, ctx.uses = ctx.uses, None
        del ctx.locals[count:]
        _pin_extents(frame, uses)
        letters.opened = {}
        _check_equal_sizes(frame)  # equal sizes decide whether the array is overwritten
        fresh = _infer_extents(frame, target, uses, tests, fresh)
        _emit_statement(frame, target, op, value, span, fresh)
    finally:
        frame.letters, ctx.uses = None, outer_uses


def _as_update(
    frame: Frame, target: s.Subscript, op: Op | None, value: s.Expr
) -> tuple[Op | None, s.Expr]:
    """Return `t[...] = max(t[...], e)` as the update `t[...] max= e`, others unchanged."""
    if op is not None:
        return op, value
    match value:
        case s.Logical(name, (first, second)) if first == target:
            return OPS[name], second
        case s.Call(function, (first, second), ()) if first == target:
            callee = (
                evaluate(frame, function) if isinstance(function, s.Name | s.Attribute) else None
            )
            if isinstance(callee, Static):
                op_name = table.elementwise_name(callee.value)
                if op_name is not None and OPS[op_name].neutral is not None:
                    return OPS[op_name], second
    return op, value


def _may_define(frame: Frame, target: s.Subscript, op: Op | None) -> bool:
    """Whether the target may be a new array: a local that is unset, or fully overwritten.

    Under a guard on index variables the statement writes a part of the existing array.
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
    if name in frame.slots:  # loop-carried: it has to stay in its slot
        return False
    if frame.guards and isinstance(frame.names[name], Array):
        return False
    return len(plain) == len(target.items) == len(set(plain))


def _elaborate_target(frame: Frame, target: s.Subscript, fresh: bool) -> _Target:
    """Return the target, of a new array only its name and index variables.

    CdNameError CD0205 for an unset name with other subscripts than plain index variables.
    """
    name = target.value.span.text
    if fresh:
        indices: list[str] = []
        refuse_captured_letters(frame, target, True)
        for item in target.items:
            if isinstance(item, s.Name) and is_letter(frame, item):
                evaluate(frame, item)
                indices.append(item.id)
        if len(indices) == len(target.items) and len(set(indices)) == len(indices):
            return _Target(None, name, tuple(indices))
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
        element = subscript_value(frame, base, target, target.value)
    except CdIndexError as problem:
        raise refusals.of_writing(problem, target.span) from None
    if not isinstance(element, Array) or element.base is None or element.sealed:
        raise refusals.not_assignable(target, base, element)
    if element.rank:
        assert isinstance(base, Array)
        raise refusals.partial_target(target, base, element.rank)
    return _Target(element, name, ())


def _elaborate_value(frame: Frame, value: s.Expr) -> Scalar:
    """Return the number on the right side. CdTypeError CD0513 where it is an array."""
    result = value_of(evaluate(frame, value))
    if isinstance(result, Array):
        operands = refusals.partials(value)
        raise error(
            "CD0513",
            CdTypeError,
            f"`{value.span.text}` is a whole array of rank {result.rank} in a statement "
            "with index letters",
            operands[0].span if operands else value.span,
            label=f"this is {describe(result)}",
            helps=("index every axis: `y[i, j] = x[i, j]`", "or use slices only: `y[:] = x`"),
        )
    return as_scalar(result, value.span, "the right side")


def _require_static_factors(ctx: Context, letter: Symbol, uses: list[Use]) -> None:
    """Require static coefficients of an index variable whose range only these uses can give."""
    for use in uses:
        if isinstance(use.index, Affine) and letter in use.index.symbols():
            for factor in factors(use.index):
                if factor.symbols() <= ctx.origin.keys():
                    ctx.require_static_parameters(factor)


def _pin_extents(frame: Frame, uses: list[Use]) -> None:
    """Set the extents of index variables with plain uses; collect pairs that have to agree."""
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    for x in (*letters.right.values(), *letters.outer.values()):
        extent = pinned(x, uses, ctx.assumptions)
        letters.open_pairs += undecided(x, uses, ctx.assumptions)
        if extent is not None:
            letters.extents[x] = extent


def _infer_extents(
    frame: Frame, target: s.Subscript, uses: list[Use], tests: list[Expr], fresh: bool
) -> bool:
    """Infer the other extents of index variables; return whether the target is a new array.

    CdIndexError CD0604 where a range cannot be inferred, CdSyntaxError CD0514 for an index variable
    that is both reduced and free.
    """
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    bound = isinstance(target.value, s.Name) and frame.names.get(target.value.id)
    if fresh and isinstance(bound, Array):
        assert isinstance(target.value, s.Name)
        fresh = not _is_overwritten(frame, target.value, bound)
        if not fresh:
            letters.extents.update(zip(letters.outer.values(), bound.shape, strict=True))
    for x in letters.outer.values():
        if x in letters.extents:
            continue
        extent = bounded(x, tests, letters.extents, ctx.assumptions)
        if extent is None and fresh:
            _require_static_factors(ctx, x, uses)
            extent = inferred(x, uses, letters.extents, ctx.assumptions)
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


def _is_overwritten(frame: Frame, name: s.Name, bound: Array) -> bool:
    """Whether a statement over a whole array overwrites the one that its name is bound to.

    Otherwise it defines a new array, of other sizes. CdShapeError CD0301 where that is decided at
    run time only, and the bound array has other names or is an input.
    """
    letters = frame.letters
    assert letters is not None
    if bound.rank != len(letters.outer) or bound.base is None:
        return False
    same_sizes = _has_sizes(frame, bound)
    if same_sizes is not None:
        return same_sizes
    node = bound.base.node
    inputs = (*frame.inputs.nodes.values(), *frame.inputs.fleeting.values())
    other_names = (at for at in looking_at(frame, node) if at != (frame, name.id))
    if node in inputs or next(other_names, None) is not None:
        raise refusals.written_or_new(name)
    return False


def _has_sizes(frame: Frame, bound: Array) -> bool | None:
    """Whether an array has the extents of the index variables on the left; None where dynamic."""
    letters, assumptions = frame.letters, frame.ctx.assumptions
    assert letters is not None
    sizes = [letters.extents.get(x) for x in letters.outer.values()]
    pairs = [(a, b) for a, b in zip(sizes, bound.shape, strict=True) if a is not None]
    if all(assumptions.equal(a, b) for a, b in pairs):
        return True
    return False if any(assumptions.differ(a, b) for a, b in pairs) else None


def _check_equal_sizes(frame: Frame) -> None:
    """Emit run-time checks that the sizes under one index variable are equal, where not proven."""
    letters = frame.letters
    assert letters is not None
    for first, second in letters.open_pairs:
        axes = (f"axis {use.axis} of `{use.name}`" for use in (first, second))
        what = f"an index runs over {' and '.join(axes)}"
        frame.ctx.equal_extents(first.extent, second.extent, what, second.span)


def _guard_tests(frame: Frame, span: Span) -> list[Expr]:
    """Return the tests of the enclosing guards, over the statement's index variables.

    CdSyntaxError CD0515 for a guard on an index variable that is not on the left.
    """
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
    """Return the test of a guard, read from its mask where it has one.

    Of the index variables on the left it sees those of the guard alone: what else a reduction in
    it ranges over is its own, whatever statements are inside.
    """
    letters = frame.letters
    assert letters is not None
    if guard.mask is not None:
        index = tuple(var(letters.outer[name]) for name in guard.names)
        for axis, at in enumerate(index):
            extent = guard.mask.shape[axis]
            frame.ctx.require(at, extent, axis, guard.test.span.text, guard.test.span)
        expr = guard.mask.at(index)
    else:
        outer, implicit = letters.outer, letters.implicit
        letters.outer, letters.implicit = {name: outer[name] for name in guard.names}, {}
        try:
            with at_points(frame.ctx, guard.test.span):
                test = tested(frame, guard.test)
        finally:
            letters.outer, letters.implicit = outer, implicit
        expr = _test_expr(test)
    return negate(expr) if guard.negated else expr


def _test_expr(test: Scalar | Static) -> Expr:
    return test.expr if isinstance(test, Scalar) else TRUE if test.value else FALSE


def elaborated_test(
    frame: Frame, test: s.Expr, names: tuple[str, ...]
) -> tuple[Expr, list[Statement]]:
    """Return a guard's test over its index variables, and the statements that compute it.

    Neither is emitted: the ranges of the index variables are those of the statements inside.
    """
    ctx = frame.ctx
    letters, outer_uses, count = Letters(), ctx.uses, len(ctx.locals)
    frame.letters, ctx.uses = letters, []
    try:
        with ctx.block() as out:
            for name in names:
                evaluate(frame, s.Name(name, test.span))
            letters.on_left = False
            expr = _test_expr(tested(frame, test))
    finally:
        frame.letters, ctx.uses = None, outer_uses
        del ctx.locals[count:]
    return expr, out


def _emit_statement(
    frame: Frame, target: s.Subscript, op: Op | None, value: s.Expr, span: Span, fresh: bool
) -> None:
    """Elaborate the statement in the inferred domain, and emit the assignment.

    CdSyntaxError CD0516 for an index variable only on the right of a plain `=`.
    """
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    left_ranges = [Range(x, const(0), letters.extents[x]) for x in letters.outer.values()]
    reduced = [Range(x, const(0), letters.extents[x]) for x in letters.right.values()]
    if reduced and op is None:
        raise refusals.implied_sum(frame, target, value, [r.symbol.name for r in reduced])
    assumptions, domain, conditions = ctx.assumptions, ctx.domain, ctx.conditions
    try:
        ctx.domain = (*left_ranges, *reduced)
        ctx.assumptions = assumptions.with_ranges(ctx.domain)
        tests = _guard_tests(frame, span)
        free_ranges, conditions_left = tighten(left_ranges, tests, assumptions)
        ctx.domain = (*free_ranges, *reduced)
        ctx.assumptions = assumptions.with_ranges(ctx.domain)
        predicate = both(*conditions_left)
        if predicate is None:
            _emit_assignment(
                frame, target, op, value, span, Domain(free_ranges), Domain(tuple(reduced)), fresh
            )
        else:
            with ctx.under(predicate):
                _emit_assignment(
                    frame,
                    target,
                    op,
                    value,
                    span,
                    Domain(free_ranges, predicate),
                    Domain(tuple(reduced)),
                    fresh,
                )
    finally:
        ctx.assumptions, ctx.domain, ctx.conditions = assumptions, domain, conditions


def _bind_new(frame: Frame, target: s.Name, array: Array) -> None:
    """Bind a name to a new array; refused, or peeled, where a loop carries a number or tuple."""
    if isinstance(frame.slots.get(target.id, array), Array):
        frame.names[target.id] = array
    else:
        bind(frame, target.id, array, target.span)


def _emit_assignment(
    frame: Frame,
    target: s.Subscript,
    op: Op | None,
    value: s.Expr,
    span: Span,
    free: Domain,
    reduced: Domain,
    fresh: bool,
) -> None:
    """Emit the assignment or update over a domain; a new array is bound to the target's name."""
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    written = _elaborate_target(frame, target, fresh)
    scalar = _elaborate_value(frame, value)
    if written.element is None:
        assert isinstance(target.value, s.Name)
        shape = tuple(letters.extents[letters.outer[name]] for name in written.letters)
        bound = frame.names.get(target.value.id)
        if isinstance(bound, Array) and bound.base is not None and bound.rank == len(shape):
            if bound.kind.dtype is not scalar.kind.dtype and _has_sizes(frame, bound) is None:
                raise refusals.written_or_new(target.value)  # the element type would depend on it
        node = ctx.node(written.name, shape, scalar.kind.dtype)
        _bind_new(frame, target.value, ctx.whole(node, target.span))
        access = Access(node, tuple(var(letters.outer[name]) for name in written.letters))
        kind = Kind(node.dtype)
    else:
        base = written.element.base
        assert base is not None
        access, kind = Access(base.node, base.index), written.element.kind
        if written.element.part is not None:
            if reduced.ranges or op is not None and any(isinstance(i, Dynamic) for i in base.index):
                raise accumulate.part_accumulated(target.span, target.value.span.text)
            number = part_updated(written.element, scalar, op, value.span)
            ctx.emit(Assign(access, None, False, number, free, span=span))
            return
    shown: Value = scalar
    if op is None:
        require_storable(scalar.kind, kind.dtype, shown, value.span)
        ctx.emit(Assign(access, None, False, cast(scalar.expr, kind.dtype), free, span=span))
        return
    accumulate.accumulate(ctx, access, kind, op, scalar, free, reduced, span)


def scalar_statement(frame: Frame, value: s.Expr, span: Span) -> Scalar:
    """Return the number of an expression without free index variables: `sum(x[i] * y[i])`.

    CdSyntaxError CD0519 where one is free.
    """
    ctx = frame.ctx
    outer = frame.letters
    letters = frame.letters = Letters(on_left=False)
    outer_uses = ctx.uses
    try:
        with ctx.block():
            count = len(ctx.locals)
            ctx.uses = []
            _elaborate_value(frame, value)
            ctx.uses = None
            del ctx.locals[count:]
        if letters.right:
            name, symbol = next(iter(letters.right.items()))
            raise refusals.unreduced(name, letters.spans[symbol])
        letters.opened = {}
        _check_equal_sizes(frame)
        return _elaborate_value(frame, value)
    finally:
        frame.letters, ctx.uses = outer, outer_uses
