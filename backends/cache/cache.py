"""Compiled code on disk: one self-checking file per entry, in a folder only its owner can write.

An entry is a header (magic, schema, key, length, SHA-256) and a payload (JSON metadata, generated
source, object). It is written beside its place and renamed, so a reader meets all of it or none;
it is read without following links, and its owner, mode, size and digest are checked before a byte
of it is used. Nothing here fails a user's call: what cannot be trusted is told once and compiled
again, what cannot be written stays in memory. What is not there is looked for in the folder of the
setting `shared_cache_dir`, which is only read; `export` writes one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base import settings
from ...base.lazy_import import Later
from .file_lock import held, hold, locked
from .folders import Refused, first_made, open_folder, open_shared, remove, shrink, sweep, temporary

if TYPE_CHECKING:
    import pwd
else:
    pwd = Later("pwd", None)

_FOLDERS = ("backends", "dsl", "lowering")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = 1
"""Part of the folder's name and of every key: raised when the format of an entry changes."""
MAGIC = b"pluseq\r\n"
_HEADER = struct.Struct("<8sI32sQ32s")
_PARTS = struct.Struct("<IQ")
_STALE = 24 * 3600.0
"""Seconds after which what nobody can say of whether its process lives is swept away."""
_YOUNG = 10.0
"""Seconds in which a new file or folder may not have its lock yet."""
_ROOM = 4 << 20
"""Bytes that a compilation may take."""
_SCRATCH = "plusequals-build-"
"""What the names of folders begin with in which something is compiled."""


_told: set[tuple[str, str]] = set()
"""What was told already, of which folder."""


class CacheWarning(RuntimeWarning):
    """The cache could not be used as asked; the call itself is unharmed."""


class Entry(NamedTuple):
    """What one key stands for."""

    metadata: dict[str, Any]
    source: str
    object: bytes


def content_key(**parts: object) -> str:
    """Return the key of everything that decides what is compiled, as 64 hexadecimal digits.

    The sources of this folder are part of it, because they decide how compiled code is called; the
    front of the package is not, because all that it decides is in the text.
    """
    parts |= {"schema": SCHEMA, "package": package_digest("backends")}
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def package_digest(*folders: str) -> str:
    """Return a digest of the package's own sources in those folders, of all without any.

    It is on disk under the stamp of the sources, since reading them all takes some milliseconds.
    """
    key = hashlib.sha256(f"{SCHEMA} {folders} {package_stamp()}".encode()).hexdigest()
    disk = Cache()
    entry = disk.get(key)
    if entry is None:
        entry = Entry({"digest": _digest_of_sources(folders)}, "", b"")
        if is_unchanged():  # or the digest is of sources that this process does not run
            disk.put(key, entry)
    digest: str = entry.metadata["digest"]
    return digest


def _digest_of_sources(folders: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for folder in folders or _FOLDERS:
        for found in _sources(folder):
            digest.update(found.removeprefix(_PACKAGE + os.sep).encode() + b"\0")
            with open(found, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


@cache
def package_stamp() -> str:
    """Return what changes whenever one of the package's own sources does, without reading them.

    It is that of the first time: of what this process runs, if it was soon asked for."""
    return _stamp()


def is_unchanged() -> bool:
    """Whether the package's own sources are still those of the first time."""
    return _stamp() == package_stamp()


def _stamp() -> str:
    stamps: list[object] = []
    for folder in _FOLDERS:
        for found in _sources(folder):
            state = os.stat(found)
            stamps += found, state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns
    return hashlib.sha256(repr(stamps).encode()).hexdigest()


def _sources(folder: str) -> Iterator[str]:
    """Yield the paths of the package's own sources in a folder: where it was imported from an
    archive, that of the archive."""
    archive: str | None = getattr(globals().get("__loader__"), "archive", None)
    yield from _files(os.path.join(_PACKAGE, folder)) if archive is None else (archive,)


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith((".py", ".c", ".h", ".cu")):
            yield entry.path
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _files(entry.path)


def pack(key: str, entry: Entry) -> bytes:
    """Return the bytes of an entry's file."""
    metadata = json.dumps(entry.metadata, sort_keys=True).encode()
    source = entry.source.encode()
    payload = _PARTS.pack(len(metadata), len(source)) + metadata + source + entry.object
    name = bytes.fromhex(key)
    digest = hashlib.sha256(name + payload).digest()
    return _HEADER.pack(MAGIC, SCHEMA, name, len(payload), digest) + payload


def unpack(key: str, data: bytes) -> Entry:
    """Return the entry in the bytes of a file; raises Refused unless every byte is accounted for.

    >>> entry = Entry({"entry": "f"}, "int f;", b"code")
    >>> unpack("ab" * 32, pack("ab" * 32, entry)) == entry
    True
    """
    if len(data) < _HEADER.size + _PARTS.size:
        raise Refused("it is cut short")
    magic, schema, name, length, digest = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if (magic, schema, name) != (MAGIC, SCHEMA, bytes.fromhex(key)):
        raise Refused("its header is not that of this entry")
    if length != len(payload):
        raise Refused("its length is not what its header says")
    if hashlib.sha256(name + payload).digest() != digest:
        raise Refused("its content does not match its digest")
    metadata, source = _PARTS.unpack_from(payload)
    rest = bytes(payload[_PARTS.size :])
    text = rest[metadata : metadata + source].decode()
    return Entry(json.loads(rest[:metadata]), text, rest[metadata + source :])


class Cache:
    """The folder of entries. One instance may be used by any number of threads and processes."""

    def __init__(self) -> None:
        self._swept: set[str] = set()

    def get(self, key: str) -> Entry | None:
        """Return the entry, None where there is none that can be trusted.

        It is looked for in the user's own folder, then in the shared one, if there is one.
        """
        return self._own(key) or self._shared(key)

    def _own(self, key: str) -> Entry | None:
        with self._folder(create=False) as folder:
            if folder is None:
                return None
            try:
                return unpack(key, _read(folder, _name(key), (os.geteuid(),)))
            except FileNotFoundError:
                return None
            except (Refused, OSError, ValueError) as why:
                self._tell(f"the cached entry {key[:12]} is not used, and made again: {why}")
                return None

    def _shared(self, key: str) -> Entry | None:
        """Return the entry of the shared folder: read, never written."""
        chosen = settings.current()
        if not chosen.cache or not chosen.shared_cache_dir:
            return None
        path = shared_root()
        try:
            folder, writers = _open_shared()
        except (Refused, OSError) as why:
            self._tell(f"the shared cache {path} is not used: {why}")
            return None
        try:
            return unpack(key, _read(folder, _name(key), writers))
        except FileNotFoundError:
            return None
        except (Refused, OSError, ValueError) as why:
            self._tell(f"the entry {key[:12]} of the shared cache {path} is not used: {why}")
            return None
        finally:
            os.close(folder)

    def put(self, key: str, entry: Entry) -> bool:
        """Write the entry, replacing what was there; return whether that worked."""
        with self._folder(create=True) as folder:
            if folder is None:
                return False
            try:
                _write(folder, _name(key), pack(key, entry))
            except OSError as why:
                self._tell(f"compiled code could not be kept on disk: {why.strerror or why}")
                return False
            self._sweep(root())
            return True

    def building(self, key: str) -> contextlib.AbstractContextManager[object]:
        """Keep other processes from building this key inside the `with`, as far as can be.

        The lock is the operating system's: it ends with its process. Who waits longer than the
        setting `cache_timeout` builds as well, which costs time and nothing else.
        """
        with self._folder(create=True) as folder:
            usable = folder is not None
        if not usable:
            return contextlib.nullcontext()
        return locked(os.path.join(root(), f"lock-{key[:2]}"), settings.current().cache_timeout)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[str]:
        """Yield a new private folder, in the cache where that can be written, and remove it."""
        with self._folder(create=True) as folder:
            usable = folder is not None
        made = first_made(_homes(usable), _SCRATCH)
        holding = held(made)  # nobody sweeps it until this process ends
        if not usable:
            self._sweep(os.path.dirname(made))
        try:
            yield made
        finally:
            remove(made)
            if holding is not None:
                os.close(holding)

    @contextlib.contextmanager
    def _folder(self, create: bool) -> Iterator[int | None]:
        """Yield the opened folder of entries, None where there is none or it is not ours alone."""
        opened: int | None = None
        if settings.current().cache:
            try:
                opened = open_folder(root(), create)
            except FileNotFoundError:
                pass
            except (Refused, OSError) as why:
                self._tell(f"the cache {root()} is not used: {why}; set `cache_dir` for another")
        try:
            yield opened
        finally:
            if opened is not None:
                os.close(opened)

    def _tell(self, text: str) -> None:
        said = root(), text
        if said not in _told:
            _told.add(said)
            warnings.warn(CacheWarning(text), stacklevel=_frames_inside())

    def _sweep(self, here: str) -> None:
        """Remove, once per process, what killed processes left and what exceeds the size limit."""
        if here in self._swept:
            return
        self._swept.add(here)
        now = time.time()
        with contextlib.suppress(OSError):
            sweep(here, now - _YOUNG, now - _STALE, _SCRATCH, ".entry.", ".tmp")
            shrink(here, settings.current().cache_size * 2**20, ".entry")


def export(folder: str) -> tuple[int, int]:
    """Copy every sound entry of the user's own cache into a shared one, readable by everybody and
    writable by the caller only; return how many, and how many bytes they take.

    Raises Refused where others could write to the folder, and OSError.
    """
    target = _shared_root(folder)
    count = size = 0
    with Cache()._folder(create=False) as own:
        os.makedirs(target, 0o755, exist_ok=True)
        there = open_shared(target, (os.geteuid(),))
        try:
            for name in [] if own is None else sorted(os.listdir(own)):
                key, ending = os.path.splitext(name)
                with contextlib.suppress(Refused, ValueError, FileNotFoundError):
                    if ending == ".entry" and own is not None:
                        data = _read(own, name, (os.geteuid(),))
                        unpack(key, data)
                        _write(there, name, data, 0o644)
                        count, size = count + 1, size + len(data)
        finally:
            os.close(there)
    return count, size


def shared_root() -> str:
    """Return the path of the shared folder of entries under the current settings."""
    return _shared_root(settings.current().shared_cache_dir)


def shared_problem() -> str | None:
    """Return why the shared folder is not used, None where it is."""
    try:
        os.close(_open_shared()[0])
    except (Refused, OSError) as why:
        return str(why)
    return None


def _open_shared() -> tuple[int, tuple[int, ...]]:
    """Return the opened shared folder and the users that are believed; raises Refused, OSError."""
    writers = _writers(settings.current().shared_cache_owner)
    return open_shared(shared_root(), writers), writers


def _shared_root(folder: str) -> str:
    return os.path.join(os.path.realpath(os.path.expanduser(folder)), f"v{SCHEMA}")


def _writers(owner: str) -> tuple[int, ...]:
    """Return the users whose entries are believed in a shared cache: the caller, root, and the one
    of that name or number. Raises Refused where there is no such user."""
    try:
        named = int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise Refused(f"there is no user `{owner}` (the setting `shared_cache_owner`)") from None
    return os.geteuid(), 0, named


def root() -> str:
    """Return the path of the folder of entries under the current settings, whether it exists."""
    chosen = settings.current().cache_dir
    base = os.path.join(os.path.expanduser(chosen) if chosen else _user_cache(), f"v{SCHEMA}")
    with contextlib.suppress(FileNotFoundError):  # the current folder was removed
        return os.path.abspath(base)
    return base


def _user_cache() -> str:
    """Return the user's own folder for what can be made again, as `platformdirs` knows it.

    Where that is a matter of one variable it is not asked: importing it takes 5 ms.
    """
    if sys.platform == "linux" and not settings.variable("ANDROID_DATA"):
        base = settings.variable("XDG_CACHE_HOME")
        is_given = os.path.isabs(base)  # others are to be ignored, says who has thought of it
        return os.path.join(base if is_given else os.path.expanduser("~/.cache"), "plusequals")
    from platformdirs import user_cache_dir  # costs start-up, and only used here

    return user_cache_dir("plusequals")


def _homes(usable: bool) -> Iterator[str]:
    """Yield where there may be folders to compile in, the cache first if it is usable, and those
    with hardly any room last."""
    homes = [root()] if usable else []
    for folder in (*temporary(), "/dev/shm"):
        with contextlib.suppress(FileNotFoundError):  # the current folder was removed
            homes.append(os.path.abspath(folder))
    yield from sorted(homes, key=_is_full)


def _is_full(folder: str) -> bool:
    """Whether a folder has less room than a compilation may take."""
    try:
        found = os.statvfs(folder)
    except (AttributeError, OSError):  # not on this system, or no folder
        return False
    return found.f_bavail * found.f_frsize < _ROOM


def _frames_inside() -> int:
    """Return how many calls above its caller's the user's line is."""
    count, frame = 1, sys._getframe(1)
    own = _PACKAGE, contextlib.__file__
    while frame.f_back is not None and frame.f_code.co_filename.startswith(own):
        count, frame = count + 1, frame.f_back
    return count


def _name(key: str) -> str:
    return f"{key}.entry"


def _read(folder: int, name: str, owners: Sequence[int]) -> bytes:
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise Refused("it is not a file")
        if found.st_uid not in owners or found.st_mode & 0o022:
            raise Refused("others than its owner can write it")
        return file.read()


def _write(folder: int, name: str, data: bytes, mode: int = 0o600) -> None:
    temporary = f"{name}.{os.getpid()}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    opened = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            hold(opened)  # until it has its name: nobody sweeps it
            file.write(data)
            if mode != 0o600:
                os.fchmod(opened, mode)
        try:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:  # nothing of ours
            aside = f"{_SCRATCH}{os.urandom(8).hex()}"  # it is swept as those are
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
