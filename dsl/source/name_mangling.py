"""Private name mangling: inside `class A`, Python reads `self.__w` as `self._A__w`."""

from __future__ import annotations

import ast
from typing import TypeVar

from .staleness import enclosing_class

T = TypeVar("T", bound=ast.AST)

_NAMES = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg"}
"""Names of keyword arguments in calls are not mangled."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mangle_names(tree: T, qualname: str) -> T:
    """Return the tree of a function with this qualified name, its private names mangled.

    The tree is modified in place.
    """
    owner = enclosing_class(qualname).lstrip("_")
    if owner:
        for node in ast.walk(tree):
            if node is tree:
                continue
            field = "name" if isinstance(node, _DEFINITIONS) else _NAMES.get(type(node))
            if field is not None and _is_private(getattr(node, field)):
                setattr(node, field, f"_{owner}{getattr(node, field)}")
    return tree


def _is_private(name: str | None) -> bool:
    return name is not None and name.startswith("__") and not name.endswith("__")
