"""Environments of peers, made when they are first needed and kept in the user's cache folder.

Each is what a file in `requirements/` pins, and nothing is installed anywhere else. A peer that
cannot be installed is left out, and the table says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from .peers import Peer

REQUIREMENTS = Path(__file__).parent / "requirements"
LIMIT = 1800.0
"""Seconds after which an installation is given up."""
NOT_ON_INDEX = (
    "the build for processors is not on the package indexes that pip knows; "
    "PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS can name one that has it"
)


class NotInstalled(Exception):
    """A peer's environment cannot be made; says why."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer runs."""

    python: Path
    folder: Path | None
    """None where it is this Python's own."""


def home() -> Path:
    """Return the folder of all environments."""
    return user_cache_path("plusequals") / "benchmarks"


def environment(peer: Peer, say: Callable[[str], None], root: Path | None = None) -> Environment:
    """Return the environment of a peer, made where it is missing.

    Raises NotInstalled, which is not remembered: the next run tries again.
    """
    if peer.requirements is None:
        return Environment(Path(sys.executable), None)
    pinned = REQUIREMENTS / f"{peer.requirements}.txt"
    folder = (root or home()) / f"{peer.requirements}-{_digest(pinned)}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed"
    if not done.exists():
        say(f"installing {peer.title} (once)")
        try:
            _make(folder, python, pinned)
        except NotInstalled:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        done.touch()
    return Environment(python, folder)


def variables(threads: int, found: Environment, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a peer's process runs under: how many threads, which caches.

    Settings are those of plusequals. What the caller's own shell says of threads does not count.
    """
    count = str(threads)
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")
    left_out = ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    given = {name: value for name, value in os.environ.items() if name not in left_out}
    given |= {f"{name}_NUM_THREADS": count for name in names}
    given |= {f"PLUSEQUALS_{name.upper()}": value for name, value in settings.items()}
    given.setdefault("PLUSEQUALS_THREADS", count)
    given["PYTHONPATH"] = str(Path(__file__).parent.parent)
    given["JAX_PLATFORMS"] = "cpu"
    if found.folder is not None:
        given["TORCHINDUCTOR_CACHE_DIR"] = str(found.folder / "compiled")
    return given


def _digest(pinned: Path) -> str:
    facts = f"{sys.version}\n{sys.platform}\n{pinned.read_text()}"
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def _make(folder: Path, python: Path, pinned: Path) -> None:
    """Make an environment and fill it. Raises NotInstalled."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--only-binary", ":all:", "-r", str(pinned)])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"installing took more than {LIMIT:.0f} seconds") from None
    if done.returncode:
        raise NotInstalled(_reason(done.stderr or done.stdout))


def _reason(said: str) -> str:
    """Return why an installation failed, in one line."""
    if "No matching distribution found for torch" in said:
        return NOT_ON_INDEX
    errors = [line.strip() for line in said.splitlines() if "ERROR" in line] or ["pip failed"]
    return errors[-1].removeprefix("ERROR: ")
