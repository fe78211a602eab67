"""Decisions carry a sentence, and reach the placement of a program."""

from __future__ import annotations

from plusequals.lowering.passes.decision import Decision
from plusequals.lowering.passes.fuse import Apart, Together
from plusequals.lowering.passes.shrink import Smaller, Whole
from plusequals.lowering.passes.virtualize import Stored, Virtual
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from .shown import lowered


def test_every_reason_is_a_sentence_of_its_own() -> None:
    reasons = [
        reason for kind in (Apart, Together, Smaller, Whole, Stored, Virtual) for reason in kind
    ]
    for reason in reasons:
        assert len(str(reason).split()) >= 3
        assert not str(reason).endswith(".")
    for kind in (Apart, Together, Smaller, Whole, Stored, Virtual):
        assert len(set(map(str, kind))) == len(kind)
    assert str(Decision("apart", Apart.ORDER, detail="m")).endswith(": m")


def test_the_placement_says_why() -> None:
    program = lowered(
        "t[i] = x[i] + 1\nm[i] = max(a[i, j])\ny[i] = t[i] * m[i]",
        y="f32[8]", x="f32[8]", a="f32[8, 9]",
    )  # fmt: skip
    _, placement = optimize(program, HOST)
    nodes = {node.label: node for node in program.locals}
    assert placement[nodes["t"]].where == "virtual"
    assert placement[nodes["t"]].why == str(Virtual.ONCE)
    assert placement[nodes["m"]].where == "register"
    assert placement[nodes["m"]].why == str(Smaller.SCALAR)
    assert {made.outcome for made in placement.decisions} >= {"virtual", "shrunk", "fused"}
