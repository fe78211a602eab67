"""Recompile reasons: the differences between a call and the nearest existing specialization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from ...base.dataclass import dataclass
from ...base.settings import Settings
from ..elaborate.captures.inputs import (
    ArraySpec,
    ConstantSpec,
    GroupSpec,
    InstanceSpec,
    MethodSpec,
    NumberSpec,
    ObjectSpec,
    Spec,
    TensorSpec,
)
from ..source.function_source import MISSING
from ..values.types import kind_of_number
from ..values.values import Path


@dataclass(frozen=True, slots=True)
class SpecializationKey:
    """All that a specialization depends on besides the text of its function."""

    settings: Settings
    backend: str
    arguments: Mapping[str, Spec]
    captured: Mapping[Path, Spec]
    """Captured values and attributes of arguments, by path."""
    alias: Mapping[Path, Path]
    """Inputs that are identical to an earlier array, where one of them is written."""


ExistingVariant = tuple[SpecializationKey, Mapping[Path, Spec]]
"""The situation of a specialization, and the current values of its captured paths."""


def recompile_reason(now: SpecializationKey, variants: Iterable[ExistingVariant]) -> str:
    """Return the sentence why none of the existing specializations, oldest first, matches."""
    candidates = [list(describe_differences(now, *variant)) for variant in variants]
    if not candidates:
        return "this is the first call of the function"
    nearest = min(reversed(candidates), key=len)
    if not nearest:  # compiled explicitly, or by another thread a moment ago
        return "no code was kept for such a call"
    return "; ".join(nearest)


def describe_differences(
    now: SpecializationKey, before: SpecializationKey, captured: Mapping[Path, Spec]
) -> Iterator[str]:
    """Yield each difference to a specialization as a sentence, the current value first."""
    if now.backend != before.backend:
        yield f"the backend is `{now.backend}`, and was `{before.backend}`"
    for setting in fields(Settings):
        if setting.name != "backend":
            new, old = (getattr(s.settings, setting.name) for s in (now, before))
            if new != old:
                yield f"the setting `{setting.name}` is {new!r}, and was {old!r}"
    for name, spec in now.arguments.items():
        if name in before.arguments:
            yield from describe_changes(f"`{name}`", spec, before.arguments[name])
    for path, old_spec in before.captured.items():
        label = f"the captured `{path_text(path)}`" if path.captured else f"`{path}`"
        if path not in captured:
            yield f"{label} is gone"
        else:
            yield from describe_changes(label, captured[path], old_spec)
    yield from _alias_changes(now.alias, before.alias)


def describe_changes(name: str, now: Spec, before: Spec) -> Iterator[str]:
    """Yield the changes of one input as sentences.

    >>> list(describe_changes("`n`", ConstantSpec(int, "5", 5), ConstantSpec(int, "4", 4)))
    ['`n` is 5, and was 4']
    """
    if now == before:
        return
    match now, before:
        case ArraySpec(), ArraySpec():
            yield from _array_changes(name, now, before)
        case GroupSpec(), GroupSpec() if (now.kind, len(now.items)) == (
            before.kind, len(before.items),
        ):  # fmt: skip
            for n, (new, old) in enumerate(zip(now.items, before.items, strict=True)):
                yield from describe_changes(f"{name[:-1]}[{n}]`", new, old)
        case ObjectSpec(), ObjectSpec() if type(now.value) is type(before.value):
            yield f"{name} is another {type(now.value).__name__} than before"
        case (ConstantSpec(), NumberSpec()) if _is_number(now):
            yield f"{name} is {now.text}, and its value takes part in what is compiled"
        case _:
            yield f"{name} is {spec_text(now)}, and was {spec_text(before)}"


def spec_text(spec: Spec) -> str:
    """Return a specification in words.

    >>> spec_text(GroupSpec("tuple", (ConstantSpec(int, "5", 5), ConstantSpec(str, "'a'", "a"))))
    "(5, 'a')"
    """
    match spec:
        case ArraySpec(dtype, shape, strides):
            sizes = ", ".join(map(str, shape))
            layout = "" if strides is None else f" with strides {strides} in elements"
            return f"an array {dtype.short}[{sizes}]{layout}"
        case NumberSpec(kind):
            return f"a {kind}"
        case ConstantSpec(_, text, _):
            return text
        case ObjectSpec(_, value) if value is MISSING:
            return "not defined"
        case ObjectSpec(_, value):
            return _object_text(value)
        case InstanceSpec(kind):
            return f"an object of type {kind.__name__}"
        case MethodSpec(_, _, function):
            return f"a method, {_object_text(function)} of an object"
        case GroupSpec(kind, items):
            inner = ", ".join(map(spec_text, items))
            return f"[{inner}]" if kind == "list" else f"({inner})"
        case TensorSpec(dtype, shape, names, memory):
            sizes = ", ".join(map(str, shape))
            asked = f", asked to be {memory}" if memory else ""
            return f"a tensor {dtype.short}[{sizes}] with fields {', '.join(names)}{asked}"


def _object_text(value: object) -> str:
    name, kind = getattr(value, "__name__", None), type(value).__name__
    return f"the {kind} `{name}`" if isinstance(name, str) else f"an object of type {kind}"


def path_text(path: Path) -> str:
    """Return a path as in the source, without the prefix that identifies inlined functions.

    >>> path_text(Path("scale:1:alpha", ("x", 0), True))
    'alpha.x[0]'
    """
    return str(Path(path.root.rpartition(":")[2], path.steps))


def _array_changes(name: str, now: ArraySpec, before: ArraySpec) -> Iterator[str]:
    if now.dtype is not before.dtype:
        yield f"{name} has elements of type {now.dtype}, and had {before.dtype}"
    if len(now.shape) != len(before.shape):
        yield f"{name} has rank {len(now.shape)}, and had rank {len(before.shape)}"
    elif now.shape != before.shape:
        sizes = ", ".join("any from 2" if n is None else str(n) for n in before.shape)
        had = f"({sizes})" if None in before.shape else before.shape
        yield f"{name} has shape {now.shape}, and had {had}"
    elif (now.strides, now.placed) != (before.strides, before.placed):
        yield f"{name} lies in memory {_layout(now)}, and lay {_layout(before)}"
    if now.swapped != before.swapped:
        order, had = ("another", "this") if now.swapped else ("this", "another")
        yield f"{name} is in {order} machine's byte order, and was in {had} machine's"
    if now.listed != before.listed:
        yield f"{name} is a list, and was none" if now.listed else f"{name} was a list, and is none"


def _layout(spec: ArraySpec) -> str:
    where = " on a device" if spec.placed else ""
    if spec.strides is None:
        return "in C order"
    return f"with strides {spec.strides} in elements{where}"


def _is_number(spec: ConstantSpec) -> bool:
    return kind_of_number(spec.value) is not None


def _alias_changes(current: Mapping[Path, Path], previous: Mapping[Path, Path]) -> Iterator[str]:
    for second in [path for path in current if current[path] != previous.get(path)]:
        yield f"`{current[second]}` and `{second}` are the same array"
    for second in [path for path in previous if path not in current]:
        yield f"`{previous[second]}` and `{second}` are no longer the same array"
