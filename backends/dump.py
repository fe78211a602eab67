"""Dumps of compilation stages: files of the IR after each pass, and debug output.

The setting `dump_dir` names a folder that receives every stage; `debug` is a cumulative level:

    1  one line per function: backend, origin of its code, compile time
    2  and one per pass: its time, the number of statements before and after it
    3  and the placement of each array with its reason
    4  and the final loops and the generated source, with the path of the saved copy
    5  and a diff of the loops for every pass
    6  and the log of a traced run: each store with its values
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

from ..base import settings
from ..base.diagnostic import CdBackendError, Diagnostic
from ..base.lazy_import import LazyModule
from ..lowering.ir.loops import Program
from ..lowering.ir.walk import statements
from ..lowering.placement import Placement

if TYPE_CHECKING:
    import difflib
    import pathlib
    from pathlib import Path

    from ..lowering.ir import printer
    from ..lowering.pipeline import Observer
else:
    difflib, pathlib = LazyModule("difflib", None), LazyModule("pathlib", None)
    printer = LazyModule("..lowering.ir.printer", __package__)


def debug_print(level: int, text: str) -> None:
    """Print text to the error stream where the setting `debug` is at least `level`."""
    if settings.current().debug >= level:
        print(text, file=sys.stderr, flush=True)


def stage_observer(name: str) -> Observer | None:
    """Return an observer that dumps the stages of a function, None where no setting asks for it."""
    options = settings.current()
    if not options.dump_dir and options.debug < 2:
        return None
    return _StageObserver(name)


class _StageObserver:
    """The observer: dumps each stage and its difference from the previous one."""

    __slots__ = ("name", "number", "since", "size", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.text = ""
        self.size = 0
        self.since = time.perf_counter()

    def __call__(self, stage: str, program: Program) -> None:
        """Save and report a stage, excluding its own time."""
        milliseconds = 1000 * (time.perf_counter() - self.since)
        size = sum(1 for kernel in program.kernels for _ in statements(kernel.body))
        text = printer.print_program(program)
        save(self.name, f"{self.number:02d}-{_sanitize(stage)}.txt", text)
        change = f"{self.size} -> " if self.number else ""
        debug_print(
            2, f"plusequals: {self.name}: {stage}: {milliseconds:.1f} ms, {change}{size} statements"
        )
        debug_print(5, self._difference(stage, text))
        self.number, self.text, self.size = self.number + 1, text, size
        self.since = time.perf_counter()

    def _difference(self, stage: str, text: str) -> str:
        """Return the first stage completely, later ones as a diff."""
        if not self.number:
            return text
        lines = difflib.unified_diff(
            self.text.splitlines(), text.splitlines(), "before", f"after {stage}", "", "", 1, ""
        )
        return "\n".join(lines) or f"{stage} changed nothing"


def report_final(
    name: str, program: Program, placement: Placement, source: str, saved: str
) -> None:
    """Report the final placement of arrays, the loops, and the source."""
    nodes = (*(p.node for p in program.parameters), *program.results, *program.locals)
    for node in nodes:
        node_placement = placement[node]
        debug_print(
            3, f"plusequals: {name}: {node.label} is a {node_placement.where}: {node_placement}"
        )
    debug_print(4, printer.print_program(program) + source)
    if saved:
        debug_print(4, f"plusequals: {name}: the source is in {saved}")


def save(name: str, ending: str, text: str) -> str:
    """Write a stage of a function into the folder of the setting; return its path, "" without one.

    Raises CdBackendError CD0814 where it cannot be written.
    """
    chosen = settings.current().dump_dir
    if not chosen:
        return ""
    folder = pathlib.Path(chosen).expanduser()
    return write_text(folder, f"{_sanitize(name)}-{ending}", text)


def write_text(folder: Path, name: str, text: str, appended: bool = False) -> str:
    """Write a file into a folder, which is created if needed; return its path.

    Raises CdBackendError CD0814 where it cannot be written.
    """
    path = make_folder(folder) / name
    try:
        with path.open("a" if appended else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as why:
        raise _unwritable_error(folder, why) from None
    return str(path)


def make_folder(folder: Path) -> Path:
    """Create a folder if needed; return it.

    Raises CdBackendError CD0814 where it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise _unwritable_error(folder, why) from None
    return folder


def _unwritable_error(folder: Path, why: OSError) -> CdBackendError:
    message = f"no file can be written into {folder}: {why.strerror or why}"
    helps = ("let the setting `dump_dir` name a folder that can be written",)
    return CdBackendError(Diagnostic("CD0814", message, helps=helps))


def _sanitize(name: str) -> str:
    """Return a user's name sanitized for a file name: letters, digits and `_` only."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name)[:80] or "function"
