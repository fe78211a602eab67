"""Object identity: `is` and `is not`, decided statically, refused where control flow decides.

Members of enumerations have a static identity: so have comparisons of them, and `&`, `|`, `^`, `~`
and `in` of flags.
"""

from __future__ import annotations

import enum
import itertools
from types import FunctionType

from ...base.diagnostic import CdError, CdTypeError, Span
from ..values.builder import error
from ..values.types import BOOL, WEAK_BOOL, Kind, kind_of_number
from ..values.values import Array, Group, Opaque, Scalar, Static, Value, identities_of
from .scope import Frame, sources

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
    pairs = itertools.product(identities_of(left), identities_of(right))
    answers = {frame.inputs.compare_groups(one, other) for one, other in pairs}
    if len(answers) > 1:
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
