"""What runs print is theirs; everything else passes through, at once and untouched."""

from __future__ import annotations

import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.backends.runtime.printed_output import PrintCapture, Splitter

PIECES = st.lists(
    st.binary(max_size=6) | st.sampled_from([b"!@#1: a\n", b"!@#2: b\n", b"!@", b"!"])
)


@given(PIECES)
def test_pieces_of_any_size_pass_through(pieces: list[bytes]) -> None:
    splitter = Splitter(lambda line: False)
    out = b"".join(map(splitter.given, pieces)) + splitter.rest()
    assert out == b"".join(pieces)


def test_only_what_may_be_a_line_of_a_run_is_held() -> None:
    lines: list[bytes] = []

    def taken(line: bytes) -> bool:
        lines.append(line)
        return line.startswith(b"!@#1: ")

    splitter = Splitter(taken)
    assert splitter.given(b"prompt> ") == b"prompt> "
    assert splitter.given(b"50!@") == b"50"
    assert splitter.given(b"#1") == b""
    assert splitter.given(b": x\nrest!@#x") == b"rest!@#x"
    assert splitter.given(b"!@#7: not ours\n") == b"!@#7: not ours\n"
    assert lines == [b"!@#1: x", b"!@#7: not ours"]


def arrived(capfd: pytest.CaptureFixture[str], wanted: str) -> bool:
    """Whether output comes within a while, before the run ends."""
    seen, end = "", time.monotonic() + 60
    while seen != wanted and time.monotonic() < end:
        seen += capfd.readouterr().out
    return seen == wanted


def test_lines_of_runs_are_taken_out_of_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    printed = PrintCapture()
    with printed.run() as one, printed.run() as two:
        os.write(1, b"before, ")
        assert arrived(capfd, "before, ")
        os.write(1, f"{one.mark}first\n{two.mark}other\nmore\n{one.mark}second\n".encode())
        os.write(1, b"at last\n")
    os.write(1, b"behind\n")
    assert one.lines == ["first", "second"] and two.lines == ["other"]
    assert capfd.readouterr().out == "more\nat last\nbehind\n"


def test_runs_of_many_threads_get_their_own_lines(capfd: pytest.CaptureFixture[str]) -> None:
    printed = PrintCapture()
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        with printed.run() as run:
            for n in range(50):
                os.write(1, f"{run.mark}{number} {n}\n".encode())
        found[number] = run.lines

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [f"{k} {n}" for n in range(50)] for k in range(4)}
    assert capfd.readouterr().out == ""


def test_the_output_is_put_back_where_a_run_fails(capfd: pytest.CaptureFixture[str]) -> None:
    printed = PrintCapture()
    with pytest.raises(ValueError, match="failed"), printed.run() as run:
        os.write(1, f"{run.mark}a line without an end".encode())
        raise ValueError("failed")
    os.write(1, b"behind")
    assert capfd.readouterr().out == f"{run.mark}a line without an endbehind"
    assert run.lines == []
