"""The targets that programs are lowered for, which no machine, variable or setting changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from plusequals.backends.gpu.driver_protocol import Properties
from plusequals.base import settings
from plusequals.base.settings import Settings
from plusequals.lowering.target import Target

Profile = Literal["default", "strict"]
Size = Literal["static", "dynamic"]
PROFILES: tuple[Profile, ...] = ("default", "strict")
SIZES: tuple[Size, ...] = ("static", "dynamic")

NARROW = Target(
    "cc", vector_bits=256, vector_registers=16, threads=8, parallel_from=400_000,
    l1_bytes=32 << 10, l2_bytes=512 << 10, l3_bytes=32 << 20, streams=1, stack_bytes=4096,
    schedule=True, fma=True,
)  # fmt: skip
WIDE = replace(
    NARROW, vector_bits=512, vector_registers=32, threads=32, l1_bytes=48 << 10, l2_bytes=2 << 20,
    l3_bytes=60 << 20, streams=4,
)  # fmt: skip
DEVICE = Properties(
    "replay", architecture=(9, 0), multiprocessors=132, memory=80 << 30,
    most_shared_bytes=227 << 10,
)  # fmt: skip
PROCESSORS = {"cc-256": NARROW, "cc-512": WIDE}
DEVICES: dict[str, dict[str, Any]] = {
    "cuda-90": {},
    "cuda-90-free": {"tf32": True, "atomics": True},
}
"""Settings of the device's target: with those of the second it may use all of its instructions."""
TARGETS = (*PROCESSORS, *DEVICES)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to lower a program."""

    size: Size
    target: str
    profile: Profile

    def __str__(self) -> str:
        return f"{self.size} {self.target} {self.profile}"


EVERY = tuple(
    Variant(size, target, profile)
    for size in SIZES
    for target in TARGETS
    for profile in PROFILES
    if profile == "default" or not DEVICES.get(target)
)


def some(number: int) -> tuple[Variant, ...]:
    """Return half of the variants, so that two neighbouring numbers have all of them."""
    return tuple(one for one in EVERY if (_place(one) + number) % 2)


def _place(one: Variant) -> int:
    return SIZES.index(one.size) + TARGETS.index(one.target) + PROFILES.index(one.profile)


def processor(name: str, profile: Profile) -> Target:
    """Return a processor as a schedule under that profile sees it."""
    return replace(PROCESSORS[name], reorders=profile == "default")


@contextmanager
def fixed(**changes: Any) -> Iterator[None]:
    """Have every setting at its default inside of the `with`, whatever the environment says."""
    default = Settings()
    given = {one.name: getattr(default, one.name) for one in fields(default)}
    with settings.override(**(given | {"cache": False} | changes)):
        yield
