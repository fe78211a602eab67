"""Private names of classes: inside of `class A`, Python reads `self.__w` as `self._A__w`."""

from __future__ import annotations

import ast
from typing import TypeVar

from .staleness import class_around

T = TypeVar("T", bound=ast.AST)

_NAMES = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg"}
"""Python leaves the names of keywords in calls as they are."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mangled(tree: T, qualname: str) -> T:
    """Return the tree of a function of that qualified name, with its names as Python has them.

    The tree that is given is changed where there are such names.
    """
    owner = class_around(qualname).lstrip("_")
    if owner:
        for node in ast.walk(tree):
            if node is tree:
                continue
            name = "name" if isinstance(node, _DEFINITIONS) else _NAMES.get(type(node))
            if name is not None and _is_private(getattr(node, name)):
                setattr(node, name, f"_{owner}{getattr(node, name)}")
    return tree


def _is_private(name: str | None) -> bool:
    return name is not None and name.startswith("__") and not name.endswith("__")
