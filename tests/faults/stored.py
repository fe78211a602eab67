"""Caches that are damaged, closed, exchanged, full, or used by others at the same time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.rows import Row, Unavailable


def _entries(change: Callable[[Path, bytes], object]) -> Callable[[Path], None]:
    """Return what does something to every entry."""

    def changed(folder: Path) -> None:
        for path in sorted((folder / "cache").rglob("*.entry")):
            change(path, path.read_bytes())

    return changed


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path, _: bytes) -> None:
        path.unlink()
        make(path)

    return _entries(replace)


def _swapped(folder: Path) -> None:
    paths = sorted((folder / "cache").rglob("*.entry"))
    data = [path.read_bytes() for path in paths]
    for path, other in zip(paths, data[1:] + data[:1], strict=True):
        path.write_bytes(other)


def _locks(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        (folder / "cache" / "v1").mkdir(mode=0o700)
        for number in range(256):
            make(folder / "cache" / "v1" / f"lock-{number:02x}")

    return made


def _other_place(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        shutil.rmtree(folder / "cache")
        make(folder / "cache")

    return made


def _mounted(options: str, name: str, **more: Any) -> Row:
    """Return a fault of a file system of its own, which only root can have."""

    def mount(folder: Path) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder / "cache")]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            raise Unavailable("nothing may be mounted here")
        (folder / "cache").chmod(0o700)

    def unmount(folder: Path) -> None:
        command = ["umount", "-l", str(folder / "cache")]
        subprocess.run(command, capture_output=True, check=False)

    return _row(name, before=mount, after=unmount, **more)


def _row(name: str, **more: object) -> Row:
    return Row(subject="cache", name=name, **more)  # type: ignore[arg-type]


_MORTAL = """
import ctypes
head, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
ctypes.CDLL(None).capget(head, sets)
sets[0] &= ~6  # not even root may write where the modes do not allow it
ctypes.CDLL(None).capset(head, sets)
"""
_QUIET = "warnings.simplefilter('always')\n"

ROWS = [
    _row(
        "entries cut in half",
        warm=True,
        before=_entries(lambda p, d: p.write_bytes(d[: len(d) // 2])),
    ),
    _row(
        "entries without a last byte",
        warm=True,
        before=_entries(lambda p, d: p.write_bytes(d[:-1])),
    ),
    _row("entries empty", warm=True, before=_entries(lambda p, d: p.write_bytes(b""))),
    _row(
        "entries with a bit flipped",
        warm=True,
        before=_entries(lambda p, d: p.write_bytes(d[:-9] + bytes([d[-9] ^ 16]) + d[-8:])),
    ),
    _row(
        "heads with a bit flipped",
        warm=True,
        before=_entries(lambda p, d: p.write_bytes(bytes([d[0] ^ 1]) + d[1:])),
    ),
    _row("entries exchanged", warm=True, before=_swapped),
    _row("entries become FIFOs", warm=True, before=_replaced(os.mkfifo)),
    _row("entries become folders", warm=True, before=_replaced(lambda p: p.mkdir())),
    _row("entries become links", warm=True, before=_replaced(lambda p: p.symlink_to("/dev/zero"))),
    _row("entries that others may write", warm=True, before=_entries(lambda p, d: p.chmod(0o666))),
    _row(
        "entries become objects",
        warm=True,
        before=_entries(lambda p, d: p.write_bytes(d[d.find(b"\x7fELF") :])),
    ),
    _row("a file instead of the folder", before=_other_place(lambda p: p.write_text(""))),
    _row("a dangling link instead", before=_other_place(lambda p: p.symlink_to("/nowhere/at/all"))),
    _row("a FIFO instead", before=_other_place(os.mkfifo)),
    _row("a device instead", environment={"PLUSEQUALS_CACHE_DIR": "/dev/null"}),
    _row(
        "everybody may write there, told once",
        before=lambda p: (p / "cache").chmod(0o777),
        body=_QUIET
        + "attempt()\nattempt(lambda: g(X, 2), np.sum(X))\nattempt(lambda: g(X, 4), np.sum(X))",
        warnings=1,
    ),
    _row(
        "another owner",
        before=lambda p: os.chown(p / "cache", 65534, -1),
        warnings=1,
        body=_QUIET + "attempt()\nattempt(lambda: g(X, 2), np.sum(X))",
    ),
    _row("read-only", body=f"{_MORTAL}os.chmod(CACHE, 0o500)\nattempt()\nos.chmod(CACHE, 0o700)"),
    _row("unreadable", body=f"{_MORTAL}os.chmod(CACHE, 0)\nattempt()\nos.chmod(CACHE, 0o700)"),
    _row(
        "entries unreadable",
        warm=True,
        before=_entries(lambda p, d: p.chmod(0)),
        body=f"{_MORTAL}attempt()",
    ),
    _row(
        "removed between calls",
        body="attempt()\nshutil.rmtree(CACHE)\nattempt(lambda: g(X, 2), np.sum(X))\nattempt()",
    ),
    _row(
        "removed again and again meanwhile",
        body="stop = []\ndef remove():\n    while not stop: shutil.rmtree(CACHE, True)\n"
        "t = threading.Thread(target=remove)\nt.start()\nattempt()\n"
        "stop.append(1)\nt.join()\nattempt()",
    ),
    _row(
        "current folder removed",
        body="os.mkdir(FOLDER + '/here')\nos.chdir(FOLDER + '/here')\n"
        "os.rmdir(FOLDER + '/here')\nattempt()",
    ),
    _row(
        "no home, no folder for temporary files",
        environment={
            "HOME": "/nowhere",
            "TMPDIR": "/nowhere",
            "PLUSEQUALS_CACHE_DIR": "/nowhere/c",
            "XDG_CACHE_HOME": "/nowhere",
        },
    ),
    _row(
        "nowhere to write at all",
        body="import tempfile\n"
        "tempfile.tempdir = '/proc'\nfrom plusequals.backends.cache import cache\n"
        "cache._homes = lambda usable: ['/proc', '/sys']\nattempt()",
        ends=("refused CD0814",),
    ),
    _row("an odd name", environment={"PLUSEQUALS_CACHE_DIR": "{folder}/a b'\"$(x)\n\u00e9%s"}),
    _row("a name too long", environment={"PLUSEQUALS_CACHE_DIR": "{folder}/" + 300 * "x"}),
    _row(
        "a path too long", environment={"PLUSEQUALS_CACHE_DIR": "{folder}/" + 50 * (99 * "y" + "/")}
    ),
    _row(
        "locks are FIFOs", before=_locks(os.mkfifo), environment={"PLUSEQUALS_CACHE_TIMEOUT": "1"}
    ),
    _row("locks are folders", before=_locks(lambda p: p.mkdir())),
    _row(
        "locks held by a stopped process",
        environment={"PLUSEQUALS_CACHE_TIMEOUT": "1"},
        before=_locks(lambda p: p.touch(0o600)),
        body="import fcntl\nheld = [open(f'{CACHE}/v1/lock-{n:02x}', 'r+') for n in range(256)]\n"
        "stopped = os.fork()\nif not stopped:\n"
        "    for one in held: fcntl.flock(os.open(one.name, os.O_RDWR), fcntl.LOCK_EX)\n"
        "    os.write(1, b'x'); os.kill(os.getpid(), signal.SIGSTOP)\n"
        "os.waitpid(stopped, os.WUNTRACED)\nattempt()\nos.kill(stopped, signal.SIGKILL)",
    ),
    _mounted("size=64k", "a full disk"),
    _mounted("size=4m", "a disk that becomes full"),
    _mounted(
        "size=64k", "a full disk for temporary files, too", environment={"TMPDIR": "{folder}/cache"}
    ),
    _mounted("nr_inodes=3", "a disk without room for names"),
    _mounted("noexec", "a disk that executes nothing"),
    _mounted(
        "size=64m",
        "a disk that becomes read-only",
        body="attempt()\nsubprocess.run(['mount', '-o', 'remount,ro', CACHE])\n"
        "attempt(lambda: g(X, 2), np.sum(X))\nattempt()",
    ),
    _row("a shared cache that is none", environment={"PLUSEQUALS_SHARED_CACHE_DIR": "/etc/passwd"}),
    _row(
        "a shared cache of nobody knows whom",
        environment={
            "PLUSEQUALS_SHARED_CACHE_DIR": "/",
            "PLUSEQUALS_SHARED_CACHE_OWNER": "no such",
        },
    ),
]
