"""`any` and `all` of a generator evaluate the items that Python evaluates, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Block, For, While
from tests.language.ask import compiled, plain, refused

from ..scenes import found, typed

G = "def g(k):\n    x[k] += 1\n    return x[k] > 1\n"
H = "def h(v):\n    assert v >= 0, f'{v}'\n    return v > 1\n"
BODIES = {
    "out of range behind the first": "return any(x[k] > 0 for k in range(5))",
    "of neighbours": "return all(x[k] == x[k + 1] for k in range(len(x)))",
    "to a run-time end": "return any(x[k] > 2 for k in range(n)), all(x[k] < 2 for k in range(n))",
    "under a test": "return any(x[k] > 2 for k in range(n) if x[k] != 1)",
    "of static items": "return any(x[k] > 1 for k in (2, 1, 0))",
    "of two loops": "return any(x[j + k] > 2 for j in range(3) for k in range(3))",
    "at positions that are read": "return all(x[abs(int(v))] < 2 for v in x)",
    "no items": "return any(x[n] > 0 for k in range(n - 5)), all(x[n] > 0 for k in range(n - 5))",
    "writes": f"{G}return any(g(k) for k in range(3)), all(g(k) for k in range(3))",
    "asserts": f"{H}return any(h(v) for v in x)",
    "a target of the name of another": (
        "r = any(x[n] > 1 for n in range(n - 2, n))\nreturn r, n, any(x > 2 for x in x[: n - 1])"
    ),
    "in a test": "if any(x[k] > 0 for k in range(5)):\n    return 1\nreturn 2",
    "in a loop": ("s = 0\nwhile not any(x[s + k] > 1 for k in range(3)):\n    s += 1\nreturn s"),
    "in a list": "return [any(x[k + j] > 0 for j in range(3)) for k in range(2)]",
    "in a list of many": (
        "return [k for k in [any(x[min(k, 2) + j] > 0 for j in range(3)) for k in range(90)]]"
    ),
    "in another": "return any(all(x[j + k] > 1 for j in range(4)) for k in range(2))",
    "only where it is reached": "return x[0] > 0 or any(x[n + k] > 1 for k in range(2))",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_decides_ends_it(body: str, backend: str) -> None:
    f = compiled("x, n", body).on(backend)
    for values, n in (
        ((1, 2, 3), 3), ((0, 1, 2), 3), ((0, 0, 0), 3), ((3, -1, 0), 5), ((0, -1, 5), 9),
        ((2, 2, 1), 2),
    ):  # fmt: skip
        outcomes = []
        for call in (f, lambda *args: plain("x, n", body, *args)):
            x = np.array(values, float)
            try:
                outcome: object = call(x, n)
            except (IndexError, AssertionError) as problem:
                outcome = "IndexError" if isinstance(problem, IndexError) else "AssertionError"
            outcomes.append((outcome, x.tolist()))
        assert outcomes[0] == outcomes[1]
        assert type(outcomes[0][0]) is type(outcomes[1][0])


def test_prints_stop_where_python_does(capfd: pytest.CaptureFixture[str]) -> None:
    body = "def g(k):\n    print(k)\n    return k < 2\nreturn all(g(k) for k in range(5))"
    compiled("x", body).on("numpy")(np.ones(2))
    assert capfd.readouterr().out == "0\n1\n2\n"


@pytest.mark.parametrize("body", ["return any(v > 1 for v in x)", "return all([v > 1 for v in x])"])
def test_items_that_only_compute_are_no_loop(body: str) -> None:
    procedure = typed("x", body, np.arange(90.0)).procedure
    assert not found(procedure, For) and not found(procedure, While) and not found(procedure, Block)


def test_an_iterable_with_a_scope_of_its_own_is_refused() -> None:
    body = "return any(y[k] > 0 for k in [k + 3 for k in range(k)])"
    says = ("stops at the first item that decides",)
    found_error = refused("y, k", body, np.ones(9), 3, says=says, offers=("loop with `break`",))
    assert isinstance(found_error, CdError) and found_error.code == "CD0437"


class Counter:
    """Counts the items that were asked."""

    def __init__(self) -> None:
        self.asked, self.last = 0, -1.0

    def above(self, v: float, least: float) -> bool:
        self.asked += 1
        self.last = v
        return v > least


@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0), (3.0, 0.0, 5.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("body", [
    "return any(c.above(v, 1) for v in x), c.asked",
    "return all(c.above(v, 1) for v in x), c.asked",
    "return any(c.above(v, 1) for v in x if v != 2), all(c.above(w, 0) for w in x), c.last",
])  # fmt: skip
def test_what_sets_attributes_stops_where_python_does(
    body: str, values: tuple[float, ...], backend: str
) -> None:
    f, mine, given = compiled("x, c", body).on(backend), Counter(), Counter()
    x = np.array(values)
    assert f(x, mine) == plain("x, c", body, x, given)
    assert vars(mine) == vars(given)
