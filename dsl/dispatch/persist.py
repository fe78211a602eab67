"""What is written to disk when a call was compiled, for processes to come; see `front`.

Nothing is written of a call whose compilation asked for more than an entry can say: objects of
the user's, tensors, whatever has no words that mean the same in another process.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...backends.cache import cache
from ...backends.cache.cache import Entry
from ...backends.cc.code import CompiledCode
from ...backends.cc.fast_call import Guard, PartKind, ValueSource
from ...base import settings
from ...base.diagnostic import CdError
from ..elaborate.captures.inputs import ObjectSpec
from ..elaborate.typed import Typed
from ..source.definition import Definition
from ..source.fingerprint import Unknown, described
from ..source.function_source import Scope
from ..specialize.guards import Recipe, Step
from ..specialize.signature import describe_input
from ..specialize.variants import Match
from ..values.values import OF_FUNCTIONS, UNDER, Path
from . import persistent_cache, stored_errors

_WAYS = 8
"""How many ways an entry has, the latest first: for as many values of what is captured."""
_BITS = 2048
"""Longer whole numbers are not written: Python refuses to read them."""
_EXACT = (
    Guard.ANY, Guard.EQUAL, Guard.ARRAY, Guard.FLOAT, Guard.INTEGER, Guard.NUMBER, Guard.BITS,
    Guard.LISTED,
)  # fmt: skip
"""Checks that mean the same in every process; `SAME` is read back as "what it is now"."""


def remember(
    match: Match,
    arguments: Mapping[str, Any],
    recipe: Recipe | None,
    definition: Definition,
    backend: str | None,
) -> None:
    """Write what a call that was just compiled is to be found by, as far as that can be said."""
    own, now = definition.fingerprint, settings.current()
    if own is None or not persistent_cache.is_open(backend) or not cache.is_unchanged():
        return
    cc = persistent_cache.backend()
    cc.cache.put(persistent_cache.seen_key(own), Entry({}, "", b""))
    try:
        data = None if recipe is None else data_of(match, recipe, definition)
        places = (
            persistent_cache.keys(own, cc, arguments) if _are_told(match, arguments, recipe) else ()
        )
    except (Unknown, CdError):
        return
    same = match.known.situation.settings == now and settings.current() is now
    if data is None or not places or not same:  # or another thread has changed them with `use`
        return
    place = places[-1 if match.known.typed.constant else 0]
    known = cc.cache.get(place)
    others = [] if known is None else known.metadata["ways"]
    cc.cache.put(place, Entry({"ways": [data, *others[: _WAYS - 1]]}, "", b""))


def _are_told(match: Match, arguments: Mapping[str, Any], recipe: Recipe | None) -> bool:
    """Whether the key of an entry tells what the checks of arguments leave open, and these compare
    the values that are constants of the code."""
    constant = match.known.typed.constant
    steps = (
        [step for step in recipe.steps if step.source[0] == ValueSource.ARGUMENT] if recipe else []
    )
    return all(
        step.check[0] in _EXACT
        or persistent_cache.argument(arguments[step.source[1]], bool(constant))[0] != "any"
        for step in steps
    ) and not any(step.source[1] in constant and _is_loose(step.check) for step in steps)


def _is_loose(check: tuple[Any, ...]) -> bool:
    return check[0] in (Guard.ANY, Guard.FLOAT, Guard.INTEGER, Guard.NUMBER)


def data_of(match: Match, recipe: Recipe, definition: Definition) -> persistent_cache.Data | None:
    """Return what an entry holds; raises Unknown where there are no words for some of it."""
    known = match.known
    typed = known.typed
    code = known.routine.code if known.routine is not None else None
    short = code.short(match.arrays()) if isinstance(code, CompiledCode) else None
    if short is None or not typed.steady or not short.code.library.key or recipe.finish:
        return None
    prefixes, owners = _owners(typed)
    scopes = _scopes(typed, prefixes, definition)
    inlined = [persistent_cache.inlined_function(typed.owners[prefix]) for prefix in prefixes[1:]]
    read = list(_reads(typed, prefixes, scopes))
    reads, alike = [one for one, _ in read], persistent_cache.alike_of([value for _, value in read])
    attributes = list(_attributes(typed))
    ways = zip(owners, prefixes[1:], strict=True)
    steady = all(
        persistent_cache.found(scopes, *way) is typed.owners[prefix] for way, prefix in ways
    )
    if not steady or not persistent_cache.holds(reads, attributes, alike, scopes):
        return None  # it changed while it was compiled
    others: list[list[Any]] = []
    sources = stored_errors.sources_of(definition, inlined)
    faults = [
        [
            one.code,
            one.kind,
            one.message,
            list(one.helps),
            stored_errors.place_of(span, sources, others),
        ]
        for one, span in short.code.source.faults
    ]
    return {
        "name": short.code.name,
        "code": short.code.library.key,
        "entry": short.code.source.entry,
        "sizes": list(short.values),
        "threads": "" if short.code.threads is None else short.code.threads.key,
        "owners": owners,
        "reads": reads,
        "asked": attributes,
        "alike": alike,
        "faults": faults,
        "general": known.may_broadcast,
        "sources": others,
        "steps": [_step(step, scopes) for step in recipe.steps],
        "pairs": recipe.pairs,
        "equals": recipe.equals,
        "inputs": recipe.inputs,
        "results": [[kind, _dtype(dtype), list(shape)] for kind, dtype, shape in recipe.results],
        "whole": recipe.whole,
        "parts": [
            [kind, _literal(what) if kind == PartKind.OBJECT else what]
            for kind, what in recipe.parts
        ],
    }


def _owners(typed: Typed) -> tuple[list[str], list[list[Any]]]:
    """Return the prefixes of the functions, its own first, and how each other one is reached."""
    prefixes, owners = [""], []
    for prefix, owner in typed.owners.items():
        if isinstance(owner, str):
            continue  # a text of the library
        owners.append(_reached(typed, prefixes, owner))
        prefixes.append(prefix)
    return prefixes, owners


def _reached(typed: Typed, prefixes: list[str], owner: object) -> list[Any]:
    for (prefix, name), noted in typed.read.items():
        if noted.value is owner and prefix in prefixes:
            return [prefixes.index(prefix), name, []]
    for path, spec in typed.used.items():
        prefix, name = _split(path.root)
        if isinstance(spec, ObjectSpec) and spec.value is owner and prefix in prefixes:
            plain = path.captured and path.root not in typed.constants
            if plain and all(isinstance(step, str) for step in path.steps):
                return [prefixes.index(prefix), name, list(path.steps)]
    raise Unknown


def _reads(
    typed: Typed, prefixes: list[str], scopes: list[Scope]
) -> Iterator[tuple[list[Any], object]]:
    """Yield all that was read: where it is found, what it was in words, and the object."""
    for (prefix, name), noted in typed.read.items():
        if noted.words is None or prefix not in prefixes:
            raise Unknown
        if name not in scopes[prefixes.index(prefix)].letters:  # which the function's digest tells
            yield [prefixes.index(prefix), name, [], noted.words], noted.value
    for path, spec in typed.used.items():
        prefix, name = _split(path.root)
        is_constant = path.root in typed.constants
        if is_constant and (path.steps or prefix not in prefixes):
            raise Unknown  # an object that a callable brought along
        if not path.steps or _is_in_words(path, typed):
            continue
        steps = [step for step in path.steps if isinstance(step, str)]
        if not path.captured or len(steps) < len(path.steps) or prefix not in prefixes:
            raise Unknown
        value = persistent_cache.found(scopes, prefixes.index(prefix), name, steps)
        if describe_input(value, True) != spec:
            raise Unknown  # it changed while it was compiled
        yield [prefixes.index(prefix), name, steps, described(value)], value


def _is_in_words(path: Path, typed: Typed) -> bool:
    """Whether it is told by the words for an inlined function: its code, its default values."""
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
    """Yield the attributes that were taken for constant: of what, which, and what it is."""
    for owner, name, value in typed.asked:
        if owner.words is None or value.words is None:
            raise Unknown
        yield [owner.words, name, value.words]


def _split(root: str) -> tuple[str, str]:
    """Return the prefix of a root, which says whose name it is, and the name."""
    prefix, colon, name = root.rpartition(":")
    return prefix + colon, name


def _scopes(typed: Typed, prefixes: list[str], definition: Definition) -> list[Scope]:
    scopes = [definition.around]
    for prefix in prefixes[1:]:
        scope = getattr(typed.roots[prefix], "__self__", None)
        if not isinstance(scope, Scope):
            raise Unknown
        scopes.append(scope)
    return scopes


def _step(step: Step, scopes: list[Scope]) -> list[list[Any]]:
    """Return a step of a recipe, which `front.recipe_of` reads."""
    return [_source(step.source, scopes), _check(step.check)]


def _source(source: tuple[Any, ...], scopes: list[Scope]) -> list[Any]:
    match source:
        case (ValueSource.ARGUMENT, name):
            return [ValueSource.ARGUMENT, name]
        case (ValueSource.NAME, scope, name):
            at = next((n for n, one in enumerate(scopes) if one is scope), None)
            if at is None:
                raise Unknown
            return [ValueSource.NAME, at, name]
        case (ValueSource.ATTRIBUTE | ValueSource.ITEM as kind, base, str() | int() as key):
            return [kind, base, key]
        case (ValueSource.CONSTANT, np.ndarray() as table):  # which nobody writes
            return [
                ValueSource.CONSTANT,
                table.tobytes().hex(),
                _dtype(table.dtype),
                list(table.shape),
            ]
        case (ValueSource.CONSTANT, value):
            return [ValueSource.CONSTANT, _literal(value)]
    raise Unknown


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
            raise Unknown
    return list(check)


def _dtype(dtype: Any) -> str:
    name: str = dtype.str
    if np.dtype(name) is not dtype:
        raise Unknown
    return name


def _literal(value: object) -> str:
    """Return a constant as Python writes it, where reading that gives the same."""
    match value:
        case None | bool() | int() | str() | float() if type(value).__module__ == "builtins":
            if _is_read_back(value):
                return repr(value)
        case tuple() if type(value) is tuple:
            return f"({''.join(_literal(item) + ', ' for item in value)})"
    raise Unknown


def _is_read_back(value: object) -> bool:
    """Whether what Python writes of a number or text is read as the same; of any other, yes."""
    match value:
        case float():
            return math.isfinite(value)
        case int():
            return value.bit_length() < _BITS
        case _:
            return True
