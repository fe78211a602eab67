"""Compiler probing: version, supported flags, and the resolved native target.

Queried in parallel are its version, and its target description of this machine under all desired
flags, whose success implies that it supports them. Compilers with other flags, or without such a
query, are probed step by step.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import platform
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager

from .cpu_info import has_halves, processor_digest
from .toolchain import (
    HALVES,
    NATIVE_FLAGS,
    SEMANTIC_FLAGS,
    SPEED_FLAGS,
    THREAD_FLAGS,
    WORKAROUND_FLAGS,
    CommandResult,
    RunningCommand,
    Toolchain,
    compiler_environment,
    failure_error,
    first_error_line,
    run_command,
    start_command,
    unwritable_error,
)


class CompilerProbe:
    """Queries of a compiler in progress; `ended` waits for the answers, once."""

    __slots__ = ("_folder", "_questions", "_stack", "command", "process")

    def __init__(self, command: tuple[str, ...], empty: AbstractContextManager[str]) -> None:
        """Start the queries in an empty folder. Raises CdBackendError where it cannot run."""
        self.command, self.process = command, os.getpid()
        with contextlib.ExitStack() as stack:
            try:
                folder = self._folder = stack.enter_context(empty)
            except OSError as why:
                raise unwritable_error(why) from None
            self._questions: list[RunningCommand] = []
            for output_name, flags in (
                ("version", ("--version",)),
                ("target", (*probe_flags(command), *_TARGET)),
            ):
                self._questions.append(start_command((*command, *flags), folder, output_name))
                stack.callback(self._questions[-1].stop)
            self._stack = stack.pop_all()
        atexit.register(self.drop)

    def ended(self) -> Toolchain:
        """Return the toolchain. Raises CdBackendError where the compiler does not answer, or lacks
        a flag that results depend on."""
        atexit.unregister(self.drop)
        with self._stack:
            answers = (question.ended() for question in self._questions)
            version = next(answers)
            if version.status != 0:
                raise failure_error(
                    self.command, f"does not answer --version: {first_error_line(version)}"
                )
            (target,) = answers
            if _has_target_options(target):
                digest, flags = _digest(target.said), probe_flags(self.command)
            else:
                _write_probe(self._folder)
                native, digest = _target(self.command, self._folder)
                desired = (*native, *_optional_flags(self.command))
                flags = (*SEMANTIC_FLAGS, *_supported_flags(self.command, desired, self._folder))
        return Toolchain(self.command, version.said.strip(), digest, flags, compiler_environment())

    def drop(self) -> None:
        """Cancel it: the answers are not needed any more."""
        atexit.unregister(self.drop)
        if self.process == os.getpid():
            self._stack.close()


def probe_compiler(command: tuple[str, ...], folder: str) -> Toolchain:
    """Return the toolchain of a compiler, probed in an empty folder; raises CdBackendError."""
    return CompilerProbe(command, contextlib.nullcontext(folder)).ended()


def probe_flags(command: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that a compiler is queried with at once, all supported by gcc."""
    return (*SEMANTIC_FLAGS, NATIVE_FLAGS[0], *_optional_flags(command))


def _write_probe(folder: str) -> None:
    try:
        with open(os.path.join(folder, "probe.c"), "w", encoding="utf-8") as file:
            file.write("int probe(void) { return 0; }\n")
    except OSError as why:
        raise unwritable_error(why, folder) from None


_TARGET = ("-Q", "--help=target")
_PROBE = ("-c", "-o", "probe.o", "probe.c")


def _optional_flags(command: Sequence[str]) -> tuple[str, ...]:
    """Return the optional flags, other than that of the native target."""
    zig = ("-fno-sanitize=undefined",) if "zig" in " ".join(command) else ()
    return (*SPEED_FLAGS, *WORKAROUND_FLAGS, *(HALVES if has_halves() else ()), *THREAD_FLAGS, *zig)


def _has_target_options(answer: CommandResult) -> bool:
    """Whether a compiler has listed its target options, as gcc does."""
    return answer.status == 0 and "-m" in answer.said


def _target(command: tuple[str, ...], scratch: str) -> tuple[tuple[str, ...], str]:
    """Return the flag of the native target, and a digest of its resolution."""
    for native in NATIVE_FLAGS:
        gcc = run_command((*command, native, *_TARGET), scratch)
        if _has_target_options(gcc):
            return (native,), _digest(gcc.said)
        clang = run_command((*command, native, "-###", "-x", "c", "-c", os.devnull), scratch)
        features = re.findall(r'"-target-(?:cpu|feature|abi)" "[^"]*"', clang.said)
        if clang.status == 0 and features:
            return (native,), _digest("\n".join(sorted(features)))
    return (), processor_digest()


def _digest(text: str) -> str:
    return hashlib.sha256(f"{platform.machine()} {processor_digest()} {text}".encode()).hexdigest()


def _supported_flags(
    command: tuple[str, ...], desired: tuple[str, ...], scratch: str
) -> tuple[str, ...]:
    """Return the flags that the compiler supports, tried together, then one by one."""

    def try_flags(*flags: str) -> CommandResult:
        return run_command((*command, *flags, *_PROBE), scratch)

    if try_flags(*SEMANTIC_FLAGS, *desired).status == 0:
        return desired
    result = try_flags()
    if result.status != 0:
        raise failure_error(
            command, f"cannot compile an empty function: {first_error_line(result)}"
        )
    for flag in SEMANTIC_FLAGS:
        if try_flags(flag).status != 0:
            raise failure_error(command, f"does not know {flag}, which results depend on")
    return tuple(flag for flag in desired if try_flags(flag).status == 0)
