"""Work that is dealt out to processes: what they say, what is passed on, and how they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import __main__ as command
from . import abreast, told
from .jobs import Job, NotAsked, done, share

PYTHON = (sys.executable, "-c")


def raising(why: Exception) -> Job:
    def look() -> None:
        raise why

    return Job(type(why).__name__, look)


def test_what_is_wrong_is_said_at_once_and_does_not_end_the_others() -> None:
    said: list[str] = []
    jobs = [raising(AssertionError("off by 2")), raising(KeyError("x")), Job("fine", lambda: None)]
    tally = done([*jobs, raising(NotAsked())], say=said.append)
    assert (tally.looked, tally.count) == (3, 3)
    assert said == [
        "@ 0 0 4 AssertionError", "wrong: AssertionError: off by 2", "@ 1 1 4 KeyError",
        "wrong: KeyError: KeyError: 'x'", "@ 2 2 4 fine", "@ 3 2 4 NotAsked", "@ 3 2 3 ",
    ]  # fmt: skip


def test_no_more_is_begun_when_time_is_over() -> None:
    tally = done([Job("never", lambda: pytest.fail("it was begun"))], 0.0, lambda line: None)
    assert (tally.looked, tally.count) == (0, 1)


def test_shares_are_all_of_it() -> None:
    jobs = [Job(str(n), print) for n in range(11)]
    names = [job.name for at in (1, 2, 3) for job in share(jobs, f"{at}/3")]
    assert sorted(names, key=int) == [job.name for job in jobs]


def test_processes_run_at_the_same_time_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "print('@ 1 0 4 one'); print('wrong: it is'); print('no'); print('@ 4 2 4 '); exit({})"
    names = {"a": 0, "b": 3}
    ran = abreast.run(
        {name: (*PYTHON, text.format(n)) for name, n in names.items()},
        "things", 60, tmp_path, lambda line: line != "no",
    )  # fmt: skip
    assert [one.status for one in ran] == [0, 3]
    assert [one.lines for one in ran] == [["wrong: it is", "no"]] * 2
    assert abreast.progress(ran) == "8 of 8, 4 wrong"
    assert sorted(capsys.readouterr().out.splitlines()) == ["a: wrong: it is", "b: wrong: it is"]


def test_how_far_they_are_is_told_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(abreast, "OFTEN", 0.3)
    text = "import time; print('@ 1 0 4 one', flush=True); time.sleep(1.5)"
    abreast.run({"a": (*PYTHON, text)}, "things", 60, tmp_path)
    assert "things: 1 of 4, 0 wrong after " in capsys.readouterr().out


@pytest.mark.parametrize("stubborn", [False, True])
def test_one_that_hangs_is_told_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    stubborn: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(abreast, "GRACE", 2.0)
    how = "signal.SIG_IGN" if stubborn else "lambda *_: (print('the last words'), exit(7))"
    text = (
        f"import signal, time\nsignal.signal(signal.SIGINT, {how})\n"
        "print('@ 1 0 4 a long one', flush=True)\ntime.sleep(600)\n"
    )
    (one,) = abreast.run({"a": (*PYTHON, text)}, "things", 1.5, tmp_path)
    assert one.late and one.status == (-9 if stubborn else 7)
    assert "a: ended after 2 s, at a long one" in capsys.readouterr().out
    assert one.lines == ([] if stubborn else ["the last words"])


def test_a_share_is_looked_at_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abreast, "at_once", lambda: 2)
    asked: dict[str, list[str]] = {}

    def run(commands: dict[str, list[str]], *given: object) -> list[abreast.Ran]:
        asked.update(commands)
        process = subprocess.Popen((*PYTHON, "pass"), text=True)
        process.wait()
        return [abreast.Ran("x", process, looked=3, count=4)]

    monkeypatch.setattr(abreast, "run", run)
    assert not command.looked("products", 5.0), "one was not looked at"
    assert [words[-4:] for words in asked.values()] == [
        ("--share", "1/2", "--seconds", "5.0"), ("--share", "2/2", "--seconds", "5.0"),
    ]  # fmt: skip


def test_what_a_process_looks_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [Job(name, lambda: None) for name in "abc"]
    monkeypatch.setitem(command.JOBS, "programs", lambda: [*jobs, raising(ValueError("bad"))])
    assert command.main(["--inside", "programs", "--share", "1/2"]) == 0
    assert command.main(["--inside", "programs", "--share", "2/2"]) == 1
    assert "wrong: ValueError: ValueError: bad" in capsys.readouterr().out


def test_a_failure_is_shown_when_it_is_met(tmp_path: Path) -> None:
    text = "import os, signal, time\ndef test_bad():\n    assert 1 + 1 == 3, 'so it is not'\n"
    text += "def test_long():\n    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    text += f"    time.sleep({told.LONG + 0.1})\n"
    text += "    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
    (tmp_path / "test_some.py").write_text(text)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.gpu.told", "--tb=short"]
    words += ["-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path / "test_some.py")]
    (ran,) = abreast.run({"suite": words}, "", 300, command.ROOT, together=False)
    said = "\n".join(ran.lines)
    assert ran.status == 2
    assert "failed in call: " in said and "so it is not" in said
    assert "still running after " in said and "::test_long" in said
    assert "1 failed" in said
