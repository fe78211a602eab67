"""Kernels are counted once, whichever process met them, and told at the end of a run."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from plusequals.backends.cuda.nvrtc import CompiledModule

from .counted import Counted, Counting, key_of

ROOT = Path(__file__).resolve().parent.parent
LOG = "".join(
    f"ptxas info    : Compiling entry function '{name}' for 'sm_90'\n"
    "ptxas info    : Used 18 registers, used 0 barriers\n"
    for name in ("a", "b")
)


class Said:
    """A compiler that makes nothing of anything, and says that there are two kernels."""

    name = "said"

    def flags(self, target: str) -> tuple[str, ...]:
        return (target,)

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        return CompiledModule(b"", LOG)


def test_a_kernel_is_counted_once_for_each_text_and_architecture(tmp_path: Path) -> None:
    counted = Counted()
    compiler = Counting(Said(), counted)
    for text, target in (("x", "sm_80"), ("x", "sm_100"), ("x", "sm_100"), ("y", "sm_100")):
        assert compiler.build(text, target, tmp_path).log == LOG
    assert (compiler.name, compiler.flags("sm_90")) == ("said", ("sm_90",))
    assert counted.line() == (
        "CUDA kernels: 6 compiled by said for 2 architectures (sm_80: 2, sm_100: 4), "
        "0 run on the CPU"
    )


def test_what_workers_send_is_added_up() -> None:
    one, other, both = Counted(), Counted(), Counted()
    one.compiled = {("sm_80", "1 a"), ("sm_80", "1 b")}
    one.ran = {key_of(b"code", "a")}
    other.compiled = {("sm_80", "1 b"), ("sm_80", "2 a")}
    other.ran = {key_of(b"code", "a"), key_of(b"code", "b"), key_of(b"other", "a")}
    one.compilers, other.compilers = {"said"}, {"told"}
    for worker in (one, other):
        both.add(worker.output())
    assert both.line() == (
        "CUDA kernels: 3 compiled by said, told for 1 architecture (sm_80: 3), 3 run on the CPU"
    )
    assert Counted().line() == ("CUDA kernels: 0 compiled for 0 architectures, 0 run on the CPU")


@pytest.mark.slow
def test_a_run_ends_with_the_line() -> None:
    workers = ["-n", "1"] if find_spec("xdist") is not None else []
    file = "tests/backends/cuda/test_code.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers]
    one = [f"{file}::test_memory_goes_back_after_a_run", f"{file}::test_prints_come_in_order"]
    done = subprocess.run([*command, *one], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("CUDA kernels: ")]
    ran = "0" if "no g++" in done.stdout else "3"
    assert told == [f"CUDA kernels: 0 compiled for 0 architectures, {ran} run on the CPU"], (
        done.stdout
    )
