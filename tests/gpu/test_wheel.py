"""The recipe of a wheel: what is asked of whom, and the driver that stands in."""

from __future__ import annotations

import ctypes
import io
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import wheel


def test_every_function_that_is_named_is_there(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    text = wheel.stand_in(wheel.names(["cuInit(0); cuGetErrorString(e); cuMemFree_v2(p)"]))
    (tmp_path / "driver.c").write_text(text)
    words = ["cc", "-w", "-shared", "-fPIC", "-o", "libcuda.so", "driver.c"]
    subprocess.run(words, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "libcuda.so"))
    assert library.cuInit(0) == library.cuMemFree_v2(None) == 100
    said = ctypes.c_char_p()
    assert library.cuGetErrorString(100, ctypes.byref(said)) == 0 and said.value == b"no driver"


def test_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def run(words: Sequence[str], cwd: Path | None = None) -> None:
        asked.append(words)
        if "download" in words and any("pycuda" in word for word in words):
            with tarfile.open(Path(words[-1]) / "pycuda-2026.1.tar.gz", "w:gz") as archive:
                held = tarfile.TarInfo("pycuda-2026.1/src/cpp/cuda.hpp")
                held.size = 10
                archive.addfile(held, io.BytesIO(b"cuInit(0);"))

    root = tmp_path / "toolkit"
    (root / "include").mkdir(parents=True)
    (root / "include" / "cuda.h").write_text("CUresult cuCtxCreate_v4(void);")
    monkeypatch.setattr(wheel, "run", run)
    monkeypatch.setenv("CUDA_HOME", str(root))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert wheel.toolkit() == root
    folder = tmp_path / "made"
    folder.mkdir()
    wheel.build("python3", root, tmp_path / "wheels", folder)
    code = (folder / "driver" / "driver.c").read_text()
    assert "NONE(cuInit)" in code and "NONE(cuCtxCreate_v4)" in code
    assert [words[1:3] for words in asked[:2]] == [("-m", "venv"), ("-m", "pip")]
    assert f"--cuda-root={root}" in asked[4] and asked[-1][-4:] == wheel.NEEDS


def test_without_a_toolkit_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        wheel.main(["--into", str(tmp_path / "wheels"), "--cuda-root", str(tmp_path)])
    assert "--cuda-root" in capsys.readouterr().err


def test_what_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("")
    words = ["--into", str(tmp_path), "--cuda-root", str(tmp_path)]

    def fails(*given: object) -> None:
        raise subprocess.CalledProcessError(3, ["pip", "wheel"])

    monkeypatch.setattr(wheel, "build", fails)
    assert wheel.main(words) == 1
    assert "it failed with status 3: pip" in capsys.readouterr().err
