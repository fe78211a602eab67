"""The sdist and the wheel hold the whole package, also where the checkout has no symbolic links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("pyproject.toml", "README.md", "LICENSE")
LINKED = ("dsl", "lowering", "backends")

BUILD = """
import os, sys
from hatchling import build

os.chdir(sys.argv[1])
print(getattr(build, f"build_{sys.argv[2]}")(sys.argv[3]))
"""

PROGRAM = """
import numpy as np
import plusequals
from plusequals import cd

@cd
def gram(c, a):
    c[i, j] = sum(a[i, k] * a[j, k])

c = np.zeros((2, 2))
gram(c, np.arange(6.0).reshape(2, 3))
print(plusequals.__file__)
print(c.tolist())
"""


def checkout(folder: Path, links: bool) -> Path:
    """Return a copy of what a build reads; without links, each is a file as Git writes it."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    for name in ("plusequals", *LINKED):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in LINKED:
        place = folder / "plusequals" / name
        if place.is_symlink() or place.exists():
            place.unlink()
        if links:
            place.symlink_to(Path("..", name), target_is_directory=True)
        else:
            place.write_text(f"../{name}")
    return folder


def built(folder: Path, kind: str) -> Path:
    """Return the sdist or the wheel that the build back end makes of a checkout."""
    made = folder / "dist"
    words = [sys.executable, "-c", BUILD, str(folder), kind, str(made)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return made / done.stdout.split()[-1]


def environment(folder: Path) -> Path:
    """Return the Python of a fresh environment that has what this one has but for the package."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    words = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    there = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    places = [path for path in sys.path if path.endswith("-packages")]
    Path(there, "others.pth").write_text("\n".join(places))  # .pth files in these are not read
    return python


def test_what_is_built_holds_the_package_with_and_without_links(tmp_path: Path) -> None:
    for name in ("linked", "plain", "elsewhere"):
        (tmp_path / name).mkdir()
    linked = checkout(tmp_path / "linked", links=True)
    plain = checkout(tmp_path / "plain", links=False)
    sources = {
        str(path.relative_to(ROOT / "plusequals")): path.read_bytes()
        for folder in ("", *LINKED)
        for path in (ROOT / "plusequals" / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    with zipfile.ZipFile(built(linked, "wheel")) as wheel:
        inside = {
            name.removeprefix("plusequals/"): wheel.read(name)
            for name in wheel.namelist()
            if name.startswith("plusequals/")
        }
    assert inside == sources

    sdist = built(plain, "sdist")
    with tarfile.open(sdist) as one, tarfile.open(built(linked, "sdist")) as other:
        assert sorted(one.getnames()) == sorted(other.getnames())

    python = environment(tmp_path / "environment")
    options = "--no-index --no-deps --no-build-isolation --no-compile --no-cache-dir".split()
    pip = [str(python), "-m", "pip", "install", *options, str(sdist)]  # it makes a wheel
    subprocess.run(pip, check=True, capture_output=True)
    program = tmp_path / "elsewhere" / "program.py"
    program.write_text(PROGRAM)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), str(program)],
        cwd=tmp_path / "elsewhere",
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    where, numbers = done.stdout.splitlines()
    installed = Path(where).parent
    assert tmp_path / "environment" in installed.parents
    assert {
        str(path.relative_to(installed)): path.read_bytes()
        for path in installed.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } == sources
    assert numbers == "[[5.0, 14.0], [14.0, 50.0]]"
