"""What a function finds of itself on disk, so that its first call in a process compiles nothing.

An entry is the recipe of a plan and the key of compiled code. It is found by all that is known
before anything is parsed: the function's text and code, how its arguments lie, the settings, the
compiler, the processor, the versions of Python, of NumPy and of our own sources. And it holds only
while the rest of what was read when it was made is as it was then: every name that was looked up
around the function and around those it inlines, and what is found in modules, each as `identity`
describes it. Where any of that differs, the function is compiled as if there were no entry.
`remember` writes entries.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..backends import cache
from ..backends.cc.backend import CompiledC
from ..backends.cc.compiler import flags
from ..backends.cc.host import target
from ..backends.cc.library import Broken, address, numbers
from ..backends.cc.warm import Check, Packed, Part, Source
from ..backends.runtime.state import RUNTIME
from ..lowering import settings
from ..lowering.diagnostic import CdError
from ..lowering.later import Later
from .definition import Definition
from .identity import Unknown, described
from .recipe import Form, Recipe, Step, packed
from .source import Scope, scope_of

if TYPE_CHECKING:
    from . import failing
else:
    failing = Later(".failing", __package__)

Arguments = Mapping[str, Any]
Data = dict[str, Any]
CLASSES: dict[str, type] = {"tuple": tuple, "list": list}


def is_open(backend: str | None) -> bool:
    """Whether entries are used now: for C, and where nothing is told of how it is compiled."""
    now = settings.current()
    told = now.debug or now.dump_dir or now.debug_log_from_routines
    plain = now.cache and not told and not now.verify and not now.stop_after
    return plain and (backend or now.backend) == "cc" and not RUNTIME.watching


def is_known(definition: Definition) -> bool:
    """Whether the function was read by a process before, which found nothing to refuse."""
    try:
        if definition.fingerprint is None or not settings.current().cache:
            return False
        return RUNTIME.disk.get(seen_key(definition.fingerprint)) is not None
    except CdError:
        return False  # settings that are wrong are told of where they are used


class Front:
    """The entries of one function. It looks once for each kind of call."""

    def __init__(self, definition: Definition, backend: str | None) -> None:
        self._definition, self._backend = definition, backend
        self._tried: set[str] = set()

    def find(self, arguments: Arguments, form: Form) -> Packed | None:
        """Return the plan of a call as an entry on disk has it, None where none holds."""
        own = self._definition.fingerprint
        try:
            if own is None or not is_open(self._backend):
                return None
            for key in keys(own, backend(), arguments):
                entry = None if key in self._tried else backend().cache.get(key)
                self._tried.add(key)
                if entry is not None:
                    return self._plan(entry.metadata, arguments, form)
        except (Unknown, Broken, CdError):
            pass
        return None

    def _plan(self, data: Data, arguments: Arguments, form: Form) -> Packed | None:
        definition, cc = self._definition, backend()
        functions, scopes = _around(data, definition.scope)
        if not all(_holds(scopes, *read) for read in data["reads"]):
            return None
        if cc.short_way.wanted(cc.toolchain, RUNTIME.watching) is None:
            return None
        library = cc.kept(data["code"], data["entry"])
        if library is None:
            return None

        def fail(status: int, *fault: int) -> NoReturn:
            failing.failed(data, definition, functions, status, *fault)

        function, sizes = library.function(data["entry"]), numbers(data["sizes"])
        code, held = (address(function), address(sizes)), (library, function, sizes)
        recipe = _recipe(data, scopes, arguments)
        plan = packed(recipe, form, settings.current(), code, held, fail)
        RUNTIME.count("disk")
        return plan


def backend() -> CompiledC:
    """Return the backend for C. Raises CdBackendError where there is no compiler."""
    found = RUNTIME.backend("cc")
    assert isinstance(found, CompiledC), "it is ours"
    return found


# -- keys ---------------------------------------------------------------------------------------


def seen_key(fingerprint: str) -> str:
    """Return the key of the entry that says that a function was read before."""
    return _digest(["seen", fingerprint, *_versions()])


def keys(fingerprint: str, cc: CompiledC, arguments: Arguments) -> Iterator[str]:
    """Yield the keys under which a call may be found: for any value of whole numbers, for these.

    Raises Unknown for arguments of which entries say nothing.
    """
    toolchain = cc.toolchain()
    world = [
        *_versions(), repr(settings.current()), asdict(toolchain), flags(toolchain), repr(target()),
    ]  # fmt: skip
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    alike = [min(n for n, one in enumerate(arrays) if one is array) for array in arrays]
    for static in (False, True):
        given = [(name, _argument(value, static)) for name, value in arguments.items()]
        yield _digest(["call", fingerprint, given, alike, *world])
        if not any(type(value) is int for value in arguments.values()):
            return


def _versions() -> list[str]:
    others = [getattr(sys.modules.get(name), "__version__", "") for name in ("ml_dtypes",)]
    return [sys.version, np.__version__, *others, cache.package_stamp()]


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _argument(value: Any, static: bool) -> list[Any]:
    """Return what code may depend on of an argument, beside the values of numbers."""
    kind = type(value)
    if kind is int and not static and -(2**63) <= value < 2**63:
        return ["int"]
    if kind in (float, complex) or (isinstance(value, np.number) and kind is value.dtype.type):
        return ["number", kind.__name__]
    if kind in (int, bool, str, type(None)) or kind is np.ndarray:
        return described(value)
    raise Unknown


# -- what an entry says -------------------------------------------------------------------------


def _around(data: Data, own: Scope) -> tuple[list[FunctionType], list[Scope]]:
    """Return the functions that are inlined, and what is around each, first around the function.

    Raises Unknown where they are no functions any more.
    """
    functions, scopes = [], [own]
    for place in data["owners"]:
        functions.append(inner_function(found(scopes, *place)))
        scopes.append(scope_of(functions[-1]))
    return functions, scopes


def inner_function(value: Any) -> FunctionType:
    """Return the Python function that a captured one is; raises Unknown."""
    if type(value) is not FunctionType and hasattr(value, "__cd_function__"):
        value = getattr(value, "__wrapped__", None)
    if type(value) is not FunctionType:
        raise Unknown
    return value


def found(scopes: Sequence[Scope], scope: int, name: str, steps: Sequence[str]) -> Any:
    """Return what a name, and attributes of what it is, lead to now; raises Unknown."""
    found = scopes[scope].lookup(name)
    try:
        for step in steps:
            found = getattr(found, step)
    except AttributeError:
        raise Unknown from None
    return found


def _holds(
    scopes: Sequence[Scope], scope: int, name: str, steps: Sequence[str], was: list[Any]
) -> bool:
    return described(found(scopes, scope, name, steps)) == was


def _recipe(data: Data, scopes: Sequence[Scope], arguments: Arguments) -> Recipe:
    """Return the recipe of an entry, with the objects that its steps lead to now."""
    steps: list[Step] = []
    objects: list[Any] = []
    for source, check in data["steps"]:
        match source[0]:
            case Source.ARGUMENT:
                steps.append(Step((Source.ARGUMENT, source[1])))
                objects.append(arguments[source[1]])
            case Source.NAME:
                steps.append(Step((Source.NAME, scopes[source[1]], source[2])))
                objects.append(scopes[source[1]].lookup(source[2]))
            case Source.ATTRIBUTE:
                steps.append(Step((Source.ATTRIBUTE, *source[1:])))
                objects.append(getattr(objects[source[1]], source[2], None))
            case Source.ITEM:
                steps.append(Step((Source.ITEM, *source[1:])))
                objects.append(objects[source[1]][source[2]])
            case _:
                objects.append(ast.literal_eval(source[1]))
                steps.append(Step((Source.CONSTANT, objects[-1])))
        steps[-1].check = _check(check, objects[-1])
    return Recipe(
        steps, data["pairs"], data["equals"], data["inputs"],
        [(kind, np.dtype(name), tuple(shape)) for kind, name, shape in data["results"]],
        data["whole"], [_part(*part) for part in data["parts"]],
    )  # fmt: skip


def _check(check: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """Return a check; what has to be the same object is the one that was described just now."""
    kind, *rest = check
    match kind:
        case Check.SAME:
            return Check.SAME, value
        case Check.ARRAY:
            dtype, shape, strides, flag = rest
            return Check.ARRAY, np.dtype(dtype), shape, strides, flag
        case Check.NUMBER:
            return Check.NUMBER, complex if rest == ["complex"] else np.dtype(rest[0]).type
        case Check.SIZED:
            return Check.SIZED, CLASSES[rest[0]], rest[1]
        case _:
            return (kind, *rest)


def _part(kind: int, what: Any) -> tuple[int, Any]:
    return kind, ast.literal_eval(what) if kind == Part.OBJECT else what
