"""Every workload: written for all peers, with outputs that the reference agrees with."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from benchmarks.cell import Cell, Result, Tolerance, wrong
from benchmarks.cells import WORKLOADS, cell, select
from benchmarks.peers import PEERS, peer
from benchmarks.peers.library import Library, Task

HERE = Path(__file__).resolve().parent.parent.parent / "benchmarks"
SMALL = select(sizes=["small"])


def _named(chosen: Cell) -> str:
    return chosen.name


def _found(chosen: Cell, name: str) -> str | None:
    """What is wrong with the results of a peer."""
    work, who = chosen.workload, peer(name)
    case = work.case(chosen.size)
    task = Task(work.name, chosen.size.regime, case.inputs, case.results, case.numbers)
    functions = importlib.import_module(f"benchmarks.{work.kind}.{who.functions}")
    library: Library = importlib.import_module(who.adapter).Library(1)
    arguments = library.arguments(functions, task)
    before = [array.copy() for array in case.inputs]
    returned = library.function(functions, task)(*arguments)
    for array, old in zip(case.inputs, before):
        assert np.array_equal(array, old), "an input was changed"
    return wrong(library.answer(returned, arguments, task), work.right(case), work.tolerance)


@pytest.mark.parametrize("chosen", SMALL, ids=_named)
def test_plusequals_agrees_with_the_reference(chosen: Cell) -> None:
    with pe.override(verify=False, optimize=0):  # other tests check stages; here it is 40 programs
        assert _found(chosen, "plusequals") is None


@pytest.mark.parametrize("chosen", SMALL, ids=_named)
def test_numpy_agrees_with_the_reference(chosen: Cell) -> None:
    assert _found(chosen, "numpy") is None


@pytest.mark.parametrize("functions", sorted({p.functions for p in PEERS}))
def test_every_workload_is_written_for_every_peer(functions: str) -> None:
    for work in WORKLOADS:
        case = work.case(work.sizes[0])
        count = len(case.inputs) + len(case.numbers)
        count += 0 if functions == "with_jax" else len(case.results)
        path = HERE / work.kind / f"{functions}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {n.name: len(n.args.args) for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert found.get(work.name) == count, f"{path.name} of {work.kind}: {work.name}"
        ways = ("compiled", "stepped", "differentiable")
        for other in (*ways, "compiled_differentiable", "stepped_differentiable"):
            assert found.get(f"{other}_{work.name}", count) == count


def test_inputs_are_the_same_every_time() -> None:
    for chosen in SMALL:
        one, two = (chosen.workload.case(chosen.size) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(one.inputs, two.inputs)), chosen.name


def test_results_are_those_of_the_reference_in_shape() -> None:
    for chosen in SMALL:
        case = chosen.workload.case(chosen.size)
        shapes = [result.shape for result in case.results]
        assert [array.shape for array in chosen.workload.right(case)] == shapes, chosen.name


def test_each_workload_has_a_small_a_medium_and_a_large_size() -> None:
    for work in WORKLOADS:
        assert {size.regime for size in work.sizes} == {"small", "medium", "large"}, work.name
        assert all(Cell(work, size).flops >= 0 for size in work.sizes), work.name


def test_cells_are_selected_by_workload_kind_name_and_size() -> None:
    assert [c.name for c in select(["saxpy"], ["small"])] == ["saxpy:small"]
    assert [c.name for c in select(["gemm_f32:512"])] == ["gemm_f32:512"]
    assert {c.workload.kind for c in select(["rows"])} == {"rows"}
    assert [c.size.name for c in select(["gemm_f64"], ["medium"])] == ["256", "257x513x129", "512"]
    assert len(select()) == sum(len(work.sizes) for work in WORKLOADS)
    with pytest.raises(ValueError, match="no workload `saxpi`"):
        select(["saxpi"])
    with pytest.raises(ValueError, match="no size `tiny`"):
        select(sizes=["tiny"])


def test_traffic_is_inputs_and_outputs_unless_said() -> None:
    saxpy, jacobi = cell("saxpy:small"), cell("jacobi_1d:small")
    assert saxpy.traffic(saxpy.workload.case(saxpy.size)) == 3 * 4 * 64
    assert jacobi.traffic(jacobi.workload.case(jacobi.size)) == 10 * 2 * 4 * 64


def test_outputs_begin_as_what_no_result_may_be() -> None:
    right = (np.zeros(3),)
    assert np.isnan(Result((3,)).empty()).all()
    assert Result((3,), "int64").empty().tolist() == [-1, -1, -1]
    assert "off by inf" in str(wrong((Result((3,)).empty(),), right, Tolerance()))


def test_what_is_wrong_is_said() -> None:
    right = (np.array([1.0, 100.0]),)
    assert wrong((np.array([1.0005, 100.0]),), right, Tolerance(1e-5)) is None
    assert "off by 1.0e-02" in str(wrong((np.array([2.0, 100.0]),), right, Tolerance(1e-5)))
    assert wrong((np.array([2.0, 100.0]),), right, Tolerance(1e-5, share=0.5)) is None
    assert "shape (1,), not (2,)" in str(wrong((np.ones(1),), right, Tolerance()))
    assert "0 results, 1 expected" in str(wrong((), right, Tolerance()))
    said = "0.0001 of the largest value, for 97% of the elements"
    assert str(Tolerance(1e-4, share=0.03)) == said
