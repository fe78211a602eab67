"""What can be tested of it without a GPU: everything but the device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from benchmarks.cell import Case
from plusequals.backends.cuda import driver as driver_of
from plusequals.backends.cuda import nvrtc
from plusequals.backends.cuda.backend import translate
from tests.backends.cuda.on_cpu import CpuDriver, Gxx, backend, installed, needs_gxx
from tests.backends.cuda.test_nvrtc import needed, needs_nvrtc

from . import __main__ as command
from . import abreast, launching, machine, measure, nests, peers, sanitizer, suite, tensors
from .jobs import done
from .kernels import LeftOut, prepared
from .machine import Facts
from .measure import BEGIN, END, Row, copy_rate, into, rows, table
from .sharing import groups
from .work import MEASURED, Measured, empty


class Played:
    """A device that this processor plays."""

    facts = Facts("fibres", "sm_90", "13.0", 227 * 1024)

    def __init__(self) -> None:
        self.context = CpuDriver(seed=3).open(0)
        self.duration = iter(range(1, 10_000))
        self.loaded: dict[bytes, Any] = {}

    def allocate(self, size: int) -> int:
        return self.context.allocate(max(size, 8), None)

    def free(self, address: int) -> None:
        self.context.free(address, None)

    def upload(self, address: int, array: np.ndarray) -> None:
        self.context.upload(address, np.ascontiguousarray(array), None)

    def download(self, array: np.ndarray, address: int) -> None:
        self.context.download(array, address, None)

    def clear(self, address: int, size: int) -> None:
        self.context.clear(address, size, None)

    def copy(self, address: int, source: int, size: int) -> None:
        self.context.copy(address, source, size, None)

    def function(self, code: bytes, name: str, count: int, given: int = 0) -> Any:
        if code not in self.loaded:
            self.loaded[code] = self.context.load(code)
        return self.context.function(self.loaded[code], name, count, given)

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int],
               arguments: Sequence[int], given: int = 0) -> None:  # fmt: skip
        self.context.launch(function, tuple(grid), tuple(block), arguments, None, given)

    def seconds(self, call: Callable[[], object]) -> float:
        call()
        return 0.001 * next(self.duration)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let medians be of few runs."""
    monkeypatch.setattr(measure, "median", lambda device, call: device.seconds(call))


@needs_gxx
@pytest.mark.parametrize("what", MEASURED, ids=lambda what: what.workload.name)
def test_every_workload_computes_what_it_should(what: Measured) -> None:
    device = Played()
    (row,) = rows(device, Gxx(), [what], {}, is_small=True)
    assert row.why == {} and row.ours is not None
    assert not device.context.arrays, "all memory is given back"
    assert row.bytes > 0 and row.flops > 0


@needs_nvrtc
def test_kernels_of_full_size_are_compiled_without_spills(tmp_path: Path) -> None:
    for what in MEASURED:
        size = what.cell().size
        case = what.workload.case(size)
        function = getattr(what.functions("plusequals"), what.called).__wrapped__
        procedure = pe.cd(function).procedure(*empty(case), *case.inputs, *case.numbers)
        with pe.override(verify=False, tf32=what.tf32):
            plan = translate(procedure, CpuDriver().properties(0))
        target = CpuDriver().properties(0).target_of(plan.text.specific)
        made = needed().build(plan.text.text, target, tmp_path)
        assert made.figures and "warning" not in made.log
        for name, figures in made.figures.items():
            assert figures.spilled == figures.stack == 0, (what.workload.name, name, str(figures))


@needs_gxx
def test_the_host_is_measured_by_routines_that_nobody_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = CpuDriver()
    monkeypatch.setattr(launching, "ROUNDS", 2)
    monkeypatch.setattr(launching, "CALLS", 3)
    with installed(backend(driver)):
        assert launching.seconds() > 0
        asked = [what for _, what, *_ in driver.log]
        first = asked.index("launch")
        assert asked[first : first + 3] == ["launch"] * 3
    monkeypatch.setattr(launching, "TEXT", "def halved(p):\n    p.value[i] = p.value[i] * 2\n")
    with installed(backend(driver)), pytest.raises(AssertionError, match="something else"):
        launching.seconds()


def test_what_the_host_spends_is_measured_in_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "ways", lambda: ["pycuda", "cuda.bindings"])
    monkeypatch.setattr(launching, "seconds", lambda: 2.5e-6)
    monkeypatch.setattr(driver_of, "DRIVERS", driver_of.DRIVERS)
    run = abreast.run

    def here(commands: Any, what: str, *given: Any) -> list[abreast.Ran]:
        (words,) = commands.values()
        assert words[:5] == (sys.executable, "-m", "tests.gpu", "--inside", "launching")
        code = "import sys; sys.exit('no device')" if "pycuda" in words else "print(2.5e-06)"
        return run({"x": (sys.executable, "-c", code)}, what, *given)

    monkeypatch.setattr(abreast, "run", here)
    assert command.queued().splitlines()[2:] == [
        "through `pycuda` it was not measured, no device.",
        "through `cuda.bindings` 2.5 microseconds.",
    ]
    assert command.main(["--inside", "launching", "--way", "pycuda"]) == 0
    assert [way for way, _ in driver_of.DRIVERS] == ["pycuda"]


@needs_gxx
def test_what_is_wrong_is_not_timed() -> None:
    what = MEASURED[0]

    def off(measured: Measured, case: Case) -> peers.Ready:
        return peers.Ready(lambda: None, lambda found: empty(case))

    def absent(measured: Measured, case: Case) -> peers.Ready:
        raise LeftOut("it is not there")

    (row,) = rows(Played(), Gxx(), [what], {"off": off, "absent": absent}, is_small=True)
    assert row.others == {}
    assert row.why["absent"] == "it is not there"
    assert row.why["off"].startswith("wrong: result 0 is off")


@needs_gxx
def test_what_needs_the_host_is_left_out() -> None:
    def halved(x):  # type: ignore[no-untyped-def]
        x[:] = x / 2
        print(x[0])

    device = Played()
    made = prepared(halved, (np.ones(4),), device, Gxx())
    with pytest.raises(LeftOut, match="the host decides"):
        made.run()


def test_libraries_without_a_device_say_so() -> None:
    what = MEASURED[0]
    case = what.workload.case(what.cell(True).size)
    made = {"cupy": peers.cupy, "jax": peers.jax, "torch": peers.torch_eager,
            "triton": peers.triton}  # fmt: skip
    for name, peer in made.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(LeftOut, match=f"{name} cannot be imported"):
                peer(what, case)


def test_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    assert machine.median(Played(), lambda: calls.append(1), 0.0) == 0.005
    assert len(calls) == 7
    assert peers.host_median(lambda: calls.append(1), 0.0) > 0
    assert len(calls) == 14


@needs_gxx
def test_the_rate_of_a_copy() -> None:
    assert copy_rate(Played(), 1 << 10) == pytest.approx(2 * 1024 / 0.001)


def test_the_table_and_the_page() -> None:
    found = [
        Row("a:1", "bytes", 8e9, 1.0, 0.004, {"P": 0.005, "Q": 0.002}),
        Row("b:2", "operations", 1.0, 5e12, 0.5, {"P": 0.4}, {"Q": "it is not there"}),
        Row("c:3", "bytes", 1.0, 1.0, None, {}, {"plusequals": "wrong"}),
    ]
    text = table(found, 4e12, ["P", "Q"])
    assert text.splitlines() == [
        "| cell | plusequals | rate | of a copy | P | Q | over the best |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| `a:1` | 4 ms | 2,000 GB/s | 0.50 | 5 ms | 2 ms | 2.00 |",
        "| `b:2` | 500 ms | 10.0 TFLOP/s |  | 400 ms | – | 1.25 |",
        "| `c:3` | – | – |  | – | – | – |",
        "", "Not measured:", "", "* Q, `b:2`: it is not there", "* plusequals, `c:3`: wrong",
    ]  # fmt: skip
    for row in found:
        row.why = {"R": "it is nowhere"}
    assert table(found, 4e12, []).endswith("Not measured:\n\n* R: it is nowhere")
    page = f"before\n{BEGIN}\nold\n{END}\nbehind\n"
    assert into(page, text) == f"before\n{BEGIN}\n\n{text}\n\n{END}\nbehind\n"
    with pytest.raises(ValueError, match="has no"):
        into("nothing", text)


def test_the_page_is_written_after_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")

    def measured(*_: object) -> Iterator[Row]:
        yield Row("saxpy:1", "bytes", 12.0, 2.0, 1e-3)
        assert "| `saxpy:1` | 1 ms |" in page.read_text()
        yield Row("nbody:1", "operations", 12.0, 2.0, None, why={"plusequals": "it is lost"})

    monkeypatch.setattr(command, "Cuda", Played)
    monkeypatch.setattr(command, "queued", lambda: "nothing.")
    monkeypatch.setattr(command, "rows", measured)
    monkeypatch.setattr(command, "copy_rate", lambda machine: 1e9)
    monkeypatch.setattr(nvrtc, "find_compiler", lambda newest: Gxx())
    assert not command.benchmark(command.options(["benchmark", "--into", str(page)]))
    assert "* plusequals, `nbody:1`: it is lost" in page.read_text()
    assert "within the device reads and writes 1 GB/s" in capsys.readouterr().out


def test_the_page_of_performance_has_a_place_for_it() -> None:
    page = (command.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "x" in into(page, "x")


def test_without_a_device_it_is_said_that_nothing_was_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "LIBRARY", "no-such-library.so")
    assert command.main([]) == 0
    assert capsys.readouterr().out.startswith("not run: there is no driver: no-such-library.so")


def test_a_part_that_breaks_off_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*given: object) -> bool:
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(command, "missing", lambda: "")
    monkeypatch.setattr(command, "looked", lambda what, seconds: seconds == 9)
    monkeypatch.setattr(suite, "passed", broken)
    monkeypatch.setattr(command, "sanitized", lambda tools, seconds: True)
    monkeypatch.setattr(command, "benchmark", broken)
    assert command.main(["tests", "sanitizer", "benchmark", "--seconds", "9"]) == 2
    told = capsys.readouterr()
    assert told.out == "failed: suite, benchmark\n"
    assert told.err.count("RuntimeError: the device is lost") == 2


def test_the_tests_of_others_are_given_a_device_and_little_time() -> None:
    words = suite.command()
    assert words[1:3] == ["-m", "pytest"] and {*suite.TESTED, "cuda"} <= {*words}
    assert len([word for word in words if word.startswith("--deselect=")]) == len(suite.OTHERWISE)
    assert words[words.index("-p") + 1] == "tests.gpu.told"


def test_as_a_command() -> None:
    words = [sys.executable, "-m", "tests.gpu", "benchmark", "--cells", "softmax"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(command.ROOT)}
    done = subprocess.run(
        words, cwd=command.ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("not run: ")


def test_what_is_left_out_is_there() -> None:
    for test in suite.OTHERWISE:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (command.ROOT / path).read_text("utf-8")


def test_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert [what.workload.name for what in command.options(["--cells", "nbody"]).cells] == ["nbody"]
    assert len(command.options([]).cells) == len(MEASURED)
    assert command.options(["--tools", "racecheck"]).tools == ["racecheck"]
    assert command.options([]).tools == sanitizer.TOOLS
    assert command.options([]).parts == [*command.PARTS]
    assert command.options(["suite", "tests"]).parts == ["suite", "programs", "products"]
    for words in (["tets"], ["--tools", "none"], ["--cells", "nothing"]):
        with pytest.raises(SystemExit):
            command.options(words)
    assert "there is no workload nothing" in capsys.readouterr().err


@needs_nvrtc
@pytest.mark.parametrize("tool", sanitizer.TOOLS)
def test_planted_faults_compile(tool: str, tmp_path: Path) -> None:
    assert needed().build(sanitizer.WRONG[tool], "sm_90", tmp_path).figures.keys() == {"wrong"}
    words = sanitizer.command(tool, "nests")
    assert words[1:3] == ["--tool", tool] and words[-2:] == ["--inside", "nests"]


def test_a_sanitizer_that_is_not_there_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer.shutil, "which", lambda name: None)
    told = True, "memcheck: not run, compute-sanitizer is not installed"
    assert sanitizer.checked("memcheck", command.ROOT) == told


def test_a_sanitizer_has_to_notice_what_is_planted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sanitizer.shutil, "which", lambda name: name)
    for codes, passed, said in (
        ((0, 0), False, "not noticed"), ((66, 66), False, "status 66"), ((66, 0), True, "clean"),
    ):  # fmt: skip
        says = [
            f"print('@ 3 0 4 x'); print('{sanitizer.NOISE} a report'); exit({n})" for n in codes
        ]
        run = {str(at): [sys.executable, "-c", text] for at, text in enumerate(says)}
        monkeypatch.setattr(sanitizer, "commands", lambda tool, seconds, run=run: run)
        found = sanitizer.checked("racecheck", command.ROOT)
        assert found[0] is passed and said in found[1] and "3 of 4" in found[1]
        assert ("a report" in found[1]) is not passed
        assert sanitizer.NOISE not in capsys.readouterr().out


def test_processes_under_a_tool_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [job.name for job in sanitizer.jobs()]
    assert {*names} >= {*nests.NESTS, "plain, tf32"} and len(names) == len({*names})
    found = sanitizer.commands("memcheck", 9.0)
    assert [words[-6:] for words in [*found.values()][1:2]] == [
        ["--inside", "nests", "--share", f"1/{len(found) - 1}", "--seconds", "9.0"]
    ]


@needs_gxx
def test_loops_of_every_kind_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    few = dict(list(nests.NESTS.items())[:3])
    monkeypatch.setattr(nests, "NESTS", few)
    with installed(backend(CpuDriver(memory=1 << 26))):
        tally = done(nests.jobs(sizes=(5,)))
    assert (tally.looked, tally.count, tally.wrong) == (3, 3, [])


def test_all_programs_that_are_wrong_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    few = dict(list(nests.NESTS.items())[:3])
    monkeypatch.setattr(nests, "NESTS", few)
    monkeypatch.setattr(nests, "compare", lambda *given: 1 / 0)
    said: list[str] = []
    tally = done(nests.jobs(sizes=(5, 7)), say=said.append)
    assert len(tally.wrong) == 3
    for name, text in zip(few, tally.wrong, strict=True):
        assert text == "\n".join(
            (f"{name}: 5: ZeroDivisionError: division by zero",
             "7: ZeroDivisionError: division by zero")
        )  # fmt: skip
        assert f"wrong: {text}" in said


@needs_gxx
def test_products_by_tensor_cores_are_compared() -> None:
    with installed(backend(CpuDriver(memory=1 << 26, seed=2))):
        tally = done(tensors.jobs(sizes=((65, 18, 33),)))
    assert tally.looked == 15 and not tally.wrong


@needs_gxx
def test_products_that_are_wrong_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tensors.PRODUCTS["plain"]
    wrong = replace(right, meaning=lambda c, a, b: a @ b + 2.0**-9)
    jobs = tensors.jobs(sizes=((17, 18, 33),), names=("plain",))
    monkeypatch.setitem(tensors.PRODUCTS, "plain", wrong)
    with installed(backend(CpuDriver(memory=1 << 26))):
        assert "plain, float16: (17, 18, 33): AssertionError: off by" in done(jobs).wrong[0]
        monkeypatch.setitem(tensors.PRODUCTS, "plain", right)
        monkeypatch.setattr(tensors, "settings_of", lambda kind: pe.override(profile="strict"))
        found = done(jobs).wrong
    assert len(found) == 3 and all("tensor cores are not used" in text for text in found)
