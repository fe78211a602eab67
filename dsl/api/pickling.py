"""Pickling of `@cd` functions: by name where a module has that function, else by value.

By value are pickled functions of `__main__` and of notebooks, nested functions, those of
`cd_from_source`, and those for another backend: the text, and the captured values, in which plain
functions are texts too. Of equal functions, with equal captured values, a process compiles one.
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

from ...base import process_state
from ...base.diagnostic import Source
from ...base.lazy_import import load_module
from ...lowering.ir import dtypes
from ..source import definition_blocks, function_source, name_mangling
from ..source.definition import Definition
from ..source.fingerprint import try_describe
from ..values.array_types import ArrayType, array_type

Function = Any
"""A `CdFunction`, whose module imports this one."""
State = dict[str, Any]
_MAX_CACHED = 64
"""The number of restored functions that are cached, one per digest."""
_cache: OrderedDict[str, Function] = OrderedDict()
process_state.register(
    lambda: process_state.State(
        name="functions that were restored from pickles",
        owner=__name__,
        holders=("_cache",),
        lock="the interpreter's lock",
        on_reset="forgotten",
        reset=_cache.clear,
    )
)


class _Module:
    """A captured module, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Sized:
    """A captured array type with sizes, by its element type and sizes."""

    def __init__(self, kind: ArrayType) -> None:
        self.short, self.sizes = kind.dtype.short, kind.sizes


class _Plain:
    """A captured Python function, as a `@cd` function: it is only inlined."""

    def __init__(self, function: Function) -> None:
        self.function = function


def is_named(value: Any) -> bool:
    """Whether an importable module has this object under its qualified name."""
    module = value.__module__
    return module not in (None, "__main__") and find_by_name(module, value.__qualname__) is value


def find_by_name(module: str, qualname: str) -> object:
    """Return the object of a qualified name in an imported module, None for none."""
    value: object = sys.modules.get(module)
    for step in qualname.split("."):
        value = getattr(value, step, None)
    return value


def digest(function: Function) -> str:
    """Return the digest of a function's text, its location and its backend."""
    source = function.definition.text
    identity = (
        source.source.name,
        source.source.first_line,
        _definition_text(source),
        function._backend,
        *map(digest, _rules_of(function)),
    )
    return hashlib.sha256(repr(identity).encode()).hexdigest()


def _rules_of(function: Function) -> list[Function]:
    """Return the functions that are derivatives of one, or of which these are made."""
    rules = (rule.function for rule in function.definition.written_rules.values())
    return [getattr(rule, "derived_from", rule) for rule in rules]


def pickle_state(function: Function) -> State:
    """Return the state of a function for pickling: its text and its captured values."""
    definition, kind = function.definition, type(function)
    source = definition.text
    return {
        "file": source.source.name,
        "line": source.source.first_line,
        "text": _definition_text(source),
        "name": (function.__module__, function.__qualname__, function.__doc__),
        "parameters": [
            (
                parameter.name,
                int(parameter.kind),
                *(() if parameter.default is parameter.empty else (parameter.default,)),
            )
            for parameter in function.__signature__.parameters.values()
        ],
        "names": {name: _pack(value, kind) for name, value in _captured(definition).items()},
        "letters": [
            (name, role if role is not function_source.MISSING else None)
            for name, role in definition.around.letters.items()
        ],
        "backend": function._backend,
        "rules": [
            (rule.function, dict(rule.roles), rule.of) for rule in definition.written_rules.values()
        ],
        "digest": digest(function),
    }


def _definition_text(read: function_source.FunctionSource) -> str:
    """Return the text of a complete definition; of a lambda it is unparsed."""
    return ast.unparse(read.tree) if isinstance(read.tree, ast.Lambda) else read.source.text


def restore_state(function: Function, state: State) -> None:
    """Initialize an empty function from its state; equal functions share theirs."""
    names = {name: _unpack(value) for name, value in state["names"].items()}
    cached = _cache.get(state["digest"])
    if cached is not None and _are_equal(cached.definition.scope.globals, names):
        function.share_state(cached)
        return
    letters = {
        name: function_source.MISSING if role is None else role for name, role in state["letters"]
    }
    definition = Definition(function_source.scope_of_namespace(names)._replace(letters=letters))
    definition.text = _read_source(state)
    kinds = tuple(inspect._ParameterKind)
    parameters = [
        inspect.Parameter(name, kinds[kind], default=default[0] if default else inspect._empty)
        for name, kind, *default in state["parameters"]
    ]
    type(function).__init__(function, definition, inspect.Signature(parameters), state["backend"])
    function.__module__, function.__qualname__, function.__doc__ = state["name"]
    if state["rules"]:
        load_module(".derivative_rules", __package__).restore_rules(function, state["rules"])
    _cache[state["digest"]] = function
    _cache.move_to_end(state["digest"])
    while len(_cache) > _MAX_CACHED:
        _cache.popitem(last=False)


def _captured(definition: Definition) -> Mapping[str, object]:
    """Return the captured values of a function by name, without builtins."""
    tree, scope = definition.text.tree, definition.scope
    if definition.function is not None:
        code = function_source.unwrap_function(definition.function).__code__
    elif isinstance(tree, ast.Lambda):
        code = compile(ast.Expression(tree), "<text>", "eval")
    else:
        code = compile(ast.Module([tree], []), "<text>", "exec")
    annotations = [
        annotation for node in ast.walk(tree) if (annotation := getattr(node, "annotation", None))
    ]
    annotated_names = {
        child.id
        for annotation in annotations
        for child in ast.walk(annotation)
        if isinstance(child, ast.Name)
    }
    names = {*_global_names(code), *annotated_names, *scope.cells}
    scope_without_builtins = function_source.Scope(scope.cells, scope.globals, {})
    values = ((name, scope_without_builtins.lookup(name)) for name in sorted(names))
    return {name: value for name, value in values if value is not function_source.MISSING}


def _global_names(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _pack(value: Any, kind: type[Function]) -> Any:
    """Return a captured value in a form that can be pickled."""
    if isinstance(value, ModuleType):
        return _Module(value.__name__)
    if get_origin(value) is Annotated:
        return _pack(value.__metadata__[-1], kind)  # other metadata is for the language only
    if isinstance(value, ArrayType) and value.sizes is not None:
        return _Sized(value)
    if type(value) is FunctionType and not is_named(value):
        definition = Definition(function_source.scope_of(value), value)
        return _Plain(kind(definition, inspect.signature(value)))
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, _Module):
        return importlib.import_module(value.name)
    if isinstance(value, _Sized):
        return array_type(dtypes.BY_SHORT[value.short], value.sizes)
    return value.function if isinstance(value, _Plain) else value


def _read_source(state: State) -> function_source.FunctionSource:
    """Return the source of a pickled text."""
    text, line, qualname = state["text"], state["line"], state["name"][1]
    tree: ast.AST
    if qualname.endswith("<lambda>"):
        tree = ast.parse(text, mode="eval").body
        ast.increment_lineno(tree, line - 1)
    else:
        (tree,) = definition_blocks.parse_block(f"{text}\n", line)
    assert isinstance(tree, function_source.Tree), "it was one when it was pickled"
    name = "<lambda>" if isinstance(tree, ast.Lambda) else tree.name
    tree = name_mangling.mangle_names(tree, qualname)
    source = Source(state["file"], line, text)
    return function_source.FunctionSource(name, tree, source, tuple(text.split("\n")))


def _are_equal(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Whether the captured values of two functions are equal."""
    return left.keys() == right.keys() and all(_is_equal(left[name], right[name]) for name in left)


def _is_equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) is np.ndarray:
        is_plain = left.dtype == right.dtype and not left.dtype.hasobject
        has_same_layout = is_plain and (left.shape, left.strides) == (right.shape, right.strides)
        return has_same_layout and left.tobytes() == right.tobytes()
    if hasattr(left, "__cd_function__"):
        return getattr(left, "__dict__", left) is getattr(right, "__dict__", right)
    description = try_describe(left)
    return description is not None and description == try_describe(right)
