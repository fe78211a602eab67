"""`any` and `all` of a generator: Python stops at the first item that decides.

All items are computed, as those of a list, where that cannot be told from stopping: where they
only compute. Where they are checked, write or print, the call becomes a loop with a `return`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ....base.diagnostic import CdError, CdTypeError
from ....lowering.ir.assignments import Check, Print, Statement
from ....lowering.ir.node import Node
from ....lowering.ir.walk import direct_writes, statements
from ...source import surface as s
from ...values.builder import error
from ...values.values import Value
from .. import object_attributes
from ..expressions import evaluate, evaluated
from ..scope import Frame, names_in, restore, snapshot, target_names

Apply = Callable[[s.Function, tuple[Value, ...]], Value]
"""Calls a function of the source that is defined where the call of `any` or `all` stands."""


def items_or_decision(frame: Frame, e: s.Call, stop: bool, apply: Apply) -> list[Value] | Value:
    """Return the items of the generator that `any` (`stop` is true) or `all` (false) is given, or
    the decision, where not all of them may be computed."""
    ctx, problem = frame.ctx, None
    state, early = snapshot(frame), len(ctx.prologue)
    values: list[Value] = []
    try:
        values = evaluated(frame, e.args)
    except CdError as refusal:  # of an item, perhaps, that Python does not reach
        problem = refusal
    emitted, new = ctx.out[len(state.out) :], set(ctx.locals[state.locals :])
    before, after = (object_attributes.states(frame, x) for x in (state.names, frame.names))
    effects = _have_effects(emitted, new) or before != after
    checked = any(isinstance(one, Check) for one in statements((*emitted, *ctx.prologue[early:])))
    if problem is None and not effects and not checked:
        return values
    if ctx.pointwise:  # where there are no loops: of a list, the items may be computed by one
        if problem is not None or effects or ctx.of_items:
            raise problem or _effects_error(e)
        return values
    restore(frame, state)
    ctx.prologue[early:] = [one for one in ctx.prologue[early:] if not isinstance(one, Check)]
    (generator,) = e.args
    assert isinstance(generator, s.Comprehension)
    try:
        decision = _decided_by_loop(frame, e, generator, stop, apply)
    except CdError:
        if problem is not None:
            raise problem from None
        raise
    if decision is None:
        raise problem or _effects_error(e)
    return decision


def _have_effects(out: list[Statement], new: set[Node]) -> bool:
    """Whether statements print, or write other nodes than new ones."""
    return any(
        isinstance(statement, Print) or not new.issuperset(direct_writes(statement))
        for statement in statements(out)
    )


def _effects_error(e: s.Call) -> CdError:
    """Return the error CD0437 of items that have to be evaluated one by one, and cannot be."""
    name = e.function.span.text
    return error(
        "CD0437", CdTypeError,
        f"`{name}` stops at the first item that decides, and these write, print or may fail",
        e.span, helps=(f"take all of them: `{name}([...])`", "or write a loop with `break`"),
    )  # fmt: skip


def _decided_by_loop(
    frame: Frame, e: s.Call, generator: s.Comprehension, stop: bool, apply: Apply
) -> Value | None:
    """Return what a loop over the items decides, None where it cannot be written.

    It is the body of a function, which has a scope of its own, as a generator has. What the first
    iterable reads under the name of a target is of the scope outside: it becomes an argument.
    """
    iterable = generator.iterable
    outer = {name.id: name for name in names_in(iterable)}
    shadowed = [outer[name] for name in target_names(generator.target) if name in outer]
    if shadowed and _has_scopes(iterable):
        return None
    renamed = {name.id: f"{name.id}'" for name in shadowed}
    args = tuple(evaluate(frame, name) for name in shadowed)
    params = tuple(s.Param(renamed[name.id], "any", None, None, name.span) for name in shadowed)
    loop = _loop(replace(generator, iterable=_with_names(iterable, renamed)), stop)
    end = s.Return(s.Literal(not stop, e.span), e.span)
    return apply(s.Function(e.function.span.text, params, (loop, end), None, e.span), args)


def _loop(generator: s.Comprehension, stop: bool) -> s.For:
    """Return the loop over the items of a generator, left by `return` where one decides."""
    element, span = generator.element, generator.target.span
    if isinstance(element, s.Starred):
        assert isinstance(element.value, s.Comprehension)
        body: s.Statement = _loop(element.value, stop)
    else:
        test = element if stop else s.Unary("not", element, element.span)
        body = s.If(test, (s.Return(s.Literal(stop, span), span),), (), element.span)
    for condition in reversed(generator.tests):
        body = s.If(condition, (body,), (), condition.span)
    return s.For(generator.target, generator.iterable, (body,), span)


def _has_scopes(node: Any) -> bool:
    """Whether a node of the syntax has scopes of its own inside."""
    if isinstance(node, s.Lambda | s.Comprehension):
        return True
    return any(map(_has_scopes, _children(node)))


def _children(node: Any) -> list[object]:
    if isinstance(node, tuple):
        return list(node)
    return [getattr(node, f.name) for f in fields(node)] if _is_node(node) else []


def _with_names(node: Any, renamed: dict[str, str]) -> Any:
    """Return a node of the syntax, which has no scopes inside, with names replaced."""
    if isinstance(node, s.Name):
        return replace(node, id=renamed.get(node.id, node.id))
    if isinstance(node, tuple):
        return tuple(_with_names(part, renamed) for part in node)
    if not _is_node(node) or not renamed:
        return node
    parts = {f.name: _with_names(getattr(node, f.name), renamed) for f in fields(node) if f.init}
    return replace(node, **parts)


def _is_node(value: Any) -> bool:
    """Whether a value is a node of the syntax, not a location in the source."""
    return is_dataclass(value) and not isinstance(value, type) and hasattr(value, "span")
