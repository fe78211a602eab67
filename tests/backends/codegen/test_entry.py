"""The way in: arguments from the block, the arena before the call of the body, and after it."""

from __future__ import annotations

import pytest

from plusequals.backends.codegen.entry import LARGE_ARENA, entry_point
from plusequals.backends.codegen.frame import Frame
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node

from .programs import assign, frame_for, node, number, over, symbols

MODES = [
    "if (has_other_modes()) {",
    "    int ended;",
    "    if (in_default_modes(pe_f, args, &ended)) return ended;",
    "}",
]
n, one = *symbols("n"), (const(0),)


def storing(*nodes: Node) -> Frame:
    """A function that has nothing but these arrays, and stores a number in each."""
    stores = [assign("...", one, (const(3),), number(1), over()) for one in nodes]
    return frame_for([], stores, list(nodes))


def test_arguments_come_from_the_block_and_scalars_by_value() -> None:
    x, y, s = node(0, "x", (8,)), node(1, "y", (8,)), node(2, "s", ())
    head, body = entry_point(
        frame_for([(x, False), (y, True), (s, False)], []), "pe_f", True, False
    )
    assert head == "int pe_f(void **args)"
    called = "return f_body(args[0], args[1], *(const float *)args[2], args[3]);"
    assert list(body) == [*MODES, called]


@pytest.mark.parametrize("prints", [False, True])
def test_the_arena_is_made_and_freed_around_the_body_unless_it_is_lent(prints: bool) -> None:
    _, body = entry_point(storing(node(1, "b", (5000,))), "pe_f", False, prints, True)
    lent, unless, shown = ("", "", "args[1], ") if prints else (
        "args[1] ? args[1] : ", "if (!args[1]) ", ""
    )  # fmt: skip
    assert list(body) == [
        *MODES,
        f"char *const arena = {lent}aligned(20032);",
        "if (!arena) {",
        "    ((int64_t *)args[0])[0] = 20032;",
        "    return 2;",
        "}",
        "float *const b = (float *)(arena + 0);",
        f"const int status = f_body(b, {shown}args[3]);",
        f"{unless}free(arena);",
        "return status;",
    ]


@pytest.mark.parametrize("asks", [False, True])
def test_a_large_arena_is_lent_where_there_is_a_library(asks: bool) -> None:
    _, body = entry_point(storing(node(1, "b", (LARGE_ARENA // 4,))), "pe_f", False, False, asks)
    text = list(body)[len(MODES) :]
    lent = [
        "const shared_run *const pe_lib = args[3];",
        f"char *const arena = args[1] ? args[1] : pe_lib->lend({LARGE_ARENA});",
    ]
    made = f"char *const arena = args[1] ? args[1] : spacious({LARGE_ARENA});"
    assert text[:2] == lent if asks else text[0] == made
    release = "pe_lib->give_back(arena);" if asks else "free(arena);"
    assert text[-2] == f"if (!args[1]) {release}"
