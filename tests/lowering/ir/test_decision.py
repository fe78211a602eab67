"""Decisions carry a sentence, and reach the placement of a program."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import get_args

from plusequals import lowering
from plusequals.base.diagnostic import NOWHERE, Source, Span
from plusequals.lowering.analysis.fusion import FusionRefusal
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.decision import Decision, Outcome, Reason
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node
from plusequals.lowering.passes.contract_arrays import ContractionReason, NoContractionReason
from plusequals.lowering.passes.fuse import FusionReason
from plusequals.lowering.passes.inferred_decisions import NamingReason, RemovalReason
from plusequals.lowering.passes.inline import StoredReason, VirtualReason
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ..shown import lowered


def reasons() -> list[type[Reason]]:
    """Return the reasons of all passes."""
    for module in pkgutil.walk_packages(lowering.__path__, f"{lowering.__name__}."):
        importlib.import_module(module.name)
    return [kind for kind in Reason.__subclasses__() if kind.__module__.startswith("plusequals.")]


def test_every_reason_is_a_sentence_of_its_own() -> None:
    kinds = reasons()
    assert {FusionRefusal, ContractionReason, NamingReason} < set(kinds)
    for kind in kinds:
        for reason in kind:
            assert len(str(reason).split()) >= 3
            assert not str(reason).endswith(".")
        assert len(set(map(str, kind))) == len(kind)
    assert str(Decision("not fused", FusionRefusal.ORDER, detail="m")).endswith(": m")


SOURCE, OTHER = Source("me.py", 1, "a\nb\n"), Source("lib/other.py", 4, "c\n")
FIRST, SECOND, AWAY = (Span(s, n, 0, n, 1) for s, n in ((SOURCE, 1), (SOURCE, 2), (OTHER, 4)))
M = Node(0, "m", (const(3), const(4)), dtypes.float32)
SENTENCES = (
    (Decision("virtual", VirtualReason.ONCE, M), "`m` is never stored: each element"),
    (
        Decision("stored", StoredReason.PRINTED, M),
        "`m` is computed once and stored: it is printed",
    ),
    (
        Decision("shrunk", ContractionReason.PART, M),
        "of `m` only f32[3, 4] is kept at a time: each",
    ),
    (
        Decision("shrunk", ContractionReason.SCALAR, replace(M, shape=())),
        "of `m` only one element is",
    ),
    (Decision("whole", NoContractionReason.MOVED, M), "`m` is kept whole: it trades places"),
    (
        Decision("register", ContractionReason.REGISTER, M),
        "a loop keeps an element of `m` in a register",
    ),
    (
        Decision("fused", FusionReason.SHARED, None, "", SECOND, FIRST, "i"),
        "the loop over `i` is joined with the one of line 1: they share",
    ),
    (
        Decision("not fused", FusionRefusal.ORDER, None, "m", SECOND, SECOND, "j"),
        "the loop over `j` is kept apart from another one of the same line: an iteration "
        "of the second depends on a later iteration of the first: `m`",
    ),
    (
        Decision("not fused", FusionRefusal.JUMPS, None, "", SECOND, AWAY, "j"),
        "the loop over `j` is kept apart from the one of other.py:4: one of them",
    ),
    (
        Decision("not fused", FusionRefusal.JUMPS, None, "", SECOND, NOWHERE, "j"),
        "the loop over `j` is kept apart from the one of another statement:",
    ),
    (Decision("removed", RemovalReason.UNUSED, M), "`m` is not computed: nothing"),
    (
        Decision("reused", RemovalReason.UNUSED, M, "`t`"),
        "`m` is computed in the memory of another array: nothing",
    ),
    (
        Decision("skipped", RemovalReason.ZERO, M),
        "this value of `m` is not stored: the array starts",
    ),
    (
        Decision("shared", NamingReason.SHARED, M, "x + y"),
        "`x + y` is computed once, as `m`: it is",
    ),
    (
        Decision("hoisted", NamingReason.HOISTED, M, "x + y"),
        "`x + y` is computed before the loop, as",
    ),
    (
        Decision("looked up", RemovalReason.SEARCH),
        "the loop is replaced by a lookup: it looks for one index",
    ),
)

SCHEDULED: tuple[tuple[Outcome, str], ...] = (
    ("tiles", "the nest of the loop over `i` is computed in tiles: it is"),
    ("parallel", "the iterations of the loop over `i` run on several threads: it is"),
    ("lanes", "the terms of `m` are combined in SIMD lanes: it is"),
    ("deferred", "what iterations over `i` add to `m` is added after them: it is"),
    ("checked", "the indices in `m` are checked for many iterations at once: it is"),
    ("answered", "the loops that compute `m` end once its value is certain: it is"),
    ("skewed", "the loop over `i` does several iterations for a block of rows: it is"),
    ("staged", "the loop over `i` has a separate loop for each of its functions: it is"),
    ("masked", "the iterations of the loop over `i` run in SIMD lanes: it is"),
    ("of reals", "the nest of the loop over `i` computes with real numbers: it is"),
    ("mirrored", "half of `m` is copied from its other half: it is"),
    ("mapped", "the loop over `i` runs on the device: it is"),
    ("split", "the loop over `i` is split in two: it is"),
    ("vectorized", "neighbouring elements of `m` are computed together: it is"),
)
"""Outcomes of the schedules; those that start with an array, or name one, are about it."""


def test_every_outcome_has_a_sentence() -> None:
    told = {decision.outcome for decision, _ in SENTENCES} | {outcome for outcome, _ in SCHEDULED}
    assert told == set(get_args(Outcome))
    for outcome, start in SCHEDULED:
        node = M if "`m`" in start else None
        assert (
            Decision(outcome, StoredReason.PRINTED, node, variable="i").sentence()
            == f"{start} printed"
        )


def test_decisions_are_told_as_sentences() -> None:
    for decision, start in SENTENCES:
        assert decision.sentence().startswith(start)
        assert "``" not in decision.sentence()
        if decision.node is not None:
            assert "`M`" in decision.sentence(lambda node: "M")


def test_the_placement_says_why() -> None:
    program = lowered(
        "t[i] = x[i] + 1\nm[i] = max(a[i, j])\ny[i] = t[i] * m[i]",
        y="f32[8]", x="f32[8]", a="f32[8, 9]",
    )  # fmt: skip
    _, placement = optimize(program, HOST)
    nodes = {node.label: node for node in program.locals}
    assert placement[nodes["t"]].where == "virtual"
    assert placement[nodes["t"]].why == str(VirtualReason.ONCE)
    assert placement[nodes["m"]].where == "register"
    assert (
        placement[nodes["m"]].why
        == f"{ContractionReason.SCALAR}; not virtual: {StoredReason.REDUCED}"
    )
    assert {made.outcome for made in placement.decisions} >= {"virtual", "shrunk", "fused"}
