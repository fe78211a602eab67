"""What is the host's, and what is large enough to be."""

from __future__ import annotations

import pytest

from plusequals.lowering.schedule.hosts import is_hosts, is_large

from .kernels import Case


@pytest.mark.parametrize(("n", "large"), [(64, False), (65, True)])
def test_what_is_large(n: int, large: bool) -> None:
    case = Case("y[:] = x.T + y", y=f"f32[{n}, 64]", x=f"f32[64, {n}]")
    assert is_large(case.loop()) is large


def test_what_is_the_hosts() -> None:
    assert is_hosts(Case("for t in range(3):\n    print(y[t])", y="f32[8]").loop())
    assert not is_hosts(Case("for t in range(3):\n    y[t] = 1", y="f32[8]").loop())
