"""Functions under `@cd` in pickles: by name where a module has that very function, else by value.

By value go functions of `__main__` and of notebooks, those inside of functions, those of
`cd_from_source`, and those for another backend: the text, and what the names in it are bound to;
plain functions among those as text, too. Of functions that are the same, captured values and all,
a process compiles one.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import importlib
import inspect
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Annotated, Any, get_origin

import numpy as np

from ...base.diagnostic import Source
from ...lowering.ir import dtypes
from ..source import definition_blocks, function_source, name_mangling
from ..source.definition import Definition
from ..source.fingerprint import words
from ..values.array_types import ArrayType, array_type

Function = Any
"""A `CdFunction`, whose module imports this one."""
State = dict[str, Any]
_TWINS = 64
"""Of how many functions the one that was restored last is kept."""
_twins: OrderedDict[str, Function] = OrderedDict()


class _Module:
    """A module among captured values, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Sized:
    """A type with sizes among captured values: what makes it."""

    def __init__(self, kind: ArrayType) -> None:
        self.short, self.sizes = kind.dtype.short, kind.sizes


class _Plain:
    """A Python function among captured values, as one under `@cd`: it is only inlined."""

    def __init__(self, function: Function) -> None:
        self.function = function


def is_named(value: Any) -> bool:
    """Whether a module that other processes can import has this very object under its name."""
    module = value.__module__
    return module not in (None, "__main__") and named(module, value.__qualname__) is value


def named(module: str, qualname: str) -> object:
    """Return what has a qualified name in a module that was imported, None for nothing."""
    found: object = sys.modules.get(module)
    for step in qualname.split("."):
        found = getattr(found, step, None)
    return found


def digest(function: Function) -> str:
    """Return what tells a function's text, its place and its backend from others."""
    read = function.definition.text
    known = read.source.name, read.source.first_line, _written(read), function._backend
    return hashlib.sha256(repr(known).encode()).hexdigest()


def state_of(function: Function) -> State:
    """Return the text of a function, and what the names in it are bound to, to be pickled."""
    definition, kind = function.definition, type(function)
    read = definition.text
    return {
        "file": read.source.name,
        "line": read.source.first_line,
        "text": _written(read),
        "name": (function.__module__, function.__qualname__, function.__doc__),
        "parameters": [
            (one.name, int(one.kind), *(() if one.default is one.empty else (one.default,)))
            for one in function.__signature__.parameters.values()
        ],
        "names": {name: _packed(value, kind) for name, value in _captured(definition).items()},
        "letters": [
            (name, role if role is not function_source.MISSING else None)
            for name, role in definition.around.letters.items()
        ],
        "backend": function._backend,
        "digest": digest(function),
    }


def _written(read: function_source.FunctionSource) -> str:
    """Return a text that is a whole definition: the lines of a lambda are not."""
    return ast.unparse(read.tree) if isinstance(read.tree, ast.Lambda) else read.source.text


def fill(function: Function, state: State) -> None:
    """Have an empty function be what its state says: the one of before, where that is the same."""
    names = {name: _unpacked(value) for name, value in state["names"].items()}
    twin = _twins.get(state["digest"])
    if twin is not None and _are_alike(twin.definition.scope.globals, names):
        function.become(twin)
        return
    letters = {
        name: function_source.MISSING if role is None else role for name, role in state["letters"]
    }
    definition = Definition(function_source.scope_of_namespace(names)._replace(letters=letters))
    definition.text = _text(state)
    kinds = tuple(inspect._ParameterKind)
    parameters = [
        inspect.Parameter(name, kinds[kind], default=default[0] if default else inspect._empty)
        for name, kind, *default in state["parameters"]
    ]
    type(function).__init__(function, definition, inspect.Signature(parameters), state["backend"])
    function.__module__, function.__qualname__, function.__doc__ = state["name"]
    _twins[state["digest"]] = function
    _twins.move_to_end(state["digest"])
    while len(_twins) > _TWINS:
        _twins.popitem(last=False)


def _captured(definition: Definition) -> Mapping[str, object]:
    """Return what the names in a function are bound to around it, but for Python's own."""
    tree, scope = definition.text.tree, definition.scope
    if definition.function is not None:
        code = function_source.plain_function(definition.function).__code__
    elif isinstance(tree, ast.Lambda):
        code = compile(ast.Expression(tree), "<text>", "eval")
    else:
        code = compile(ast.Module([tree], []), "<text>", "exec")
    notes = [note for node in ast.walk(tree) if (note := getattr(node, "annotation", None))]
    noted = {one.id for note in notes for one in ast.walk(note) if isinstance(one, ast.Name)}
    names = {*_globals_in(code), *noted, *scope.cells}
    around = function_source.Scope(scope.cells, scope.globals, {})
    found = ((name, around.lookup(name)) for name in sorted(names))
    return {name: value for name, value in found if value is not function_source.MISSING}


def _globals_in(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant)


def _packed(value: Any, kind: type[Function]) -> Any:
    """Return a captured value as a pickle can hold it."""
    if isinstance(value, ModuleType):
        return _Module(value.__name__)
    if get_origin(value) is Annotated:
        return _packed(value.__metadata__[-1], kind)  # a contract is there for the language alone
    if isinstance(value, ArrayType) and value.sizes is not None:
        return _Sized(value)
    if type(value) is FunctionType and not is_named(value):
        definition = Definition(function_source.scope_of(value), value)
        return _Plain(kind(definition, inspect.signature(value)))
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, _Module):
        return importlib.import_module(value.name)
    if isinstance(value, _Sized):
        return array_type(dtypes.BY_SHORT[value.short], value.sizes)
    return value.function if isinstance(value, _Plain) else value


def _text(state: State) -> function_source.FunctionSource:
    """Return the text that was pickled, as it was read."""
    text, line, qualname = state["text"], state["line"], state["name"][1]
    tree: ast.AST
    if qualname.endswith("<lambda>"):
        tree = ast.parse(text, mode="eval").body
        ast.increment_lineno(tree, line - 1)
    else:
        (tree,) = definition_blocks.parse_block(f"{text}\n", line)
    assert isinstance(tree, function_source.Tree), "it was one when it was pickled"
    name = "<lambda>" if isinstance(tree, ast.Lambda) else tree.name
    tree = name_mangling.mangled(tree, qualname)
    place = Source(state["file"], line, text)
    return function_source.FunctionSource(name, tree, place, tuple(text.split("\n")))


def _are_alike(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether what two functions captured is the same, value for value."""
    return one.keys() == other.keys() and all(_is_alike(one[name], other[name]) for name in one)


def _is_alike(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is np.ndarray:
        is_plain = one.dtype == other.dtype and not one.dtype.hasobject
        alike = is_plain and (one.shape, one.strides) == (other.shape, other.strides)
        return alike and one.tobytes() == other.tobytes()
    if hasattr(one, "__cd_function__"):
        return getattr(one, "__dict__", one) is getattr(other, "__dict__", other)
    known = words(one)
    return known is not None and known == words(other)
