"""Folders of files that only their owner may write: made, looked at before use, swept, removed.

Paths are texts here: importing `pathlib`, `shutil` or `tempfile` takes much of a short compilation.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable


class Refused(Exception):
    """A folder or a file that exists and is not to be trusted; says why."""


def distrust(path: str) -> str | None:
    """Return why what is stored under a folder cannot be trusted, None where it can.

    The folder has to be ours and writable by nobody else; so do the folders above it up to the
    home folder, where the system's own and those like `/tmp` (sticky) pass as well.
    """
    home = os.path.expanduser("~")
    folder = path
    while True:
        found = os.lstat(folder)
        if stat.S_ISLNK(found.st_mode):
            if folder == path:
                return f"{folder} is a link"
            found = os.stat(folder)
        if not stat.S_ISDIR(found.st_mode):
            return f"{folder} is not a folder"
        if found.st_uid != os.geteuid() and (folder == path or found.st_uid != 0):
            return f"{folder} belongs to another user"
        sticky = folder != path and found.st_mode & stat.S_ISVTX
        if found.st_mode & 0o022 and not sticky:
            return f"others can write to {folder} (`chmod go-w {folder}` makes it yours)"
        above = os.path.dirname(folder)
        if folder == home or above == folder:
            return None
        folder = above


def open_folder(path: str, create: bool) -> int:
    """Return an open folder, which is made where asked; raises Refused where it is not to be
    trusted, and OSError."""
    if create:
        _make(path)
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if why := distrust(path):
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


def sweep(path: str, before: float, prefix: str, ending: str) -> None:
    """Remove, of what was last written before a time, the folders whose names begin in one way
    and the files whose names end in the other. Raises OSError."""
    for found in _listed(path):
        if found.stat(follow_symlinks=False).st_mtime < before:
            if found.name.startswith(prefix):
                remove(found.path)
            elif found.name.endswith(ending):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(found.path)


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


def _listed(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return list(entries)
