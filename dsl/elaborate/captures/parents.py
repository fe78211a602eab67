"""`super()`: attribute lookup in the method resolution order after a method's defining class.

The class is the `__class__` cell that Python keeps for a function that names `super`; its position
in the resolution order follows from the object's type, which specialisations depend on.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ....base.dataclass import dataclass
from ....base.diagnostic import CdAttributeError, CdTypeError, Span, nearest
from ...source.fingerprint import is_immutable
from ...values.arrays import describe
from ...values.builder import error
from ...values.values import Opaque, Static, Value
from ..scope import Frame
from .owners import below, compare


@dataclass(frozen=True, slots=True)
class Above:
    """The value of `super()`: a tail of the method resolution order, and the object or class."""

    classes: tuple[type, ...]
    owner: Opaque
    skipped: int
    """Number of classes of the owner's resolution order before that tail."""


@dataclass(frozen=True, slots=True)
class Method:
    """A function of one of those classes; `bound` where its owner is its first argument."""

    function: Any
    owner: Value
    bound: bool


def above(frame: Frame, args: tuple[Value, ...], span: Span) -> Above:
    """Return the value of `super()` or `super(Class, self)`.

    CdTypeError CD0427 outside of methods, and for what is no object of the class.
    """
    if args:
        kind, owner = (args[0], args[1]) if len(args) == 2 else (args[0], Static(None))
        defining_class = kind.value if isinstance(kind, Static | Opaque) else None
    else:
        first = next((p.name for p in frame.function.params), "")
        defining_class, owner = frame.lookup("__class__"), frame.names.get(first, Static(None))
    resolution_order = type(owner.value).__mro__ if isinstance(owner, Opaque) else ()
    if (
        not isinstance(owner, Opaque)
        or not isinstance(defining_class, type)
        or defining_class not in resolution_order
    ):
        raise error(
            "CD0427", CdTypeError, f"`super` stands in a method of a class here, and takes an "
            f"object of that class, not {describe(owner)}", span,
            helps=("name the class whose function is meant: `Base.scale(self, x)`",),
        )  # fmt: skip
    skipped = resolution_order.index(defining_class) + 1
    return Above(resolution_order[skipped:], owner, skipped)


def attribute(frame: Frame, above: Above, name: str, span: Span) -> Value:
    """Return `super().name`: a function or constant of a later class in the resolution order.

    CdAttributeError CD0414 where none has it, CdTypeError CD0427 for properties and class methods.
    """
    having = [kind for kind in above.classes if name in vars(kind)]
    if not having:
        pool = sorted({name for kind in above.classes for name in vars(kind)})
        near = nearest(name, pool)
        text = f"no class above has an attribute `{name}`, which `super` looks for"
        helps = (f"did you mean `{near}`?",) if near else ()
        raise error("CD0414", CdAttributeError, text, span, helps=helps)
    kind, number = having[0], above.skipped + above.classes.index(having[0])
    member, bound_member = vars(kind)[name], getattr(kind, name)
    frame.inputs.ask(kind, name, bound_member)
    path = below(above.owner.path, "__class__", "__mro__", (number,), name)
    for at, cls in enumerate(above.classes[: number - above.skipped], above.skipped):
        if hasattr(cls, name):  # a class between them may gain it
            absent_path = below(above.owner.path, "__class__", "__mro__", (at,), name)
            frame.inputs.used[absent_path] = frame.inputs.describe(getattr(cls, name), True)
    if isinstance(member, staticmethod):
        compare(frame, path, bound_member)
        return Static(Method(member.__func__, above.owner, False))
    if isinstance(member, FunctionType) or hasattr(member, "__cd_function__"):
        compare(frame, path, bound_member)
        return Static(Method(member, above.owner, True))
    if is_immutable(member):
        return frame.inputs.wrap(frame.ctx, path, member, True, span)
    raise error(
        "CD0427", CdTypeError, f"`super().{name}` is {describe(Static(member))}, and `super` gives "
        "functions and constants here", span,
        helps=(f"read it from the class: `{kind.__name__}.{name}`",),
    )  # fmt: skip
