"""Read and write sets: guards, triangles, strides, sequential loops and fixed positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.analysis.accesses import body_accesses, collect_accesses
from plusequals.lowering.analysis.effects import has_effects, has_jumps
from plusequals.lowering.analysis.guarded_reads import negate
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.instructions import CopyVector, StoreVector
from plusequals.lowering.ir.loops import For, If, Program
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower

from ..shown import lowered


def node_of(program: Program, label: str) -> Node:
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    return next(node for node in nodes if node.label == label)


BOTH = "t: f32[8]\nfor k in range(8):\n    if x[k] > 2:\n        t[k] = x[k]\n    "


@pytest.mark.parametrize(
    ("body", "first", "whole"),
    [
        ("t[i] = x[i]\ny[i] = t[i]", False, True),
        ("t: f32[8]\nt[1:] = x[1:]\ny[i] = t[i]", True, False),  # t[0] is zero
        ("t: f32[8]\nt[::2] = x[::2]\ny[::2] = t[::2]", False, False),
        ("t: f32[8]\nt[::2] = x[::2]\ny[::2] = t[1::2]", True, False),
        ("t: f32[8]\nt[::2] = x[::2]\ny[:] = t[:]", True, False),
        ("t: f32[8]\nt[0] = 1.0\ny[0] = t[0]", False, False),
        ("t: f32[8]\nt[0] = 1.0\ny[0] = t[1]", True, False),
        ("t: f32[8]\nif i > 2:\n    t[i] = x[i]\n    y[i] = t[i]", False, False),
        ("t: f32[8]\nif i > 2:\n    t[i] = x[i]\ny[i] = t[i]", True, False),
        ("t: f32[8]\nif x[i] > 2:\n    t[i] = x[i]\n    y[i] = t[i]", False, False),
        ("t: f32[8]\nm[i] = x[i] > 2\nt[i] = t[i] if m[i] else x[i]\ny[i] = t[i]", True, True),
        ("t[i] = x[i]\nfor s in range(3):\n    y[i] = t[i]\n    t[i] = x[i]", False, True),
        ("t: f32[8]\nfor s in range(3):\n    y[i] = t[i]\n    t[i] = x[i]", True, False),
        ("t[i] = x[i]\nt[i] += 1\ny[i] = t[i]", False, True),
        ("t: f32[8]\nif i > 2:\n    t[i] = x[i]\n    y[i] = t[i] if x[i] > 0 else 0", False, False),
        (f"{BOTH}else:\n        t[k] = 0\n    y[k] = t[k]", False, True),
        (
            f"{BOTH}elif x[k] > 0:\n        t[k] = 0\n    else:\n        t[k] = 1\n    y[k] = t[k]",
            False,
            True,
        ),
        (f"{BOTH}else:\n        t[7 - k] = 0\n    y[k] = t[k]", True, False),
        (f"{BOTH}elif x[k] > 0:\n        t[k] = 0\n    y[k] = t[k]", True, False),
        (f"{BOTH}    y[k] = t[k]\n    else:\n        y[k] = t[k]\n        t[k] = 0", True, True),
    ],
)
def test_what_is_written_before_it_is_read(body: str, first: bool, whole: bool) -> None:
    program = lowered(body, y="f32[8]", x="f32[8]")
    found = collect_accesses(program.kernels[0].body)
    t = node_of(program, "t")
    assert found.is_read_before_written(t) is first
    assert found.is_overwritten(t) is whole
    assert found.is_written(t)


HANDED = [
    ("t[0] = x[0]\nfor i in range(1, 8):\n    t[i] = t[i - 1] + x[i]", False),
    ("for i in range(1, 8):\n    t[i] = t[i - 1] + x[i]", True),  # of the first
    ("t[1] = x[0]\nfor i in range(1, 8):\n    t[i] = t[i - 1] + x[i]", True),
    ("t[0] = 1.0\nt[1] = 1.0\nfor i in range(2, 8):\n    t[i] = t[i - 1] + t[i - 2]", False),
    ("t[0] = 1.0\nfor i in range(2, 8):\n    t[i] = t[i - 1] + t[i - 2]", True),
    ("t[0] = 1.0\nfor i in range(1, 8):\n    t[i] = t[i - 1] + t[i]", True),
    ("t[0] = 1.0\nfor i in range(1, 7):\n    t[i] = t[i + 1]", True),
    ("t[7] = 1.0\nfor i in range(6, -1, -1):\n    t[i] = t[i + 1]", False),
    ("t[7] = 1.0\nfor i in range(6, -1, -1):\n    t[i] = t[i - 1] if i else 0.0", True),
    ("t[0] = 1.0\nfor i in range(2, 8, 2):\n    t[i] = t[i - 2]", True),  # not looked into
    ("t[0] = 1.0\nfor i in range(1, 8):\n    if x[i] > 0:\n        t[i] = t[i - 1]", True),
    ("t[0] = 1.0\nfor i in range(1, 8):\n    if x[i] > 0: continue\n    t[i] = t[i - 1]", True),
    ("t[0] = 1.0\nfor s in range(3):\n    for i in range(1, 8):\n        t[i] = t[i - 1]", False),
    ("for s in range(3):\n    t[s] = 1\n    for i in range(4, 8):\n        t[i] = t[i - 4]", True),
]  # fmt: skip


@pytest.mark.parametrize(("body", "first"), HANDED)
def test_rounds_hand_on_what_they_write(body: str, first: bool) -> None:
    program = lowered(f"t: f32[8]\n{body}\ny[j] = t[j]", y="f32[8]", x="f32[8]")
    found = collect_accesses(program.kernels[0].body)
    loop = next(s for s in program.kernels[0].body if isinstance(s, For))
    reads = [site for site in found.of(node_of(program, "t")) if loop in site.inside and site.reads]
    assert reads
    assert any(not found.is_covered(site) for site in reads) is first


@pytest.mark.parametrize(
    ("start", "first"), [("t[0] = 1.0", False), ("t[1] = 1.0", True), ("x[0] = 1.0", True)]
)
def test_the_first_element_may_be_written_apart(start: str, first: bool) -> None:
    body = f"t: f32[8]\n{start}\nfor i in range(1, 8):\n    t[i] = x[i]\ny[j] = t[j]"
    program = lowered(body, y="f32[8]", x="f32[8]")
    found = collect_accesses(program.kernels[0].body)
    assert found.is_read_before_written(node_of(program, "t")) is first


@pytest.mark.parametrize(
    ("last", "loop", "first"),
    [("t[7]", "range(8)", False), ("t[6]", "range(8)", True), ("t[7]", "range(7, -1, -1)", False)],
)
def test_the_last_element_may_be_written_apart(last: str, loop: str, first: bool) -> None:
    body = f"t: f32[8]\n{last} = 1.0\nfor i in range(7):\n    t[i] = x[i]\n"
    program = lowered(body + f"for i in {loop}:\n    y[i] = t[i]", y="f32[8]", x="f32[8]")
    found = collect_accesses(program.kernels[0].body)
    assert found.is_read_before_written(node_of(program, "t")) is first


FIRST_ROUNDS = [
    ("for k in range(3):\n    t[0] = x[k]\n    if t[0] > 2: break\ny[0] = t[0]", False),
    ("for k in range(3):\n    t[0] = x[k]\n    if t[0] > 2: continue\ny[0] = t[0]", False),
    ("for k in range(3):\n    if x[k] > 2: break\n    t[0] = x[k]\ny[0] = t[0]", True),
    ("for k in range(3):\n    if x[k] > 2: continue\n    t[0] = x[k]\ny[0] = t[0]", True),
    ("for k in range(3):\n    if x[k] > 2:\n        t[0] = x[k]\n    if t[0] > 2: break\n"
     "y[0] = t[0]", True),
    ("for k in range(p[0]):\n    t[0] = x[k]\n    if t[0] > 2: break\n"
     "y[0] = t[0]", True),  # of none?
    ("for k in range(7, 3, -2):\n    t[0] = x[k]\n    if t[0] > 2: break\ny[0] = t[0]", False),
    ("for k in range(3, 3):\n    t[0] = x[k]\n    if t[0] > 2: break\ny[0] = t[0]", True),
    ("for i in range(8):\n    for k in range(i):\n        t[0] = x[k]\n        if t[0] > 2: break\n"
     "    y[i] = t[0]", True),  # the first has none
    ("for i in range(8):\n    for k in range(i + 1):\n        t[0] = x[k]\n"
     "        if t[0] > 2: break\n    y[i] = t[0]", False),
    ("for i in range(8):\n    for k in range(i):\n        t[0] = x[k]\n        if t[0] > 2: break\n"
     "for i in range(1, 8):\n    y[i] = t[0]", True),  # another `i`
    ("for k in range(3):\n    for l in range(2):\n        t[0] = x[l]\n        if t[0] > 2: break\n"
     "    if x[k] > 3: break\ny[0] = t[0]", False),
    ("for k in range(3):\n    if x[k] > 3: break\n    for l in range(2):\n        t[0] = x[l]\n"
     "y[0] = t[0]", True),
    ("for k in range(3):\n    if x[k] > 1:\n        t[0] = x[k]\n    else:\n        t[0] = x[0]\n"
     "    if x[k] > 3: break\ny[0] = t[0]", False),
    ("for k in range(3):\n    if x[k] > 1:\n        if x[k] > 3: break\n        t[0] = x[k]\n"
     "    else:\n        t[0] = x[0]\ny[0] = t[0]", True),
]  # fmt: skip


@pytest.mark.parametrize(("body", "first"), FIRST_ROUNDS)
def test_a_first_round_writes_what_stands_before_all_jumps(body: str, first: bool) -> None:
    program = lowered(f"t: f32[8]\n{body}", y="f32[8]", x="f32[8]", p="i64[8]")
    found = collect_accesses(program.kernels[0].body)
    assert found.is_read_before_written(node_of(program, "t")) is first


ELEMENTS = [
    ("for k in range(2, 5):\n    t[k] = x[k]\n    if x[k] > 2: break\ny[0] = t[2]", False),
    ("for k in range(2, 5):\n    t[k] = x[k]\n    if x[k] > 2: break\ny[0] = t[3]", True),
    ("for k in range(3):\n    t[p[k]] = x[k]\n    if x[k] > 2: break\ny[0] = t[p[0]]", True),
    ("for k in range(3):\n    t[:] = x\n    if x[k] > 2: break\ny[0] = t[p[0]]", False),
    ("t[:] = x\na = p[0]\ny[0] = t[a]", False),
    ("t[1:] = x[1:]\na = p[0]\ny[0] = t[a]", True),
    ("t[:] = x\nfor k in range(p[0], p[1]):\n    y[k] = t[k]", False),
    ("t[::2] = x[::2]\na = p[0]\nb = p[1]\nt[a] = t[b]", True),
    ("if x[0] > 1:\n    t[:] = x\na = p[0]\ny[0] = t[a]", True),
    ("for s in range(3):\n    a = p[s]\n    if x[s] > 2:\n        t[:] = x\n        y[s] = t[a]",
     False),
]  # fmt: skip


@pytest.mark.parametrize(("body", "first"), ELEMENTS)
def test_elements_that_data_names_are_among_all(body: str, first: bool) -> None:
    program = lowered(f"t: f32[8]\n{body}", y="f32[8]", x="f32[8]", p="i64[8]")
    found = collect_accesses(program.kernels[0].body)
    assert found.is_read_before_written(node_of(program, "t")) is first


def test_only_writes_cover_what_is_read() -> None:
    program = lowered("y[i] = t[i]\nt[i] += 1\nz[i] = t[i]", y="f32[8]", z="f32[8]", t="f32[8]")
    t = node_of(program, "t")
    found = collect_accesses(program.kernels[0].body)
    assert not any(found.is_covered(site) for site in found.of(t))


def test_a_gather_sees_all_of_an_axis() -> None:
    program = lowered("t[i] = x[i] * 2\ny[i] = t[p[i]]", y="f32[8]", x="f32[8]", p="i64[8]")
    found = collect_accesses(program.kernels[0].body)
    assert not found.is_read_before_written(node_of(program, "t"))
    assert not found.is_written(node_of(program, "p"))
    last = found.last_use(node_of(program, "t"))
    assert last == max(site.route for sites in found.sites.values() for site in sites)
    assert found.last_use(Node(99, "nobody", (), program.parameters[0].node.dtype)) is None
    body = "t: f32[8]\nt[1:] = x[1:]\ny[i] = t[p[i]]"  # t[0] is zero
    program = lowered(body, y="f32[8]", x="f32[8]", p="i64[8]")
    assert collect_accesses(program.kernels[0].body).is_read_before_written(node_of(program, "t"))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (
            """
for s in range(3):
    if m[0] > 0:
        t[s] = x[s]
    if m[0] > 0:
        y[s] = t[s]
for s in range(3):
    m[0] = x[s]
""",
            False,
        ),
        (
            """
for s in range(3):
    if m[0] > 0:
        t[s] = x[s]
    m[0] = x[s]
    if m[0] > 0:
        y[s] = t[s]
""",
            True,
        ),
        (
            """
for s in range(3):
    if m[0] > 0:
        t[s] = x[s]
    for k in range(2):
        m[0] = x[k]
        if m[0] > 0:
            y[s] = t[s]
""",
            True,
        ),
    ],
)
def test_a_test_holds_until_what_it_reads_is_written(body: str, first: bool) -> None:
    program = lowered(f"t: f32[8]{body}", y="f32[8]", x="f32[8]", m="f32[1]")
    found = collect_accesses(program.kernels[0].body)
    assert found.is_read_before_written(node_of(program, "t")) is first


def test_of_two_joined_nodes_one_is_left() -> None:
    program = lowered("t[i] = x[i]\nu[i] = t[i]\ny[i] = u[i]", y="f32[8]", x="f32[8]")
    found = collect_accesses(program.kernels[0].body)
    t, u, x = (node_of(program, label) for label in "tux")
    joined = found.joined(t, u)
    assert joined.sites.keys() == found.sites.keys() - {t.id}
    assert joined.of(x) == found.of(x)
    assert [site.kind for site in joined.of(u)] == ["write", "write", "read", "read"]
    assert {site.node for site in joined.of(u)} == {u}


def test_a_triangle_covers_what_it_wrote() -> None:
    body = """
        t: f32[8, 8]
        if j <= i:
            t[i, j] = x[i] * x[j]
        if j < i:
            y[i, j] = t[i, j]
    """
    program = lowered(body, y="f32[8, 8]", x="f32[8]")
    assert not collect_accesses(program.kernels[0].body).is_read_before_written(
        node_of(program, "t")
    )
    wrong = lowered(body.replace("j < i", "j <= i + 1"), y="f32[8, 8]", x="f32[8]")
    assert collect_accesses(wrong.kernels[0].body).is_read_before_written(node_of(wrong, "t"))


def test_jumps_and_effects_are_seen() -> None:
    leaves = lowered(
        """
        for s in range(3):
            if x[s] > 0:
                break
            x[s] = 1
        """,
        x="f32[3]",
    )
    loop = leaves.kernels[0].body[-1]
    assert has_jumps(loop)
    assert not has_effects(loop)
    loop = lowered("for s in range(3):\n    print(x[s])", x="f32[3]").kernels[0].body[-1]
    assert has_effects(loop)
    assert not has_jumps(loop)


def test_a_branch_with_a_jump_behind_a_write_does_not_hide_it() -> None:
    body = """
for s in range(3):
    if p[s] > 0:
        t[i] = x[i]
        if q[s] > 0:
            break
    if p[s] > 0:
        y[i] += t[i]
"""
    program = lowered(body, y="f32[8]", x="f32[8]", t="f32[8]", p="f32[3]", q="f32[3]")
    found = collect_accesses(program.kernels[0].body)
    assert not found.is_read_before_written(node_of(program, "t"))


def test_the_accesses_of_a_loop_are_those_of_its_body() -> None:
    body = lowered("if x[0] > 0:\n    y[i] = t[i] + x[i]", y="f32[8]", x="f32[8]", t="f32[8]")
    nests = [stmt for stmt in statements(body.kernels[0].body) if isinstance(stmt, For)]
    assert nests
    for nest in nests:
        assert body_accesses(nest) == collect_accesses(nest.body)
        whole, inner = collect_accesses((nest,)).sites, body_accesses(nest).sites
        assert whole.keys() == inner.keys()
        for number, sites in inner.items():
            assert [(s.index, s.kind, s.tests) for s in sites] == [
                (s.index, s.kind, s.tests) for s in whole[number]
            ]
            assert all(s.inside[0] is nest and s.route[0] == (0, 0) for s in whole[number])


def test_sites_say_what_holds_around_them_outermost_first() -> None:
    program = lowered(
        "for k in range(3):\n    if x[k] > 0:\n        if x[k] < 9:\n            y[k] = t[k]\n"
        "        else:\n            y[k] = 1.0",
        y="f32[8]", x="f32[8]", t="f32[8]",
    )  # fmt: skip
    (loop,) = (s for s in statements(program.kernels[0].body) if isinstance(s, For))
    (outer,) = (s for s in loop.body if isinstance(s, If))
    (inner,) = (s for s in outer.then if isinstance(s, If))
    found = collect_accesses((loop,))
    one, other = found.of(node_of(program, "y"))
    assert one.inside == other.inside == (loop, outer, inner)
    assert one.tests[0] == other.tests[0] == outer.test
    assert one.tests[1:] == (inner.test,) and other.tests[1:] == (negate(inner.test),)
    assert (one.route[2][1], other.route[2][1]) == (0, 1)
    assert found.of(node_of(program, "t"))[0].tests == one.tests


@pytest.mark.parametrize(
    ("body", "from_before"),
    [
        ("t[0] = 1\n    t[1:4] = 2\n    t[4] = 1", False),
        ("t[0] = 1\n    t[2:4] = 2\n    t[4] = 1", True),
        ("t[2:] = 1\n    t[:2] = 2\n    y[i] = t[i]", False),
        ("t[:2] = 1\n    t[3:] = 2", True),
        ("t[:2] = 1\n    y[i] = t[i]\n    t[2:] = 1", True),
        ("y[i] = t[i]\n    t[:2] = 1\n    t[2:] = 1", True),
        ("for k in range(2):\n        y[i] = t[i]\n        t[:2] = 1\n        t[2:] = 1", True),
        ("if x[0] > 1:\n        t[i] = 1\n    else:\n        t[:] = 2\n    y[i] = t[i]", False),
        ("if x[0] > 1:\n        t[i] = 1\n    else:\n        t[1:] = 2", True),
        ("if x[0] > 1:\n        t[:2] = 1\n    t[2:] = 1", True),
        ("if x[0] > 1:\n        t[:2] = 1\n    else:\n        t[0] = 1\n        t[1] = 2"
         "\n    t[2:] = 1", False),
        ("if x[0] > 1:\n        t[:2] = 1\n        t[2:] = 1\n    elif x[1] > 1:\n"
         "        t[:3] = 2\n        t[3:] = 1\n    else:\n        t[:] = 0", False),
        ("if x[0] > 1:\n        t[i] = 1\n    if x[1] > 1:\n        t[i] = 2", True),
        ("g[:2] = 1\n    g[2:, 0] = 1\n    g[2:, 1:] = 2\n    t[:] = 0", False),
        ("g[:2] = 1\n    g[2:, 0] = 1\n    g[3:, 1:] = 2\n    t[:] = 0", True),
        ("o[0] = 1\n    t[:] = 0", False),
    ],
)  # fmt: skip
def test_parts_and_branches_together_write_all(body: str, from_before: bool) -> None:
    text = f"def f(t, g, o, x, y):\n    {body}\n"
    arrays = np.zeros(5), np.zeros((4, 3)), np.zeros(1), np.zeros(5), np.zeros(5)
    procedure = pe.cd_from_source(text, backend="numpy").compile(*arrays).codes.procedure
    found = collect_accesses(s for kernel in lower(procedure).kernels for s in kernel.body)
    nodes = {p.node for p in procedure.parameters if p.written and p.node.label != "y"}
    assert from_before is any(
        found.is_upward_exposed(node) or not found.is_overwritten(node) for node in nodes
    )


def test_vectors_touch_more_than_the_elements_that_they_name() -> None:
    program = lowered("y[i] = x[i]", y="f32[8]", x="f32[8]")
    y, x = (p.node for p in program.parameters)
    first = Read(x, (const(0),))
    copy = CopyVector(Access(y, (const(0),)), first, 4, (-1, -1))
    store = StoreVector(Access(y, (const(0),)), -1, (first, first))
    for vector in (copy, store):
        found = collect_accesses((vector,))
        assert {(site.index, site.kind) for site in found.of(y)} == {(None, "update")}
        assert not found.is_overwritten(y)
        assert found.is_read_before_written(x)
    assert {site.index for site in collect_accesses((copy,)).of(x)} == {None}


PROGRAMS = {
    "two branches in a side": (
        "t = np.ones(9)\nif c[0] > 0:\n    if c[1] > 0:\n        t[:] = x[:9]\n    if c[2] > 0:\n"
        "        y[0] = 1\n    else:\n        t[:] = y[:9]\nelse:\n    t[:] = 0.0\ny[:9] += t"
    ),
    "a result in two branches of a side": (
        "r = np.empty(9)\nr[...] = 7.0\nif c[0] > 0:\n    if c[1] > 0:\n        r[:] = x[:9]\n"
        "    if c[2] > 0:\n        c[0] = 5\n    else:\n        r[:] = 2 * x[:9]\nelse:\n"
        "    r[:] = 0.0\nreturn r"
    ),
    "a branch beside an element": (
        "t = np.ones(9)\nif c[0] > 0:\n    if c[1] > 0:\n        t[:] = x[:9]\n    t[2] = 4.0\n"
        "else:\n    t[:3] = 0.0\ny[:9] += t"
    ),
    "a test that its branch changes": (
        "t = 0.0\nfor i in range(6):\n    s = z[i]\n    if s > 0:\n        s = s - 1\n"
        "        if s > 0:\n            t = s * 2\n        y[i] = t"
    ),
    "an element that its branch changes": (
        "t = 0.0\nfor i in range(6):\n    if z[i] > 0:\n        z[i] -= 1\n        if z[i] > 0:\n"
        "            t = z[i] * 2\n        y[i] = t"
    ),
    "a test that its other side changes": (
        "t = np.ones(12)\nif c[1] > 0:\n    y[0] = 3\nelse:\n    c[1] += 1000\n"
        "    if not c[1] > 0:\n        t[:] = 5.0\n    y[:12] = t"
    ),
    "an array filled under a repeated test": (
        "t = np.ones(12)\nif c[0] > 0:\n    c[0] -= 1000\n    if c[0] > 0:\n        t[:] = 5.0\n"
        "    y[:12] = t"
    ),
    "an element of the last iteration": (
        "t = np.zeros(len(x))\nfor r in range(1, len(x)):\n    t[0] = x[0]\n"
        "    y[r] = t[r - 1] + np.sin(x[r])\n    t[r] = x[r] * 2"
    ),
    "an element of the last iteration, peeled": (
        "t = np.zeros(100)\nfor r in range(1, 100):\n    t[0] = x[0]\n"
        "    y[r] = t[r - 1] * (2.0 if r > 4 else 3.0)\n    t[r] = x[r] + 1"
    ),
    "an element of the last iteration of the outer loop": (
        "t = np.zeros((100, 30))\nfor r in range(1, 100):\n    t[0] = x[0]\n"
        "    for c in range(30):\n        y[r] += t[r - 1, c] * 2.0\n        t[r, c] = x[r] + c"
    ),
    "two arrays, one of which may be the other": (
        "old, new = np.zeros(8), np.zeros(8)\nfor r in range(2, 7):\n    old[1] = x[1]\n"
        "    old[r] = x[r] + 1\n    new[r - 1] = old[r - 1] * 2\n    new[0] = 5\n"
        "    y[r] = new[r - 2]"
    ),
    "a row that data chooses": (
        "t = np.zeros((4, 10))\nfor i in range(1, 10):\n    row = t[k[i]]\n    row[0] = x[i]\n"
        "    y[i] = row[i - 1]\n    row[i] = x[i] + 1"
    ),
    "a part that data chooses": (
        "t = np.zeros((4, 10))\nfor i in range(1, 10):\n    v = t[:, :k[i] + 1]\n    v[0] = x[i]\n"
        "    y[i] = v[min(i, 4) - 1].sum()\n    v[min(i, 3)] = x[i] + 1"
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_read_is_what_was_written_last(name: str, threads: int, backend: str) -> None:
    body = PROGRAMS[name].replace("\n", "\n    ")
    text = f"def f(x, y, z, c, k):\n    {body}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    f = pe.cd_from_source(text, {"np": np}, backend=backend)
    size = 20_000 if name == "an element of the last iteration" else 100
    for c in ([1, -1, 1], [1, 1, -1], [-1, 1, 1], [1, -1, -1]):
        given = [
            np.linspace(1, 2, size), np.zeros(size), np.array([3, 0.5, 2, 0.25, 5, 1]),
            np.array(c, float), np.array([0, 1, 2, 1, 1, 2, 3, 0, 2, 1]),
        ]  # fmt: skip
        expected = [part.copy() for part in given]
        with pe.override(threads=threads):
            results = f(*given), scope["f"](*expected)
        if results[1] is not None:
            np.testing.assert_array_equal(*results)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
