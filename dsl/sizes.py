"""When a function is compiled for any size: after three sizes of an axis, the fourth is open.

Code is made for the sizes it is given. An axis of an argument that has come in three sizes gets a
run-time size with the next one: one more form, for all that follow. Sizes 0 and 1 stay with forms
of their own (1 broadcasts), and so does whatever cannot be elaborated without the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ..lowering.dataclass import dataclass
from .elaborate.inputs import ArraySpec, Spec

SIZES = 3
"""Distinct sizes of an axis that get a form of their own."""

Specs = Mapping[str, Spec]
Profile = tuple[tuple[str, Spec], ...]


@dataclass
class SizesSeen:
    """The sizes that each axis came in, by what else the call was like; for one table of forms."""

    seen: dict[Profile, dict[tuple[str, int], set[int]]] = field(default_factory=dict)
    closed: set[Profile] = field(default_factory=set)

    def opened(self, specs: Specs) -> dict[str, Spec] | None:
        """Return the specifications with run-time sizes where it is time for them, else None."""
        profile = profile_of(specs)
        known = self.seen.get(profile, {})
        many = {place for place, sizes in known.items() if len(sizes) >= SIZES}
        if profile in self.closed or not many:
            return None
        out = {name: _opened(name, spec, many) for name, spec in specs.items()}
        return None if out == dict(specs) else out

    def note(self, specs: Specs) -> None:
        """Remember the sizes of a call that got a form of its own."""
        known = self.seen.setdefault(profile_of(specs), {})
        for name, spec in specs.items():
            if isinstance(spec, ArraySpec):
                for axis, size in enumerate(spec.shape):
                    assert size is not None
                    known.setdefault((name, axis), set()).add(size)

    def close(self, specs: Specs) -> None:
        """Remember that such calls cannot be compiled without their sizes."""
        self.closed.add(profile_of(specs))


def profile_of(specs: Specs) -> Profile:
    """Return what a call is like apart from the sizes of its arrays."""
    return tuple(
        (
            name,
            replace(spec, shape=(None,) * len(spec.shape)) if isinstance(spec, ArraySpec) else spec,
        )
        for name, spec in specs.items()
    )


def fits(spec: Spec, wanted: Spec) -> bool:
    """Whether a call's specification is one that a form with run-time sizes was made for."""
    if not isinstance(spec, ArraySpec) or not isinstance(wanted, ArraySpec):
        return spec == wanted
    same = (spec.dtype, spec.strides, spec.listed, spec.placed, len(spec.shape)) == (
        wanted.dtype, wanted.strides, wanted.listed, wanted.placed, len(wanted.shape),
    )  # fmt: skip
    return same and all(
        size == other or other is None and size is not None and size >= 2
        for size, other in zip(spec.shape, wanted.shape, strict=True)
    )


def reason_of(specs: Specs, numbers: Sequence[str]) -> str:
    """Return why a form is made that takes any size, any value of some numbers; empty for none."""
    axes = opened_axes(specs)
    said = [
        f"{axes} came in more than {SIZES} sizes: this form is for any size from 2" if axes else "",
        f"`{'`, `'.join(numbers)}` came with more than {SIZES} values: this form is for any value"
        if numbers
        else "",
    ]
    return "; ".join(filter(None, said))


def opened_axes(specs: Specs) -> str:
    """Return the axes with run-time sizes, in words."""
    return ", ".join(
        f"axis {axis} of `{name}`"
        for name, spec in specs.items() if isinstance(spec, ArraySpec)
        for axis, size in enumerate(spec.shape) if size is None
    )  # fmt: skip


def _opened(name: str, spec: Spec, many: set[tuple[str, int]]) -> Spec:
    if not isinstance(spec, ArraySpec) or spec.strides is not None:
        return spec
    shape = tuple(
        None if (name, axis) in many and size is not None and size >= 2 else size
        for axis, size in enumerate(spec.shape)
    )
    return replace(spec, shape=shape)
