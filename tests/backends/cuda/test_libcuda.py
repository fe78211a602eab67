"""`cuda.bindings` itself, over a driver library that this processor plays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .on_cpu import needs_gxx

ROOT = Path(__file__).resolve().parents[3]
needs_package = pytest.mark.skipif(
    find_spec("cuda") is None or find_spec("cuda.bindings") is None or not sys.platform == "linux",
    reason="no cuda.bindings on this machine: its verbs were not called",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    compiler = shutil.which("gcc") or shutil.which("g++")
    assert compiler is not None, "there is g++"
    source = Path(__file__).with_name("libcuda.c")
    flags = ["-x", "c", "-O1", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1"]
    command = [
        compiler,
        *flags,
        "-o",
        str(folder / "libcuda.so.1"),
        str(source),
        "-ldl",
        "-lpthread",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@needs_gxx
@needs_package
@pytest.mark.parametrize("pools", [True, False])
def test_the_package_does_what_is_asked_of_it(library: Path, pools: bool, tmp_path: Path) -> None:
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(library), "PYTHONPATH": str(ROOT),
        "PLUSEQUALS_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    if not pools:
        environment["PE_NO_POOLS"] = "1"
    words = [sys.executable, "-m", "tests.backends.cuda.on_libcuda"]
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    assert done.stdout.startswith("cuda.bindings ") and done.stdout.endswith("(13, 0)\n")
