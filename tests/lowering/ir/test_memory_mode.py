"""Every transition of the lattice against the table, and what a refusal says."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from plusequals.base.diagnostic import CdTypeError, Source, Span
from plusequals.lowering.ir import dtypes, memory_mode
from plusequals.lowering.ir.memory_mode import Decision, Kind, Mode, Request, Sharing
from plusequals.lowering.ir.node import Node

MODES = {
    "EC": Mode("effectively constant"), "V": Mode("virtual"), "NV": Mode("never virtual"),
    "L": Mode("local"), "DO": Mode("device only"),
    "OD": Mode("on device"), "ODp": Mode("on device", "per stream"),
    "ODs": Mode("on device", "shared across streams"), "M": Mode("materialized"),
    "HC": Mode("hosted constant"), "HN": Mode("hosted nonconstant"),
    "HX": Mode("hosted changed on devices"),
    "HXp": Mode("hosted changed on devices", "per stream"),
    "HXs": Mode("hosted changed on devices", "shared across streams"),
    "HV": Mode("hosted volatile"),
}  # fmt: skip

# Rows are what it is, columns what is asked for; `=` no change, `!` refused, else what it becomes.
TABLE = """
     EC  V   NV  L   DO  OD  ODp ODs M   HC  HN  HX  HXp HXs HV
EC   =   V   HC  !   !   !   !   !   HC  HC  !   !   !   !   !
V    =   =   !   !   !   !   !   !   !   !   !   !   !   !   !
NV   HC  !   =   L   DO  OD  ODp ODs M   HC  HN  HX  HXp HXs HV
L    !   !   =   =   =   !   !   !   !   !   !   !   !   !   !
DO   !   !   =   L   =   OD  ODp ODs OD  !   !   !   !   !   !
OD   !   !   =   !   =   =   !   !   =   !   !   !   !   !   !
ODp  !   !   =   !   =   !   =   !   =   !   !   !   !   !   !
ODs  !   !   =   !   =   !   !   =   =   !   !   !   !   !   !
M    HC  !   =   !   OD  OD  ODp ODs =   HC  HN  HX  HXp HXs HV
HC   =   !   =   !   !   !   !   !   =   =   !   !   !   !   !
HN   !   !   =   !   !   !   !   !   =   !   =   HX  HXp HXs HV
HX   !   !   =   !   !   !   !   !   =   !   =   =   !   !   !
HXp  !   !   =   !   !   !   !   !   =   !   =   !   =   !   !
HXs  !   !   =   !   !   !   !   !   =   !   =   !   !   =   !
HV   !   !   =   !   !   !   !   !   =   !   =   !   !   !   =
"""

# The same for sharing: unset, per stream, shared across streams; and the default.
SHARING = """
     unset p   s    default
EC   !   !   !    V
V    !   !   !    V
NV   !   !   !    L
L    !   !   !    L
DO   OD  ODp ODs  L
OD   =   ODp ODs  OD
ODp  !   =   !    ODp
ODs  !   !   =    ODs
M    OD  ODp ODs  OD
HC   !   !   =    HC
HN   HX  HXp HXs  HN
HX   =   HXp HXs  HX
HXp  !   =   !    HXp
HXs  !   !   =    HXs
HV   !   !   =    HV
"""


def _cells(table: str) -> list[tuple[str, str, str]]:
    head, *rows = table.strip().splitlines()
    columns = head.split()
    return [
        (row.split()[0], column, cell)
        for row in rows
        for column, cell in zip(columns, row.split()[1:], strict=True)
    ]


def _made(mode: Mode) -> Decision:
    return memory_mode.join(None, Request(mode, "it was asked for first"))


def test_the_table_has_every_pair_and_every_mode() -> None:
    pairs = {(row, column) for row, column, _ in _cells(TABLE)}
    assert pairs == set(product(MODES, repeat=2))
    assert {mode.kind for mode in MODES.values()} == set(get_args(Kind))
    assert {mode.sharing for mode in MODES.values()} == set(get_args(Sharing))


@pytest.mark.parametrize("row,column,cell", _cells(TABLE))
def test_requests_follow_the_table(row: str, column: str, cell: str) -> None:
    current, request = _made(MODES[row]), Request(MODES[column], "it was asked for then")
    if cell == "!":
        with pytest.raises(CdTypeError) as caught:
            memory_mode.join(current, request)
        assert caught.value.code == "CD0571"
        assert "asked for first" in str(caught.value) and "asked for then" in str(caught.value)
    else:
        after = memory_mode.join(current, request)
        assert after.mode == (MODES[row] if cell == "=" else MODES[cell])
        assert (after is current) == (cell == "=")
    assert current == _made(MODES[row]), "a decision never changes in place"


@pytest.mark.parametrize("row,column,cell", _cells(SHARING))
def test_sharing_and_defaults_follow_the_table(row: str, column: str, cell: str) -> None:
    current = _made(MODES[row])
    if column == "default":
        assert memory_mode.most_local(MODES[row]) == MODES[cell]
        return
    names: dict[str, Sharing] = {"unset": "unset", "p": "per stream", "s": "shared across streams"}
    if cell == "!":
        with pytest.raises(CdTypeError, match="CD0571"):
            memory_mode.share(current, names[column], "two streams use it")
    else:
        after = memory_mode.share(current, names[column], "two streams use it")
        assert after.mode == (MODES[row] if cell == "=" else MODES[cell])


def test_a_first_request_is_taken_as_it_is() -> None:
    for mode in MODES.values():
        assert _made(mode).mode == mode
    first = memory_mode.share(None, "per stream", "each stream has its own")
    assert first.mode == Mode("on device", "per stream")
    assert memory_mode.most_local(None) == memory_mode.VIRTUAL
    free = [name for name, mode in MODES.items() if memory_mode.admits_virtual(mode)]
    assert free == ["EC", "V"] and memory_mode.admits_virtual(None)


def test_a_refusal_shows_both_places_and_both_reasons() -> None:
    text = "a = virtual(x)\nb = hosted(x)"
    source = Source("train.py", 7, text)
    one = Request(memory_mode.VIRTUAL, "the user wants no array", Span(source, 7, 4, 7, 14))
    two = Request(memory_mode.HOSTED_VOLATILE, "it is read back", Span(source, 8, 4, 8, 13))
    with pytest.raises(CdTypeError) as caught:
        memory_mode.join(memory_mode.join(None, one), two, "`x`")
    assert str(caught.value) == (
        "error[CD0571]: `x` is virtual and cannot become hosted volatile: "
        "these exclude each other\n"
        " --> train.py:8:5\n"
        "7 | a = virtual(x)\n"
        "  |     ---------- made it virtual\n"
        "8 | b = hosted(x)\n"
        "  |     ^^^^^^^^^ asks for hosted volatile\n"
        "  = note: it is virtual: the user wants no array\n"
        "  = note: then hosted volatile was asked for: it is read back\n"
        "  = help: drop one of the two requests, or use another array for one of them"
    )


def test_a_second_request_on_devices_is_refused_with_a_sentence() -> None:
    first = memory_mode.join(None, Request(Mode("on device"), "first"))
    with pytest.raises(CdTypeError, match="how streams share it is part of that"):
        memory_mode.join(first, Request(Mode("on device", "per stream"), "then"))


def test_reasons_pile_up_and_printing_decides_nothing() -> None:
    first = memory_mode.join(None, Request(memory_mode.NEVER_VIRTUAL, "it is read twice"))
    then = memory_mode.join(first, Request(memory_mode.LOCAL, "one routine uses it"))
    assert then.why == "one routine uses it; before that, it is read twice"
    before = (first, then)
    texts = [str(first.mode), repr(first), first.why, str(memory_mode.most_local(first.mode))]
    assert texts[0] == "never virtual" and texts[3] == "local"
    assert (first, then) == before and first.mode == memory_mode.NEVER_VIRTUAL


def test_a_request_on_a_node_is_not_part_of_what_it_is() -> None:
    asked = _made(memory_mode.MATERIALIZED)
    plain, wished = (Node(3, "x", (), dtypes.float32, request=r) for r in (None, asked))
    assert plain == wished and hash(plain) == hash(wished) and repr(plain) == repr(wished)
    assert wished.request is asked and plain.request is None
