"""What devices of many threads do instead: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.device_branches import select_cpu_branches, select_gpu_branches
from plusequals.lowering.ir.assignments import For, Procedure
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import statements

SORTED = pe.cd_from_source("def f(y, x):\n    y[:] = np.sort(x)\n", {"np": np})
HARD = np.array([0.0, -0.0, np.nan, 1.0, -np.inf, 0.0, np.nan, -0.0, np.inf, 1.0, 1.0] * 7)


def by_rank(x: Any) -> Any:
    """Return a line in rising order with -0 before 0, NaN last."""
    return np.array(sorted(x, key=OPS["rank"].meaning), x.dtype)


def sides(text: str, x: Any, y: Any) -> list[bytes]:
    """Return what each side leaves in `y`."""
    procedure = pe.cd_from_source(f"def f(y, x):\n    {text}\n", {"np": np}).procedure(y, x)
    return [run(side(procedure), x, y) for side in (select_cpu_branches, select_gpu_branches)]


def run(procedure: Procedure, x: Any, y: Any) -> bytes:
    held = [y.copy(), x.copy()]
    run_procedure(procedure, held, print)
    return bytes(held[0].tobytes())


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 65, 77])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_a_line(name: str, n: int) -> None:
    x = HARD[:n]
    wanted = by_rank(x) if name == "sort" else np.argsort(x, kind="stable")
    few, many = sides(f"y[:] = np.{name}(x)", x, np.zeros_like(wanted))
    assert many == few == wanted.tobytes()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("shape", [(3, 20), (20, 3), (1, 9)])
def test_rows_and_columns(name: str, axis: int, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype("i2")
    wanted = getattr(np, name)(x, axis=axis, kind="stable")
    few, many = sides(f"y[:] = np.{name}(x, axis={axis})", x, np.zeros_like(wanted))
    assert many == few == wanted.tobytes()


def test_an_array_is_sorted_in_its_place() -> None:
    y = HARD.reshape(7, 11).copy()
    few, many = sides("y.sort(axis=0)", y[0], y)
    assert many == few == np.sort(y, axis=0, kind="stable").tobytes()


@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_many_threads_sort_where_one_parts(name: str) -> None:
    wanted = by_rank(HARD) if name == "partition" else np.argsort(HARD, kind="stable")
    few, many = sides(f"y[:] = np.{name}(x, 30)", HARD, wanted)
    assert many == wanted.tobytes() != few
    found = np.frombuffer(few, wanted.dtype)
    values = found if name == "partition" else HARD[found]
    np.testing.assert_array_equal(values[30], np.sort(HARD)[30])


def levels(procedure: Procedure) -> list[For]:
    """Return the loops over rounds of merges."""
    inside = statements(select_gpu_branches(procedure).body)
    return [s for s in inside if isinstance(s, For) and s.symbol.name == "level"]


@pytest.mark.parametrize(("n", "rounds"), [(4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4)])
def test_there_are_as_many_rounds_as_a_row_asks_for(n: int, rounds: int) -> None:
    (loop,) = levels(SORTED.procedure(np.zeros(n), np.zeros(n)))
    assert loop.hi.constant == rounds


def test_only_the_run_knows_how_many_where_it_knows_the_size() -> None:
    f = pe.cd_from_source("def f(x):\n    return np.sort(x)\n", {"np": np})
    for n in (5, 6, 7, 9):
        f(HARD[:n])
    (loop,) = levels(f.procedure(HARD[:70]))
    assert loop.hi.constant is None
