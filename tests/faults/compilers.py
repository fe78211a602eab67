"""Compilers that are missing, fail, hang, lie, or change while they are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.rows import Row

_REFUSED = ("refused CD0811", "refused CD0812", "refused CD0813")
_LAST = 'for a in "$@"; do [ "$prev" = -o ] && out="$a"; prev="$a"; done'
_REAL = f'#!/bin/sh\n{_LAST}\n/usr/bin/env gcc "$@" || exit 1\n'
_SPOILED = {
    "writes garbage": 'case "$out" in *.so) echo garbage > "$out";; esac',
    "writes nothing": 'case "$out" in *.so) rm -f "$out";; esac',
    "writes an empty file": 'case "$out" in *.so) : > "$out";; esac',
    "writes half an object": 'case "$out" in *.so) truncate -s 3000 "$out";; esac',
    "writes zeros": 'case "$out" in *.so) head -c 20000 /dev/zero > "$out";; esac',
    "writes for another machine": (
        'case "$out" in *.so) printf "\\267" | dd of="$out" bs=1 seek=18 conv=notrunc '
        "2>/dev/null;; esac"
    ),
    "writes a folder": 'case "$out" in *.so) rm -f "$out"; mkdir "$out";; esac',
    "is killed": 'case "$out" in *.so) kill -9 $$;; esac',
    "aborts": 'case "$out" in *.so) kill -6 $$;; esac',
    "fails afterwards": 'case "$out" in *.so) exit 3;; esac',
    "removes its folder": 'case "$out" in *.so) rm -rf "$PWD";; esac',
}


def _compiler(text: str, mode: int = 0o755) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "compiler").write_text(text)
        (folder / "compiler").chmod(mode)

    return write


_OWN = {"PLUSEQUALS_COMPILER": "{folder}/compiler"}


def _row(name: str, **more: object) -> Row:
    return Row(subject="compiler", name=name, **more)  # type: ignore[arg-type]


ROWS = [
    _row("is missing", environment={"PLUSEQUALS_COMPILER": "/nowhere/gcc"}, ends=_REFUSED),
    _row("is false", environment={"PLUSEQUALS_COMPILER": "false"}, ends=_REFUSED),
    _row("is true", environment={"PLUSEQUALS_COMPILER": "true"}, ends=_REFUSED),
    _row("is a folder", environment={"PLUSEQUALS_COMPILER": "{folder}"}, ends=_REFUSED),
    _row("is shell text", environment={"PLUSEQUALS_COMPILER": "gcc; touch pwned"}, ends=_REFUSED),
    _row("may not run", before=_compiler(_REAL, mode=0o644), environment=_OWN, ends=_REFUSED),
    _row("is no program", before=_compiler("\x7fELF..."), environment=_OWN, ends=_REFUSED),
    _row(
        "hangs",
        before=_compiler("#!/bin/sh\nsleep 99 & sleep 99"),
        ends=_REFUSED,
        environment=_OWN | {"PLUSEQUALS_COMPILER_TIMEOUT": "1"},
    ),
    _row(
        "hangs and ignores SIGTERM",
        before=_compiler("#!/bin/sh\ntrap '' TERM\nsleep 99"),
        environment=_OWN | {"PLUSEQUALS_COMPILER_TIMEOUT": "1"},
        ends=_REFUSED,
    ),
    _row(
        "talks without end",
        environment=_OWN,
        ends=_REFUSED,
        before=_compiler("#!/bin/sh\nhead -c 40000000 /dev/urandom; exit 1"),
    ),
    _row(
        "knows no flag",
        before=_compiler("#!/bin/sh\necho 'error: no such flag' >&2; exit 1"),
        environment=_OWN,
        ends=_REFUSED,
    ),
    _row(
        "gets other flags from outside",
        environment={
            "CFLAGS": "-ffast-math",
            "CPATH": "/nowhere",
            "GCC_EXEC_PREFIX": "/nowhere/",
            "LIBRARY_PATH": "/nowhere",
            "COMPILER_PATH": "/nowhere",
        },
    ),
    _row("is nowhere on the path", environment={"PATH": "/nowhere", "CC": ""}, ends=_REFUSED),
    *(
        _row(
            name,
            before=_compiler(f"{_REAL}{spoil}\n"),
            environment=_OWN,
            ends=(*_REFUSED, "refused CD0814"),
        )
        for name, spoil in _SPOILED.items()
    ),
    _row(
        "is mended between two calls",
        environment=_OWN,
        before=_compiler(f"{_REAL}{_SPOILED['is killed']}\n"),
        body="attempt()\nopen(FOLDER + '/compiler', 'w').write('#!/bin/sh\\nexec gcc \"$@\"\\n')\n"
        "attempt()",
    ),
    _row(
        "goes after the first call",
        before=_compiler(_REAL),
        environment=_OWN,
        body="attempt()\nos.unlink(FOLDER + '/compiler')\nattempt()\n"
        "attempt(lambda: g(X, 2), np.sum(X))\nattempt()",
    ),
    _row("has its exit reaped", body="signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nattempt()"),
    _row(
        "has its exit reaped by a handler",
        body="def reap(*_):\n    try:\n        while os.waitpid(-1, os.WNOHANG)[0]: pass\n"
        "    except ChildProcessError: pass\nsignal.signal(signal.SIGCHLD, reap)\nattempt()",
    ),
    _row(
        "is interrupted, then asked again",
        environment=_OWN,
        before=_compiler('#!/bin/sh\ncase "$*" in *.so*) sleep 2;; esac\nexec gcc "$@"\n'),
        between=("raw KeyboardInterrupt",),
        body="threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "attempt()\nattempt()",
    ),
]
