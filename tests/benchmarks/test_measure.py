"""Workers in processes of their own: answers, refusals, ends; and a run from end to end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from benchmarks import command, environments, measure, results
from benchmarks.cells import cell
from benchmarks.environments import Environment, NotInstalled
from benchmarks.peers import Peer, peer
from benchmarks.process import Died, LeftOut, Process

HERE = Environment(Path(sys.executable), None)


@pytest.fixture
def numpy(tmp_path: Path) -> Iterator[Process]:
    around = environments.variables(1, HERE, {})
    with Process(HERE.python, "numpy", 1, around, tmp_path / "log") as process:
        yield process


def _prepare(process: Process, folder: Path, name: str = "saxpy:small") -> None:
    measure.write(cell(name).workload.case(cell(name).size), folder)
    process.ask("prepare", cell=name, folder=str(folder))


def test_a_worker_answers(numpy: Process, tmp_path: Path) -> None:
    assert numpy.hello["version"].startswith("NumPy 2")
    _prepare(numpy, tmp_path)
    (found,) = measure.answers(tmp_path, "numpy")
    x, y = (np.load(tmp_path / f"input_{n}.npy") for n in range(2))
    assert np.allclose(found, 2.5 * x + y)
    said = numpy.ask("time", seconds=1e-4)
    assert said["calls"] >= 1 and said["nanoseconds"] > 0
    said = numpy.ask("time", seconds=1e-4, clock="processor")
    assert said["calls"] >= 1 and said["nanoseconds"] > 0
    assert numpy.ask("fresh", calls=3)["calls"] == 3


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells this on Linux only")
def test_memory_is_what_a_call_needs_beyond_its_arrays(numpy: Process, tmp_path: Path) -> None:
    n = 1 << 22
    case = cell("black_scholes:small").workload.make(np.random.default_rng(1), n)
    measure.write(case, tmp_path)
    numpy.ask("prepare", cell="black_scholes:small", folder=str(tmp_path))
    assert 4 * n * 4 < numpy.ask("memory")["bytes"] < 30 * n * 4  # some arrays of 16 MiB


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells this on Linux only")
def test_a_worker_does_not_run_between_its_answers(numpy: Process, tmp_path: Path) -> None:
    def state() -> str:
        return Path(f"/proc/{numpy.number}/stat").read_text().rpartition(") ")[2][0]

    assert state() in "SR", "it waits for the first request"
    _prepare(numpy, tmp_path)
    assert state() == "T"
    assert numpy.ask("time", seconds=1e-4)["calls"] >= 1 and state() == "T"


def test_what_a_worker_raises_comes_back(numpy: Process, tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match="FileNotFoundError"):
        numpy.ask("prepare", cell="saxpy:small", folder=str(tmp_path / "nowhere"))
    with pytest.raises(LeftOut, match="nothing was prepared"):
        numpy.ask("time", seconds=1.0)
    _prepare(numpy, tmp_path)
    assert numpy.ask("time", seconds=1e-4)["calls"] >= 1, "it goes on"


def test_a_worker_that_ends_or_is_too_slow_is_told(numpy: Process, tmp_path: Path) -> None:
    _prepare(numpy, tmp_path)
    with pytest.raises(Died, match="no answer in 0 seconds"):
        numpy.ask("time", limit=0.1, seconds=30.0)
    with pytest.raises(Died, match="status -9"):
        numpy.ask("time", seconds=1.0)


def test_a_process_that_does_not_begin(tmp_path: Path) -> None:
    around = environments.variables(1, HERE, {})
    with pytest.raises(Died, match="KeyError: 'nobody'"):
        Process(HERE.python, "nobody", 1, around, tmp_path / "log")


def test_turns_leave_out_who_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = (peer("plusequals"), peer("numpy"))
    monkeypatch.setattr(measure, "TURN", 1e-4)
    with measure.Crew(peers, 1, {"optimize": "0"}, tmp_path, lambda text: None) as crew:
        assert list(crew.there()) == ["plusequals", "numpy"]
        assert "optimize=0" in crew.versions["plusequals"]
        timings, why = measure.measure(crew, cell("softmax:small"), 3, tmp_path, lambda text: None)
        assert why == {} and {t.rounds for t in timings.values()} == {3}
        monkeypatch.setattr(measure, "wrong", lambda *given: "off")
        timings, why = measure.measure(crew, cell("softmax:small"), 1, tmp_path, lambda text: None)
        assert timings == {} and why == {"plusequals": "wrong: off", "numpy": "wrong: off"}


def test_nobody_always_comes_after_the_same_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class One:
        def __init__(self, name: str) -> None:
            self.name = name

        def ask(self, do: str, **asked: object) -> dict[str, int]:
            turns.append(self.name)
            return {"calls": 1, "nanoseconds": 1}

    class Group:
        clock = "wall"

        def there(self) -> dict[str, One]:
            return {name: One(name) for name in "abc"}

    monkeypatch.setattr(measure, "SETTLE", 0.0)
    samples = measure.take_turns(cast("measure.Crew", Group()), [*"abc"], 40, {})
    assert {name: len(taken) for name, taken in samples.items()} == {"a": 40, "b": 40, "c": 40}
    assert all(sorted(turns[k : k + 3]) == [*"abc"] for k in range(0, 120, 3))
    before = {turns[k - 1] for k in range(1, 120) if turns[k] == "a"}
    assert before >= {"b", "c"}
    assert len({"".join(turns[k : k + 3]) for k in range(0, 120, 3)}) == 6, "every order"


def test_a_peer_that_cannot_be_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(made: Peer, say: object) -> Environment:
        raise NotInstalled("no wheel")

    monkeypatch.setattr(measure, "environment", refuse)
    with measure.Crew((peer("jax"),), 1, {}, tmp_path, lambda text: None) as crew:
        assert crew.left_out == {"jax": "no wheel"} and crew.there() == {}


def test_an_environment_is_made_once_and_kept_only_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(words: list[str]) -> None:
        ran.append(words)
        if len(ran) == 2:
            raise NotInstalled("pip failed")
        (tmp_path / "unrelated").touch()
        Path(words[-1]).mkdir(exist_ok=True) if "venv" in words else None

    monkeypatch.setattr(environments, "_run", run)
    said: list[str] = []
    with pytest.raises(NotInstalled):
        environments.environment(peer("jax"), said.append, tmp_path)
    assert not list(tmp_path.glob("jax-*")), "half an environment does not stay"
    found = environments.environment(peer("jax"), said.append, tmp_path)
    again = environments.environment(peer("jax"), said.append, tmp_path)
    assert found == again and len(ran) == 4 and said == ["installing JAX (once)"] * 2


@pytest.mark.parametrize(
    "said, reason",
    [
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "build for processors"),
        ("WARNING: slow\nERROR: no space\n", "no space"),
        ("", "pip failed"),
    ],
)
def test_why_an_installation_failed(said: str, reason: str) -> None:
    assert reason in environments._reason(said)


def test_variables_say_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = environments.variables(2, HERE, {"optimize": "1"})
    assert found["OMP_NUM_THREADS"] == found["PLUSEQUALS_THREADS"] == "2"
    assert found["PLUSEQUALS_OPTIMIZE"] == "1"
    assert environments.variables(2, HERE, {"threads": "1"})["PLUSEQUALS_THREADS"] == "1"


def test_a_run_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, "TURN", 1e-4)
    page = tmp_path / "page.md"
    page.write_text(f"{command.BEGIN}\n{command.END}\n")
    words = ["--cells", "saxpy", "--sizes", "small", "--peers", "numpy", "--rounds", "2", "--out",
             str(tmp_path), "--threads", "1", "--parts", "cells,calls", "--into", str(page),
             "--setting", "optimize=0"]  # fmt: skip
    assert command.main(words) == 0
    report = results.read(tmp_path / "results.json")
    assert [row.cell for row in report.rows] == ["saxpy:small"]
    assert set(report.rows[0].timings) == {"plusequals", "numpy"} == set(report.calls)
    assert json.loads((tmp_path / "results.json").read_text())["problems"] == []
    text = (tmp_path / "performance.md").read_text()
    assert "| saxpy:small |" in text and text in page.read_text()
    assert text in capsys.readouterr().out
    assert (tmp_path / "cells-1.png").exists()
    assert command.main(["--show", str(tmp_path / "results.json"), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "performance.md").read_text() == text


def test_nothing_begins_after_the_budget(tmp_path: Path) -> None:
    words = ["--cells", "saxpy", "--sizes", "small", "--peers", "numpy", "--out", str(tmp_path),
             "--threads", "1", "--parts", "ceilings,cells", "--budget", "0"]  # fmt: skip
    assert command.main(words) == 0
    report = results.read(tmp_path / "results.json")
    assert report.rows == [] and report.ceilings == []
    assert report.problems[0] == "ceilings: the budget was used up"
