"""The checks themselves, on a device that this processor plays, with a package that is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plusequals.backends.cuda import driver
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.runtime.state import RUNTIME
from tests.backends.cuda.late import LateContext, LateDriver
from tests.backends.cuda.on_cpu import CpuDriver, backend, installed, needs_gxx
from tests.backends.cuda.test_explained import Saying

from .. import __main__ as command
from .. import abreast
from ..jobs import Job, NotAsked, done
from . import alone, arrays, groups, running, two
from .packages import PACKAGES
from .stand_in import StandIn

LACKING = {"refused where it is read-only", "results that are views", "of bfloat16"}
"""What the package that is none does not have."""


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(LateDriver(memory=1 << 28), Saying)) as made:
        yield made
        for device in [one for key, one in RUNTIME.devices.items() if key[0] == "cuda"]:
            device.synchronize()


@needs_gxx
@pytest.mark.parametrize("name", arrays.OF_ALL)
def test_checks_of_a_package(
    made: CompiledCuda, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGE", 40)
    package = StandIn(made.opened(0))
    try:
        arrays.OF_ALL[name](package)
    except NotAsked as why:
        assert name in LACKING, why


@needs_gxx
@pytest.mark.parametrize("name", running.CHECKS)
def test_checks_of_running_work(
    made: CompiledCuda, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LARGE", 40)
    monkeypatch.setattr(running, "CALLS_QUEUED", 20)
    monkeypatch.setattr(running, "THREADS", 2)
    monkeypatch.setattr(running, "TURNS", 3)
    monkeypatch.setattr(running, "TIMES", 7)
    monkeypatch.setattr(running, "LENGTHS", (9, 9_001))
    assert done([Job(name, running.CHECKS[name])]).wrong == []


@needs_gxx
@pytest.mark.parametrize("name", list(alone.CHECKS)[:3])
def test_checks_of_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "MANY", 1 << 10)
    monkeypatch.setattr(alone, "SPARE", 1 << 15)
    with installed(backend(CpuDriver(memory=1 << 17))):
        assert done([Job(name, alone.CHECKS[name])]).wrong == []


class Poisoned(LateContext):
    """A device that is lost when it is told so, and says it when it is asked for anything."""

    lost = False

    def reach(self, stream: Any, point: int) -> None:
        if self.lost:
            raise DriverError("an illegal memory access was encountered")
        super().reach(stream, point)


class PoisonedDriver(LateDriver):
    def open(self, device: int) -> Poisoned:
        return Poisoned(self, device)


@needs_gxx
def test_work_that_fails_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def poison() -> None:
        alone.device().context.lost = True

    monkeypatch.setattr(alone, "poison", poison)
    with installed(backend(PoisonedDriver())):
        assert done([Job("later", alone.work_that_fails_later)]).wrong == []
        alone.device().context.lost = False


@needs_gxx
def test_what_is_wrong_is_noticed(made: CompiledCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that lie, and texts that do something else."""
    package = StandIn(made.opened(0))
    kept, moved = StandIn.pointer, StandIn.host
    monkeypatch.setattr(StandIn, "pointer", lambda self, one: kept(self, one) + 8)
    with pytest.raises(AssertionError, match="asarray copies it"):
        arrays.results_are_taken_without_a_copy(package)
    monkeypatch.setattr(StandIn, "host", lambda self, one: moved(self, one) + 1)
    with pytest.raises(AssertionError, match="it computes something else"):
        arrays.used_in_place(package)
    monkeypatch.setattr(running, "STEP", running.STEP.replace("2", "3"))
    with pytest.raises(AssertionError):
        running.the_host_writes_and_reads_in_order()
    with pytest.raises(AssertionError, match="instead of"):
        running.alike(["x[0] = 1.5"], ["x[0] = 1.6"])
    running.alike(["x[0] = 1.5"], ["x[0] = 1.5000000001"])


def test_packages_that_are_not_there_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    groups._package.cache_clear()
    for name in PACKAGES:
        with monkeypatch.context() as patch:
            for one in (name, "numba.cuda"):
                patch.setitem(sys.modules, one, None)
            said: list[str] = []
            tally = done(groups.jobs(name), say=said.append)
        assert (tally.looked, tally.count, tally.wrong) == (0, 0, [])
        told = [line for line in said if not line.startswith("@")]
        assert len(told) == 1 and told[0].startswith(f"{name}: is there: left out: {name}")
    groups._package.cache_clear()
    for name in ("cupy", "torch", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    assert done([Job(name, check) for name, check in two.CHECKS.items()]).count == 0


def test_each_group_has_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(commands: Any, what: str, seconds: float, root: Path) -> list[abreast.Ran]:
        asked.append([*commands])
        return []

    monkeypatch.setattr(groups, "ways", lambda: ["pycuda", "cuda.bindings"])
    monkeypatch.setattr(abreast, "run", run)
    assert groups.passed(command.ROOT, 9.0)
    first = [*PACKAGES, "two", "running 1", "running 2", "running 3"]
    assert asked == 2 * [first, *([name] for name in alone.CHECKS)]
    words = groups.command("pycuda", "running", "--share", "1/3")
    assert words[3:] == ["--inside", "sharing running", "--way", "pycuda", "--share", "1/3"]


def test_ways_that_are_not_installed_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(way: str) -> object:
        if "." in way:
            raise ModuleNotFoundError(way)
        return way

    monkeypatch.setattr(groups, "find_spec", find)
    assert groups.ways() == ["pycuda"]
    monkeypatch.setattr(groups, "find_spec", lambda way: None)
    assert groups.ways() == []


def test_a_group_is_looked_at_in_one_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(driver, "DRIVERS", driver.DRIVERS)
    monkeypatch.setitem(groups.OTHERS, "two", {"one": lambda: None, "bad": lambda: 1 / 0})
    assert command.main(["--inside", "sharing two", "--way", "cuda.bindings"]) == 1
    assert [way for way, _ in driver.DRIVERS] == ["cuda.bindings"]
    told = capsys.readouterr().out.splitlines()
    assert "one: passed" in told and "wrong: bad: ZeroDivisionError: division by zero" in told
