"""Object identity: `is` and `is not`, decided statically, refused where control flow decides.

Members of enumerations have a static identity: so have comparisons of them, and `&`, `|`, `^`, `~`
and `in` of flags.
"""

from __future__ import annotations

import enum
import itertools
from types import FunctionType

from ....base.diagnostic import NOWHERE, CdError, CdTypeError, Span
from ....lowering.ir.expressions import Apply, Const, Expr, Read, Select, walk
from ....lowering.ir.node import Node
from ...values.arrays import as_scalar
from ...values.builder import error
from ...values.types import BOOL, WEAK_BOOL, Kind, kind_of_number
from ...values.values import (
    AnyObject,
    Array,
    Group,
    Handle,
    Opaque,
    Path,
    Scalar,
    Static,
    Value,
    identities_of,
)
from ..captures.inputs import ArraySpec
from ..scope import Frame, sources

_OF_FLAGS = {
    "&": "__and__", "|": "__or__", "^": "__xor__", "~": "__invert__",
    "in": "__contains__", "not in": "__contains__",
}  # fmt: skip


def identity(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Static:
    """Return whether two values are identical, negated for `is not`.

    CdTypeError CD0208 for arrays that are one object in Python on some paths only, CD0404 for
    numbers of one type, but for bools, of which equal ones are identical.
    """
    if isinstance(left, Static) and isinstance(right, Static):
        same = left.value is right.value
    elif isinstance(left, Opaque) and isinstance(right, Opaque):
        same = left.value is right.value
        frame.inputs.compare(left, right)
    elif isinstance(left, Static | Opaque) and isinstance(right, Static | Opaque):
        same = left.value is right.value
    elif isinstance(left, Array) and isinstance(right, Array) and (left.given or right.given):
        same = False
        if left.given is not None and right.given is not None:
            (left_value, path), (right_value, right_path) = left.given, right.given
            same = left_value == right_value
            frame.inputs.compare_paths(path, right_path)
    elif isinstance(left, Group) and isinstance(right, Group):
        same = _are_one_group(frame, left, right, span)
    else:
        if _are_like_numbers(left, right):
            raise _equal_numbers_error(span)
        same = left == right
    if not same and isinstance(left, Array) and isinstance(right, Array):
        _refuse_possible_copies(frame, left, right, span)
    return Static(same if op == "is" else not same)


def _are_one_group(frame: Frame, left: Group, right: Group, span: Span) -> bool:
    """Whether two tuples or lists are one object. CdTypeError CD0208 where the run decides it."""
    pairs = [*itertools.product(identities_of(left), identities_of(right))]
    answers = {frame.inputs.compare_groups(one, other) for one, other in pairs}
    is_carried = any(isinstance(one, AnyObject) for pair in pairs for one in pair)
    if len(answers) > 1 or is_carried and left.kind == right.kind:
        raise error(
            "CD0208", CdTypeError,
            "these are one tuple or list on some paths through the function, two on others", span,
            helps=("test what decides it, or compare what they hold: `a == b`",),
        )  # fmt: skip
    return answers.pop()


def are_dynamic_bools(left: Value, right: Value) -> bool:
    """Whether two values are bools, both of Python or both of NumPy, and not both static: equal
    ones are identical."""
    return _are_like_numbers(left, right) and _kind_of(left) in (WEAK_BOOL, BOOL)


def _are_like_numbers(left: Value, right: Value) -> bool:
    """Whether two values are numbers of one type, not both static."""
    is_dynamic = isinstance(left, Scalar) or isinstance(right, Scalar)
    kind = _kind_of(left)
    return is_dynamic and kind is not None and kind == _kind_of(right)


def _equal_numbers_error(span: Span) -> CdError:
    """Return CdTypeError CD0404: Python decides which equal numbers are one object."""
    return error(
        "CD0404", CdTypeError,
        "`is` asks whether two numbers are one object, not whether they are equal", span,
        helps=("compare their values: `a == b`",),
    )  # fmt: skip


def _kind_of(value: Value) -> Kind | None:
    """Return the kind of a number, None for other values."""
    match value:
        case Scalar(_, kind):
            return kind
        case Static(number) if not isinstance(number, enum.Enum):
            return kind_of_number(number)
        case _:
            return None


def members(left: Value, right: Value) -> tuple[object, object] | None:
    """Return two static objects of which one is a member of an enumeration, None for other values.

    None, too, where a user's class defines equality.
    """
    if not all(isinstance(value, Static | Opaque) for value in (left, right)):
        return None
    first, second = (value.value for value in (left, right) if isinstance(value, Static | Opaque))
    if not any(isinstance(value, enum.Enum) for value in (first, second)):
        return None
    overloaded = any(
        isinstance(getattr(type(v), "__eq__", None), FunctionType) for v in (first, second)
    )
    return None if overloaded else (first, second)


def flags(op: str, *values: Value) -> tuple[object, ...] | None:
    """Return the members of flag enumerations that an operator takes, None for other values.

    None, too, where a user's class overloads the operator.
    """
    name = _OF_FLAGS.get(op)
    if name is None or not all(isinstance(value, Static | Opaque) for value in values):
        return None
    operands = tuple(value.value for value in values if isinstance(value, Static | Opaque))
    default = getattr(enum.Flag, name)
    are_flags = all(
        isinstance(v, enum.Flag) and getattr(type(v), name) is default for v in operands
    )
    return operands if are_flags else None


def _refuse_possible_copies(frame: Frame, left: Array, right: Array, span: Span) -> None:
    """Refuse (CD0208) two arrays of which one may be a copy of the other where Python aliases."""
    nodes = [value.base.node for value in (left, right) if value.base is not None]
    if len(set(nodes)) < 2:
        return
    slots = {x.base.node for x in frame.slots.values() if isinstance(x, Array) and x.base}
    left_sources, right_sources = (sources(frame, node) for node in nodes)
    if not (left_sources.isdisjoint(right_sources) and slots.isdisjoint(nodes)):
        raise error(
            "CD0208", CdTypeError,
            "these are one array on some paths through the function, two on others", span,
            helps=("test what decides it, or compare what they hold: `np.array_equal(a, b)`",),
        )  # fmt: skip


def is_same_item(frame: Frame, left: Value, right: Value, span: Span) -> bool:
    """Whether two items of tuples or lists are surely one object, so that they count as equal.

    False, too, where equality gives the same. CdTypeError CD0404 for numbers that may be one NaN.
    """
    match left, right:
        case (Static(first), Static(second)):
            return first is second
        case (Group(), Group()):
            one = len(identities_of(left)) == 1 and left.identity == right.identity
            return one and left.kind == right.kind
        case (Array(), Array()):
            return _are_one_array(frame, left, right)
        case (Handle(_, path), Handle(_, other_path)):
            return path == other_path
        case (Opaque(first), Opaque(second)) if first is second:
            frame.inputs.compare(left, right)
            return True
        case (Scalar() | Static(), Scalar() | Static()):
            return _are_one_number(frame, left, right, span)
        case _:
            return False


def _are_one_array(frame: Frame, left: Array, right: Array) -> bool:
    """Whether two arrays are surely one object of the caller's, or one new array."""
    if left.given is not None and right.given is not None:
        return left == right and identity(frame, "is", left, right, NOWHERE) == Static(True)
    view = left.view
    return left == right and view is not None and view.node in frame.ctx.locals


def _are_one_number(
    frame: Frame, left: Scalar | Static, right: Scalar | Static, span: Span
) -> bool:
    """Whether two numbers are surely one object; False where equality decides the same."""
    kind = _kind_of(left)
    if kind is None or kind != _kind_of(right) or kind.dtype.kind not in "fc":
        return False
    first, second = (as_scalar(value, span).expr for value in (left, right))
    origins = _origin(frame, first), _origin(frame, second)
    if origins[0] is not None and origins[0] == origins[1]:
        return True
    paths = [_path_of_number(frame, origin) for origin in origins]
    if paths[0] is not None and paths[1] is not None:
        frame.inputs.compare_paths(paths[0], paths[1])
        return frame.inputs.number_ids[paths[0]] == frame.inputs.number_ids[paths[1]]
    # where names are bound to reads that nothing stores, two reads look like one object
    unstored = frame.ctx.pointwise or first in frame.ctx.unstored
    alike = first == second and any(isinstance(part, Read) for part in walk(first))
    disjoint = _objects_of(frame, first).isdisjoint(_objects_of(frame, second))
    if disjoint and not (alike and unstored):
        return False
    raise error(
        "CD0404", CdTypeError,
        "these may be one number or two, which Python distinguishes in a tuple or list if both are "
        "NaN", span,
        helps=("compare the numbers: `a == b`", "ask for NaN: `np.isnan(a)`"),
    )  # fmt: skip


def _origin(frame: Frame, expr: Expr) -> Read | None:
    """Return the variable, parameter or item of a list that surely is the object that an expression
    gives; None for a new object."""
    stored = frame.ctx.stored
    if not isinstance(expr, Read) or not _is_stored_object(frame, expr):
        return None
    while len(set(stored.get(expr.node, ()))) == 1:
        (value,) = set(stored[expr.node])
        if not isinstance(value, Read) or not _is_stored_object(frame, value):
            break
        if len(set(stored.get(value.node, ()))) > 1:
            break  # what it holds now is another object, perhaps
        expr = value
    return expr


def _is_stored_object(frame: Frame, read: Read) -> bool:
    """Whether a read gives an object that exists before, and no new one, as an array's element."""
    if read.index:
        return read.node in frame.ctx.item_nodes or _is_given_list(frame, read.node)
    return read.node in frame.ctx.stored or _path_of_number(frame, read) is not None


def _is_given_list(frame: Frame, node: Node) -> bool:
    """Whether a node stores the numbers of a list that the caller gives."""
    inputs = frame.inputs
    specs = (
        inputs.used.get(path) for path, input_node in inputs.nodes.items() if input_node == node
    )
    return any(isinstance(spec, ArraySpec) and spec.listed for spec in specs)


def _path_of_number(frame: Frame, read: Read | None) -> Path | None:
    """Return the path of the number that a read gives, None where the caller does not give it."""
    if read is None or read.index:
        return None
    inputs = frame.inputs
    return next((path for path in inputs.number_ids if inputs.nodes.get(path) == read.node), None)


def _objects_of(frame: Frame, expr: Expr) -> frozenset[Node | None]:
    """Return the variables whose objects an expression may give; None stands for an object of the
    caller's, or a constant, that may be one NaN."""
    match expr:
        case Read() as read if read.index and _is_stored_object(frame, read):
            return frozenset((None,))
        case Read(node, ()) if _path_of_number(frame, expr) is not None:
            return frozenset((None, node))
        case Read(node, ()):
            return _objects_in(frame, node)
        case Select(_, yes, no):
            return _objects_of(frame, yes) | _objects_of(frame, no)
        case Apply(op, args, _) if op.name in ("max", "min"):
            return frozenset().union(*(_objects_of(frame, arg) for arg in args))
        case Const(value, _) if value != value:
            return frozenset((None,))
        case _:
            return frozenset()


def _objects_in(frame: Frame, node: Node) -> frozenset[Node | None]:
    """Return a variable and those whose objects it may hold."""
    found, new = set[Node | None](), [node]
    while new:
        found.add(variable := new.pop())
        for value in frame.ctx.stored.get(variable, ()):
            inner = frozenset[Node | None]()
            if isinstance(value, Read) and not value.index and value.node in frame.ctx.stored:
                inner = frozenset((value.node,))
            elif value is not None:
                inner = _objects_of(frame, value)
            new += [one for one in inner - found if one is not None]
            found |= inner & {None}
    return frozenset(found)
