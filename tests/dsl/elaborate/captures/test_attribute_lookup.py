"""Attributes of Python objects: what is there, and what is said of what is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plusequals.base.diagnostic import NOWHERE, CdError
from plusequals.dsl.elaborate.captures.attribute_lookup import get_attribute, has_in_python
from plusequals.dsl.values.values import Static


class Raises:
    """A class of the user whose property raises."""

    rate = 0.5

    @property
    def late(self) -> float:
        raise LookupError("not yet")


def test_an_attribute_is_what_python_gives() -> None:
    assert get_attribute(math, "pi", NOWHERE) is math.pi
    assert get_attribute(Raises(), "rate", NOWHERE) == 0.5


@pytest.mark.parametrize(
    ("owner", "name", "text"),
    [
        (math, "pie", "did you mean `pi`"),
        (math, "xyzzy", "import what has it"),
        (Raises(), "late", "raises LookupError: not yet"),
        (Raises(), "rat", "did you mean `rate`"),
    ],
)
def test_one_that_is_not_there_is_refused(owner: object, name: str, text: str) -> None:
    with pytest.raises(CdError, match=f"CD0414(.|\n)*{text}"):
        get_attribute(owner, name, NOWHERE)


def test_what_python_has_is_known() -> None:
    assert has_in_python(Static(np.float32(1)), "hex") == hasattr(np.float32(1), "hex")
    assert has_in_python(Static("a"), "upper") and not has_in_python(Static("a"), "uper")
