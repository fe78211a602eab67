"""Persistent cache of specializations: a first call in a process runs code without compiling.

An entry has a few variants, each a guard program and the key of compiled code. Its key has all that
is available before parsing: the function's text and code, the layouts of its arguments, the
settings, the backend, its compiler, the CPU, the versions of Python, NumPy and this package's
sources. A variant is valid only while all values read at its compilation are unchanged: every
captured name of the function and of those that it inlines, also unbound ones, and every attribute,
each described as in `fingerprint`, and the identities among them. Otherwise the function is
compiled. `persist` writes entries.
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

from ...backends import capabilities
from ...backends.cache import cache
from ...backends.call_entry import CacheEntry, Guard, PartKind, ValueSource
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.diagnostic import CdError
from ...base.lazy_import import LazyModule
from ...base.settings import Settings
from ..source.definition import Definition, InlinedFunction
from ..source.fingerprint import NotPortable, describe, is_immutable, read_attribute, resolve
from ..source.function_source import Scope, scope_of
from ..specialize.guards import CallGuard, CallShape, GuardProgram, RaiseError, pack_guards

if TYPE_CHECKING:
    from ...backends.direct_calls import DirectCall, StoresCode
    from . import stored_errors
else:
    stored_errors = LazyModule(".stored_errors", __package__)

Arguments = Mapping[str, Any]
EntryData = dict[str, Any]
CLASSES: dict[str, type] = {"tuple": tuple, "list": list}


def is_cache_enabled() -> bool:
    """Whether the cache is used now: unless debugging settings observe compilation."""
    current = settings.current()
    is_observed = current.debug or current.dump_dir or current.debug_log_from_routines
    is_enabled = current.cache and not is_observed and not current.verify and not current.stop_after
    return is_enabled and not RUNTIME.watching


def storing_backend(name: str | None) -> StoresCode | None:
    """Return the backend of a name, or of the settings, None where it stores no code.

    Raises CdBackendError where it cannot run here.
    """
    name = name or settings.current().backend
    if capabilities.stored_code(RUNTIME.peek(name)) is None:
        return None
    return capabilities.stored_code(RUNTIME.backend(name))


def was_parsed_before(definition: Definition) -> bool:
    """Whether an earlier process parsed the function without an error."""
    cache.package_stamp()  # now, while the sources are those that this process runs
    try:
        if definition.fingerprint is None or not settings.current().cache:
            return False
        return RUNTIME.disk_cache.get(parsed_key(definition.fingerprint)) is not None
    except CdError:
        return False  # wrong settings are reported where they are used


class PersistentEntries:
    """The persistent entries of one function; each key is looked up once."""

    def __init__(self, definition: Definition, backend: str | None) -> None:
        self._definition, self._backend = definition, backend
        self._tried_keys: set[str] = set()

    def find(self, arguments: Arguments, form: CallShape) -> CacheEntry | None:
        """Return the fast-path entry of a call from disk, None where no variant is valid."""
        fingerprint = self._definition.fingerprint
        try:
            if fingerprint is None or not is_cache_enabled():
                return None
            current = settings.current()
            name = self._backend or current.backend
            if capabilities.stored_code(RUNTIME.peek(name)) is None:
                return None
            if RUNTIME.disk_cache.get(parsed_key(fingerprint)) is None:
                RUNTIME.begin(name)
                return None
            backend = storing_backend(name)
            assert backend is not None, "it stores code"
            for key in entry_keys(fingerprint, backend, arguments):
                entry = None if key in self._tried_keys else backend.cache.get(key)
                self._tried_keys.add(key)
                for data in () if entry is None else entry.metadata["ways"]:
                    program = self._load_variant(data, arguments, form, current, backend)
                    if program is not None:  # unless the settings were changed
                        return program if settings.current() is current else None
        except CdError:
            pass
        return None

    def _load_variant(
        self,
        data: EntryData,
        arguments: Arguments,
        form: CallShape,
        current: Settings,
        backend: StoresCode,
    ) -> CacheEntry | None:
        definition = self._definition
        try:
            inlined, scopes = _inlined_scopes(data, definition.scope)
            guards = _decode_program(
                data, scopes, arguments
            )  # first: it captures the current objects
            if not is_valid(data["reads"], data["asked"], data["alike"], scopes):
                return None
        except NotPortable:
            return None
        library = RUNTIME.load_caller()
        if library is None or library.caller is None:
            return None
        call = backend.restore(
            data["code"], lambda: stored_errors.decode_faults(data, definition, inlined)
        )
        if call is None:
            return None
        fail = _raiser(call, definition)
        program = pack_guards(guards, form, current, call.addresses, call, fail, data["general"])
        RUNTIME.count("disk")
        return program


def _raiser(call: DirectCall, definition: Definition) -> RaiseError:
    """Return what raises the errors of a call; it is imported when there is one."""

    def fail(status: int, *fault: int) -> NoReturn:
        stored_errors.raise_error(call, definition, status, *fault)

    return fail


# -- keys ---------------------------------------------------------------------------------------


def parsed_key(fingerprint: str) -> str:
    """Return the key of the entry that marks a function as parsed before."""
    return _digest(["seen", fingerprint, *_versions()])


def entry_keys(fingerprint: str, backend: StoresCode, arguments: Arguments) -> Sequence[str]:
    """Return the keys of a call: with integers of any value, then with their values.

    Empty where arguments cannot be described.
    """
    try:
        return list(_keys(fingerprint, backend, arguments))
    except NotPortable:
        return ()


def _keys(fingerprint: str, backend: StoresCode, arguments: Arguments) -> Iterator[str]:
    environment = [*_versions(), settings.deciding(), backend.name, *backend.code_inputs()]
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    identities = [
        min(n for n, candidate in enumerate(arrays) if candidate is array) for array in arrays
    ]
    for static in (False, True):
        described_arguments = [
            (name, describe_argument(value, static)) for name, value in arguments.items()
        ]
        yield _digest(["call", fingerprint, described_arguments, identities, *environment])
        if not any(isinstance(value, int | np.integer) for value in arguments.values()):
            return


def _versions() -> list[str]:
    optional = [getattr(sys.modules.get(name), "__version__", "") for name in ("ml_dtypes",)]
    return [sys.version, np.__version__, *optional, cache.package_digest()]


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def describe_argument(value: Any, static: bool) -> list[Any]:
    """Return the description of an argument: of an array its layout, of a number its type, of a
    `static` integer its value. Raises Unknown."""
    kind = type(value)
    if kind is int and not static and -(2**63) <= value < 2**63:
        return ["any", "int"]
    if static and isinstance(value, np.integer):
        return describe(value)
    if kind in (float, complex) or (isinstance(value, np.number) and kind is value.dtype.type):
        return ["any", kind.__name__]
    if kind in (int, bool, str, type(None)) or kind is np.ndarray:
        return describe(value)
    raise NotPortable


# -- contents of an entry -----------------------------------------------------------------------


def _inlined_scopes(
    data: EntryData, function_scope: Scope
) -> tuple[list[InlinedFunction], list[Scope]]:
    """Return the inlined functions, and the enclosing scopes, that of the function first.

    Raises Unknown where the paths no longer lead to functions.
    """
    inlined, scopes = [], [function_scope]
    for location in data["owners"]:
        inlined.append(inlined_function(current_value(scopes, *location)))
        scopes.append(enclosing_scope(inlined[-1]))
    return inlined, scopes


def inlined_function(value: Any) -> InlinedFunction:
    """Return the function or definition of a captured function; raises Unknown."""
    if type(value) is not FunctionType and hasattr(value, "__cd_function__"):
        value = getattr(value, "definition", None)
    if type(value) is not FunctionType and type(value) is not Definition:
        raise NotPortable
    return value


def enclosing_scope(function: InlinedFunction) -> Scope:
    """Return the enclosing scope of an inlined function."""
    return function.scope if isinstance(function, Definition) else scope_of(function)


def current_value(scopes: Sequence[Scope], scope: int, name: str, steps: Sequence[str]) -> Any:
    """Return the current value of a name and a path of attributes; raises Unknown."""
    value = scopes[scope].lookup(name)
    for step in steps:
        value = read_attribute(value, step)
    return value


def is_valid(
    reads: Sequence[list[Any]],
    attributes: Sequence[list[Any]],
    alike: Sequence[int],
    scopes: Sequence[Scope],
) -> bool:
    """Whether all values read at compilation have the same descriptions and identities now."""
    values = [current_value(scopes, *location) for *location, _ in reads]
    return (
        all(describe(value) == was for value, (*_, was) in zip(values, reads, strict=True))
        and all(
            describe(read_attribute(resolve(owner), name)) == was for owner, name, was in attributes
        )
        and identity_classes(values) == alike
    )


def identity_classes(values: Sequence[object]) -> list[int]:
    """Return for each value the position of the first identical object, -1 for immutable values,
    whose identity is irrelevant."""
    ids = [id(value) for value in values]
    return [-1 if is_immutable(value) else ids.index(id(value)) for value in values]


def _decode_program(data: EntryData, scopes: Sequence[Scope], arguments: Arguments) -> GuardProgram:
    """Return the guard program of an entry, with the current objects of its steps."""
    steps: list[CallGuard] = []
    objects: list[Any] = []
    for source, check in data["steps"]:
        match source[0]:
            case ValueSource.ARGUMENT:
                steps.append(CallGuard((ValueSource.ARGUMENT, source[1])))
                objects.append(arguments[source[1]])
            case ValueSource.NAME:
                steps.append(
                    CallGuard((ValueSource.NAME, _require_dicts(scopes[source[1]]), source[2]))
                )
                objects.append(scopes[source[1]].lookup(source[2]))
            case ValueSource.ATTRIBUTE:
                steps.append(CallGuard((ValueSource.ATTRIBUTE, *source[1:])))
                objects.append(read_attribute(objects[source[1]], source[2]))
            case ValueSource.ITEM:
                steps.append(CallGuard((ValueSource.ITEM, *source[1:])))
                objects.append(_read_item(objects[source[1]], source[2]))
            case _:
                objects.append(_decode_constant(*source[1:]))
                steps.append(CallGuard((ValueSource.CONSTANT, objects[-1])))
        steps[-1].check = _check(check, objects[-1])
    return GuardProgram(
        steps, data["pairs"], data["equals"], data["inputs"],
        [(kind, np.dtype(name), tuple(shape)) for kind, name, shape in data["results"]],
        data["whole"], [_decode_part(*part) for part in data["parts"]],
    )  # fmt: skip


def _decode_constant(text: str, dtype: str = "", shape: Sequence[int] = ()) -> Any:
    """Return a constant of an entry: the value of a literal, or an array."""
    if not dtype:
        return ast.literal_eval(text)
    return np.frombuffer(bytes.fromhex(text), np.dtype(dtype)).reshape(shape)


def _read_item(owner: Any, key: Any) -> Any:
    """Return an item of a container; raises Unknown where there is none now."""
    try:
        return owner[key]
    except (LookupError, TypeError):
        raise NotPortable from None


def _require_dicts(scope: Scope) -> Scope:
    """Return the scope if compiled code can look names up in it; raises Unknown."""
    if any(type(names) is not dict for names in (scope.globals, scope.builtins)):
        raise NotPortable
    return scope


def _check(check: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """Return the check of an entry; `SAME` compares with the current object `value`."""
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


def _decode_part(kind: int, what: Any) -> tuple[int, Any]:
    return kind, ast.literal_eval(what) if kind == PartKind.OBJECT else what
