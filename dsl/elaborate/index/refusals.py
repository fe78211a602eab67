"""Diagnostics of index notation: the errors and helps for statements that are refused."""

from __future__ import annotations

from dataclasses import replace

from ....base.diagnostic import (
    CdError,
    CdIndexError,
    CdShapeError,
    CdSyntaxError,
    CdTypeError,
    Span,
)
from ...source import surface as s
from ...values.arrays import describe
from ...values.builder import error
from ...values.types import kind_of_number
from ...values.values import Array, Group, Scalar, Static, Value
from ..bindings import is_number
from ..scope import Frame, parts


def partial_target(target: s.Subscript, base: Array, left: int) -> CdSyntaxError:
    """Return the error for a target with fewer subscripts than axes."""
    name, given = target.value.span.text, ", ".join(item.span.text for item in target.items)
    unused = [x for x in "ijklmnpqrs" if x not in given][: base.rank - len(target.items)]
    all_indices = ", ".join([given, *unused])
    problem = error(
        "CD0513", CdSyntaxError,
        f"`{target.span.text}` leaves {left} of {base.rank} axes without "
        "an index", target.span, label=f"`{name}` is {describe(base)}",
        helps=(f"index every axis, on both sides: `{name}[{all_indices}] = x[{all_indices}]`",
               f"or use no letters at all: `{name}[:] = x`"),
    )  # fmt: skip
    assert isinstance(problem, CdSyntaxError)
    return problem


def partials(value: object) -> list[s.Name | s.Subscript]:
    """Return the names and subscripts that are the operands of an expression."""
    if isinstance(value, s.Name | s.Subscript):
        return [value]
    return [operand for part in parts(value) for operand in partials(part)]


_REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")


def implied_sum(
    frame: Frame, target: s.Subscript, value: s.Expr, names: list[str]
) -> CdSyntaxError:
    """Return the error for an index variable that is only on the right of a plain `=`."""
    listed = " and ".join(f"`{name}`" for name in names)
    left, right = target.span.text, value.span.text
    sum_text = f"sum({right})"
    match value:
        case s.Call(s.Attribute(inner, name), (), ()) if name in _REDUCTIONS:
            sum_text = f"{name}({inner.span.text})"
            right = inner.span.text if name == "sum" else right
    problem = error(
        "CD0516", CdSyntaxError,
        f"index {listed} is only on the right, and `=` does not sum over it", value.span,
        helps=(f"to sum into a fresh value: `{left} = {sum_text}`",
               f"to accumulate: `{left} += {right}`"),
    )  # fmt: skip
    assert isinstance(problem, CdSyntaxError)
    return problem


def not_assignable(target: s.Subscript, base: Value, value: Value) -> CdTypeError:
    """Return the error for a target that is no location; it names `pad`, `clamp` or `wrap`."""
    calls = [item.function.span.text for item in target.items if isinstance(item, s.Call)]
    edges = [name for name in calls if name in ("pad", "clamp", "wrap")]
    if edges:
        problem = error(
            "CD0451", CdTypeError,
            f"`{edges[0]}` says what is read outside of an array, and nothing is written there",
            target.span, label=f"`{target.value.span.text}` is {describe(base)}",
            helps=("write where the index is inside: `if i > 0:` above `y[i - 1] = x[i]`",),
        )  # fmt: skip
    else:
        text = f"`{target.span.text}` is no place to assign to"
        problem = error(
            "CD0451", CdTypeError, text, target.span, label=f"this is {describe(value)}"
        )
    assert isinstance(problem, CdTypeError)
    return problem


def unreduced(name: str, span: Span) -> CdError:
    """Return the error for an index variable of an expression that has to be one number."""
    return error(
        "CD0519", CdSyntaxError, f"index `{name}` is not reduced, and there is no array to "
        "the left for it", span,
        helps=(f"reduce it: `sum[{name}](...)`", f"or keep it: `y[{name}] = ...`"),
    )  # fmt: skip


def unknown_key(e: s.Subscript, base: Value, key: Value, span: Span) -> CdError:
    """Return CdTypeError CD0413 for a run-time key of what is no array."""
    match base:
        case Group(members):
            are_numbers = all(map(is_number, members))
        case Static(tuple() | list() as items):
            are_numbers = all(kind_of_number(item) is not None for item in items)
        case _:
            return error("CD0413", CdTypeError, "this key has to be known when compiling", span)
    owner, text = e.value.span.text, e.span.text
    if isinstance(key, Scalar) and key.kind.dtype.kind not in "iu":
        way_out = f"convert it to an integer: `int({span.text})`"
    elif are_numbers:
        way_out = f"make an array of the numbers: `np.array({owner}){text[len(owner) :]}`"
    else:
        way_out = "test the position, and use each item in a branch: `if k == 0: ...`"
    message = "this position has to be known when compiling"
    return error("CD0413", CdTypeError, message, span, helps=(way_out,))


_INSIDE = "restrict the index: an `if` on it, a binder's range, or a slice"


def of_writing(problem: CdIndexError, span: Span) -> CdIndexError:
    """Return an error about an index of a target, reworded from reads to writes."""
    (diagnostic,) = problem.diagnostics
    if diagnostic.code != "CD0602" or diagnostic.labels[0].span != span:
        return problem
    message = diagnostic.message.replace("is read at", "is written at", 1)
    return CdIndexError(replace(diagnostic, message=message, helps=(_INSIDE,)))


def written_or_new(name: s.Name) -> CdError:
    """Return the error of a target that is overwritten where it has the extents of the index
    variables, and a new array otherwise, where that is decided at run time."""
    return error(
        "CD0301",
        CdShapeError,
        f"it is known at run time only whether `{name.id}` is written, as where it has the sizes "
        "of the letters, or becomes a new array",
        name.span,
        helps=(
            f"write `{name.id}[:] = ...` to write it",
            "or give the new array a name of its own",
        ),
    )
