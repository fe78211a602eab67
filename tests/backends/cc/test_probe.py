"""What a compiler is and takes: asked all at once, and one thing after the other where need be."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache.cache import Entry
from plusequals.backends.cc import probe
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.probe import CompilerProbe, probe_compiler
from plusequals.backends.cc.toolchain import SEMANTIC_FLAGS, find_compiler
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError


def test_all_that_results_depend_on_is_asked_for(tmp_path: Path) -> None:
    found = probe_compiler(find_compiler(), tmp_path)
    assert set(SEMANTIC_FLAGS) <= set(found.flags)
    assert not any("fast" in flag for flag in found.flags)
    assert "-march=native" in found.flags or "-mcpu=native" in found.flags
    assert len(found.target) == 64
    assert found.version


def test_flags_that_it_lacks_are_left_out_or_refused(tmp_path: Path, real_compiler: str) -> None:
    def lacking(flag: str) -> str:
        path = tmp_path / f"without{flag}"
        path.write_text(
            f'#!/bin/sh\ncase "$*" in *{flag}*) echo "error: unknown {flag}"; exit 1;; esac\n'
            f'exec "{real_compiler}" "$@"\n'
        )
        path.chmod(0o755)
        return str(path)

    found = probe_compiler((lacking("-fopenmp-simd"),), tmp_path)
    assert "-fopenmp-simd" not in found.flags
    assert "-fno-math-errno" in found.flags
    found = probe_compiler((lacking("-march=native"),), tmp_path)
    assert "-march=native" not in found.flags
    with pytest.raises(CdBackendError, match="does not know -fwrapv, which results depend on"):
        probe_compiler((lacking("-fwrapv"),), tmp_path)


@pytest.mark.parametrize("has", [True, False])
def test_floats_of_16_bits_are_converted_and_not_computed_with(
    has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "has_halves", lambda: has)
    assert ("-mno-avx512fp16" in probe.probe_flags(("gcc",))) is has


def test_a_test_may_be_stored_in_16_bits() -> None:
    text = "def f(x, y, o):\n    np.less(x, y, out=o)\n    return o\n"
    x = np.arange(35).reshape(5, 7).astype("f2")
    y = x[:, ::-1].copy()
    with pe.override(optimize=3):  # gcc 12 made an instruction of it that there is not
        got = pe.cd_from_source(text, {"np": np}, backend="cc")(x, y, np.zeros_like(x))
    np.testing.assert_array_equal(got, x < y)


def test_questions_that_nobody_waits_for_leave_nothing(tmp_path: Path) -> None:
    left: list[bool] = []

    @contextlib.contextmanager
    def folder() -> Iterator[Path]:
        try:
            yield tmp_path
        finally:
            left.append(True)

    path = tmp_path / "hangs"
    path.write_text('#!/bin/sh\ncase "$1" in --version) exit 3;; esac\nexec sleep 60\n')
    path.chmod(0o755)
    asked = CompilerProbe((str(path),), folder())
    processes = [one.process for one in asked._questions]
    with pytest.raises(CdBackendError, match="does not answer --version"):
        asked.ended()
    assert left == [True]
    assert all(process.poll() is not None for process in processes)


def test_a_compiler_is_looked_at_beside_other_things(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, other = cc.toolchain(), CompiledC()
    monkeypatch.setattr(other.cache, "get", lambda key: None)
    other.begin()
    ((command, begun),) = other._inspections.items()
    other.begin()
    assert other._inspections == {command: begun}

    def never(*args: object, **others: object) -> None:
        raise AssertionError("asked again")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", never)
        assert other.toolchain() == expected
    assert other._inspections == {}


def test_questions_are_left_where_another_process_was_sooner(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, other = cc.toolchain(), CompiledC()
    with monkeypatch.context() as patch:
        patch.setattr(other.cache, "get", lambda key: None)
        other.begin()
    (begun,) = other._inspections.values()
    assert os.path.isdir(begun._folder)
    monkeypatch.setattr(other.cache, "get", lambda key: Entry(expected.written(), "", b""))
    assert other.toolchain() == expected
    assert other._inspections == {}
    assert not os.path.exists(begun._folder)


def test_no_place_to_ask_in_is_told() -> None:
    @contextlib.contextmanager
    def full() -> Iterator[str]:
        raise OSError(28, "No space left on device", "/disk/build-1")
        yield ""

    with pytest.raises(CdBackendError, match=r"CD0814.*in /disk: No space(.|\n)*free some space"):
        CompilerProbe(("true",), full())


def test_the_questions_of_a_parent_are_not_a_childs(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, other = cc.toolchain(), CompiledC()
    monkeypatch.setattr(other.cache, "get", lambda key: None)
    other.begin()
    (begun,) = other._inspections.values()
    begun.process = -1
    assert other.toolchain() == expected
    assert list(other._inspections.values()) == [begun]
    begun.ended()


def test_no_compiler_is_told_where_it_is_needed(tmp_path: Path) -> None:
    other = CompiledC()
    with settings.override(compiler=str(tmp_path / "none")):
        other.begin()
        with pytest.raises(CdBackendError, match="was not found"):
            other.toolchain()
