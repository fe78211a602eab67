"""A plugin of pytest: the text of a test that fails is shown when it fails, not at the end.

    python -m pytest -p tests.gpu.told ...

What runs when a session is interrupted is told, too: that is where it hangs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

LINES = 40
"""So many lines of a failure are shown, the last ones."""
LONG = 5.0
"""Seconds that a test takes before it is told that it runs still."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist tell it to one
        config.pluginmanager.register(Told(config))


@dataclass(eq=False)
class Told:
    """What is known of tests while they run."""

    config: pytest.Config
    running: dict[str, float] = field(default_factory=dict)
    """When they have begun, by name."""

    def show(self, *lines: str) -> None:
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        for line in lines:
            reporter.ensure_newline()
            reporter.write_line(line)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            text = report.longreprtext.splitlines()
            self.show(f"failed in {report.when}: {report.nodeid}", *text[-LINES:])

    def pytest_terminal_summary(self) -> None:
        for nodeid, since in self.running.items():
            took = time.monotonic() - since
            if took >= LONG:
                self.show(f"still running after {took:.0f} s: {nodeid}")
