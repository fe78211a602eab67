"""Persistent cache of compiled code: one self-checking file per entry, in a private folder.

An entry is a header (magic, schema, key, length, SHA-256) and a payload (JSON metadata, generated
source, object). It is written under a temporary name and renamed, so that updates are atomic; it is
read without following links, and its owner, mode, size and digest are checked before use. Errors
never fail a user's call: an untrusted entry is reported once and compiled again, code that cannot
be written stays in memory. Missing entries are looked up in the folder of the setting
`shared_cache_dir`, which is read-only; `export` writes one.
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
from ...base.lazy_import import LazyModule
from ...base.process_state import State, register
from .file_lock import FileLockContext, hold_path, try_hold
from .folders import Untrusted, make_first, open_folder, open_shared, remove, shrink, sweep
from .folders import temporary_folders as temporary

if TYPE_CHECKING:
    import pwd
else:
    pwd = LazyModule("pwd", None)

_FOLDERS = ("backends", "dsl", "lowering")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = 1
"""The version of the entry format, a part of the folder's name and of every key."""
MAGIC = b"pluseq\r\n"
_HEADER = struct.Struct("<8sI32sQ32s")
_PARTS = struct.Struct("<IQ")
_STALE = 24 * 3600.0
"""The age in seconds at which files are swept whose process cannot be determined."""
_YOUNG = 10.0
"""The age in seconds below which a new file or folder may not be locked yet."""
_ROOM = 4 << 20
"""The free bytes that a compilation may need."""
_SCRATCH = "plusequals-build-"
"""The name prefix of scratch folders."""


_warned: set[tuple[str, str]] = set()
"""The warnings issued so far, by folder and text."""
register(
    lambda: State(
        name="warnings of the cache that were given",
        owner=__name__,
        holders=("_warned",),
        lock="the interpreter's lock",
        on_reset="they are given again",
        reset=_warned.clear,
    )
)
register(
    lambda: State(
        name="files on disk: compiled code, what was seen of functions, answers of compilers",
        owner=__name__,
        lock="a lock file for each entry",
        in_child="shared",
        on_reset="kept; tests set `PLUSEQUALS_CACHE_DIR`",
    )
)


class CacheWarning(RuntimeWarning):
    """The cache could not be used as requested; the call itself is unaffected."""


class Entry(NamedTuple):
    """The content of a cache entry."""

    metadata: dict[str, Any]
    source: str
    object: bytes


def cache_key(**parts: object) -> str:
    """Return the key of all inputs of a compilation, as 64 hexadecimal digits.

    The sources of this folder are inputs, as they determine the calling convention of compiled
    code; the front end is not, as its result is the text.
    """
    parts |= {"schema": SCHEMA, "package": package_digest("backends")}
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def package_digest(*folders: str) -> str:
    """Return a digest of the package's sources in folders, of all sources without arguments.

    It is cached on disk under the stamp of the sources, since reading them takes milliseconds.
    """
    key = hashlib.sha256(f"{SCHEMA} {folders} {package_stamp()}".encode()).hexdigest()
    disk = Cache()
    entry = disk.get(key)
    if entry is None:
        entry = Entry({"digest": _digest_of_sources(folders)}, "", b"")
        if is_unchanged():  # otherwise the digest is not that of the running code
            disk.put(key, entry)
    digest: str = entry.metadata["digest"]
    return digest


def _digest_of_sources(folders: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for folder in folders or _FOLDERS:
        for path in _sources(folder):
            digest.update(path.removeprefix(_PACKAGE + os.sep).encode() + b"\0")
            with open(path, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


@cache
def package_stamp() -> str:
    """Return a fingerprint of the package's sources from their file status, without reading them.

    It is memoized at the first call, so that it is that of the running code if called early."""
    return _stamp()


def is_unchanged() -> bool:
    """Whether the package's sources are unchanged since the first call of `package_stamp`."""
    return _stamp() == package_stamp()


def _stamp() -> str:
    stamps: list[object] = []
    for folder in _FOLDERS:
        for path in _sources(folder):
            state = os.stat(path)
            stamps += path, state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns
    return hashlib.sha256(repr(stamps).encode()).hexdigest()


def _sources(folder: str) -> Iterator[str]:
    """Yield the paths of the package's sources in a folder, or of the archive that it was imported
    from."""
    archive: str | None = getattr(globals().get("__loader__"), "archive", None)
    yield from _files(os.path.join(_PACKAGE, folder)) if archive is None else (archive,)


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        items = sorted(entries, key=lambda item: item.name)
    for item in items:
        if item.name.endswith((".py", ".c", ".h", ".cu")):
            yield item.path
        elif item.name != "__pycache__" and item.is_dir():
            yield from _files(item.path)


def pack(key: str, entry: Entry) -> bytes:
    """Return an entry serialized for its file."""
    metadata = json.dumps(entry.metadata, sort_keys=True).encode()
    source = entry.source.encode()
    payload = _PARTS.pack(len(metadata), len(source)) + metadata + source + entry.object
    name = bytes.fromhex(key)
    digest = hashlib.sha256(name + payload).digest()
    return _HEADER.pack(MAGIC, SCHEMA, name, len(payload), digest) + payload


def unpack(key: str, data: bytes) -> Entry:
    """Return the entry of a file's bytes; raises Untrusted unless header and digest match.

    >>> entry = Entry({"entry": "f"}, "int f;", b"code")
    >>> unpack("ab" * 32, pack("ab" * 32, entry)) == entry
    True
    """
    if len(data) < _HEADER.size + _PARTS.size:
        raise Untrusted("it is cut short")
    magic, schema, name, length, digest = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if (magic, schema, name) != (MAGIC, SCHEMA, bytes.fromhex(key)):
        raise Untrusted("its header is not that of this entry")
    if length != len(payload):
        raise Untrusted("its length is not what its header says")
    if hashlib.sha256(name + payload).digest() != digest:
        raise Untrusted("its content does not match its digest")
    metadata, source = _PARTS.unpack_from(payload)
    rest = bytes(payload[_PARTS.size :])
    text = rest[metadata : metadata + source].decode()
    return Entry(json.loads(rest[:metadata]), text, rest[metadata + source :])


class Cache:
    """The cache of the current settings; safe for concurrent threads and processes."""

    def __init__(self) -> None:
        self._swept: set[str] = set()

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, None where there is no trusted one.

        It is looked up in the user's folder, then in the shared one, if any.
        """
        return self._read_private(key) or self._read_shared(key)

    def _read_private(self, key: str) -> Entry | None:
        with self._folder(create=False) as folder:
            if folder is None:
                return None
            try:
                return unpack(key, _read(folder, _name(key), (os.geteuid(),)))
            except FileNotFoundError:
                return None
            except (Untrusted, OSError, ValueError) as why:
                self._warn(f"the cached entry {key[:12]} is not used, and made again: {why}")
                return None

    def _read_shared(self, key: str) -> Entry | None:
        """Return the entry of the shared folder, which is read-only."""
        chosen = settings.current()
        if not chosen.cache or not chosen.shared_cache_dir:
            return None
        path = shared_root()
        try:
            folder, writers = _open_shared()
        except (Untrusted, OSError) as why:
            self._warn(f"the shared cache {path} is not used: {why}")
            return None
        try:
            return unpack(key, _read(folder, _name(key), writers))
        except FileNotFoundError:
            return None
        except (Untrusted, OSError, ValueError) as why:
            self._warn(f"the entry {key[:12]} of the shared cache {path} is not used: {why}")
            return None
        finally:
            os.close(folder)

    def put(self, key: str, entry: Entry) -> bool:
        """Write an entry, replacing an existing one; return whether it succeeded."""
        with self._folder(create=True) as folder:
            if folder is None:
                return False
            try:
                _write(folder, _name(key), pack(key, entry))
            except OSError as why:
                self._warn(f"compiled code could not be kept on disk: {why.strerror or why}")
                return False
            self._sweep(root())
            return True

    def building(self, key: str) -> contextlib.AbstractContextManager[object]:
        """Lock the building of a key against other processes in the `with`, best effort.

        The lock of the operating system ends with its process. A process that waits longer than
        the setting `cache_timeout` builds as well, which only costs time.
        """
        with self._folder(create=True) as folder:
            usable = folder is not None
        if not usable:
            return contextlib.nullcontext()
        return FileLockContext(
            os.path.join(root(), f"lock-{key[:2]}"), settings.current().cache_timeout
        )

    @contextlib.contextmanager
    def scratch(self) -> Iterator[str]:
        """Yield a new private folder, in the cache where that is writable, and remove it after."""
        with self._folder(create=True) as folder:
            usable = folder is not None
        scratch_folder = make_first(_homes(usable), _SCRATCH)
        lock = hold_path(scratch_folder)  # protects it from sweeping until this process ends
        if not usable:
            self._sweep(os.path.dirname(scratch_folder))
        try:
            yield scratch_folder
        finally:
            remove(scratch_folder)
            if lock is not None:
                os.close(lock)

    @contextlib.contextmanager
    def _folder(self, create: bool) -> Iterator[int | None]:
        """Yield a descriptor of the folder of entries, None where it is missing or not private."""
        opened: int | None = None
        if settings.current().cache:
            try:
                opened = open_folder(root(), create)
            except FileNotFoundError:
                pass
            except (Untrusted, OSError) as why:
                self._warn(f"the cache {root()} is not used: {why}; set `cache_dir` for another")
        try:
            yield opened
        finally:
            if opened is not None:
                os.close(opened)

    def _warn(self, text: str) -> None:
        warning = root(), text
        if warning not in _warned:
            _warned.add(warning)
            warnings.warn(CacheWarning(text), stacklevel=_package_frame_count())

    def _sweep(self, folder: str) -> None:
        """Remove, once per process, leftovers of killed processes and entries over the limit."""
        if folder in self._swept:
            return
        self._swept.add(folder)
        now = time.time()
        with contextlib.suppress(OSError):
            sweep(folder, now - _YOUNG, now - _STALE, _SCRATCH, ".entry.", ".tmp")
            shrink(folder, settings.current().cache_size * 2**20, ".entry")


def export(folder: str) -> tuple[int, int]:
    """Copy all valid entries of the user's cache into a shared one, readable by everybody and
    writable by the caller only; return their number and their size in bytes.

    Raises Untrusted where others could write to the folder, and OSError.
    """
    target = _shared_root(folder)
    count = size = 0
    with Cache()._folder(create=False) as cache_folder:
        os.makedirs(target, 0o755, exist_ok=True)
        target_folder = open_shared(target, (os.geteuid(),))
        try:
            for name in [] if cache_folder is None else sorted(os.listdir(cache_folder)):
                key, ending = os.path.splitext(name)
                with contextlib.suppress(Untrusted, ValueError, FileNotFoundError):
                    if ending == ".entry" and cache_folder is not None:
                        data = _read(cache_folder, name, (os.geteuid(),))
                        unpack(key, data)
                        _write(target_folder, name, data, 0o644)
                        count, size = count + 1, size + len(data)
        finally:
            os.close(target_folder)
    return count, size


def shared_root() -> str:
    """Return the path of the shared folder of entries under the current settings."""
    return _shared_root(settings.current().shared_cache_dir)


def shared_problem() -> str | None:
    """Return why the shared folder is not used, None where it is."""
    try:
        os.close(_open_shared()[0])
    except (Untrusted, OSError) as why:
        return str(why)
    return None


def _open_shared() -> tuple[int, tuple[int, ...]]:
    """Return a descriptor of the shared folder and the trusted users; raises Untrusted, OSError."""
    writers = _writers(settings.current().shared_cache_owner)
    return open_shared(shared_root(), writers), writers


def _shared_root(folder: str) -> str:
    return os.path.join(os.path.realpath(os.path.expanduser(folder)), f"v{SCHEMA}")


def _writers(owner: str) -> tuple[int, ...]:
    """Return the users whose entries in a shared cache are trusted: the caller, root, and the one
    of a name or number. Raises Untrusted where there is no such user."""
    try:
        user = int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise Untrusted(f"there is no user `{owner}` (the setting `shared_cache_owner`)") from None
    return os.geteuid(), 0, user


def root() -> str:
    """Return the path of the folder of entries under the current settings; it may not exist."""
    chosen = settings.current().cache_dir
    base = os.path.join(os.path.expanduser(chosen) if chosen else _user_cache(), f"v{SCHEMA}")
    with contextlib.suppress(FileNotFoundError):  # the current folder was removed
        return os.path.abspath(base)
    return base


def _user_cache() -> str:
    """Return the user's cache folder, as `platformdirs` defines it.

    On Linux it follows from one variable, without importing that package, which takes 5 ms.
    """
    if sys.platform == "linux" and not settings.variable("ANDROID_DATA"):
        base = settings.variable("XDG_CACHE_HOME")
        is_absolute = os.path.isabs(
            base
        )  # relative ones are to be ignored, by the XDG specification
        return os.path.join(base if is_absolute else os.path.expanduser("~/.cache"), "plusequals")
    from platformdirs import user_cache_dir  # costs start-up, and only used here

    return user_cache_dir("plusequals")


def _homes(usable: bool) -> Iterator[str]:
    """Yield candidate parents of scratch folders: the cache first if usable, full ones last."""
    candidates = [root()] if usable else []
    for folder in (*temporary(), "/dev/shm"):
        with contextlib.suppress(FileNotFoundError):  # the current folder was removed
            candidates.append(os.path.abspath(folder))
    yield from sorted(candidates, key=_is_full)


def _is_full(folder: str) -> bool:
    """Whether a folder has less free space than a compilation may need."""
    try:
        status = os.statvfs(folder)
    except (AttributeError, OSError):  # not on this system, or no folder
        return False
    return status.f_bavail * status.f_frsize < _ROOM


def _package_frame_count() -> int:
    """Return how many frames above its caller's the user's line is."""
    count, frame = 1, sys._getframe(1)
    package_prefixes = _PACKAGE, contextlib.__file__
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package_prefixes):
        count, frame = count + 1, frame.f_back
    return count


def _name(key: str) -> str:
    return f"{key}.entry"


def _read(folder: int, name: str, owners: Sequence[int]) -> bytes:
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(opened, "rb") as file:
        state = os.fstat(opened)
        if not stat.S_ISREG(state.st_mode):
            raise Untrusted("it is not a file")
        if state.st_uid not in owners or state.st_mode & 0o022:
            raise Untrusted("others than its owner can write it")
        return file.read()


def _write(folder: int, name: str, data: bytes, mode: int = 0o600) -> None:
    temporary = f"{name}.{os.getpid()}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    opened = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            try_hold(opened)  # protects it from sweeping until it is renamed
            file.write(data)
            if mode != 0o600:
                os.fchmod(opened, mode)
        try:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:  # not one of our files
            aside = f"{_SCRATCH}{os.urandom(8).hex()}"  # which is swept like scratch folders
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
