"""`dataclasses.dataclass`, which makes a class in a quarter of the time.

The library compiles six functions for each frozen class, about a millisecond in all; the first call
of a function needs some two hundred such classes. Here one function is compiled, `__init__`, and
the others are shared: they ask the class for its fields. All else is the library's: what fields
are, their defaults and options, slots, `fields`, `replace`, `asdict`, and what type checkers see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Return the class with the methods of its fields, as `dataclasses.dataclass` does."""
        return _made(cls, **options) if cls is not None else lambda cls: _made(cls, **options)


class _Factory:
    """Stands for the default of what is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _made(
    cls: type, *, frozen: bool = False, eq: bool = True, repr: bool = True, **others: bool
) -> type:
    """Return the class with its methods; one that it defines itself is kept."""
    own = vars(cls)
    unhashed = "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)
    keep = frozenset(own)
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # or the library would make one of its signature, which it lacks
    made: type = dataclasses.dataclass(init=not frozen, repr=False, eq=False, **others)(cls)
    all_fields = fields(made)
    methods: dict[str, Any] = {}
    if eq:
        methods |= _comparing([f.name for f in all_fields if f.compare])
    if frozen:
        methods |= {"__setattr__": _set, "__delattr__": _delete}
        methods |= {"__getstate__": _state, "__setstate__": _restore}
        methods["__init__"] = _initial(made, all_fields)
    elif eq:
        methods["__hash__"] = None
    if repr:
        methods["__repr__"] = _shown
    for name, method in methods.items():
        if name not in keep or (name == "__hash__" and unhashed):
            setattr(made, name, method)
    return made


def _comparing(names: list[str]) -> dict[str, Callable[..., Any]]:
    """Return the methods that compare the values of fields, as tuples."""
    values: Callable[[Any], tuple[Any, ...]]
    if not names:
        values = _nothing
    else:  # of one name it would return the value, which need not equal itself
        values = attrgetter(*names, *(names if len(names) == 1 else ()))

    def __eq__(self: Any, other: object) -> bool:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _nothing(value: object) -> tuple[()]:
    return ()


def _initial(cls: type, all_fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Return `__init__`, which sets each field by its slot, as nothing else can."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    by_place: list[str] = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    for f in all_fields:
        parameter, value = f.name, f.name
        if f.default is not MISSING:
            known[f"_default_{f.name}"] = f.default
            parameter += f"=_default_{f.name}"
        elif f.default_factory is not MISSING:
            known[f"_make_{f.name}"] = f.default_factory
            parameter += "=_factory"
            value = f"_make_{f.name}() if {f.name} is _factory else {f.name}"
        (by_name if f.kw_only else by_place).append(parameter)
        slot = getattr(vars(cls).get(f.name), "__set__", None)
        if slot is None:
            body.append(f" _set(self, {f.name!r}, {value})")
        else:
            known[f"_set_{f.name}"] = slot
            body.append(f" _set_{f.name}(self, {value})")
    parameters = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n" + ("\n".join(body) or " pass"), known)  # noqa: S102
    made: Callable[..., None] = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {f.name: f.type for f in all_fields} | {"return": None}
    return made


def _set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


@recursive_repr("...")
def _shown(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
