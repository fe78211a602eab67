"""Every program that was ever wrong, on every check."""

from __future__ import annotations

import pytest

from .findings import finding_of, stored
from .model import Program
from .ways import Ways

CASES = [
    pytest.param(
        program,
        ways,
        id=name,
        marks=pytest.mark.xfail(bool(why), reason=why or "", strict=bool(why)),
    )
    for name, (program, ways, why) in stored().items()
]


@pytest.mark.parametrize(("program", "ways"), CASES)
def test_found(program: Program, ways: Ways) -> None:
    assert finding_of(program, ways) is None
