"""Toolchain: selection of the C compiler, its identity and flags, and running commands.

The compiler is the setting `compiler`, else `CC`, else the first of `cc gcc clang` on the path,
else the package `ziglang`. A compiler requested by name that is missing is an error: it is never
replaced by another one.
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
from ...base.lazy_import import LazyModule
from ..cache.folders import descriptor_shortage
from .cpu_info import processor_digest

if TYPE_CHECKING:
    import importlib.util as importing
    import select
    import shlex
    import shutil
    import signal
    import subprocess
else:
    importing, shlex = LazyModule("importlib.util", None), LazyModule("shlex", None)
    select, signal = LazyModule("select", None), LazyModule("signal", None)
    shutil, subprocess = LazyModule("shutil", None), LazyModule("subprocess", None)

T = TypeVar("T")
COMPILER_NAMES = ("cc", "gcc", "clang")
SEMANTIC_FLAGS = (
    "-std=gnu11", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
    "-Werror=implicit-function-declaration",
)  # fmt: skip
"""Flags that affect results: a compiler that lacks one of them is rejected. An undeclared function
would be assumed to return `int`. `-ffast-math` is never used: linked with it, a library switches
its whole process to flush-to-zero."""
SPEED_FLAGS = (
    "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-mprefer-vector-width=512",
    "-fno-loop-unroll-and-jam", "-fno-loop-interchange",
)  # fmt: skip
"""Without the fourth, compilers use vectors of half the width of the processor's. Without the fifth
gcc 12 applies unroll-and-jam to a loop around a vectorizable one, and then does not vectorize it: a
filter of 81 `exp` per point takes ten times as long. Without the last it interchanges loops whose
order has been chosen: 30 steps of `z = z*z + c` on complex elements, each a step of all of them,
become 30 steps of one element after the other, which takes 8 times as long."""
WORKAROUND_FLAGS = ("-fno-tree-reassoc", "-fno-tree-slp-vectorize", "-fno-tree-loop-if-convert")
"""Workarounds of compiler bugs, where supported. Where gcc 12 reassociates the integer product
b*b*b*b and vectorizes it for 512 bits, it computes b*b. Where it vectorizes straight-line code,
`(double)(float)x` is x: two to four lanes lose their rounding. Where it unrolls a loop and
vectorizes conditional loads of its iterations, all use the mask of the first."""
HALVES = ("-mno-avx512fp16",)
"""What keeps gcc 12 from code that its assembler refuses, `vmovsh` under a mask, where a processor
computes with floats of 16 bits. Here that is done in 32; without those it converts as fast."""
THREAD_FLAGS = ("-pthread",)
"""A flag that some systems need for the run-time library."""
NATIVE_FLAGS = ("-march=native", "-mcpu=native")
"""Flags of the native target; compilers support one or the other."""
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "SDKROOT",
    "DEVELOPER_DIR",
    "MACOSX_DEPLOYMENT_TARGET",
)
_ENVIRONMENT_PREFIXES = ("NIX_C", "NIX_LD", "NIX_BINTOOLS", "ZIG_")
_MAX_OUTPUT = 1 << 20
"""The maximum of a compiler's output that is read, in bytes."""


class CommandResult(NamedTuple):
    """The result of a command: its exit status (negative: the signal), and its output."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A working compiler. All fields determine the compiled code, so all are in the cache key."""

    command: tuple[str, ...]
    version: str
    target: str
    """A digest of the compiler's native target description."""
    flags: tuple[str, ...]
    environment: tuple[str, ...]

    @classmethod
    def of(cls, written: dict[str, Any]) -> Toolchain:
        """Return the toolchain of a dictionary from `written`."""
        lists = {k: tuple(v) if isinstance(v, list) else v for k, v in written.items()}
        values: dict[str, Any] = lists
        return cls(**values)

    def written(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return {name: getattr(self, name) for name in self.__match_args__}

    @property
    def name(self) -> str:
        """Its name for users: `gcc (Debian 12.2.0) 12.2.0`."""
        return self.version.splitlines()[0] if self.version else self.command[0]


def find_compiler() -> tuple[str, ...]:
    """Return the command of the compiler to use, its path resolved.

    Raises CdBackendError where there is none, or not the requested one.
    """
    requested = settings.current().compiler
    for origin, text in (("the setting `compiler`", requested), ("`CC`", settings.variable("CC"))):
        if text.strip():
            return _requested_command(text.strip(), origin)
    for name in COMPILER_NAMES:
        if path := _which(name):
            resolved = os.path.realpath(path)
            return (resolved,) if _is_compiler(resolved) else (path,)
    if zig := _zig_command():
        return zig
    raise _missing_error(
        "no C compiler was found: not " + ", ".join(COMPILER_NAMES) + " nor the package ziglang"
    )


def _which(name: str) -> str | None:
    """Return the path of a program, as `shutil.which`, whose import takes 5 ms and which does more
    on other systems."""
    if os.name != "posix":
        return shutil.which(name)
    for folder in (settings.variable("PATH") or os.defpath).split(os.pathsep):
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def fingerprint(command: tuple[str, ...]) -> list[object] | None:
    """Return a cheap fingerprint that changes whenever a compiler does.

    None where there is none: for a wrapper, which may run another compiler later, and where the
    system does not identify the processor, so that the compiler has to be probed.
    """
    machine = processor_digest()
    zig = command[1:] == ("cc",) and os.path.basename(command[0]) == "zig"
    if not machine or (not zig and (len(command) > 1 or not _is_resolvable(command[0]))):
        return None
    state = os.stat(command[0])
    return [
        *command,
        state.st_size,
        state.st_mtime_ns,
        state.st_ino,
        machine,
        *compiler_environment(),
    ]


class RunningCommand:
    """A running command; `ended` waits for it, once."""

    __slots__ = ("command", "limit", "process", "said")

    def __init__(
        self, command: Sequence[str], process: subprocess.Popen[bytes], said: IO[bytes]
    ) -> None:
        self.command, self.process, self.said = command, process, said
        self.limit = settings.current().compiler_timeout

    def ended(self) -> CommandResult:
        """Wait for its end; return its result. Raises CdBackendError after the time limit."""
        with self.said:
            try:
                status = _wait_for_exit(self.process, self.limit)
            except subprocess.TimeoutExpired:
                description = (
                    f"did not finish in {self.limit:g} seconds (`compiler_timeout` allows more)"
                )
                raise failure_error(self.command, description) from None
            finally:
                _kill_group(self.process)
            self.said.seek(0)
            return CommandResult(status, self.said.read(_MAX_OUTPUT).decode(errors="replace"))

    def stop(self) -> None:
        """Kill it, if it is running; its output is discarded."""
        _kill_group(self.process)
        self.said.close()


def start_command(command: Sequence[str], folder: str, said: str = "said") -> RunningCommand:
    """Start a command in a folder with a closed input and a minimal environment; return it.

    It has its own process group; its output goes to a file named `said`. Raises CdBackendError
    where it cannot be started.
    """
    variables = settings.variables(_ENVIRONMENT, _ENVIRONMENT_PREFIXES)
    variables |= {"LC_ALL": "C", "TMPDIR": folder}
    try:
        file = open(os.path.join(folder, f"{said}.txt"), "wb+")
    except OSError as why:
        raise unwritable_error(why, folder) from None
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as why:
        file.close()
        if not os.path.isdir(folder):
            raise removed_error(folder) from None
        if (problem := descriptor_shortage(why)) is not None:
            raise problem from None
        raise failure_error(command, f"cannot be started: {why.strerror or why}") from None
    return RunningCommand(command, process, file)


def run_command(command: Sequence[str], folder: str) -> CommandResult:
    """Run a command, started as by `start_command`, to its end; return its result."""
    return start_command(command, folder).ended()


def _wait_for_exit(process: subprocess.Popen[bytes], limit: float) -> int:
    """Wait for a process; return its exit status; raises TimeoutExpired.

    `Popen.wait` with a limit polls, every 50 ms at worst, which is long for a short run.
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


def compiler_environment() -> tuple[str, ...]:
    """Return the environment variables of a compiler that may affect its output."""
    variables = settings.variables(_ENVIRONMENT, _ENVIRONMENT_PREFIXES)
    return tuple(f"{name}={variables[name]}" for name in variables if name not in ("PATH", "HOME"))


def _requested_command(text: str, origin: str) -> tuple[str, ...]:
    """Return the command of a user's setting: a path, possibly with spaces, or with arguments."""
    try:
        split = shlex.split(text)
    except ValueError:  # an unterminated quotation
        split = [text]
    for words in ([text], split):
        if path := shutil.which(os.path.expanduser(words[0])):
            if any(re.search(r"\+\+(-[\d.]+)?$", word) for word in words[:2]):
                raise failure_error((text,), f"of {origin} compiles C++, and C is needed")
            return (os.path.abspath(path), *words[1:])  # it is run in another folder
    exists = os.path.exists(os.path.expanduser(text))
    why = "is not executable" if exists else "was not found"
    raise _missing_error(f"the C compiler `{text}` of {origin} {why}")


def _zig_command() -> tuple[str, ...] | None:
    """Return the command of the package ziglang: its program, or else the module."""
    package = importing.find_spec("ziglang")
    if package is None:
        return None
    for folder in package.submodule_search_locations or ():
        program = os.path.join(folder, "zig")
        if os.access(program, os.X_OK):
            return (program, "cc")
    return (sys.executable, "-m", "ziglang", "cc")


def _is_resolvable(path: str) -> bool:
    """Whether a link may be resolved: not where a wrapper (ccache) depends on its name."""
    return _is_compiler(os.path.realpath(path))


def _is_compiler(real: str) -> bool:
    """Whether a resolved path has the name of a compiler."""
    return re.search(r"(^|-)(gcc|clang|cc)(-[\d.]+)?$", os.path.basename(real)) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, if it is running."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def first_error_line(ran: CommandResult) -> str:
    """Return the first line of an error in a command's output, or else how it ended."""
    lines = [line.strip() for line in ran.said.splitlines() if line.strip()]
    error_lines = [line for line in lines if "error" in line.lower()] or lines
    if error_lines:
        return error_lines[0][:200]
    return f"killed by signal {-ran.status}" if ran.status < 0 else f"exit status {ran.status}"


def unwritable_error(why: OSError, folder: str = "") -> CdBackendError:
    """Return the error CD0814 of a folder that cannot be written."""
    if (problem := descriptor_shortage(why)) is not None:
        return problem
    is_full = why.errno in (errno.ENOSPC, errno.EDQUOT)
    folder = folder or os.path.dirname(str(why.filename or "")) or "any folder"
    message = f"nothing can be compiled in {folder}: {why.strerror or why}"
    helps = (
        "free some space, or let TMPDIR or the setting `cache_dir` name another folder"
        if is_full
        else "let TMPDIR or the setting `cache_dir` name a folder that can be written",
        'backend="numpy" writes no files',
    )
    return CdBackendError(Diagnostic("CD0814", message, helps=helps))


def removed_error(folder: str) -> CdBackendError:
    """Return the error CD0814 of a folder that was removed during a compilation in it."""
    message = f"nothing was compiled in {folder}: somebody has removed it meanwhile"
    return CdBackendError(Diagnostic("CD0814", message, helps=("call the function again",)))


def retry_once(work: Callable[[], T]) -> T:
    """Return the result of `work`, retried once where its folder could not be written, for example
    because the cache was emptied meanwhile."""
    try:
        return work()
    except CdBackendError as why:
        if why.code != "CD0814":
            raise
    return work()


def _missing_error(message: str) -> CdBackendError:
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


def failure_error(command: Sequence[str], why: str) -> CdBackendError:
    """Return the error CD0812 of a compiler that does not work."""
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
