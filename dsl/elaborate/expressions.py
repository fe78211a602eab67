"""Surface expressions to values: names, operators, subscripts, attributes, calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import assert_never

import numpy as np

from ...lowering.diagnostic import CdError, CdNameError, CdSyntaxError, CdTypeError, CdValueError, Span
from ...lowering.ir import dtypes
from ...lowering.ir.expressions import Const, Expr, Position, Select
from ...lowering.ir.indexing import Affine, const, floordiv, mod, multiply
from .. import surface as s
from . import numpy_table as table
from .arrays import as_scalar, describe, elementwise, operate
from .context import error
from .frame import LETTER, Frame
from .names import is_letter, resolve
from .numpy_table import Site
from .types import BOOL, FALSE, TRUE, WEAK_BOOL, WEAK_INT, Kind, apply, cast, join, kind_of_number, negate, truth
from .values import (
    Array, Bound, Edge, Group, Handle, Lazy, Masked, Opaque, Path, Scalar, Section, Static, Value,
)  # fmt: skip
from .views import subscript

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow",
    "&": "bitand", "|": "bitor", "^": "bitxor", "<<": "shl", ">>": "shr",
}  # fmt: skip
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_PYTHON: dict[str, Callable[..., object]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "is": operator.is_, "is not": operator.is_not,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip


def evaluate(frame: Frame, e: s.Expr) -> Value:
    """Return the value of an expression; statements it needs before it are emitted."""
    match e:
        case s.Name():
            return resolve(frame, e)
        case s.Literal(value):
            return Static(value)
        case s.Unary():
            return _unary(frame, e)
        case s.Binary(op, left, right):
            return binary(frame, op, evaluate(frame, left), evaluate(frame, right), e.span)
        case s.Compare():
            return _compare(frame, e)
        case s.Logical():
            return _logical(frame, e)
        case s.Conditional():
            return _conditional(frame, e)
        case s.Subscript():
            return value_of(_subscript(frame, e))
        case s.Attribute(value, name):
            return attribute(frame, evaluate(frame, value), name, e.span)
        case s.Call():
            return frame.hooks.call(frame, e)
        case s.Sequence(items, kind):
            return Group(tuple(_items(frame, items)), kind)
        case s.Comprehension():
            return frame.hooks.comprehend(frame, e)
        case s.Lambda():
            return Lazy(e, frame)
        case s.Slice(lower, upper, step):
            ends = [None if part is None else evaluate(frame, part) for part in (lower, upper, step)]
            return Section(*ends)
        case s.Format():
            return Static(_formatted(frame, e))
        case s.Starred():
            raise error("CD0141", CdSyntaxError, "`*` cannot stand here", e.span)
        case _:
            assert_never(e)


def value_of(value: Value) -> Value:
    """Return a rank-0 element as a number: `s = x[i]` with no axes left is a value."""
    if isinstance(value, Array) and value.rank == 0:
        return Scalar(value.body, value.kind)
    return value


def _items(frame: Frame, items: tuple[s.Expr, ...]) -> list[Value]:
    out: list[Value] = []
    for item in items:
        if isinstance(item, s.Starred):
            inner = evaluate(frame, item.value)
            out += elements(frame, inner, item.span)
        else:
            out.append(evaluate(frame, item))
    return out


def elements(frame: Frame, value: Value, span: Span) -> list[Value]:
    """Return the items of something that is unpacked or unrolled now.

    CdTypeError CD0406 where its length is not known when compiling.
    """
    match value:
        case Group(items, _):
            return list(items)
        case Static(inner) if isinstance(inner, tuple | list | str | range):
            return [Static(item) for item in inner]
        case Array() if value.rank:
            frame.ctx.require_static(value.shape[0])
            size = value.shape[0].constant
            if size is not None:
                rest = [Section(None, None, None)] * (value.rank - 1)
                return [
                    value_of(subscript(frame.ctx, value, [Static(n), *rest], span, "the array"))
                    for n in range(size)
                ]
    raise error("CD0406", CdTypeError, f"{describe(value)} cannot be unpacked here", span)


def binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    """Return `left op right`: computed now where both are known, folded where both are indices."""
    ctx = frame.ctx
    if op == "@":
        return table.lookup(np.matmul)(Site(ctx, span), (left, right), {})  # type: ignore[misc]
    if isinstance(left, Static) and isinstance(right, Static):
        return now(_PYTHON[op], (left.value, right.value), span)
    if isinstance(left, Group) or isinstance(right, Group):
        grouped = _group_binary(frame, op, left, right, span)
        if grouped is not None:
            return grouped
    folded = _index_binary(op, left, right)
    if folded is not None:
        return folded
    if op == "**":
        return table.lookup(np.power)(Site(ctx, span), (left, right), {})  # type: ignore[misc]
    name = BINARY[op]
    return elementwise(ctx, lambda a, b: arithmetic(name, a, b), (left, right), span)


def arithmetic(name: str, left: tuple[Expr, Kind], right: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return an operation on two typed expressions; on NumPy bools `+ * -` as NumPy has them."""
    kind = join(left[1], right[1])
    if kind == BOOL and name in ("add", "mul", "sub"):
        if name == "sub":
            raise TypeError("`-` is not defined for bools; use `^`")
        name = "or" if name == "add" else "and"
    return apply(name, left, right)


def now(function: Callable[..., object], args: tuple[object, ...], span: Span) -> Static:
    """Return what Python computes from known values; its error becomes CD0407 at the place."""
    try:
        return Static(function(*args))
    except CdError:
        raise
    except Exception as problem:  # whatever the user's constants do wrong
        kind = CdTypeError if isinstance(problem, TypeError) else CdValueError
        raise error("CD0407", kind, f"{type(problem).__name__}: {problem}", span) from None


def as_affine(value: Value) -> Affine | None:
    """Return an integer known as an index expression, None for any other value."""
    match value:
        case Static(inner) if isinstance(inner, int) and not isinstance(inner, bool):
            return const(inner)
        case Scalar(Position(index), Kind(dtypes.int64)):
            return index
        case Scalar(Position(index), kind) if kind.dtype is dtypes.int64:
            return index
        case _:
            return None


def _index_binary(op: str, left: Value, right: Value) -> Value | None:
    """Return an integer operation as an index expression where it can be one."""
    a, b = as_affine(left), as_affine(right)
    if a is None or b is None or op not in ("+", "-", "*", "//", "%"):
        return None
    match op:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = multiply(a, b)
        case _:
            if b.constant is None or b.constant <= 0:
                return None
            result = floordiv(a, b) if op == "//" else mod(a, b)
    kinds = [value.kind for value in (left, right) if isinstance(value, Scalar)]
    kind = kinds[0] if len(kinds) == 1 or kinds[0].weak is False else kinds[-1]
    return Scalar(Position(result), kind)


def _group_binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value | None:
    """Return `+` and `*` of sequences, as Python has them; None where NumPy's meaning applies."""
    match op, left, right:
        case "+", Group(a, kind), Group(b, _):
            return Group((*a, *b), kind)
        case "+", Group(a, kind), Static(tuple() | list() as b):
            return Group((*a, *map(Static, b)), kind)
        case "+", Static(tuple() | list() as a), Group(b, kind):
            return Group((*map(Static, a), *b), kind)
        case "*", Group(a, kind), Static(int() as n):
            return Group(a * n, kind)
        case _:
            return None


def _unary(frame: Frame, e: s.Unary) -> Value:
    operand = evaluate(frame, e.operand)
    if e.op == "not":
        return _not(frame, operand, e.span)
    if isinstance(operand, Static):
        function = {"-": operator.neg, "+": operator.pos, "~": operator.invert}[e.op]
        return now(function, (operand.value,), e.span)
    index = as_affine(operand)
    if index is not None and e.op == "-" and isinstance(operand, Scalar):
        return Scalar(Position(-index), operand.kind)
    if e.op == "+":
        return elementwise(frame.ctx, lambda pair: pair, [operand], e.span)
    if e.op == "~":
        return elementwise(frame.ctx, _inverted, [operand], e.span)
    return operate(frame.ctx, "neg", [operand], e.span)


def _inverted(pair: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    if pair[1] == BOOL:
        return negate(pair[0]), BOOL
    return apply("invert", pair, to=WEAK_INT if pair[1] == WEAK_BOOL else pair[1])


def test_of(frame: Frame, value: Value, span: Span) -> Static | Scalar:
    """Return a value as a test: known now, or a bool expression.

    CdTypeError CD0408 for whole arrays: their truth is not one bool.
    """
    match value:
        case Static(inner):
            return Static(bool(inner))
        case Group(items, _):
            return Static(bool(items))
        case Scalar(expr, _):
            return Scalar(truth(expr), BOOL)
        case Array() if value.rank == 0:
            return Scalar(truth(value.body), BOOL)
        case Array() | Masked():
            raise error(
                "CD0408", CdTypeError, "the truth of a whole array is not one bool", span,
                label=f"this is {describe(value)}",
                helps=(
                    "elementwise: `&`, `|`, `~` and `np.where(test, a, b)`",
                    "of all elements: `np.all(...)` or `np.any(...)`",
                ),
            )  # fmt: skip
        case _:
            return Static(True)


def settle_test(frame: Frame, test: Static | Scalar) -> Static | Scalar:
    """Return a test that run-time integer parameters decide as known, by asking for their values."""
    if isinstance(test, Scalar):
        symbols = {x for x in _test_symbols(test.expr)}
        origin = frame.ctx.origin
        if symbols and all(x in origin for x in symbols):
            for x in symbols:
                frame.ctx.require_static(Affine(((x, 1),), 0))
        if isinstance(test.expr, Const):
            return Static(bool(test.expr.value))
        folded = folded_test(frame, test.expr)
        if folded is not None:
            return Static(folded)
    return test


def folded_test(frame: Frame, test: Expr) -> bool | None:
    """Return what a comparison of indices is known to be, None where it is open."""
    from .proof import facts_of

    yes, no = facts_of(test), facts_of(negate(test))
    known = frame.ctx.known
    if yes and all(known.nonnegative(fact) for fact in yes):
        return True
    if no and all(known.nonnegative(fact) for fact in no):
        return False
    return None


def _test_symbols(expr: Expr) -> list[object]:
    """Return the symbols of a test that reads no array; [None] where it reads one."""
    from ...lowering.ir.expressions import Read, walk

    found: list[object] = []
    for part in walk(expr):
        if isinstance(part, Read):
            return [None]
        if isinstance(part, Position):
            found += part.index.symbols()
    return found


def _not(frame: Frame, operand: Value, span: Span) -> Value:
    test = test_of(frame, operand, span)
    if isinstance(test, Static):
        return Static(not test.value)
    return Scalar(negate(test.expr), WEAK_BOOL)


def _compare(frame: Frame, e: s.Compare) -> Value:
    values = [evaluate(frame, operand) for operand in e.operands]
    result: Value | None = None
    for op, left, right in zip(e.ops, values, values[1:], strict=False):
        one = compare_values(frame, op, left, right, e.span)
        if result is None:
            result = one
            continue
        if any(isinstance(side, Array) and side.rank for side in (result, one)):
            raise error(
                "CD0409", CdTypeError, "a chained comparison of whole arrays has no one truth", e.span,
                helps=("write `(a < b) & (b < c)`",),
            )  # fmt: skip
        result = _both(frame, result, one, e.span)
    assert result is not None
    return result


def _both(frame: Frame, left: Value, right: Value, span: Span) -> Value:
    first, second = test_of(frame, left, span), test_of(frame, right, span)
    if isinstance(first, Static):
        return second if first.value else first
    if isinstance(second, Static):
        return first if second.value else second
    return Scalar(Select(first.expr, second.expr, FALSE), WEAK_BOOL)


def compare_values(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    """Return one comparison."""
    if op in ("is", "is not"):
        return _identity(op, left, right)
    plain = [_as_python(value) for value in (left, right)]
    if all(value is not None for value in plain):
        return now(_PYTHON[op], (plain[0].value, plain[1].value), span)  # type: ignore[union-attr]
    if op in ("in", "not in"):
        if isinstance(right, Group):
            return _membership(frame, op, left, right, span)
        raise error("CD0410", CdTypeError, f"`{op}` needs a sequence known when compiling", span)
    if isinstance(left, Group) and isinstance(right, Group):
        same: Value = Static(len(left.items) == len(right.items))
        for a, b in zip(left.items, right.items, strict=False):
            same = _both(frame, same, compare_values(frame, "==", a, b, span), span)
        return same if op == "==" else _not(frame, same, span)
    unlike = any(isinstance(v, Static) and kind_of_number(v.value) is None for v in (left, right))
    if unlike and op in ("==", "!="):
        return Static(op == "!=")
    a, b = as_affine(left), as_affine(right)
    result = operate(frame.ctx, COMPARE[op], [left, right], span)
    if a is not None and b is not None and isinstance(result, Scalar):
        folded = folded_test(frame, result.expr)
        if folded is not None and not frame.letters:
            return Static(folded)
    return result


def _identity(op: str, left: Value, right: Value) -> Static:
    if isinstance(left, Static) and isinstance(right, Static):
        same = left.value is right.value
    else:
        same = left == right and not isinstance(left, Scalar)
    return Static(same if op == "is" else not same)


def _membership(frame: Frame, op: str, left: Value, right: Group, span: Span) -> Value:
    result: Value = Static(False)
    for item in right.items:
        test = test_of(frame, compare_values(frame, "==", left, item, span), span)
        one, so_far = test, test_of(frame, result, span)
        if isinstance(so_far, Static):
            result = Static(True) if so_far.value else one
        elif isinstance(one, Static):
            result = Static(True) if one.value else so_far
        else:
            result = Scalar(Select(so_far.expr, TRUE, one.expr), WEAK_BOOL)
    return result if op == "in" else _not(frame, result, span)


def _as_python(value: Value) -> Static | None:
    """Return a value that is wholly known as a Python object, None otherwise."""
    match value:
        case Static():
            return value
        case Group(items, kind):
            inner = [_as_python(item) for item in items]
            if all(item is not None for item in inner):
                made = [item.value for item in inner if item is not None]
                return Static(tuple(made) if kind == "tuple" else made)
    return None


def _logical(frame: Frame, e: s.Logical) -> Value:
    """Return `and`/`or`: later operands are elaborated under the earlier ones (short circuit)."""
    first = evaluate(frame, e.operands[0])
    left = test_of(frame, first, e.operands[0].span)
    rest = e.operands[1:]
    if not rest:
        return first
    tail = s.Logical(e.op, rest, e.span) if len(rest) > 1 else rest[0]
    stop = e.op == "or"
    if isinstance(left, Static):
        return first if left.value == stop else evaluate(frame, tail)
    with frame.ctx.under(negate(left.expr) if stop else left.expr):
        right = test_of(frame, evaluate(frame, tail), tail.span)
    if isinstance(right, Static):
        return Scalar(left.expr, WEAK_BOOL) if right.value != stop else Static(stop)
    sides = (TRUE, right.expr) if stop else (right.expr, FALSE)
    return Scalar(Select(left.expr, *sides), WEAK_BOOL)


def _conditional(frame: Frame, e: s.Conditional) -> Value:
    test = settle_test(frame, test_of(frame, evaluate(frame, e.test), e.test.span))
    if isinstance(test, Static):
        return evaluate(frame, e.yes if test.value else e.no)
    with frame.ctx.under(test.expr):
        yes = evaluate(frame, e.yes)
    with frame.ctx.under(negate(test.expr)):
        no = evaluate(frame, e.no)
    return elementwise(
        frame.ctx, lambda a, b: select(test.expr, a, b), (yes, no), e.span
    )


def select(test: Expr, yes: tuple[Expr, Kind], no: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return `yes if test else no` over typed expressions of a common kind."""
    kind = join(yes[1], no[1])
    dtype = kind.dtype.compute
    return Select(test, cast(yes[0], dtype), cast(no[0], dtype)), kind


def _subscript(frame: Frame, e: s.Subscript) -> Value:
    """Return `value[items]`, keeping rank-0 results as arrays (they may be written)."""
    base = evaluate(frame, e.value)
    return subscript_value(frame, base, e, e.value)


def subscript_value(frame: Frame, base: Value, e: s.Subscript, owner: s.Expr) -> Value:
    """Return the items of a base that has been evaluated."""
    for item in e.items:
        _refuse_captured_letter(frame, item)
    match base:
        case Array():
            items = [_subscript_item(frame, item) for item in e.items]
            _refuse_mixed(frame, e, items)
            return subscript(frame.ctx, base, items, e.span, owner.span.text)
        case Handle():
            return subscript_value(frame, frame.inputs.field(frame.ctx, base, "value", e.span), e, owner)
        case Group(members, kind):
            return _group_item(frame, Static(members), e, kind)
        case Static(inner) if table.special_subscript(inner) is not None:
            sections = tuple(_subscript_item(frame, item) for item in e.items)
            return table.special_subscript(inner)(Site(frame.ctx, e.span), sections)  # type: ignore[misc]
        case Static(inner):
            key = _static_key(frame, e)
            return now(operator.getitem, (inner, key), e.span)
        case Opaque(inner, path):
            key = _static_key(frame, e)
            item = now(operator.getitem, (inner, key), e.span).value
            step = Path(path.root, (*path.steps, key), path.captured)  # type: ignore[arg-type]
            return frame.inputs.wrap(frame.ctx, step, item, True, e.span)
        case Scalar() if not e.items:
            return base
        case _:
            raise error(
                "CD0411", CdTypeError, f"{describe(base)} cannot be subscripted", e.span
            )


def _subscript_item(frame: Frame, item: s.Expr) -> Value:
    """Return one subscript; `pad`, `clamp` and `wrap` become edges."""
    if isinstance(item, s.Call):
        function = item.function
        if isinstance(function, s.Name) and function.id in ("pad", "clamp", "wrap"):
            known = resolve(frame, function)
            if known == table.WORDS[function.id]:
                args = [evaluate(frame, arg) for arg in item.args]
                if not args or len(args) > (2 if function.id == "pad" else 1):
                    raise error(
                        "CD0412", CdTypeError, f"`{function.id}` takes an index"
                        + (" and a fill" if function.id == "pad" else ""), item.span,
                    )  # fmt: skip
                index = as_scalar(args[0], item.span, "an index")
                return Edge(function.id, index, args[1] if len(args) > 1 else None)
    return value_of(evaluate(frame, item))


def _refuse_captured_letter(frame: Frame, item: s.Expr) -> None:
    """Refuse (CD0203) a bare subscript that is a captured number: `i = 3` left in a notebook."""
    if not isinstance(item, s.Name) or not LETTER.fullmatch(item.id):
        return
    owner: Frame | None = frame
    while owner is not None:
        if item.id in owner.names or item.id in owner.locals:
            return
        owner = owner.parent
    captured = frame.lookup(item.id)
    if isinstance(captured, int | float | np.number) and not isinstance(captured, bool):
        raise error(
            "CD0203", CdNameError,
            f"`{item.id}` looks like an index letter, but is the number {captured!r} around the function",
            item.span,
            helps=(
                f"rename the outside variable, or `del {item.id}`, to use it as an index",
                f"pass it as an argument, or write `{item.id} + 0`, to use the number",
            ),
        )  # fmt: skip


def _refuse_mixed(frame: Frame, e: s.Subscript, items: list[Value]) -> None:
    """Refuse (CD0508) slices and index letters in one subscript."""
    if frame.letters is None or not any(isinstance(item, Section) for item in items):
        return
    names = [name for item in e.items for name in _bare(item) if is_letter(frame, name)]
    if names:
        raise error(
            "CD0508", CdSyntaxError,
            f"`{e.span.text}` mixes a slice with the index letter `{names[0].id}`", e.span,
            helps=("use a letter for every axis: `x[i, j]`", "or slices for every axis: `x[:, :]`"),
        )  # fmt: skip


def _bare(item: s.Expr) -> list[s.Name]:
    return [item] if isinstance(item, s.Name) else []


def _static_key(frame: Frame, e: s.Subscript) -> object:
    keys: list[object] = []
    for item in e.items:
        value = _as_python(evaluate(frame, item))
        if isinstance(item, s.Slice):
            section = evaluate(frame, item)
            assert isinstance(section, Section)
            ends = [None if part is None else _as_python(part) for part in
                    (section.lower, section.upper, section.step)]  # fmt: skip
            value = Static(slice(*(None if end is None else end.value for end in ends)))
        if value is None:
            index = as_affine(evaluate(frame, item))
            if index is not None:
                frame.ctx.require_static(index)
            raise error("CD0413", CdTypeError, "this key has to be known when compiling", item.span)
        keys.append(value.value)
    return keys[0] if len(keys) == 1 else tuple(keys)


def _group_item(frame: Frame, members: Static, e: s.Subscript, kind: str) -> Value:
    found = now(operator.getitem, (members.value, _static_key(frame, e)), e.span).value
    return Group(found, kind) if isinstance(found, tuple) else found  # type: ignore[return-value]


def attribute(frame: Frame, value: Value, name: str, span: Span) -> Value:
    """Return `value.name`: a field, a property, a method waiting for its call, or an object's own."""
    match value:
        case Handle() if name in _fields(value) or table.attribute is None:
            return frame.inputs.field(frame.ctx, value, name, span)
        case Handle() if table.method(name) is None and name not in _ARRAY_PROPERTIES:
            return frame.inputs.field(frame.ctx, value, name, span)
        case Handle():
            array = frame.inputs.field(frame.ctx, value, "value", span)
            return attribute(frame, array, name, span)
        case Opaque(inner, path):
            found = _getattr(inner, name, span)
            step = Path(path.root, (*path.steps, name), path.captured)
            return frame.inputs.wrap(frame.ctx, step, found, True, span)
        case Static(inner) if kind_of_number(inner) is None or isinstance(inner, np.generic | complex):
            found = _getattr(inner, name, span)
            return Bound(value, name) if callable(found) and kind_of_number(inner) else Static(found)
        case Array() | Scalar() | Masked() | Static():
            known = table.attribute(Site(frame.ctx, span), value, name)
            if known is not None:
                return known
            if table.method(name) is not None:
                return Bound(value, name)
        case Group():
            return Bound(value, name)
        case _:
            pass
    raise error("CD0414", CdNameError, f"{describe(value)} has no attribute `{name}`", span)


_ARRAY_PROPERTIES = ("shape", "ndim", "dtype", "size", "T", "real", "imag", "itemsize", "nbytes")


def _fields(handle: Handle) -> tuple[str, ...]:
    return handle.tensor.fields  # type: ignore[attr-defined, no-any-return]


def _getattr(owner: object, name: str, span: Span) -> object:
    try:
        return getattr(owner, name)
    except AttributeError as problem:
        raise error("CD0414", CdNameError, str(problem), span) from None


def _formatted(frame: Frame, e: s.Format) -> str:
    out = ""
    for piece in e.pieces:
        if isinstance(piece, str):
            out += piece
            continue
        value = _as_python(evaluate(frame, piece[0]))
        if value is None:
            raise error(
                "CD0415", CdTypeError, "an f-string can show only values known when compiling here",
                piece[0].span, helps=("give run-time values to `print` or as arguments of the error",),
            )  # fmt: skip
        out += format(value.value, piece[1])
    return out


