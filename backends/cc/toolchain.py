"""Which C compiler there is, what it is exactly, which flags it takes, and how to run it.

The compiler is the setting `compiler`, else `CC`, else the first of `cc gcc clang` on the path,
else the package `ziglang`. What was asked for by name and is not there is an error: another
compiler is never taken in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdBackendError, Diagnostic
from ...base.lazy_import import Later
from ..cache.folders import shortage
from .cpu_info import processor

if TYPE_CHECKING:
    import importlib.util as importing
    import select
    import shlex
    import shutil
    import signal
    import subprocess
else:
    importing, shlex = Later("importlib.util", None), Later("shlex", None)
    select, signal = Later("select", None), Later("signal", None)
    shutil, subprocess = Later("shutil", None), Later("subprocess", None)

T = TypeVar("T")
NAMES = ("cc", "gcc", "clang")
MEANING = (
    "-std=gnu11", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
    "-Werror=implicit-function-declaration",
)  # fmt: skip
"""Flags that results depend on: a compiler that lacks one of them is refused. A function that is
not declared would be taken to return an `int`. There is no
`-ffast-math`: linked with it, a library switches its whole process to flush-to-zero."""
SPEED = (
    "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-mprefer-vector-width=512",
    "-fno-loop-unroll-and-jam",
)  # fmt: skip
"""Without the fourth, compilers make vectors of half the width of what the processor has. Without
the last, gcc 12 unrolls a loop around one that it makes vectors of into that one, and then makes
none of it: a filter of 81 `exp` for each point takes ten times as long."""
SOUND = ("-fno-tree-reassoc", "-fno-tree-slp-vectorize", "-fno-tree-loop-if-convert")
"""What keeps a compiler from an error of its own, for those that know it. Where gcc 12 reassociates
the integer product b*b*b*b and vectorizes it for 512 bits, it makes b*b of it. Where it makes
vectors of straight code, `(double)(float)x` is x: two to four lanes lose their rounding. Where it
unrolls a loop and makes vectors of what its rounds load under tests, all use the first's mask."""
HALVES = ("-mno-avx512fp16",)
"""What keeps gcc 12 from code that its assembler refuses, `vmovsh` under a mask, where a processor
computes with floats of 16 bits. Here that is done in 32; without those it converts as fast."""
THREADS = ("-pthread",)
"""What some systems need for the run-time library."""
NATIVE = ("-march=native", "-mcpu=native")
"""Either makes code for this very processor; compilers differ in which they know."""
_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET")
_KEPT_STARTS = ("NIX_C", "NIX_LD", "NIX_BINTOOLS", "ZIG_")
_SAID = 1 << 20
"""How many bytes of what a compiler says are read."""


class Ran(NamedTuple):
    """How a command ended: its exit status (negative: the signal), and what it said."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler that works here. All of it decides what code comes out, so all is in the key."""

    command: tuple[str, ...]
    version: str
    target: str
    """Digest of everything that the compiler takes this machine's processor to have."""
    flags: tuple[str, ...]
    environment: tuple[str, ...]

    @classmethod
    def of(cls, written: dict[str, Any]) -> Toolchain:
        """Return the toolchain that `written` made a dictionary of."""
        lists = {k: tuple(v) if isinstance(v, list) else v for k, v in written.items()}
        values: dict[str, Any] = lists
        return cls(**values)

    def written(self) -> dict[str, Any]:
        """Return all of it as a dictionary."""
        return {name: getattr(self, name) for name in self.__match_args__}

    @property
    def name(self) -> str:
        """What people call it: `gcc (Debian 12.2.0) 12.2.0`."""
        return self.version.splitlines()[0] if self.version else self.command[0]


def find() -> tuple[str, ...]:
    """Return the command of the compiler to use, its path resolved.

    Raises CdBackendError where there is none, or not the one that was asked for.
    """
    asked = settings.current().compiler
    for origin, text in (("the setting `compiler`", asked), ("`CC`", settings.variable("CC"))):
        if text.strip():
            return _asked(text.strip(), origin)
    for name in NAMES:
        if path := _which(name):
            real = os.path.realpath(path)
            return (real,) if _is_compiler(real) else (path,)
    if zig := _zig():
        return zig
    raise _missing("no C compiler was found: not " + ", ".join(NAMES) + " nor the package ziglang")


def _which(name: str) -> str | None:
    """Return the program of that name on the path, as `shutil.which`, which takes 5 ms to import
    and looks further on other systems."""
    if os.name != "posix":
        return shutil.which(name)
    for folder in (settings.variable("PATH") or os.defpath).split(os.pathsep):
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def stamp(command: tuple[str, ...]) -> list[object] | None:
    """Return what changes whenever a compiler does and costs nothing to ask.

    None where there is no such thing: for a wrapper, which may run another compiler tomorrow, and
    where the system does not say which processor this is, for which the compiler is asked then.
    """
    machine = processor()
    zig = command[1:] == ("cc",) and os.path.basename(command[0]) == "zig"
    if not machine or (not zig and (len(command) > 1 or not _is_itself(command[0]))):
        return None
    found = os.stat(command[0])
    return [*command, found.st_size, found.st_mtime_ns, found.st_ino, machine, *environment()]


class Running:
    """A command that was started; `ended` waits for its end, which may be asked for once."""

    __slots__ = ("command", "limit", "process", "said")

    def __init__(
        self, command: Sequence[str], process: subprocess.Popen[bytes], said: IO[bytes]
    ) -> None:
        self.command, self.process, self.said = command, process, said
        self.limit = settings.current().compiler_timeout

    def ended(self) -> Ran:
        """Return how it ended. Raises CdBackendError where it takes longer than allowed."""
        with self.said:
            try:
                status = _ended(self.process, self.limit)
            except subprocess.TimeoutExpired:
                what = f"did not finish in {self.limit:g} seconds (`compiler_timeout` allows more)"
                raise failed(self.command, what) from None
            finally:
                _end(self.process)
            self.said.seek(0)
            return Ran(status, self.said.read(_SAID).decode(errors="replace"))

    def stop(self) -> None:
        """End it, if it has not ended; nobody asks for what it said."""
        _end(self.process)
        self.said.close()


def start(command: Sequence[str], folder: str, said: str = "said") -> Running:
    """Start a command in a folder with a closed input and a small environment; return it.

    It is a process group of its own; what it says goes to a file of that name. Raises
    CdBackendError where it cannot be started.
    """
    given = settings.variables(_KEPT, _KEPT_STARTS)
    given |= {"LC_ALL": "C", "TMPDIR": folder}
    try:
        file = open(os.path.join(folder, f"{said}.txt"), "wb+")
    except OSError as why:
        raise no_place(why, folder) from None
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as why:
        file.close()
        if not os.path.isdir(folder):
            raise gone(folder) from None
        if (problem := shortage(why)) is not None:
            raise problem from None
        raise failed(command, f"cannot be started: {why.strerror or why}") from None
    return Running(command, process, file)


def run(command: Sequence[str], folder: str) -> Ran:
    """Run a command as `start` does, and to its end; return how it ended."""
    return start(command, folder).ended()


def _ended(process: subprocess.Popen[bytes], limit: float) -> int:
    """Return the exit status of a process as soon as it has one; raises TimeoutExpired.

    `Popen.wait` with a limit looks again every 50 ms at worst, which is much of a short run.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not on Linux, or on an old one
        return process.wait(limit)
    try:
        until = select.poll()
        until.register(handle, select.POLLIN)
        until.poll(min(1000 * limit, 2**31 - 1))
    finally:
        os.close(handle)
    return process.wait(0)


def environment() -> tuple[str, ...]:
    """Return those variables that a compiler sees and that may change what it makes."""
    kept = settings.variables(_KEPT, _KEPT_STARTS)
    return tuple(f"{name}={kept[name]}" for name in kept if name not in ("PATH", "HOME"))


def _asked(text: str, origin: str) -> tuple[str, ...]:
    """Return the command that a person wrote: a path with or without spaces, or with arguments."""
    try:
        split = shlex.split(text)
    except ValueError:  # a quotation that does not end
        split = [text]
    for words in ([text], split):
        if path := shutil.which(os.path.expanduser(words[0])):
            if any(re.search(r"\+\+(-[\d.]+)?$", word) for word in words[:2]):
                raise failed((text,), f"of {origin} compiles C++, and C is needed")
            return (os.path.abspath(path), *words[1:])  # it is run in another folder
    found = os.path.exists(os.path.expanduser(text))
    why = "is not executable" if found else "was not found"
    raise _missing(f"the C compiler `{text}` of {origin} {why}")


def _zig() -> tuple[str, ...] | None:
    """Return the compiler in the package ziglang: its program, or the package where that hides."""
    package = importing.find_spec("ziglang")
    if package is None:
        return None
    for folder in package.submodule_search_locations or ():
        program = os.path.join(folder, "zig")
        if os.access(program, os.X_OK):
            return (program, "cc")
    return (sys.executable, "-m", "ziglang", "cc")


def _is_itself(path: str) -> bool:
    """Whether a link may be followed: not where a wrapper (ccache) goes by the name it is given."""
    return _is_compiler(os.path.realpath(path))


def _is_compiler(real: str) -> bool:
    """Whether a path without links ends as the names of compilers do."""
    return re.search(r"(^|-)(gcc|clang|cc)(-[\d.]+)?$", os.path.basename(real)) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and those it started, if it has not ended by itself."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def first_line(ran: Ran) -> str:
    """Return the first line of what a command said that tells why, or how it ended."""
    lines = [line.strip() for line in ran.said.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower()] or lines
    if told:
        return told[0][:200]
    return f"killed by signal {-ran.status}" if ran.status < 0 else f"exit status {ran.status}"


def no_place(why: OSError, folder: str = "") -> CdBackendError:
    """Return the error CD0814 of a folder in which nothing can be written."""
    if (problem := shortage(why)) is not None:
        return problem
    full = why.errno in (errno.ENOSPC, errno.EDQUOT)
    folder = folder or os.path.dirname(str(why.filename or "")) or "any folder"
    message = f"nothing can be compiled in {folder}: {why.strerror or why}"
    helps = (
        "free some space, or let TMPDIR or the setting `cache_dir` name another folder"
        if full
        else "let TMPDIR or the setting `cache_dir` name a folder that can be written",
        'backend="numpy" writes no files',
    )
    return CdBackendError(Diagnostic("CD0814", message, helps=helps))


def gone(folder: str) -> CdBackendError:
    """Return the error CD0814 of a folder that was removed while something was compiled in it."""
    message = f"nothing was compiled in {folder}: somebody has removed it meanwhile"
    return CdBackendError(Diagnostic("CD0814", message, helps=("call the function again",)))


def twice(work: Callable[[], T]) -> T:
    """Return what work returns; done once more where its folder could not be written, as when the
    cache is emptied while something is compiled in it."""
    try:
        return work()
    except CdBackendError as why:
        if why.code != "CD0814":
            raise
    return work()


def _missing(message: str) -> CdBackendError:
    return CdBackendError(
        Diagnostic(
            "CD0811",
            message,
            helps=(
                "`pip install 'plusequals[zig]'` brings a compiler along, on every system",
                "or install one: `apt install gcc` (Debian, Ubuntu), `dnf install gcc` (Fedora), "
                "`brew install llvm` or `xcode-select --install` (macOS)",
                'backend="numpy" needs none, and is slow: `plusequals.use("numpy")`',
            ),
        )
    )


def failed(command: Sequence[str], why: str) -> CdBackendError:
    """Return the error CD0812 of a compiler that does not do what it is needed for."""
    return CdBackendError(
        Diagnostic(
            "CD0812",
            f"the C compiler `{' '.join(command[: 4 if '-m' in command else 1])}` {why}",
            helps=(
                "the setting `compiler` names another one (`PLUSEQUALS_COMPILER=clang`)",
                'backend="numpy" needs none, and is slow: `plusequals.use("numpy")`',
            ),
        )
    )
