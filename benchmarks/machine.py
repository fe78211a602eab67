"""Facts of a machine that times depend on, for whoever reads them elsewhere."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from plusequals.backends.cc import toolchain

CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def facts() -> dict[str, str]:
    """Return processor, number of processors, caches, system, Python and C compiler."""
    return {
        "processor": _processor(),
        "processors": str(available()),
        "caches": ", ".join(_caches()) or "not known",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiler": Path(toolchain.find_compiler()[0]).name,
        "load": f"{os.getloadavg()[0]:.1f} before the run" if hasattr(os, "getloadavg") else "",
    }


def available() -> int:
    """Return how many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    if CPUINFO.exists():
        found = re.search(r"^model name\s*: (.*)$", CPUINFO.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def _caches() -> list[str]:
    """Return the data caches that a processor sees."""
    found = []
    for place in sorted(CACHES.glob("index*")):
        try:
            kind, level, size = (
                (place / name).read_text().strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return found
