"""Compilers that refuse, fail, hang or lie: told in a sentence, and nothing is left behind."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from plusequals.backends.cc import backend as cc_backend
from plusequals.backends.cc import compiler
from plusequals.backends.cc.backend import CompiledC, translate
from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.source import Source
from plusequals.base import diagnostic, settings
from plusequals.base.diagnostic import CdBackendError, Span
from plusequals.lowering.ir.assignments import Procedure

from .. import procedures

Fake = Callable[..., str]
Fake = Callable[..., str]


def test_refused_text_names_the_users_line_and_a_report(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = diagnostic.Source("model.py", 7, "    y[i] = x[i] * 2")
    span = Span(text, 7, 4, 7, 19)

    def broken(procedure: Procedure) -> Source:
        source = translate(procedure)
        lines = source.text.splitlines()
        at = next(k for k, line in enumerate(lines) if "* 2.0" in line)
        lines[at] = lines[at].replace("2.0", "2.0 oops")
        return replace(source, text="\n".join(lines) + "\n", line_map={at + 1: span})

    monkeypatch.setattr(cc_backend, "translate", broken)
    with pytest.raises(CdBackendError) as caught:
        cc.compile(procedures.scale())
    shown = str(caught.value)
    assert caught.value.code == "CD0802"
    assert "model.py:7:5" in shown
    assert "7 |     y[i] = x[i] * 2\n  |     ^^^^^^^^^^^^^^^" in shown
    assert "oops" not in shown
    report = re.search(r"look into it is in (\S+)", shown)
    assert report
    saved = Path(report[1]).read_text()
    assert all(word in saved for word in ("oops", "-fwrapv", "error:", "scale", "Python 3"))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 1", "failed on `scale`: exit status 1"),
        ('echo "ld: error: cannot find -lm"; exit 1', "ld: error: cannot find -lm"),
        ("kill -11 $$", "failed on `scale`: killed by signal 11"),
        ("exit 0", "wrote an incomplete library"),
        ('"$real" "$@"; head -c 5000 kernel.so > x; mv x kernel.so', "wrote an incomplete library"),
        ('"$real" "$@"; : > kernel.so', "wrote an incomplete library"),
        ('echo "kernel.c:3:1: fatal error: No space left on device"; exit 1', "No space left"),
    ],
)
def test_a_compiler_that_fails_is_told_and_leaves_nothing(
    cc: CompiledC, fake: Fake, cache_dir: Path, script: str, why: str
) -> None:
    with settings.override(compiler=fake(script)), pytest.raises(CdBackendError) as caught:
        cc.compile(procedures.scale())
    assert caught.value.code == "CD0812"
    assert why in str(caught.value)
    assert not [p for p in cache_dir.glob("v*/*.entry") if b"pe_scale" in p.read_bytes()]
    assert not list(cache_dir.glob("v*/build-*"))
    assert cc.compile(procedures.scale()).origin == "compiled"


def test_a_compiler_that_hangs_is_given_up(cc: CompiledC, fake: Fake) -> None:
    with settings.override(compiler=fake("sleep 60")):
        cc.toolchain()
        with settings.override(compiler_timeout=0.3), pytest.raises(CdBackendError) as caught:
            cc.compile(procedures.scale())
    assert "did not finish in 0.3 seconds" in str(caught.value)


MEMORY = ("calloc", "aligned_alloc", "free", "memcpy", "memset")


def test_a_folder_that_is_removed_meanwhile_is_made_again_once(
    cc: CompiledC, fake: Fake, tmp_path: Path
) -> None:
    removed = 'rm -rf "$PWD"; exit 1'
    script = f'[ -e {tmp_path}/seen ] && exec "$real" "$@"; touch {tmp_path}/seen; {removed}'
    with settings.override(compiler=fake(script, "once")):
        assert cc.compile(procedures.scale()).origin == "compiled"
    with settings.override(compiler=fake(removed, "always")):
        with pytest.raises(CdBackendError, match="CD0814.*somebody has removed it meanwhile"):
            cc.compile(procedures.scale())


def test_what_libraries_have_is_known_by_its_call() -> None:
    declared = prelude.prelude_definitions(("cc/csrc/library.h",))
    functions = {name for name, text in declared.items() if not text.startswith("#define")}
    calls = compiler._CALLS, compiler._FMA_CALLS
    known = {name for name in functions for one in calls if f"{name}(" in one}
    assert functions - known == {*MEMORY}


@pytest.mark.parametrize("call", ["x = fmod(x, 2)", "x = __builtin_csqrt(x)", "pthread_atfork()"])
def test_code_that_calls_libraries_is_linked_with_them(
    cc: CompiledC, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cc.toolchain()
    assert compiler._link_flags(found, (), ["", f"{call};"]) == ("-lm",)
    assert compiler._link_flags(replace(found, command=("gcc", "-g")), (), [""]) == ("-lm",)
    gcc = replace(found, command=("gcc",), version="gcc 1\nFree Software Foundation")
    assert ("-lm" in compiler._link_flags(gcc, (), ["free(x);"])) == (sys.platform != "linux")
    for fused in ("x = fmaf(a, b, c);", "x = __builtin_fma(a, b, c);"):
        assert compiler._link_flags(gcc, ("-O0",), [fused]) == ("-lm",)
        monkeypatch.setattr(compiler, "fuses", lambda: False)
        assert compiler._link_flags(gcc, (), [fused]) == ("-lm",)


def test_the_short_pipeline_asks_less_of_the_compiler(cc: CompiledC) -> None:
    tool = cc.toolchain()
    for level, wanted in ((3, "-O1"), (2, "-O1"), (1, "-O1"), (0, "-O0"), ("g", "-Og")):
        with settings.override(pipeline="short", optimize=level):
            assert wanted in compiler.compile_flags(tool)
            assert f"-O{level}" in compiler.compile_flags(tool, level)
