"""The target description: hardware parameters of a schedule as plain numbers; a backend fills it
in."""

from __future__ import annotations

from ..base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """The capabilities of a processor that decide the shape of loops, never their meaning."""

    name: str = "cc"
    """The backend it belongs to."""
    vector_bits: int = 256
    """Width of one vector register; 64 where there are none."""
    vector_registers: int = 16
    """How many of them a micro-kernel may use."""
    threads: int = 1
    """Worker threads of a parallel loop."""
    parallel_from: int = 400_000
    """A loop of less work than that, in additions of vectors, is not parallelized: some 15 us."""
    line_bytes: int = 64
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    l3_bytes: int = 8 * 1024 * 1024
    streams: int = 1
    """The number of concurrent memory streams at which a thread reads fastest from main memory."""
    stack_bytes: int = 4096
    """Temporaries up to this size live on the stack."""
    schedule: bool = False
    """Whether loops are reordered and restructured for speed: lanes, tiles, threads."""
    reorders: bool = False
    """Whether sums are reassociable: the profile is `default`."""
    fma: bool = False
    """Whether there is an instruction that multiplies, adds and rounds once."""
    tensors: tuple[str, ...] = ()
    """The factor types, by short name, that tensor cores multiply and accumulate."""
    shared_bytes: int = 48 * 1024
    """Bytes of shared memory of a thread block."""
    warpgroups: bool = False
    """Whether four warps multiply together, by instructions of one architecture only (wgmma)."""
    atomics: bool = False
    """Whether threads may add to an element atomically, in any order."""
    exact: bool = False
    """Whether a device keeps the order of all sums: the profile is `strict`."""
    short: bool = False
    """Whether only passes run that decide bits of results, or shorten the program at once."""

    def lanes(self, bits: int) -> int:
        """Return how many elements of that many bits one vector holds, at least one."""
        return max(1, self.vector_bits // bits)


HOST = Target()
"""A modest processor: the assumption where no machine was probed."""
