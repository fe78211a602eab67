"""The text log: written by runs, read back to the same tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plusequals as pe
from plusequals.backends.interpreter import Interpreter
from plusequals.base.diagnostic import CdBackendError
from plusequals.dsl.tracing.log import Comment, LogEntry, LoggedAssignment, log_lines, log_tree
from tests.offered import offered

from .functions import CALLS, steps

WORDS = st.text("ab$nx;\n\r\v\f\x1c\x85\u2028\ud800#= :", min_size=1, max_size=8).filter(
    lambda text: text.strip() != ""
)
MARKS = ["end", "# x", "COMMENT: a", "COMMENT: end", "", " ", "$.end"]
PLAIN = WORDS | st.sampled_from(MARKS)
SIDES = st.text("xy[0]{=}$\n", min_size=1, max_size=6)


def entries() -> st.SearchStrategy[LogEntry]:
    assigned = st.builds(
        lambda source, a, b, c: LoggedAssignment(source, f"{a} = {b}", c),
        PLAIN,
        SIDES,
        SIDES,
        SIDES,
    )
    leaves = st.one_of(PLAIN, assigned)
    return st.recursive(
        leaves, lambda inner: st.builds(lambda t, x: Comment(t, tuple(x)), PLAIN, st.lists(inner)),
        max_leaves=8,
    )  # fmt: skip


@given(st.lists(entries()))
def test_a_tree_is_read_back_from_its_lines(tree: list[LogEntry]) -> None:
    assert list(log_tree(log_lines(tree))) == tree
    text = "".join(f"{line}\n" for line in log_lines(tree))
    assert list(log_tree(text.encode().decode().splitlines())) == tree


def test_a_comment_may_be_called_like_a_mark(tmp_path: Path) -> None:
    text = 'def f(x):\n    with comment("end"):\n        x[i] = 1\n    x[i] += 1\n'
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)):
        pe.cd_from_source(text)(np.zeros(1))
    (found,) = logs(tmp_path).values()
    *_, outer = log_tree(found.splitlines())
    assert isinstance(outer, Comment) and outer.is_closed
    inner, behind = outer.inner
    assert isinstance(inner, Comment) and inner.text == "end" and len(inner.inner) == 1
    assert isinstance(behind, LoggedAssignment)


def test_comments_with_line_ends_of_every_kind(tmp_path: Path, backend: str) -> None:
    said = "a\nb\rc\r\nd\ve\ff\x1cg\x1dh\x1ei\x85j\u2028k\u2029l $x $xd; $n"
    text = f"def f(x):\n    with comment({ascii(said)}):\n        x[i] = 1\n"
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path), backend=backend):
        pe.cd_from_source(text)(np.zeros(1))
    (found,) = logs(tmp_path).values()
    assert len(found.splitlines()) == len(found.split("\n")) - 1 == 7
    *_, outer = log_tree(found.splitlines())
    assert isinstance(outer, Comment) and isinstance(outer.inner[0], Comment)
    assert outer.inner[0].text == said


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    f, x = pe.cd_from_source("def f(x):\n    x[i] = 1\n", backend="numpy"), np.zeros(1)
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path / "file" / "in")):
        with pytest.raises(CdBackendError, match="CD0814.*no file can be written into .*file"):
            f(x)
    assert x.tolist() == [0.0], "it is refused before the run"
    (tmp_path / "debug-calls-f.log").mkdir()
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)):
        with pytest.raises(CdBackendError, match="CD0814"):
            f(x)


def test_a_log_that_stops_leaves_comments_open() -> None:
    lines = ["COMMENT: a", "index t = 0", "COMMENT: b", "# x = 1", "x{=0} = 1 = 1"]
    (outer,) = log_tree(lines)
    assert isinstance(outer, Comment) and not outer.is_closed
    assert list(log_lines([outer])) == lines


def logs(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.log"))}


def without_addresses(text: str) -> str:
    return "\n".join(line.split(" = 0x")[0] for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("name", ["steps", "swapped"])
def test_the_log_of_a_call(
    name: str, tmp_path: Path, golden: Callable[[str], Callable[[str], None]]
) -> None:
    function, make = CALLS[name]
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path), backend="numpy"):
        function(*make())
    found = logs(tmp_path)
    assert list(found) == [f"debug-calls-{name}.log"]
    text = found[f"debug-calls-{name}.log"]
    golden(f"{name}.txt")(without_addresses(text))
    assert "".join(f"{line}\n" for line in log_lines(log_tree(text.splitlines()))) == text


def test_each_run_writes_its_file_anew_and_streams_append(tmp_path: Path, backend: str) -> None:
    _, make = CALLS["steps"]
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path / "a")):
        steps.on(backend)(*make())
        once = logs(tmp_path / "a")
        steps.on(backend)(*make())
    assert [len(x) for x in logs(tmp_path / "a").values()] == [len(x) for x in once.values()]
    changes = {"debug_log_from_routines": True, "debug_log_to_stream_files": True}
    with pe.override(**changes, dump_dir=str(tmp_path / "b")):
        steps.on(backend)(*make())
        steps.on(backend)(*make())
    (name,) = logs(tmp_path / "b")
    assert name == f"{backend}-calls.log"
    assert len(log_tree(logs(tmp_path / "b")[name].splitlines())) == 8


def test_routines_have_files_of_their_own(tmp_path: Path) -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    double = pe.cd_from_source("def double(p):\n    p[i] *= 2\n")
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)):
        stream = pe.device("cc").stream()
        routine = double.compile(p).link(stream.context())
        routine()
        stream.synchronize()
    (name,) = logs(tmp_path)
    assert name == f"debug-{stream.name}-double.log".replace(":", "-").replace("/", "-")
    assert "p[1]{=1.0} = 2.0 = 1.0 * (2.0)" in logs(tmp_path)[name]


def test_a_routine_is_logged_as_the_settings_at_each_call_say(tmp_path: Path) -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    double = pe.cd_from_source("def double(p):\n    p[i] *= 2\n", backend="numpy")
    compiled = double.compile(p)
    stream = pe.device("numpy").stream()
    before = compiled.link(stream.context())
    before()
    chosen = {"debug_log_from_routines": True, "dump_dir": str(tmp_path / "first")}
    with pe.override(**chosen):
        under = compiled.link(stream.context())
        stream.synchronize()
        assert not logs(tmp_path / "first")
        before()
        stream.synchronize()
    found = logs(tmp_path / "first")
    (text,) = found.values()
    assert "p[1]{=2.0} = 4.0 = 2.0 * (2.0)" in text
    under()
    stream.synchronize()
    assert logs(tmp_path / "first") == found
    with pe.override(**chosen | {"dump_dir": str(tmp_path / "second")}):
        under()
        stream.synchronize()
    (text,) = logs(tmp_path / "second").values()
    assert "p[1]{=4.0} = 8.0 = 4.0 * (2.0)" in text


LOOPS = {
    "for t in range(2):\n C": [["index t = 0", "C"], ["index t = 1", "C"]],
    "for t in range(1, -1, -1):\n for k in range(2):\n  C": [
        ["index t = 1", "index k = 0", "C"], ["index k = 1", "C"],
        ["index t = 0", "index k = 0", "C"], ["index k = 1", "C"],
    ],
    "for t in range(2):\n C\n  for k in range(1):\n   C": [
        ["index t = 0", "C", "index k = 0", "C"], ["index t = 1", "C", "index k = 0", "C"],
    ],
    "while x[0] < 2:\n C": [["C"], ["C"]],
    "while x[0] < 4:\n for k in range(2):\n  C": [
        ["index k = 0", "C"], ["index k = 1", "C"], ["index k = 0", "C"], ["index k = 1", "C"],
    ],
    "for t in range(2):\n while x[0] < 2 * t + 2:\n  C": [
        ["index t = 0", "C"], ["C"], ["index t = 1", "C"], ["C"],
    ],
}  # fmt: skip
"""Loops whose body is one comment, `C` for its head, and what their iterations log."""


@pytest.mark.parametrize("loops", LOOPS)
def test_a_comment_ends_with_each_iteration_of_the_loops_around_it(
    loops: str, tmp_path: Path
) -> None:
    lines = loops.replace("C", 'with comment("C"):').split("\n")
    lines.append(" " * (len(lines[-1]) - len(lines[-1].lstrip()) + 1) + "x[0] += 1")
    text = "def f(x):\n" + "".join(f" {line}\n" for line in lines)
    with pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path), backend="numpy"):
        pe.cd_from_source(text)(np.zeros(1))
    (found,) = logs(tmp_path).values()
    *_, outer = log_tree(found.splitlines())
    assert isinstance(outer, Comment) and outer.is_closed
    assert list(_heads(outer)) == [head for iteration in LOOPS[loops] for head in iteration]


def _heads(entry: Comment) -> Iterator[str]:
    for one in entry.inner:
        if isinstance(one, Comment):
            assert one.is_closed
            yield one.text
            yield from _heads(one)
        elif isinstance(one, str):
            yield one


class Printer(Interpreter):
    """A backend whose devices can only print."""

    name = "printer"

    def run_printing(self, code: Any, arrays: Sequence[Any], mark: str) -> Any:
        os.write(1, b"working ")
        os.write(1, f"{mark}COMMENT: f\n{mark}# x[i] += 1\n".encode())
        os.write(1, f"{mark}x[0]{{=0.0}} = 1.0 = 0.0 + 1.0\n{mark}COMMENT: end\n".encode())
        os.write(1, b"done\n")
        return code.run(arrays)


def test_the_log_of_a_backend_that_can_only_print(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    f, x = pe.cd_from_source("def f(x):\n    x[i] += 1\n    return x * 2\n"), np.zeros(1)
    with (
        offered("printer", Printer()),
        pe.override(backend="printer", debug_log_from_routines=True, dump_dir=str(tmp_path)),
    ):
        assert f(x).tolist() == [2.0]
    assert capfd.readouterr().out == "working done\n"
    (text,) = logs(tmp_path).values()
    address, comment = log_tree(text.splitlines())
    assert str(address).startswith("f64 *x &[1] = 0x")
    assert comment == Comment(
        "f", (LoggedAssignment("x[i] += 1", "x[0]{=0.0} = 1.0", "0.0 + 1.0"),)
    )


def test_a_run_that_fails_ends_its_log_with_the_error(tmp_path: Path) -> None:
    f = pe.cd_from_source("def f(x, n):\n    x[i] = 1\n    x[n] = 2\n")
    with (
        pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)),
        pytest.raises(IndexError),
    ):
        f(np.zeros(2), 5)
    (text,) = logs(tmp_path).values()
    assert "error: error[CD0601]" in text and text.endswith("COMMENT: end\n")
