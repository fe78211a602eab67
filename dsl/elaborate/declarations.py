"""Declarations and contracts: `t: f32[n, m]` for a local, or for a parameter."""

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
    """`t: f32[n, m]` makes zeros, or checks a parameter; a plain Python annotation says nothing."""
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
    if shape:
        frame.names[target.id] = array
    else:
        bind(frame, target.id, Scalar(array.body, array.kind), statement.span)


def declared(frame: Frame, annotation: s.Expr) -> tuple[DType, tuple[Affine, ...]]:
    """Return the type and shape that `f32[n, m]` declares. CdTypeError CD0420 for anything else."""
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
        named = frame.sizes.get(item.id) if isinstance(item, s.Name) else None
        size = named or as_affine(value_of(evaluate(frame, item)))
        if size is None:
            raise error(
                "CD0420", CdTypeError, "a declared size is an integer", item.span,
                helps=("write sizes one by one, without quotes: `f32[n, m]`",),
            )  # fmt: skip
        as_number = Scalar(Position(size), WEAK_INT)
        sizes.append(extent_of(Site(frame.ctx, item.span), as_number, "a declared size"))
    return dtype, tuple(sizes)


def contract(frame: Frame, annotation: s.Expr) -> s.Expr:
    """Return what an annotation tells the language, `f32[n, m]`: it may have a name, and be the
    last item of `Annotated[T, f32[n, m]]`."""
    match annotation:
        case s.Subscript(function, [_, *_, last]) if _object(frame, function) is Annotated:
            return contract(frame, last)
        case s.Name() | s.Attribute():
            found = _object(frame, annotation)
            if get_origin(found) is Annotated:
                found = found.__metadata__[-1]
            if isinstance(found, ArrayType) and found.sizes is not None:
                evaluate(frame, annotation)  # what it is compared with by later calls
                return _spelled(found, annotation.span)
    return annotation


def _object(frame: Frame, expr: s.Expr) -> Any:
    """Return the object that a captured name, or an attribute of one, is; None for all others."""
    match expr:
        case s.Name(name) if name not in frame.locals:
            return frame.lookup(name)
        case s.Attribute(s.Name(name), attribute) if name not in frame.locals:
            return getattr(frame.lookup(name), attribute, None)
        case _:
            return None


def _spelled(kind: ArrayType, span: Span) -> s.Expr:
    """Return the expression that makes a type with sizes."""
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
    """Return the element type that a value names, None where it names none."""
    return dtype_object(value.value) if isinstance(value, Static) else None


def check_contract(
    frame: Frame, name: str, array: Array, dtype: DType, shape: tuple[Affine, ...], span: Span
) -> None:
    """Refuse (CdTypeError CD0421) an argument that is not what its declaration says."""
    if array.kind.dtype is not dtype or array.rank != len(shape):
        wanted = f"{dtype.short}[{', '.join(map(str, shape))}]"
        message = f"`{name}` is declared {wanted} and given {describe(array)}"
        raise error("CD0421", CdTypeError, message, span)
    for axis, (given, wanted_size) in enumerate(zip(array.shape, shape, strict=True)):
        what = f"axis {axis} of `{name}` does not have its declared size"
        frame.ctx.equal_extents(given, wanted_size, what, span)
