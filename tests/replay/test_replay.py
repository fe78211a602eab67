"""The replay corpus: the same in every process, differences that are shown, what fires."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plusequals.dsl.api.cd import CdFunction
from tests.replay import corpus, store
from tests.replay.__main__ import main
from tests.replay.compare import Rules, compare
from tests.replay.fires import MAPPINGS, fires
from tests.replay.record import Counts, Wanted, digest, record, recorded, whole
from tests.replay.targets import EVERY, some

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 4


def _recorded_by_another(into: Path, seed: str) -> store.Recording:
    """Record in a process whose sets have another order."""
    command = [sys.executable, "-m", "tests.replay", "record", str(into)]
    command += ["--programs", str(PROGRAMS), "--only", "random"]
    environment = os.environ | {"PYTHONHASHSEED": seed, "PLUSEQUALS_PROFILE": "strict"}
    subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
    return store.Recording(into)


def test_processes_settings_and_orders_record_the_same(tmp_path: Path) -> None:
    there = _recorded_by_another(tmp_path / "there", "7")
    wanted = [one for one in whole(PROGRAMS, 1) if one.name.startswith("random")]
    texts: dict[str, str] = {}
    programs = [recorded(one.make(), texts, Counts()) for one in reversed(wanted)]
    here = _recording(tmp_path / "here", programs, texts)
    found = compare(there, here, Rules())
    assert found.programs == PROGRAMS and found.lowerings > 2 * PROGRAMS
    assert found.is_equal and not found.sentences, str(found)
    (part,) = there.batches()
    assert part["texts"].keys() == texts.keys()
    for text in texts.values():
        assert "plusequals." not in text and str(ROOT) not in text and " at 0x" not in text


def _recording(
    folder: Path, programs: list[dict[str, Any]], texts: dict[str, str]
) -> store.Recording:
    found = store.Recording(folder)
    found.begin("", "")
    store.write(found.path(0), {"programs": programs, "texts": texts})
    return found


def _written(folder: Path, *stages: tuple[str, str], **changed: Any) -> store.Recording:
    """Return the recording of one program with those stages, and a text that never changes."""
    texts = {digest(text): text for text in (*dict(stages).values(), "text\n")}
    row = {
        "stages": [[name, digest(text)] for name, text in stages],
        "ran": ["lower", "fuse", "sink", "settled"],
        "silent": ["settled"],
        "text": digest("text\n"),
        "prelude": digest("text\n"),
        "sentences": digest("text\n"),
        "table": {"kernels": [["f", 32]], "mappings": [["tiles", 2]]},
    } | changed
    rows = {"static cuda-90 default": row}
    return _recording(folder, [{"name": "random/1:0", "stored": None, "rows": rows}], texts)


LOWERED = ("lower", "for i in 0..4 lanes:\n    y[i] = 0\n")
FUSED = ("fuse", "for i in 0..4 lanes:\n    y[i] = 1\n")


def test_the_first_difference_is_shown(tmp_path: Path) -> None:
    before = _written(tmp_path / "before", LOWERED, FUSED)
    other = "fuse", FUSED[1].replace("= 1", "= 2")
    found = compare(before, _written(tmp_path / "after", LOWERED, other), Rules())
    assert not found.is_equal
    assert str(found) == (
        "1 programs, 1 lowerings: 1 differ\n"
        "       1 first in the program after `fuse`\n\n"
        "random/1:0 static cuda-90 default: the program after `fuse`\n"
        "--- before\n+++ after\n@@ -1,2 +1,2 @@\n"
        " for i in 0..4 lanes:\n-    y[i] = 1\n+    y[i] = 2"
    )


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"error": "CdTypeError CD0001: no"}, "what is refused"),
        ({"table": {}}, "the table of kernels"),
        ({"table": {"kernels": [["f", 64]], "mappings": [["tiles", 2]]}}, "the table of kernels"),
        ({"table": {"kernels": [["f", 32]], "mappings": []}}, "the table of mappings"),
    ],
)
def test_every_part_counts(tmp_path: Path, changed: dict[str, Any], place: str) -> None:
    before = _written(tmp_path / "before", LOWERED)
    found = compare(before, _written(tmp_path / "after", LOWERED, **changed), Rules())
    assert found.differ == 1 and list(found.places) == [place]


def test_a_stage_more_is_a_difference(tmp_path: Path) -> None:
    before, after = (
        _written(tmp_path / "before", LOWERED),
        _written(tmp_path / "after", LOWERED, FUSED),
    )
    assert list(compare(before, after, Rules()).places) == ["the stage `fuse`, only after"]


def test_names_may_change_if_that_is_said(tmp_path: Path) -> None:
    before = _written(tmp_path / "before", LOWERED, FUSED)
    table = {"kernels": [["f", 32]], "mappings": [["tiled", 2]]}
    after = _written(tmp_path / "after", LOWERED, ("join", FUSED[1]), table=table)
    found = compare(before, after, Rules({"tiles": "tiled"}))
    assert not found.differ and not found.is_equal
    assert "1 times `fuse` is `join`: --renamed 'fuse=join'" in str(found)
    assert compare(before, after, Rules({"tiles": "tiled", "fuse": "join"})).is_equal


def test_words_of_texts_may_change_if_that_is_said(tmp_path: Path) -> None:
    before = _written(tmp_path / "before", LOWERED)
    after = _written(tmp_path / "after", ("lower", LOWERED[1].replace("lanes", "simd")))
    assert compare(before, after, Rules()).differ == 1
    assert compare(before, after, Rules(words={"lanes": "simd"})).is_equal
    assert compare(before, after, Rules(words={"lane": "simd"})).differ == 1


def test_what_fires_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = _written(tmp_path / "one", LOWERED, FUSED)
    told = str(fires(recording))
    assert told.startswith(
        "1 programs\n\ncuda:\n       1  lower  (1 random)\n       1  fuse  (1 random)\n"
        "  on none (2): sink, settled*\n\nmappings:\n       1  tiles  (1 random)\n"
    )
    assert f"on none ({len(MAPPINGS) - 1})" in told
    assert main(["fires", str(recording.folder), "--on", "fuse"]) == 0
    assert capsys.readouterr().out == "cuda random/1:0\n"


def test_a_recording_goes_on_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.replay.record.commit", lambda: "1234")
    wanted = [one for one in whole(0, 1) if one.name == "kernel/crc16/tiny"]
    assert record(wanted, tmp_path / "one", quiet=True).programs == 1
    assert record(wanted, tmp_path / "one", quiet=True).programs == 0
    monkeypatch.setattr("tests.replay.record.commit", lambda: "5678")
    with pytest.raises(store.Unreadable, match="a recording of 1234"):
        record(wanted, tmp_path / "one", quiet=True)


def test_without_a_recording_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fires", str(tmp_path)]) == 2
    assert "there is no recording in" in capsys.readouterr().err


def test_a_stored_program_is_the_same_again() -> None:
    entry = corpus.random_program(1, 0)
    stored = json.loads(json.dumps(entry.stored))
    other = corpus.again(entry.name, stored)
    assert (other.name, other.variants, other.stored) == (entry.name, entry.variants, entry.stored)


def test_neighbours_of_a_kind_have_all_variants() -> None:
    assert {*some(0), *some(1)} == set(EVERY) and len(some(0)) == len(some(1)) == len(EVERY) // 2


def test_every_function_of_a_tutorial_has_arguments() -> None:
    for path in sorted(corpus.TUTORIALS.glob("[0-9]*.py")):
        made = corpus.functions_of(path)
        ours = {name for name, value in made.items() if isinstance(value, CdFunction)}
        assert ours - {"forward"} <= corpus.GIVEN[path.stem].keys(), path.stem


def test_names_are_different() -> None:
    names = [one.name for one in whole(20, 1)]
    assert len(set(names)) == len(names) and isinstance(whole(1, 1)[-1], Wanted)
