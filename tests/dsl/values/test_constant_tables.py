"""Constant tables: many constants are data, with the results and types that Python gives."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

TABLE = [(k * 167 + 13) % 256 for k in range(256)]
WEIGHTS = tuple(range(1500))
FLOATS = [0.5 * k for k in range(200)]
NESTED = [[i * j for j in range(16)] for i in range(16)]
PAIRS = [(k, k * 0.5) for k in range(100)]
NEGATIVE = [-3, -2, -1, 0, 1, 2] * 20
MIXED = [1, 2.5] * 60
DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
RATES = (0.5, 0.25, -0.0)
POINTS = [(0, 1.5), (2, 3.5), (-4, 0.5)]
SQUARE = [[k * m for m in range(4)] for k in range(4)]
LARGE = [2**40 + k for k in range(100)]


def written(x: Any, k: Any) -> Any:
    t = np.array(TABLE)
    u = np.array(TABLE)
    t[0] = 5
    return t[k] + x, t.dtype == np.int64, t[0], u[0]


def of_types(x: Any, k: Any) -> Any:
    m = np.array(NESTED)
    return (
        m @ np.ones(16), np.array(FLOATS, np.float32), np.array(MIXED), np.array(LARGE),
        x[:, None] * np.array([w * 2 for w in WEIGHTS[:80]]), np.asarray(WEIGHTS).sum(),
    )  # fmt: skip


def weighted(x: Any, k: Any) -> Any:
    s = 0.0
    for w in WEIGHTS:
        s += x[w % 3] * w
    return s, w


def many_ways(x: Any, k: Any) -> Any:
    s = 0.0
    for i, w in enumerate(FLOATS):
        s += x[i % 3] * w
    for v, w in zip(FLOATS, WEIGHTS, strict=False):
        s += v * w - x[0]
    for v, w in PAIRS:
        s = s * 0.99 + x[v % 3] * w
    for v in NEGATIVE:
        s += x[v]
    for i, v in enumerate(reversed(FLOATS)):
        s = s / 2 + v * i
    for v in MIXED:
        s += v
    return s, v


def known_afterwards(x: Any, k: Any) -> Any:
    n = 0
    for w in NEGATIVE:
        n = n * 2 % 7 + w
        y = np.zeros(abs(w)) + x[0]
    return n, y


def at_positions(x: Any, k: Any) -> Any:
    s = 0
    for j in range(100):
        s += WEIGHTS[j] * TABLE[j * 2]
    for j in range(-3, 3):
        s += WEIGHTS[j]
    return s, FLOATS[k], TABLE[int(x[2])]


def at_positions_of_few(x: Any, k: Any) -> Any:
    s, m, d = 0, 0, int(x[2]) + 200
    while d > DAYS[m]:
        d -= DAYS[m]
        m += 1
    for v in (x - 1).astype(int):
        a, b = POINTS[v]
        s += a * b + SQUARE[v][k - 3] + SQUARE[k - 3][v]
    for j in range(1, int(x[2])):  # so many iterations as only the run knows
        s += DAYS[j - 1] * POINTS[j][0]
        for n in range(j):
            s += DAYS[n]
    s += sum(DAYS[j] for j in range(int(x[2]))) + max([RATES[j % 3] for j in range(k - 2)])
    return (
        s,
        m,
        d,
        DAYS[int(x[1])],
        RATES[int(x[0])],
        (2.5, 1.5, 0.5)[int(x[1])],
        x * DAYS[int(x[0])],
    )


FUNCTIONS = (
    written, of_types, weighted, many_ways, known_afterwards, at_positions, at_positions_of_few
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tables_give_what_python_gives(function: Callable[..., Any], backend: str) -> None:
    x = np.array([1.0, 2.0, 3.0])
    f = cd(function, backend=backend)
    for k in (3, 4, 5, 6):
        for got, wanted in zip(f(x, k), function(x, k), strict=True):
            assert type(got) is type(wanted)
            assert getattr(got, "dtype", None) == getattr(wanted, "dtype", None)
            np.testing.assert_array_equal(got, wanted)


def test_a_position_outside_of_a_few_numbers_is_an_error(backend: str) -> None:
    f = pe.cd_from_source("lambda x: DAYS[x[0]]", {"DAYS": DAYS}, backend=backend)
    for at in (-1, 12):
        with pytest.raises(IndexError, match=f"index {at} is out of range for axis 0 of `DAYS`"):
            f(np.array([at]))
    text = "lambda x: (DAYS[clamp(x[0])], DAYS[pad(x[0])], DAYS[wrap(x[0])])"
    g = pe.cd_from_source(text, {"DAYS": DAYS}, backend=backend)
    assert [g(np.array([at])) for at in (-1, 1, 13)] == [(31, 0, 31), (28, 28, 28), (31, 0, 28)]


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("[1, 2.5][x[0]]", "make an array of the numbers: `np.array([1, 2.5])[x[0]]`"),
        ("DAYS[: x[0]]", "make an array of the numbers: `np.array(DAYS)[: x[0]]`"),
        ("(x[0], x[1])[x[0]]", "make an array of the numbers: `np.array((x[0], x[1]))[x[0]]`"),
        ("(x, -x)[x[0]]", "test the position, and use each item in a branch: `if k == 0: ...`"),
        ("DAYS[x[0] / 2]", "convert it to an integer: `int(x[0] / 2)`"),
        ("'abc'[x[0]]", "use a number or a text written in the source"),
    ],
)
def test_the_way_out_of_a_position_that_only_the_run_knows(text: str, help: str) -> None:
    names = {"DAYS": DAYS, "np": np}
    with pytest.raises(TypeError) as raised:
        pe.cd_from_source(f"lambda x: {text}", names)(np.array([1, 2]))
    problem = raised.value
    assert isinstance(problem, pe.CdError)
    assert (problem.code, problem.diagnostics[0].helps) == ("CD0413", (help,))
    if help.startswith("make an array"):
        told = help.split("`")[1]
        expected = eval(told, names, {"x": np.array([1, 2])})
        got = pe.cd_from_source(f"lambda x: {told}.sum()", names)(np.array([1, 2]))
        assert got == expected.sum()


@pytest.mark.parametrize("items", [70, 3000])
def test_statements_do_not_grow_with_the_table(items: int) -> None:
    text = textwrap.dedent(inspect.getsource(weighted))
    f = pe.cd_from_source(text, {"np": np, "WEIGHTS": tuple(range(items))}, backend="numpy")
    made = f.explain(np.ones(3), 1)
    assert str(made.assignments).count("\n") < 30


def test_a_changed_table_is_another_one() -> None:
    table = [1.0] * 100
    text = "def f(x):\n    s = x[0]\n    for w in T:\n        s += w\n    return s\n"
    f = pe.cd_from_source(text, {"T": table}, backend="numpy")
    assert f(np.zeros(1)) == 100.0
    table[5] = 11.0
    assert f(np.zeros(1)) == 110.0


def test_a_table_is_traced_and_compared() -> None:
    text = textwrap.dedent(inspect.getsource(weighted))
    f = pe.cd_from_source(text, {"WEIGHTS": tuple(range(100))})
    with pe.trace() as t:
        f(np.ones(3), 1)
    assert "table[99]" in str(t)
    assert pe.compare(f, (np.ones(3), 1)).difference is None


def test_the_next_process_finds_the_table_on_disk(tmp_path: Path) -> None:
    text = """
        from plusequals import cd
        import numpy as np
        W = tuple(0.5 * k for k in range(100))

        @cd
        def f(x):
            s = x[0]
            for w in W:
                s += w
            return s

        compiled = "plusequals.dsl.specialize.specialization"
        print(f(np.zeros(1)), compiled in __import__("sys").modules)
    """
    (tmp_path / "tabled.py").write_text(textwrap.dedent(text))
    here = os.environ | {"PLUSEQUALS_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "tabled.py")], env=here, text=True, check=True,
            capture_output=True,
        )  # fmt: skip
        assert done.stdout.split()[0] == "2475.0"
    assert done.stdout.split()[1] == "False"
