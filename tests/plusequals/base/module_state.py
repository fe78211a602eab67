"""What modules of the package hold that can change: found by their syntax, judged by their values.

`bindings` are the module-level names and class attributes whose value can change, or might;
`mutations` the places in functions that change something which a module-level name refers to.
"""

from __future__ import annotations

import ast
import ctypes
import enum
import importlib
import pathlib
import re
import struct
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from functools import cached_property as property_of_library
from operator import attrgetter, itemgetter

import _cffi_backend
import numpy as np

from plusequals.base import dataclass as ours
from plusequals.base.cached_property import cached_property
from plusequals.base.lazy_import import LazyFunction, LazyModule

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ("dsl", "lowering", "backends", "plusequals/base")
IMMUTABLE = (
    int, float, complex, str, bytes, type(None), type(...), range, type, enum.Enum,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.ModuleType, types.GenericAlias,
    types.UnionType, types.MappingProxyType, types.CodeType, property, classmethod, staticmethod,
    typing.TypeVar, typing.ParamSpec, type(typing.NamedTuple("_Pair", [("left", int)]).left),
    re.Pattern, struct.Struct, pathlib.PurePath, attrgetter, itemgetter, partial,
    np.dtype, np.ufunc, type(np.sum), LazyFunction, LazyModule, cached_property,
    property_of_library, ctypes._CFuncPtr, _cffi_backend.FFI, _cffi_backend.CType,
)  # fmt: skip
MUTATORS = frozenset(
    "add append appendleft cache_clear clear difference_update discard extend insert "
    "intersection_update move_to_end pop popitem popleft remove reverse set setdefault sort "
    "symmetric_difference_update update __setattr__".split()
)


@dataclass(frozen=True)
class Module:
    """A module of the package, with its syntax."""

    name: str
    tree: ast.Module
    namespace: dict[str, typing.Any]


@cache
def modules() -> tuple[Module, ...]:
    """All modules of the package but `__main__`, imported."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    paths += [path for path in (ROOT / "plusequals").glob("*.py") if path.stem != "__main__"]
    return tuple(_module(path) for path in sorted(paths))


def _module(path: pathlib.Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "plusequals" else ("plusequals", *parts)
    name = ".".join(parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return Module(name, tree, vars(importlib.import_module(name)))


def bindings(module: Module) -> Iterator[tuple[str, object]]:
    """The names that a module and its classes bind to values that may change, with these."""
    for dotted in _bound(module.tree.body, ""):
        name, _, attribute = dotted.partition(".")
        owner = module.namespace.get(name)
        value = vars(owner).get(attribute) if attribute and isinstance(owner, type) else owner
        if not is_immutable(value):
            yield dotted, value


def bound(module: Module) -> set[str]:
    """The names that statements of a module bind."""
    return set(_bound(module.tree.body, ""))


def _bound(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, body=inside) if not prefix:
                yield from _bound(inside, f"{name}.")
            case ast.FunctionDef(name=name):
                yield prefix + name
            case ast.If() | ast.Try() | ast.With() | ast.For():
                for inner in ast.iter_child_nodes(statement):
                    yield from _bound([inner] if isinstance(inner, ast.stmt) else [], prefix)
            case ast.Assign(targets=targets):
                yield from (prefix + name for target in targets for name in _names(target))
            case ast.AnnAssign(target=target, value=value) if value is not None:
                yield from (prefix + name for name in _names(target))


def _names(target: ast.expr) -> Iterator[str]:
    """The variables that an assignment binds."""
    nodes = (node for node in ast.walk(target) if isinstance(node, ast.Name))
    return (node.id for node in nodes if isinstance(node.ctx, ast.Store))


def is_immutable(value: object) -> bool:
    """Whether a value cannot change, or its class lets nobody change it."""
    if isinstance(value, IMMUTABLE):
        return True
    if isinstance(value, tuple | frozenset):
        return all(map(is_immutable, value))
    if type(value).__setattr__ is ours._refuse_set:
        return all(is_immutable(part) or is_table(part) for part in _parts(value))
    is_empty = isinstance(value, np.ndarray) and not value.size
    return is_empty or type(value) is object or type(value).__module__ == "typing"


def _parts(value: object) -> Iterator[object]:
    """The values of the fields of an object, those of a frozen class."""
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield getattr(value, name)
    yield from getattr(value, "__dict__", {}).values()


def is_table(value: object) -> bool:
    """Whether a value is a plain container; whether somebody changes it, `mutations` says."""
    return type(value) in (dict, list, set)


def mutations(module: Module) -> Iterator[tuple[int, str]]:
    """The line and the text of what functions of a module change, where its base is no variable."""
    for function in _functions(module.tree):
        local = set(_locals(function))
        for node in ast.walk(function):
            for changed in _changed(node):
                base = changed
                while isinstance(base, ast.Attribute | ast.Subscript):
                    base = base.value
                if not isinstance(base, ast.Name) or base.id in local:
                    continue
                value = module.namespace.get(base.id)
                if value is not None and not (base is changed and _is_call_of(node, value)):
                    yield node.lineno, ast.unparse(changed)


def _is_call_of(node: ast.AST, receiver: object) -> bool:
    """Whether a node calls a function of a module, or of a class with an object."""
    return isinstance(node, ast.Call) and isinstance(receiver, types.ModuleType | type | LazyModule)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The outermost functions and methods."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        else:
            yield from _functions(node)


def _locals(function: ast.FunctionDef) -> Iterator[str]:
    """The names that a function and those inside of it bind."""
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) if node is not function:
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """What a node changes: the container of an element, or the object of an attribute."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            elements = [one for target in targets for one in _flat(target)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            elements = [target]
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if name in MUTATORS:
            yield receiver
            return
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[receiver, *_]):
            yield receiver
            return
        case _:
            return
    for element in elements:
        if isinstance(element, ast.Subscript):
            yield element.value
        elif isinstance(element, ast.Attribute):
            yield element


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _flat(part)
        case ast.Starred(value=part):
            yield from _flat(part)
        case _:
            yield target
