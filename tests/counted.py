"""How many kernels a test run compiled for devices and ran: one line at its end, see `conftest`.

A kernel is counted once for each text that it was compiled in, however often tests compile or run
it. Each process of a run keeps what it met; workers of pytest-xdist send it, to be added up.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plusequals.backends.cuda.nvrtc import CompiledModule, Compiler

OUTPUT = "kernels"
"""The key of what a worker sends."""


@dataclass(slots=True)
class Counted:
    """The kernels of a run: by architecture those that were compiled, and those that ran."""

    compiled: set[tuple[str, str]] = field(default_factory=set)
    """Architecture and kernel."""
    ran: set[str] = field(default_factory=set)
    compilers: set[str] = field(default_factory=set)

    def compile(self, compiler: str, made: CompiledModule, text: str, target: str) -> None:
        """Count the kernels of a text that a compiler took."""
        self.compilers.add(compiler)
        self.compiled |= {(target, key_of(text.encode(), name)) for name in made.figures}

    def output(self) -> dict[str, list[str]]:
        """Return it as what a worker can send."""
        return {"compiled": [" ".join(pair) for pair in sorted(self.compiled)],
                "ran": sorted(self.ran), "compilers": sorted(self.compilers)}  # fmt: skip

    def add(self, output: Mapping[str, Iterable[str]]) -> None:
        """Add what a worker sent."""
        for pair in output["compiled"]:
            target, kernel = pair.split(" ", 1)
            self.compiled.add((target, kernel))
        self.ran |= set(output["ran"])
        self.compilers |= set(output["compilers"])

    def line(self) -> str:
        """Return it as one line.

        >>> Counted({("sm_80", "a"), ("sm_90", "a")}, {"a"}, {"x"}).line()
        'CUDA kernels: 2 compiled by x for 2 architectures (sm_80: 1, sm_90: 1), 1 run on the CPU'
        """
        by = Counter(target for target, _ in self.compiled)
        names = ", ".join(f"{target}: {by[target]:,}" for target in sorted(by, key=_number))
        architectures = f"{len(by)} architecture{'s' * (len(by) != 1)}"
        of = f" ({names})" if names else ""
        who = f" by {', '.join(sorted(self.compilers))}" if self.compilers else ""
        return (
            f"CUDA kernels: {len(self.compiled):,} compiled{who} for {architectures}{of}, "
            f"{len(self.ran):,} run on the CPU"
        )


def _number(target: str) -> int:
    return int(target.removeprefix("sm_").rstrip("af"))


def key_of(code: bytes, name: str) -> str:
    """Return what tells a kernel from all others: of what it is part, and its name."""
    return f"{hashlib.blake2b(code, digest_size=8).hexdigest()} {name}"


COUNTED = Counted()
"""Those of this process."""


@dataclass(frozen=True, slots=True)
class Counting:
    """A compiler whose kernels are counted."""

    of: Compiler
    into: Counted

    @property
    def name(self) -> str:
        """What people call it."""
        return self.of.name

    def flags(self, target: str) -> tuple[str, ...]:
        """Return every flag of a compilation."""
        return self.of.flags(target)

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        """Return the code that it makes of a text; raises Failed."""
        made = self.of.build(text, target, folder)
        self.into.compile(self.name, made, text, target)
        return made
