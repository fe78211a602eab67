"""Elaboration of expressions: names, operators, subscripts, attributes and calls to values."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, assert_never

import numpy as np

from ...base.diagnostic import (
    CdAttributeError,
    CdNameError,
    CdSyntaxError,
    CdTypeError,
    Span,
)
from ...base.lazy_import import lazy_functions, lazy_modules
from ...lowering.ir.expressions import Expr, Position, Read
from ...lowering.ir.indexing import const
from ..numpy import table
from ..source import surface as s
from ..source.fingerprint import is_immutable
from ..values.arrays import as_array, as_scalar, describe, elementwise, operate
from ..values.builder import error
from ..values.call_site import MAX_ITEMS, Site, is_long_range, position_of, too_many_items
from ..values.constant_tables import LEAST, items_table
from ..values.evaluation_order import after
from ..values.short_circuit import under
from ..values.types import kind_of_number
from ..values.values import (
    Array,
    Bound,
    Edge,
    Group,
    Handle,
    Lazy,
    Masked,
    Opaque,
    Path,
    Scalar,
    Section,
    Static,
    Value,
)
from . import object_attributes
from .bindings import frozen
from .captures import owners, parents
from .captures.attribute_lookup import get_attribute, has_in_python
from .captures.instances import (
    is_from_library,
    is_function,
    is_of_user,
    may_be_replaced,
)
from .index.subscript_rules import refuse_captured_letters, refuse_mixed
from .loop_items import taken_at_once
from .merging import merge_of, of_a_field
from .names import is_letter, resolve
from .operators import (
    as_affine,
    as_python,
    binary,
    inverted,
    now,
    positive,
    unary_now,
    value_of,
)
from .scope import Frame, names_in

if TYPE_CHECKING:
    from ..numpy.primitives import attributes
    from ..numpy.primitives.views import as_read, spread_out, subscript
    from . import select, truth
    from .captures import named_tuples
    from .conditions.comparisons import compare_values
    from .index import refusals
else:  # imported lazily: few programs need them
    attributes, select, truth, refusals, named_tuples = lazy_modules(
        __package__, "..numpy.primitives.attributes", ".select", ".truth", ".index.refusals",
        ".captures.named_tuples",
    )  # fmt: skip
    as_read, spread_out, subscript, compare_values = lazy_functions(
        __package__, "..numpy.primitives.views:as_read", "..numpy.primitives.views:spread_out",
        "..numpy.primitives.views:subscript", ".conditions.comparisons:compare_values",
    )  # fmt: skip


def evaluate(frame: Frame, e: s.Expr) -> Value:
    """Return the value of an expression; statements that it needs are emitted before it."""
    match e:
        case s.Name():
            return resolve(frame, e)
        case s.Literal(value):
            return Static(value)
        case s.Unary():
            return _evaluate_unary(frame, e)
        case s.Binary(op, left, right):
            lhs, rhs = evaluated(frame, (left, right))
            return binary(frame, op, lhs, rhs, e.span)
        case s.Compare():
            return _evaluate_compare(frame, e)
        case s.Logical():
            return _evaluate_logical(frame, e, evaluate)
        case s.Conditional():
            return _evaluate_conditional(frame, e)
        case s.Subscript():
            return read_subscript(frame, evaluate(frame, e.value), e)
        case s.Attribute(value, name):
            return attribute(frame, evaluate(frame, value), name, e.span)
        case s.Call():
            return frame.hooks.call(frame, e)
        case s.Sequence(items, kind):
            return Group(tuple(evaluated(frame, items)), kind)
        case s.Comprehension():
            return frame.hooks.comprehend(frame, e)
        case s.Lambda(params, _):
            return Lazy(e, frame.closure or frame, default_values(frame, params))
        case s.Slice(lower, upper, step):
            ends = (lower, upper, step)
            values = iter(evaluated(frame, tuple(end for end in ends if end is not None)))
            return Section(*(None if end is None else next(values) for end in ends))
        case s.Format():
            return Static(_format_text(frame, e))
        case s.Starred():
            raise error("CD0141", CdSyntaxError, "`*` cannot stand here", e.span)
        case _:
            assert_never(e)


def default_values(frame: Frame, params: tuple[s.Param, ...]) -> tuple[tuple[str, Value], ...]:
    """Return the default values of parameters, evaluated at the function's definition."""
    defaults = [(p.name, p.default) for p in params if p.default is not None]
    values = evaluated(frame, tuple(default for _, default in defaults))
    if not frame.ctx.pointwise:
        values = [
            frozen(frame, value, name, default.span)
            for value, (name, default) in zip(values, defaults, strict=True)
        ]
    return tuple(zip((name for name, _ in defaults), values, strict=True))


def evaluated(frame: Frame, items: tuple[s.Expr, ...]) -> list[Value]:
    """Return the values of expressions, from left to right; `*x` is unpacked."""
    out: list[Value] = []
    add_evaluated(frame, out, items)
    return out


def add_evaluated(frame: Frame, earlier: list[Value], items: tuple[s.Expr, ...]) -> None:
    """Add the values of expressions to those of earlier operands; `*x` is unpacked."""
    for item in items:
        earlier += after(frame.ctx, earlier, partial(_unpacked, frame, item), item.span)


def _unpacked(frame: Frame, item: s.Expr) -> list[Value]:
    """Return the value of an expression, the items of one for `*x`."""
    if isinstance(item, s.Starred):
        given = taken_at_once(frame, item.value)
        return elements(frame, evaluate(frame, given), item.span)
    return [evaluate(frame, item)]


def elements(frame: Frame, value: Value, span: Span) -> list[Value]:
    """Return the items of a value that is unpacked or unrolled.

    CdTypeError CD0406 where its length is not static, or more than `MAX_ITEMS`.
    """
    match value:
        case Group(items, _):
            return list(items)
        case Static(inner) if is_long_range(inner):
            raise too_many_items(value, span)
        case Static(inner) if isinstance(inner, tuple | list | str | range):
            return [Static(item) for item in inner]
        case Handle():
            return elements(frame, as_array(frame.ctx, value, span), span)
        case Array() if value.rank:
            frame.ctx.require_static(value.shape[0])
            size = value.shape[0].constant
            if size is not None and size > MAX_ITEMS:
                raise too_many_items(value, span)
            if size is not None:
                return [
                    value_of(subscript(frame.ctx, value, [Static(n)], span, "the array"))
                    for n in range(size)
                ]
    raise error("CD0406", CdTypeError, f"{describe(value)} cannot be unpacked here", span)


def _evaluate_unary(frame: Frame, e: s.Unary) -> Value:
    if e.op == "not":
        return truth.negation(frame, tested(frame, e.operand), e.operand.span)
    operand = evaluate(frame, e.operand)
    if (folded := unary_now(e.op, operand, e.span)) is not None:
        return folded
    index = as_affine(operand)
    if index is not None and e.op == "-" and isinstance(operand, Scalar):
        return Scalar(Position(-index), operand.kind)
    if e.op == "+":
        return elementwise(frame.ctx, positive, [operand], e.span)
    if e.op == "~":
        return elementwise(frame.ctx, inverted, [operand], e.span)
    return operate(frame.ctx, "neg", [operand], e.span)


def _evaluate_compare(frame: Frame, e: s.Compare, as_test: bool = False) -> Value:
    """Return a comparison chain; `as_test`: only its truth is used."""
    return _compare_chain(frame, e, evaluate(frame, e.operands[0]), 0, as_test)


def _compare_chain(frame: Frame, e: s.Compare, left: Value, at: int, as_test: bool) -> Value:
    """Return the conjunction of a comparison chain from one operand on (short circuit)."""
    next_at, earlier = at + 1, [left]
    right = after(frame.ctx, earlier, partial(evaluate, frame, e.operands[next_at]), e.span)
    comparison = compare_values(frame, e.ops[at], earlier[0], right, e.span, as_test)
    if len(e.ops) > 1 and isinstance(comparison, Array) and comparison.rank:
        raise error(
            "CD0409", CdTypeError, "a chained comparison of whole arrays has no one truth", e.span,
            helps=("write `(a < b) & (b < c)`",),
        )  # fmt: skip
    if next_at == len(e.ops):
        return comparison
    first = truth.test_of(frame, comparison, e.span)
    if isinstance(first, Static):
        return _compare_chain(frame, e, right, next_at, as_test) if first.value else first
    test, rest = under(
        frame.ctx, first.expr, lambda: _compare_chain(frame, e, right, next_at, as_test), e.span
    )
    kind = truth.kind_of_bools(comparison, rest)
    return truth.both(Scalar(test, kind), truth.test_of(frame, rest, e.span), False, kind)


def tested(frame: Frame, e: s.Expr) -> Static | Scalar:
    """Return an expression as a test, static or a bool; `and` and `or` give only their truth."""
    match e:
        case s.Logical():
            value = _evaluate_logical(frame, e, tested)
        case s.Compare():
            value = _evaluate_compare(frame, e, as_test=True)
        case _:
            value = evaluate(frame, e)
    return truth.test_of(frame, value, e.span)


def _evaluate_logical(frame: Frame, e: s.Logical, of: Callable[[Frame, s.Expr], Value]) -> Value:
    """Return `and`/`or`, one of the operands as in Python; `of` evaluates each.

    Later operands are elaborated under the earlier ones (short circuit).
    """
    first = of(frame, e.operands[0])
    left_test = truth.test_of(frame, first, e.operands[0].span)
    rest = e.operands[1:]
    tail = s.Logical(e.op, rest, e.span) if len(rest) > 1 else rest[0]
    stop = e.op == "or"
    choice = frame.choice()
    if isinstance(left_test, Static) and left_test.value == stop:
        return first
    with frame.on_side(choice, True):
        if isinstance(left_test, Static):
            return of(frame, tail)
        test, second = under(
            frame.ctx, left_test.expr, lambda: of(frame, tail), tail.span, not stop
        )
        decided = Scalar(test, left_test.kind)
    right_test = truth.test_of(frame, second, tail.span)
    if truth.is_bool(first) and truth.is_bool(second):
        return truth.both(decided, right_test, stop, truth.kind_of_bools(first, second))
    sides = (first, second) if stop else (second, first)
    return _selected(frame, left_test.expr, test, sides, e.span)


def _evaluate_conditional(frame: Frame, e: s.Conditional) -> Value:
    open_test = tested(frame, e.test)
    test, choice = truth.settle_test(frame, open_test), frame.choice()

    def side(holds: bool) -> Value:
        with frame.on_side(choice, holds):
            return evaluate(frame, e.yes if holds else e.no)

    if isinstance(test, Static):
        value = side(bool(test.value))
        if isinstance(open_test, Static) or not frame.ctx.pointwise:
            return value
        return select.as_if_open(frame.ctx, value, lambda: side(not test.value), e.span)
    decided, yes = under(frame.ctx, test.expr, lambda: side(True), e.yes.span)
    decided, no = under(frame.ctx, decided, lambda: side(False), e.no.span, holds=False)
    return _selected(frame, test.expr, decided, (yes, no), e.span)


def _selected(
    frame: Frame, test: Expr, decided: Expr, sides: tuple[Value, Value], span: Span
) -> Value:
    """Return one of two values, by the test `test`, of which `decided` is the value."""
    deciding = truth.given_in(frame.ctx, test)
    truth.require_alike(frame.ctx, deciding, *sides)
    value = select.select_value(frame.ctx, decided, *sides, span)
    truth.note_choice(frame.ctx, deciding, value, sides)
    return value


def read_subscript(frame: Frame, base: Value, e: s.Subscript) -> Value:
    """Return the value of `value[items]` as an operand, where the value has been evaluated."""
    view = as_read(subscript_value(frame, base, e, e.value))
    dots = any(isinstance(item, s.Literal) and item.value is ... for item in e.items)
    return view if dots else value_of(view)  # `x[..., 0]` is an array, without axes too


def subscript_value(frame: Frame, base: Value, e: s.Subscript, owner: s.Expr) -> Value:
    """Return the value of a subscript whose base has been evaluated, with rank-0 results as arrays
    (they may be written)."""
    refuse_captured_letters(frame, e, isinstance(base, Array | Handle))
    match base:
        case Array():
            return located(frame, with_subscripts(frame, base, e), e, owner)
        case Handle():
            return subscript_value(
                frame, frame.inputs.field(frame.ctx, base, "value", e.span), e, owner
            )
        case Group():
            group, *keys = _with_keys(frame, base, e)
            assert isinstance(group, Group), "a tuple or list that is saved is one"
            return _table_item(frame, group, keys, e, owner) or _group_item(frame, group, keys, e)
        case Static(inner) if (special := table.special_subscript(inner)) is not None:
            _, *subscripts = with_subscripts(frame, base, e)
            return special(Site(frame.ctx, e.span), tuple(map(value_of, subscripts)))
        case Static(inner):
            _, *keys = _with_keys(frame, base, e)
            item = _table_item(frame, base, keys, e, owner)
            return item or now(operator.getitem, (inner, _static_key(frame, e, keys)), e.span)
        case Opaque(inner, path):
            _, *keys = _with_keys(frame, base, e)
            key = _static_key(frame, e, keys)
            member = now(operator.getitem, (inner, key), e.span).value
            step = Path(path.root, (*path.steps, (key,)), path.captured)
            return frame.inputs.wrap(frame.ctx, step, member, True, e.span)
        case Scalar() if not e.items:
            return base
        case _:
            raise error("CD0411", CdTypeError, f"{describe(base)} cannot be subscripted", e.span)


def located(frame: Frame, operands: list[Value], e: s.Subscript, owner: s.Expr) -> Value:
    """Return the location, or selection, of an array and the values of its subscripts behind it."""
    array, *subscripts = operands
    assert isinstance(array, Array), "an array that is saved is one"
    items = spread_out(subscripts, e.comma)
    refuse_mixed(frame, e, items)
    return subscript(frame.ctx, array, items, e.span, owner.span.text)


def _with_keys(frame: Frame, base: Value, e: s.Subscript) -> list[Value]:
    """Return a base that is no array, and the values of its subscripts behind it."""
    operands = [base]
    for item in e.items:
        operands.append(
            after(frame.ctx, operands, partial(_subscript_item, frame, item), item.span)
        )
    return operands


def with_subscripts(frame: Frame, base: Value, e: s.Subscript) -> list[Value]:
    """Return a base, and the values of the subscripts of its axes behind it."""
    operands = [base]
    for item in e.items:
        try:
            operands.append(
                after(frame.ctx, operands, partial(_subscript_item, frame, item), item.span)
            )
        except CdNameError as problem:
            if (name := _stray_letter(frame, item, problem)) is not None:
                raise refusals.unreduced(name.id, name.span) from None
            raise
    return operands


def _stray_letter(frame: Frame, item: s.Expr, problem: CdNameError) -> s.Name | None:
    """Return the index variable that is unbound in a subscript outside of index notation."""
    if frame.letters is not None or problem.code != "CD0201":
        return None
    (label, *_) = problem.diagnostics[0].labels
    found = (x for x in names_in(item) if x.span == label.span and is_letter(frame, x))
    return next(found, None)


def _table_item(
    frame: Frame, base: Value, keys: list[Value], e: s.Subscript, owner: s.Expr
) -> Value | None:
    """Return the item of a sequence of numbers at a run-time position; None for other subscripts.

    In a short sequence what can be known when compiling, a loop variable too, selects the item
    then.
    """
    if len(e.items) != 1 or isinstance(e.items[0], s.Slice) or frame.ctx.constant is None:
        return None
    members = base.items if isinstance(base, Group) else getattr(base, "value", ())
    at = value_of(keys[0])
    number = at.index if isinstance(at, Edge) else at
    if not isinstance(members, tuple | list) or not isinstance(number, Scalar):
        return None
    position = None if isinstance(at, Edge) else position_of(at)
    if len(members) <= LEAST and position is not None:
        if frame.ctx.uncounted.isdisjoint(position.symbols()):
            return None
    if not members or number.kind.dtype.kind not in "iu":
        return None
    if position is not None and not frame.ctx.assumptions.nonnegative(position):
        frame.ctx.prefer_static(position)
        frame.ctx.require_unrolled((position,))  # negative positions count from the end
    read = items_table(frame.ctx, elements(frame, base, e.span), e.span, 0)
    return None if read is None else _read_at(frame, read(const(0)), at, e, owner)


def _read_at(frame: Frame, first: Value, at: Value, e: s.Subscript, owner: s.Expr) -> Value | None:
    """Return the item of tables at a position, where their first one is given."""
    if isinstance(first, Group):
        members = [_read_at(frame, member, at, e, owner) for member in first.items]
        known = [member for member in members if member is not None]
        return first.of(known) if len(known) == len(members) else None
    if not isinstance(first, Scalar) or not isinstance(first.expr, Read):
        return None
    array = frame.ctx.whole(first.expr.node, e.span)
    item = as_scalar(subscript(frame.ctx, array, [at], e.span, owner.span.text), e.span)
    return Scalar(item.expr, first.kind if item.kind.dtype == first.kind.dtype else item.kind)


def _subscript_item(frame: Frame, item: s.Expr) -> Value:
    """Return one subscript; `pad`, `clamp` and `wrap` become boundary modes."""
    if isinstance(item, s.Call):
        function = item.function
        if isinstance(function, s.Name) and function.id in ("pad", "clamp", "wrap"):
            word = resolve(frame, function)
            if word == table.WORDS[function.id]:
                args = [evaluate(frame, arg) for arg in item.args]
                if not args or len(args) > (2 if function.id == "pad" else 1):
                    raise error(
                        "CD0412", CdTypeError, f"`{function.id}` takes an index"
                        + (" and a fill" if function.id == "pad" else ""), item.span,
                    )  # fmt: skip
                index = as_scalar(args[0], item.span, "an index")
                return Edge(function.id, index, args[1] if len(args) > 1 else None)
    value = evaluate(frame, item)
    is_index_array = isinstance(value, Array) and value.kind.dtype.kind != "b"
    return value if is_index_array else value_of(value)  # one without axes takes a copy, too


def _refuse_index_of_no_array(frame: Frame, e: s.Subscript, item: s.Expr) -> None:
    """Refuse (CD0411) an index variable on a value that is no array: `y[i]` where `y` is None."""
    if isinstance(item, s.Name) and is_letter(frame, item):
        name = e.value.span.text
        what = describe(evaluate(frame, e.value))
        raise error(
            "CD0411", CdTypeError, f"`{name}` is {what} and no array: `{item.id}` cannot index it",
            e.value.span, helps=(f"pass an array for `{name}`: `np.zeros(3)`",),
        )  # fmt: skip


def _static_key(frame: Frame, e: s.Subscript, values: list[Value]) -> object:
    """Return the key of a subscript of no array; an integer parameter in it becomes static."""
    keys = [_key_object(frame, e, item, value) for item, value in zip(e.items, values, strict=True)]
    return keys[0] if len(keys) == 1 and not e.comma else tuple(keys)


def _key_object(frame: Frame, e: s.Subscript, item: s.Expr, value: Value) -> object:
    """Return one key as a Python object. CdTypeError CD0413 where it is a run-time value."""
    if isinstance(value, Section):
        ends = (value.lower, value.upper, value.step)
        return slice(*(end if end is None else _key_object(frame, e, item, end) for end in ends))
    if (static := as_python(value)) is not None:
        return static.value
    if (at := position_of(value_of(value))) is not None:
        if at.constant is not None:
            return at.constant
        frame.ctx.require_static(at)
    _refuse_index_of_no_array(frame, e, item)
    raise refusals.unknown_key(e, evaluate(frame, e.value), value_of(value), item.span)


def _group_item(frame: Frame, group: Group, keys: list[Value], e: s.Subscript) -> Value:
    """Return one item of a tuple or list, or those that a slice selects."""
    every = tuple(range(len(group.items)))
    positions = now(operator.getitem, (every, _static_key(frame, e, keys)), e.span).value
    if isinstance(positions, tuple):
        return Group(tuple(group.items[at] for at in positions), group.kind)
    assert isinstance(positions, int)
    return group.items[positions]


def attribute(frame: Frame, value: Value, name: str, span: Span) -> Value:
    """Return `value.name`: a field, a property, a bound method or an attribute of an object."""
    match value:
        case Handle() if name == "merge" and name not in _field_names(value):
            return frame.inputs.field(frame.ctx, value, "value", span, merged=True)
        case Handle() if name in _field_names(value):
            return frame.inputs.field(frame.ctx, value, name, span)
        case Handle() if table.method(name) is None and name not in _ARRAY_PROPERTIES:
            return frame.inputs.field(frame.ctx, value, name, span)
        case Handle():
            array = frame.inputs.field(frame.ctx, value, "value", span)
            return attribute(frame, array, name, span)
        case Opaque(inner, path):
            if (result := object_attributes.current(frame, value, name, span)) is not None:
                return result
            if (getter := object_attributes.property_of(frame, value, name, span)) is not None:
                return frame.hooks.apply(frame, getter, (value,), span)
            member = get_attribute(inner, name, span)
            step = Path(path.root, (*path.steps, name), path.captured)
            return frame.inputs.wrap(frame.ctx, step, member, True, span)
        case Static(parents.Above() as above):
            return parents.attribute(frame, above, name, span)
        case Static(inner) if kind_of_number(inner) is None or isinstance(
            inner, np.generic | complex | enum.Enum
        ):
            member = get_attribute(inner, name, span)
            is_own = is_of_user(inner) and not is_from_library(inner, name)
            if is_own and not isinstance(inner, enum.Enum):  # an equal one may have another
                text = f"`.{name}` of {describe(value)} is not supported"
                helps = ("pass it as an argument of its own",)
                raise error("CD0414", CdAttributeError, text, span, helps=helps)
            if is_own or is_function(inner) or may_be_replaced(inner, member):
                step = owners.below(owners.way_to(frame, inner), name)
                compared = frame.inputs.wrap(frame.ctx, step, member, True, span)
                # of a tuple of Python's, such as `sys.version_info`, the fields have names
                is_special = isinstance(member, tuple) and hasattr(type(member), "n_fields")
                return Static(member) if is_special else compared
            frame.inputs.ask(inner, name, member)
            method = callable(member) and kind_of_number(inner)
            return Bound(value, name) if method else Static(member)
        case Array() if name == "merge":
            return merge_of(frame, value, span)
        case Array() | Scalar() | Masked() | Static():
            result = attributes.attribute(Site(frame.ctx, span), value, name)
            if result is not None:
                return result
            if table.method(name) is not None or _is_known_method(value, name):
                return Bound(value, name)
        case Group():
            return _group_attribute(frame, value, name, span)
        case _:
            pass
    if isinstance(value, Array) and (field := of_a_field(frame, value, name)) is not None:
        text = f"an array has no field `{name}`: its tensor has it"
        raise error("CD0414", CdAttributeError, text, span, helps=(f"write it so: `{field}`",))
    if has_in_python(value, name):
        text = f"`.{name}` of {describe(value)} is not supported"
        raise error("CD0414", CdAttributeError, text, span)
    pool = (*_ARRAY_PROPERTIES, *table.methods()) if isinstance(value, Array | Scalar) else ()
    raise attributes.missing(describe(value), name, pool, span)


def _is_known_method(value: Value, name: str) -> bool:
    return isinstance(value, Static) and callable(getattr(value.value, name, None))


def _group_attribute(frame: Frame, group: Group, name: str, span: Span) -> Value:
    own = named_tuples.own_member(frame, group, name)
    if own is not None and own.is_property:
        return frame.hooks.apply(frame, own.function, (group,), span)
    return attributes.of_group(group, name, span) if own is None else Bound(group, name)


_ARRAY_PROPERTIES = ("shape", "ndim", "dtype", "size", "T", "real", "imag", "itemsize", "nbytes")


def _field_names(handle: Handle) -> tuple[str, ...]:
    return handle.tensor.fields


def _format_text(frame: Frame, e: s.Format) -> str:
    out = ""
    for part in e.parts:
        if isinstance(part, str):
            out += part
            continue
        value = as_python(evaluate(frame, part[0]))
        if value is None:
            raise error(
                "CD0415",
                CdTypeError,
                "an f-string can show only values known when compiling here",
                part[0].span,
                helps=("give run-time values to `print` or as arguments of the error",),
            )
        frame.inputs.steady &= is_immutable(value.value)  # others may print an address
        out += str(now(format, (value.value, part[1]), part[0].span).value)
    return out
