"""What is the host's, and what is large enough to be."""

from __future__ import annotations

import pytest

from plusequals.lowering.gpu.host_code import has_many_iterations, is_host_only
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.loops import For

from .kernels import Case


@pytest.mark.parametrize(("n", "large"), [(64, False), (65, True)])
def test_what_is_large(n: int, large: bool) -> None:
    case = Case("y[:] = x.T + y", y=f"f32[{n}, 64]", x=f"f32[64, {n}]")
    assert has_many_iterations(case.loop(), Bounds({})) is large


@pytest.mark.parametrize(("n", "large"), [(65, False), (66, True)])
def test_what_is_large_at_most(n: int, large: bool) -> None:
    text = f"for t in range({n}):\n    for i in range(t):\n        y[i, :64] = t"
    loop = Case(text, y="f32[99, 99]").loop()
    (inner,) = [stmt for stmt in loop.body if isinstance(stmt, For)]
    assert has_many_iterations(inner, Bounds({}).inside(loop)) is large
    assert has_many_iterations(inner, Bounds({})), "nothing is known of the loop around"


def test_what_is_the_hosts() -> None:
    assert is_host_only(Case("for t in range(3):\n    print(y[t])", y="f32[8]").loop())
    assert not is_host_only(Case("for t in range(3):\n    y[t] = 1", y="f32[8]").loop())
