"""Compilation of C text to a shared object, and errors of the compiler.

Diagnostics of generated code do not help the user, so they go to a report file together with the
text; the error names the user's line and the report.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...base import settings
from ...base.diagnostic import NOWHERE, CdBackendError, Diagnostic, Label, Span
from ...base.lazy_import import LazyModule
from ..cache.cache import Cache
from ..cache.folders import keep_latest, temporary_folders
from . import loader
from .cpu_info import fuses
from .toolchain import (
    CommandResult,
    RunningCommand,
    Toolchain,
    first_error_line,
    removed_error,
    run_command,
    start_command,
    unwritable_error,
)

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = LazyModule("tempfile", None)

_SHARED = "-shared"
_LIBRARIES = ("-lm",)
_MINIMAL_LINK = ("-nostartfiles", "-nodefaultlibs", "-fno-use-linker-plugin", "-lgcc")
"""The linker flags of gcc on Linux for code that calls only functions of every process: reading the
symbol tables of libraries takes as long as compiling a small function."""
_MATH_FUNCTIONS = "floor ceil trunc rint fabs sqrt fmod hypot atan2 copysign".split()
_CALLS = (
    "pthread_atfork(",
    "__builtin_c",
    *(f"{n}{f}(" for n in _MATH_FUNCTIONS for f in ("", "f")),
)
"""Calls, as text, of library functions that a process may not have loaded."""
_FMA_CALLS = ("fma(", "fmaf(")
"""Calls that are an instruction on processors with FMA."""
_REPORT, _REPORTS = ("plusequals-report-", ".txt"), 10
"""The prefix and suffix of report names, and their maximum number in the temporary folder."""
LineLocations = Callable[[int], Span | None]
"""Maps a line of generated text, counted from 1, to its source location."""


def compile_flags(toolchain: Toolchain, optimize: settings.Effort | None = None) -> tuple[str, ...]:
    """Return all flags of a compilation, at the optimization level of the settings or a given one.

    All are part of the cache key.
    """
    now = settings.current()
    level = optimize
    if level is None:
        level = 1 if now.pipeline == "short" and now.optimize in (2, 3) else now.optimize
    return (*toolchain.flags, f"-O{level}", _SHARED)


def finish_compilation(trial: Trial, text: str, name: str, line_locations: LineLocations) -> bytes:
    """Wait for a compilation; return the shared object.

    Raises CdBackendError: CD0802 where the compiler rejects the text, CD0812 where it fails.
    """
    code, result = trial.ended()
    if not code:
        raise _compile_error(result, text, name, trial.toolchain, trial.command, line_locations)
    return code


class Trial:
    """A compilation in progress; `ended` waits for it, once."""

    def __init__(
        self,
        texts: tuple[str, ...],
        name: str,
        toolchain: Toolchain,
        chosen: Sequence[str],
        cache: Cache,
    ) -> None:
        """Start it, with each text in a file of that name; several are compiled in parallel.

        Raises CdBackendError as `start_command` does, and CD0814 where no file can be written.
        """
        linked = _link_flags(toolchain, chosen, texts)
        self.toolchain, self.command = toolchain, _command(toolchain, chosen, name, *linked)
        self._objects = [f"{at}.o" for at in range(len(texts))] if len(texts) > 1 else []
        self._link = _command(toolchain, chosen, *self._objects, *linked)
        with contextlib.ExitStack() as stack:
            self._running: list[RunningCommand] = []
            try:
                self._folder = stack.enter_context(cache.scratch())
                stack.callback(self._stop)
                for at, text in enumerate(texts):
                    self._start(at, text, name, chosen)
            except OSError as why:
                raise unwritable_error(why) from None
            self._stack = stack.pop_all()

    def _start(self, at: int, text: str, name: str, chosen: Sequence[str]) -> None:
        """Start the compiler on one of the texts, for an object file if there are several."""
        name, command, output_name = f"{at or ''}{name}", self.command, f"said{at or ''}"
        with open(os.path.join(self._folder, name), "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if self._objects:
            all_flags = [flag for flag in chosen if flag != _SHARED]
            command = (*self.toolchain.command, *all_flags, "-c", "-o", self._objects[at], name)
        self._running.append(start_command(command, self._folder, output_name))

    def _stop(self) -> None:
        """Kill running compilers."""
        for process in self._running:
            process.stop()

    def is_over(self) -> bool:
        """Whether all compilers have ended."""
        return all(compiler.process.poll() is not None for compiler in self._running)

    def _run_to_end(self) -> CommandResult:
        """Wait for the compilers and link; return the first failure, or else the last result."""
        for compiler in self._running:
            if (result := compiler.ended()).status:
                return result
        return run_command(self._link, self._folder) if self._objects else result

    def ended(self) -> tuple[bytes, CommandResult]:
        """Wait for the end; return the shared object, empty on failure, and the result."""
        with self._stack:
            result, code = self._run_to_end(), b""
            try:
                if result.status == 0:
                    with open(os.path.join(self._folder, "kernel.so"), "rb") as file:
                        code = file.read()
            except FileNotFoundError:
                pass
            except OSError as why:
                raise unwritable_error(why) from None
            if not code and not os.path.isdir(self._folder):
                raise removed_error(self._folder)
        return (code if loader.truncation_problem(code) is None else b""), result


class AdvanceCompilation(Trial):
    """A compilation in advance of its use, whose code is cached, at exit if it was not used.

    Without `keep` it is speculative.
    """

    def __init__(
        self,
        text: str,
        name: str,
        toolchain: Toolchain,
        chosen: Sequence[str],
        cache: Cache,
        keep: Callable[[bytes], object] | None = None,
    ) -> None:
        super().__init__((text,), name, toolchain, chosen, cache)
        self.keep, self._process = keep, os.getpid()
        atexit.register(self._at_exit)

    def has_toolchain(self, toolchain: Toolchain) -> bool:
        """Whether this process started it, with the compiler and flags of a toolchain."""
        expected = self.toolchain
        is_equal = (expected.command, expected.flags) == (
            toolchain.command,
            toolchain.flags,
        )
        return is_equal and self.is_of_this_process()

    def is_of_this_process(self) -> bool:
        """Whether this process started it, not a parent."""
        return self._process == os.getpid()

    def ended(self) -> tuple[bytes, CommandResult]:
        """Return as `Trial.ended`, and cache the code."""
        atexit.unregister(self._at_exit)
        code, result = super().ended()
        if self.keep is not None:
            self.keep(code)
        return code, result

    def drop(self) -> None:
        """Cancel it."""
        atexit.unregister(self._at_exit)
        if self.is_of_this_process():
            self._stack.close()

    def _at_exit(self) -> None:
        if self.keep is None:
            self.drop()
        elif self.is_of_this_process():
            with contextlib.suppress(CdBackendError):
                self.ended()


def _command(toolchain: Toolchain, chosen: Sequence[str], *names: str) -> tuple[str, ...]:
    """Return the command that links files and libraries to the shared object."""
    return (*toolchain.command, *chosen, "-o", "kernel.so", *names)


def _link_flags(
    toolchain: Toolchain, chosen: Sequence[str], texts: Sequence[str]
) -> tuple[str, ...]:
    """Return the linker flags for the libraries of texts."""
    is_gcc = "Free Software Foundation" in toolchain.version and len(toolchain.command) == 1
    calls = _CALLS if fuses() and "-O0" not in chosen else (*_CALLS, *_FMA_CALLS)
    if is_gcc and sys.platform == "linux" and not any(c in t for t in texts for c in calls):
        return _MINIMAL_LINK
    return _LIBRARIES


def _compile_error(
    ran: CommandResult,
    text: str,
    name: str,
    toolchain: Toolchain,
    command: tuple[str, ...],
    line_locations: LineLocations,
) -> CdBackendError:
    """Return the error of a failed compilation."""
    report = _write_report(name, text, ran, toolchain, command)
    note = f"everything needed to look into it is in {report}"
    rejection = re.search(r"kernel\.c:(\d+):(?:\d+:)? (?:fatal )?error: ", ran.said)
    if ran.status > 0 and rejection and "o space left" not in ran.said:
        span = line_locations(int(rejection[1])) or NOWHERE
        message = f"the C made of `{name}` was refused by {toolchain.name}"
        helps = (
            "this is a fault of plusequals, not of your function: please send that file",
            'until then backend="numpy" runs it, slowly',
        )
        return CdBackendError(Diagnostic("CD0802", message, (Label(span),), (note,), helps))
    why = first_error_line(ran) if ran.status else "wrote an incomplete library"
    message = f"{toolchain.name} failed on `{name}`: {why}"
    helps = ("the setting `compiler` names another one", 'backend="numpy" needs none')
    return CdBackendError(Diagnostic("CD0812", message, (), (note,), helps))


def _write_report(
    name: str, text: str, ran: CommandResult, toolchain: Toolchain, command: tuple[str, ...]
) -> str:
    """Write a report of a failure to a file; return its path."""
    lines = [
        f"function   {name}",
        f"command    {' '.join(command)}",
        f"ended      {ran.status}",
        f"system     {platform.platform()}, Python {platform.python_version()}",
        f"compiler   {toolchain.version}",
        "", "What it said:", "", ran.said, "", "What it was given:", "", text,
    ]  # fmt: skip
    dump_folder = settings.current().dump_dir
    for folder in (*([dump_folder] if dump_folder else ()), *temporary_folders()):
        with contextlib.suppress(OSError):
            if folder != dump_folder:
                keep_latest(folder, *_REPORT, _REPORTS - 1)
            descriptor, path = tempfile.mkstemp(prefix=_REPORT[0], suffix=_REPORT[1], dir=folder)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            return path
    return "no file, for no folder could be written"
