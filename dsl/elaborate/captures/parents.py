"""`super()`: what the classes above the one that a method is written in have.

The class is the `__class__` that Python keeps for a function that names `super`; where it stands
among those above an object is a matter of the object's type, which specialisations depend on.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ....base.dataclass import dataclass
from ....base.diagnostic import CdNameError, CdTypeError, Span, nearest
from ...source.fingerprint import is_immutable
from ...values.arrays import describe
from ...values.builder import error
from ...values.values import Opaque, Static, Value
from ..scope import Frame
from .owners import below, compare


@dataclass(frozen=True, slots=True)
class Above:
    """What `super()` gives: the classes behind one of them, and the object or class asked about."""

    classes: tuple[type, ...]
    owner: Opaque
    skipped: int
    """How many classes of the owner's come before those."""


@dataclass(frozen=True, slots=True)
class Method:
    """A function of one of those classes; `bound` where it is given its owner first."""

    function: Any
    owner: Value
    bound: bool


def above(frame: Frame, args: tuple[Value, ...], span: Span) -> Above:
    """Return what `super()` or `super(Class, self)` gives.

    CdTypeError CD0427 outside of methods, and for what is no object of the class.
    """
    if args:
        kind, owner = (args[0], args[1]) if len(args) == 2 else (args[0], Static(None))
        found = kind.value if isinstance(kind, Static | Opaque) else None
    else:
        first = next((p.name for p in frame.function.params), "")
        found, owner = frame.lookup("__class__"), frame.names.get(first, Static(None))
    own = type(owner.value).__mro__ if isinstance(owner, Opaque) else ()
    if not isinstance(owner, Opaque) or not isinstance(found, type) or found not in own:
        raise error(
            "CD0427", CdTypeError, f"`super` stands in a method of a class here, and takes an "
            f"object of that class, not {describe(owner)}", span,
            helps=("name the class whose function is meant: `Base.scale(self, x)`",),
        )  # fmt: skip
    skipped = own.index(found) + 1
    return Above(own[skipped:], owner, skipped)


def attribute(frame: Frame, above: Above, name: str, span: Span) -> Value:
    """Return `super().name`: a function of a class above, or a constant of it.

    CdNameError CD0414 where none has it, CdTypeError CD0427 for properties and class methods.
    """
    having = [kind for kind in above.classes if name in vars(kind)]
    if not having:
        pool = sorted({name for kind in above.classes for name in vars(kind)})
        near = nearest(name, pool)
        raise error(
            "CD0414", CdNameError, f"no class above has an attribute `{name}`, which `super` looks "
            "for", span, helps=(f"did you mean `{near}`?",) if near else (),
        )  # fmt: skip
    kind, number = having[0], above.skipped + above.classes.index(having[0])
    found, given = vars(kind)[name], getattr(kind, name)
    frame.inputs.ask(kind, name, given)
    path = below(above.owner.path, "__class__", "__mro__", (number,), name)
    for before, one in enumerate(above.classes[: number - above.skipped], above.skipped):
        if hasattr(one, name):  # one between them may get it, too
            way = below(above.owner.path, "__class__", "__mro__", (before,), name)
            frame.inputs.used[way] = frame.inputs.describe(getattr(one, name), True)
    if isinstance(found, staticmethod):
        compare(frame, path, given)
        return Static(Method(found.__func__, above.owner, False))
    if isinstance(found, FunctionType) or hasattr(found, "__cd_function__"):
        compare(frame, path, given)
        return Static(Method(found, above.owner, True))
    if is_immutable(found):
        return frame.inputs.wrap(frame.ctx, path, found, True, span)
    raise error(
        "CD0427", CdTypeError, f"`super().{name}` is {describe(Static(found))}, and `super` gives "
        "functions and constants here", span,
        helps=(f"read it from the class: `{kind.__name__}.{name}`",),
    )  # fmt: skip
