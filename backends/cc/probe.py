"""What a compiler is and takes, found by running it a few times.

Asked at once are its version, and what it takes this machine's processor to have under all flags
that are wished for, which says that it takes them. Compilers that know others, or no such question,
are asked one thing after the other.
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

from .cpu_info import has_halves, processor
from .toolchain import (
    HALVES,
    MEANING,
    NATIVE,
    SOUND,
    SPEED,
    THREADS,
    Ran,
    Running,
    Toolchain,
    environment,
    failed,
    first_line,
    no_place,
    run,
    start,
)


class Inspection:
    """Questions to a compiler that were asked; `ended` waits for the answers, once."""

    __slots__ = ("_folder", "_questions", "_stack", "command", "process")

    def __init__(self, command: tuple[str, ...], empty: AbstractContextManager[str]) -> None:
        """Ask, in an empty folder that is left then. Raises CdBackendError where it cannot run."""
        self.command, self.process = command, os.getpid()
        with contextlib.ExitStack() as stack:
            try:
                folder = self._folder = stack.enter_context(empty)
            except OSError as why:
                raise no_place(why) from None
            self._questions: list[Running] = []
            for said, flags in (
                ("version", ("--version",)),
                ("target", (*asked(command), *_TARGET)),
            ):
                self._questions.append(start((*command, *flags), folder, said))
                stack.callback(self._questions[-1].stop)
            self._stack = stack.pop_all()
        atexit.register(self.drop)

    def ended(self) -> Toolchain:
        """Return what the compiler is. Raises CdBackendError where it does not answer, or cannot
        compile what results depend on."""
        atexit.unregister(self.drop)
        with self._stack:
            answers = (one.ended() for one in self._questions)
            version = next(answers)
            if version.status != 0:
                raise failed(self.command, f"does not answer --version: {first_line(version)}")
            (target,) = answers
            if _is_told(target):
                digest, flags = _digest(target.said), asked(self.command)
            else:
                _write_probe(self._folder)
                native, digest = _target(self.command, self._folder)
                wished = (*native, *_wished(self.command))
                flags = (*MEANING, *_admitted(self.command, wished, self._folder))
        return Toolchain(self.command, version.said.strip(), digest, flags, environment())

    def drop(self) -> None:
        """Leave it: what the compiler is has become known otherwise, or nobody asks any more."""
        atexit.unregister(self.drop)
        if self.process == os.getpid():
            self._stack.close()


def inspect(command: tuple[str, ...], folder: str) -> Toolchain:
    """Return what a compiler is, found in an empty folder. Raises CdBackendError as above."""
    return Inspection(command, contextlib.nullcontext(folder)).ended()


def asked(command: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that a compiler is asked about at once, all of which gcc takes."""
    return (*MEANING, NATIVE[0], *_wished(command))


def _write_probe(folder: str) -> None:
    try:
        with open(os.path.join(folder, "probe.c"), "w", encoding="utf-8") as file:
            file.write("int probe(void) { return 0; }\n")
    except OSError as why:
        raise no_place(why, folder) from None


_TARGET = ("-Q", "--help=target")
_PROBE = ("-c", "-o", "probe.o", "probe.c")


def _wished(command: Sequence[str]) -> tuple[str, ...]:
    """Return the flags beside that for the processor which are used where they are known."""
    zig = ("-fno-sanitize=undefined",) if "zig" in " ".join(command) else ()
    return (*SPEED, *SOUND, *(HALVES if has_halves() else ()), *THREADS, *zig)


def _is_told(answer: Ran) -> bool:
    """Whether a compiler has listed what the processor has, as gcc does."""
    return answer.status == 0 and "-m" in answer.said


def _target(command: tuple[str, ...], scratch: str) -> tuple[tuple[str, ...], str]:
    """Return the flag for this very processor, and a digest of what it resolves to."""
    for native in NATIVE:
        gcc = run((*command, native, *_TARGET), scratch)
        if _is_told(gcc):
            return (native,), _digest(gcc.said)
        clang = run((*command, native, "-###", "-x", "c", "-c", os.devnull), scratch)
        found = re.findall(r'"-target-(?:cpu|feature|abi)" "[^"]*"', clang.said)
        if clang.status == 0 and found:
            return (native,), _digest("\n".join(sorted(found)))
    return (), processor()


def _digest(text: str) -> str:
    return hashlib.sha256(f"{platform.machine()} {processor()} {text}".encode()).hexdigest()


def _admitted(command: tuple[str, ...], wished: tuple[str, ...], scratch: str) -> tuple[str, ...]:
    """Return those flags that the compiler takes, tried together, then one by one."""

    def takes(*flags: str) -> Ran:
        return run((*command, *flags, *_PROBE), scratch)

    if takes(*MEANING, *wished).status == 0:
        return wished
    plain = takes()
    if plain.status != 0:
        raise failed(command, f"cannot compile an empty function: {first_line(plain)}")
    for flag in MEANING:
        if takes(flag).status != 0:
            raise failed(command, f"does not know {flag}, which results depend on")
    return tuple(flag for flag in wished if takes(flag).status == 0)
