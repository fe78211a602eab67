"""What a schedule may know of the hardware, as plain numbers; a backend fills it in."""

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
    """How many of them a micro-kernel may keep busy."""
    threads: int = 1
    """Workers that a parallel loop may use."""
    parallel_from: int = 400_000
    """With less work than that, in additions of vectors, a loop is not shared: some 15 us."""
    line_bytes: int = 64
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    l3_bytes: int = 8 * 1024 * 1024
    streams: int = 1
    """At how many places a thread reads memory fastest, where no cache holds what it reads."""
    stack_bytes: int = 4096
    """Temporaries up to this size live on the stack."""
    schedule: bool = False
    """Whether the order and the shape of loops are changed for speed: lanes, tiles, threads."""
    reorders: bool = False
    """Whether the terms of a sum may be added up in another order: the profile is `default`."""
    fma: bool = False
    """Whether there is an instruction that multiplies, adds and rounds once."""
    tensors: tuple[str, ...] = ()
    """The types, by their short names, of factors that units of their own multiply and add up."""
    shared_bytes: int = 48 * 1024
    """Bytes that the threads of a block may share."""
    warpgroups: bool = False
    """Whether four warps multiply together, by instructions that no other architecture has."""
    atomics: bool = False
    """Whether threads may add to an element in the order in which they come."""
    exact: bool = False
    """Whether a device keeps the order of all sums: the profile is `strict`."""
    short: bool = False
    """Whether only those passes run that a bit of a result may depend on."""

    def lanes(self, bits: int) -> int:
        """Return how many elements of that many bits one vector holds, at least one."""
        return max(1, self.vector_bits // bits)


HOST = Target()
"""A modest processor: what is assumed where nothing was asked of the machine."""
