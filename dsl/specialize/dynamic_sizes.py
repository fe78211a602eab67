"""Automatic dynamic sizes: after three sizes of an axis, the next specialization is for any size.

Code is specialized for static sizes. An axis of an argument that came in three sizes gets a dynamic
size with the next one: one more specialization, for all further calls. Sizes 0 and 1 stay static
(1 broadcasts), as does whatever cannot be elaborated without the number.

Arrays that are not in C order are compiled for static strides. Where these do not depend on sizes
(`x[::2]`), sizes become dynamic too. Where they do, an argument that came in three layouts is
copied to C order in calls with further ones; see `layout_copies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from math import inf

from ...base.dataclass import dataclass
from ..elaborate.captures.inputs import ArraySpec, ConstantSpec, Spec

SIZES = 3
"""The number of distinct sizes of an axis with a specialization each."""

_COPIES = ConstantSpec(str, "copies", "copies")

Specs = Mapping[str, Spec]
Profile = tuple[tuple[str, Spec], ...]


@dataclass
class SizeHistory:
    """The sizes of each axis so far, by the rest of the signature; for one variant table."""

    seen: dict[Profile, dict[tuple[str, int], set[int]]] = field(default_factory=dict)
    closed: set[Profile] = field(default_factory=set)
    """The profiles that cannot be compiled with dynamic sizes, or with copies of their arrays."""
    layouts: dict[Profile, dict[str, set[object]]] = field(default_factory=dict)
    """The layouts of each argument that was not in C order."""

    def wanted(self, specs: Specs) -> Iterator[tuple[dict[str, Spec], Profile]]:
        """Yield the specifications of general specializations that are due for a call, the best
        first, each with the profile to close if it cannot be compiled."""
        dynamic, copied_specs = self.opened(specs), self.with_copies(specs)
        if dynamic is not None:
            yield dynamic, erase_sizes(specs)
        if copied_specs is not None:
            profile = _erase_layouts(specs)
            many = self._many(profile)
            dynamic_copies = {
                name: _with_dynamic_axes(name, spec, many) for name, spec in copied_specs.items()
            }
            yield dynamic_copies, profile

    def opened(self, specs: Specs) -> dict[str, Spec] | None:
        """Return the specifications with dynamic sizes where these are due, else None."""
        profile = erase_sizes(specs)
        many = self._many(profile)
        if profile in self.closed or not many:
            return None
        out = {name: _with_dynamic_axes(name, spec, many) for name, spec in specs.items()}
        return None if out == dict(specs) else out

    def with_copies(self, specs: Specs) -> dict[str, Spec] | None:
        """Return the specifications with C-order copies of arguments that came in many layouts,
        None for none."""
        profile = _erase_layouts(specs)
        layouts = self.layouts.get(profile, {})
        if profile in self.closed:
            return None
        out = {
            name: _in_c_order(spec) if len(layouts.get(name, ())) >= SIZES else spec
            for name, spec in specs.items()
        }
        return None if out == dict(specs) else out

    def note(self, specs: Specs) -> None:
        """Record the sizes and layouts of a call with a specialization for its static sizes."""
        profile = _erase_layouts(specs)
        for profile_kind in {erase_sizes(specs), profile}:
            sizes_by_axis = self.seen.setdefault(profile_kind, {})
            for name, spec in specs.items():
                for axis, size in enumerate(spec.shape if isinstance(spec, ArraySpec) else ()):
                    assert size is not None
                    sizes_by_axis.setdefault((name, axis), set()).add(size)
        layouts = self.layouts.setdefault(profile, {})
        for name, spec in specs.items():
            if isinstance(spec, ArraySpec) and spec != _in_c_order(spec):
                fixed = [
                    n for axis, n in enumerate(spec.shape) if axis not in _dynamic_capable(spec)
                ]
                layouts.setdefault(name, set()).add((spec.strides, *fixed))

    def close(self, profile: Profile) -> None:
        """Exclude a profile, which cannot be compiled in this way."""
        self.closed.add(profile)

    def _many(self, profile: Profile) -> set[tuple[str, int]]:
        """Return the axes that came in `SIZES` sizes."""
        sizes_by_axis = self.seen.get(profile, {})
        return {axis for axis, sizes in sizes_by_axis.items() if len(sizes) >= SIZES}


def erase_sizes(specs: Specs) -> Profile:
    """Return the specifications of a call without the sizes of its arrays."""
    return tuple(
        (
            name,
            replace(spec, shape=(None,) * len(spec.shape)) if isinstance(spec, ArraySpec) else spec,
        )
        for name, spec in specs.items()
    )


def _erase_layouts(specs: Specs) -> Profile:
    """Return the specifications of a call without the sizes and the layouts of its arrays.

    It differs from the profile of a call in C order: copies are distinguished from originals.
    """
    return (("", _COPIES), *erase_sizes({name: _in_c_order(spec) for name, spec in specs.items()}))


def _in_c_order(spec: Spec) -> Spec:
    """Return the specification of a copy in C order; of an array in C order its own."""
    if isinstance(spec, ArraySpec) and spec.strides is not None and not spec.placed:
        return replace(spec, strides=None, nearest=_innermost_axis(spec.strides))
    return spec


def _innermost_axis(strides: tuple[int, ...]) -> int | None:
    """Return the axis with the smallest stride, None for the last one, as in C order."""
    steps = [abs(step) or inf for step in strides]
    axis = steps.index(min(steps))
    return None if axis == len(steps) - 1 else axis


def copied_arguments(specs: Specs, wanted: Specs) -> frozenset[str]:
    """Return the arguments of a call that a specialization takes C-order copies of."""
    return frozenset(
        name for name, spec in specs.items()
        if spec != wanted[name] and _in_c_order(spec) != spec
        and not matches_spec(spec, wanted[name]) and matches_spec(_in_c_order(spec), wanted[name])
    )  # fmt: skip


def matches_spec(spec: Spec, wanted: Spec) -> bool:
    """Whether a call's specification matches one that may have dynamic sizes."""
    if not isinstance(spec, ArraySpec) or not isinstance(wanted, ArraySpec):
        return spec == wanted
    same = replace(spec, shape=()) == replace(wanted, shape=())
    return (
        same
        and len(spec.shape) == len(wanted.shape)
        and all(
            size == wanted_size or wanted_size is None and size is not None and size >= 2
            for size, wanted_size in zip(spec.shape, wanted.shape, strict=True)
        )
    )


def with_dynamic_sizes(spec: ArraySpec, axes: Set[int]) -> ArraySpec:
    """Return the specification of an array with dynamic sizes of axes that allow it."""
    capable = _dynamic_capable(spec) & axes
    shape = tuple(
        None if axis in capable and size is not None and size >= 2 else size
        for axis, size in enumerate(spec.shape)
    )
    return replace(spec, shape=shape)


def generalization_reason(specs: Specs, wanted: Specs, numbers: Sequence[str] = ()) -> str:
    """Return the reason for a general specialization, empty for one that is not general.

    It has dynamic sizes, takes copies, or has `numbers` as dynamic values.
    """
    copies = " and ".join(f"`{name}`" for name in sorted(copied_arguments(specs, wanted)))
    axes = dynamic_axes_text(wanted)
    given = ", ".join(f"`{name}`" for name in numbers)
    parts, general = [], "this specialization is for"
    if copies:
        parts.append(f"{copies} lay in memory in more than {SIZES} ways: it is copied to C order")
    if axes:
        parts.append(f"{axes} came in more than {SIZES} sizes: {general} any size from 2")
    if given:
        parts.append(f"{given} came with more than {SIZES} values: {general} any value")
    return "; ".join(parts)


def dynamic_axes_text(specs: Specs) -> str:
    """Return the axes with dynamic sizes, in words."""
    return ", ".join(
        f"axis {axis} of `{name}`"
        for name, spec in specs.items() if isinstance(spec, ArraySpec)
        for axis, size in enumerate(spec.shape) if size is None
    )  # fmt: skip


def _with_dynamic_axes(name: str, spec: Spec, many: set[tuple[str, int]]) -> Spec:
    if not isinstance(spec, ArraySpec):
        return spec
    return with_dynamic_sizes(spec, {axis for root, axis in many if root == name})


def _dynamic_capable(spec: ArraySpec) -> frozenset[int]:
    """Return the axes whose sizes may be dynamic under the static strides.

    A stride that is a multiple of another determines, with the size of that axis, whether both
    axes collapse: then `reshape` is a view, otherwise a copy.
    """
    strides = spec.strides
    if strides is None:
        return frozenset(range(len(spec.shape)))
    if spec.placed:
        return frozenset()
    return frozenset(
        axis for axis, step in enumerate(strides)
        if not any(
            step and stride % step == 0 and stride // step >= 2 for stride in strides
        )
    )  # fmt: skip
