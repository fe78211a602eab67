"""What is told of kernels: each with its line, and with what NVRTC says that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.nvrtc import CompiledModule, ResourceUsage
from plusequals.backends.interface import HasKernels
from plusequals.lowering.gpu.passes import GPU_PASSES
from plusequals.lowering.pipeline import map_to_device
from plusequals.lowering.target import Target

from ...lowering.shown import lowered
from .on_cpu import Gxx, Nothing, backend, installed, needs_gxx
from .test_nvrtc import needed, needs_nvrtc

TEXT = """\
def f(y, x):
    y[i] = x[i] * 2
    z[i, j] = y[i] * x[j]
    return z.sum(axis=0)
"""
SAID = """\
ptxas info    : Compiling entry function '{}' for 'sm_90'
ptxas info    : Function properties for {}
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 1024 bytes smem
"""


class Saying(Gxx):
    """Compiles for this processor, and says what was planned."""

    name = "saying"

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        said = SAID.format("pe_f_0", "pe_f_0")
        return CompiledModule(super().build(text, target, folder).code, said)


class Told(Gxx):
    """Compiles for this processor, and says what NVRTC says of a device."""

    name = "told"

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        return CompiledModule(super().build(text, target, folder).code,
                    needed().build(text, target, folder).log)  # fmt: skip


def explained(compiler: Any, text: str = TEXT, n: int = 300) -> pe.Explanation:
    with installed(backend(compiler=compiler)):
        return pe.cd_from_source(text, {"np": np}).on("cuda").explain(np.zeros(n), np.ones(n))


@needs_gxx
def test_a_table_says_what_each_kernel_takes() -> None:
    table = explained(Saying).kernel_table.splitlines()
    assert [line.split() for line in table] == [
        ["kernel", "line", "threads", "registers", "spilled", "shared", "stack"],
        ["pe_f_0", "2", "160", "24", "8", "1,024", "16"],
    ]


@needs_gxx
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_that_begin_with_a_barrier_have_their_line(dtype: str) -> None:
    function = pe.cd_from_source("def f(c, a, b):\n    c[i, j] = sum[k](a[i, k] * b[k, j])\n")
    with installed(backend(compiler=Saying)):
        made = function.on("cuda").explain(*(np.zeros((64, 64), dtype) for _ in range(3)))
    assert [(row.name, row.span.line) for row in made.kernels] == [("pe_f_0", 2)]
    assert made.kernel_table.split()[7:9] == ["pe_f_0", "2"]


@needs_gxx
def test_the_text_and_the_page_have_it() -> None:
    made = explained(Saying)
    assert f"kernels\n-------\n{made.kernel_table}\n\n" in str(made)
    page = made.to_html()
    assert "<h2>kernels</h2>" in page
    assert '<td>pe_f_0</td><td class="right">2</td><td class="right">160</td>' in page


@needs_gxx
def test_the_loops_are_those_of_the_device() -> None:
    made = explained(Saying)
    assert " block:" in made.loops and " thread:" in made.loops
    assert "__global__" in made.code


def test_what_products_compute_in_tiles_has_no_array() -> None:
    text = "def f(y, s, v):\n    p[i, j] = exp(s[i, j])\n    y[i, d] = sum[j](p[i, j] * v[j, d])\n"
    function, given = pe.cd_from_source(text), [np.zeros((64, 64), "f4")] * 2
    with installed(backend(compiler=Nothing)):
        made = function.on("cuda").explain(np.zeros((64, 64), "f4"), *given)
    (row,) = [row for row in made.arrays if row.name == "p"]
    assert (row.mode, row.why) == (
        "virtual", "the product that reads it computes its elements where it fills tiles"
    )  # fmt: skip
    assert made.counts is not None
    assert made.counts.temporary == 0
    assert made.counts.moved == sum(one.loads + one.stores for one in made.counts.arrays)
    assert "work of one call" in str(made)
    assert {made.names[one.node.id] for one in made.counts.arrays} == {"y", "s", "v"}
    assert made.counts.operations["exp"] == 64 * 64


@needs_gxx
def test_without_figures_there_is_no_table() -> None:
    made = explained(Gxx)
    assert made.kernel_table == ""
    assert "kernels\n-------" not in str(made)
    assert "<h2>kernels</h2>" not in made.to_html()
    f = pe.cd_from_source(TEXT, {"np": np})
    assert f.on("cc").explain(np.zeros(3), np.ones(3)).kernel_table == ""


@needs_gxx
@needs_nvrtc
def test_what_a_real_compiler_says_is_told_of_every_kernel() -> None:
    function = pe.cd_from_source(TEXT, {"np": np})
    with installed(backend(compiler=Told)):
        made = function.on("cuda").explain(np.zeros(300), np.ones(300))
    assert [row.name for row in made.kernels] == [
        name for name in ("pe_f_0", "pe_f_1", "pe_f_2") if f"{name}(" in made.code
    ]
    assert {row.span.line for row in made.kernels} <= {2, 3, 4}
    for row in made.kernels:
        assert 8 <= row.registers <= 80
        assert row.spilled == row.stack == 0


@needs_gxx
def test_rows_are_those_of_the_code() -> None:
    made = backend(compiler=Saying)
    with installed(made):
        function = pe.cd_from_source(TEXT, {"np": np})
        code = made.compile(function.procedure(np.zeros(9), np.ones(9)))
    assert isinstance(code, HasKernels)
    assert code.figures == {"pe_f_0": ResourceUsage(24, 1024, 8, 16)}
    assert [(row.name, row.registers) for row in code.kernels] == [("pe_f_0", 24)]
    assert code.kernels[0].threads % 32 == 0
    assert code.program is code.plan.program


@pytest.mark.parametrize("name", ["numpy", "cc"])
def test_other_code_has_no_kernels(name: str) -> None:
    function = pe.cd_from_source(TEXT, {"np": np}, backend=name)
    assert not function.explain(np.zeros(3), np.ones(3)).kernels


PRODUCT = "def f(a, b):\n    c = a @ b\n    return np.maximum(c, 0)\n"
ROWS = "def f(a, b):\n    s[i] = sum(a[i, k])\n    return s\n"
COLUMNS = "def f(a, b):\n    return a.sum(axis=0)\n"
ADDED = "def f(a, b):\n    b[i, j] += a[i, k] * a[k, j]\n"
RUNNING = "def f(a, b):\n    return np.cumsum(a)\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PRODUCT, ["c = a @ b", "return np.maximum(c, 0)"]),
        (ROWS, ["s[i] = sum(a[i, k])"]),
        (COLUMNS, ["return a.sum(axis=0)"]),
        (ADDED, ["b[i, j] += a[i, k] * a[k, j]"]),
        (RUNNING, ["np.cumsum(a)"]),
    ],
)
def test_the_text_of_kernels_has_the_statements_that_they_come_from(
    text: str, told: list[str]
) -> None:
    function, given = pe.cd_from_source(text, {"np": np}), [np.zeros((640, 640), "f4")] * 2
    with installed(backend(compiler=Nothing)):
        code = function.on("cuda").explain(*given).code
    kernels = [part for part in code.split("\n}\n") if "__global__" in part]
    assert len(kernels) >= 1
    for kernel in kernels:
        assert any(f"/* {one} */" in kernel for one in told), kernel
    assert all(f"/* {one} */" in code for one in told)


LOOPS = """\
def f(y, x, s):
    y[i] = x[i] * 2
    s[0] = sum(x[i])
    for k in range(1, 300):
        y[k] = y[k - 1] * 0.5 + x[k]
"""


@needs_gxx
def test_every_nest_says_what_it_is_on_a_device_and_why() -> None:
    with installed(backend(compiler=Nothing)):
        f = pe.cd_from_source(LOOPS, {"np": np}).on("cuda")
        told = " ".join(str(f.explain(np.zeros(300000), np.ones(300000), np.zeros(1))).split())
    assert "runs on the device: its iterations are independent, and a thread computes each" in told
    assert "runs on the device: its iterations only accumulate: many blocks sum chunks" in told
    assert "runs on the device: its iterations need each other, and one block does them" in told


@needs_gxx
def test_passes_of_devices_are_observed_and_stopped_after() -> None:
    program = lowered(LOOPS.split("\n", 1)[1], y="f64[300]", x="f64[300]", s="f64[1]")
    target, seen = Target("cuda"), list[str]()
    map_to_device(program, target, lambda name, _: seen.append(name))
    assert seen == [*(stage.name for stage in GPU_PASSES), "mapping"]
    seen.clear()
    map_to_device(
        program, target, lambda name, _: seen.append(name), stop_after="recognize_updates"
    )
    assert seen == ["substitute_induction", "recognize_updates", "mapping"]
    seen.clear()
    map_to_device(program, target, lambda name, _: seen.append(name), stop_after="fuse")
    assert seen == ["mapping"]
