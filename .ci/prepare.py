"""Make the virtual environment `.venv` of this checkout, with the standard library alone.

`prepare("test", "lint")` returns the environment's Python with the project and these extras
installed. A stamp of `pyproject.toml` makes every later call immediate.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv"
STAMP = HOME / "plusequals.json"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
COMPILERS = ("gcc", "clang", "cc")
LINKED = ("dsl", "lowering", "backends")


def prepare(*extras: str) -> Path:
    """Return the Python of `.venv`, made and filled first where something is missing.

    Without a C compiler on this machine the extra `zig` is added: a compiler as a package.
    Ends the process with one sentence where Python is too old or the set-up fails.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 -- run before anything is installed
        sys.exit("plusequals needs Python 3.11 or newer; this is " + sys.version.split()[0])
    _link()
    wanted = set(extras)
    if not os.environ.get("CC") and not any(map(shutil.which, COMPILERS)):
        wanted.add("zig")
    installed = _installed()
    if installed is None:
        _step(f"making {HOME.name}")
        venv.create(HOME, clear=True, with_pip=True)
    if installed is None or not wanted <= installed:
        wanted |= installed or set()
        _install(wanted)
        STAMP.write_text(json.dumps({"of": _fingerprint(), "extras": sorted(wanted)}))
    return PYTHON


def run(*command: str) -> None:
    """Replace this process's end by the command's: same output, same exit status."""
    sys.exit(subprocess.run([str(PYTHON), *command], cwd=ROOT, check=False).returncode)


def _link() -> None:
    """Make the links in `plusequals` where there are none: in an sdist, or as Git was set up."""
    for name in LINKED:
        link = ROOT / "plusequals" / name
        if link.is_dir():
            continue
        try:
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..", name), target_is_directory=True)
        except OSError as why:
            sys.exit(f"{link} has to be a link to the folder {ROOT / name}: {why}")


def _installed() -> set[str] | None:
    """The extras that are there, None where the environment is missing or out of date."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return None
    usable = stamp["of"] == _fingerprint() and PYTHON.exists()
    return set(stamp["extras"]) if usable else None


def _fingerprint() -> str:
    """A digest of what decides the environment's content; the place too, for it cannot be moved."""
    facts = f"{ROOT}\n{sys.version}\n".encode()
    return hashlib.sha256(facts + (ROOT / "pyproject.toml").read_bytes()).hexdigest()


def _install(extras: set[str]) -> None:
    _step(f"installing plusequals[{','.join(sorted(extras))}] (a minute or two, once)")
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    command = [*pip, "--editable", f"{ROOT}[{','.join(sorted(extras))}]"]
    shown = sys.stderr.isatty()
    done = subprocess.run(
        command if shown else [*command, "--quiet"], stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        sys.exit("the set-up failed; what pip said is above")


def _step(text: str) -> None:
    print(f"[set-up] {text}", file=sys.stderr, flush=True)
