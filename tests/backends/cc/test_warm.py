"""The library of the short way: when it is made, and when it is done without."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cc import warm
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.warm import Check, Plan, ShortWay, Source, Value
from plusequals.lowering import settings


def asked(cc: CompiledC, times: int, short: ShortWay | None = None) -> ShortWay:
    """A short way that was asked for that often."""
    short = ShortWay(cc.cache) if short is None else short
    for _ in range(times):
        short.wanted(cc.toolchain, [])
    return short


def test_compiled_when_many_calls_would_use_it_and_then_taken_from_disk(cc: CompiledC) -> None:
    assert asked(cc, 99).caller is None
    first = asked(cc, 100)
    assert first.caller is not None and first.caller.__name__ == "Caller"
    assert asked(cc, 1).caller is not None
    with settings.override(cache=False):
        assert asked(cc, 99).caller is None
        assert asked(cc, 100).caller is not None


def test_a_compiler_that_cannot_is_asked_once(
    cc: CompiledC, fake: Any, tmp_path: Path, cache_dir: Path
) -> None:
    path = fake(f'echo >> "{tmp_path}/asked"; exit 1')
    with settings.override(compiler=path):
        short = asked(cc, 300)
        assert short.caller is None and asked(cc, 300).caller is None
    assert (tmp_path / "asked").read_text().count("\n") <= 2
    assert not list(tmp_path.glob("plusequals-report-*"))


def test_a_library_that_cannot_be_loaded_is_done_without(cc: CompiledC, monkeypatch: Any) -> None:
    monkeypatch.setattr(ShortWay, "_found", lambda *_: b"\x7fELF" + bytes(60))
    assert asked(cc, 100).caller is None
    monkeypatch.setattr(ShortWay, "_found", lambda *_: b"")
    assert asked(cc, 100).caller is None


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="objects of another Python")
def test_the_layout_of_objects_is_looked_at(cc: CompiledC, monkeypatch: Any) -> None:
    assert warm.is_possible()
    with monkeypatch.context() as patch:
        patch.setattr(warm, "_ARRAY", struct.Struct("2P i4x P P P P P i"))
        assert not warm.is_possible()
        assert asked(cc, 100).caller is None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "abiflags", "t")
        assert not warm.is_possible()


def test_a_plan_that_is_too_long_is_none() -> None:
    def packed(values: int, results: int = 0) -> bytes | None:
        value = Value((Source.ARGUMENT, 0, 0, 0), (Check.SAME, 7))
        result = 0, id(np.dtype(float)), 1, 3
        return Plan(
            None, 1, 0, [value] * values, [], [], [(0, False)] * values, [result] * results,
            (0, 1, 0, 0), 0, 0,
        ).pack()  # fmt: skip

    assert packed(warm.VALUES) is not None and packed(warm.VALUES + 1) is None
    assert packed(1, warm.RESULTS) is not None and packed(1, warm.RESULTS + 1) is None
    assert packed(warm.ARRAYS - 3, 3) is not None and packed(warm.ARRAYS - 2, 3) is None


def test_the_words_of_a_plan_say_where_its_parts_are() -> None:
    values = [Value((Source.ARGUMENT, 0, 0, 0)), Value((Source.NAME, 1, 2, 3), (Check.SAME, 9))]
    plan = Plan(
        None, 1, 2, values, [(0, 1)], [(1, 0)], [(1, True)], [(0, 5, 0)], (0, 1, 2, 0), 8, 9
    )
    words = plan.pack()
    assert words is not None
    head = struct.unpack(f"{len(words) // 8}q", words)
    assert head[:10] == (id(None), 1, 2, 2, 1, 1, 1, 1, 8, 9)
    pairs, inputs, results, returned = head[10:14]
    assert head[14:pairs] == (0, 0, 0, 0, 0, 6, 2, 1, 2, 3, 1, 7, 9)
    assert head[pairs:inputs] == (0, 1, 1, 0) and head[inputs:results] == (1, 1)
    assert head[results:returned] == (0, 5, 0) and head[returned:] == (0, 1, 2, 0)
