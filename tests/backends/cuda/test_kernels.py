"""The text of kernels: parameters, ends, and what surrounds the statements."""

from __future__ import annotations

from collections.abc import Callable

from plusequals.backends.cuda.kernels import FAULT_RECORD_SIZE, LaunchShape, emit_kernels
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Fault
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Barrier, Check, For, Stmt, Store, Update
from plusequals.lowering.ir.ops import OPS

from ..codegen.programs import apply, node, number, position, read, symbols

Golden = Callable[[str], Callable[[str], None]]
B, T, K, N = symbols("b t k n")
SHAPE = LaunchShape((0, 1, 1), (64, 1, 1))


def store(target: object, index: object, value: object) -> Store:
    return Store(Access(target, (index,)), value)  # type: ignore[arg-type]


def rows() -> For:
    """Each block adds a row by 64 threads, whose sums it then adds; a negative element fails."""
    x, y = node(0, "x", (var(N), 640)), node(1, "y", (var(N),))
    partial, total = node(2, "partial", (64,)), node(3, "total", ())
    fault = Fault("CD0751", "CdValueError", "x[{0}] is {1}")
    check = Check(
        apply("ge", read(x, B, K), number(0.0)), fault, (position(K), read(x, B, K))
    )  # fmt: skip
    add = Update(Access(partial, (var(T),)), OPS["add"], read(x, B, K))
    by_thread: tuple[Stmt, ...] = (
        store(partial, var(T), number(0.0)),
        For(K, var(T), const(640), 64, (check, add)),
    )
    body: tuple[Stmt, ...] = (
        For(T, const(0), const(64), 1, by_thread, "thread"),
        Barrier(),
        Store(Access(total, ()), number(0.0)),
        For(K, const(0), const(64), 1, (Update(Access(total, ()), OPS["add"], read(partial, K)),)),
        For(T, const(0), const(1), 1, (store(y, var(B), read(total)),), "thread"),
        Barrier(),
    )
    return For(B, const(0), var(N), 1, body, "block")


def test_a_kernel_with_barriers_and_checks(golden: Golden) -> None:
    text = emit_kernels("rows", [rows()], {2: "shared", 3: "private"}, True, [SHAPE])
    (kernel,) = text.kernels
    assert [n.label for n in kernel.nodes] == ["x", "y"]
    assert kernel.symbols == (N,)
    assert kernel.checks
    assert kernel.arguments == 5
    assert kernel.shared == 256
    assert len(text.faults) == 1
    assert FAULT_RECORD_SIZE > 16
    golden("rows.cu")(text.text.split("\n", text.above)[-1])


def test_parameters_are_64_bits_and_scalars_are_read_once(golden: Golden) -> None:
    a, x, y = node(0, "a", ()), node(1, "x", (9,)), node(2, "y", (9,), dtypes.float32)
    scaled = store(y, var(T), apply("mul", read(a), read(x, T)))
    loop = For(B, const(0), const(1), 1, (For(T, const(0), const(9), 1, (scaled,), "thread"),),
               "block")  # fmt: skip
    text = emit_kernels("scaled", [loop], {}, False, [LaunchShape((1, 1, 1), (32, 1, 1))])
    golden("scaled.cu")(text.text.split("\n", text.above)[-1])
    assert text.kernels[0].arguments == 3


def test_the_parameter_of_a_scalar_has_a_name_of_its_own() -> None:
    a, other, y = node(0, "a", ()), node(1, "a_at", (9,)), node(2, "y", (9,), dtypes.float32)
    scaled = store(y, var(T), apply("mul", read(a), read(other, T)))
    loop = For(B, const(0), const(1), 1, (For(T, const(0), const(9), 1, (scaled,), "thread"),),
               "block")  # fmt: skip
    text = emit_kernels("scaled", [loop], {}, False, [LaunchShape((1, 1, 1), (32, 1, 1))]).text
    assert "*__restrict__ a_at_2," in text and "a = a_at_2[0];" in text


def test_faults_and_lines_of_several_kernels_are_counted_on() -> None:
    text = emit_kernels("rows", [rows(), rows()], {2: "shared", 3: "private"}, True, [SHAPE, SHAPE])
    assert [kernel.name for kernel in text.kernels] == ["pe_rows_0", "pe_rows_1"]
    assert len(text.faults) == 2
    lines = text.text.splitlines()
    assert [line.strip() for line in lines if "fault[0] =" in line] == [
        "fault[0] = 0;", "fault[0] = 1;",
    ]  # fmt: skip
