"""`python -m plusequals`: a report on backends, compiler, cache and changed settings.

It is the first thing to look at when something is slow or missing, and to send with a bug report.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from . import __version__
from .backends import registry
from .backends.cache import cache, folders
from .backends.cc import compiler, probe, toolchain
from .base import settings
from .base.diagnostic import CdError

Facts = list[tuple[str, str]]
OPTIONAL = ("pycuda", "cuda.bindings", "ziglang", "ml_dtypes")


USAGE = """\
usage: plusequals                      what is here: backends, compiler, cache, changed settings
       plusequals settings             every setting: its value here, its default, what it means
       plusequals cache share FOLDER   copy the cache into a folder that others may read
       plusequals --version | --help
"""


def main(words: Sequence[str] | None = None) -> int:
    """Print the report, or run the command in `words`: those of the command line unless given.

    Return 0 where the chosen backend can run or the command succeeded, 1 where not, 2 for an
    unknown command.
    """
    match sys.argv[1:] if words is None else words:
        case []:
            return _report()
        case ["settings"]:
            return _print_settings()
        case ["cache", "share", folder]:
            return _share(folder)
        case ["-V" | "--version"]:
            print(f"plusequals {__version__}")
            return 0
        case ["-h" | "--help"]:
            print(USAGE, end="")
            return 0
    print(USAGE, end="", file=sys.stderr)
    return 2


def _print_settings() -> int:
    """Print every setting and its environment variable."""
    try:
        now = settings.current()
    except CdError as why:
        print(why, file=sys.stderr)
        return 1
    for name, default, text in settings.describe():
        value = repr(getattr(now, name))
        print(f"{name} = {value}" + ("" if value == default else f"  (default: {default})"))
        print(f"    {settings.PREFIX}{name.upper()}: {text}")
    return 0


def _share(folder: str) -> int:
    """Copy the user's own cache into a folder for others."""
    try:
        count, size = cache.export(folder)
    except (folders.Untrusted, OSError, CdError) as why:
        print(f"nothing was shared: {why}", file=sys.stderr)
        return 1
    print(f"{count} entries, {size / 2**20:.1f} MB, are in {folder}; others use them by")
    print(f"  PLUSEQUALS_SHARED_CACHE_DIR={folder} PLUSEQUALS_SHARED_CACHE_OWNER={os.geteuid()}")
    return 0


def _report() -> int:
    sections: dict[str, Callable[[], Facts]] = {
        "versions": _versions,
        "cache": _cache,
        "backends": _backends,
        "compiler": _compiler,
        "settings that were changed": _settings,
    }
    for title, facts in sections.items():
        print(title)
        try:
            lines = facts()
        except (CdError, OSError) as why:
            lines = [("problem", str(why).replace("\n", "\n" + " " * 16))]
        for name, text in lines or [("none", "")]:
            print(f"  {name:<13} {text}".rstrip())
    try:
        return int(dict(_backends()).get(settings.current().backend) != "available")
    except CdError:
        return 1


def _versions() -> Facts:
    installed = [name for name in OPTIONAL if _is_installed(name)]
    return [
        ("plusequals", f"{__version__} in {Path(__file__).parent}"),
        ("python", f"{platform.python_version()} ({sys.executable})"),
        ("numpy", np.__version__),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"),
        ("also there", ", ".join(installed) or "none of " + ", ".join(OPTIONAL)),
    ]


def _is_installed(package: str) -> bool:
    """Whether a package could be imported; importing it would load its driver."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _backends() -> Facts:
    with settings.override(cache=False):  # probing leaves no files
        return list(registry.backends().items())


def _compiler() -> Facts:
    command = toolchain.find_compiler()
    with tempfile.TemporaryDirectory() as scratch:
        probed = probe.probe_compiler(command, scratch)
    environment = " ".join(probed.environment)
    return [
        ("command", " ".join(probed.command)),
        ("version", probed.name),
        ("flags", " ".join(compiler.compile_flags(probed))),
        ("processor", probed.target[:16]),
        ("environment", environment or "nothing that changes what it makes"),
    ]


def _cache() -> Facts:
    return [*_own_cache(), *_shared_cache()]


def _shared_cache() -> Facts:
    if not settings.current().shared_cache_dir:
        return []
    return [("shared", cache.shared_root()), ("", cache.shared_problem() or "it is used")]


def _own_cache() -> Facts:
    root = Path(cache.root())
    if not root.exists():
        return [("path", str(root)), ("state", "not there yet; made by the first compilation")]
    status = root.stat()
    entries = [path for path in root.iterdir() if path.is_file() and path.stat().st_size]
    size = sum(path.stat().st_size for path in entries)
    why = folders.trust_problem(str(root))
    return [
        ("path", str(root)),
        ("owner", _owner(root)),
        ("modes", f"{stat.S_IMODE(status.st_mode):04o}"),
        (
            "used",
            f"no: {why}" if why else "yes" if settings.current().cache else "no: switched off",
        ),
        ("holds", f"{len(entries)} files, {size / 2**20:.1f} MB"),
    ]


def _owner(path: Path) -> str:
    try:
        name = path.owner()
    except (KeyError, NotImplementedError):  # a user without a name, as in some containers
        name = str(path.stat().st_uid)
    return name + (" (you)" if path.stat().st_uid == os.geteuid() else " (not you)")


def _settings() -> Facts:
    now = settings.current()
    defaults = {name: default for name, default, _ in settings.describe()}
    values = {name: repr(getattr(now, name)) for name in defaults}
    return [(name, value) for name, value in values.items() if value != defaults[name]]


if __name__ == "__main__":
    sys.exit(main())
