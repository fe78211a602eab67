"""What a function finds of itself on disk, so that its first call in a process compiles nothing.

An entry is a few ways to go, each the recipe of a plan and the key of compiled code. It is found
by all that is known before anything is parsed: the function's text and code, how its arguments lie,
the settings, the compiler, the processor, the versions of Python, of NumPy and of our own sources.
A way holds only while the rest of what was read when it was made is as it was then: every name that
was looked up around the function and around those it inlines, also those that were nothing, every
attribute that was asked for, each as `identity` describes it, and which of these are one object.
Where any of that differs, the function is compiled as if there were none. `remember` writes ways.
"""

from __future__ import annotations

import ast
import hashlib
import json
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...backends.cache import cache
from ...backends.cc.backend import CompiledC
from ...backends.cc.compiler import compile_flags
from ...backends.cc.cpu_info import target_inputs
from ...backends.cc.fast_call import CacheEntry, Guard, PartKind, ValueSource
from ...backends.cc.loader import LoadError, address_of, int64_array
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.diagnostic import CdError
from ...base.lazy_import import LazyModule
from ...base.settings import Settings
from ..source.definition import Definition, Inlined
from ..source.fingerprint import Unknown, asked, described, is_fixed, resolved
from ..source.function_source import Scope, scope_of
from ..specialize.guards import Form, Recipe, Step, packed

if TYPE_CHECKING:
    from . import stored_errors
else:
    stored_errors = LazyModule(".stored_errors", __package__)

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
    cache.package_stamp()  # while the sources are surely those that this process runs
    try:
        if definition.fingerprint is None or not settings.current().cache:
            return False
        return RUNTIME.disk_cache.get(seen_key(definition.fingerprint)) is not None
    except CdError:
        return False  # settings that are wrong are told of where they are used


class Front:
    """The entries of one function. It looks once for each kind of call."""

    def __init__(self, definition: Definition, backend: str | None) -> None:
        self._definition, self._backend = definition, backend
        self._tried: set[str] = set()

    def find(self, arguments: Arguments, form: Form) -> CacheEntry | None:
        """Return the plan of a call as an entry on disk has it, None where none holds."""
        own = self._definition.fingerprint
        try:
            if own is None or not is_open(self._backend):
                return None
            if RUNTIME.disk_cache.get(seen_key(own)) is None:
                RUNTIME.begin("cc")
                return None
            now, cc = settings.current(), backend()
            for key in keys(own, cc, arguments):
                entry = None if key in self._tried else cc.cache.get(key)
                self._tried.add(key)
                for data in () if entry is None else entry.metadata["ways"]:
                    if (found := self._plan(data, arguments, form, now)) is not None:
                        return found if settings.current() is now else None  # it was changed
        except (LoadError, CdError):
            pass
        return None

    def _plan(
        self, data: Data, arguments: Arguments, form: Form, now: Settings
    ) -> CacheEntry | None:
        definition, cc = self._definition, backend()
        try:
            inlined, scopes = _around(data, definition.scope)
            recipe = _recipe(data, scopes, arguments)  # first: it stands for what is looked at now
            if not holds(data["reads"], data["asked"], data["alike"], scopes):
                return None
        except Unknown:
            return None
        if cc.short_way.wanted(cc.toolchain, RUNTIME.watching) is None:
            return None
        library = cc.kept(data["code"], data["entry"])
        if library is None:
            return None

        shared = cc.threads(data["threads"]) if data["threads"] else None
        table = None if shared is None else shared.table(*cc.shares())

        def fail(status: int, *fault: int) -> NoReturn:
            if status == 3 and shared is not None:
                raise shared.error()
            stored_errors.failed(data, definition, inlined, status, *fault)

        function, sizes = library.function(data["entry"]), int64_array(data["sizes"])
        code = address_of(function), address_of(sizes), 0 if table is None else address_of(table)
        held = library, function, sizes, table
        plan = packed(recipe, form, now, code, held, fail, data["general"])
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


def keys(fingerprint: str, cc: CompiledC, arguments: Arguments) -> Sequence[str]:
    """Return the keys under which a call may be found: for any value of whole numbers, for these.

    None where entries say nothing of such arguments.
    """
    try:
        return list(_keys(fingerprint, cc, arguments))
    except Unknown:
        return ()


def _keys(fingerprint: str, cc: CompiledC, arguments: Arguments) -> Iterator[str]:
    toolchain = cc.toolchain()
    world = [
        *_versions(), settings.deciding(), toolchain.written(), compile_flags(toolchain),
        target_inputs(),
    ]  # fmt: skip
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    alike = [min(n for n, one in enumerate(arrays) if one is array) for array in arrays]
    for static in (False, True):
        given = [(name, argument(value, static)) for name, value in arguments.items()]
        yield _digest(["call", fingerprint, given, alike, *world])
        if not any(isinstance(value, int | np.integer) for value in arguments.values()):
            return


def _versions() -> list[str]:
    others = [getattr(sys.modules.get(name), "__version__", "") for name in ("ml_dtypes",)]
    return [sys.version, np.__version__, *others, cache.package_digest()]


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def argument(value: Any, static: bool) -> list[Any]:
    """Return what code may depend on of an argument: of an array its layout, of a number its type,
    of a whole number that is `static` its value. Raises Unknown."""
    kind = type(value)
    if kind is int and not static and -(2**63) <= value < 2**63:
        return ["any", "int"]
    if static and isinstance(value, np.integer):
        return described(value)
    if kind in (float, complex) or (isinstance(value, np.number) and kind is value.dtype.type):
        return ["any", kind.__name__]
    if kind in (int, bool, str, type(None)) or kind is np.ndarray:
        return described(value)
    raise Unknown


# -- what an entry says -------------------------------------------------------------------------


def _around(data: Data, own: Scope) -> tuple[list[Inlined], list[Scope]]:
    """Return the functions that are inlined, and what is around each, first around the function.

    Raises Unknown where they are no functions any more.
    """
    inlined, scopes = [], [own]
    for place in data["owners"]:
        inlined.append(inlined_function(found(scopes, *place)))
        scopes.append(scope_around(inlined[-1]))
    return inlined, scopes


def inlined_function(value: Any) -> Inlined:
    """Return what a captured function was defined by; raises Unknown."""
    if type(value) is not FunctionType and hasattr(value, "__cd_function__"):
        value = getattr(value, "definition", None)
    if type(value) is not FunctionType and type(value) is not Definition:
        raise Unknown
    return value


def scope_around(one: Inlined) -> Scope:
    """Return the names around a function that is inlined."""
    return one.scope if isinstance(one, Definition) else scope_of(one)


def found(scopes: Sequence[Scope], scope: int, name: str, steps: Sequence[str]) -> Any:
    """Return what a name, and attributes of what it is, lead to now; raises Unknown."""
    found = scopes[scope].lookup(name)
    for step in steps:
        found = asked(found, step)
    return found


def holds(
    reads: Sequence[list[Any]],
    attributes: Sequence[list[Any]],
    alike: Sequence[int],
    scopes: Sequence[Scope],
) -> bool:
    """Whether all that was read is what it was, and the same of it are one object."""
    values = [found(scopes, *place) for *place, _ in reads]
    return (
        all(described(value) == was for value, (*_, was) in zip(values, reads, strict=True))
        and all(described(asked(resolved(owner), name)) == was for owner, name, was in attributes)
        and alike_of(values) == alike
    )


def alike_of(values: Sequence[object]) -> list[int]:
    """Return for each value the place of the first that is the very same object; of numbers,
    texts and types it is of no account, and -1."""
    ids = [id(value) for value in values]
    return [-1 if is_fixed(value) else ids.index(id(value)) for value in values]


def _recipe(data: Data, scopes: Sequence[Scope], arguments: Arguments) -> Recipe:
    """Return the recipe of an entry, with the objects that its steps lead to now."""
    steps: list[Step] = []
    objects: list[Any] = []
    for source, check in data["steps"]:
        match source[0]:
            case ValueSource.ARGUMENT:
                steps.append(Step((ValueSource.ARGUMENT, source[1])))
                objects.append(arguments[source[1]])
            case ValueSource.NAME:
                steps.append(Step((ValueSource.NAME, _readable(scopes[source[1]]), source[2])))
                objects.append(scopes[source[1]].lookup(source[2]))
            case ValueSource.ATTRIBUTE:
                steps.append(Step((ValueSource.ATTRIBUTE, *source[1:])))
                objects.append(asked(objects[source[1]], source[2]))
            case ValueSource.ITEM:
                steps.append(Step((ValueSource.ITEM, *source[1:])))
                objects.append(_item(objects[source[1]], source[2]))
            case _:
                objects.append(_constant(*source[1:]))
                steps.append(Step((ValueSource.CONSTANT, objects[-1])))
        steps[-1].check = _check(check, objects[-1])
    return Recipe(
        steps, data["pairs"], data["equals"], data["inputs"],
        [(kind, np.dtype(name), tuple(shape)) for kind, name, shape in data["results"]],
        data["whole"], [_part(*part) for part in data["parts"]],
    )  # fmt: skip


def _constant(text: str, dtype: str = "", shape: Sequence[int] = ()) -> Any:
    """Return a constant of an entry: what a literal says, or a table of numbers."""
    if not dtype:
        return ast.literal_eval(text)
    return np.frombuffer(bytes.fromhex(text), np.dtype(dtype)).reshape(shape)


def _item(owner: Any, key: Any) -> Any:
    """Return an item of what may have other ones by now; raises Unknown."""
    try:
        return owner[key]
    except (LookupError, TypeError):
        raise Unknown from None


def _readable(scope: Scope) -> Scope:
    """Return the scope if compiled code can look names up there; raises Unknown."""
    if any(type(names) is not dict for names in (scope.globals, scope.builtins)):
        raise Unknown
    return scope


def _check(check: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """Return a check; what has to be the same object is the one that is about to be described."""
    kind, *rest = check
    match kind:
        case Guard.SAME:
            return Guard.SAME, value
        case Guard.ARRAY:
            dtype, shape, strides, flag = rest
            return Guard.ARRAY, np.dtype(dtype), shape, strides, flag
        case Guard.NUMBER:
            return Guard.NUMBER, complex if rest == ["complex"] else np.dtype(rest[0]).type
        case Guard.SIZED:
            return Guard.SIZED, CLASSES[rest[0]], rest[1]
        case Guard.BITS:
            return Guard.BITS, *struct.unpack("d", bytes.fromhex(rest[0]))
        case _:
            return (kind, *rest)


def _part(kind: int, what: Any) -> tuple[int, Any]:
    return kind, ast.literal_eval(what) if kind == PartKind.OBJECT else what
