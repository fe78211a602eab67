"""Programs before, and the loops after: simplify."""

from __future__ import annotations

from plusequals.lowering.ir.assignments import Break, Fault, Let
from plusequals.lowering.ir.indexing import Symbol, const, mod, var
from plusequals.lowering.passes.simplify import simplify

from ..ir.build import ap, at, bool_, i64, loops, node, num, pos, program, read
from ..shown import after, text_of


def _is(expected: str, body: str, **arrays: str) -> None:
    assert after(simplify, body, **arrays) == expected.strip("\n")


def test_scalars_keep_their_bits() -> None:
    _is(
        """
for i in 0..8:
    y[i] = x[i]
for i in 0..8:
    y[i] = x[i] + 0.0
for i in 0..8:
    y[i] = 0.0 * x[i]
""",
        "y[i] = x[i] * 1.0\ny[i] = x[i] + 0.0\ny[i] = 0.0 * x[i]",
        y="f32[8]", x="f32[8]",
    )  # fmt: skip


def test_positions_are_resolved_by_their_loops() -> None:
    _is(
        """
for i in 0..8:
    y[i] = x[i]
""",
        "y[i] = where(i < 8, x[i % 8], 7.0)",
        y="f32[8]", x="f32[8]",
    )  # fmt: skip


def test_a_test_tells_what_holds_in_its_branch() -> None:
    text = after(
        simplify, "for i in range(8):\n    if i < 3:\n        y[i] = x[min(i, 2)]",
        y="f32[8]", x="f32[8]",
    )  # fmt: skip
    assert text == "for i in 0..8:\n    if i < 3:\n        y[i] = x[i]"


def test_loops_of_one_round_and_of_none_go() -> None:
    _is(
        """
for j in 0..4:
    y[0, j] = x[j]
""",
        "y[i, j] = x[j]", y="f32[1, 4]", x="f32[4]",
    )  # fmt: skip
    _is("pass", "y[i] = x[i]", y="f32[0]", x="f32[0]")


def test_a_loop_that_is_left_early_stays() -> None:
    body = "for i in range(1):\n    if x[0] > 0:\n        break\n    y[0] = 1.0"
    assert after(simplify, body, y="f32[1]", x="f32[1]").startswith("for i in 0..1:")


def test_a_branch_that_is_decided_is_taken() -> None:
    body = "for i in range(4):\n    if i < 9:\n        y[i] = 1.0\n    else:\n        y[i] = 2.0"
    assert after(simplify, body, y="f32[4]") == "for i in 0..4:\n    y[i] = 1.0"


def test_of_a_decided_branch_one_side_is_left() -> None:
    y = node(0, "y", 4)
    sides = (loops.Store(at(y, 0), num(1.0)),), (loops.Store(at(y, 0), num(2.0)),)
    for test, kept in ((True, "1.0"), (False, "2.0")):
        branch = loops.If(num(test, bool_), *sides)
        assert text_of(simplify(program((y,), (), branch))) == f"y[0] = {kept}"


def test_a_jump_on_either_side_keeps_a_loop() -> None:
    x, y, n = node(0, "x", 1), node(1, "y", 1), Symbol("n", 0)
    test, store = ap("gt", read(x, 0), num(0.0)), loops.Store(at(y, 0), num(1.0))
    for sides in (((store,), (Break(),)), ((Break(),), (store,))):
        loop = loops.For(n, const(0), const(1), 1, (loops.If(test, *sides), store))
        assert text_of(simplify(program((y,), (x,), loop))).startswith("for n in 0..1:")


def test_what_was_checked_holds_behind_the_check() -> None:
    n, x, y = Symbol("n", 0), node(0, "x", 8), node(1, "y", 8)
    fault = Fault("CD0601", "CdIndexError", "out of range")
    inside = ap("and", ap("ge", pos(n), num(0, i64)), ap("lt", pos(n), num(8, i64)))
    size = read(node(2, "size", dtype=i64))
    body = (
        Let(n, size),
        loops.Store(at(y, mod(var(n), const(8))), num(1.0)),
        loops.Check(inside, fault),
        loops.Store(at(y, mod(var(n), const(8))), read(x, mod(var(n), const(8)))),
        loops.Check(inside, fault),
    )
    assert text_of(simplify(program((y,), (x, size.node), *body))) == (
        "let n = size\n"
        "y[n%8] = 1.0\n"
        "check n >= 0 and n < 8 else CdIndexError('CD0601', 'out of range')\n"
        "y[n] = x[n]"
    )


CHECK = "check x[i, 0] > 0.0 else CdIndexError('CD0601', '{{0}}', {})"


def _checked(test: str, lo: int = 0, hi: int = 8, step: int = 1) -> str:
    """A loop over `k` that checks, in one over `i`; `n` is known in the run only."""
    i, k, n = Symbol("i", 0), Symbol("k", 1), Symbol("n", 2)
    x = node(0, "x", var(n), 9)
    about = {"i": read(x, i, 0), "k": read(x, i, k)}[test]
    check = loops.Check(
        ap("gt", about, num(0.0)), Fault("CD0601", "CdIndexError", "{0}"), (pos(k),)
    )
    ends = (const(lo), const(hi)) if hi < 99 else (const(lo), var(n))
    inner = loops.For(k, *ends, step, (loops.Comment("why"), check))
    return text_of(simplify(program((), (x,), loops.For(i, const(0), var(n), 1, (inner,)))))


def test_what_the_first_round_has_checked_is_not_checked_again() -> None:
    assert _checked("i") == f"for i in 0..n:\n    {CHECK.format(0)}"
    assert _checked("i", 7, -1, -1) == f"for i in 0..n:\n    {CHECK.format(7)}"
    assert "for k in 0..8" in _checked("k")
    assert f"if 3 < n:\n        {CHECK.format(3)}" in _checked("i", 3, 99)
    assert f"if n < 3:\n        {CHECK.format(3)}" in _checked("i", 3, 99, -1)


def test_a_loop_that_sizes_an_array_stays() -> None:
    body = """
    for k in range(1):
        t = np.zeros(8 - k)
        if x[k] > 0:
            t = t + x[k:]
        y[k:] += t
    """
    assert after(simplify, body, y="f32[8]", x="f32[8]").startswith("for k in 0..1:")
