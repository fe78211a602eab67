"""What this machine's processor is: as numbers for schedules, and as a digest for keys."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
from functools import cache
from typing import TYPE_CHECKING

from ...base import settings
from ...base.lazy_import import Later

if TYPE_CHECKING:
    from ...lowering import target as targets
    from ...lowering.target import Target
else:
    targets = Later("...lowering.target", __package__)

_CPUINFO = "/proc/cpuinfo"
_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_VARYING = re.compile(
    r"processor|(?:hart|core id|physical id|siblings|cpu cores|package|apicid|initial apicid|"
    r"microcode|bugs|serial|hardware|firmware|clock|timebase|power management|address sizes|"
    r"(?:cache|tlb|clflush|vmx|wp\b|fpu|cpuid level|# processors|max thread id|btb|vmpl|pdc).*|"
    r".*(?:mhz|bogomips|frequency|_loops_per_jiffy).*)\s*(?:per cpu\s*)?:",
    re.IGNORECASE,
)
"""Lines of the system's description that tell processors of one kind apart, or moments. All others
count, whatever they are called: `flags`, `Features`, `isa`, `uarch`, `cpu`, `revision`, ..."""
_MACHINE = re.compile(r"machine = \w+")
"""What a line of `processor` says of the kind on System z."""

_LEVELS = {"l1_bytes": 1, "l2_bytes": 2, "l3_bytes": 3}

_THIRD = frozenset((*range(0x10), *range(0x20, 0x60)))
"""The models of AMD's family 25 that are third Zens."""
MOST_THREADS = 256
"""No call uses more threads than that, whatever is asked for."""


def processor() -> str:
    """Return a digest of what the system says this processor is, empty where it says nothing."""
    lines = _described()
    if not lines:
        return ""
    return hashlib.sha256("\n".join((platform.machine(), *lines)).encode()).hexdigest()


def facts() -> list[object]:
    """Return all that `target` makes of this machine, beside the settings."""
    sizes = map(_cache_bytes, _LEVELS.values())
    return [platform.machine(), *_described(), *sizes, processors()]


def target() -> Target:
    """Return what a schedule may know of this machine, under the current settings."""
    words = {word for line in _described() for word in line.split()}
    wide = "avx512f" in words
    bits = 512 if wide else 256 if "avx2" in words else 128
    known = {name: size for name, level in _LEVELS.items() if (size := _cache_bytes(level))}
    chosen = settings.current()
    threads = min(chosen.threads or processors(), MOST_THREADS)
    registers = 32 if wide or platform.machine() in ("aarch64", "arm64") else 16
    return targets.Target(
        "cc", bits, registers, threads, chosen.parallel_from,
        streams=_streams(),
        stack_bytes=chosen.stack_bytes, schedule=chosen.schedule,
        reorders=chosen.profile == "default", fma=fuses(),
        short=chosen.pipeline == "short", tensors=(), warpgroups=False, atomics=False,
        **known,
    )  # fmt: skip


def _streams() -> int:
    """At how many places a thread reads memory fastest: measured on some of each kind.

    Intel's (1.25 to 1.6 times as fast as at one place), AMD's of family 23, the first Zens (1.05 to
    1.18), and of family 25 the third (1.1 to 1.3) fetch ahead for each place apart. The fourth, of
    that family too, and later ones take up to 2.3 times as long.
    """
    known = dict(line.replace("\t", "").split(":", 1) for line in _described() if ":" in line)
    names = ("vendor_id", "cpu family", "model")
    maker, family, model = (known.get(name, "").strip() for name in names)
    third = family == "25" and model.isdigit() and int(model) in _THIRD
    some = maker == "AuthenticAMD" and (family == "23" or third)
    return 4 if some or maker == "GenuineIntel" else 1


def fuses() -> bool:
    """Whether the processor multiplies and adds at once."""
    words = {word for line in _described() for word in line.split()}
    return "fma" in words or "asimd" in words


def has_halves() -> bool:
    """Whether the processor computes with floats of 16 bits, not only converts them."""
    return any("avx512_fp16" in line.split() for line in _described())


def processors() -> int:
    """How many processors this process may use: those that it may run on, of these as many as
    `OMP_NUM_THREADS` allows, which batch systems and pools of processes set."""
    there = os.cpu_count() or 1
    with contextlib.suppress(AttributeError):
        there = len(os.sched_getaffinity(0))
    return min(there, _allowed() or there)


@cache
def _allowed() -> int:
    """What `OMP_NUM_THREADS` says, as OpenMP reads it: once, the first of a list; 0 for nothing."""
    first = settings.variable("OMP_NUM_THREADS").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


@cache
def _described() -> tuple[str, ...]:
    """The lines of the system's description that decide which instructions there are.

    Each once, of all processors: a machine may have some of several kinds.
    """
    with contextlib.suppress(OSError):
        lines = dict.fromkeys(_text(_CPUINFO).splitlines())
        kept = (line for line in lines if ":" in line and not _VARYING.match(line))
        return (*kept, *dict.fromkeys(found for line in lines for found in _MACHINE.findall(line)))
    return ()


@cache
def _cache_bytes(level: int) -> int:
    """The size of the data cache of a level, 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError):
        for name in sorted(name for name in os.listdir(_CACHES) if name.startswith("index")):
            kind, rank, size = (_text(_CACHES, name, what) for what in ("type", "level", "size"))
            if kind.strip() != "Instruction" and int(rank) == level:
                return int(size.strip().removesuffix("K")) * 1024
    return 0


def _text(*path: str) -> str:
    with open(os.path.join(*path), errors="replace") as file:
        return file.read()
