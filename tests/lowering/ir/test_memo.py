"""What is kept with a statement is no part of it."""

from __future__ import annotations

import copy
from dataclasses import replace

from plusequals.lowering.ir.loops import Comment
from plusequals.lowering.ir.memo import memoize


def test_what_is_kept_is_no_part_of_the_value() -> None:
    one, other = Comment("text"), Comment("text")
    assert memoize(one, "direct_effects", "found") == "found" and one.direct_effects == "found"
    assert not hasattr(other, "direct_effects")
    assert one == other and hash(one) == hash(other) and repr(one) == repr(other)


def test_copies_start_without_it() -> None:
    one = Comment("text")
    memoize(one, "summary", "found")
    made = (replace(one), replace(one, text="other"), copy.copy(one), copy.deepcopy(one))
    for new in made:
        assert not hasattr(new, "summary")
