"""CPU description: parameters of the target for scheduling, and a digest for cache keys."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
from functools import cache
from typing import TYPE_CHECKING

from ...base import settings
from ...base.lazy_import import LazyModule
from ...base.process_state import State, register

if TYPE_CHECKING:
    from ...lowering import target as targets
    from ...lowering.target import Target
else:
    targets = LazyModule("...lowering.target", __package__)

_CPUINFO = "/proc/cpuinfo"
_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_VARYING = re.compile(
    r"processor|(?:hart|core id|physical id|siblings|cpu cores|package|apicid|initial apicid|"
    r"microcode|bugs|serial|hardware|firmware|clock|timebase|power management|address sizes|"
    r"(?:cache|tlb|clflush|vmx|wp\b|fpu|cpuid level|# processors|max thread id|btb|vmpl|pdc).*|"
    r".*(?:mhz|bogomips|frequency|_loops_per_jiffy).*)\s*(?:per cpu\s*)?:",
    re.IGNORECASE,
)
"""Lines of the system's description that differ between equal processors, or over time. All others
count, whatever their names: `flags`, `Features`, `isa`, `uarch`, `cpu`, `revision`, ..."""
_MACHINE = re.compile(r"machine = \w+")
"""The part of a `processor_digest` line that names the model on System z."""

_LEVELS = {"l1_bytes": 1, "l2_bytes": 2, "l3_bytes": 3}

_ZEN3_MODELS = frozenset((*range(0x10), *range(0x20, 0x60)))
"""The models of AMD's family 25 that are Zen 3."""
MAX_THREADS = 256
"""The maximum number of threads of a call, whatever the settings."""


def processor_digest() -> str:
    """Return a digest of the system's description of this processor, "" where there is none."""
    lines = _described()
    if not lines:
        return ""
    return hashlib.sha256("\n".join((platform.machine(), *lines)).encode()).hexdigest()


def target_inputs() -> list[object]:
    """Return all inputs of `target` other than the settings."""
    sizes = map(_cache_bytes, _LEVELS.values())
    return [platform.machine(), *_described(), *sizes, processors()]


def target() -> Target:
    """Return the target description of this machine, under the current settings."""
    words = {word for line in _described() for word in line.split()}
    has_avx512 = "avx512f" in words
    bits = 512 if has_avx512 else 256 if "avx2" in words else 128
    cache_sizes = {name: size for name, level in _LEVELS.items() if (size := _cache_bytes(level))}
    options = settings.current()
    threads = min(options.threads or processors(), MAX_THREADS)
    registers = 32 if has_avx512 or platform.machine() in ("aarch64", "arm64") else 16
    return targets.Target(
        "cc", bits, registers, threads, options.parallel_from,
        streams=_streams(),
        stack_bytes=options.stack_bytes, schedule=options.schedule,
        reorders=options.profile == "default", fma=fuses(),
        short=options.pipeline == "short", tensors=(), warpgroups=False, atomics=False, exact=False,
        **cache_sizes,
    )  # fmt: skip


def _streams() -> int:
    """Return the number of concurrent streams at which a thread reads memory fastest, as measured.

    With four streams the hardware prefetchers of Intel are 1.25 to 1.6 times as fast as with one,
    of AMD's family 23 (Zen to Zen 2) 1.05 to 1.18, of Zen 3 (family 25) 1.1 to 1.3. Zen 4, also
    family 25, and later ones take up to 2.3 times as long.
    """
    fields = dict(line.replace("\t", "").split(":", 1) for line in _described() if ":" in line)
    names = ("vendor_id", "cpu family", "model")
    maker, family, model = (fields.get(name, "").strip() for name in names)
    is_zen3 = family == "25" and model.isdigit() and int(model) in _ZEN3_MODELS
    is_older_zen = maker == "AuthenticAMD" and (family == "23" or is_zen3)
    return 4 if is_older_zen or maker == "GenuineIntel" else 1


def fuses() -> bool:
    """Whether the processor has fused multiply-add."""
    words = {word for line in _described() for word in line.split()}
    return "fma" in words or "asimd" in words


def has_halves() -> bool:
    """Whether the processor computes with floats of 16 bits, not only converts them."""
    return any("avx512_fp16" in line.split() for line in _described())


def processors() -> int:
    """Return the number of processors of this process: its CPU affinity, limited by
    `OMP_NUM_THREADS`, which batch systems and process pools set."""
    available = os.cpu_count() or 1
    with contextlib.suppress(AttributeError):
        available = len(os.sched_getaffinity(0))
    return min(available, _allowed() or available)


@cache
def _allowed() -> int:
    """Return `OMP_NUM_THREADS` as OpenMP does: read once, the first of a list; 0 where unset."""
    first = settings.variable("OMP_NUM_THREADS").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


@cache
def _described() -> tuple[str, ...]:
    """Return the lines of the system's description that determine the instruction set.

    Distinct lines of all processors: a machine may have different ones.
    """
    with contextlib.suppress(OSError):
        lines = dict.fromkeys(_read_text(_CPUINFO).splitlines())
        relevant = (line for line in lines if ":" in line and not _VARYING.match(line))
        return (
            *relevant,
            *dict.fromkeys(machine for line in lines for machine in _MACHINE.findall(line)),
        )
    return ()


@cache
def _cache_bytes(level: int) -> int:
    """Return the size of the data cache of a level in bytes, 0 where unknown."""
    with contextlib.suppress(OSError, ValueError):
        for name in sorted(name for name in os.listdir(_CACHES) if name.startswith("index")):
            kind, rank, size = (
                _read_text(_CACHES, name, attribute) for attribute in ("type", "level", "size")
            )
            if kind.strip() != "Instruction" and int(rank) == level:
                return int(size.strip().removesuffix("K")) * 1024
    return 0


def _read_text(*path: str) -> str:
    with open(os.path.join(*path), errors="replace") as file:
        return file.read()


def _read_again() -> None:
    for memo in (_allowed, _described, _cache_bytes):
        memo.cache_clear()


register(
    lambda: State(
        name="what was read of the processor and of `OMP_NUM_THREADS`",
        owner=__name__,
        holders=("_allowed", "_described", "_cache_bytes"),
        lock="`functools.cache`",
        on_reset="read again",
        reset=_read_again,
    )
)
