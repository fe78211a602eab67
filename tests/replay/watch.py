"""What the passes for a device do: the program after each rewriting, and the mappings that fire.

The pipeline shows each of its passes to an observer. What `prepared` and `grid` call is watched
from outside, until it is shown to that observer, too: a function of one of these modules that
takes a program and returns one is a rewriting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

from plusequals.lowering.ir.loops import Program

Observe = Callable[[str, Program, Program], None]
"""Called with the name of a rewriting, and the program before and after it."""

REWRITING = ("plusequals.lowering.gpu.normalize", "plusequals.lowering.gpu.mapping")
"""The modules whose functions call the rewritings."""
DECIDING = {
    "plusequals.lowering.gpu.mapping": (
        "tensor_tiles", "tiles", "divided", "segments", "rows_of", "distributed", "columns",
        "points", "rows", "apart", "scan", "prefix", "scattered", "owners", "separated",
        "one_block", "alone",
    ),
    "plusequals.lowering.gpu.reductions.last_block": ("joined",),
}  # fmt: skip
"""By module the functions that return kernels, or nests for kernels, and None where they do not
apply: the mappings."""
MAPPINGS = tuple(name for names in DECIDING.values() for name in names)


@contextmanager
def watched(observe: Observe, fired: Counter[str]) -> Iterator[None]:
    """Show rewritings and count the mappings that apply, inside of the `with`.

    Raises AttributeError for a mapping that is not there: the table above is to be kept current.
    """
    with ExitStack() as stack:
        for module in map(import_module, REWRITING):
            for name, function in _functions(module):
                if name not in MAPPINGS:
                    one = _rewriting(function, observe)
                    stack.enter_context(patch.object(module, name, one))
        for path, names in DECIDING.items():
            module = import_module(path)
            for name in names:
                one = _mapping(getattr(module, name), fired)
                stack.enter_context(patch.object(module, name, one))
        yield


def _functions(module: ModuleType) -> list[tuple[str, FunctionType]]:
    """Return the functions of other modules that a module calls by a name of its own."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__.startswith("plusequals.")
        and value.__module__ != module.__name__
    ]


def _rewriting(function: FunctionType, observe: Observe) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        made = function(*args, **named)
        if isinstance(made, Program) and args and isinstance(args[0], Program):
            observe(_name(function, args), args[0], made)
        return made

    return call


def _name(function: FunctionType, args: tuple[Any, ...]) -> str:
    """Return the name of a rewriting; of what applies a function to all kernels, that one's."""
    given = [getattr(one, "func", one) for one in args[1:]]
    return next((one.__name__ for one in given if isinstance(one, FunctionType)), function.__name__)


def _mapping(function: Callable[..., Any], fired: Counter[str]) -> Callable[..., Any]:
    label = function.__name__

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        made = function(*args, **named)
        if made is not None:
            fired[label] += 1
        return made

    return call
