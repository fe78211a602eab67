"""Returned values: how the caller gets arguments, views, new arrays, and assigned attributes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from ...base.diagnostic import (  # fmt: skip
    CdNameError,
    CdTypeError,
    Span,
)
from ...base.lazy_import import lazy_modules
from ...lowering.ir.expressions import Position, Read
from ...lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    multiply,
    recombine_quotients,
    substitute,
    var,
)
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.arrays import describe
from ..values.builder import Context, NeedState, error
from ..values.types import WEAK_INT, Kind
from ..values.values import (  # fmt: skip
    Array,
    Group,
    Handle,
    Listed,
    Opaque,
    Path,
    Scalar,
    Static,
    Unset,
    Value,
)
from . import object_attributes
from .aliasing import viewed_repeatedly
from .captures.inputs import Inputs
from .captures.instances import creates_new_object
from .scope import (
    Frame,
    sources,
)
from .typed import (
    Argument,
    Constant,
    Items,
    Many,
    New,
    Number,
    Part,
    Result,
    Return,
    Sliced,
    Strided,
    Update,
    Updating,
)

if TYPE_CHECKING:
    from . import declarations, effects
else:  # imported lazily: few programs need them
    declarations, effects = lazy_modules(__package__, ".declarations", ".effects")


Slices = tuple[tuple[Affine, Affine, Symbol | None], ...]


def describe_return(frame: Frame, result: Value, results: list[Node]) -> Return:
    """Return how the caller gets the result, and the attributes that are set after the run."""
    ctx, inputs = frame.ctx, frame.inputs
    repeated = viewed_repeatedly((result, *map(frame.names.get, inputs.assigned)))
    ctx.shared = repeated.intersection(ctx.locals) - ctx.permuted
    returns = _return_form(ctx, inputs, result, results, frame.function)
    return _with_updates(frame, returns, results) if inputs.assigned else returns


def _return_form(
    ctx: Context, inputs: Inputs, value: Value, results: list[Node], function: s.Function
) -> Return:
    """Return how the caller gets a value back; new arrays are appended to `results`."""
    match value:
        case Static(inner) | Opaque(inner, _) if creates_new_object(inner) and (
            isinstance(value, Static) or id(inner) in inputs.made
        ):
            raise error(
                "CD0434", CdTypeError,
                f"{describe(value)} would be one object in all calls, and Python makes a new one",
                function.span, helps=("return its fields, and make it of them outside",),
            )  # fmt: skip
        case Static(inner):
            return Constant(inner)
        case Group(items, kind, _, named_tuple):
            parts = tuple(_return_form(ctx, inputs, item, results, function) for item in items)
            return Many(parts, kind, named_tuple)
        case Scalar(expr, kind):
            node = expr.node if isinstance(expr, Read) and not expr.index else None
            if node is None or node not in ctx.locals or node in results:
                node = ctx.variable("result", value, function.span)
            results.append(node)
            return New(len(results) - 1, None, kind)
        case Array():
            return _array_return(ctx, inputs, value, results, function)
        case Handle(_, path) | Opaque(_, path):
            return Argument(path, None)
        case Unset(_, span):
            raise error(
                "CD0434", CdTypeError, f"`{function.name}` returns a value on some paths only",
                span,
                helps=("add a `return` at the end, or an `else:` that returns",),
            )  # fmt: skip
        case _:
            raise error(
                "CD0434", CdTypeError, f"{describe(value)} cannot be returned", function.span
            )


def require_assigned_paths(frame: Frame, written: Collection[Node], fixed: frozenset[Path]) -> None:
    """Restart elaboration (NeedState) where attributes read as inputs are written here, too."""
    inputs = frame.inputs
    paths = object_attributes.to_be_given(frame) - fixed
    writing = bool(inputs.assigned) or any(node in written for node in inputs.nodes.values())
    properties = writing and inputs.properties and not inputs.inlines_properties
    if paths or properties:
        raise NeedState(paths, properties)


def _with_updates(frame: Frame, item: Return, results: list[Node]) -> Return:
    """Return the result description with the attributes that are set after the run."""
    object_attributes.compare_owners(frame)
    ctx, inputs, function = frame.ctx, frame.inputs, frame.function
    updates: list[Update] = []
    for key, attribute in inputs.assigned.items():
        match frame.names.get(key):
            case None:
                continue  # every run that assigns it ends with an error
            case Unset() as unset:
                raise error(
                    "CD0202", CdNameError, f"`{key}` {unset.reason}", attribute.span,
                    helps=unset.helps or (f"set it on every path: `{key} = ...`",),
                )  # fmt: skip
            case Scalar(Position()) as number:
                node = ctx.variable(key, number, attribute.span)
                value: Value = Scalar(Read(node, ()), number.kind)
            case value:
                _require_unaliased(frame, key, value, attribute.span)
        condition = None
        if not object_attributes.is_certain(frame, key):
            flag = frame.names[key + object_attributes.SET]
            condition = _return_form(ctx, inputs, flag, results, function)
        new_value = _return_form(ctx, inputs, value, results, function)
        updates.append(Update(attribute.owner.path, attribute.name, new_value, condition))
    return Updating(item, tuple(updates))


def _require_unaliased(frame: Frame, key: str, value: Value, span: Span) -> None:
    """Refuse (CD0208) to set an attribute to a copy of an array where Python would alias it with
    one that the caller sees: another attribute, or an input."""
    if not isinstance(value, Array) or value.base is None:
        return
    inputs, node = frame.inputs, value.base.node
    visible = [(candidate, str(path)) for path, candidate in inputs.nodes.items()]
    visible += [
        (state.base.node, name)
        for name, state in object_attributes.states(frame, frame.names).items()
        if isinstance(state, Array) and state.base is not None
    ]
    bases = sources(frame, node)
    if node not in frame.ctx.permuted:  # else it is handed out as a copy
        bases -= {node}
    initial = inputs.nodes.get(inputs.assigned[key].path)
    shared = [
        name
        for candidate, name in visible
        if candidate in bases and name != key and candidate is not initial
    ]
    if shared:
        raise error(
            "CD0208", CdTypeError, f"`{key}` and `{shared[0]}` are one array in Python, on some "
            "paths, and two here", span,
            helps=(f"copy where it gets the other's array: `{key} = {shared[0]}.copy()`",),
        )  # fmt: skip


def _array_return(
    ctx: Context, inputs: Inputs, value: Array, results: list[Node], function: s.Function
) -> Return:
    read = value.view
    if value.listed and value.base is not None and value.base.node in ctx.item_nodes:
        return _items_return(ctx, inputs, value, value.base.node, results, function)
    if value.listed and not _is_whole_input(inputs, value):
        ctx.require_static(value.shape[0])  # short sequences are unrolled
        raise error(
            "CD0434", CdTypeError, "a list that is made of another one cannot be returned",
            function.span, helps=("return an array of them: `np.array([...])`",),
        )  # fmt: skip
    if value.part is not None and value.aliased is not None:
        name, numbers = value.part
        owner = Array(value.axes, value.shape, numbers, Kind(numbers.dtype), sealed=value.sealed)
        return Part(_array_return(ctx, inputs, owner, results, function), name)
    if read is None:
        value = ctx.materialize(value, "result", function.span)
        read = value.view
        assert read is not None
    node = read.node
    path = _input_path(inputs, value, node)
    is_whole = read.index == tuple(map(var, value.axes)) and value.shape == node.shape
    if path is not None and value.rank and not value.listed:
        is_whole = is_whole and value.given is not None  # NumPy's `x[:]` is another object
    sized = node.static_shape is not None and all(e.constant is not None for e in value.shape)
    view = _stride_view(value, read) if sized and not is_whole else None
    if view is None and not is_whole:
        return _part_return(ctx, inputs, value, results, function)
    if path is not None and (node in ctx.permuted or path.is_field):
        # which of the exchanged arrays it is depends on the run, and a tensor never gives its
        # array away: return a copy of the contents
        return _array_return(ctx, inputs, replace(value, copied=True), results, function)
    if path is not None:
        return Argument(path, view)
    if node not in results:
        results.append(node)
    return New(results.index(node), view, None)


def _input_path(inputs: Inputs, value: Array, node: Node) -> Path | None:
    """Return the path of the input that a node stores, None for a local node. Several inputs may be
    views of one node, of which the value may be one: then it is that one's path."""
    if value.given is not None and inputs.node_at(value.given[1]) == node:
        return value.given[1]
    return next((path for path, input_node in inputs.nodes.items() if input_node == node), None)


def _items_return(
    ctx: Context,
    inputs: Inputs,
    value: Array,
    node: Node,
    results: list[Node],
    function: s.Function,
) -> Return:
    """Return the list that an array represents, by a copy of its items. CdTypeError CD0434 where it
    is returned twice: in Python that is one list."""
    if node in ctx.returned_lists:
        raise error(
            "CD0434", CdTypeError, "a list of so many items cannot be returned twice",
            function.span, helps=("return one, and use its items twice",),
        )  # fmt: skip
    ctx.returned_lists.add(node)
    if value.listed is Listed.ARRAYS and value.view is not None:  # they may be returned alone, too
        shared = _array_return(ctx, inputs, replace(value, listed=Listed.NO), results, function)
        if isinstance(shared, New):
            return Items(shared, False, 1)
    plain = value.listed is Listed.NUMBERS
    whole = replace(value, copied=True, listed=Listed.NO)
    copied = ctx.materialize(whole, "result", function.span)
    assert copied.view is not None, "it is stored"
    results.append(copied.view.node)
    depth = 1 if value.listed is Listed.ARRAYS else value.rank
    return Items(New(len(results) - 1, None, None), plain, depth)


def _part_return(
    ctx: Context, inputs: Inputs, value: Array, results: list[Node], function: s.Function
) -> Return:
    """Return a part of a node with run-time bounds: a view by slices, or a copy of a local part.

    CdTypeError CD0435 where slices do not express a view that the caller could tell from a copy.
    """
    read = value.view
    assert read is not None, "it is a part of a node"
    node = read.node
    path = _input_path(inputs, value, node)
    plain = path is not None and node not in ctx.permuted and not path.is_field
    shared = node in ctx.shared
    if (plain or shared) and value.rank and (axes := _find_slices(value, read)) is not None:
        slices = _slice_view(ctx, value, axes, results, function)
        if path is not None:
            return Argument(path, slices)
        results.extend((node,) if node not in results else ())
        return New(results.index(node), slices, None)
    sized = node.static_shape is not None and all(e.constant is not None for e in value.shape)
    if not sized and (node not in ctx.locals and (plain or path is None) or shared and value.rank):
        for extent in value.shape:
            ctx.require_static_parameters(extent)
        raise error(
            "CD0435", CdTypeError, "a view whose size is known at run time only cannot be returned",
            function.span, label=f"it is {describe(value)}",
            helps=("return a copy: `.copy()`",),
        )  # fmt: skip
    return _array_return(ctx, inputs, replace(value, copied=True), results, function)


def _is_whole_input(inputs: Inputs, value: Array) -> bool:
    """Whether a value is a whole argument, not a part of one."""
    read = value.view
    if read is None or read.node not in inputs.nodes.values():
        return False
    return read.index == tuple(map(var, value.axes)) and value.shape == read.node.shape


def _find_slices(value: Array, read: Read) -> Slices | None:
    """Return the start, step and view axis for each axis of a node; the view axis is None for a
    single position. The result is None where slices cannot express the view."""
    axes: list[tuple[Affine, Affine, Symbol | None]] = []
    unmatched = set(value.axes)
    for index in read.index:
        if not isinstance(index, Affine):
            return None
        inside = index.symbols() & set(value.axes)
        if not inside:
            axes.append((index, const(0), None))
            continue
        axis = min(inside, key=value.axes.index)
        start = substitute(index, {axis: const(0)})
        step = substitute(index, {axis: const(1)}) - start
        linear = recombine_quotients(start + multiply(var(axis), step) - index).constant == 0
        if len(inside) > 1 or axis not in unmatched or not linear or axis in start.symbols():
            return None
        unmatched.remove(axis)
        axes.append((start, step, axis))
    return None if unmatched else tuple(axes)


def _slice_view(
    ctx: Context, value: Array, axes: Slices, results: list[Node], function: s.Function
) -> Sliced:
    """Return a view by slices; their run-time bounds are appended to the results."""

    def number(at: Affine) -> Number:
        if at.constant is not None:
            return at.constant
        node = ctx.variable("result", Scalar(Position(at), WEAK_INT), function.span)
        results.append(node)
        return Result(len(results) - 1)

    sizes = dict(zip(value.axes, value.shape, strict=True))
    axis_order = [axis for _, _, axis in axes if axis is not None]
    return Sliced(
        tuple(
            (number(start),) if axis is None else (number(start), number(step), number(sizes[axis]))
            for start, step, axis in axes
        ),
        tuple(axis_order.index(axis) for axis in value.axes),
        not value.read_only,
    )


def _stride_view(value: Array, read: Read) -> Strided | None:
    """Return a view as offset and strides in elements; None where it is no strided view."""
    flat = const(0)
    for index, stride in zip(read.index, read.node.element_strides, strict=True):
        assert isinstance(index, Affine) and stride.constant is not None
        flat = flat + index * stride.constant
    flat = recombine_quotients(flat)
    if not flat.symbols() <= set(value.axes) or len(flat.terms) > len(flat.symbols()):
        return None
    if any(flat.coefficient(symbol) == 0 for symbol in flat.symbols()):
        return None
    shape = tuple(extent.constant or 0 for extent in value.shape)
    strides = tuple(flat.coefficient(axis) for axis in value.axes)
    return Strided(flat.offset, shape, strides, not value.read_only)
