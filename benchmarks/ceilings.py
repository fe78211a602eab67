"""What this machine can do at most: multiply-adds, and bytes by how much memory is gone through.

`ceilings.c` is compiled by the compiler that plusequals itself uses, and run as a program of its
own, once for each number of threads.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plusequals.backends.cc import toolchain

SOURCE = Path(__file__).parent / "ceilings.c"
FLAGS = ("-O3", "-ffp-contract=fast", "-pthread")
NATIVE = ("-march=native", "-mcpu=native")


class NotMeasured(Exception):
    """The ceilings cannot be measured here; says why."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best of some runs with one number of threads."""

    threads: int
    peak: dict[str, float]
    """Operations a second, for `f32` and `f64`; a multiply-add is two."""
    bandwidth: dict[int, float]
    """Bytes a second by footprint in bytes: the better one of reading and of a triad."""
    triad: dict[int, float]
    read: dict[int, float]

    def seconds(self, flops: float, traffic: float, footprint: float, precision: str) -> float:
        """Return the roofline: the longer one of computing and of moving, each at its ceiling."""
        return max(flops / self.peak[precision], traffic / self.at(footprint))

    def at(self, footprint: float) -> float:
        """Return the bandwidth for a footprint: that of the next smaller one measured.

        What fits a cache is so never held against the bandwidth of what does not.
        """
        known = sorted(self.bandwidth)
        below = [bytes for bytes in known if bytes <= footprint] or known[:1]
        return self.bandwidth[below[-1]]


def measure(threads: int, seconds: float = 0.05, largest: int = 768 << 20) -> Ceilings:
    """Return the ceilings for a number of threads, up to a footprint. Raises NotMeasured."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ceilings"
        _compile(program)
        done = subprocess.run(
            [str(program), *map(str, (threads, seconds, largest))], capture_output=True,
            text=True, check=False, timeout=600,
        )  # fmt: skip
        if done.returncode:
            raise NotMeasured(f"the program for the ceilings ended with {done.returncode}")
        return read(done.stdout, threads)


def read(said: str, threads: int) -> Ceilings:
    """Return what the lines of the program mean."""
    peak: dict[str, float] = {}
    moved: dict[str, dict[int, float]] = {"triad": {}, "read": {}}
    for what, where, rate in (line.split() for line in said.splitlines()):
        if what == "peak":
            peak[where] = float(rate)
        else:
            moved[what][int(where)] = float(rate)
    triad, only = moved["triad"], moved["read"]
    bandwidth = {bytes: max(triad[bytes], only.get(bytes, 0.0)) for bytes in triad}
    return Ceilings(threads, peak, _falling(bandwidth), triad, only)


def _falling(bandwidth: dict[int, float]) -> dict[int, float]:
    """Return ceilings that never rise with the footprint: a small one pays for its loop's ends."""
    best, found = 0.0, {}
    for bytes in sorted(bandwidth, reverse=True):
        best = max(best, bandwidth[bytes])
        found[bytes] = best
    return dict(sorted(found.items()))


def _compile(program: Path) -> None:
    command = toolchain.find_compiler()
    for native in (*NATIVE, None):
        flags = [*FLAGS, *([native] if native else [])]
        done = subprocess.run(
            [*command, *flags, "-o", str(program), str(SOURCE)], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return
    raise NotMeasured(f"{command[0]} does not compile {SOURCE.name}: {done.stderr[:300]}")
