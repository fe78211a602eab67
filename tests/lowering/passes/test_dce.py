"""Programs before, and the loops after: dead."""

from __future__ import annotations

from plusequals.lowering.ir.loops import If
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.passes.dce import eliminate_dead_code

from ..ir.build import ap, at, f32, node, num, program, read
from ..shown import after, lowered, text_of

from plusequals.lowering.ir import loops  # isort: skip


def test_a_chain_that_nobody_reads_goes_with_its_locals() -> None:
    before = lowered("t[i] = x[i]\nu[i] = t[i] * 2\ny[i] = x[i]", y="f32[4]", x="f32[4]")
    new = eliminate_dead_code(before)
    assert len(before.locals) == 2 and new.locals == ()
    assert text_of(new) == "for i in 0..4:\n    y[i] = x[i]"
    comments = [s.text for s in statements(new.kernels[0].body) if isinstance(s, loops.Comment)]
    assert comments == ["y[i] = x[i]"], "comments go with what they head"


def test_an_accumulation_into_a_local_is_no_use_of_it() -> None:
    text = after(eliminate_dead_code, "s = 0.0\nfor k in range(4):\n    s += x[k]\ny[i] = x[i]",
                 y="f32[4]", x="f32[4]")  # fmt: skip
    assert text == "for i in 0..4:\n    y[i] = x[i]"


def test_checks_and_prints_stay_with_what_they_show() -> None:
    body = """
    t[i] = x[i] * 2
    print(t[1])
    for k in range(4):
        if x[k] < 0:
            raise ValueError("negative")
    y[i] = x[i]
    """
    text = after(eliminate_dead_code, body, y="f32[4]", x="f32[4]")
    assert "print(" in text and "check " in text and "t[" in text


def test_empty_branches_go_and_an_empty_side_is_turned() -> None:
    x, y, t = node(0, "x"), node(1, "y"), node(2, "t")
    test = ap("lt", read(x), num(0.0))
    store, lost = loops.Store(at(y), num(1.0)), loops.Store(at(t), num(2.0))
    one = program((y,), (x,), loops.If(test, (lost,), (store,)), local=(t,))
    (branch,) = eliminate_dead_code(one).kernels[0].body
    assert isinstance(branch, If) and branch.then == (store,) and not branch.orelse
    assert text_of(eliminate_dead_code(one)) == "if not x < 0.0:\n    y = 1.0"
    both = program((y,), (x,), loops.If(test, (lost,), (lost,)), local=(t,))
    assert text_of(eliminate_dead_code(both)) == "pass"
    assert x.dtype is f32
