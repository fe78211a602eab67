"""Declarations of locals and contracts of parameters: `t: f32[n, m]`."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

from ...base.diagnostic import CdSyntaxError, CdTypeError, Span  # fmt: skip
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Position
from ...lowering.ir.indexing import Affine
from ..source import surface as s
from ..values.array_types import ArrayType
from ..values.arrays import describe
from ..values.builder import error
from ..values.call_site import Site, dtype_object, extent_of
from ..values.stores import assign
from ..values.types import WEAK_INT
from ..values.values import Array, Scalar, Static, Value
from .bindings import bind
from .expressions import evaluate
from .operators import as_affine, value_of
from .scope import Frame


def declare(frame: Frame, statement: s.Declare) -> None:
    """Elaborate `t: f32[n, m]`: a local of zeros, or the check of a parameter's contract.

    CdSyntaxError CD0143 for another target than a name.
    """
    target, annotation = statement.target, contract(frame, statement.annotation)
    if not isinstance(target, s.Name):
        raise error("CD0143", CdSyntaxError, "a declaration names one array", target.span)
    dtype, shape = declared(frame, annotation)
    bound = frame.names.get(target.id)
    if target.id in frame.parameters and isinstance(bound, Array):
        check_contract(frame, target.id, bound, dtype, shape, statement.span)
        return
    node = frame.ctx.node(target.id, shape, dtype)
    array = frame.ctx.whole(node, statement.span)
    if frame.in_loop or bound is not None:
        assign(frame.ctx, array, Static(0), statement.span)
    if shape and target.id not in frame.slots:
        frame.names[target.id] = array
    elif shape:
        bind(frame, target.id, array, statement.span)
    else:
        bind(frame, target.id, Scalar(array.body, array.kind), statement.span)


def declared(frame: Frame, annotation: s.Expr) -> tuple[DType, tuple[Affine, ...]]:
    """Return the element type and shape of `f32[n, m]`. CdTypeError CD0420 for anything else."""
    base = annotation.value if isinstance(annotation, s.Subscript) else annotation
    value = evaluate(frame, base)
    dtype = dtype_of(value)
    if dtype is None:
        raise error(
            "CD0420", CdTypeError, f"`{annotation.span.text}` declares no array", annotation.span,
            helps=("write the element type and the sizes: `f32[n, m]`",),
        )  # fmt: skip
    sizes: list[Affine] = []
    for item in annotation.items if isinstance(annotation, s.Subscript) else ():
        declared_size = frame.sizes.get(item.id) if isinstance(item, s.Name) else None
        size = declared_size or as_affine(value_of(evaluate(frame, item)))
        if size is None:
            raise error(
                "CD0420", CdTypeError, "a declared size is an integer", item.span,
                helps=("write sizes one by one, without quotes: `f32[n, m]`",),
            )  # fmt: skip
        as_number = Scalar(Position(size), WEAK_INT)
        sizes.append(extent_of(Site(frame.ctx, item.span), as_number, "a declared size"))
    return dtype, tuple(sizes)


def contract(frame: Frame, annotation: s.Expr) -> s.Expr:
    """Return the array type of an annotation, `f32[n, m]`, itself given, captured by name, or as
    the last item of `Annotated[T, f32[n, m]]`; other annotations unchanged."""
    match annotation:
        case s.Subscript(function, [_, *_, last]) if _captured_object(frame, function) is Annotated:
            return contract(frame, last)
        case s.Name() | s.Attribute():
            captured = _captured_object(frame, annotation)
            if get_origin(captured) is Annotated:
                captured = captured.__metadata__[-1]
            if isinstance(captured, ArrayType) and captured.sizes is not None:
                evaluate(frame, annotation)  # a guard of later calls
                return _annotation_of(captured, annotation.span)
    return annotation


def _captured_object(frame: Frame, expr: s.Expr) -> Any:
    """Return the object of a captured name or of its attribute; None for other expressions."""
    match expr:
        case s.Name(name) if name not in frame.locals:
            return frame.lookup(name)
        case s.Attribute(s.Name(name), attribute) if name not in frame.locals:
            return getattr(frame.lookup(name), attribute, None)
        case _:
            return None


def _annotation_of(kind: ArrayType, span: Span) -> s.Expr:
    """Return the annotation, as an expression, of an array type with sizes."""
    items: list[s.Expr] = []
    for size in kind.sizes or ():
        match size:
            case None:
                items.append(s.Slice(None, None, None, span))
            case int():
                items.append(s.Literal(size, span))
            case str():
                items.append(s.Name(size, span))
    return s.Subscript(s.Name(kind.dtype.short, span), tuple(items), span)


def dtype_of(value: Value) -> DType | None:
    """Return the element type that a value stands for, None for other values."""
    return dtype_object(value.value) if isinstance(value, Static) else None


def check_contract(
    frame: Frame, name: str, array: Array, dtype: DType, shape: tuple[Affine, ...], span: Span
) -> None:
    """Refuse an argument of another type or rank than declared; emit checks of its sizes.

    CdTypeError CD0421 for the type and rank.
    """
    if array.kind.dtype is not dtype or array.rank != len(shape):
        declared_type = f"{dtype.short}[{', '.join(map(str, shape))}]"
        message = f"`{name}` is declared {declared_type} and given {describe(array)}"
        raise error("CD0421", CdTypeError, message, span)
    for axis, (actual_size, declared_size) in enumerate(zip(array.shape, shape, strict=True)):
        what = f"axis {axis} of `{name}` does not have its declared size"
        frame.ctx.equal_extents(actual_size, declared_size, what, span)
