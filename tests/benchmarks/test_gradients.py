"""Gradients of cells: against differences of the reference, refused where nobody else agrees."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import plusequals as pe
from benchmarks import command, gradients, measure, results
from benchmarks.cell import Array, Cell, Tolerance
from benchmarks.cells import cell, select
from benchmarks.measure import Crew
from benchmarks.peers import GRADIENTS, LOSS, PEERS, peer
from benchmarks.peers.library import Library, Task
from benchmarks.process import LeftOut

SMALL = gradients.cells(select(sizes=["small"]))


def _task(chosen: Cell) -> Task:
    work = chosen.workload
    case = work.case(chosen.size)
    numbers, constants = case.numbers, work.constants
    return Task(work.name, chosen.size.regime, case.inputs, case.results, numbers, constants)


def _answer(chosen: Cell, name: str) -> tuple[Array, ...]:
    """What a peer computes of a cell."""
    task, who = _task(chosen), peer(name)
    functions = importlib.import_module(f"benchmarks.{chosen.workload.kind}.{who.functions}")
    library: Library = importlib.import_module(who.adapter).Library(1)
    arguments = library.arguments(functions, task)
    before = [array.copy() for array in task.inputs]
    returned = library.function(functions, task)(*arguments)
    assert all(map(np.array_equal, task.inputs, before)), "an input was changed"
    return library.answer(returned, arguments, task)


@pytest.mark.parametrize("chosen", SMALL, ids=lambda chosen: chosen.name)
def test_plusequals_agrees_with_differences_of_the_reference(chosen: Cell) -> None:
    task, work = _task(chosen), chosen.workload
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in task.inputs]
    random, step = np.random.default_rng(1), 1e-6
    along = {n: random.standard_normal(wide[n].shape) for n in task.differentiated}

    def loss(distance: float) -> float:
        moved = [a + distance * along[n] if n in along else a for n, a in enumerate(wide)]
        found = work.reference(*moved, *task.numbers)
        several = found if isinstance(found, tuple) else (found,)
        return sum(float(np.sum(one * one)) for one in several)

    with pe.override(verify=False, optimize=0):
        value, *found = _answer(chosen, "plusequals_gradient")
        (alone,) = _answer(chosen, "plusequals_loss")
    change = (loss(step) - loss(-step)) / (2 * step)
    parts = [np.sum(g * along[n]) for n, g in zip(task.differentiated, found, strict=True)]
    scale = np.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in found))
    assert [g.shape for g in found] == [task.inputs[n].shape for n in task.differentiated]
    assert sum(parts) == pytest.approx(change, abs=1e-3 * scale)
    assert alone == pytest.approx(value, rel=1e-5) == pytest.approx(loss(0.0), rel=1e-4)


def test_cells_of_floats_have_gradients() -> None:
    without = {c.workload.name for c in select()} - {c.workload.name for c in SMALL}
    assert without == {"mandelbrot", "mandelbrot_exit", "histogram"}
    assert _task(cell("gather:small")).differentiated == (0,), "subscripts are constants"
    assert _task(cell("mlp_step:small")).differentiated == (0, 2, 3, 4, 5), "so are targets"


def test_a_gradient_is_asked_of_the_same_libraries() -> None:
    assert gradients.peers(PEERS) == (LOSS, *GRADIENTS)
    asked = gradients.peers([peer("plusequals"), peer("numpy"), peer("jax")])
    assert [one.name for one in asked] == ["plusequals_loss", "plusequals_gradient", "jax_gradient"]
    assert all(peer(one.base) in PEERS and one.title == peer(one.base).title for one in GRADIENTS)


def test_gradients_may_be_off_ten_times_as_far() -> None:
    assert gradients.tolerance(cell("softmax:small")) == Tolerance(1e-4)
    assert gradients.tolerance(cell("gather:small")) == Tolerance(gradients.LEAST)
    assert gradients.tolerance(cell("gemm_f64:64")).bound == pytest.approx(1e-11)


class One:
    """A process that answers, or does not."""

    def __init__(self, refuses: str) -> None:
        self.refuses, self.asked = refuses, {}

    def ask(self, do: str, **asked: object) -> dict[str, float]:
        if self.refuses:
            raise LeftOut(self.refuses)
        self.asked = asked
        return {"first": 1.0}


class Group:
    """A crew of such processes."""

    threads = 1

    def __init__(self, **there: str) -> None:
        self._there = {name: One(why) for name, why in there.items()}

    def there(self) -> dict[str, One]:
        return self._there


def _reference(group: Group, folder: Path) -> tuple[Array, ...] | str:
    crew = cast(Crew, group)
    return gradients.reference(crew, cell("saxpy:small"), folder, lambda text: None)


def test_the_reference_is_another_library_in_float64(tmp_path: Path) -> None:
    group = Group(torch_gradient="", jax_gradient="out of memory")
    assert _reference(group, tmp_path) == (), "the first one refused, this one wrote nothing"
    assert group.there()["torch_gradient"].asked["wide"] is True
    assert (tmp_path / "input_1.npy").exists()


def test_without_another_library_there_is_no_time(tmp_path: Path) -> None:
    alone = Group(plusequals_gradient="", jax_gradient="out of memory")
    assert _reference(alone, tmp_path) == (
        "there is no other library to compare the gradient with; out of memory"
    )
    row = gradients.row(cast(Crew, alone), cell("saxpy:small"), 1, tmp_path, lambda text: None)
    assert row.ours is None and "no other library" in row.why["plusequals"]


def test_a_run_of_gradients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TURN", 1e-4)
    monkeypatch.setattr(gradients, "REFERENCES", ("plusequals_gradient",))
    words = ["--cells", "saxpy,histogram", "--sizes", "small", "--peers", "numpy", "--rounds", "2",
             "--out", str(tmp_path), "--threads", "1", "--parts", "gradients",
             "--setting", "optimize=0"]  # fmt: skip
    assert command.main(words) == 0
    report = results.read(tmp_path / "results.json")
    (row,) = report.gradients
    assert (row.cell, set(row.timings), row.why) == ("saxpy:small", {"plusequals"}, {})
    assert row.over_forward is not None and row.ratio is None
    assert "optimize=0" in report.versions["plusequals"]
    assert "**Gradients with 1 thread**" in (tmp_path / "performance.md").read_text()
