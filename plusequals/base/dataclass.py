"""`dataclasses.dataclass`, which makes a class in a small part of the time.

The library compiles six functions for each frozen class and looks at each field in several ways,
about a millisecond in all; the first call of a function needs some two hundred such classes. Here
one function is compiled, `__init__`, when a second object is made, which there never is of many
classes; the others are shared: they ask the class for its fields. Those are the library's, which
makes them when they are first asked for, so that `fields`, `replace`, `asdict` and type checkers
find what they always find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType, new_class
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
_Declared = Mapping[str, "Field[Any]"]
"""Fields by name, those of base classes first."""


def _made(
    cls: type,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
    kw_only: bool = False,
    weakref_slot: bool = False,
) -> type:
    """Return the class with its methods; one that it defines itself is kept."""
    declared = _declared(cls, kw_only)
    members: dict[str, Any] = {
        "__init__": _Initial(declared, frozen),
        "__replace__": dataclasses.replace,
    }  # fmt: skip
    if eq:
        members |= _comparing([name for name, f in declared.items() if f.compare])
    if frozen:
        members |= {"__setattr__": _set, "__delattr__": _delete}
        members |= {"__getstate__": _state, "__setstate__": _restore}
    elif eq:
        members["__hash__"] = None
    if repr:
        members["__repr__"] = _showing([name for name, f in declared.items() if f.repr])
    members |= {name: value for name, value in vars(cls).items() if not _is_implied(cls, name)}
    members |= {
        "__doc__": cls.__doc__ or cls.__name__,
        "__match_args__": tuple(name for name, f in declared.items() if f.init and not f.kw_only),
        "__dataclass_fields__": _Later(lambda made: _library(made, declared).__dataclass_fields__),
        "__dataclass_params__": _Later(lambda made: _library(made, declared).__dataclass_params__),
    }  # fmt: skip
    return (
        _slotted(cls, declared, members, weakref_slot) if slots else _filled(cls, declared, members)
    )


def _is_implied(cls: type, name: str) -> bool:
    """Whether a member is what Python itself puts into a class that compares its objects."""
    return name == "__hash__" and vars(cls)[name] is None and "__eq__" in vars(cls)


def _declared(cls: type, kw_only: bool) -> _Declared:
    """Return the fields of a class; the library has not seen those of its own yet."""
    found: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        if is_dataclass(base):
            found |= {f.name: f for f in fields(base)}
    for name in get_annotations(cls):
        given = vars(cls).get(name, MISSING)
        found[name] = given if isinstance(given, Field) else dataclasses.field(default=given)
        if found[name].kw_only is MISSING:
            found[name].kw_only = kw_only
    return found


def _slotted(cls: type, declared: _Declared, members: dict[str, Any], weakref_slot: bool) -> type:
    """Return the class made again, with a slot for each field that no base has one for."""
    taken = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    for name in (*declared, "__dict__", "__weakref__"):
        members.pop(name, None)
    wanted = (*declared, "__weakref__") if weakref_slot else tuple(declared)
    members["__slots__"] = tuple(name for name in wanted if name not in taken)
    made: type = type(cls)(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    return made


def _filled(cls: type, declared: _Declared, members: dict[str, Any]) -> type:
    """Return the class itself with these members, and with defaults where fields were."""
    for name in declared.keys() & members.keys():
        members[name] = declared[name].default
    for name, value in members.items():
        if value is MISSING:
            delattr(cls, name)
        elif vars(cls).get(name, MISSING) is not value:
            setattr(cls, name, value)
            if isinstance(value, _Later):
                value.__set_name__(cls, name)
    return cls


class _Later:
    """Stands for a member of a class, and makes it when it is first asked for."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, one: object, kind: type | None = None) -> Any:
        member = self._make(self._owner)
        setattr(self._owner, self._name, member)
        bind = getattr(type(member), "__get__", None)
        return member if bind is None else bind(member, one, kind)


class _Initial(_Later):
    """Stands for `__init__`: the first object is filled field by field."""

    __slots__ = ("_declared", "_frozen", "_used")

    def __init__(self, declared: _Declared, frozen: bool) -> None:
        super().__init__(lambda made: _initial(made, declared, frozen))
        self._declared, self._frozen, self._used = declared, frozen, False

    def __get__(self, one: object, kind: type | None = None) -> Any:
        if self._used or one is None or type(one) is not self._owner:
            return super().__get__(one, kind)
        self._used = True
        return partial(self._fill, one)

    def _fill(self, one: Any, /, *by_place: object, **by_name: object) -> None:
        """Do what `__init__` does, which is called where arguments do not fit."""
        given = {name: f for name, f in self._declared.items() if f.init}
        places = [name for name, f in given.items() if not f.kw_only]
        values = dict(zip(places, by_place, strict=False))
        for name, f in given.items():
            if name in values or name in by_name:
                continue
            if f.default_factory is not MISSING:
                values[name] = f.default_factory()
            elif f.default is not MISSING:
                values[name] = f.default
        twice = len(by_place) > len(places) or values.keys() & by_name.keys()
        if twice or {*values, *by_name} != given.keys():
            type(one).__init__(one, *by_place, **by_name)
            return
        put = object.__setattr__ if self._frozen else setattr
        for name, value in (values | by_name).items():
            put(one, name, value)
        if hasattr(one, "__post_init__"):
            one.__post_init__()


def _library(cls: type, declared: _Declared) -> Any:
    """Return a class that the library has made of the same fields."""
    own = get_annotations(cls)
    members: dict[str, Any] = {name: declared[name] for name in own}
    members |= {"__annotations__": own, "__module__": cls.__module__, "__doc__": cls.__doc__}
    bases = tuple(base for base in cls.__bases__ if is_dataclass(base))
    made = new_class(cls.__name__, bases, {}, lambda namespace: namespace.update(members))
    return dataclasses.dataclass(init=False, repr=False, eq=False)(made)


def _comparing(names: list[str]) -> dict[str, Callable[..., Any]]:
    """Return the methods that compare the values of fields, as tuples."""
    values: Callable[[Any], tuple[Any, ...]]
    if not names:
        values = _nothing
    else:  # of one name it would return the value, which need not equal itself
        values = attrgetter(*names, *(names if len(names) == 1 else ()))

    def __eq__(self: Any, other: object) -> bool:
        return self is other or (  # tuples of what is the same are equal, even of NaN
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _nothing(value: object) -> tuple[()]:
    return ()


def _initial(cls: type, declared: _Declared, frozen: bool) -> Callable[..., None]:
    """Return `__init__`; where nothing can be set it sets each field by its slot."""
    given = {name: f for name, f in declared.items() if f.init}
    by_place = [name for name, f in given.items() if not f.kw_only]
    names = (*by_place, *(name for name, f in given.items() if f.kw_only))
    made = [given[name].default_factory is not MISSING for name in names]
    known: dict[str, Any] = {"factory": _FACTORY, "post_init": getattr(cls, "__post_init__", None)}
    for number, name in enumerate(names):
        known[f"make_{number}"] = given[name].default_factory
        if frozen:
            known[f"set_{number}"] = _setter(cls, name)
    code = _code(tuple(made), len(by_place), frozen, hasattr(cls, "__post_init__"))
    spelled = {f"field_{number}": name for number, name in enumerate(names)}
    code = code.replace(
        co_varnames=tuple(spelled.get(name, name) for name in code.co_varnames),
        co_names=tuple(spelled.get(name, name) for name in code.co_names),
    )
    defaults = {
        name: _FACTORY if from_factory else given[name].default
        for name, from_factory in zip(names, made, strict=True)
    }
    known_defaults = {name: value for name, value in defaults.items() if value is not MISSING}
    initial = FunctionType(code, known, "__init__")
    initial.__defaults__ = tuple(v for name, v in known_defaults.items() if name in by_place)
    initial.__kwdefaults__ = {n: v for n, v in known_defaults.items() if n not in by_place}
    initial.__qualname__, initial.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    types = {name: f.type for name, f in declared.items()} | get_annotations(cls)
    initial.__annotations__ = types | {"return": None}
    return initial


def _setter(cls: type, name: str) -> Callable[[object, object], None]:
    """Return what sets a field of an object whose class refuses to."""
    slot = getattr(vars(cls).get(name), "__set__", None)
    return slot or (lambda one, value: object.__setattr__(one, name, value))


@cache
def _code(made: tuple[bool, ...], by_place: int, frozen: bool, posted: bool) -> CodeType:
    """Return the code of an `__init__` of fields that have numbers as names: which are `made` by
    a function where they are not given, and how many are given by place."""
    fields = [f"field_{number}" for number in range(len(made))]
    by_name = ["*", *fields[by_place:]] if by_place < len(fields) else []
    body = []
    for number, (name, from_factory) in enumerate(zip(fields, made, strict=True)):
        value = f"make_{number}() if {name} is factory else {name}" if from_factory else name
        body.append(f"set_{number}(self, {value})" if frozen else f"self.{name} = {value}")
    lines = [*body, "post_init(self)"] if posted else body
    text = f"def __init__({', '.join(['self', *fields[:by_place], *by_name])}):\n "
    made_here: dict[str, Any] = {}
    exec(text + ("\n ".join(lines) or "pass"), made_here)  # noqa: S102
    code: CodeType = made_here["__init__"].__code__
    return code


def _set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _showing(names: list[str]) -> Callable[[object], str]:
    """Return the method that shows the values of fields."""

    @recursive_repr("...")
    def __repr__(self: object) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    return __repr__
