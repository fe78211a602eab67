"""Many procedures in one C file: one run of the compiler for all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plusequals.backends.cc import compiler, toolchain
from plusequals.backends.cc.backend import CompiledC, translate
from plusequals.backends.cc.code import CompiledCode
from plusequals.backends.cc.cpu_info import target
from plusequals.backends.cc.loader import Library
from plusequals.backends.cc.toolchain import Toolchain
from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.dialect import C
from plusequals.backends.codegen.source import Source
from plusequals.backends.interface import API_VERSION, Code, Origin
from plusequals.backends.interpreter import InterpretedCode
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base import settings
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program
from tests.offered import offered

from . import poison

_VERIFIED = 8
"""Of so many procedures one is verified after each pass, which costs as much as all the rest."""
NAME = "random-programs"
"""The name of the backend below, while it is installed."""


@dataclass(slots=True)
class Deferred:
    """Code that other code stands in for: set `code` before each run."""

    procedure: Procedure
    code: Code
    origin: Origin = "interpreted"
    text: str = ""

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run what was set."""
        return self.code.run(arrays)


class Deferring:
    """A backend that remembers the procedures it was given, and interprets them at first."""

    name = NAME
    api_version = API_VERSION

    def __init__(self) -> None:
        self.made: list[Deferred] = []

    def unavailable(self) -> None:
        """Return None: it is always there."""
        return None

    def compile(self, procedure: Procedure) -> Deferred:
        """Return the procedure as code."""
        self.made.append(Deferred(procedure, InterpretedCode(procedure)))
        return self.made[-1]

    def after_fork(self) -> None:
        """Do nothing: there is nothing to hold."""


@contextmanager
def installed() -> Iterator[Deferring]:
    """Offer the backend inside the `with`."""
    backend = Deferring()
    with offered(NAME, backend):
        yield backend


@dataclass(frozen=True, slots=True)
class Loops:
    """Code that interprets the loops of a procedure."""

    program: Program
    origin: Origin = "interpreted"
    text: str = ""

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run on parameters, then results; return the results."""
        return run_program(self.program, arrays, lambda text: None)


def compile_all(
    procedures: Sequence[Procedure], extra: tuple[str, ...] = (), poisoned: bool = False
) -> list[CompiledCode]:
    """Return compiled code for procedures of different names. Raises RuntimeError.

    Where it is `poisoned`, what it has not written yet holds what `poison` says.
    """
    sources = []
    for number, procedure in enumerate(procedures):
        with settings.override(verify=number % _VERIFIED == 0):
            sources.append(translate(procedure))
    codes = [_own(source) for source in sources]
    top = "\n".join([C.header + "\n", *prelude.required_definitions("\n".join(codes))])
    if poisoned:
        top, extra = poison.HEAD + top, (*extra, *poison.flags(_compiler().command))
    library = _built(top + "\n" + "\n".join(codes), extra)
    machine = target()
    shared = RUNTIME.backend("cc").threads() if any(one.asks for one in sources) else None
    return [
        CompiledCode(p.name, source, tuple(x.node for x in p.parameters), p.results, "compiled",
                     library, library.function(source.entry), shared if source.asks else None,
                     (machine.threads, machine.parallel_from),
                     poison.empty if poisoned else np.empty)
        for p, source in zip(procedures, sources)
    ]  # fmt: skip


def warm() -> None:
    """Make here what every forked process would make for itself: the library of threads, and what
    is asked of the compiler."""
    with settings.override(cache=False):
        RUNTIME.backend("cc").threads()
        poison.flags(_compiler().command)


def _own(source: Source) -> str:
    """Return the text of a source without header and prelude."""
    return source.text.split("\n", source.above)[-1]


def _compiler() -> Toolchain:
    return CompiledC().toolchain()


def _built(text: str, extra: tuple[str, ...]) -> Library:
    tool = _compiler()
    with tempfile.TemporaryDirectory(prefix="plusequals-") as name:
        folder = Path(name)
        (folder / "kernel.c").write_text(text, encoding="ascii")
        command = (*tool.command, *compiler.compile_flags(tool), *extra, "-w", "-o", "kernel.so",
                   "kernel.c", "-lm")  # fmt: skip
        ran = toolchain.run_command(command, folder)
        if ran.status:
            raise RuntimeError(f"C compiler: {toolchain.first_error_line(ran)}\n{text}")
        return Library((folder / "kernel.so").read_bytes(), "batch")
