"""From C text to the bytes of a shared object: one run of the compiler, its complaint made ours.

What a compiler says about generated code is of no use to who wrote the function, so it goes into
a report file beside the text it is about; the error names the user's line and the report.
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
from ...base.lazy_import import Later
from ..cache.cache import Cache
from ..cache.folders import keep_latest, temporary
from . import loader
from .cpu_info import fuses
from .toolchain import Ran, Running, Toolchain, first_line, gone, no_place, run, start

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = Later("tempfile", None)

_SHARED = "-shared"
_LIBRARIES = ("-lm",)
_ALONE = ("-nostartfiles", "-nodefaultlibs", "-fno-use-linker-plugin", "-lgcc")
"""What gcc is told on Linux where code calls nothing but what every process has: reading the tables
of libraries takes as long as compiling a small function does."""
_MATHS = "floor ceil trunc rint fabs sqrt fmod hypot atan2 copysign".split()
_CALLS = ("pthread_atfork(", "__builtin_c", *(f"{n}{f}(" for n in _MATHS for f in ("", "f")))
"""What a library has that a process need not have loaded, as it stands in a text."""
_FUSED = ("fma(", "fmaf(")
"""What is an instruction where the processor has it."""
_REPORT, _REPORTS = ("plusequals-report-", ".txt"), 10
"""How the names of reports begin and end, and how many there are in the temporary folder."""
Places = Callable[[int], Span | None]
"""From a line of generated text, 1-based, to the user's place that it comes from."""


def flags(toolchain: Toolchain, optimize: settings.Effort | None = None) -> tuple[str, ...]:
    """Return every flag of a compilation, at the level that the settings say unless one is given.

    All are part of the key.
    """
    level = settings.current().optimize if optimize is None else optimize
    return (*toolchain.flags, f"-O{level}", _SHARED)


def built(trial: Trial, text: str, name: str, places: Places) -> bytes:
    """Return the shared object that the compiler makes of C text.

    Raises CdBackendError: CD0802 where it refuses the text, CD0812 where it fails by itself.
    """
    code, ran = trial.ended()
    if not code:
        raise _complaint(ran, text, name, trial.toolchain, trial.command, places)
    return code


class Trial:
    """A compilation that was begun; `ended` waits for its end, which may be asked for once."""

    def __init__(
        self,
        texts: tuple[str, ...],
        name: str,
        toolchain: Toolchain,
        chosen: Sequence[str],
        cache: Cache,
    ) -> None:
        """Begin it, with the text in a file of that name, several side by side.

        Raises CdBackendError as `start` does, and CD0814 where no file can be written.
        """
        linked = _linked(toolchain, chosen, texts)
        self.toolchain, self.command = toolchain, _command(toolchain, chosen, name, *linked)
        self._objects = [f"{at}.o" for at in range(len(texts))] if len(texts) > 1 else []
        self._link = _command(toolchain, chosen, *self._objects, *linked)
        with contextlib.ExitStack() as stack:
            self._running: list[Running] = []
            try:
                self._folder = stack.enter_context(cache.scratch())
                stack.callback(self._stop)
                for at, text in enumerate(texts):
                    self._start(at, text, name, chosen)
            except OSError as why:
                raise no_place(why) from None
            self._stack = stack.pop_all()

    def _start(self, at: int, text: str, name: str, chosen: Sequence[str]) -> None:
        """Start the compiler of one of the texts, for an object file if there are several."""
        name, command, said = f"{at or ''}{name}", self.command, f"said{at or ''}"
        with open(os.path.join(self._folder, name), "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if self._objects:
            alone = [flag for flag in chosen if flag != _SHARED]
            command = (*self.toolchain.command, *alone, "-c", "-o", self._objects[at], name)
        self._running.append(start(command, self._folder, said))

    def _stop(self) -> None:
        """End what is still running."""
        for one in self._running:
            one.stop()

    def is_over(self) -> bool:
        """Whether all compilers have ended."""
        return all(one.process.poll() is not None for one in self._running)

    def _ran(self) -> Ran:
        """Return how the first ended that went wrong, or else the last."""
        for one in self._running:
            if (ran := one.ended()).status:
                return ran
        return run(self._link, self._folder) if self._objects else ran

    def ended(self) -> tuple[bytes, Ran]:
        """Return the shared object, empty where there is none, and how the compiler ended."""
        with self._stack:
            ran, code = self._ran(), b""
            try:
                if ran.status == 0:
                    with open(os.path.join(self._folder, "kernel.so"), "rb") as file:
                        code = file.read()
            except FileNotFoundError:
                pass
            except OSError as why:
                raise no_place(why) from None
            if not code and not os.path.isdir(self._folder):
                raise gone(self._folder)
        return (code if loader.unsound(code) is None else b""), ran


class Ahead(Trial):
    """One that is begun before anybody asks for what it makes, and that is kept, at the end of the
    process if nobody has asked: for processes to come. Until it has what keeps it, it is a guess.
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

    def is_as(self, toolchain: Toolchain) -> bool:
        """Whether this process has begun it with that compiler and its flags."""
        mine = self.toolchain
        same = (mine.command, mine.flags) == (toolchain.command, toolchain.flags)
        return same and self.is_ours()

    def is_ours(self) -> bool:
        """Whether this process has begun it: that of a parent is the parent's."""
        return self._process == os.getpid()

    def ended(self) -> tuple[bytes, Ran]:
        """Return what `Trial.ended` does, and keep it."""
        atexit.unregister(self._at_exit)
        code, ran = super().ended()
        if self.keep is not None:
            self.keep(code)
        return code, ran

    def drop(self) -> None:
        """End it: nobody wants what it makes."""
        atexit.unregister(self._at_exit)
        if self.is_ours():
            self._stack.close()

    def _at_exit(self) -> None:
        if self.keep is None:
            self.drop()
        elif self.is_ours():
            with contextlib.suppress(CdBackendError):
                self.ended()


def _command(toolchain: Toolchain, chosen: Sequence[str], *names: str) -> tuple[str, ...]:
    """Return the command that makes the shared object of files and libraries."""
    return (*toolchain.command, *chosen, "-o", "kernel.so", *names)


def _linked(toolchain: Toolchain, chosen: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Return what says which libraries texts are linked with."""
    is_gcc = "Free Software Foundation" in toolchain.version and len(toolchain.command) == 1
    calls = _CALLS if fuses() and "-O0" not in chosen else (*_CALLS, *_FUSED)
    if is_gcc and sys.platform == "linux" and not any(c in t for t in texts for c in calls):
        return _ALONE
    return _LIBRARIES


def _complaint(
    ran: Ran, text: str, name: str, toolchain: Toolchain, command: tuple[str, ...], places: Places
) -> CdBackendError:
    """Return the error that a failed compilation means."""
    report = _report(name, text, ran, toolchain, command)
    note = f"everything needed to look into it is in {report}"
    refused = re.search(r"kernel\.c:(\d+):(?:\d+:)? (?:fatal )?error: ", ran.said)
    if ran.status > 0 and refused and "o space left" not in ran.said:
        span = places(int(refused[1])) or NOWHERE
        message = f"the C made of `{name}` was refused by {toolchain.name}"
        helps = (
            "this is a fault of plusequals, not of your function: please send that file",
            'until then backend="numpy" runs it, slowly',
        )
        return CdBackendError(Diagnostic("CD0802", message, (Label(span),), (note,), helps))
    why = first_line(ran) if ran.status else "wrote an incomplete library"
    message = f"{toolchain.name} failed on `{name}`: {why}"
    helps = ("the setting `compiler` names another one", 'backend="numpy" needs none')
    return CdBackendError(Diagnostic("CD0812", message, (), (note,), helps))


def _report(name: str, text: str, ran: Ran, toolchain: Toolchain, command: tuple[str, ...]) -> str:
    """Save what a person needs to look into a failure; return where it is."""
    lines = [
        f"function   {name}",
        f"command    {' '.join(command)}",
        f"ended      {ran.status}",
        f"system     {platform.platform()}, Python {platform.python_version()}",
        f"compiler   {toolchain.version}",
        "", "What it said:", "", ran.said, "", "What it was given:", "", text,
    ]  # fmt: skip
    chosen = settings.current().dump_dir
    for folder in (*([chosen] if chosen else ()), *temporary()):
        with contextlib.suppress(OSError):
            if folder != chosen:
                keep_latest(folder, *_REPORT, _REPORTS - 1)
            held, path = tempfile.mkstemp(prefix=_REPORT[0], suffix=_REPORT[1], dir=folder)
            with open(held, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            return path
    return "no file, for no folder could be written"
