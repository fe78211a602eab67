"""The compilers of CUDA: what they make, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from plusequals.backends.cuda import nvrtc
from plusequals.backends.cuda.nvrtc import CompileError, Compiler, Nvcc, Nvrtc, ResourceUsage
from tests.counted import COUNTED, Counting

TEXT = """
extern "C" __global__ void twice(float *y, const float *x)
{
    y[threadIdx.x] = x[threadIdx.x] * 2.0f + 1.0f;
}
"""


def compilers() -> list[Compiler]:
    try:
        found = nvrtc.find_compiler()
    except CompileError:
        return []
    return [found]


FOUND = compilers()
needs_nvrtc = pytest.mark.skipif(not FOUND, reason="no NVRTC on this machine: nothing was compiled")


def needed() -> Compiler:
    return Counting(FOUND[0], COUNTED)


@needs_nvrtc
def test_code_is_made_without_a_device(tmp_path: Path) -> None:
    made = needed().build(TEXT, "sm_90", tmp_path)
    assert made.code[:4] == b"\x7fELF"
    assert "warning" not in made.log
    assert 0 < made.figures["twice"].registers < 20
    assert made.figures["twice"].spilled == 0


@needs_nvrtc
def test_products_and_sums_are_rounded_one_by_one(tmp_path: Path) -> None:
    assert "--fmad=false" in needed().flags("sm_90")
    assert "--ftz=false" in needed().flags("sm_90")


@needs_nvrtc
def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="identifier .nothing. is undefined"):
        needed().build(TEXT.replace("2.0f", "nothing"), "sm_90", tmp_path)
    with pytest.raises(CompileError):
        needed().build(TEXT, "sm_1", tmp_path)


def test_figures_are_read_from_the_log() -> None:
    log = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'a_1' for 'sm_90'\n"
        "ptxas info    : Function properties for a_1\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 18 registers, used 0 barriers\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
        "ptxas info    : Function properties for b\n"
        "    96 bytes stack frame, 8 bytes spill stores, 40 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 96 bytes cumulative stack size,"
        " 4096 bytes smem\n"
    )
    found = nvrtc.parse_usage(log)
    assert found == {"a_1": ResourceUsage(18, 0, 0, 0), "b": ResourceUsage(255, 4096, 40, 96)}
    assert str(found["a_1"]) == "18 registers, 0 bytes shared"
    assert str(found["b"]) == (
        "255 registers, 40 bytes of them in memory, 4096 bytes shared, 96 bytes of stack"
    )


def test_without_a_library_and_a_command_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvrtc, "candidate_paths", lambda: iter(["no-such-library.so"]))
    monkeypatch.setattr(nvrtc.shutil, "which", lambda name: None)
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvrtc"):
        nvrtc.find_compiler()


@needs_nvrtc
def test_code_that_the_driver_does_not_take_is_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvrtc.shutil, "which", lambda name: None)
    if isinstance(FOUND[0], Nvrtc):
        newest = FOUND[0].version[0]
        assert nvrtc.find_compiler(newest).name == needed().name
        monkeypatch.setattr(nvrtc, "MAJOR_VERSIONS", (newest,))
        with pytest.raises(CompileError, match=f"{newest - 1}, does not take; there is neither"):
            nvrtc.find_compiler(newest - 1)
    command = tmp_path / "nvcc"
    command.write_text('#!/bin/sh\necho "release 13.0, V13.0.88"\n')
    command.chmod(0o755)
    monkeypatch.setattr(nvrtc, "candidate_paths", lambda: iter(()))
    monkeypatch.setattr(nvrtc.shutil, "which", lambda name: str(command))
    assert nvrtc.find_compiler(13).name == "nvcc 13.0.88"
    with pytest.raises(
        CompileError, match="nvcc 13.0.88 makes code that the driver, of CUDA 12, does"
    ):
        nvrtc.find_compiler(12)


def test_a_library_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "candidate_paths", lambda: iter(["/nowhere/libnvrtc.so.13"]))
    monkeypatch.setattr(nvrtc.shutil, "which", lambda name: None)
    with pytest.raises(CompileError, match="/nowhere/libnvrtc"):
        nvrtc.find_compiler()


def test_the_command_is_the_second_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = tmp_path / "nvcc"
    command.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then\n'
        '    echo "Cuda compilation tools, release 13.0, V13.0.88"; exit\n'
        "fi\n"
        'while [ "$1" != -o ]; do shift; done\n'
        "grep -q nothing kernels.cu && { echo wrong >&2; exit 2; }\n"
        "printf code > $2\n"
    )
    command.chmod(0o755)
    monkeypatch.setattr(nvrtc, "candidate_paths", lambda: iter(()))
    monkeypatch.setattr(nvrtc.shutil, "which", lambda name: str(command))
    found = nvrtc.find_compiler()
    assert isinstance(found, Nvcc)
    assert found.name == "nvcc 13.0.88"
    folder = tmp_path / "scratch"
    folder.mkdir()
    assert found.build(TEXT, "sm_90", folder).code == b"code"
    (folder / "kernels.cubin").unlink()
    with pytest.raises(CompileError, match="wrong"):
        found.build("nothing", "sm_90", folder)


@needs_nvrtc
def test_packages_come_before_what_the_system_has() -> None:
    if isinstance(FOUND[0], Nvrtc):
        assert needed().name.startswith("NVRTC 1")
        assert len([*nvrtc.candidate_paths()]) >= 1
