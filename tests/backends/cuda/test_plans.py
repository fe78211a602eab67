"""Plans on devices that do everything late: what is right there is right in any order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME
from tests.backends.runtime.plan.random_plans import Sides, functions

from .faulty import FaultyDriver
from .on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx


@pytest.fixture
def driver() -> Iterator[FaultyDriver]:
    found = FaultyDriver()
    found.devices = 2
    with installed(backend(found)):
        yield found
        for device in list(RUNTIME.devices.values()):
            device.synchronize()


def test_random_plans(driver: FaultyDriver) -> None:
    made = functions()
    for seed in range(30):
        Sides(seed, "cuda", made=made).check()


def test_a_plan_of_functions(driver: FaultyDriver) -> None:
    step = pe.cd_from_source("def step(p, q):\n    q[i] = p[i] * 2 + 1\n").on("cuda")
    p, q, r = (pe.tensor(name, 3, dtype="float64", init=1.0) for name in "pqr")
    with pe.plan() as plan:
        with plan.while_(lambda n, v: bool(v[0] < 50), reads=[q], carry={p: q}):
            step(p, q)
        step(p, r)
    plan()
    assert [t.numpy()[0] for t in (p, q, r)] == [1, 63, 3]
