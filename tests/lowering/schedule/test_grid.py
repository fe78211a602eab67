"""Programs as kernels: what is the host's, and who has the temporaries."""

from __future__ import annotations

from plusequals.lowering.ir.assignments import Access, Parameter, Print
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import For, If, Kernel, Program, Stmt, Store
from plusequals.lowering.ir.node import Node
from plusequals.lowering.schedule.grid import MOST_NODES, grid
from plusequals.lowering.target import Target
from tests.backends.emit.programs import apply, node, number, read, symbols

I, J = symbols("i j")
X, Y, S = node(0, "x", (8,)), node(1, "y", (8,)), node(2, "s", ())
CUDA = Target("cuda")


def store(target: Node, *index: object, value: object) -> Store:
    return Store(Access(target, tuple(index)), value)  # type: ignore[arg-type]


def program(*body: Stmt, locals_: tuple[Node, ...] = ()) -> Program:
    return Program(
        "f", (Parameter(X, False), Parameter(Y, True)), locals_, (), (Kernel("f", body),)
    )


def test_prints_are_the_hosts_and_so_are_loops_around_them() -> None:
    loop = For(I, const(0), const(8), 1, (store(Y, var(I), value=read(X, I)), Print(("y",))))
    (made,) = grid(program(loop), CUDA).program.kernels
    (outer,) = made.body
    assert isinstance(outer, For) and outer.kind == "serial"
    kernel, told = outer.body
    assert isinstance(kernel, For) and kernel.kind == "block"
    assert isinstance(told, Print)


def test_a_temporary_of_one_kernel_is_each_threads_own() -> None:
    fill = store(S, value=read(X, 0))
    use = store(Y, const(0), value=apply("mul", read(S), read(S)))
    made = grid(program(fill, use, locals_=(S,)), CUDA)
    assert made.spaces == {2: "private"}
    apart = grid(program(fill, Print(("now",)), use, locals_=(S,)), CUDA)
    assert apart.spaces == {}


def test_what_the_host_asks_for_is_the_devices() -> None:
    test = apply("gt", read(S), number(0.0))
    fill = store(S, value=read(X, 0))
    body = (fill, If(test, (Print(("positive",)),)))
    assert grid(program(*body, locals_=(S,)), CUDA).spaces == {}


def test_no_kernel_is_given_too_many_arrays() -> None:
    nodes = [node(10 + k, f"t{k}", (4,)) for k in range(2 * MOST_NODES)]
    body = [store(one, const(0), value=number(1.0)) for one in nodes]
    (made,) = grid(program(*body, locals_=tuple(nodes)), CUDA).program.kernels
    assert len(made.body) == 2
