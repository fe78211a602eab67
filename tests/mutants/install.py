"""A mutant in the place of the real function, in this process only: the files are never touched."""

from __future__ import annotations
import __future__

import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .mutate import Mutant


def install(module: ModuleType, mutant: Mutant) -> None:
    """Put a mutant into a loaded module, for everybody who imported from it."""
    flags = __future__.annotations.compiler_flag
    whole = compile(mutant.tree, module.__name__, "exec", flags, dont_inherit=True)
    if not mutant.function:
        _set_table(module, mutant, whole)
        return
    name = mutant.function.split(".")[-1]
    codes = (one for one in whole.co_consts if isinstance(one, CodeType))
    function = function_of(module, mutant.function)
    function.__code__ = next(one for one in codes if one.co_name == name)


def function_of(module: ModuleType, name: str) -> FunctionType:
    """Return a function of a module or a method of its classes, below what decorates it."""
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    for under in ("fget", "__func__", "__wrapped__"):
        found = getattr(found, under, None) or found
    assert isinstance(found, FunctionType), f"{name} is not a plain function"
    return found


def _set_table(module: ModuleType, mutant: Mutant, code: CodeType) -> None:
    """Give a module's table its new value, also where another module holds it by its name."""
    names: dict[str, Any] = {}
    exec(code, dict(vars(module)), names)
    (name,) = (one for one in names if one.isupper())
    old = vars(module)[name]
    for other in list(sys.modules.values()):
        if vars(other).get(name, names) is old:
            setattr(other, name, names[name])


def text_of(module: ModuleType) -> str:
    """Return the text of a module as its file stands now."""
    with open(module.__file__ or "", encoding="utf-8") as file:
        return file.read()
