"""Private folders: creation, trust checks before use, sweeping and removal.

Paths are strings: importing `pathlib`, `shutil` or `tempfile` would take a large part of a short
compilation.
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
from ...base.lazy_import import LazyModule
from .file_lock import is_held

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = LazyModule("tempfile", None)

_DESCRIPTOR_ERRORS = (errno.EMFILE, errno.ENFILE)


class Untrusted(Exception):
    """An existing folder or file that is not trusted, with the reason."""


def trust_problem(path: str) -> str | None:
    """Return why files under a folder cannot be trusted, None where they can.

    The folder has to be ours and writable by nobody else; so do the folders above it up to the
    home folder, where those of root and sticky ones like `/tmp` are accepted as well.
    """
    me = os.geteuid()
    return _distrust(path, (me,), (me, 0), os.path.expanduser("~"))


def shared_trust_problem(path: str, writers: Sequence[int]) -> str | None:
    """Return why files of these users under a folder cannot be trusted, None where they can.

    The folder, and those above it up to the root, have to belong to one of them and be writable by
    nobody else, nor by a group, whose members could replace files.
    """
    return _distrust(path, writers, writers, os.sep)


def _distrust(
    path: str, owners: Sequence[int], parent_owners: Sequence[int], top: str
) -> str | None:
    folder = path
    while True:
        state = os.lstat(folder)
        if stat.S_ISLNK(state.st_mode):
            if folder == path:
                return f"{folder} is a link"
            state = os.stat(folder)
        if not stat.S_ISDIR(state.st_mode):
            return f"{folder} is not a folder"
        if state.st_uid not in (owners if folder == path else parent_owners):
            return f"{folder} belongs to another user"
        sticky = folder != path and state.st_mode & stat.S_ISVTX
        if state.st_mode & 0o022 and not sticky:
            return f"others can write to {folder} (`chmod go-w {folder}` makes it yours)"
        parent = os.path.dirname(folder)
        if folder == top or parent == folder:
            return None
        folder = parent


def open_folder(path: str, create: bool) -> int:
    """Return a descriptor of a folder, created on request; raises Untrusted where it is not
    trusted, and OSError."""
    if create:
        _make_private(path)
    return _open_trusted(path, trust_problem)


def open_shared(path: str, writers: Sequence[int]) -> int:
    """Return a descriptor of a shared folder; raises Untrusted where anyone but the writers could
    have written to it, and OSError."""
    return _open_trusted(path, lambda folder: shared_trust_problem(folder, writers))


def _open_trusted(path: str, find_problem: Callable[[str], str | None]) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if why := find_problem(path):
            raise Untrusted(why)
        path_state, descriptor_state = os.lstat(path), os.fstat(descriptor)
        if (path_state.st_dev, path_state.st_ino) != (
            descriptor_state.st_dev,
            descriptor_state.st_ino,
        ):
            raise Untrusted(f"{path} was exchanged while it was looked at")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _make_private(path: str) -> None:
    """Create the folder and its parents with mode 0700, whatever the umask."""
    if not path or os.path.exists(path):
        return
    _make_private(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode=0o700)


def temporary_folders() -> list[str]:
    """Return the folders for temporary files in the order in which `tempfile` tries them.

    `tempfile` itself tries to write to each, holding a lock on which a forked child could deadlock.
    """
    if os.name != "posix":
        return [tempfile.gettempdir()]
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    variables = [settings.variable(name) for name in ("TMPDIR", "TEMP", "TMP")]
    return [
        folder
        for folder in (chosen, *variables, "/tmp", "/var/tmp")
        if folder and isinstance(folder, str)
    ]


def make_first(homes: Iterable[str], prefix: str) -> str:
    """Create a private folder in the first of several folders that allows it; raises the last
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
    """Remove a folder recursively, ignoring errors."""
    with contextlib.suppress(OSError):
        with os.scandir(path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    remove(entry.path) if _is_folder(entry) else os.unlink(entry.path)
        os.rmdir(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def sweep(path: str, before: float, stale: float, prefix: str, within: str, ending: str) -> None:
    """Remove folders with a name prefix, and files whose names contain `within` and have an ending,
    of ended processes. Raises OSError.

    They are ours, were created before the time `before`, and are not locked; on systems without
    locks, they were last written before the time `stale`.
    """
    for entry in _list_entries(path):
        is_scratch = entry.name.startswith(prefix)
        if not is_scratch and not (within in entry.name and entry.name.endswith(ending)):
            continue
        with contextlib.suppress(FileNotFoundError, PermissionError):
            state = entry.stat(follow_symlinks=False)
            if state.st_uid != os.geteuid() or state.st_mtime >= before:
                continue
            if not is_held(entry.path, state.st_mtime >= stale):
                remove(entry.path) if is_scratch and _is_folder(entry) else os.unlink(entry.path)


def shrink(path: str, limit: int, ending: str) -> None:
    """Remove the oldest files with an ending until the rest takes at most `limit` bytes. Raises
    OSError."""
    entries = [entry for entry in _list_entries(path) if entry.name.endswith(ending)]
    states = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
    excess = sum(state.st_size for state, _ in states) - limit
    for state, file in sorted(states, key=lambda item: item[0].st_mtime):
        if excess <= 0:
            break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
        excess -= state.st_size


def keep_latest(path: str, prefix: str, ending: str, count: int) -> None:
    """Remove all but the `count` latest of our files with a prefix and an ending; OSError."""
    entries = [
        file_entry
        for file_entry in _list_entries(path)
        if file_entry.name.startswith(prefix) and file_entry.name.endswith(ending)
    ]
    states = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
    user_files = [
        (state.st_mtime_ns, file) for state, file in states if state.st_uid == os.geteuid()
    ]
    for _, file in sorted(user_files)[: max(0, len(user_files) - count)]:
        with contextlib.suppress(OSError):
            os.unlink(file)


def _list_entries(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return list(entries)


def read_package_text(path: str) -> str:
    """Return the text of a file of the package, which may have been imported from an archive."""
    loader: Any = globals().get("__loader__")
    archive = getattr(loader, "archive", None)
    if archive is not None and path.startswith(archive):
        data: bytes = loader.get_data(path)
        return data.decode("utf-8").replace("\r\n", "\n")
    with open(path, encoding="utf-8") as file:  # which needs no import at interpreter exit
        return file.read()


def descriptor_shortage(problem: OSError) -> CdBackendError | None:
    """Return the error CD0814 of a process out of file descriptors, None for another error."""
    if problem.errno not in _DESCRIPTOR_ERRORS:
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
