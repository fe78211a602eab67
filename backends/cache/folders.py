"""Folders of files that only their owner may write: made, looked at before use, swept, removed.

Paths are texts here: importing `pathlib`, `shutil` or `tempfile` takes much of a short compilation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...base import settings
from ...base.diagnostic import CdBackendError, Diagnostic
from ...base.lazy_import import Later
from .file_lock import is_held

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = Later("tempfile", None)

_FILES = (errno.EMFILE, errno.ENFILE)


class Refused(Exception):
    """A folder or a file that exists and is not to be trusted; says why."""


def distrust(path: str) -> str | None:
    """Return why what is stored under a folder cannot be trusted, None where it can.

    The folder has to be ours and writable by nobody else; so do the folders above it up to the
    home folder, where the system's own and those like `/tmp` (sticky) pass as well.
    """
    me = os.geteuid()
    return _distrust(path, (me,), (me, 0), os.path.expanduser("~"))


def distrust_shared(path: str, writers: Sequence[int]) -> str | None:
    """Return why what these users have stored under a folder cannot be trusted, None where it can.

    It has to be a folder of one of them, as those above it up to the root, which nobody else may
    write to: no group either, for whoever is in it could exchange what is there.
    """
    return _distrust(path, writers, writers, os.sep)


def _distrust(path: str, owners: Sequence[int], above: Sequence[int], last: str) -> str | None:
    folder = path
    while True:
        found = os.lstat(folder)
        if stat.S_ISLNK(found.st_mode):
            if folder == path:
                return f"{folder} is a link"
            found = os.stat(folder)
        if not stat.S_ISDIR(found.st_mode):
            return f"{folder} is not a folder"
        if found.st_uid not in (owners if folder == path else above):
            return f"{folder} belongs to another user"
        sticky = folder != path and found.st_mode & stat.S_ISVTX
        if found.st_mode & 0o022 and not sticky:
            return f"others can write to {folder} (`chmod go-w {folder}` makes it yours)"
        parent = os.path.dirname(folder)
        if folder == last or parent == folder:
            return None
        folder = parent


def open_folder(path: str, create: bool) -> int:
    """Return an open folder, which is made where asked; raises Refused where it is not to be
    trusted, and OSError."""
    if create:
        _make(path)
    return _opened(path, distrust)


def open_shared(path: str, writers: Sequence[int]) -> int:
    """Return an open folder that others may have written; raises Refused where any but the writers
    could have, and OSError."""
    return _opened(path, lambda folder: distrust_shared(folder, writers))


def _opened(path: str, distrusted: Callable[[str], str | None]) -> int:
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if why := distrusted(path):
            raise Refused(why)
        seen, found = os.lstat(path), os.fstat(held)
        if (seen.st_dev, seen.st_ino) != (found.st_dev, found.st_ino):
            raise Refused(f"{path} was exchanged while it was looked at")
    except BaseException:
        os.close(held)
        raise
    return held


def _make(path: str) -> None:
    """Make the folder and those above it, each for the owner only whatever the umask allows."""
    if not path or os.path.exists(path):
        return
    _make(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode=0o700)


def temporary() -> list[str]:
    """Return the folders for temporary files in the order in which `tempfile` would try them.

    It writes to each until one does, holding a lock meanwhile that a forked child would wait for.
    """
    if os.name != "posix":
        return [tempfile.gettempdir()]
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    named = [settings.variable(name) for name in ("TMPDIR", "TEMP", "TMP")]
    return [one for one in (chosen, *named, "/tmp", "/var/tmp") if one and isinstance(one, str)]


def first_made(homes: Iterable[str], prefix: str) -> str:
    """Return a new folder for its owner only, in the first place that allows one; raises the last
    OSError."""
    problem = OSError("there is no place for folders")
    for home in homes:
        path = os.path.join(home, f"{prefix}{os.urandom(8).hex()}")
        try:
            os.mkdir(path, 0o700)
        except OSError as why:
            problem = why
        else:
            return path
    raise problem


def remove(path: str) -> None:
    """Remove a folder with all that is in it, as far as that can be done."""
    with contextlib.suppress(OSError):
        with os.scandir(path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    remove(entry.path) if _is_folder(entry) else os.unlink(entry.path)
        os.rmdir(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def sweep(path: str, before: float, stale: float, prefix: str, within: str, ending: str) -> None:
    """Remove folders whose names begin like that, and files whose names have the middle and the
    ending, of processes that have ended. Raises OSError.

    They are ours, were made before the time `before`, and nobody holds them; where the system knows
    no locks, they were last written before the time `stale`.
    """
    for found in _listed(path):
        is_scratch = found.name.startswith(prefix)
        if not is_scratch and not (within in found.name and found.name.endswith(ending)):
            continue
        with contextlib.suppress(FileNotFoundError, PermissionError):
            state = found.stat(follow_symlinks=False)
            if state.st_uid != os.geteuid() or state.st_mtime >= before:
                continue
            if not is_held(found.path, state.st_mtime >= stale):
                remove(found.path) if is_scratch and _is_folder(found) else os.unlink(found.path)


def shrink(path: str, limit: int, ending: str) -> None:
    """Remove the files written first whose names end like that, until the rest takes no more than
    `limit` bytes. Raises OSError."""
    found = [entry for entry in _listed(path) if entry.name.endswith(ending)]
    states = [(entry.stat(follow_symlinks=False), entry.path) for entry in found]
    excess = sum(state.st_size for state, _ in states) - limit
    for state, file in sorted(states, key=lambda one: one[0].st_mtime):
        if excess <= 0:
            break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
        excess -= state.st_size


def keep_latest(path: str, prefix: str, ending: str, count: int) -> None:
    """Remove all but the latest of our files whose names begin and end so. Raises OSError."""
    found = [x for x in _listed(path) if x.name.startswith(prefix) and x.name.endswith(ending)]
    states = [(entry.stat(follow_symlinks=False), entry.path) for entry in found]
    ours = [(state.st_mtime_ns, file) for state, file in states if state.st_uid == os.geteuid()]
    for _, file in sorted(ours)[: max(0, len(ours) - count)]:
        with contextlib.suppress(OSError):
            os.unlink(file)


def _listed(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return list(entries)


def own_text(path: str) -> str:
    """Return the text of a file of the package, which may have been imported from an archive."""
    loader: Any = globals().get("__loader__")
    archive = getattr(loader, "archive", None)
    if archive is not None and path.startswith(archive):
        found: bytes = loader.get_data(path)
        return found.decode("utf-8").replace("\r\n", "\n")
    with open(path, encoding="utf-8") as file:  # which needs no import at the end
        return file.read()


def shortage(problem: OSError) -> CdBackendError | None:
    """Return the error CD0814 of a process that can open no more files, None for another one."""
    if problem.errno not in _FILES:
        return None
    return CdBackendError(
        Diagnostic(
            "CD0814",
            f"nothing can be compiled now, for no file can be opened: {problem.strerror}",
            helps=(
                "close files that nobody needs, or allow more of them (`ulimit -n`)",
                "then call the function again: nothing has been run",
            ),
        )
    )
