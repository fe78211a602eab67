"""Elaboration of calls: index reductions, NumPy functions, methods, inlined Python functions."""

from __future__ import annotations

import enum
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.diagnostic import CdError, CdSyntaxError, CdTypeError, Diagnostic, Label, Span
from ...base.lazy_import import lazy_functions, lazy_modules
from ...lowering.ir.assignments import Block, Let
from ..numpy import table
from ..source import surface as s
from ..source.function_source import read_source, scope_of, scope_of_namespace, source_from_text
from ..source.parse import parse
from ..values.arrays import describe
from ..values.builder import error
from ..values.call_site import LIBRARY, Site, is_list, items_of
from ..values.evaluation_order import after
from ..values.fix_hints import before_the_points
from ..values.types import Kind
from ..values.values import (
    Array,
    Bound,
    Group,
    Handle,
    Lazy,
    Listed,
    Masked,
    Opaque,
    Path,
    Static,
    Unset,
    Value,
)
from . import object_attributes
from .captures import parents
from .captures.instances import is_method, runs_source
from .captures.owners import called_by, defaults_of, owner_of, partial_of
from .expressions import add_evaluated, evaluate, read_subscript
from .index.free_variables import uses_letters
from .loop_items import taken_at_once
from .operators import as_python, now
from .scope import RESULT, Frame, function_locals
from .statements import run

if TYPE_CHECKING:
    from . import (
        bindings,
        constant_calls,
        control_flow,
        declarations,
        effects,
        iteration_space,
    )
    from .captures import named_tuples
    from .conditions import early_decision
    from .conditions.comparisons import extreme_by_key, extreme_of_sequences, sorted_values
    from .derivatives import derivative_rules
    from .derivatives.derived_calls import rules_of_call, source_of_call
    from .index import reductions
    from .index.notation import scalar_statement
else:  # few programs need these modules
    bindings, control_flow, declarations, derivative_rules = lazy_modules(
        __package__, ".bindings", ".control_flow", ".declarations", ".derivatives.derivative_rules"
    )
    effects, reductions, iteration_space, early_decision = lazy_modules(
        __package__,
        ".effects",
        ".index.reductions",
        ".iteration_space",
        ".conditions.early_decision",
    )
    constant_calls, named_tuples = lazy_modules(
        __package__, ".constant_calls", ".captures.named_tuples"
    )
    extreme_by_key, extreme_of_sequences, sorted_values = lazy_functions(
        __package__, ".conditions.comparisons:extreme_by_key",
        ".conditions.comparisons:extreme_of_sequences", ".conditions.comparisons:sorted_values",
    )  # fmt: skip
    rules_of_call, source_of_call, scalar_statement = lazy_functions(
        __package__, ".derivatives.derived_calls:rules_of_call",
        ".derivatives.derived_calls:source_of_call", ".index.notation:scalar_statement",
    )  # fmt: skip

_MAX_SORTED = 16
"""`sorted` orders up to so many items by exchanges; more are an array's."""
_CACHE_WRAPPER = functools._lru_cache_wrapper
_MAX_CALL_DEPTH = 40
"""The deepest nesting of inlined calls."""


def call(frame: Frame, e: s.Call) -> Value:
    """Return the value of a call."""
    match e.function:
        case s.Subscript(s.Name() | s.Attribute() as inner, items) as subscripted:
            owner = evaluate(frame, inner)
            name = table.reduction_of(owner.value) if isinstance(owner, Static) else None
            if name is not None:
                return _bound_reduction(frame, name, items, e)
            return call_of(frame, read_subscript(frame, owner, subscripted), e)
        case _:
            return call_of(frame, evaluate(frame, e.function), e)


def call_of(frame: Frame, function: Value, e: s.Call) -> Value:
    """Return the value of a call whose function has been evaluated."""
    name = table.reduction_of(function.value) if isinstance(function, Static) else None
    one_argument = name is not None and len(e.args) == 1
    if one_argument and frame.letters is None and uses_letters(frame, e.args[0]):
        return scalar_statement(frame, e, e.span)
    if frame.letters is not None and name is not None and one_argument:
        accumulate = _accumulator_kind(frame, e.keywords)
        if accumulate is not None or not e.keywords:
            value = reductions.reduce_letters(frame, name, e.args[0], None, accumulate, e.span)
            if not isinstance(value, Array | Group | Handle):
                return value
            return _call_value(frame, function, (value,), {}, e)
    if len(e.args) == 1 and iteration_space.takes_at_once(function):
        e = replace(e, args=(taken_at_once(frame, e.args[0]),))
    is_lazy = bool(e.args) and isinstance(e.args[0], s.Comprehension) and e.args[0].is_lazy
    if is_lazy:
        iteration_space.require_taken_at_once(function, e)
    if is_lazy and function in (Static(any), Static(all)):
        items = early_decision.items_or_decision(
            frame, e, function == Static(any), functools.partial(_called_here, frame, e)
        )
        if not isinstance(items, list):
            return items
        return _call_value(frame, function, tuple(items), {}, e)
    operands = [function]
    add_evaluated(frame, operands, e.args)
    count = len(operands)
    for keyword in e.keywords:
        operands.append(
            after(frame.ctx, operands, functools.partial(evaluate, frame, keyword.value), e.span)
        )
    names = (keyword.name or "" for keyword in e.keywords)
    keywords = dict(zip(names, operands[count:], strict=True))
    return _call_value(frame, operands[0], tuple(operands[1:count]), keywords, e)


def _called_here(frame: Frame, e: s.Call, function: s.Function, args: tuple[Value, ...]) -> Value:
    """Return the result of a function that is defined where a call stands, in place of the call."""
    return _call_value(frame, Lazy(function, frame.closure or frame, ()), args, {}, e)


def _bound_reduction(frame: Frame, name: str, binders: tuple[s.Expr, ...], e: s.Call) -> Value:
    """Return the value of a reduction with binders, `sum[k](...)`.

    CdSyntaxError CD0521 outside of index notation, CdTypeError CD0440 for keywords but `acc`.
    """
    if frame.letters is None and len(e.args) == 1:
        return scalar_statement(frame, e, e.span)
    if frame.letters is None or len(e.args) != 1:
        raise error(
            "CD0521", CdSyntaxError, f"`{name}[...]` binds index letters and takes one expression",
            e.span,
        )  # fmt: skip
    unknown = next((k for k in e.keywords if k.name != "acc"), None)
    if unknown is not None:
        raise error(
            "CD0440", CdTypeError, f"`{name}[...]` over index letters takes no `{unknown.name}=`",
            unknown.span, helps=("only `acc=` is known here: `sum[k](x[i, k], acc=f64)`",),
        )  # fmt: skip
    accumulate = _accumulator_kind(frame, e.keywords)
    return reductions.reduce_letters(frame, name, e.args[0], binders, accumulate, e.span)


def _accumulator_kind(frame: Frame, keywords: tuple[s.Keyword, ...]) -> Kind | None:
    """Return the accumulator type that `acc=` names, None where it is not given."""
    for keyword in keywords:
        if keyword.name == "acc":
            dtype = declarations.dtype_of(evaluate(frame, keyword.value))
            if dtype is None:
                raise error("CD0420", CdTypeError, "`acc=` names an element type", keyword.span)
            return Kind(dtype)
    return None


def _call_value(
    frame: Frame, function: Value, args: tuple[Value, ...], keywords: dict[str, Value], e: s.Call
) -> Value:
    """Return the value of a call of a function value, by its kind.

    CdTypeError CD0426 for an unknown method, CD0427 for what cannot be called.
    """
    args = tuple(_require_set(frame, arg, e.span) for arg in args)
    keywords = {key: _require_set(frame, value, e.span) for key, value in keywords.items()}
    site = Site(frame.ctx, e.span)
    match function:
        case Bound(value, name):
            handler = table.method(name)
            if isinstance(value, Group) and (own := named_tuples.own_member(frame, value, name)):
                owned = (value, *args) if own.is_bound else args
                return _call_object(frame, own.function, site, owned, keywords, e)
            if isinstance(value, Group) and name == "_replace":
                return named_tuples.replaced(value, args, keywords, e.span)
            if isinstance(value, Group):
                return _group_method(value, name, args, e.span)
            known = [as_python(item) for item in (value, *args, *keywords.values())]
            if handler is None and all(item is not None for item in known):
                inner, *given = (item.value for item in known if item is not None)
                named = dict(zip(keywords, given[len(args) :], strict=True))
                method = functools.partial(getattr(inner, name), **named)
                return now(method, tuple(given[: len(args)]), e.span)
            if handler is None:
                raise error(
                    "CD0426", CdTypeError, f"{describe(value)} has no method `{name}` here", e.span
                )
            result = handler(site, (value, *args), keywords)
            if name == "copy" and isinstance(value, Array) and value.listed is Listed.ARRAYS:
                return value  # another list of the same arrays
            is_copy = name == "copy" and isinstance(value, Array)
            listed = value.listed if is_copy and isinstance(value, Array) else Listed.NO
            return replace(result, listed=listed) if isinstance(result, Array) else result
        case Lazy(inner, scope, defaults):
            assert isinstance(scope, Frame)
            return inline(
                frame, _as_function(inner), scope.lookup, args, keywords, e.span, scope,
                defaults=dict(defaults),
            )  # fmt: skip
        case Static(inner):
            return _call_object(frame, inner, site, args, keywords, e)
        case Opaque(inner, path) if callable(inner):
            return _call_object(frame, inner, site, args, keywords, e, path)
        case _:
            raise error("CD0427", CdTypeError, f"{describe(function)} cannot be called", e.span)


def _require_set(frame: Frame, value: Value, span: Span) -> Value:
    """Return an argument unchanged; CdTypeError CD0202 for an unset name."""
    if isinstance(value, Unset):
        raise error("CD0202", CdTypeError, f"this {value.reason}", span)
    return value


def _call_object(
    frame: Frame,
    function: Any,
    site: Site,
    args: tuple[Value, ...],
    keywords: dict[str, Value],
    e: s.Call,
    path: Path | None = None,
) -> Value:
    """Return the value of calling a Python object: by the table, inlined, or computed now."""
    handler = table.lookup(function)
    if handler is not None:
        keeps = function in (np.array, np.asarray)
        positional = tuple(_as_array(frame, arg, e.span, keeps) for arg in args)
        if function in (max, min) and keywords.keys() == {"key"}:
            chosen = _extreme_by_key(frame, function.__name__, args, keywords["key"], e)
            if chosen is not None:
                return chosen
        if function in (max, min) and not keywords:
            compared = args if len(args) > 1 else items_of(args[0]) if args else None
            if compared and any(map(is_list, compared)):
                return extreme_of_sequences(frame, function.__name__, compared, e.span)
        if function in (sum, math.prod) or function in (max, min) and len(args) == 1:
            positional = _with_python_numbers(args, positional)
        named = {key: _as_array(frame, arg, e.span, keeps) for key, arg in keywords.items()}
        result = handler(site, positional, named)
        return result
    if function is sorted and (few := _sorted(frame, args, keywords, e)) is not None:
        return few
    refusal = table.refusal(function)
    if refusal is not None:
        raise error("CD0428", CdTypeError, refusal[0], e.span, helps=(refusal[1],))
    if hasattr(function, "__cd_function__"):
        return _call_decorated(frame, function, args, keywords, e.span)
    if is_method(function):
        owner = owner_of(frame, function, path, e.span)
        return _call_object(frame, function.__func__, site, (owner, *args), keywords, e)
    if isinstance(function, functools.partial) and not runs_source(function):
        bound, named, inner_path = partial_of(frame, function, path, e.span)
        all_args = (*bound, *args), {**named, **keywords}
        return _call_object(frame, function.func, site, *all_args, e, inner_path)
    if function is super:
        return Static(parents.above(frame, args, e.span))
    if isinstance(function, parents.Method):
        method_args = (function.owner, *args) if function.bound else args
        return _call_object(frame, function.function, site, method_args, keywords, e)
    if isinstance(function, types.FunctionType):
        surface = _parse_once(frame, function, e.span)
        return inline(
            frame, surface, scope_of(function).lookup, args, keywords, e.span, None, function
        )
    if runs_source(function) and not isinstance(function, enum.EnumMeta):
        owner, called = called_by(frame, function, path, e.span)
        return _call_object(frame, called, site, (owner, *args), keywords, e)
    if named_tuples.is_named_tuple(function):
        return named_tuples.named_tuple(frame, function, args, keywords, e.span)
    if isinstance(function, _CACHE_WRAPPER):
        uncached = _unwrap_cache(frame, function, (*args, *keywords.values()), e.span)
        return _call_object(frame, uncached, site, args, keywords, e)
    return constant_calls.call(frame, function, path, args, keywords, e)


def _call_decorated(
    frame: Frame, function: Any, args: tuple[Value, ...], keywords: dict[str, Value], span: Span
) -> Value:
    """Return the value of calling a function under `@cd`: inlined, with its derivative rules where
    these are asked for."""
    if frame.ctx.derives:
        rules = derivative_rules.rules_of(frame, function)
        if rules := rules or rules_of_call(function, args, keywords, span):
            return derivative_rules.call_by_rule(
                inline, _call_decorated, frame, function, rules, args, keywords, span
            )
    surface, lookup = source_of_call(frame, function, args, keywords, span)
    return inline(frame, surface, lookup, args, keywords, span, None, function)


def _few_items(args: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """Return the items of a single argument that has few of them, None of others."""
    match args:
        case (Static(range() as numbers),) if len(numbers) <= _MAX_SORTED:
            return tuple(map(Static, numbers))
        case (given,) if (found := items_of(given)) is not None and len(found) <= _MAX_SORTED:
            return tuple(found)
        case _:
            return None


def _sorted(
    frame: Frame, args: tuple[Value, ...], keywords: dict[str, Value], e: s.Call
) -> Value | None:
    """Return `sorted` of a few items, a list; None for what is sorted as an array."""
    items, reverse = _few_items(args), keywords.get("reverse", Static(False))
    if items is None or not isinstance(reverse, Static) or keywords.keys() - {"reverse", "key"}:
        return None
    keys = _keys(frame, items, keywords.get("key", Static(None)), e)
    op = ">" if reverse.value else "<"
    return Group(tuple(sorted_values(frame, items, keys, op, e.span)), "list")


def _keys(frame: Frame, items: tuple[Value, ...], key: Value, e: s.Call) -> Sequence[Value]:
    return items if key == Static(None) else [_call_value(frame, key, (x,), {}, e) for x in items]


def _extreme_by_key(
    frame: Frame, name: str, args: tuple[Value, ...], key: Value, e: s.Call
) -> Value | None:
    """Return `max` or `min` of a few items by a key, None of others."""
    items = args if len(args) > 1 else _few_items(args)
    if not items:
        return None
    return extreme_by_key(frame, name, items, _keys(frame, items, key, e), e.span)


def _group_method(group: Group, name: str, args: tuple[Value, ...], span: Span) -> Value:
    """Return the result of a tuple's or list's method. CdTypeError CD0438 for a mutating one."""
    if name == "copy" and not args:
        return Group(group.items, group.kind)
    if name in ("index", "count"):
        static_group = as_python(group)
        if static_group is not None and all(isinstance(arg, Static) for arg in args):
            static_args = tuple(arg.value for arg in args if isinstance(arg, Static))
            return now(getattr(static_group.value, name), static_args, span)
        raise error(
            "CD0410", CdTypeError, f"`{name}` looks for values known when compiling here", span,
            helps=("compare the items: `t[0] == v`, or make an array: `np.array(t) == v`",),
        )  # fmt: skip
    raise error(
        "CD0438", CdTypeError, f"lists do not grow or change here (`{name}`)", span,
        helps=("make an array of the final size, `np.zeros(n)`, and assign its elements",),
    )  # fmt: skip


def _unwrap_cache(frame: Frame, cached: Any, args: tuple[Value, ...], span: Span) -> object:
    """Return the function wrapped by `functools.cache`, where it is called with run-time values.

    CdTypeError CD0427 for arrays and lists: they have no hash.
    """
    for arg in args:
        if (
            isinstance(arg, Array | Masked | Handle)
            or isinstance(arg, Group)
            and arg.kind == "list"
        ):
            raise error(
                "CD0427", CdTypeError, f"`{cached.__name__}` keeps its results by its arguments, "
                f"and {describe(arg)} has no hash", span,
                helps=(f"call it without its cache: `{cached.__name__}.__wrapped__(...)`",),
            )  # fmt: skip
    inner: object = cached.__wrapped__
    frame.inputs.ask(cached, "__wrapped__", inner)
    return inner


def _as_array(frame: Frame, value: Value, span: Span, keeps: bool = False) -> Value:
    """Return an argument of a function of the table: a tensor as its value, a list as an array.

    With `keeps` the array still tells that it is a list of Python numbers.
    """
    if isinstance(value, Handle):
        return frame.inputs.field(frame.ctx, value, "value", span)
    if isinstance(value, Array) and value.listed:
        keeps = keeps and value.listed is Listed.NUMBERS
        listed = value.listed if keeps else Listed.NO
        return replace(value, listed=listed, copied=True)  # NumPy makes an array of it
    return value


def _with_python_numbers(
    args: tuple[Value, ...], positional: tuple[Value, ...]
) -> tuple[Value, ...]:
    """Return the arguments of a reduction of Python's: a list of its numbers adapts as they do."""
    match args, positional:
        case (Array(_, (_,)) as one, *_), (Array() as array, *rest):
            if one.listed is Listed.NUMBERS:
                return (replace(array, kind=Kind(array.kind.dtype, True)), *rest)
        case (Array() as arrays, *_), (_, *rest) if arrays.listed is Listed.ARRAYS:
            return (arrays, *rest)
        case (Masked(array, _) as selected, *rest), _ if array.listed is Listed.NUMBERS:
            adapting = replace(array, kind=Kind(array.kind.dtype, True))
            return (replace(selected, array=adapting), *rest)
    return positional


def _parse_once(frame: Frame, function: types.FunctionType, span: Span) -> s.Function:
    """Return a function's surface syntax, parsed once."""
    parsed = frame.inputs.parsed
    if function not in parsed:
        parsed[function] = parse(read_source(function))
    return parsed[function]


def apply(frame: Frame, function: types.FunctionType, args: tuple[Value, ...], span: Span) -> Value:
    """Return the result of a Python function without a call expression: a property's getter."""
    lookup = scope_of(function).lookup
    return inline(frame, _parse_once(frame, function, span), lookup, args, {}, span, None, function)


def _as_function(inner: s.Function | s.Lambda) -> s.Function:
    """Return a function or lambda as a function."""
    if isinstance(inner, s.Function):
        return inner
    body = (s.Return(inner.body, inner.body.span),)
    return s.Function("lambda", inner.params, body, None, inner.span)


def inline(
    frame: Frame,
    function: s.Function,
    lookup: Callable[[str], object],
    args: tuple[Value, ...],
    keywords: Mapping[str, Value],
    span: Span,
    parent: Frame | None = None,
    owner: object = None,
    defaults: Mapping[str, Value] | None = None,
) -> Value:
    """Inline a function: emit its body as a block with its name; return its result.

    `defaults` are the evaluated defaults of a function that is defined inside another one.

    CdTypeError CD0429 where arguments do not fit, CD0430 for recursion.
    """
    ctx = frame.ctx
    if any(function is active for active in ctx.active) or len(ctx.stack) >= _MAX_CALL_DEPTH:
        raise error(
            "CD0430",
            CdTypeError,
            f"`{function.name}` calls itself, or calls nest too deeply",
            span,
            helps=("write the recursion as a loop",),
        )
    key = frame.inputs.root(owner, lookup) if parent is None else parent.key
    if parent is None and not isinstance(owner, str):  # the library's names do not change
        lookup = frame.inputs.noting(key, lookup)
    inner = Frame(
        ctx, frame.inputs, function, {}, function_locals(function, parent, lookup), lookup,
        frame.hooks, key, parent=parent, caller=(frame, span),
        parameters=frozenset(p.name for p in function.params),
    )  # fmt: skip
    if defaults is None and (default_paths := defaults_of(frame, function, owner)) is not None:
        defaults = {
            name: frame.inputs.wrap(ctx, path, value, True, span)
            for name, (path, value) in default_paths.items()
        }
    object_attributes.hand_on(frame, inner)
    inner.names |= bind_arguments(frame, inner, function, args, keywords, defaults, span)
    outer = ctx.stack, ctx.active
    ctx.stack, ctx.active = (*ctx.stack, span), (*ctx.active, function)
    try:
        with ctx.block() as out:
            result = run_function(inner)
    except CdError as problem:
        raise _with_stack(problem, span) from None
    finally:
        ctx.stack, ctx.active = outer
    if any(isinstance(statement, Let) for statement in out) or len(out) < 2:
        ctx.out += out
    elif out:
        ctx.emit(Block(f"{function.name}(...)", tuple(out), span))
    object_attributes.hand_back(frame, inner, result, span)
    return result


def _with_stack(problem: CdError, span: Span) -> CdError:
    """Return an error with a call's location added to its stack.

    What is wrong in the text of a library function is told of the user's call of it.
    """
    return type(problem)(*(_called_from(d, span) for d in problem.diagnostics))


def _called_from(d: Diagnostic, span: Span) -> Diagnostic:
    labels, stack = d.labels, (span, *d.stack)
    if labels and labels[0].span.source.name == LIBRARY:
        stack = d.stack
        if span.source.name != LIBRARY:
            labels = (Label(span),)
    return Diagnostic(d.code, d.message, labels, d.notes, d.helps, stack)


def bind_arguments(
    frame: Frame,
    inner: Frame,
    function: s.Function,
    args: tuple[Value, ...],
    keywords: Mapping[str, Value],
    defaults: Mapping[str, Value] | None,
    span: Span,
) -> dict[str, Value]:
    """Return the values of parameters, by Python's rules. CdTypeError CD0429 for a mismatch."""
    names: dict[str, Value] = {}
    rest, left = list(args), dict(keywords)
    for param in function.params:
        if param.kind == "*":
            names[param.name], rest = Group(tuple(rest)), []
        elif param.kind == "**":
            raise error("CD0429", CdTypeError, "`**` parameters cannot be inlined", span)
        elif param.kind != "keyword" and rest:
            names[param.name] = rest.pop(0)
        elif param.name in left and param.kind != "positional":
            names[param.name] = left.pop(param.name)
        elif defaults and param.name in defaults:
            names[param.name] = defaults[param.name]
        elif param.default is not None and defaults is None:
            names[param.name] = evaluate(inner, param.default)
        else:
            message = f"`{function.name}` is called without its argument `{param.name}`"
            raise error("CD0429", CdTypeError, message, span)
    if rest or left:
        extra = (
            f"unknown argument `{next(iter(left))}`" if left else f"{len(rest)} arguments too many"
        )
        raise error("CD0429", CdTypeError, f"`{function.name}` is called with {extra}", span)
    if frame.ctx.pointwise:
        return names
    return {name: stored_argument(frame, name, value, span) for name, value in names.items()}


def stored_argument(frame: Frame, name: str, value: Value, span: Span) -> Value:
    """Return an argument stored, so that references in the body do not compute it again."""
    if isinstance(value, Array):
        return bindings.materialized(frame.ctx, value, name, span)
    return bindings.frozen(frame, value, name, span)


def run_function(frame: Frame) -> Value:
    """Elaborate a function's body; return its result, the static None where it has none."""
    run(frame, frame.function.body)
    return frame.names.get(RESULT, Static(None))


def library_call(
    frame: Frame, text: str, args: tuple[Value, ...], keywords: Mapping[str, Value], span: Span
) -> Value:
    """Inline a function of the library, given as source text; return its result.

    CdSyntaxError CD0522 at the points of index variables.
    """
    parsed = frame.inputs.parsed
    if frame.ctx.pointwise:
        message = f"`{span.text}` needs an array of its own at every point of the index letters"
        helps = before_the_points(span.text)
        raise error("CD0522", CdSyntaxError, message, span, helps=helps)
    if text not in parsed:
        parsed[text] = parse(source_from_text(text, LIBRARY))
    lookup = scope_of_namespace(table.LIBRARY_SCOPE).lookup
    return inline(frame, parsed[text], lookup, args, keywords, span, None, text)
