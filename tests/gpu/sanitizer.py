"""The tools of compute-sanitizer over real runs; each has to report a fault that is planted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from plusequals.backends.cuda import nvrtc

from .machine import Cuda

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
STATUS = 66
"""How a run ends in which something was reported."""
PATIENCE = 3600
"""Seconds that a run under a tool may take."""
WRONG = {
    "memcheck": 'extern "C" __global__ void wrong(float *x) { x[1 << 28] = 1.0f; }',
    "racecheck": """
extern "C" __global__ void wrong(float *x)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}""",
    "synccheck": """
extern "C" __global__ void wrong(float *x)
{
    if (threadIdx.x < 48 + (int)x[0]) { __syncthreads(); return; }
    x[threadIdx.x] = 1.0f;
    __syncthreads();
    x[threadIdx.x] = 2.0f;
    __syncthreads();
}""",
    "initcheck": 'extern "C" __global__ void wrong(float *x) { x[0] = x[500 + threadIdx.x] + 1; }',
}
"""What each tool has to report, or its silence about the rest says nothing."""


def plant(tool: str) -> None:
    """Do what is wrong, on the device."""
    machine = Cuda()
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        made = nvrtc.find(machine.facts.newest).build(
            WRONG[tool], machine.facts.target, Path(folder)
        )
    x = machine.allocate(4096)
    if tool != "initcheck":
        machine.clear(x, 4096)
    machine.launch(machine.function(made.code, "wrong", 1), (1, 1, 1), (64, 1, 1), (x,))
    machine.download(np.zeros(1024, np.float32), x)


def command(tool: str, inside: str) -> list[str]:
    """Return the command that runs a part of this package under a tool."""
    found = shutil.which("compute-sanitizer") or "compute-sanitizer"
    options = ["--tool", tool, "--error-exitcode", str(STATUS), "--target-processes", "all"]
    return [found, *options, sys.executable, "-m", "tests.gpu", "--inside", inside]


def checked(tool: str, root: Path) -> tuple[bool, str]:
    """Return whether a tool reports what was planted, and nothing else; and what to say."""
    if shutil.which("compute-sanitizer") is None:
        return True, f"{tool}: not run, compute-sanitizer is not installed"
    planted = _run(command(tool, f"wrong {tool}"), root)
    if planted.returncode != STATUS:
        return False, f"{tool}: a planted fault was not noticed\n{planted.stdout[-5000:]}"
    done = _run(command(tool, "nests"), root)
    if done.returncode:
        return False, f"{tool}: status {done.returncode}\n{done.stdout[-20_000:]}"
    return True, f"{tool}: clean"


def _run(words: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Return how a command ended and what it said; one that hangs is ended."""
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        return subprocess.run(words, cwd=root, **pipe, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired as late:
        said = (
            late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout
        )
        return subprocess.CompletedProcess(words, 124, f"{said or ''}\nit took {PATIENCE} seconds")
