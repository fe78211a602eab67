"""Tiles in time: not a bit changes, whatever the rounds, and only where rounds need few rows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import thresholds
from plusequals.lowering.cpu import time_tiling
from plusequals.lowering.cpu.time_tiling import tile_stencils
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..scheduled import function, interpreted, out_of_order, scheduled
from ..shown import lowered, text_of

TARGET = Target(
    schedule=True, threads=2, parallel_from=1, l1_bytes=64, l2_bytes=2048, l3_bytes=2048
)
"""So little is in its caches that small arrays leave them."""
SWEEPS = {
    "two arrays": "    y[1:-1] = x[:-2] + x[2:]\n    x[1:-1] = 0.5 * y[1:-1]",
    "in place": "    x[1:-1] = x[1:-1] + 0.25 * (x[2:] - 2 * x[1:-1] + x[:-2])",
    "two rows away": "    y[2:-2] = x[:-4] - x[4:]\n    x[2:-2] = y[2:-2] / 2",
    "neighbours of one side": "    y[1:] = x[:-1] / 2\n    x[1:] = y[1:] + 1",
    "edges": "    x[1:-1] = 0.25 * (x[2:] + x[1:-1] + x[:-2])\n    x[0] = x[1]\n    x[-1] = x[-2]",
    "three": (
        "    y[1:] = y[1:] - 0.5 * (x[1:] - x[:-1])\n    z[:] = z + 0.25 * y\n"
        "    x[:-1] = x[:-1] - 0.7 * (y[1:] - z[:-1])"
    ),
    "what the round is": "    y[1:-1] = x[:-2] + t\n    x[1:-1] = y[1:-1] - z[t % 3]",
    "where something holds": "    y[1:-1] = np.where(x[1:-1] > 0, x[2:], x[:-2])\n    x[:] = y",
    "a sum of each row": "    y[1:-1] = x[1:-1] - x[:-2].mean(1, keepdims=True)\n    x[:] = y",
    "parts of rows": "    y[1:-1, 1:4] = x[:-2, 2:5] + x[2:, :3]\n    x[3:, 0:3] = y[3:, 1:4] / 2",
}
TRADES = {
    "two": "        v[1:-1] = 0.5 * (u[:-2] + u[2:])\n        u, v = v, u",
    "three": "        w[1:-1] = 0.5 * (u[:-2] + v[2:])\n        u, v, w = v, w, u",
    "before": "        v[1:-1] = 0.5 * u[2:] - u[1:-1]\n        w[:] = w + v\n        u, v = v, u",
}
OTHERS = {
    "rows of the other end": "x[:] = x[::-1].copy()",
    "the first row": "x[1:] = x[1:] + x[0]",
    "round the edge": "x[0] = x[-2]; x[1:] = 0.5 * x[:-1].copy()",
    "the row before, in this round": "for i in range(1, len(x)): x[i] = 0.5 * x[i - 1]",
    "columns": "x[:] = x.T.copy()",
    "a sum of all": "x[:] = x / x.sum()",
    "where data says": "x[:] = x[np.abs(z[:, 0].astype('i8')) % len(x)]",
    "as many rows as rounds": "x[t:] = 0.5 * x[t:]",
    "an end": "x[:] = 0.5 * x; if x[0, 0] < 0.001: break",
}


def arrays(rows: int, columns: int) -> list[Any]:
    rng = np.random.default_rng(4)
    shape = (rows, columns) if columns else (rows,)
    made: list[Any] = [rng.standard_normal(shape).astype("f4") for _ in range(3)]
    return made


def swept(body: str, rounds: str = "n") -> pe.CdFunction:
    lines = body.replace("\n", "\n    ")
    return function(f"def f(x, y, z, n):\n    for t in range({rounds}):\n    {lines}\n")


def traded(body: str) -> pe.CdFunction:
    start = "    u = x.copy()\n    v = y.copy()\n    w = z.copy()\n"
    return function(f"def f(x, y, z, n):\n{start}    for t in range(n):\n{body}\n    x[:] = u\n")


def is_tiled(program: Program) -> bool:
    found = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return any(isinstance(stmt, For) and stmt.symbol.name == "piece" for stmt in found)


def agrees(made: pe.CdFunction, target: Target, rows: int, columns: int, rounds: int) -> bool:
    """Whether tiles were made, after checking that they change no bit."""
    given = (*arrays(rows, columns), rounds)
    procedure = made.procedure(*given)
    program = scheduled(procedure, target)
    plain = optimize(lower(procedure), replace(target, schedule=False))[0]
    got, wanted = (interpreted(one, *given) for one in (out_of_order(program), plain))
    for one, two in zip(got, wanted, strict=True):
        assert np.array_equal(one, two, equal_nan=True), (rows, columns, rounds)
    return is_tiled(program)


@pytest.mark.parametrize("rounds", [1, 6])
@pytest.mark.parametrize("name", SWEEPS)
def test_not_a_bit_changes(name: str, rounds: int) -> None:
    assert agrees(swept(SWEEPS[name]), TARGET, 211, 5, rounds)


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize("name", TRADES)
def test_arrays_that_trade_places_are_where_they_should_be(name: str, rounds: int) -> None:
    assert agrees(traded(TRADES[name]), TARGET, 240, 6, rounds)


@pytest.mark.parametrize(("again", "tiled"), [("v, w = w, v", True), ("u, v = v, u", False)])
def test_arrays_that_trade_places_twice(again: str, tiled: bool) -> None:
    made = traded(f"{TRADES['two']}\n        {again}")
    assert agrees(made, TARGET, 240, 6, 3) is tiled


@pytest.mark.parametrize("rounds", [0, 4])
@pytest.mark.parametrize(
    "body",
    [
        "    x[:] = 0.5 * x + y",
        "    y[:] = x + t\n    x[:, 1:] = y[:, :-1]\n    y[:] = y - x",
        "    x[:, 1:] = x[:, :-1] * 0.5 + y[:, 1:]\n    y[:, :-1] = x[:, 1:] - y[:, 1:]",
    ],
)
def test_rounds_that_need_only_rows_of_their_own_are_all_done_at_once(
    body: str, rounds: int
) -> None:
    target = replace(TARGET, l2_bytes=1 << 20, l3_bytes=1 << 24)
    assert agrees(swept(body), target, 901, 5, rounds)
    assert not agrees(swept(body), replace(target, threads=1), 301, 5, rounds)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("l2_bytes", [256, 512])
def test_any_size_of_pieces(l2_bytes: int, threads: int) -> None:
    target = replace(TARGET, threads=threads, l2_bytes=l2_bytes, l3_bytes=8 * l2_bytes)
    for name in ("two arrays", "two rows away", "neighbours of one side"):
        assert agrees(swept(SWEEPS[name]), target, 901, 0, 5)


@pytest.mark.parametrize("rounds", ["4", "5", "range(2, 11)", "n, 2 * n"])
def test_rounds_that_are_known_and_that_begin_anywhere(rounds: str) -> None:
    inner = rounds.removeprefix("range(").removesuffix(")")
    made = swept(SWEEPS["what the round is"], inner)
    assert agrees(made, TARGET, 190, 6, 5)


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_stay(name: str) -> None:
    made = swept("    " + OTHERS[name].replace("; ", "\n    "))
    alone = replace(TARGET, threads=1)
    assert not agrees(made, alone, 12, 12, 3)
    assert not agrees(made, alone, 40, 40, 2)


def test_what_fits_in_the_cache_stays() -> None:
    given = (*arrays(190, 6), 5)
    procedure = swept(SWEEPS["two arrays"]).procedure(*given)
    assert is_tiled(scheduled(procedure, TARGET))
    assert not is_tiled(scheduled(procedure, replace(TARGET, l2_bytes=1 << 16)))


Golden = Callable[[str], Callable[[str], None]]
SIZES = {
    "second cache": (TARGET, 3000, 9),
    "third cache": (replace(TARGET, l2_bytes=64, l3_bytes=1 << 14), 3000, 9),
    "third cache of many": (replace(TARGET, threads=8, l2_bytes=32, l3_bytes=1 << 15), 900, 9),
    "large third cache": (replace(TARGET, l2_bytes=64, l3_bytes=1 << 30), 9_000_000, 99),
    "wide rows": (replace(TARGET, l2_bytes=64, l3_bytes=1 << 30), "4000, 30000", 99),
    "neither": (replace(TARGET, l2_bytes=64, l3_bytes=64), 3000, 9),
    "large": (replace(TARGET, l2_bytes=1 << 17, l3_bytes=1 << 20), 400_000, 100),
    "large, alone": (replace(TARGET, threads=1, l2_bytes=1 << 17), 400_000, 100),
    "large, many": (replace(TARGET, threads=7, l2_bytes=1 << 17), 400_000, 100),
    "few rows": (replace(TARGET, l2_bytes=256), 70, 9),
    "as the caches hold": (replace(TARGET, l2_bytes=600), 300, 9),
    "one row more": (replace(TARGET, l2_bytes=600), 301, 9),
    "one block": (TARGET, 4096, 3),
    "one block and a row": (TARGET, 4097, 3),
    "two iterations": (TARGET, 3000, 2),
    "one iteration": (TARGET, 9000, 1),
}


def _heads(program: Program) -> str:
    """The first and the last iteration of loops over tiles, pieces, blocks and gaps, and those in
    time."""
    heads = (line.strip() for line in text_of(program).splitlines())
    return ", ".join(
        line.removeprefix("for ").removesuffix(":")
        for line in heads if line.startswith(("for tile", "for piece", "for block", "for t "))
    )  # fmt: skip


def test_sizes_of_tiles_follow_from_caches_rows_and_threads(golden: Golden) -> None:
    lines = []
    for name, (target, rows, times) in SIZES.items():
        for body in ("x[1:] = x[:-1] / 2", "x[3:] = y[:-3]; y[1:] = x[1:]", "x[:] = x + 1",
                     "x[1:] = y[:-1]; y[:] = z; z[1:] = x[1:]"):  # fmt: skip
            inside = body.replace("; ", "\n    ")
            given = dict.fromkeys(("x", "y", "z"), f"f32[{rows}]")
            program = lowered(f"for t in range({times}):\n    {inside}", **given)
            made = time_tiling.tile_stencils(program, target).program
            lines.append(f"{name}: {rows} rows, {body}: {_heads(made)}")
    check = golden("sizes.txt")
    check("\n".join(lines))


@pytest.mark.parametrize(
    ("name", "body", "times"),
    [
        ("in_place", "x[1:-1] = x[1:-1] + 0.25 * (x[2:] + x[:-2])", "9"),
        ("alone", "y[:] = x + t; x[:, 1:] = y[:, :-1]", "2, 9, 1"),
        ("unknown", "# from\n    y[1:-1] = x[:-2] + x[2:]; # back\n    x[1:-1] = y[1:-1]", "k"),
        ("inside", "# a row\n    y[3] = x[3] + x[4]; x[1:] = y[1:]", "4"),
    ],
)
def test_the_loops_in_tiles(golden: Golden, name: str, body: str, times: str) -> None:
    lines = body.replace("; ", "\n    ")
    arrays = {"y": "f64[4001, 3]", "x": "f64[4001, 3]", "k": "i64"}
    program = lowered(f"for t in range({times}):\n    {lines}", **arrays)
    check = golden(f"{name}.txt")
    check(print_program(time_tiling.tile_stencils(program, TARGET).program))


@pytest.mark.parametrize("times", ["6", "1, 8", "n"])
@pytest.mark.parametrize("name", ["two", "three"])
def test_the_loops_where_arrays_trade_places(golden: Golden, name: str, times: str) -> None:
    text = "def f(x, y, z, n):\n    u = x.copy()\n    v = y.copy()\n    w = z.copy()\n"
    made = function(f"{text}    for t in range({times}):\n{TRADES[name]}\n    x[:] = u\n")
    program = lower(made.procedure(*arrays(240, 6), 5))
    check = golden(f"{name}_{times.replace(', ', '_')}.txt")
    check(text_of(time_tiling.tile_stencils(program, TARGET).program))


@pytest.mark.parametrize(("sweeps", "tiled"), [(12, True), (13, False)])
def test_a_long_period_stays(sweeps: int, tiled: bool) -> None:
    inside = "\n    ".join(["x[:] = x + 1", "y[:] = x * 2"] * 6 + ["x[:] = y"])
    lines = "\n".join(f"for t in range(9):\n    {inside}".split("\n")[: 1 + sweeps])
    program = lowered(lines, y="f32[9000]", x="f32[9000]")
    assert is_tiled(time_tiling.tile_stencils(program, TARGET).program) is tiled


def test_it_is_told() -> None:
    program = lowered(
        "for t in range(9):\n    y[1:-1] = x[:-2] + x[2:]\n    x[1:-1] = y[1:-1]",
        y="f32[3000]", x="f32[3000]",
    )  # fmt: skip
    (told,) = tile_stencils(program, TARGET).decisions
    assert told.sentence() == (
        "the loop over `t` does several iterations for a block of rows: its arrays are larger than "
        "the cache, and a row needs only rows near it"
    )


def test_a_budget_that_is_too_small_for_two_rounds_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thresholds, "MAX_TILED_SWEEPS", 1)
    given = (*arrays(190, 6), 5)
    assert not is_tiled(scheduled(swept(SWEEPS["two arrays"]).procedure(*given), TARGET))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_compiled_code_has_the_bits_of_the_program(threads: int) -> None:
    made = traded(TRADES["two"])
    x = np.random.default_rng(1).standard_normal((1500, 4000)).astype("f4")
    results = []
    for schedule in (True, False):
        mine = x.copy()
        with pe.settings.override(schedule=schedule, threads=threads, parallel_from=1):
            made.on("cc")(mine, x, x, 5)
        results.append(mine)
    assert np.array_equal(*results)


@pytest.mark.parametrize("scratch", ["zeros((500, 16))", "empty((500, 16))"])
def test_rows_of_a_scratch_array_of_iterations_that_threads_share(scratch: str) -> None:
    text = f"""
    def f(out, x):
        for g in range(x.shape[0]):
            t = np.{scratch}
            for b in range(16):
                t[:, b] = x[g, b]
            for k in range(1, 500):
                t[k] += t[k - 1]
            out[g] = t.T
    """
    x = np.random.default_rng(0).random((8, 16, 500))
    out = np.zeros_like(x)
    with pe.settings.override(threads=2, parallel_from=1, verify=True):
        function(textwrap.dedent(text)).on("cc")(out, x)
    assert np.array_equal(out, np.cumsum(x, axis=2))


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_sorts_down_columns_that_threads_share(dtype: str) -> None:
    a = np.random.default_rng(0).integers(0, 99, (130, 64)).astype(dtype)
    with pe.settings.override(threads=2, parallel_from=1, verify=True):
        made = function("def f(a):\n    return np.sort(a, axis=0)\n").on("cc")(a)
    assert np.array_equal(made, np.sort(a, axis=0))
