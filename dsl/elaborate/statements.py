"""Elaboration of statements: assignments, declarations, calls, prints, checks and returns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from ...base.diagnostic import (  # fmt: skip
    CdError,
    CdNameError,
    CdSyntaxError,
    CdTypeError,
    CdValueError,
    Label,
    Span,
)
from ...base.lazy_import import lazy_functions, lazy_modules
from ...lowering.ir.assignments import Block, Break, Continue, Statement
from ...lowering.ir.ops import OPS
from ..source import surface as s
from ..values.adapting import too_large
from ..values.arrays import as_array, describe
from ..values.builder import NeedStatic, error
from ..values.call_site import Site
from ..values.evaluation_order import after
from ..values.stores import assign, assign_product, refuse_duplicates
from ..values.values import (
    Array,
    Bound,
    Group,
    Handle,
    Lazy,
    Masked,
    Opaque,
    Scalar,
    Static,
    Unset,
    Value,
)
from . import object_attributes
from .aliasing import holding, is_from_outside
from .captures.instances import has_plain
from .debug_names import naming
from .expressions import attribute, default_values, elements, evaluate
from .index.free_variables import guard_letters, uses_letters
from .loop_items import taken_at_once
from .operators import BINARY, binary, is_numpy
from .recovery import Problems
from .scope import EXIT, RESULT, Frame, names_in

if TYPE_CHECKING:
    from ..numpy.primitives import shaping
    from . import (
        bindings,
        branches,
        control_flow,
        declarations,
        early_exit,
        effects,
    )
    from .index import guards
    from .index.notation import index_statement, scalar_statement
    from .loop_carried import closed_over
    from .targets import places
else:  # imported lazily: few programs need them
    branches, control_flow, bindings, declarations, effects = lazy_modules(
        __package__, ".branches", ".control_flow", ".bindings", ".declarations", ".effects"
    )
    early_exit, guards, places, shaping = lazy_modules(
        __package__, ".early_exit", ".index.guards", ".targets.places",
        "..numpy.primitives.shaping",
    )  # fmt: skip
    index_statement, scalar_statement, closed_over = lazy_functions(
        __package__, ".index.notation:index_statement", ".index.notation:scalar_statement",
        ".loop_carried:closed_over",
    )  # fmt: skip


def run(frame: Frame, body: tuple[s.Statement, ...]) -> None:
    """Elaborate statements in order, up to the first unreachable one.

    Unreachable is what follows a `return`, or an `assert` or `raise` that ends every run: errors
    in it are not reported, since Python does not get there.
    """
    problems = Problems(frame)
    for at, statement in enumerate(body):
        if _has_ended(frame):
            break
        rest, reachable = body[at + 1 :], False
        takes_rest = _takes_continuation(frame, statement, rest)
        with problems.collecting():
            if takes_rest:
                _run_with_continuation(frame, statement, rest)
            else:
                reachable = _run_one(frame, body, at)
        if takes_rest or not (reachable or problems.goes_on(statement)):
            break
    problems.tell()


def _takes_continuation(
    frame: Frame, statement: s.Statement, rest: tuple[s.Statement, ...]
) -> bool:
    """Whether a statement returns on some paths, so that its continuation is elaborated with it."""
    match statement:
        case s.If():
            within = frame.exits is None and early_exit.returns_within(statement, rest)
            returns = branches.returns(statement) or within
            return returns and bool(rest) and not guard_letters(frame, statement)
        case s.For() | s.While():
            return frame.exits is None and early_exit.returns_inside(statement.body)
        case _:
            return False


def _run_with_continuation(
    frame: Frame, statement: s.Statement, rest: tuple[s.Statement, ...]
) -> None:
    if isinstance(statement, s.If):
        branches.branch_with_rest(frame, statement, rest, run)
        return
    assert isinstance(statement, s.For | s.While), "what returns on some paths"
    run(frame, (*_elaborate_loop_with_returns(frame, statement), *rest))


def _run_one(frame: Frame, body: tuple[s.Statement, ...], at: int) -> bool:
    """Elaborate one statement of a body; return whether the next one is reachable."""
    statement = body[at]
    try:
        with naming(frame):
            step(frame, statement)
    except NeedStatic as need:
        need.span = need.span or statement.span
        raise
    except CdError:
        if _has_ended(frame):  # by a function that the statement calls
            return False
        raise
    except OverflowError as problem:
        raise too_large(problem, statement.span) from None
    if isinstance(statement, s.Break | s.Continue):
        returns = at and isinstance(body[at - 1], s.Return)  # locals are dead after it
        frame.jumps.append(
            object_attributes.states(frame, frame.names) if returns else dict(frame.names)
        )
        return False
    return RESULT not in frame.names


_UNGUARDED = (s.Return, s.Assert, s.Raise, s.Evaluate, s.Declare, s.Break, s.Continue, s.Define)
"""Statements refused under a guard on index variables: they have no iteration domain."""


def _has_ended(frame: Frame) -> bool:
    return frame.ctx.ended


def step(frame: Frame, statement: s.Statement) -> None:
    """Elaborate one statement."""
    ctx = frame.ctx
    if isinstance(statement, _UNGUARDED):
        _refuse_guarded(frame, statement.span)
    match statement:
        case s.Assign():
            _assign(frame, statement)
        case s.Augment():
            _augment(frame, statement)
        case s.Declare(target, _, value) if value is not None:
            _assign(frame, s.Assign((target,), value, statement.span))
        case s.Declare():
            declarations.declare(frame, statement)
        case s.For():
            control_flow.loop(frame, statement, run)
        case s.While():
            control_flow.repeat(frame, statement, run)
        case s.If() if names := guard_letters(frame, statement):
            guards.guard(frame, statement, names, run)
        case s.If():
            branches.branch(frame, statement, run)
        case s.Comment(text, inner):
            comment_text = evaluate(frame, text)
            if not isinstance(comment_text, Static) or not isinstance(comment_text.value, str):
                message = "a comment is a text known when compiling"
                raise error("CD0417", CdTypeError, message, text.span)
            with ctx.block() as out:
                run(frame, inner)
            ctx.emit(Block(comment_text.value, tuple(out), statement.span))
        case s.Return():
            _return(frame, statement)
        case s.Assert(test, message):
            effects.assertion(frame, test, message, statement.span)
        case s.Raise():
            effects.raising(frame, statement)
        case s.Evaluate():
            effects.evaluation(frame, statement)
        case s.Define(function):
            defaults = default_values(frame, function.params)
            bindings.bind(frame, function.name, Lazy(function, frame, defaults), statement.span)
        case s.Break():
            ctx.emit(Break())
        case s.Continue():
            ctx.emit(Continue())
        case s.Reserve(name, span):
            if isinstance(frame.names.get(name), Unset | None):
                frame.names[name] = Unset("is read before it is assigned", span, reserved=True)
        case s.Pass():
            pass
        case _:
            assert_never(statement)


def _assign(frame: Frame, statement: s.Assign) -> None:
    span = statement.span
    if uses_letters(frame, statement):
        if len(statement.targets) > 1 or isinstance(statement.targets[0], s.Sequence):
            if not any(uses_letters(frame, target) for target in statement.targets):
                _refuse_guarded(frame, span)
                held = bindings.frozen(
                    frame, effects.evaluate_any(frame, statement.value), "value", span
                )
                for assignee in statement.targets:
                    store_to(frame, assignee, held, span)
                return
            raise error(
                "CD0517", CdSyntaxError, "a statement with index letters has one target", span,
                helps=("write one statement for each target",),
            )  # fmt: skip
        target = statement.targets[0]
        if isinstance(target, s.Name):
            _index_scalar(frame, target, statement.value, span)
            return
        index_statement(frame, target, None, statement.value, span)
        return
    _refuse_guarded(frame, span)
    given = statement.value
    if len(statement.targets) == 1 and isinstance(statement.targets[0], s.Sequence):
        given = taken_at_once(frame, given)
    value = evaluate(frame, given)
    if len(statement.targets) > 1:
        value = (
            bindings.frozen(frame, value, "value", span) if not isinstance(value, Static) else value
        )
    for assignee in statement.targets:
        store_to(frame, assignee, value, span)


def _refuse_guarded(frame: Frame, span: Span) -> None:
    """Refuse (CD0515) a statement without index variables under a guard on them."""
    if frame.guards:
        guard = frame.guards[-1]
        raise error(
            "CD0515", CdSyntaxError,
            f"the guard's index `{guard.names[0]}` is not on the left of this statement", span,
            Label(guard.test.span, "the guard"),
            helps=("move the statement out of the `if`, or use the index on its left",),
        )  # fmt: skip


def _index_scalar(frame: Frame, target: s.Name, value: s.Expr, span: Span) -> None:
    """Assign a full reduction in index notation to a scalar: `s = sum(x[i] * y[i])`."""
    bindings.bind(frame, target.id, scalar_statement(frame, value, span), span)


def store_to(frame: Frame, target: s.Expr, value: Value, span: Span) -> None:
    """Assign an evaluated value to one target."""
    values = [value]
    match target:
        case s.Name(name):
            _refuse_lost_rebinding(frame, target, span)
            bindings.bind(frame, name, value, span)
        case s.Subscript():
            locate = partial(places.place_of, frame, target, rebinds=True)
            location = after(frame.ctx, values, locate, span)
            assign(frame.ctx, location, values[0], span)
        case s.Attribute(owner):
            base = after(frame.ctx, values, partial(evaluate, frame, owner), span)
            if isinstance(base, Array) and target.name == "shape":
                _reshape(frame, target, values[0], span)
            elif isinstance(base, Opaque):
                object_attributes.assign(frame, base, target, values[0], span)
            else:
                assign(frame.ctx, places.field_location(frame, base, target), values[0], span)
        case s.Sequence(items, _):
            _unpack(frame, items, value, span)
        case _:
            raise error("CD0142", CdSyntaxError, "this cannot be assigned to", target.span)


def _may_alias(value: Value, array: Array) -> bool:
    """Whether a value may alias an array, or contain an alias of it."""
    if isinstance(value, Group):
        return any(_may_alias(item, array) for item in value.items)
    if isinstance(value, Lazy | Bound):
        return True
    if not isinstance(value, Array) or value.view is None or array.view is None:
        return False
    return value.view.node is array.view.node and value.shape == array.shape


def _reshape(frame: Frame, target: s.Attribute, value: Value, span: Span) -> None:
    """Reshape a local array in place: `x.shape = n`, under this one name.

    CdTypeError CD0418 where the array has aliases, or the shape has no view of its elements.
    """
    name = target.value.id if isinstance(target.value, s.Name) else ""
    old = frame.names.get(name)
    if isinstance(old, Array) and name not in frame.parameters and not frame.in_loop:
        old_view = old.view
        is_input = old_view is not None and old_view.node in frame.inputs.nodes.values()
        is_whole_input = is_input and old_view is not None and old.shape == old_view.node.shape
        others = [bound for bound_name, bound in frame.names.items() if bound_name != name]
        shared = any(_may_alias(bound, old) for bound in others)
        new = shaping.reshape(Site(frame.ctx, span), old, value)
        new_view = new.view if isinstance(new, Array) else None
        same_node = new_view is not None and old_view is not None and new_view.node is old_view.node
        if same_node and not (is_whole_input or shared or name in frame.slots):
            frame.names[name] = new
            return
    raise error(
        "CD0418", CdTypeError, f"`{target.span.text} = ...` changes the array for all that have it",
        target.span, helps=(f"bind a name to the new shape: `{name or 'y'} = "
                            f"{target.value.span.text}.reshape(...)`",),
    )  # fmt: skip


def _unpack(frame: Frame, items: tuple[s.Expr, ...], value: Value, span: Span) -> None:
    parts = elements(frame, value, span)
    stars = [n for n, item in enumerate(items) if isinstance(item, s.Starred)]
    if stars or len(parts) != len(items):
        message = f"{len(items)} targets for {len(parts)} values"
        raise error("CD0419", CdValueError, message, span)
    labels = [item.id if isinstance(item, s.Name) else "part" for item in items]
    if len(parts) > 1:  # copy: all values are read before any target is bound
        parts = [
            bindings.frozen(frame, part, label, span)
            for part, label in zip(parts, labels, strict=True)
        ]
    for item, part in zip(items, parts, strict=True):
        store_to(frame, item, part, span)


def _refuse_lost_rebinding(frame: Frame, target: s.Name, span: Span) -> None:
    """Refuse (V6) rebinding an array parameter, `c = a + b`, where the new value is never read."""
    name = target.id
    if name not in frame.parameters or not isinstance(frame.names.get(name), Array | Handle):
        return
    if name in closed_over(frame.function):
        return  # by a nested function, which reads the name when it is called
    statement_end = (span.end_line, span.end_column)
    for reference in names_in(frame.function):
        if reference.id != name or reference.span == target.span:
            continue
        looping = frame.in_loop or frame.unrolling
        if looping or (reference.span.line, reference.span.column) >= statement_end:
            return
    raise error(
        "CD0206", CdNameError,
        f"`{name} = ...` rebinds the parameter, and the new value is never read", target.span,
        notes=("the caller's array would not change",),
        helps=(f"to write into the caller's array: `{name}[...] = ...`",
               "to hand back a new array: `return ...`"),
    )  # fmt: skip


def _augment(frame: Frame, statement: s.Augment) -> None:
    span, target = statement.span, statement.target
    if uses_letters(frame, statement):
        if statement.op == "@":
            raise error("CD0518", CdSyntaxError, "`@=` has no meaning with index letters", span)
        if isinstance(target, s.Name):
            updated = s.Binary(statement.op, target, statement.value, span)
            _index_scalar(frame, target, updated, span)
            return
        index_statement(frame, target, OPS[BINARY[statement.op]], statement.value, span)
        return
    _refuse_guarded(frame, span)
    owner, location, operands = _evaluate_augmented_target(frame, target, statement.op)
    with frame.ctx.block() as out:
        value = evaluate(frame, statement.value)
    location, old = _before_and_after(frame, target, location, operands, out)
    if not isinstance(location, Array | Masked):
        if isinstance(location, Group) and location.kind == "list":
            _refuse_shared(frame, target.span.text, location, statement)
            if statement.op == "+" and not is_numpy(value):  # any iterable, like `extend`
                value = Group(tuple(elements(frame, value, span)), "list")
        value = binary(frame, statement.op, old, value, span)
        if isinstance(target, s.Attribute):
            assert isinstance(owner, Opaque), "what is bound there is no location"
            object_attributes.assign(frame, owner, target, value, span, statement.op)
        else:
            assert isinstance(target, s.Name), "only a name is bound to what is no location"
            bindings.bind(frame, target.id, value, span)
        return
    if isinstance(target, s.Attribute) and isinstance(owner, Opaque):
        _update_attribute(frame, statement, owner, (location, old), value)
    else:
        _update(frame, statement, (location, old), value)


def _before_and_after(
    frame: Frame, target: s.Expr, location: Value, operands: list[Value], out: list[Statement]
) -> tuple[Value, Value]:
    """Emit `out`, which computes the value of `target op= value`; return the location that is
    updated and its old value."""
    if isinstance(target, s.Subscript) and isinstance(location, Array | Masked):
        moved = places.relocated(frame, target, location, operands, out)
        if moved is not None:
            return moved
    fixed = bindings.fixed_target(frame, target, location, out)
    frame.ctx.out += out
    return fixed


def _update_attribute(
    frame: Frame,
    statement: s.Augment,
    owner: Opaque,
    location_and_value: tuple[Array | Masked, Value],
    value: Value,
) -> None:
    """Update an attribute's array in place and rebind it, even if the value rebound it."""
    target = statement.target
    assert isinstance(target, s.Attribute), "an attribute of an object is one"
    _update(frame, statement, location_and_value, value)
    now = attribute(frame, owner, target.name, target.span)
    if not bindings.same_binding(now, location_and_value[0]):
        object_attributes.assign(
            frame, owner, target, location_and_value[0], statement.span, statement.op
        )


def _update(
    frame: Frame,
    statement: s.Augment,
    location_and_value: tuple[Array | Masked, Value],
    value: Value,
) -> None:
    """Update a location in place; `location_and_value` holds its value before, too."""
    (location, old), span = location_and_value, statement.span
    powers = statement.op == "**" and (isinstance(location, Masked) or location.view is not None)
    if old is not location and isinstance(location, Array):
        refuse_duplicates(location, span)
    if powers or old is not location:  # powers have typing rules and checks of their own
        assign(frame.ctx, location, binary(frame, statement.op, old, value, span), span)
        return
    if statement.op == "@":
        target = as_array(frame.ctx, location, span)
        product = as_array(frame.ctx, binary(frame, "@", target, value, span), span)
        assign_product(frame.ctx, target, value, product, span)
        return
    name = BINARY[statement.op]
    bits = {"bitand": "and", "bitor": "or"}
    if name in bits and _holds_bools(location) and _holds_bools(value):
        name = bits[name]
    assign(frame.ctx, location, value, span, OPS[name])


def _holds_bools(value: Value) -> bool:
    """Whether a value is a bool or an array or selection of bools."""
    if isinstance(value, Masked):
        return _holds_bools(value.array)
    kind = value.kind if isinstance(value, Array) else object_attributes.kind_of(value)
    return kind is not None and kind.dtype.kind == "b"


def _refuse_shared(frame: Frame, name: str, group: Group, statement: s.Augment) -> None:
    """Refuse (CD0438) `items += more` where the list has another name, which would see it."""
    others = [at for at in holding(frame, group) if at != (frame, name)]
    if others or is_from_outside(group):
        raise error(
            "CD0438", CdTypeError, f"`{name} {statement.op}= ...` changes the list itself, which "
            "others see as well", statement.span,
            label=f"`{others[0][1]}` has it, too" if others else "it comes from outside",
            helps=(f"make another list: `{name} = {name} {statement.op} ...`",),
        )  # fmt: skip


def _evaluate_augmented_target(
    frame: Frame, target: s.Expr, op: str
) -> tuple[Value, Value, list[Value]]:
    """Return the owner and the location that `target op= value` updates, evaluated once and before
    the value, as in Python; without an owning object the first is the location, too. Behind them
    stand the array and the subscripts that give the location, for one that is a subscript."""
    match target:
        case s.Attribute(value):
            owner = evaluate(frame, value)
            if not isinstance(owner, Opaque):
                return owner, places.field_location(frame, owner, target), []
            return owner, _augmented_attribute(frame, owner, target, op), []
        case s.Subscript():
            location, operands = places.place_with_operands(frame, target)
            return location, location, operands
    named = _evaluate_target(frame, target)
    return named, named, []


def _augmented_attribute(frame: Frame, owner: Opaque, target: s.Attribute, op: str) -> Value:
    """Return the attribute of an object that is updated: an array, in place, or a rebound value.

    CdTypeError CD0418 where Python would do both, or update a list.
    """
    name, span = target.name, target.span
    current = attribute(frame, owner, name, span)
    if isinstance(current, Handle):
        return frame.inputs.field(frame.ctx, current, "value", span)
    in_object = (
        current.given is None or has_plain(owner.value, name)
        if isinstance(current, Array)
        else True
    )
    if isinstance(current, Array) and (current.listed or not in_object):
        suggestion = f"to write the array in place: `{span.text}[...] {op}= ...`"
        why = "would rebind an attribute of an object"
        raise object_attributes.refused(span, why, (suggestion,), op)
    return current


def _evaluate_target(frame: Frame, target: s.Expr) -> Value:
    match target:
        case s.Name():
            location = evaluate(frame, target)
            if isinstance(location, Handle):
                return frame.inputs.field(frame.ctx, location, "value", target.span)
            return location
        case _:
            raise error("CD0142", CdSyntaxError, "this cannot be assigned to", target.span)


def _return(frame: Frame, statement: s.Return) -> None:
    value = (
        Static(None) if statement.value is None else effects.evaluate_any(frame, statement.value)
    )
    match value:
        case Masked() | Group():
            _refuse_selections(frame, value, statement.span)
        case Unset():
            raise error("CD0202", CdNameError, f"this {value.reason}", statement.span)
        case _:
            pass
    match value:
        case Lazy() if frame.caller is not None and frame.exits is None:
            pass  # a closure, for the caller to call
        case Lazy() | Bound():
            text = f"{describe(value)} cannot be returned"
            raise error("CD0434", CdTypeError, text, statement.span)
        case Scalar() if frame.exits is None:
            value = bindings.frozen(frame, value, "result", statement.span)
        case _ if frame.exits is None:
            value = bindings.materialized(frame.ctx, value, "result", statement.span)
    if frame.exits is None:
        frame.names[RESULT] = value
        return
    frame.exits.append(early_exit.lasting(frame.ctx, value, statement.span))
    bindings.bind(frame, EXIT, Static(len(frame.exits)), statement.span)


def _refuse_selections(frame: Frame, value: Value, span: Span) -> None:
    """Refuse (CdTypeError CD0403) to return a mask selection, also in a tuple or list."""
    if isinstance(value, Masked):
        as_array(frame.ctx, value, span)
    for item in value.items if isinstance(value, Group) else ():
        _refuse_selections(frame, item, span)


def _elaborate_loop_with_returns(
    frame: Frame, statement: s.For | s.While
) -> tuple[s.Statement, ...]:
    """Elaborate a loop with returns inside; return the statements that dispatch them after it."""
    span = statement.span
    frame.names[EXIT], frame.exits = Static(0), []
    try:
        run(frame, (replace(statement, body=early_exit.with_exits(statement.body)),))
        exit_values = frame.exits
    finally:
        frame.exits = None
    out: list[s.Statement] = []
    for n, value in enumerate(exit_values, 1):
        name = f"{EXIT}-{n}"
        frame.names[name] = value
        here = s.Compare((s.Name(EXIT, span), s.Literal(n, span)), ("==",), span)
        back = s.Return(s.Name(name, span), span)
        last = n == len(exit_values) and early_exit.endless(statement)
        out.append(back if last else s.If(here, (back,), (), span))
    return tuple(out)
