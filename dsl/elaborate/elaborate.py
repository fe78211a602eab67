"""Elaboration driver: a surface function and its argument specifications become `Typed`.

Elaboration restarts with more assumptions when an integer parameter turns out to be needed as a
static value. Termination: each restart adds to a finite set of static parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...base.diagnostic import (  # fmt: skip
    CdError,
    CdInternalError,
    CdNameError,
    CdSyntaxError,
    CdTypeError,
    CdValueError,
    Span,
)
from ...base.lazy_import import lazy_modules
from ...lowering.ir.assignments import Parameter, Procedure, Statement
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
from ...lowering.ir.walk import statements, writes
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.arrays import describe
from ..values.attribution import standing_in
from ..values.builder import Context, NeedOrder, NeedState, NeedStatic, NeedUnroll, error
from ..values.types import WEAK_INT, Kind
from ..values.values import (  # fmt: skip
    OF_FUNCTIONS,
    Array,
    Group,
    Handle,
    Opaque,
    Path,
    Scalar,
    Static,
    Unset,
    Value,
)
from . import object_attributes
from .aliasing import check_sharing, viewed_repeatedly
from .calls import apply, call, library_call, run_function
from .captures.inputs import Inputs, Spec, is_static
from .comprehensions import comprehend
from .debug_names import called
from .merging import check_merges
from .scope import (
    LIBRARY,
    Frame,
    Hooks,
    assigned_names,
    names_in,
    plain_names,
    rebound_names,
    sources,
)
from .storage import stored
from .typed import (
    Argument,
    Constant,
    Many,
    New,
    Number,
    Part,
    Result,
    Return,
    Sliced,
    Strided,
    Typed,
    Update,
    Updating,
)

if TYPE_CHECKING:
    from . import declarations, effects
else:  # imported lazily: few programs need them
    declarations, effects = lazy_modules(__package__, ".declarations", ".effects")

_HOOKS = Hooks(call, apply, comprehend)


_NEEDS_UNROLLING = (
    "a size here depends on a loop variable in a way that needs the loop unrolled, and its length "
    "is not known when compiling"
)


def elaborate(
    function: s.Function,
    arguments: Mapping[str, object],
    describe_input: Callable[[object, bool], Spec],
    lookup: Callable[[str], object],
    alias: Mapping[Path, Path],
    statics: frozenset[str],
    numbers: frozenset[Path] = frozenset(),
) -> Typed:
    """Return the typed form of a function for its arguments (objects by parameter name).

    `describe_input(value, static)` gives specifications, `lookup` captured objects; `numbers` are
    the paths of attributes that are passed in each call. Raises the `CdError` family for every
    error of the function.
    """
    needed: dict[str, Span] = {}
    assigned_paths, static_paths = frozenset[Path](), frozenset[Path]()
    properties = orders = False
    while True:
        try:
            with np.errstate(all="ignore"):  # constant folding never warns, like compiled code
                inputs = Inputs(describe_input, alias, numbers, assigned_paths, properties)
                typed_form = _elaborate(
                    function, arguments, lookup, statics, inputs, static_paths, orders
                )
                return replace(typed_form, needed=needed)
        except NeedState as state:
            assigned_paths |= state.paths
            properties |= state.properties
        except NeedOrder:
            orders = True
        except NeedStatic as need:
            if now_static := {path for path in numbers | assigned_paths if str(path) in need.names}:
                numbers, assigned_paths, static_paths = (
                    numbers - now_static,
                    assigned_paths - now_static,
                    static_paths | now_static,
                )
                continue
            roots = frozenset(name.split("[")[0].split(".")[0] for name in need.names)
            if roots <= statics:
                text = f"{sorted(roots)} stay unknown"
                raise error("CD0902", CdInternalError, text, function.span) from None
            statics |= roots
            needed |= dict.fromkeys(roots, need.span or function.span)
        except NeedUnroll:
            raise error("CD0432", CdTypeError, _NEEDS_UNROLLING, function.span) from None
        except (CdError, MemoryError):
            raise
        except OverflowError as why:
            text = f"a number here is too large: {why}"
            raise error("CD0461", CdValueError, text, function.span) from None
        except RecursionError:
            raise error(
                "CD0433", CdSyntaxError, "an expression or call nests too deeply to be compiled",
                function.span, helps=("split it over several statements",),
            ) from None  # fmt: skip
        except Exception as problem:  # an internal error of any type
            raise _internal_error(function, problem) from problem


def _internal_error(function: s.Function, problem: Exception) -> CdError:
    """Return the internal error CD0904 for an unexpected exception of elaboration."""
    cause = f"{type(problem).__name__}: {problem}"
    return error(
        "CD0904", CdInternalError, f"plusequals failed while reading `{function.name}`: {cause}",
        function.span,
        helps=("this is a fault of plusequals: please report it with the function's text",),
    )  # fmt: skip


def _elaborate(
    function: s.Function,
    arguments: Mapping[str, object],
    lookup: Callable[[str], object],
    statics: frozenset[str],
    inputs: Inputs,
    fixed: frozenset[Path],
    orders: bool,
) -> Typed:
    run_time = frozenset(map(str, inputs.numbers | inputs.given))
    ctx = Context(function.name, active=(function,), given=run_time, orders=orders)
    frame = Frame(
        ctx, inputs, function, {}, frozenset(assigned_names(function.body)),
        inputs.noting("", lookup), _HOOKS,
        parameters=frozenset(param.name for param in function.params),
    )  # fmt: skip
    _give_hooks(ctx, inputs, frame)
    for param in function.params:
        path = Path(param.name)
        value = arguments[param.name]
        static = is_static(param.name, value, statics)
        frame.names[param.name] = inputs.wrap(ctx, path, value, static, param.span)
    _refuse_captured_targets(frame, function)
    _check_annotations(frame, function)
    result = run_function(frame)
    ctx.called = called(frame)
    results: list[Node] = []
    returns = _returned(frame, result, results)
    unallocated = object_attributes.without_unread(frame, (*ctx.prologue, *ctx.out))
    body = stored(
        unallocated, ctx.locals, results, ctx.sizes,
        [parameter.node for parameter in ctx.parameters.values()],
    )  # fmt: skip
    written = set(writes(body))
    _require_assigned_paths(frame, written, fixed)
    _refuse_captured_writes(inputs, body, function)
    visible = (*results, *inputs.nodes.values())
    check_sharing(ctx.bindings, body, visible, function.span)
    check_merges(ctx.parameters, body)
    passed = tuple(ctx.parameters)
    requested = {node.id: node for node in ctx.locals}  # these carry the memory requests
    procedure = Procedure(
        function.name,
        tuple(Parameter(p.node, p.node in written) for p in ctx.parameters.values()),
        tuple(node for node in ctx.locals if node not in results),
        tuple(requested.get(node.id, node) for node in results),
        body,
        function.span,
        ctx.called,
        frozenset(x for x in (*ctx.said, *ctx.origin) if isinstance(x, Symbol)),
        frozenset(x for x in ctx.said if isinstance(x, str)),
    )
    return Typed(
        procedure, returns, passed, inputs.used, inputs.roots, inputs.constants, statics,
        inputs.fleeting, inputs.nowhere(), inputs.read, inputs.owners,
        tuple(inputs.asked.values()), inputs.steady, tuple(inputs.compared),
        frozenset(inputs.alone), ctx.asks_layout, guarded=frozenset(ctx.guarded),
    )  # fmt: skip


def _give_hooks(ctx: Context, inputs: Inputs, frame: Frame) -> None:
    """Install the callbacks through which lower layers reach inputs and calls."""
    ctx.constant = partial(inputs.constant, ctx)
    ctx.tensor_value = lambda handle, span: inputs.field(ctx, handle, "value", span)

    def inline(
        text: str, args: Sequence[Value], keywords: Mapping[str, Value], span: Span
    ) -> Value:
        with standing_in(ctx, span):
            return library_call(frame, text, tuple(args), keywords, span)

    ctx.inline_source = inline


def _refuse_captured_targets(frame: Frame, function: s.Function) -> None:
    """Refuse (CD0207) writes of captured NumPy arrays, lists, tuples and dictionaries; a captured
    tensor may be written in place.

    A name with a plain binding anywhere in the function is a local: the enclosing scope is not
    consulted. One that is only written by elements, or by `+=`, may denote an array of the
    enclosing scope; where none existed at the first lookup, it stays a local.
    """
    local_names = set(frame.locals)
    rebound = set(rebound_names(function.body))
    for name in sorted(frame.locals - frame.parameters - set(plain_names(function.body))):
        captured = frame.lookup(name)
        if isinstance(captured, np.ndarray | list | tuple | dict):
            what = "array" if isinstance(captured, np.ndarray) else type(captured).__name__
            raise _captured_target_error(function, name, what, name in rebound)
        if captured is MISSING:
            frame.inputs.alone.add(name)
        if frame.inputs.is_tensor(captured) and name not in rebound:
            local_names.discard(name)
    frame.locals = frozenset(local_names)


def _captured_target_error(function: s.Function, name: str, what: str, rebound: bool) -> CdError:
    span = next(n.span for n in names_in(function) if n.id == name)
    passed = f"`def {function.name}({name}, ...)`"
    helps = (
        ("use another name for what is assigned here", f"or pass the {what}, to write it: {passed}")
        if rebound
        else (
            f"pass it as an argument to write it: {passed}",
            "or use another name for the local array",
        )
    )
    article = "an" if what == "array" else "a"
    text = f"`{name}` is {article} {what} around the function, and is assigned here"
    return error("CD0207", CdNameError, text, span, helps=helps)


def _is_owned(path: Path) -> bool:
    """Whether a path leads to an attribute of an object, not to a default value of a function."""
    return any(isinstance(n, str) and n not in OF_FUNCTIONS for n in path.steps)


def _refuse_captured_writes(
    inputs: Inputs, body: tuple[Statement, ...], function: s.Function
) -> None:
    """Refuse (CD0207) a write of a captured NumPy array through a view, a call or `out=`."""
    written = frozenset(writes(body))
    for path, node in inputs.nodes.items():
        if node not in written or not path.captured or _is_owned(path):
            continue  # a step by name is a tensor's field or an object's attribute
        write_spans = [one.span for one in statements(body) if node in writes((one,))
                  and hasattr(one, "span") and one.span.source.name != LIBRARY]  # fmt: skip
        raise error(
            "CD0207",
            CdNameError,
            f"`{node.label}` is an array around the function, and is written here",
            write_spans[-1] if write_spans else function.span,
            helps=(
                f"pass it as an argument to write it: `def {function.name}({node.label}, ...)`",
                f"or write a copy: `{node.label}.copy()`",
            ),
        )


def _check_annotations(frame: Frame, function: s.Function) -> None:
    """Check arguments against annotations that are contracts: `x: f32[n, m]`."""
    sizes: dict[str, tuple[Affine, str]] = {}
    for param in function.params:
        note, value = param.annotation, frame.names[param.name]
        if note is not None:
            note = declarations.contract(frame, note)
        if not isinstance(note, s.Subscript) or not isinstance(value, Array):
            continue
        try:
            base = declarations.declared(frame, note.value)
        except CdError:
            continue  # no type of this language: an annotation for other tools
        shape: list[Affine] = []
        for axis, item in enumerate(note.items):
            free = isinstance(item, s.Slice) or (
                isinstance(item, s.Name) and _is_size(frame, item) and item.id not in sizes
            )
            if free and axis < value.rank:
                shape.append(value.shape[axis])
                if isinstance(item, s.Name):
                    sizes[item.id] = value.shape[axis], param.name
                    frame.sizes[item.id] = value.shape[axis]
            elif isinstance(item, s.Name) and item.id in sizes and axis < value.rank:
                size, owner = sizes[item.id]
                what = f"size `{item.id}` of `{param.name}` is not that of `{owner}`"
                frame.ctx.equal_extents(value.shape[axis], size, what, param.span)
                shape.append(value.shape[axis])
            else:
                shape += declarations.declared(frame, s.Subscript(note.value, (item,), item.span))[
                    1
                ]
        declarations.check_contract(frame, param.name, value, base[0], tuple(shape), param.span)


def _is_size(frame: Frame, name: s.Name) -> bool:
    """Whether a name in an annotation is a size variable: it is bound to no integer."""
    captured = frame.lookup(name.id)
    return name.id not in frame.names and (captured is MISSING or not isinstance(captured, int))


def _returned(frame: Frame, result: Value, results: list[Node]) -> Return:
    """Return how the caller gets the result, and the attributes that are set after the run."""
    ctx, inputs = frame.ctx, frame.inputs
    repeated = viewed_repeatedly((result, *map(frame.names.get, inputs.assigned)))
    ctx.shared = repeated.intersection(ctx.locals) - ctx.exchanged
    returns = _return_form(ctx, inputs, result, results, frame.function)
    return _with_updates(frame, returns, results) if inputs.assigned else returns


def _return_form(
    ctx: Context, inputs: Inputs, value: Value, results: list[Node], function: s.Function
) -> Return:
    """Return how the caller gets a value back; new arrays are appended to `results`."""
    match value:
        case Static(inner):
            return Constant(inner)
        case Group(items, kind, _, made):
            parts = tuple(_return_form(ctx, inputs, item, results, function) for item in items)
            return Many(parts, kind, made)
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


def _require_assigned_paths(
    frame: Frame, written: Collection[Node], fixed: frozenset[Path]
) -> None:
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
    for key, one in inputs.assigned.items():
        match frame.names.get(key):
            case None:
                continue  # every run that assigns it ends with an error
            case Unset() as unset:
                raise error(
                    "CD0202", CdNameError, f"`{key}` {unset.reason}", one.span,
                    helps=unset.helps or (f"set it on every path: `{key} = ...`",),
                )  # fmt: skip
            case Scalar(Position()) as number:
                node = ctx.variable(key, number, one.span)
                value: Value = Scalar(Read(node, ()), number.kind)
            case value:
                _require_unaliased(frame, key, value, one.span)
        condition = None
        if not object_attributes.is_certain(frame, key):
            flag = frame.names[key + object_attributes.SET]
            condition = _return_form(ctx, inputs, flag, results, function)
        new_value = _return_form(ctx, inputs, value, results, function)
        updates.append(Update(one.owner.path, one.name, new_value, condition))
    return Updating(item, tuple(updates))


def _require_unaliased(frame: Frame, key: str, value: Value, span: Span) -> None:
    """Refuse (CD0208) to set an attribute to a copy of an array where Python would alias it with
    one that the caller sees: another attribute, or an input."""
    if not isinstance(value, Array) or value.base is None:
        return
    inputs, node = frame.inputs, value.base.node
    visible = [(one, str(path)) for path, one in inputs.nodes.items()]
    visible += [
        (other.base.node, name)
        for name, other in object_attributes.states(frame, frame.names).items()
        if isinstance(other, Array) and other.base is not None
    ]
    bases = sources(frame, node)
    if node not in frame.ctx.exchanged:  # else it is handed out as a copy
        bases -= {node}
    initial = inputs.nodes.get(inputs.assigned[key].path)
    shared = [name for one, name in visible if one in bases and name != key and one is not initial]
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
    if value.listed and not _is_whole_input(inputs, value):
        ctx.require_static(value.shape[0])  # short sequences are unrolled
        raise error(
            "CD0434", CdTypeError, "a list that is made of a list or of so many items cannot be "
            "returned", function.span, helps=("return an array of them: `np.array([...])`",),
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
    path = next((path for path, known in inputs.nodes.items() if known == node), None)
    is_whole = read.index == tuple(map(var, value.axes)) and value.shape == node.shape
    if path is not None and value.rank and not value.listed:
        is_whole = is_whole and value.given is not None  # NumPy's `x[:]` is another object
    sized = node.static_shape is not None and all(e.constant is not None for e in value.shape)
    view = _stride_view(value, read) if sized and not is_whole else None
    if view is None and not is_whole:
        return _part_return(ctx, inputs, value, results, function)
    if path is not None and (node in ctx.exchanged or path.is_field):
        # which of the exchanged arrays it is depends on the run, and a tensor never gives its
        # array away: return a copy of the contents
        return _array_return(ctx, inputs, replace(value, copied=True), results, function)
    if path is not None:
        return Argument(path, view)
    if node not in results:
        results.append(node)
    return New(results.index(node), view, None)


def _part_return(
    ctx: Context, inputs: Inputs, value: Array, results: list[Node], function: s.Function
) -> Return:
    """Return a part of a node with run-time bounds: a view by slices, or a copy of a local part.

    CdTypeError CD0435 where slices do not express a view that the caller could tell from a copy.
    """
    read = value.view
    assert read is not None, "it is a part of a node"
    node = read.node
    path = next((path for path, known in inputs.nodes.items() if known == node), None)
    plain = path is not None and node not in ctx.exchanged and not path.is_field
    shared = node in ctx.shared
    if (plain or shared) and value.rank and (axes := _find_slices(value, read)) is not None:
        slices = _slice_view(ctx, value, axes, results, function)
        if path is not None:
            return Argument(path, slices)
        results.extend((node,) if node not in results else ())
        return New(results.index(node), slices, None)
    sized = node.static_shape is not None and all(e.constant is not None for e in value.shape)
    if not sized and (node not in ctx.locals and (plain or path is None) or shared and value.rank):
        raise error(
            "CD0435", CdTypeError, "a view whose size only the run knows cannot be returned",
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


Slices = tuple[tuple[Affine, Affine, Symbol | None], ...]


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
