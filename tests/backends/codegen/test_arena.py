"""What a call allocates, counted by the C code itself, is what `peak_memory` and `explain` say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.c_printer import print_program
from plusequals.lowering.analysis.iteration_domains import CallValues
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.lower import lower
from plusequals.lowering.operation_counts import count_operations
from plusequals.lowering.passes.buffer_sharing import peak_memory
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from .harness import FFI, load, needs_compiler

COUNTING = """
#include <stdlib.h>
static struct { void *at; int64_t bytes; } counted[64];
static int64_t counted_now, counted_most;
static inline void *counted_in(void *at, int64_t bytes)
{
    for (int k = 0; at && k < 64; k++) {
        if (counted[k].at) continue;
        counted[k].at = at;
        counted[k].bytes = bytes;
        counted_now += bytes;
        if (counted_now > counted_most) counted_most = counted_now;
        return at;
    }
    return at;
}
static inline void counted_out(void *at)
{
    for (int k = 0; at && k < 64; k++) {
        if (counted[k].at != at) continue;
        counted[k].at = NULL;
        counted_now -= counted[k].bytes;
        break;
    }
    free(at);
}
int64_t pe_now(void) { return counted_now; }
int64_t pe_most(void) { return counted_most; }
#define calloc(count, bytes) counted_in(calloc(count, bytes), (int64_t)((count) * (bytes)))
#define aligned_alloc(to, bytes) counted_in(aligned_alloc(to, bytes), (int64_t)(bytes))
#define free(at) counted_out(at)
"""

PROGRAMS = {
    "a chain of products": """
        def f(y, x):
            t = x @ x
            u = t @ x
            v = u @ t
            y[i, j] = v[j, i] + 1
    """,
    "other shapes and types": """
        def f(y, x):
            t = x @ x
            big = t > 0.5
            m = np.cumsum(big, axis=1)
            s[i] = sum(m[i, j] * t[j, i])
            w = s[:, None] * x.T @ x
            y[i, j] = w[j, i] + m[j, i]
    """,
    "a time loop": """
        def f(y, x):
            v = x @ x
            for k in range(3):
                a = v @ x
                b = a @ v
                v[i, j] = b[j, i] * 0.1
            y[:] = v
    """,
    "buffers that trade places": """
        def f(y, x):
            a, b = x.copy(), x * 2
            for k in range(3):
                b[1:-1] = a[:-2] + a[2:]
                a, b = b, a
            y[:] = a
    """,
    "a row for each round": """
        def f(y, x):
            for k in range(x.shape[0]):
                r = np.sort(x[k, :k + 1])
                y[k, 0] = r[0] + r[k]
    """,
    "nothing": """
        def f(y, x):
            y[:] = x
    """,
}


def _procedure(text: str, size: int, is_open: bool) -> tuple[Any, Procedure]:
    function = pe.cd_from_source(text, {"np": np}, backend="numpy")
    for n in range(4, 8) if is_open else ():
        function(np.zeros((n, n)), np.random.default_rng(n).random((n, n)))
    return function, function.procedure(np.zeros((size, size)), np.zeros((size, size)))


@needs_compiler
@pytest.mark.parametrize("is_open", [False, True], ids=["known sizes", "any size"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_allocated_is_what_peak_says(name: str, is_open: bool) -> None:
    size = 19
    text = "\n".join(line[8:] for line in PROGRAMS[name].strip("\n").splitlines())
    function, procedure = _procedure(text, size, is_open)
    program, placement = optimize(lower(procedure), replace(HOST, stack_bytes=64))
    source = print_program(program, placement)
    plan = source.memory
    assert bool(plan.sizes) == is_open
    head, mark, rest = source.text.rpartition("#include <stdint.h>\n")
    rest = re.sub(r"^void \*?(calloc|aligned_alloc|free)\(.*\);$", "", rest, flags=re.MULTILINE)
    declared = f"int {source.entry}(void **); int64_t pe_now(void); int64_t pe_most(void);"
    library = load(head + mark + COUNTING + rest, declared)
    y, x = np.zeros((size, size)), np.random.default_rng(1).random((size, size))
    arrays = [(y, x)[p.node.label == "x"] for p in program.parameters]
    numbers = plan.numbers([arrays[k].shape[axis] for _, k, axis in plan.sizes])
    fault, sizes = FFI.new("int64_t[32]"), FFI.new("int64_t[]", numbers or 1)
    block = [*(FFI.cast("void *", a.ctypes.data) for a in arrays), fault, FFI.NULL, sizes]
    entry = getattr(library, source.entry)
    room = plan.layout({s.symbol: arrays[s.parameter].shape[s.axis] for s in plan.sizes}).total
    memory = np.zeros(room + 64, np.uint8)
    lent = memory[-memory.ctypes.data % 64 :]
    block[-2] = FFI.cast("void *", lent.ctypes.data)
    assert entry(FFI.new("void *[]", block)) == 0
    assert not plan.arena or library.pe_most() == 0, "the caller has lent the memory"
    by_lent, y[:], block[-2] = y.copy(), 0, FFI.NULL
    assert entry(FFI.new("void *[]", block)) == 0
    assert np.array_equal(y, by_lent)
    known = {one.symbol: arrays[one.parameter].shape[one.axis] for one in plan.sizes}
    said = peak_memory(program, known, 64)
    assert not said.growing
    assert library.pe_most() == said.heap
    assert count_operations(program, CallValues(known), plan).allocated == said.heap, (
        "what `explain` prints"
    )
    assert library.pe_now() == 0, "all of it is free again"
    expected = np.zeros((size, size))
    function(expected, x)
    assert np.array_equal(y, expected)
