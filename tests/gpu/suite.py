"""Tests that take a backend, on the device: how pytest is started, and ended in time."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from . import abreast

TESTED = ("tests/dsl", "tests/language", "tests/test_language_page.py")
"""Where tests are that take a backend."""
OTHERWISE = {
    "tests/language/test_rules.py::test_k1_what_was_written_before_a_check_stays[cuda]":
        "where a check fails, arrays that a call was given stay as they were",
    "tests/test_language_page.py::test_example_gives_what_is_shown[cuda-K1-1]":
        "where a check fails, arrays that a call was given stay as they were",
    "tests/dsl/values/test_adapting.py::test_it_raises_in_program_order[cuda]":
        "where a check fails, arrays that a call was given stay as they were",
    "tests/language/test_rules.py::test_k3_sums_go_in_order[cuda]":
        "the threads of a block share sums in an order of their own",
}  # fmt: skip
"""Tests of what docs/cuda.md says is otherwise on a device."""
STUCK = 60
"""Seconds after which it is shown where a test is."""
LONGEST = 150
"""Seconds that a test may take, where pytest-timeout is installed."""


def command() -> list[str]:
    """Return the command that runs them: each failure is shown at once, and short."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.gpu.told", "-rfE", "--tb=short"]
    words += ["--durations=15", "-o", f"faulthandler_timeout={STUCK}"]
    if find_spec("pytest_timeout") is not None:
        words.append(f"--timeout={LONGEST}")
    if find_spec("pytest_benchmark") is not None:
        words.append("--benchmark-disable")
    if find_spec("xdist") is not None:
        words += ["-n", str(abreast.at_once()), "--dist", "worksteal"]
    words += [f"--deselect={test}" for test in OTHERWISE]
    return [*words, "-k", "cuda", "--backend", "cuda", *TESTED]


def passed(root: Path, seconds: float) -> bool:
    """Whether all pass; ends them when so many seconds are over, and shows what is known then."""
    for test, why in OTHERWISE.items():
        print(f"left out: {test}: {why}", flush=True)
    (ran,) = abreast.run({"suite": command()}, "", seconds, root, together=False)
    return ran.status == 0 and not ran.late
