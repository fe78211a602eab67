"""Every program that was ever wrong, on every check."""

from __future__ import annotations

import pytest

from .findings import finding_of, stored
from .model import Program

CASES = [
    pytest.param(
        program, id=name, marks=pytest.mark.xfail(bool(why), reason=why or "", strict=bool(why))
    )
    for name, (program, why) in stored().items()
]


@pytest.mark.parametrize("program", CASES)
def test_found(program: Program) -> None:
    assert finding_of(program) is None
