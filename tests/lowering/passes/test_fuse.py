"""Nests brought together: over shared loops, past what may be moved, and every reason why not."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.fusion import FusionRefusal
from plusequals.lowering.ir.assignments import Fault, Let, Permute
from plusequals.lowering.ir.decision import Reason
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.loops import Check, Comment, For, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import direct_writes, statements
from plusequals.lowering.passes.fuse import FusionReason, fuse

from ..ir.build import ap, at, i64, node, num, pos, program, read, symbols
from ..shown import after, lowered
from .agree import assert_agrees

n, m = symbols("n m")

FUSED = [
    ("z[i, j] = x[i, j] * 2\ny[i, j] = z[i, j] + x[i, j]",
     {"y": "f32[8, 9]", "z": "f32[8, 9]", "x": "f32[8, 9]"},
     """
     for i in 0..8:
         for j in 0..9:
             z[i, j] = x[i, j] * 2.0
             y[i, j] = z[i, j] + x[i, j]
     """),
    ("z[i] = x[i] * 2\ny[i + 1] = z[i]", {"y": "f32[9]", "z": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         z[i] = x[i] * 2.0
         y[i + 1] = z[i]
     """),
    ("z[:] = x * 2\ny[1:] = z[:-1] + x[1:]", {"y": "f32[9]", "z": "f32[9]", "x": "f32[9]"},
     """
     for i in 0..9:
         z[i] = x[i] * 2.0
     for i in 0..8:
         y[i + 1] = z[i] + x[i + 1]
     """),
    ("z[1:] = x[1:] * 2\ny[1:] = z[:-1]", {"y": "f32[9]", "z": "f32[9]", "x": "f32[9]"},
     """
     for i in 0..8:
         z[i + 1] = x[i + 1] * 2.0
         y[i + 1] = z[i]
     """),
    ("if x[i] > 0:\n    z[i] = x[i]\n    y[i] = z[i] * 2",
     {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         x[i] > 0[i] = x[i] > 0.0
         if x[i] > 0[i]:
             z[i] = x[i]
             y[i] = z[i] * 2.0
     """),
    ("z[i] = x[i]\nc[0] = 1\ny[i] = z[i] * c[0]",
     {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "c": "f32[1]"},
     """
     c[0] = 1.0
     for i in 0..8:
         z[i] = x[i]
         y[i] = z[i] * c[0]
     """),
    ("t[i] = x[i]\nw[j] = v[j]\nc[0] = 1\nd[0] = c[0]\ny[i] = t[i] * d[0]",
     {"y": "f32[8]", "w": "f32[9]", "x": "f32[8]", "v": "f32[9]", "c": "f32[1]", "d": "f32[1]"},
     """
     c[0] = 1.0
     d[0] = c[0]
     for i in 0..8:
         t[i] = x[i]
         y[i] = t[i] * d[0]
     for j in 0..9:
         w[j] = v[j]
     """),
]  # fmt: skip


@pytest.mark.parametrize(("body", "arrays", "expected"), FUSED, ids=[b for b, _, _ in FUSED])
def test_fused(body: str, arrays: dict[str, str], expected: str) -> None:
    assert after(fuse, body, **arrays) == textwrap.dedent(expected).strip()


def test_a_large_product_keeps_its_tiles_and_takes_its_epilogue() -> None:
    sizes = {"x": "f32[32, 64]", "w": "f32[64, 96]", "v": "f32[96, 16]", "b": "f32[96]",
             "r": "f32[32, 96]", "z": "f32[32, 16]"}  # fmt: skip
    body = """
        t[n, j] = sum(x[n, i] * w[i, j])
        r[n, j] = max(t[n, j] + b[j], 0)
        z[n, c] = sum(r[n, j] * v[j, c])
    """
    made = fuse(lowered(body, **sizes))
    assert [decision.reason for decision in made.decisions].count(FusionRefusal.TILES) == 1
    assert (
        after(fuse, body, **sizes)
        == textwrap.dedent("""
        for n in 0..32:
            for j in 0..96:
                t[n, j] = 0.0
                for i in 0..64:
                    t[n, j] += x[n, i] * w[i, j]
                r[n, j] = max(t[n, j] + b[j], 0.0)
        for n in 0..32:
            for c in 0..16:
                z[n, c] = 0.0
                for j in 0..96:
                    z[n, c] += r[n, j] * v[j, c]
    """).strip()
    )


@pytest.mark.parametrize(("used", "reason"), [(n, FusionReason.SHARED), (m, FusionRefusal.CHECKS)])
def test_a_round_does_not_outrun_a_check(used: Symbol, reason: Reason) -> None:
    x, p, t, u = node(0, "x", 8), node(1, "p", 8, dtype=i64), node(2, "t", 8), node(3, "u", 8)
    fault = Fault("CD0601", "CdIndexError", "out of range")
    first = For(n, const(0), const(8), 1, (
        Check(ap("lt", read(p, n), num(8, i64)), fault),
        Store(at(t, n), read(x, n)),
    ))  # fmt: skip
    inner = Update(at(u, n), OPS["add"], ap("mul", read(t, n), read(x, read(p, used))))
    second = For(n, const(0), const(8), 1, (For(m, const(0), const(8), 1, (inner,)),))
    made = fuse(program((), (x, p), first, second, local=(t, u)))
    assert [decision.reason for decision in made.decisions] == [reason]


@pytest.mark.parametrize(
    ("shift", "reason"), [(False, FusionReason.SHARED), (True, FusionRefusal.CHECKS)]
)
def test_a_round_does_not_outrun_a_check_of_positions(shift: bool, reason: Reason) -> None:
    x, p, t, u = node(0, "x", 8), node(1, "p", 8, dtype=i64), node(2, "t", 8), node(3, "u", 8)
    (k,) = symbols("k")
    fault = Fault("CD0601", "CdIndexError", "out of range")
    first = For(n, const(0), const(8), 1, (
        Check(ap("lt", pos(var(k) + var(n)), num(8, i64)), fault),
        Store(at(t, n), read(x, n)),
    ))  # fmt: skip
    used = var(k) - var(n) + 7 if shift else var(n)
    inner = Update(at(u, n), OPS["add"], ap("mul", read(t, n), read(x, used)))
    second = For(n, const(0), const(8), 1, (For(m, const(0), const(8), 1, (inner,)),))
    made = fuse(program((), (x, p), Let(k, read(p, 0)), first, second, local=(t, u)))
    assert [decision.reason for decision in made.decisions] == [reason]


def test_comments_stay_in_order() -> None:
    new = fuse(lowered("z[i] = x[i]\ny[i] = z[i]", y="f32[8]", z="f32[8]", x="f32[8]")).program
    comment, loop = new.kernels[0].body
    assert getattr(comment, "text", "") == "z[i] = x[i]"
    assert [getattr(stmt, "text", "") for stmt in getattr(loop, "body", ())] == [
        "",
        "y[i] = z[i]",
        "",
    ]


def test_comments_between_branches_of_one_test_stay() -> None:
    body = "if m[0] > 0:\n    z[i] = x[i]\nif m[0] > 0:\n    y[i] = z[i]"
    arrays = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "m": "f32[1]"}
    before = lowered(body, **arrays)
    made = fuse(before).program
    told = [[s.text for s in statements(k.kernels[0].body) if isinstance(s, Comment)]
            for k in (before, made)]  # fmt: skip
    assert len(made.kernels[0].body) < len(before.kernels[0].body)
    assert told[0] == told[1]


def test_symbols_of_both_nests_stay_apart() -> None:
    i, j, k = symbols("i j k")
    y, x, a = node(0, "y", 8), node(1, "x", 8), node(2, "a", 8, 8)
    row = For(i, const(0), const(8), 1, (Store(at(a, j, i), read(x, i)),))
    first = For(i, const(0), const(8), 1, (Store(at(y, i), read(x, i)),))
    before = program((y, a), (x,), first, For(j, const(0), const(8), 1, (row,)))
    data = [np.zeros(8, np.float32), np.zeros((8, 8), np.float32), np.arange(8, dtype=np.float32)]
    assert len(assert_agrees(before, fuse, data).kernels[0].body) == 1
    named = (Let(k, pos(i)), Store(at(y, i), read(x, k)))
    again = (Let(k, pos(const(7) - var(i))), Store(at(a, i, 0), read(x, k)))
    nests = (For(i, const(0), const(8), 1, body) for body in (named, again))
    made = assert_agrees(program((y, a), (x,), *nests), fuse, data)
    assert len(made.kernels[0].body) == 1


def test_a_nest_does_not_pass_a_name_that_it_uses() -> None:
    i, j, k, m = symbols("i j k m")
    y, x, p, t = node(0, "y", 8), node(1, "x", 8), node(2, "p", 1, dtype=i64), node(3, "t", 8)
    w = node(4, "w", 9)
    first = For(i, const(0), const(8), 1, (Store(at(t, i), read(x, i)),))
    between = For(m, const(0), const(9), 1, (Store(at(w, m), num(1.0)),))
    value = ap("add", read(t, j), read(x, k))
    second = For(j, const(0), const(8), 1, (Store(at(y, j), value),))
    before = program((y, w), (x, p), first, between, Let(k, read(p, 0)), second, local=(t,))
    data = [np.zeros(8, np.float32), np.zeros(9, np.float32)]
    assert_agrees(before, fuse, [*data, np.arange(8, dtype=np.float32), np.array([3])])


def test_no_nest_passes_an_exchange() -> None:
    i, j = symbols("i j")
    y, z, x, u, w = (node(n, label, 8) for n, label in enumerate("yzxuw"))
    one, two = (For(s, const(0), const(8), 1, (Store(at(a, s), read(x, s)),))
                for s, a in ((i, y), (j, z)))  # fmt: skip
    made = fuse(program((y, z), (x,), one, Permute((u, w), (w, u)), two, local=(u, w)))
    assert [decision.reason for decision in made.decisions] == [FusionRefusal.BETWEEN]


def _past(between: tuple[Stmt, ...], *scalars: Node, more: tuple[Stmt, ...] = ()) -> int:
    """Return how many nests are left of two, the second of which reads what the first writes."""
    i, j = symbols("i j")
    y, x, t = node(0, "y", 8), node(1, "x", 8), node(2, "t", 8)
    first = For(i, const(0), const(8), 1, (Store(at(t, i), read(x, i)),))
    value = ap("add", read(t, j), read(scalars[0]))
    second = For(j, const(0), const(8), 1, (Store(at(y, j), value),))
    body = (first, *between, second, *more)
    outside = tuple(one for one in scalars if one.rank)
    own = (t, *(one for one in scalars if not one.rank))
    before = program((y, *outside), (x,), *body, local=own)
    data = [np.zeros(8, np.float32), *(np.zeros(one.static_shape, np.float32) for one in outside)]
    made = assert_agrees(before, fuse, [*data, np.arange(8, dtype=np.float32)])
    return sum(isinstance(stmt, For) for stmt in made.kernels[0].body)


def test_what_has_to_be_done_before_is_done_in_order() -> None:
    """`c = b` stands before `b = 3`, which the second nest reads: both stay before it."""
    b, c, z = node(3, "b"), node(4, "c"), node(5, "z", 8)
    told = (Store(at(c), read(b)), Store(at(b), num(3.0)), Store(at(z, 0), read(c)))
    assert _past(told, b, c, z) == 1


def _longer(z: Node) -> For:
    """Return a nest of more rounds than those that are to be brought together."""
    k = Symbol("k", 8)
    return For(k, const(0), const(9), 1, (Store(at(z, k), num(1.0)),))


@pytest.mark.parametrize(
    ("count", "nests"),
    [(thresholds.MAX_FUSION_DISTANCE - 2, 2), (thresholds.MAX_FUSION_DISTANCE - 1, 3)],
)
def test_it_looks_back_only_so_far(count: int, nests: int) -> None:
    b, z, u = node(3, "b"), node(4, "z", 9), node(5, "u", 8)
    stores = (Store(at(u, 0), num(1.0)),) * count
    assert _past((_longer(z), *stores), b, z, u) == nests


def test_past_others_an_array_has_to_be_saved() -> None:
    """A third nest, of other rounds, reads the array, too."""
    k = Symbol("k", 9)
    b, z, w, t = node(3, "b"), node(4, "z", 9), node(5, "w", 8), node(2, "t", 8)
    third = For(k, const(0), const(7), 1, (Store(at(w, k), read(t, var(k) + 1)),))
    assert _past((_longer(z),), b, z) == 2
    assert _past((_longer(z),), b, z, w, more=(third,)) == 4


def test_past_others_both_have_the_same_rounds() -> None:
    i, j = symbols("i j")
    y, x, t, z = node(0, "y", 8), node(1, "x", 9), node(2, "t", 9), node(3, "z", 9)
    first = For(i, const(0), const(9), 1, (Store(at(t, i), read(x, i)),))
    second = For(j, const(0), const(8), 1, (Store(at(y, j), read(t, j)),))
    before = program((y, z), (x,), first, _longer(z), second, local=(t,))
    data = [np.zeros(8, np.float32), np.zeros(9, np.float32), np.arange(9, dtype=np.float32)]
    made = assert_agrees(before, fuse, data)
    loops = [stmt for stmt in statements(made.kernels[0].body) if isinstance(stmt, For)]
    written = [{node for stmt in loop.body for node in direct_writes(stmt)} for loop in loops]
    assert len(loops) > 1 and not any({t, y} <= nodes for nodes in written)


@pytest.mark.parametrize(("text", "is_behind"), [("then", False), ("end of a branch", True)])
def test_past_others_a_nest_takes_its_heading_along(text: str, is_behind: bool) -> None:
    i, j = symbols("i j")
    y, x, t, z = node(0, "y", 8), node(1, "x", 8), node(2, "t", 8), node(3, "z", 9)
    first = For(i, const(0), const(8), 1, (Store(at(t, i), read(x, i)),))
    second = For(j, const(0), const(8), 1, (Store(at(y, j), read(t, j)),))
    body = (first, _longer(z), Comment(text), second)
    made = fuse(program((y, z), (x,), *body, local=(t,))).program
    last = [stmt for stmt in made.kernels[0].body if isinstance(stmt, For | Comment)][-1]
    assert isinstance(last, Comment) == is_behind
    assert sum(isinstance(stmt, For) for stmt in made.kernels[0].body) == 2


def _later(between: For) -> list[Stmt]:
    """Return what two nests become with a nest between them that starts what the second writes."""
    i, j = symbols("i j")
    y, x, t = node(0, "y", 9), node(1, "x", 9), node(2, "t", 8)
    first = For(i, const(0), const(8), 1, (Store(at(t, i), read(x, i)),))
    second = For(j, const(0), const(8), 1, (Store(at(y, j), read(t, j)),))
    body = (Comment("first"), first, Comment("zeros"), between, Comment("second"), second)
    before = program((y, x), (), *body, local=(t,))
    made = assert_agrees(before, fuse, [np.ones(9, np.float32), np.arange(9, dtype=np.float32)])
    return list(made.kernels[0].body)


def test_the_first_goes_past_what_starts_the_array_of_the_second() -> None:
    y = node(0, "y", 9)
    zeros, *heads, both = _later(_longer(y))[1:]
    assert isinstance(zeros, For) and zeros.hi == const(9)
    assert [head.text for head in heads if isinstance(head, Comment)] == ["first"]
    assert isinstance(both, For) and len(both.body) == 3, "the heading of the second is inside"


@pytest.mark.parametrize("stored", ["what the first reads", "what the first writes"])
def test_the_first_stays_before_what_has_to_do_with_it(stored: str) -> None:
    k = Symbol("k", 8)
    y, x, t = node(0, "y", 9), node(1, "x", 9), node(2, "t", 8)
    other = Store(at(x, k), num(2.0)) if "reads" in stored else Store(at(x, 0), read(t, k))
    zeros = Store(at(y, k), num(1.0))
    between = For(k, const(0), const(7), 1, (zeros, other))
    assert sum(isinstance(stmt, For) for stmt in _later(between)) == 3
