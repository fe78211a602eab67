"""Elaboration driver: a surface function and its argument specifications become `Typed`.

Elaboration restarts with more assumptions when an integer parameter turns out to be needed as a
static value. Termination: each restart adds to a finite set of static parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    Label,
    Span,
    raise_internal_error,
)
from ...base.lazy_import import lazy_functions, lazy_modules
from ...lowering.ir.assignments import Parameter, Procedure, Statement
from ...lowering.ir.indexing import (
    Affine,
    Symbol,
)
from ...lowering.ir.node import Node
from ...lowering.ir.walk import statements, writes
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.adapting import too_large
from ..values.attribution import standing_in
from ..values.builder import Context, NeedLists, NeedOrder, NeedState, NeedStatic, NeedUnroll, error
from ..values.call_site import LIBRARY
from ..values.values import (  # fmt: skip
    OF_FUNCTIONS,
    Array,
    Path,
    Value,
)
from . import object_attributes
from .aliasing import check_sharing
from .calls import apply, call, call_of, library_call, run_function
from .captures.inputs import DynamicArrays, Inputs, Spec, is_static
from .debug_names import called, returned
from .merging import check_merges
from .returns import describe_return, require_assigned_paths
from .scope import (
    Frame,
    Hooks,
    assigned_names,
    names_in,
    plain_names,
    rebound_names,
)
from .storage import stored
from .truth import require_unobserved_choices
from .typed import Return, Typed

if TYPE_CHECKING:
    from . import declarations, effects
    from .comprehensions import comprehend
else:  # imported lazily: few programs need them
    (comprehend,) = lazy_functions(__package__, ".comprehensions:comprehend")
    declarations, effects = lazy_modules(__package__, ".declarations", ".effects")

_HOOKS = Hooks(call, call_of, apply, comprehend)


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
    dynamic: DynamicArrays | None = None,
    derives: tuple[str, ...] = (),
) -> Typed:
    """Return the typed form of a function for its arguments (objects by parameter name).

    `describe_input(value, static)` gives specifications, `lookup` captured objects; `numbers` are
    the paths of attributes that are passed in each call, `dynamic` the arrays with dynamic sizes,
    `derives` the kinds of derivatives that are made of it. Raises the `CdError` family.
    """
    needed: dict[str, Span] = {}
    assigned_paths, static_paths = frozenset[Path](), frozenset[Path]()
    properties = orders = unrolls_items = False
    while True:
        try:
            with np.errstate(all="ignore"):  # constant folding never warns, like compiled code
                inputs = Inputs(
                    describe_input, alias, numbers, assigned_paths, properties, dynamic or {}
                )
                typed_form = _elaborate(
                    function, arguments, lookup, statics, inputs, static_paths,
                    (orders, unrolls_items), derives,
                )  # fmt: skip
                return replace(typed_form, needed=needed)
        except NeedState as state:
            assigned_paths |= state.paths
            properties |= state.properties
        except NeedOrder:
            orders = True
        except NeedLists:
            unrolls_items = True
        except NeedStatic as need:
            if now_static := {path for path in numbers | assigned_paths if str(path) in need.names}:
                numbers, assigned_paths = numbers - now_static, assigned_paths - now_static
                static_paths |= now_static
                continue
            roots = _static_roots(need, statics, function.span)
            statics |= roots
            needed |= dict.fromkeys(roots, need.span or function.span)
        except NeedUnroll:
            raise error("CD0432", CdTypeError, _NEEDS_UNROLLING, function.span) from None
        except (CdError, MemoryError):
            raise
        except OverflowError as why:
            raise too_large(why, function.span) from None
        except RecursionError:
            raise error(
                "CD0433", CdSyntaxError, "an expression or call nests too deeply to be compiled",
                function.span, helps=("split it over several statements",),
            ) from None  # fmt: skip
        except Exception as problem:  # an internal error of any type
            doing = f"reading `{function.name}`"
            raise_internal_error(doing, problem, Label(function.span))


def _static_roots(need: NeedStatic, statics: frozenset[str], span: Span) -> frozenset[str]:
    """Return the parameters that have to be static, beside `statics`.

    CdTypeError CD0443 where sizes have to be: the function is compiled for its static sizes then.
    """
    if need.sizes:
        text = "the size of an array here has to be known while compiling"
        raise error("CD0443", CdTypeError, text, need.span or span) from None
    roots = frozenset(name.split("[")[0].split(".")[0] for name in need.names)
    if roots <= statics:
        text = f"{sorted(roots)} stay unknown"
        raise error("CD0902", CdInternalError, text, span) from None
    return roots


def _elaborate(
    function: s.Function,
    arguments: Mapping[str, object],
    lookup: Callable[[str], object],
    statics: frozenset[str],
    inputs: Inputs,
    fixed: frozenset[Path],
    flags: tuple[bool, bool],
    derives: tuple[str, ...],
) -> Typed:
    """Return the typed form; `flags`: whether memory orders matter, and whether comprehensions of
    few items are unrolled."""
    run_time = frozenset(map(str, inputs.numbers | inputs.given))
    orders, unrolls_items = flags
    ctx = Context(
        function.name, active=(function,), given=run_time, orders=orders,
        unrolls_items=unrolls_items, assigned=frozenset(map(str, inputs.given)), derives=derives,
    )  # fmt: skip
    try:
        return _typed_form(function, arguments, lookup, statics, inputs, fixed, ctx)
    except CdError:
        if ctx.chose_arrays:  # what was refused of an array may be right of a list
            raise NeedLists from None
        raise


def _typed_form(
    function: s.Function,
    arguments: Mapping[str, object],
    lookup: Callable[[str], object],
    statics: frozenset[str],
    inputs: Inputs,
    fixed: frozenset[Path],
    ctx: Context,
) -> Typed:
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
    returns = _returns(frame, function, result, results)
    require_unobserved_choices(ctx, results)
    unallocated = object_attributes.without_unread(frame, (*ctx.prologue, *ctx.out))
    body = stored(
        unallocated, ctx.locals, results, ctx.sizes,
        [parameter.node for parameter in ctx.parameters.values()],
    )  # fmt: skip
    written = set(writes(body))
    require_assigned_paths(frame, written, fixed)
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
        (*ctx.called, *returned(frame, result, results)),
        frozenset(x for x in (*ctx.said, *ctx.origin) if isinstance(x, Symbol)),
        frozenset(x for x in ctx.said if isinstance(x, str)),
    )
    return Typed(
        procedure, returns, passed, inputs.used, inputs.roots, inputs.constants,
        statics | ctx.preferred.intersection(arguments),
        inputs.fleeting, inputs.nowhere(), inputs.read, inputs.owners,
        tuple(inputs.asked.values()), inputs.steady, tuple(inputs.compared),
        frozenset(inputs.alone), ctx.asks_layout, guarded=frozenset(ctx.guarded - ctx.unguarded),
        preferred=frozenset(ctx.preferred),
    )  # fmt: skip


def _returns(frame: Frame, function: s.Function, result: Value, results: list[Node]) -> Return:
    """Return how results are returned. An integer that has to be static is so for the `return`."""
    try:
        return describe_return(frame, result, results)
    except NeedStatic as need:
        last = function.body[-1]
        need.span = last.span if isinstance(last, s.Return) else function.span
        raise


def _give_hooks(ctx: Context, inputs: Inputs, frame: Frame) -> None:
    """Install the callbacks through which lower layers reach inputs and calls."""
    ctx.constant = partial(inputs.constant, ctx)
    ctx.tensor_value = lambda handle, span: inputs.field(ctx, handle, "value", span)

    def inline(
        text: str, args: Sequence[Value], keywords: Mapping[str, Value], span: Span
    ) -> Value:
        try:
            with standing_in(ctx, span):
                return library_call(frame, text, tuple(args), keywords, span)
        except NeedStatic as need:
            need.span = span  # of the call, not of a line of the library
            raise

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
        write_spans = [inner.span for inner in statements(body) if node in writes((inner,))
                  and hasattr(inner, "span") and inner.span.source.name != LIBRARY]  # fmt: skip
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
