"""A lock between processes and between threads; where there can be none it is done without."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plusequals.backends.cache import file_lock
from plusequals.backends.cache.file_lock import FileLockContext

PROGRAM = """
import sys
from plusequals.backends.cache.file_lock import FileLockContext
with FileLockContext(sys.argv[1], 0) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


def test_another_process_has_it_until_it_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path], cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with FileLockContext(path, 0.02) as held:
            assert not held
        other.kill()
    with FileLockContext(path, 10) as held:
        assert held


def test_another_thread_waits_for_it(tmp_path: Path) -> None:
    path, order = str(tmp_path / "lock"), []

    def second() -> None:
        with FileLockContext(path, 60) as held:
            order.append(("second", held))

    with FileLockContext(path, 0) as held:
        thread = threading.Thread(target=second)
        thread.start()
        with FileLockContext(path, 0.05) as again:
            order.append(("first", held and not again))
    thread.join()
    assert order == [("first", True), ("second", True)]


def test_a_forked_child_does_not_keep_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    reading, writing = os.pipe()
    with FileLockContext(path, 0) as held:
        assert held
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    with FileLockContext(path, 0) as held:
        assert held, "though the child has the file open"
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)


@pytest.mark.parametrize("take", [file_lock._flock, file_lock._file_lock])
def test_both_ways_say_the_same(tmp_path: Path, take: object) -> None:
    assert callable(take)
    path = str(tmp_path / "lock")
    give_back = take(path, 0)
    assert give_back is not None
    assert take(path, 0.02) is None
    give_back()
    again = take(path, 0)
    assert again is not None
    again()


def test_where_there_can_be_no_file_nobody_has_it(tmp_path: Path) -> None:
    with FileLockContext(str(tmp_path / "no" / "lock"), 10) as held:
        assert not held
