"""When a function is compiled for any size: after three sizes of an axis, the fourth is open.

Code is made for the sizes it is given. An axis of an argument that has come in three sizes gets a
run-time size with the next one: one more form, for all that follow. Sizes 0 and 1 stay with forms
of their own (1 broadcasts), and so does whatever cannot be elaborated without the number.

Arrays that do not lie in C order are compiled for their strides, which are numbers. Where those
stay the same as sizes change (`x[::2]`), sizes are opened too. Where they change with the sizes, an
argument that lay in three ways is copied to C order by calls that bring another one; see `copies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from math import inf

from ...base.dataclass import dataclass
from ..elaborate.captures.inputs import ArraySpec, ConstantSpec, Spec

SIZES = 3
"""Distinct sizes of an axis that get a form of their own."""

_COPIES = ConstantSpec(str, "copies", "copies")

Specs = Mapping[str, Spec]
Profile = tuple[tuple[str, Spec], ...]


@dataclass
class SizesSeen:
    """The sizes that each axis came in, by what else the call was like; for one table of forms."""

    seen: dict[Profile, dict[tuple[str, int], set[int]]] = field(default_factory=dict)
    closed: set[Profile] = field(default_factory=set)
    """The calls that cannot be compiled without their sizes, or with copies of their arrays."""
    layouts: dict[Profile, dict[str, set[object]]] = field(default_factory=dict)
    """The ways in which each argument lay that was not in C order."""

    def wanted(self, specs: Specs) -> Iterator[tuple[dict[str, Spec], Profile]]:
        """Yield specifications of forms for more than this call, the best first, where it is time
        for them, each with the profile to close where there is no such form."""
        opened, packed = self.opened(specs), self.packed(specs)
        if opened is not None:
            yield opened, profile_of(specs)
        if packed is not None:
            profile = _loose(specs)
            many = self._many(profile)
            found = {name: _opened(name, spec, many) for name, spec in packed.items()}
            yield found, profile

    def opened(self, specs: Specs) -> dict[str, Spec] | None:
        """Return the specifications with run-time sizes where it is time for them, else None."""
        profile = profile_of(specs)
        many = self._many(profile)
        if profile in self.closed or not many:
            return None
        out = {name: _opened(name, spec, many) for name, spec in specs.items()}
        return None if out == dict(specs) else out

    def packed(self, specs: Specs) -> dict[str, Spec] | None:
        """Return the specifications of a call with copies in C order of what lay in many ways."""
        profile = _loose(specs)
        ways = self.layouts.get(profile, {})
        if profile in self.closed:
            return None
        out = {
            name: _in_order(spec) if len(ways.get(name, ())) >= SIZES else spec
            for name, spec in specs.items()
        }
        return None if out == dict(specs) else out

    def note(self, specs: Specs) -> None:
        """Remember the sizes of a call that got a form of its own."""
        profile = _loose(specs)
        for each in {profile_of(specs), profile}:
            known = self.seen.setdefault(each, {})
            for name, spec in specs.items():
                for axis, size in enumerate(spec.shape if isinstance(spec, ArraySpec) else ()):
                    assert size is not None
                    known.setdefault((name, axis), set()).add(size)
        ways = self.layouts.setdefault(profile, {})
        for name, spec in specs.items():
            if isinstance(spec, ArraySpec) and spec != _in_order(spec):
                fixed = [n for axis, n in enumerate(spec.shape) if axis not in _openable(spec)]
                ways.setdefault(name, set()).add((spec.strides, *fixed))

    def close(self, profile: Profile) -> None:
        """Remember that such calls cannot be compiled in this way."""
        self.closed.add(profile)

    def _many(self, profile: Profile) -> set[tuple[str, int]]:
        """Return the axes that came in many sizes."""
        known = self.seen.get(profile, {})
        return {place for place, sizes in known.items() if len(sizes) >= SIZES}


def profile_of(specs: Specs) -> Profile:
    """Return what a call is like apart from the sizes of its arrays."""
    return tuple(
        (
            name,
            replace(spec, shape=(None,) * len(spec.shape)) if isinstance(spec, ArraySpec) else spec,
        )
        for name, spec in specs.items()
    )


def _loose(specs: Specs) -> Profile:
    """Return what a call is like apart from the sizes and the layouts of its arrays.

    It is no profile of a call in C order: what is copied is told from what came so.
    """
    return (("", _COPIES), *profile_of({name: _in_order(spec) for name, spec in specs.items()}))


def _in_order(spec: Spec) -> Spec:
    """Return the specification of a copy in C order, the same for what is in C order already."""
    if isinstance(spec, ArraySpec) and spec.strides is not None and not spec.placed:
        return replace(spec, strides=None, nearest=_nearest(spec.strides))
    return spec


def _nearest(strides: tuple[int, ...]) -> int | None:
    """Return the axis along which neighbours lie in memory, None for the last, as in C order."""
    steps = [abs(step) or inf for step in strides]
    axis = steps.index(min(steps))
    return None if axis == len(steps) - 1 else axis


def copied(specs: Specs, wanted: Specs) -> frozenset[str]:
    """Return the arguments that a form takes copies of, for which those of a call are given."""
    return frozenset(
        name for name, spec in specs.items()
        if spec != wanted[name] and _in_order(spec) != spec
        and not fits(spec, wanted[name]) and fits(_in_order(spec), wanted[name])
    )  # fmt: skip


def fits(spec: Spec, wanted: Spec) -> bool:
    """Whether a call's specification is one that a form with run-time sizes was made for."""
    if not isinstance(spec, ArraySpec) or not isinstance(wanted, ArraySpec):
        return spec == wanted
    same = replace(spec, shape=()) == replace(wanted, shape=())
    return (
        same
        and len(spec.shape) == len(wanted.shape)
        and all(
            size == other or other is None and size is not None and size >= 2
            for size, other in zip(spec.shape, wanted.shape, strict=True)
        )
    )


def any_of_sizes(spec: ArraySpec, axes: Set[int]) -> ArraySpec:
    """Return the specification of an array with run-time sizes of some axes, as far as they may
    have them."""
    able = _openable(spec) & axes
    shape = tuple(
        None if axis in able and size is not None and size >= 2 else size
        for axis, size in enumerate(spec.shape)
    )
    return replace(spec, shape=shape)


def why_wanted(specs: Specs, wanted: Specs, numbers: Sequence[str] = ()) -> str:
    """Return why a form is made for more than one call, empty where it is not.

    It has axes with run-time sizes, takes copies, or is given `numbers` that code knows otherwise.
    """
    copies = " and ".join(f"`{name}`" for name in sorted(copied(specs, wanted)))
    axes = opened_axes(wanted)
    given = ", ".join(f"`{name}`" for name in numbers)
    parts = []
    if copies:
        parts.append(f"{copies} lay in memory in more than {SIZES} ways: it is copied to C order")
    if axes:
        parts.append(f"{axes} came in more than {SIZES} sizes: this form is for any size from 2")
    if given:
        parts.append(f"{given} came with more than {SIZES} values: this form is for any value")
    return "; ".join(parts)


def opened_axes(specs: Specs) -> str:
    """Return the axes with run-time sizes, in words."""
    return ", ".join(
        f"axis {axis} of `{name}`"
        for name, spec in specs.items() if isinstance(spec, ArraySpec)
        for axis, size in enumerate(spec.shape) if size is None
    )  # fmt: skip


def _opened(name: str, spec: Spec, many: set[tuple[str, int]]) -> Spec:
    if not isinstance(spec, ArraySpec):
        return spec
    return any_of_sizes(spec, {axis for root, axis in many if root == name})


def _openable(spec: ArraySpec) -> frozenset[int]:
    """Return the axes whose sizes say nothing of how elements follow each other in memory.

    Of strides that are numbers, one that is some times another tells of the size of that axis
    whether both are one: `reshape` has a view there, and a copy elsewhere.
    """
    strides = spec.strides
    if strides is None:
        return frozenset(range(len(spec.shape)))
    if spec.placed:
        return frozenset()
    return frozenset(
        axis for axis, step in enumerate(strides)
        if not any(
            step and other % step == 0 and other // step >= 2 for other in strides
        )
    )  # fmt: skip
