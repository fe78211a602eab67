"""Functions of many short strided loops: compiled without vectors, and with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.quirks.crowded_functions import MAX_LOOPS, MAX_TRIP_COUNT


def made(loops: int) -> str:
    """Return a function of so many loops over a column each, which nothing fuses."""
    lines = "".join(
        f"    p[:, {n % 8}] += np.where(u[:, {n}] < s[{n % 8}], 3, 1).astype(np.int16)\n"
        f"    s[{n % 8}] = s[{n % 8}] + 0.25\n"
        for n in range(loops)
    )
    return f"def f(u, s, p):\n{lines}"


@pytest.mark.parametrize("rows", [37, MAX_TRIP_COUNT + 1])
@pytest.mark.parametrize("loops", [MAX_LOOPS // 2, MAX_LOOPS + 6])
def test_only_many_short_strided_loops_stay_scalar(loops: int, rows: int) -> None:
    text, names = made(loops), {"np": np}
    u = np.random.default_rng(loops).random((rows, MAX_LOOPS + 6))
    found, expected = ([u, np.linspace(0, 1, 8), np.zeros((rows, 8), np.int16)] for _ in range(2))
    f = pe.cd_from_source(text, names)
    plain: dict[str, object] = dict(names)
    exec(text, plain)
    assert ("compiler_barrier();" in f.explain(*found).code) is (
        loops > MAX_LOOPS and rows <= MAX_TRIP_COUNT
    )
    f(*found)
    plain["f"](*expected)  # type: ignore[operator]  # it is the function
    np.testing.assert_array_equal(found[2], expected[2])
