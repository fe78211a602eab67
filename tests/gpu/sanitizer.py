"""The tools of compute-sanitizer over real runs; each has to report a fault that is planted."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from plusequals.backends.cuda import nvrtc

from . import abreast, nests, tensors
from .jobs import Job
from .machine import Cuda

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
STATUS = 66
"""How a run ends in which something was reported."""
BUDGET = 60.0
"""Seconds in which the processes under a tool begin with what they look at."""
START = 60.0
"""More seconds that a process under a tool may take, to start and to end what it has begun."""
SIZES = (5, 37)
PRODUCTS = ((65, 63, 66), (16, 17, 200))
NOISE = "========="
"""What lines of a tool begin with."""
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
    if (threadIdx.x % 2) __syncthreads();
    x[threadIdx.x] = 1.0f;
}""",
    "initcheck": 'extern "C" __global__ void wrong(float *x) { x[0] = x[500 + threadIdx.x] + 1; }',
}
"""What each tool has to report, or its silence about the rest says nothing."""


def plant(tool: str) -> None:
    """Do what is wrong, on the device."""
    machine = Cuda()
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        made = nvrtc.find_compiler(machine.facts.newest).build(
            WRONG[tool], machine.facts.target, Path(folder)
        )
    x = machine.allocate(4096)
    if tool != "initcheck":
        machine.clear(x, 4096)
    machine.launch(machine.function(made.code, "wrong", 1), (1, 1, 1), (64, 1, 1), (x,))
    machine.download(np.zeros(1024, np.float32), x)


def jobs() -> list[Job]:
    """Return what is looked at, in an order in which all kinds come early: time may be short."""
    found = [*nests.jobs(SIZES, "pt"), *tensors.jobs(PRODUCTS)]
    random.Random(1).shuffle(found)
    return found


def command(tool: str, *inside: str) -> list[str]:
    """Return the command that runs a part of this package under a tool."""
    found = shutil.which("compute-sanitizer") or "compute-sanitizer"
    options = ["--tool", tool, "--error-exitcode", str(STATUS), "--target-processes", "all"]
    return [found, *options, sys.executable, "-m", "tests.gpu", "--inside", *inside]


def commands(tool: str, seconds: float) -> dict[str, list[str]]:
    """Return what runs at the same time under a tool, by name: what has to be noticed, then the
    shares of all the rest."""
    found, count = {f"{tool} planted": command(tool, f"wrong {tool}")}, abreast.at_once()
    for at in range(1, count + 1):
        more = "--share", f"{at}/{count}", "--seconds", str(seconds)
        found[f"{tool} {at}/{count}"] = command(tool, "nests", *more)
    return found


def checked(tool: str, root: Path, seconds: float = BUDGET) -> tuple[bool, str]:
    """Return whether a tool reports what was planted, and nothing else; and what to say."""
    if shutil.which("compute-sanitizer") is None:
        return True, f"{tool}: not run, compute-sanitizer is not installed"

    def show(line: str) -> bool:
        return not line.startswith(NOISE)

    planted, *rest = abreast.run(commands(tool, seconds), tool, seconds + START, root, show)
    looked = f"{abreast.progress(rest)}"
    if planted.status != STATUS:
        said = "\n".join(planted.lines)[-5000:]
        return False, f"{tool}: a planted fault was not noticed; {looked}\n{said}"
    failed = [one for one in rest if one.status]
    for one in failed:
        told = "\n".join(one.lines)[-20_000 // len(failed) :]
        looked += f"\n{one.name}: status {one.status}\n{told}"
    return not failed, f"{tool}: {'not ' * bool(failed)}clean, {looked}"
