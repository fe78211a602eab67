"""Reductions of index notation: `sum(e)`, `sum[k](e)`, `max[r in range(3), k <= i](e)`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from ....base.diagnostic import CdNameError, CdSyntaxError, CdTypeError, Span
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Reduce
from ....lowering.ir.indexing import Affine, Range, Symbol, const, multiply, var
from ....lowering.ir.ops import ARGMAX, ARGMIN, OPS
from ...numpy import table
from ...source import surface as s
from ...values.arrays import describe
from ...values.builder import Context, Use, error
from ...values.fix_hints import WAYS_OUT
from ...values.range_analysis import Known, extreme
from ...values.types import Kind, both, cast, truth
from ...values.values import Scalar, Static, Value
from ..expressions import evaluate, tested
from ..names import is_letter, known_letter
from ..operators import as_affine, value_of
from ..scope import Frame, Letters, names_in, new_letter
from .range_inference import bounded, no_range, pinned, tighten, undecided

_OPS = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min", "any": "or",
        "all": "and"}  # fmt: skip


def reduce_letters(
    frame: Frame,
    name: str,
    argument: s.Expr,
    binders: tuple[s.Expr, ...] | None,
    accumulate: Kind | None,
    span: Span,
) -> Value:
    """Return a reduction over index letters; the argument's value where it is not one number.

    Without binders it reduces over the letters that are not on the left; CdSyntaxError CD0509
    where it binds none.
    """
    ctx, letters = frame.ctx, frame.letters
    assert letters is not None
    own = letters.inner.setdefault(letters.place(), {})
    letters.scopes.append((own, binders is None))
    domain, known, conditions, uses = ctx.domain, ctx.known, ctx.conditions, ctx.uses
    start = 0 if uses is None else len(uses)
    try:
        given, compared = _binders(frame, binders or (), own)
        tests: list[Expr] = []
        if ctx.uses is None:
            wide = [given.get(x) or Range(x, const(0), letters.extents[x]) for x in own.values()]
            for part in (*compared, argument):  # a test is asked where those before it hold
                ranges, rest = tighten(wide, tests, known)
                ctx.domain, ctx.known = (*domain, *ranges), known.with_ranges(ranges)
                test = both(*rest)
                with nullcontext() if test is None else ctx.under(test):
                    if part is argument:
                        value = value_of(evaluate(frame, argument))
                    else:
                        tests.append(_test(frame, part))
        else:
            tests += (_test(frame, binder) for binder in compared)
            value = value_of(evaluate(frame, argument))
            _collect_extents(letters, own, given, tests, ctx.uses[start:], known)
            ranges, test = tuple(Range(x, const(0), const(1)) for x in own.values()), None
    finally:
        letters.scopes.pop()
        ctx.domain, ctx.known, ctx.conditions = domain, known, conditions
    if not own:
        if isinstance(value, Scalar | Static):
            raise _binds_nothing(name, argument, span)
        return value
    if binders is None:
        for key in own:
            letters.implicit.setdefault(key, span)
    if not isinstance(value, Scalar):
        raise error(
            "CD0416", CdTypeError, f"`{name}` over index letters needs one number per point", span,
            label=f"this is {describe(value)}",
        )  # fmt: skip
    over = Domain(ranges, test)
    if test is not None and name in ("max", "min") and value.kind.dtype.kind in "iu":
        _require_point(ctx, name, over, span)
    return _reduction(name, value, over, accumulate, span)


def _require_point(ctx: Context, name: str, over: Domain, span: Span) -> None:
    """Require that there is a point for which a guard holds, as integers have no limit."""
    found = Reduce(OPS["or"], over, Const(True, dtypes.bool_), dtypes.bool_, span=span)
    message = f"`{name}` of no elements has no value"
    fault = Fault("CD0603", "CdValueError", message, WAYS_OUT["CD0603"])
    ctx.check(found, fault, (), span, Domain(ctx.domain))


def _collect_extents(
    letters: Letters,
    own: Mapping[str, Symbol],
    given: Mapping[Symbol, Range],
    tests: list[Expr],
    uses: list[Use],
    known: Known,
) -> None:
    """Find how far each letter of a reduction runs; CdIndexError CD0604 where nothing tells."""
    for x in own.values():
        extent = given[x].hi if x in given else pinned(x, uses, known)
        letters.open_pairs += undecided(x, uses, known)
        if extent is None:
            extent = bounded(x, tests, letters.extents, known)
        if extent is None:
            raise no_range(x, letters.spans[x], uses)
        letters.extents[x] = extent


def _binds_nothing(name: str, argument: s.Expr, span: Span) -> CdSyntaxError:
    made = error(
        "CD0509", CdSyntaxError,
        f"`{name}(...)` reduces over nothing: every index in it is on the left", span,
        helps=(f"name the index to reduce over, one that is not on the left: `{name}[k](...)`",),
    )  # fmt: skip
    assert isinstance(made, CdSyntaxError)
    return made


def _binders(
    frame: Frame, binders: tuple[s.Expr, ...], own: dict[str, Symbol]
) -> tuple[dict[Symbol, Range], list[s.Compare]]:
    """Declare the letters of binders; return their given ranges and the tests among them."""
    given: dict[Symbol, Range] = {}
    tests: list[s.Compare] = []
    for binder in binders:
        match binder:
            case s.Name():
                _declare(frame, binder, own)
            case s.Compare((s.Name() as name, iterable), ("in",)):
                x = _declare(frame, name, own)
                lo, hi = _range_of(frame, iterable)
                given[x] = Range(x, lo, hi)
            case s.Compare():
                found = _compared(frame, binder, own)
                if not found:
                    raise error(
                        "CD0510", CdSyntaxError, "a binder's comparison names no new index letter",
                        binder.span, helps=("write for example `sum[k < j](...)`",),
                    )  # fmt: skip
                tests.append(binder)
            case _:
                raise error(
                    "CD0510",
                    CdSyntaxError,
                    f"`{binder.span.text}` is no binder: an index, `k in range(n)`, or a "
                    "comparison",
                    binder.span,
                )
    return given, tests


def _test(frame: Frame, binder: s.Expr) -> Expr:
    test = tested(frame, binder)
    if isinstance(test, Scalar):
        return truth(test.expr)
    return Const(bool(test.value), dtypes.bool_)


def _declare(frame: Frame, name: s.Name, own: dict[str, Symbol]) -> Symbol:
    letters = frame.letters
    assert letters is not None
    if not is_letter(frame, name):
        raise error(
            "CD0204", CdNameError, f"`{name.id}` has a value here and cannot be an index letter",
            name.span, helps=("choose another letter",),
        )  # fmt: skip
    if name.id in letters.outer:
        raise error(
            "CD0511", CdSyntaxError,
            f"`{name.id}` is on the left and cannot be reduced over as well", name.span,
            helps=("use another letter inside the reduction",),
        )  # fmt: skip
    if name.id not in own:
        own[name.id] = new_letter(frame.ctx, name.id)
        letters.spans[own[name.id]] = name.span
    return own[name.id]


def _compared(frame: Frame, binder: s.Compare, own: dict[str, Symbol]) -> list[Symbol]:
    """Declare the letters of a comparison that are new here; return those it is about.

    None of them may be used outside of the reduction as well: which of the two is older is no
    question for a reader.
    """
    found: list[Symbol] = []
    letters = frame.letters
    assert letters is not None
    for name in names_in(binder):
        if not is_letter(frame, name):
            continue
        known = known_letter(frame, name.id)
        if known is None or name.id in own:
            found.append(_declare(frame, name, own))
            letters.implicit.setdefault(name.id, name.span)
    return found


def _range_of(frame: Frame, iterable: s.Expr) -> tuple[Affine, Affine]:
    """Return the ends of `range(n)` or `range(lo, hi)` in a binder."""
    if isinstance(iterable, s.Call):
        function = evaluate(frame, iterable.function)
        if function == Static(range) and 1 <= len(iterable.args) <= 2 and not iterable.keywords:
            ends = [as_affine(value_of(evaluate(frame, arg))) for arg in iterable.args]
            for end in ends:
                if end is not None:
                    frame.ctx.prefer_static(end)
            if all(end is not None for end in ends):
                lo, hi = (const(0), ends[0]) if len(ends) == 1 else ends
                assert lo is not None and hi is not None
                return lo, hi
    raise error(
        "CD0510", CdSyntaxError, "a binder's range is `range(n)` or `range(lo, hi)` of integers",
        iterable.span,
    )  # fmt: skip


def _reduction(
    name: str, value: Scalar, domain: Domain, accumulate: Kind | None, span: Span
) -> Scalar:
    kind = value.kind
    if name in ("argmin", "argmax"):
        if kind.dtype.kind == "c":
            text = f"`{name}` is not defined for complex numbers"
            raise error("CD0404", CdTypeError, text, span)
        op = ARGMIN if name == "argmin" else ARGMAX
        expr = cast(value.expr, kind.dtype.compute)
        position = const(0)
        for at, r in enumerate(domain.ranges):
            longest = extreme(r.hi, domain.ranges[:at], upwards=True)
            position = multiply(position, longest) + var(r.symbol)
        made = Reduce(op, domain, expr, dtypes.int64, position, span)
        return Scalar(made, Kind(dtypes.int64))
    row = OPS[_OPS[name]]
    if name in ("any", "all"):
        return Scalar(
            Reduce(row, domain, truth(value.expr), dtypes.bool_, span=span), Kind(dtypes.bool_)
        )
    if accumulate is not None:
        kind = accumulate
    elif name == "mean":
        kind = kind if kind.dtype.kind in "fc" else Kind(dtypes.float64)
    elif name in ("sum", "prod") and not kind.weak:
        kind = Kind(kind.dtype.summed)
    if kind.dtype.kind not in row.admits:
        raise error("CD0404", CdTypeError, f"`{name}` is not defined for {kind}", span)
    dtype = kind.dtype.compute
    total = Reduce(row, domain, cast(value.expr, dtype), dtype, span=span)
    if name != "mean":
        return Scalar(total, kind)
    return Scalar(Apply(OPS["div"], (total, cast(_count(domain, span), dtype)), dtype), kind)


def _count(domain: Domain, span: Span) -> Expr:
    """Return how many points a domain has: a product of extents, or counted where it must be."""
    own = set(domain.symbols)
    nested = any((r.lo.symbols() | r.hi.symbols()) & own for r in domain.ranges)
    if domain.where is None and not nested:
        total = const(1)
        for r in domain.ranges:
            total = multiply(total, r.hi - r.lo)
        return Position(total)
    one = Position(const(1))
    return Reduce(OPS["add"], domain, one, dtypes.int64, span=span)


def reduction_name(value: Value) -> str | None:
    """Return the name of a reduction where a called value is one."""
    return table.reduction_of(value.value) if isinstance(value, Static) else None
