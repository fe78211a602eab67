"""Emitted text through gcc and cffi, with nothing of the run-time between."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

from plusequals.backends.cc import thread_pool
from plusequals.backends.cc.loader import Library
from plusequals.backends.cc.loader import ffi as library_ffi
from plusequals.backends.codegen import records
from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.source import Source
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST, Target

FLAGS = (
    "-std=gnu11 -O2 -fwrapv -fno-strict-aliasing -ffp-contract=off -fno-math-errno"
    " -fPIC -shared -Wall -Wextra -Werror -Wno-missing-braces"
).split()
VECTORS = (
    "-march=native -fopenmp-simd -Wno-psabi -Wno-unused-variable -Wno-unused-parameter"
    " -Wno-unused-but-set-variable"
).split()
"""Further ones for loops over lanes."""
COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
FFI = cffi.FFI()
OF_NO_NUMBER = frozenset(("of_rank_i8", "of_rank_i16"))
"""Ranks in fewer bits than those in which floats are computed."""


def load(text: str, declarations: str, flags: Sequence[str] = ()) -> Any:
    """Return a compiled text as a cffi library; any warning fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        ffi = cffi.FFI()
        ffi.cdef(declarations)
        return ffi.dlopen(str(_made(text, folder, flags)))


def _made(text: str, folder: str, flags: Sequence[str] = ()) -> Path:
    """Return the file of a compiled text."""
    assert COMPILER is not None
    source, made = Path(folder, "code.c"), Path(folder, "code.so")
    source.write_text(text, "ascii")
    command = [COMPILER, *FLAGS, *flags, "-o", str(made), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return made


@cache
def shared() -> thread_pool.ThreadPool:
    """Return the run-time library."""
    with tempfile.TemporaryDirectory() as folder:
        made = _made(thread_pool.library_source().text, folder, ["-pthread"])
        return thread_pool.ThreadPool(Library(made.read_bytes(), "threads")).start()


@dataclass
class Run:
    """What a call came to."""

    status: int
    fault: list[int]
    printed: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)

    @property
    def values(self) -> tuple[Any, ...]:
        return records.decode(self.fault)


@dataclass
class Compiled:
    """A source and its loaded entry."""

    source: Source
    program: Program
    library: Any
    """Kept: closing it takes the entry away."""

    def __call__(
        self, *arrays: np.ndarray[Any, Any], blocks: Sequence[Any] = (), among: int = 1
    ) -> Run:
        """Run on parameters, then results; `blocks` are the last results, of run-time shape.

        Parallel loops, however short, are shared among so many threads.
        """
        fault = FFI.new(f"int64_t[{records.SLOTS}]")
        out = Run(0, [])

        def show(number: int, at: Any) -> None:
            slots = [at[0]]
            while at[len(slots)]:
                slots += [at[len(slots)], at[len(slots) + 1]]
            out.printed.append((number, records.decode([*slots, 0])))

        callback = FFI.callback("void(int64_t, int64_t *)", show)
        sizes = FFI.new(
            "int64_t[]",
            self.source.memory.numbers(
                [arrays[k].shape[axis] for _, k, axis in self.source.memory.sizes]
            )
            or 1,
        )
        pointers = [FFI.cast("void *", a.ctypes.data) for a in arrays]
        shown = callback if self.source.prints else FFI.NULL
        held = [*pointers, *blocks, fault, shown, sizes]
        if self.source.asks:
            address = int(library_ffi.cast("intptr_t", shared().table(among, 0)))
            held.append(FFI.cast("void *", address))
        args = FFI.new("void *[]", held)
        out.status = getattr(self.library, self.source.entry)(args)
        out.fault = list(fault)
        return out


def compiled(program: Procedure | Program, target: Target = HOST) -> Compiled:
    """Return a procedure or program compiled."""
    if isinstance(program, Procedure):
        program = lower(program)
    program, placement = optimize(program, target, stop_after="lower")  # what the test wrote
    source = print_program(program, placement)
    return Compiled(source, program, load(source.text, f"int {source.entry}(void **);"))
