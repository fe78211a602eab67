"""A text in several files: what each has, and that together they are the whole."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen import translation_units
from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.source import Source, merge_sources
from plusequals.backends.codegen.translation_units import split_source
from plusequals.base import settings
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from . import programs as p


@pytest.fixture(scope="module")
def softmax() -> Source:
    """A text with parallel loops."""
    target = Target(threads=2, parallel_from=0, schedule=True)
    source = print_program(*optimize(lower(p.softmax()), target))
    assert source.parts
    return source


def test_places_are_those_of_the_functions(softmax: Source) -> None:
    lines = softmax.text.splitlines()
    for part in softmax.parts:
        inside = lines[part.first - 1 : part.last]
        assert inside[0].startswith("struct")
        assert lines[part.functions - 1].startswith("static int ")
        assert sum(line == "}" for line in inside) == 2
        assert any(line.startswith(f"static int {part.name}(") for line in inside)
        assert inside[-2:] == ["}", ""]


def test_places_are_found_in_joined_texts(softmax: Source) -> None:
    one, two = merge_sources([softmax, replace(softmax, parts=())])
    assert one.parts == two.parts
    lines = one.text.splitlines()
    assert all(lines[part.first - 1].startswith("struct") for part in one.parts)


def test_short_texts_are_not_divided(softmax: Source) -> None:
    assert split_source(replace(softmax, parts=()), 8, "kernel.c") == (softmax.text,)
    assert split_source(softmax, 1, "kernel.c") == (softmax.text,)
    short = replace(softmax, above=softmax.text.count("\n") - 2 * translation_units.MIN_LINES + 2)
    assert split_source(short, 8, "kernel.c") == (softmax.text,)


def test_each_function_is_in_one_file(softmax: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation_units, "MIN_LINES", 1)
    texts = split_source(softmax, 8, "kernel.c")
    assert len(texts) == 1 + len(softmax.parts)
    begun = [re.findall(r"^static (int \w+_part\w*)\(", text, re.M) for text in texts]
    alone = re.findall(r"^static (int \w+_part\w*)\(", softmax.text, re.M)
    hidden = [f"int {part.name}" for part in softmax.parts]
    assert sorted(sum(begun, [])) == sorted(set(alone) - set(hidden))
    assert texts[0].count("\n") == softmax.text.count("\n")
    for part, text in zip(softmax.parts, texts[1:], strict=True):
        line = softmax.text.splitlines()[part.first - 1]
        after = text.split(f'#line {part.first} "kernel.c"\n')[1]
        assert after.startswith(line)
        assert f"{translation_units.HIDDEN} int {part.name}(" in after
        assert f"{translation_units.HIDDEN} int {part.name}(" in texts[0]


def test_lines_are_said_of_the_whole(
    softmax: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(translation_units, "MIN_LINES", 1)
    wrong = softmax.text.replace("for (", "oops for (")
    lines = [at for at, line in enumerate(wrong.splitlines(), 1) if "oops" in line]
    said: set[int] = set()
    for text in split_source(replace(softmax, text=wrong), 8, "kernel.c"):
        (tmp_path / "x.c").write_text(text)
        command = ["cc", "-fsyntax-only", "-fmax-errors=0", "x.c"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        said |= {int(at) for at in re.findall(r"^kernel\.c:(\d+):\d+: error", ran.stderr, re.M)}
        said |= {int(at) for at in re.findall(r"^x\.c:(\d+):\d+: error", ran.stderr, re.M)}
    assert said
    assert said <= set(lines)


def test_divided_code_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x, w, v):  # type: ignore[no-untyped-def]
        h = np.maximum(x @ w, 1)
        v += h.sum(axis=0)
        w -= 0.5 * (x.T @ h)
        return h.max(axis=1)

    counts: list[int] = []

    def counted(source: Source, most: int, file: str) -> tuple[str, ...]:
        texts = split_source(source, 8, file)
        counts.append(len(texts))
        return texts

    monkeypatch.setattr(translation_units, "MIN_LINES", 1)
    monkeypatch.setattr(translation_units, "split_source", counted)
    rng = np.random.default_rng(3)
    given = [rng.integers(-4, 5, shape) / 2 for shape in ((20, 15), (15, 12), (12,))]  # exact
    seen = []
    for backend in ("cc", "numpy"):
        copies = [array.copy() for array in given]
        with settings.override(backend=backend, threads=4, parallel_from=0, cache=False):
            returned = pe.cd(step)(*copies)
        seen.append([returned, *copies])
    assert max(counts) > 2
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)
