"""Programs as kernels mean what they meant, whatever the order of their blocks and threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import static_trip_count
from plusequals.lowering.device_branches import select_gpu_branches
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.ir.assignments import Access, Parameter, Print
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import (
    Check,
    Comment,
    For,
    If,
    Kernel,
    LastBlock,
    Program,
    Stmt,
    Store,
    While,
)
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import bodies, direct_writes, statements, writes
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target
from tests.backends.codegen.programs import apply, node, number, read, symbols

from ..nests_of_all_kinds import LARGE, NESTS, text_of
from .kernels import Case, backwards

I, J = symbols("i j")
X, Y, S = node(0, "x", (8,)), node(1, "y", (8,)), node(2, "s", ())
CUDA = Target("cuda")
Array = np.ndarray[Any, Any]


def given(name: str, n: int) -> tuple[Program, list[Array]]:
    """Return the loops of a nest for arguments of a size, and the arguments."""
    arguments = NESTS[name][1](n, np.random.default_rng(n))
    function = pe.cd_from_source(text_of(name), {"np": np}, backend="numpy")
    try:
        procedure = function.procedure(*arguments)
    except CdError:
        pytest.skip("that size is refused")
    program, _ = optimize(lower(select_gpu_branches(procedure)), CUDA)
    return program, [np.array(argument) for argument in arguments]


def run(program: Program, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays after a run on copies of them."""
    held = [np.array(array) for array in arrays]
    run_program(program, held, lambda text: None)
    return held


def kernels(program: Program) -> list[For]:
    return [s for s in statements(program.kernels[0].body) if isinstance(s, For)]


_FEW = [(name, n) for name in NESTS for n in (0, 1) if name not in LARGE]
_FEW.remove(("where is it", 0))  # of nothing there is no greatest


@pytest.mark.parametrize(("name", "n"), _FEW)
def test_kernels_mean_what_the_loops_meant(name: str, n: int) -> None:
    program, arrays = given(name, n)
    expected = run(program, arrays)
    exact = map_program(program, CUDA, exact=True)
    verify_program(exact.program)
    for one in (exact.program, backwards(exact.program)):
        for got, want in zip(run(one, arrays), expected):
            assert got.tobytes() == want.tobytes(), print_program(one)
    loose = map_program(program, CUDA)
    verify_program(loose.program)
    for one in (loose.program, backwards(loose.program)):
        for got, want in zip(run(one, arrays), expected):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NESTS)
def test_one_thread_does_only_what_is_one_threads_work(name: str) -> None:
    program, _ = given(name, 37)
    serial = {"recurrence", "knapsack"}  # of the latter what is as needed only by its data
    alone = [
        loop for loop in kernels(map_program(program, CUDA).program)
        if loop.kind == "thread" and (loop.hi - loop.lo).constant == 1
    ]  # fmt: skip
    few = range(thresholds.MIN_DISTRIBUTED_ITERATIONS)
    long = [
        s for loop in alone for s in statements(loop.body)
        if isinstance(s, For) and static_trip_count(s) not in few
        and s.symbol.name not in ("piece", "first")
    ]  # fmt: skip
    assert not long or name in serial, print_program(map_program(program, CUDA).program)


def store(target: Node, *index: object, value: object) -> Store:
    return Store(Access(target, tuple(index)), value)  # type: ignore[arg-type]


def program(*body: Stmt, locals_: tuple[Node, ...] = ()) -> Program:
    parameters = (Parameter(X, False), Parameter(Y, True))
    return Program("f", parameters, locals_, (), (Kernel("f", body),))


def test_prints_are_the_hosts_and_so_are_loops_around_them() -> None:
    loop = For(I, const(0), const(8), 1, (store(Y, var(I), value=read(X, I)), Print(("y",))))
    (made,) = map_program(program(loop), CUDA).program.kernels
    (outer,) = made.body
    assert isinstance(outer, For) and outer.kind == "serial"
    kernel, told = outer.body
    assert isinstance(kernel, For) and kernel.kind == "block"
    assert isinstance(told, Print)


def test_a_temporary_of_one_kernel_is_each_threads_own() -> None:
    fill = store(S, value=read(X, 0))
    use = store(Y, const(0), value=apply("mul", read(S), read(S)))
    made = map_program(program(fill, use, locals_=(S,)), CUDA)
    assert made.spaces == {2: "private"}
    apart = map_program(program(fill, Print(("now",)), use, locals_=(S,)), CUDA)
    assert apart.spaces == {}


def test_what_the_host_asks_for_is_the_devices() -> None:
    test = apply("gt", read(S), number(0.0))
    fill = store(S, value=read(X, 0))
    body = (fill, If(test, (Print(("positive",)),)))
    assert map_program(program(*body, locals_=(S,)), CUDA).spaces == {}


def test_no_kernel_is_given_too_many_arrays() -> None:
    nodes = [node(10 + k, f"t{k}", (4,)) for k in range(2 * thresholds.MAX_SPLIT_KERNEL_ARRAYS)]
    body = [store(one, const(0), value=number(1.0)) for one in nodes]
    (made,) = map_program(program(*body, locals_=tuple(nodes)), CUDA).program.kernels
    assert len(made.body) == 2


def written_alike(body: Sequence[Stmt], spaces: dict[int, str]) -> list[str]:
    """Return what all threads of a block write together, though it is not each one's own."""
    found = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "thread":
            continue
        if isinstance(stmt, For | If | While):
            found += [one for part in bodies(stmt) for one in written_alike(part, spaces)]
        else:
            found += [n.label for n in direct_writes(stmt) if spaces.get(n.id) != "private"]
    return found


TOTALS = {
    "few columns": ("    y[j] = sum[i](x[i, j]) / 2\n", (3,), (40_000, 3)),
    "none is known": ("    y[i] = sum[k < i](x[k, 0])\n", (9,), (9, 2)),
    "from where on": ("    y[i] = sum[k >= i](x[k, 1])\n", (9,), (9, 2)),
    "extremes": ("    y[:] = x.max(axis=0) - x.argmin(axis=0)\n", (2,), (70_000, 2)),
    "all": ("    y[0] = (x * x).sum() / x.max()\n", (1,), (700, 800)),
}


@pytest.mark.parametrize("name", [*NESTS, *TOTALS])
def test_what_all_threads_do_alike_writes_only_what_is_their_own(name: str) -> None:
    if name in TOTALS:
        text, *shapes = TOTALS[name]
        function = pe.cd_from_source(f"def f(y, x):\n{text}", {"np": np})
        program, _ = optimize(lower(function.procedure(*map(np.zeros, shapes))), CUDA)
    else:
        program, _ = given(name, 37)
    made = map_program(program, CUDA)
    for kernel in kernels(made.program):
        if kernel.kind == "block":
            assert not written_alike(kernel.body, dict(made.spaces)), print_program(made.program)


def of(text: str, **arrays: str) -> list[Stmt]:
    """Return the kernels of a function."""
    case = Case(text, **arrays)
    return list(map_program(case.program, CUDA).program.kernels[0].body)


def test_what_stands_around_the_parts_of_a_sum_shares_a_kernel() -> None:
    text = "y[0] = sum[i, j](x[i, j]) * 2"
    (kernel,) = (s for s in of(text, y="f32[1]", x="f32[300, 300]") if not isinstance(s, Comment))
    assert isinstance(kernel, For)
    first, last = kernel.body
    assert isinstance(first, For) and isinstance(last, LastBlock)
    assert first.kind == "block"
    assert Y.label not in {node.label for node in writes((first,))}
    assert Y.label in {node.label for node in writes((last,))}


def test_a_kernel_that_needs_statements_or_may_have_to_wait_for_a_check_stays_behind() -> None:
    x, k = "f32[900]", "i64[1]"
    first, last = (
        s for s in of("s[0] = x[0] + 1\ny[i] = x[i] * s[0]", y=x, x=x, s="f32[1]")
        if not isinstance(s, Comment)
    )  # fmt: skip
    assert "s" in {node.label for node in writes((first,))}
    for text in ("s[0] = x[k[0]]\ny[i] = x[i] * 2", "s[0] = x[0]\ny[i] = x[k[0] + i]"):
        made = of(text, y=x, x=x, s="f32[1]", k=k)
        written = [{node.label for node in writes((stmt,))} for stmt in made]
        assert written.index({"s"}) < written.index({"y"})
        assert any(isinstance(stmt, Check) for stmt in statements(made))
