"""Kernels of which the last block does the rest: where there are such, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.reductions.last_block import merge_last_blocks
from plusequals.lowering.gpu.thread_points import Space
from plusequals.lowering.ir.assignments import Access, Fault
from plusequals.lowering.ir.fresh import Fresh
from plusequals.lowering.ir.indexing import Affine, Symbol, const, minimum, var
from plusequals.lowering.ir.loops import Check, Comment, For, LastBlock, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import statements, uses
from plusequals.lowering.target import Target
from tests.backends.codegen.programs import apply, node, number, read, symbols

from ..kernels import Case, backwards, filled, ran

P, T, U, V, W, Q = symbols("p t u v w q")
"""A part, a tile and a thread of the first kernel; a tile, a thread and a part of the second."""


def kinds(body: Sequence[Stmt]) -> list[list[str]]:
    """Return the kinds of the loops directly in each kernel, `last` for a `LastBlock`."""
    found = [stmt for stmt in body if isinstance(stmt, For)]
    return [
        ["last" if isinstance(s, LastBlock) else s.kind
         for s in one.body if isinstance(s, For | LastBlock)]
        for one in found
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["s[0] = x.sum()", "s[0] = x.max()", "s[0] = x.argmin()", "s[0] += x[i, j] * x[i, j]",
     "s[0] = x.sum() / x.max()", "s[0] = x.var()", "s[0] = x[0, 0] * 2\ns[0] += x[i, j]"],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["9000, 1", "91, 97"])
def test_the_last_block_puts_parts_together(text: str, shape: str) -> None:
    case = Case(text, s="i64[1]" if "arg" in text else "f64[1]", x=f"f64[{shape}]")
    program = map_program(case.program, Target("cuda")).program
    assert ["block", "last"] in kinds(program.kernels[0].body)
    arrays = [filled(p.node, np.random.default_rng(3)) for p in case.program.parameters]
    for one in (program, backwards(program)):
        for got, want in zip(ran(one, arrays), ran(case.program, arrays), strict=True):
            np.testing.assert_allclose(got, want, 1e-12, 1e-12)


def test_the_last_block_of_each_tile_of_columns_adds_their_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (
        ("MIN_COLUMN_TERMS", 12_000),
        ("COLUMN_REDUCTION_THREADS", 16_384),
        ("MIN_COLUMN_TERMS_PER_THREAD", 5),
    ):
        monkeypatch.setattr(thresholds, name, value)
    for rows, count, kernels in ((35, 700, 1), (200, 64, 2)):
        case = Case("y[j] = sum[i](x[i, j]) * 2", y=f"f64[{count}]", x=f"f64[{rows}, {count}]")
        program = map_program(case.program, Target("cuda")).program
        found = kinds(program.kernels[0].body)
        assert (len(found), ["block", "last"] in found) == (kernels, kernels == 1)
        arrays = [filled(p.node, np.random.default_rng(3)) for p in case.program.parameters]
        for made in (program, backwards(program)):
            for got, want in zip(ran(made, arrays), ran(case.program, arrays), strict=True):
                np.testing.assert_allclose(got, want, 1e-12, 1e-12)


class Pair:
    """Sums of three parts of 600 columns, whose second kernel adds the parts that it reads."""

    def __init__(self) -> None:
        self.fresh = Fresh(10, 100)
        self.x, self.y = node(0, "x", (600, 600)), node(1, "y", (600,))
        self.parts = self.fresh.array("parts", (3, 600), self.x.dtype)
        self.spaces: dict[int, Space] = {}
        self.ahead: tuple[Stmt, ...] = ()

    def first(self, blocks: int = 3, other: Node | None = None) -> For:
        """Return the kernel that finds parts."""
        at = var(T) * 256 + var(U)
        value = read(self.x, P, at) if other is None else read(other, at)
        store = Store(Access(self.parts, (var(P), at)), value)
        return self.tiled([(P, blocks), (T, 3)], U, T, (*self.ahead, store))

    def second(self, shift: int = 0, target: Affine | None = None, width: int = 256) -> For:
        """Return the kernel that adds them."""
        at = var(V) * 256 + var(W)
        place = Access(self.y, (at if target is None else target,))
        add = Update(place, OPS["add"], read(self.parts, Q, at + shift))
        return self.tiled([(V, 3)], W, V, (For(Q, const(0), const(3), 1, (add,)),), width)

    def tiled(
        self, blocks: list[tuple[Symbol, int]], thread: Symbol, tile: Symbol,
        body: tuple[Stmt, ...], width: int = 256,
    ) -> For:  # fmt: skip
        """Return loops over blocks and threads."""
        end = minimum(const(width), var(tile) * -256 + 600)
        made = For(thread, const(0), end, 1, body, "thread")
        for symbol, count in reversed(blocks):
            made = For(symbol, const(0), const(count), 1, (made,), "block")
        return made

    def joined(self, *kernels: Stmt) -> list[list[str]]:
        """Return the kinds of loops in what becomes of kernels."""
        return kinds(merge_last_blocks(kernels, self.spaces, self.fresh))


ONE, TWO = [["block", "last"]], [["block"], ["thread"]]


def test_tiles_whose_parts_are_their_own_are_finished_by_a_block_each() -> None:
    pair = Pair()
    assert pair.joined(pair.first(), Comment("y"), pair.second()) == ONE
    (made,) = merge_last_blocks((pair.first(), Comment("y"), pair.second()), {}, pair.fresh)
    assert isinstance(made, For) and made.symbol == T
    last = made.body[-1]
    assert isinstance(last, LastBlock) and last.body[0] == Comment("y")
    assert V not in {symbol for stmt in statements(last.body) for symbol in uses(stmt)}
    around = For(Symbol("t", 999), const(0), const(3), 1, (pair.first(), pair.second()))
    (host,) = merge_last_blocks((around,), {}, pair.fresh)
    assert isinstance(host, For) and kinds(host.body) == ONE, "what the host repeats, too"


def test_what_another_block_may_need_stays_apart() -> None:
    pair = Pair()
    assert pair.joined(pair.first(), pair.second(shift=1)) == TWO, "parts of the next tile"
    assert pair.joined(pair.first(), pair.second(width=200)) == ONE, "fewer of its own"
    assert pair.joined(pair.first(other=pair.y), pair.second()) == ONE, "it reads what it writes"
    next_one = var(V) * 256 + var(W) + 1
    changes = pair.second(target=next_one)
    assert pair.joined(pair.first(other=pair.y), changes) == TWO, "others still read that"
    assert pair.joined(pair.first(other=pair.y), pair.second(target=const(0))) == TWO


def test_kernels_that_would_be_slower_as_one_stay_two() -> None:
    pair = Pair()
    assert pair.joined(pair.first(thresholds.MAX_LAST_BLOCK_GRID), pair.second()) == TWO, (
        "blocks come one after the other"
    )
    pair.ahead = (Check(apply("ge", read(pair.x, P, T), number(0.0)), Fault("CD0751", "E", "")),)
    assert pair.joined(pair.first(), pair.second()) == TWO, "a block that fails does not come"
    pair.ahead = ()
    assert pair.joined(pair.first(), pair.second()) == ONE
    assert pair.joined(pair.second(), pair.second()) == [["thread"]] * 2, "it finds no parts"
    pair.spaces[pair.y.id] = "registers"
    assert pair.joined(pair.first(), pair.second()) == TWO, "rows of so many threads"
    large = pair.fresh.array("large", (16, 1024), pair.x.dtype)
    pair.spaces = {large.id: "shared"}
    pair.ahead = (Store(Access(large, (const(0), var(U))), number(0.0)),)
    assert pair.joined(pair.first(), pair.second()) == TWO, "few blocks have so much to share"


def test_blocks_have_threads_along_one_axis_and_enough_of_them() -> None:
    pair = Pair()
    add = pair.second().body[0]
    assert isinstance(add, For)
    (terms,) = add.body
    assert isinstance(terms, For)
    deep = pair.tiled([(V, 3)], W, V, (replace(terms, kind="thread"),))
    assert pair.joined(pair.first(), deep) == TWO
    (tiles,) = pair.first().body
    assert isinstance(tiles, For)
    (threads,) = tiles.body
    assert isinstance(threads, For)
    short = replace(tiles, body=(replace(threads, hi=const(32)),))
    assert pair.joined(replace(pair.first(), body=(short,)), pair.second()) == TWO
