"""Writer of the persistent cache: the entry of a call that was just compiled.

No entry is written for a call whose compilation depends on values without a description that is
valid in other processes: objects of the user's, tensors. See `persistent_cache`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...backends import capabilities
from ...backends.cache import cache
from ...backends.cache.cache import Entry
from ...backends.call_entry import Guard, PartKind, ValueSource
from ...base import settings
from ...base.diagnostic import CdError
from ..elaborate.captures.inputs import ObjectSpec
from ..elaborate.typed import Typed
from ..source.definition import Definition
from ..source.fingerprint import NotPortable, describe
from ..source.function_source import Scope
from ..specialize.guards import CallGuard, GuardProgram
from ..specialize.signature import describe_input
from ..specialize.variants import Match
from ..values.values import OF_FUNCTIONS, UNDER, Path
from . import persistent_cache, stored_errors

_MAX_VARIANTS = 8
"""The most variants in an entry, the latest first, for different captured values."""
_MAX_INT_BITS = 2048
"""Longer integers are not written: Python refuses to parse them."""
_PORTABLE_CHECKS = (
    Guard.ANY, Guard.EQUAL, Guard.ARRAY, Guard.FLOAT, Guard.INTEGER, Guard.NUMBER, Guard.BITS,
    Guard.LISTED,
)  # fmt: skip
"""Checks that are valid in every process; `SAME` is read back as the current object."""


def write_entry(
    match: Match,
    arguments: Mapping[str, Any],
    guards: GuardProgram | None,
    definition: Definition,
    backend: str | None,
) -> None:
    """Write the entry of a call that was just compiled, if it can be described."""
    fingerprint, current = definition.fingerprint, settings.current()
    if (
        fingerprint is None
        or not persistent_cache.is_cache_enabled()
        or not cache.is_unchanged()
        or (storing := persistent_cache.storing_backend(backend)) is None
    ):
        return
    storing.cache.put(persistent_cache.parsed_key(fingerprint), Entry({}, "", b""))
    try:
        data = None if guards is None else entry_data(match, guards, definition)
        keys_of_call = (
            persistent_cache.entry_keys(fingerprint, storing, arguments)
            if _is_key_sufficient(match, arguments, guards)
            else ()
        )
    except (NotPortable, CdError):
        return
    same_settings = (
        match.specialization.situation.settings == current and settings.current() is current
    )
    if data is None or not keys_of_call or not same_settings:  # `use` may have changed them
        return
    key = keys_of_call[-1 if match.specialization.typed.constant else 0]
    existing = storing.cache.get(key)
    older = [] if existing is None else existing.metadata["ways"]
    storing.cache.put(key, Entry({"ways": [data, *older[: _MAX_VARIANTS - 1]]}, "", b""))


def _is_key_sufficient(
    match: Match, arguments: Mapping[str, Any], guards: GuardProgram | None
) -> bool:
    """Whether the key of an entry covers all that the checks of arguments do not, and the checks
    compare the arguments that are constants of the code."""
    constant = match.specialization.typed.constant
    steps = (
        [step for step in guards.steps if step.source[0] == ValueSource.ARGUMENT] if guards else []
    )
    return all(
        step.check[0] in _PORTABLE_CHECKS
        or persistent_cache.describe_argument(arguments[step.source[1]], bool(constant))[0] != "any"
        for step in steps
    ) and not any(step.source[1] in constant and _is_type_only(step.check) for step in steps)


def _is_type_only(check: tuple[Any, ...]) -> bool:
    return check[0] in (Guard.ANY, Guard.FLOAT, Guard.INTEGER, Guard.NUMBER)


def entry_data(
    match: Match, guards: GuardProgram, definition: Definition
) -> persistent_cache.EntryData | None:
    """Return the data of an entry, None for unsupported code; raises Unknown where a value has no
    description."""
    specialization = match.specialization
    typed = specialization.typed
    routine = specialization.routine
    code = None if routine is None else capabilities.direct_calls(routine.code)
    call = None if code is None else code.direct_call(match.arrays())
    if call is None or not typed.steady or guards.finish or (saved := call.saved) is None:
        return None
    prefixes, owners = _function_paths(typed)
    scopes = _scopes(typed, prefixes, definition)
    inlined = [persistent_cache.inlined_function(typed.owners[prefix]) for prefix in prefixes[1:]]
    read = list(_captured_reads(typed, prefixes, scopes))
    reads, alike = (
        [item for item, _ in read],
        persistent_cache.identity_classes([value for _, value in read]),
    )
    attributes = list(_attributes(typed))
    paths = zip(owners, prefixes[1:], strict=True)
    is_unchanged = all(
        persistent_cache.current_value(scopes, *way) is typed.owners[prefix]
        for way, prefix in paths
    )
    if not is_unchanged or not persistent_cache.is_valid(reads, attributes, alike, scopes):
        return None  # a captured value changed during the compilation
    other_sources: list[list[Any]] = []
    sources = stored_errors.function_sources(definition, inlined)
    encode = partial(stored_errors.encode_span, sources=sources, others=other_sources)
    faults = [
        [item.code, item.kind, item.message, list(item.helps), encode(span)]
        for item, span in call.faults
    ]
    return {
        "code": saved,
        "owners": owners,
        "reads": reads,
        "asked": attributes,
        "alike": alike,
        "faults": faults,
        "general": specialization.may_broadcast,
        "sources": other_sources,
        "steps": [_encode_step(step, scopes) for step in guards.steps],
        "pairs": guards.pairs,
        "equals": guards.equals,
        "inputs": guards.inputs,
        "results": [[kind, _dtype(dtype), list(shape)] for kind, dtype, shape in guards.results],
        "whole": guards.whole,
        "parts": [
            [kind, _literal(what) if kind == PartKind.OBJECT else what]
            for kind, what in guards.parts
        ],
    }


def _function_paths(typed: Typed) -> tuple[list[str], list[list[Any]]]:
    """Return the prefixes of the functions, its own first, and the path to each other one."""
    prefixes, owners = [""], []
    for prefix, owner in typed.owners.items():
        if isinstance(owner, str):
            continue  # a library function
        owners.append(_path_to(typed, prefixes, owner))
        prefixes.append(prefix)
    return prefixes, owners


def _path_to(typed: Typed, prefixes: list[str], owner: object) -> list[Any]:
    for (prefix, name), captured in typed.read.items():
        if captured.value is owner and prefix in prefixes:
            return [prefixes.index(prefix), name, []]
    for path, spec in typed.used.items():
        prefix, name = _split_root(path.root)
        if isinstance(spec, ObjectSpec) and spec.value is owner and prefix in prefixes:
            is_plain = path.captured and path.root not in typed.constants
            if is_plain and all(isinstance(step, str) for step in path.steps):
                return [prefixes.index(prefix), name, list(path.steps)]
    raise NotPortable


def _captured_reads(
    typed: Typed, prefixes: list[str], scopes: list[Scope]
) -> Iterator[tuple[list[Any], object]]:
    """Yield each captured value: its path and description, and the object."""
    for (prefix, name), captured in typed.read.items():
        if captured.words is None or prefix not in prefixes:
            raise NotPortable
        if name not in scopes[prefixes.index(prefix)].letters:  # these are in the fingerprint
            yield [prefixes.index(prefix), name, [], captured.words], captured.value
    for path, spec in typed.used.items():
        prefix, name = _split_root(path.root)
        is_constant = path.root in typed.constants
        if is_constant and (path.steps or prefix not in prefixes):
            raise NotPortable  # an object that a callable refers to
        if not path.steps or _is_in_description(path, typed):
            continue
        steps = [step for step in path.steps if isinstance(step, str)]
        if not path.captured or len(steps) < len(path.steps) or prefix not in prefixes:
            raise NotPortable
        value = persistent_cache.current_value(scopes, prefixes.index(prefix), name, steps)
        if describe_input(value, True) != spec:
            raise NotPortable  # it changed during the compilation
        yield [prefixes.index(prefix), name, steps, describe(value)], value


def _is_in_description(path: Path, typed: Typed) -> bool:
    """Whether the description of an inlined function covers it: its code, its default values."""
    at = next((at for at, step in enumerate(path.steps) if step in OF_FUNCTIONS), None)
    while at and path.steps[at - 1] in UNDER:
        at -= 1
    spec = typed.used.get(Path(path.root, path.steps[:at], path.captured))
    return (
        at is not None
        and isinstance(spec, ObjectSpec)
        and any(spec.value is owner for owner in typed.owners.values())
    )


def _attributes(typed: Typed) -> Iterator[list[Any]]:
    """Yield the attributes that are constants of the code: owner, name, value as descriptions."""
    for owner, name, value in typed.asked:
        if owner.words is None or value.words is None:
            raise NotPortable
        yield [owner.words, name, value.words]


def _split_root(root: str) -> tuple[str, str]:
    """Return the prefix of a root, which identifies the function, and the name."""
    prefix, colon, name = root.rpartition(":")
    return prefix + colon, name


def _scopes(typed: Typed, prefixes: list[str], definition: Definition) -> list[Scope]:
    scopes = [definition.around]
    for prefix in prefixes[1:]:
        scope = getattr(typed.roots[prefix], "__self__", None)
        if not isinstance(scope, Scope):
            raise NotPortable
        scopes.append(scope)
    return scopes


def _encode_step(step: CallGuard, scopes: list[Scope]) -> list[list[Any]]:
    """Return a step of a guard program as `persistent_cache` reads it."""
    return [_encode_source(step.source, scopes), _check(step.check)]


def _encode_source(source: tuple[Any, ...], scopes: list[Scope]) -> list[Any]:
    match source:
        case (ValueSource.ARGUMENT, name):
            return [ValueSource.ARGUMENT, name]
        case (ValueSource.NAME, scope, name):
            at = next((n for n, candidate in enumerate(scopes) if candidate is scope), None)
            if at is None:
                raise NotPortable
            return [ValueSource.NAME, at, name]
        case (ValueSource.ATTRIBUTE | ValueSource.ITEM as kind, base, str() | int() as key):
            return [kind, base, key]
        case (ValueSource.CONSTANT, np.ndarray() as table):  # it is immutable
            return [
                ValueSource.CONSTANT,
                table.tobytes().hex(),
                _dtype(table.dtype),
                list(table.shape),
            ]
        case (ValueSource.CONSTANT, value):
            return [ValueSource.CONSTANT, _literal(value)]
    raise NotPortable


def _check(check: tuple[Any, ...]) -> list[Any]:
    match check:
        case (Guard.SAME, _):
            return [Guard.SAME]
        case (Guard.BITS, float() as number):
            return [Guard.BITS, struct.pack("d", number).hex()]
        case (Guard.ARRAY, dtype, shape, strides, flags):
            return [Guard.ARRAY, _dtype(dtype), list(shape), list(strides), flags]
        case (Guard.NUMBER, kind):
            return [Guard.NUMBER, "complex" if kind is complex else np.dtype(kind).name]
        case (Guard.SIZED, kind, length) if kind in (tuple, list):
            return [Guard.SIZED, kind.__name__, length]
        case (Guard.TYPE | Guard.SIZED | Guard.ARRAY, *_):
            raise NotPortable
    return list(check)


def _dtype(dtype: Any) -> str:
    name: str = dtype.str
    if np.dtype(name) is not dtype:
        raise NotPortable
    return name


def _literal(value: object) -> str:
    """Return the literal of a constant that parses to the same value; raises Unknown."""
    match value:
        case None | bool() | int() | str() | float() if type(value).__module__ == "builtins":
            if _has_exact_literal(value):
                return repr(value)
        case tuple() if type(value) is tuple:
            return f"({''.join(_literal(item) + ', ' for item in value)})"
    raise NotPortable


def _has_exact_literal(value: object) -> bool:
    """Whether the literal of a number or text parses to the same value."""
    match value:
        case float():
            return math.isfinite(value)
        case int():
            return value.bit_length() < _MAX_INT_BITS
        case _:
            return True
