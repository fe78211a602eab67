"""Places as sentences, and looked up by node."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.node import Node
from plusequals.lowering.passes.buffer_sharing import MemoryPlan
from plusequals.lowering.placement import Placement, StorageDecision


def test_a_place_says_why_and_how_much_room_it_takes() -> None:
    returned = StorageDecision("result", "it is handed to the caller")
    assert str(returned) == "it is handed to the caller"
    kept = StorageDecision("scratch", "its rows are read twice", "64 bytes, those of `t`")
    assert str(kept) == "its rows are read twice; 64 bytes, those of `t`"


def test_a_node_is_found_by_its_number() -> None:
    one, other = (Node(number, "t", (const(4),), dtypes.float32) for number in (3, 4))
    placement = Placement({3: StorageDecision("virtual", "it is read once")})
    assert placement[one].where == "virtual"
    assert not placement.decisions and not placement.modes
    assert placement.memory == MemoryPlan((), (), (), ())
    with pytest.raises(KeyError):
        placement[other]
