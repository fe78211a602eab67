"""`cuda.bindings`, and PyCUDA, themselves, over a driver library that this processor plays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from . import on_libcuda
from .on_cpu import needs_gxx

ROOT = Path(__file__).resolve().parents[3]


def folder_of(package: str) -> Path | None:
    """Return where a package is, None where it is not installed."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # not even what it is a part of
        return None
    return None if found is None or found.origin is None else Path(found.origin).parent


def library(folder: Path, package: str) -> None:
    """Put the library into a folder, with all that a package has to find in it."""
    compiler, where = shutil.which("gcc") or shutil.which("g++"), folder_of(package)
    assert compiler is not None and where is not None, "there is g++, and the package"
    rest = folder / "rest.c"
    rest.write_text(on_libcuda.rest(where) if package == "pycuda" else "", "ascii")
    sources = [str(Path(__file__).with_name("libcuda.c")), str(rest)]
    flags = ["-x", "c", "-O1", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1"]
    made = ["-o", str(folder / "libcuda.so.1"), "-ldl", "-lpthread"]
    command = [compiler, *flags, *sources, *made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_gxx
@pytest.mark.parametrize(
    ("package", "pools"), [("cuda.bindings", True), ("cuda.bindings", False), ("pycuda", False)]
)
def test_a_package_does_what_is_asked_of_it(package: str, pools: bool, tmp_path: Path) -> None:
    if folder_of(package) is None or sys.platform != "linux":
        pytest.skip(f"no {package} on this machine: its verbs were not called")
    library(tmp_path, package)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths),
        "PLUSEQUALS_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    if not pools:
        environment["PE_NO_POOLS"] = "1"
    words = [sys.executable, "-m", "tests.backends.cuda.on_libcuda", package]
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    assert done.stdout.endswith("(13, 0)\n")
