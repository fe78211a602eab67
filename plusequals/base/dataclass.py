"""A faster `dataclasses.dataclass`: class creation in a small part of the time.

The library compiles six functions for each frozen class and inspects each field in several ways,
about a millisecond in all; the first call of a function needs some two hundred such classes. Here
only `__init__` is compiled, when a second object is created, which never happens for many classes;
the other methods are shared and look up the class's fields. The library's metadata are created on
first access, so that `fields`, `replace`, `asdict` and type checkers find what they expect.
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
        return (
            _make_class(cls, **options)
            if cls is not None
            else lambda cls: _make_class(cls, **options)
        )


class _Factory:
    """Marks the default of a field with a default factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY_DEFAULT = _Factory()
_FieldsByName = Mapping[str, "Field[Any]"]
"""Fields by name, those of base classes first."""


def _make_class(
    cls: type,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
    kw_only: bool = False,
    weakref_slot: bool = False,
) -> type:
    """Return the class with its methods; those that it defines itself are kept."""
    declared = _declared_fields(cls, kw_only)
    members: dict[str, Any] = {
        "__init__": _LazyInit(declared, frozen),
        "__replace__": dataclasses.replace,
    }  # fmt: skip
    if eq:
        members |= _comparison_methods([name for name, f in declared.items() if f.compare])
    if frozen:
        members |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        members |= {"__getstate__": _get_state, "__setstate__": _set_state}
    elif eq:
        members["__hash__"] = None
    if repr:
        members["__repr__"] = _repr_method([name for name, f in declared.items() if f.repr])
    members |= {name: value for name, value in vars(cls).items() if not _is_implied(cls, name)}
    members |= {
        "__doc__": cls.__doc__ or cls.__name__,
        "__match_args__": tuple(name for name, f in declared.items() if f.init and not f.kw_only),
        "__dataclass_fields__": _LazyMember(
            lambda owner: _library_class(owner, declared).__dataclass_fields__
        ),
        "__dataclass_params__": _LazyMember(
            lambda owner: _library_class(owner, declared).__dataclass_params__
        ),
    }  # fmt: skip
    return (
        _with_slots(cls, declared, members, weakref_slot)
        if slots
        else _with_members(cls, declared, members)
    )


def _is_implied(cls: type, name: str) -> bool:
    """Whether a member is one that Python adds to a class with `__eq__`."""
    return name == "__hash__" and vars(cls)[name] is None and "__eq__" in vars(cls)


def _declared_fields(cls: type, kw_only: bool) -> _FieldsByName:
    """Return the fields of a class; the library has not processed its own ones yet."""
    result: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        if is_dataclass(base):
            result |= {f.name: f for f in fields(base)}
    for name in get_annotations(cls):
        value = vars(cls).get(name, MISSING)
        result[name] = value if isinstance(value, Field) else dataclasses.field(default=value)
        if result[name].kw_only is MISSING:
            result[name].kw_only = kw_only
    return result


def _with_slots(
    cls: type, declared: _FieldsByName, members: dict[str, Any], weakref_slot: bool
) -> type:
    """Return the class created again, with a slot for each field that no base has one for."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    for name in (*declared, "__dict__", "__weakref__"):
        members.pop(name, None)
    names = (*declared, "__weakref__") if weakref_slot else tuple(declared)
    members["__slots__"] = tuple(name for name in names if name not in inherited)
    slotted: type = type(cls)(cls.__name__, cls.__bases__, members)
    slotted.__qualname__ = cls.__qualname__
    return slotted


def _with_members(cls: type, declared: _FieldsByName, members: dict[str, Any]) -> type:
    """Return the class itself with these members, and with defaults in place of fields."""
    for name in declared.keys() & members.keys():
        members[name] = declared[name].default
    for name, value in members.items():
        if value is MISSING:
            delattr(cls, name)
        elif vars(cls).get(name, MISSING) is not value:
            setattr(cls, name, value)
            if isinstance(value, _LazyMember):
                value.__set_name__(cls, name)
    return cls


class _LazyMember:
    """Descriptor of a class member that is created on first access."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        member = self._make(self._owner)
        setattr(self._owner, self._name, member)
        bind = getattr(type(member), "__get__", None)
        return member if bind is None else bind(member, instance, kind)


class _LazyInit(_LazyMember):
    """Descriptor of `__init__`: the first object is initialized field by field."""

    __slots__ = ("_declared", "_frozen", "_used")

    def __init__(self, declared: _FieldsByName, frozen: bool) -> None:
        super().__init__(lambda owner: _make_init(owner, declared, frozen))
        self._declared, self._frozen, self._used = declared, frozen, False

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        if self._used or instance is None or type(instance) is not self._owner:
            return super().__get__(instance, kind)
        self._used = True
        return partial(self._fill, instance)

    def _fill(self, instance: Any, /, *args: object, **kwargs: object) -> None:
        """Initialize one object; where arguments do not fit `__init__` is called, which raises."""
        init_fields = {name: f for name, f in self._declared.items() if f.init}
        positional = [name for name, f in init_fields.items() if not f.kw_only]
        values = dict(zip(positional, args, strict=False))
        for name, f in init_fields.items():
            if name in values or name in kwargs:
                continue
            if f.default_factory is not MISSING:
                values[name] = f.default_factory()
            elif f.default is not MISSING:
                values[name] = f.default
        has_surplus = len(args) > len(positional) or values.keys() & kwargs.keys()
        if has_surplus or {*values, *kwargs} != init_fields.keys():
            type(instance).__init__(instance, *args, **kwargs)
            return
        put = object.__setattr__ if self._frozen else setattr
        for name, value in (values | kwargs).items():
            put(instance, name, value)
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


def _library_class(cls: type, declared: _FieldsByName) -> Any:
    """Return a class that the library has created with the same fields."""
    annotated = get_annotations(cls)
    members = {"__annotations__": annotated, "__module__": cls.__module__, "__doc__": cls.__doc__}
    bases = tuple(base for base in cls.__bases__ if is_dataclass(base))
    library_class = new_class(cls.__name__, bases, {}, lambda namespace: namespace.update(members))
    for name in annotated:  # later: an interrupt of `Field.__set_name__` would be a RuntimeError
        setattr(library_class, name, declared[name])
    return dataclasses.dataclass(init=False, repr=False, eq=False)(library_class)


def _comparison_methods(names: list[str]) -> dict[str, Callable[..., Any]]:
    """Return the methods that compare and hash the values of fields, as tuples."""
    values: Callable[[Any], tuple[Any, ...]]
    if not names:
        values = _empty_tuple
    else:  # of one name it would return the value, which need not equal itself
        values = attrgetter(*names, *(names if len(names) == 1 else ()))

    def __eq__(self: Any, other: object) -> bool:
        return self is other or (  # tuples of what is the same are equal, even of NaN
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _empty_tuple(value: object) -> tuple[()]:
    return ()


def _make_init(cls: type, declared: _FieldsByName, frozen: bool) -> Callable[..., None]:
    """Return `__init__`; of a frozen class it sets each field by its slot."""
    init_fields = {name: f for name, f in declared.items() if f.init}
    positional = [name for name, f in init_fields.items() if not f.kw_only]
    names = (*positional, *(name for name, f in init_fields.items() if f.kw_only))
    has_factory = [init_fields[name].default_factory is not MISSING for name in names]
    namespace: dict[str, Any] = {
        "factory": _FACTORY_DEFAULT,
        "post_init": getattr(cls, "__post_init__", None),
    }
    for number, name in enumerate(names):
        namespace[f"make_{number}"] = init_fields[name].default_factory
        if frozen:
            namespace[f"set_{number}"] = _setter(cls, name)
    code = _init_code(tuple(has_factory), len(positional), frozen, hasattr(cls, "__post_init__"))
    spelling = {f"field_{number}": name for number, name in enumerate(names)}
    code = code.replace(
        co_varnames=tuple(spelling.get(name, name) for name in code.co_varnames),
        co_names=tuple(spelling.get(name, name) for name in code.co_names),
    )
    defaults = {
        name: _FACTORY_DEFAULT if from_factory else init_fields[name].default
        for name, from_factory in zip(names, has_factory, strict=True)
    }
    given_defaults = {name: value for name, value in defaults.items() if value is not MISSING}
    initial = FunctionType(code, namespace, "__init__")
    initial.__defaults__ = tuple(v for name, v in given_defaults.items() if name in positional)
    initial.__kwdefaults__ = {n: v for n, v in given_defaults.items() if n not in positional}
    initial.__qualname__, initial.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    types = {name: f.type for name, f in declared.items()} | get_annotations(cls)
    initial.__annotations__ = types | {"return": None}
    return initial


def _setter(cls: type, name: str) -> Callable[[object, object], None]:
    """Return the function that sets a field of an object of a frozen class."""
    slot = getattr(vars(cls).get(name), "__set__", None)
    return slot or (lambda instance, value: object.__setattr__(instance, name, value))


@cache
def _init_code(
    has_factory: tuple[bool, ...], positional_count: int, frozen: bool, posted: bool
) -> CodeType:
    """Return the code of an `__init__` whose fields have numbers as names; `has_factory`: which
    have a default factory, `positional_count`: how many are positional."""
    fields = [f"field_{number}" for number in range(len(has_factory))]
    by_name = ["*", *fields[positional_count:]] if positional_count < len(fields) else []
    body = []
    for number, (name, from_factory) in enumerate(zip(fields, has_factory, strict=True)):
        value = f"make_{number}() if {name} is factory else {name}" if from_factory else name
        body.append(f"set_{number}(self, {value})" if frozen else f"self.{name} = {value}")
    lines = [*body, "post_init(self)"] if posted else body
    text = f"def __init__({', '.join(['self', *fields[:positional_count], *by_name])}):\n "
    scope: dict[str, Any] = {}
    exec(text + ("\n ".join(lines) or "pass"), scope)  # noqa: S102
    code: CodeType = scope["__init__"].__code__
    return code


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _repr_method(names: list[str]) -> Callable[[object], str]:
    """Return `__repr__`, which shows the values of fields."""

    @recursive_repr("...")
    def __repr__(self: object) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    return __repr__
