"""Branches: decided while compiling, or both sides with names that meet in one place."""

from __future__ import annotations

import re

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Assign, Branch
from tests.compare import assert_same, run_on
from tests.language.ask import compiled, plain, refused, run

from .scenes import found, typed

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -6.0]])
BRANCHES = {
    "numbers meet in the wider type": "if t > 0:\n    y = 1\nelse:\n    y = 2.5\nreturn y",
    "arrays meet": "if t > 0:\n    y = x * 2.0\nelse:\n    y = x - 1.0\nreturn y",
    "groups meet": "if t > 0:\n    y = (1, x[0, 0])\nelse:\n    y = (2, 0.5)\nreturn y[0], y[1]",
    "before and after": "y = 1.0\nif t > 0:\n    y = y + 1.0\nreturn y * 2.0",
    "a tail return": "if t > 0:\n    return x[0, 0]\nreturn x[1, 1]",
    "returns on both sides": "if t > 0:\n    return x * 1.0\nelse:\n    return x * 2.0",
    "a chain": (
        "if t > 2:\n    y = 1.0\nelif t > 0:\n    y = 2.0\nelif t > -2:\n    y = 3.0\nelse:\n"
        "    y = 4.0\nreturn y"
    ),
    "in place": "if t > 0:\n    x[0] = 0.0\nelse:\n    x[1] += 1.0\nreturn x",
    "a raise on one side": "if t > 99:\n    raise ValueError('no')\nelse:\n    y = 1.0\nreturn y",
    "a branch on an element": (
        "if x[0, 1] < t and x[0, 0] > 0:\n    y = 1\nelse:\n    y = 0\nreturn y"
    ),
    "unused sides": "if t > 0:\n    z = 1.0\nelse:\n    w = 2.0\nreturn x[0, 0]",
}


@pytest.mark.parametrize("t", [3.0, 1.0, -1.0, -3.0])
@pytest.mark.parametrize("body", BRANCHES.values(), ids=BRANCHES)
def test_branches_do_what_python_does(body: str, t: float) -> None:
    mine, pythons = X.copy(), X.copy()
    got, expected = run("numpy", "x, t", body, mine, t), plain("x, t", body, pythons, t)
    assert np.all(np.asarray(got, float) == np.asarray(expected, float))
    assert_same(mine, pythons)


@pytest.mark.parametrize(
    "body",
    [
        "if t > 0:\n    y = 0.0\nelse:\n    y = -0.0\nreturn np.copysign(x, y)",
        "if t > 0:\n    y = x * 0.0\nelse:\n    y = x * -0.0\nreturn y",
        "y = 0.0\nfor k in range(2):\n    y = -0.0\nreturn np.copysign(x, y)",
        "y = 0.0\nwhile y < t and x[0, 0] > 0:\n    y = -0.0\n    t -= 9\nreturn np.copysign(x, y)",
        "def g(u):\n    return 0.0 if u > 0 else -0.0\nreturn np.copysign(x, g(t))",
        "if t > 0:\n    y = 1\nelse:\n    y = 1.0\nreturn y / 2",
    ],
)
@pytest.mark.parametrize("t", [1.0, -1.0])
def test_what_python_calls_equal_may_be_two_values(body: str, t: float, backend: str) -> None:
    got = run(backend, "x, t", body, X.copy(), t)
    assert_same(got, plain("x, t", body, X.copy(), t))


def test_numbers_of_two_types_meet_in_their_join() -> None:
    body = "if t > 0:\n    y = n\nelse:\n    y = x[0, 0]\nreturn y"
    got = run("numpy", "x, t, n", body, X.astype("f4"), 1.0, np.int32(3))
    assert (got, np.asarray(got).dtype) == (3.0, np.dtype("f8"))


def test_what_is_known_decides_and_leaves_no_branch() -> None:
    for test in ("x.ndim == 2", "flag", "len(x) > 1", "mode == 'a'", "not 0"):
        body = f"if {test}:\n    y = x[0, 0]\nelse:\n    y = nothing.at.all\nreturn y"
        form = typed("x, flag, mode", body, X, True, "a")
        assert not found(form.procedure, Branch), test


def test_names_that_agree_need_no_place_of_their_own() -> None:
    body = "y = x[0]\nif t > 0:\n    x[1] = y\nelse:\n    x[1] = -y\nreturn y"
    (both,) = found(typed("x, t", body, X, 1.0).procedure, Branch)
    assert [len(both.then), len(both.orelse)] == [1, 1]


def test_a_branch_at_each_point_becomes_a_selection() -> None:
    body = "def g(v):\n    if v > 0:\n        w = v\n    else:\n        w = 2.0 * v\n    return w\n"
    body += "y[i, j] = g(x[i, j])\nreturn y"
    form = typed("x", body, X)
    assert not found(form.procedure, Branch) and len(found(form.procedure, Assign)) == 1
    assert_same(run("numpy", "x", body, X), np.where(X > 0, X, 2.0 * X))


GUARDS = {
    "if x[i, j] > 0:\n    x[i, j] = 0.0\nelse:\n    x[i, j] = 1.0": np.where(X > 0, 0.0, 1.0),
    "if i == j:\n    x[i, j] = 9.0": np.where(np.eye(2, 3) > 0, 9.0, X),
    "if i < j:\n    if x[i, j] > 0:\n        x[i, j] = 9.0": [[1, -2, 9], [0.5, 4, -6]],
    "if x[i, 0] > 0.75:\n    x[i, 0] = -1.0\n    x[i, 1] = 5.0": [[-1, 5, 3], [0.5, 4, -6]],
}


@pytest.mark.parametrize(("body", "expected"), GUARDS.items())
def test_a_guard_is_decided_before_its_statements_write(body: str, expected: object) -> None:
    x = X.copy()
    run("numpy", "x", body, x)
    assert_same(x, np.array(expected, float))


EITHER = {
    "a step before": "m = x.max()\nif m > t: x = x / m\nreturn x + 1",
    "made or given": "if t > 0:\n    z = x * 2\nelse:\n    z = x\nreturn z.sum(axis=0)",
    "parts of one": "if t > 0:\n    z = x[:, 1:]\nelse:\n    z = x[:, :-1]\nreturn z - 1",
    "a chain": (
        "if t > 2:\n    z = x\nelif t > 0:\n    z = y * 2\nelif t > -2:\n    z = x + y\nelse:\n"
        "    z = x[:, ::-1]\nreturn z + y"
    ),
    "inside another": (
        "z = y\nif t > 0:\n    if t > 2:\n        z = x + 1\nelse:\n    z = x - 1\n    if t > -2:\n"
        "        z = y[::-1]\nreturn z * 2"
    ),
    "exchanged copies": "u, v = x * 1, y * 1\nif t > 0:\n    u, v = v, u\nreturn u - 2 * v",
    "tuples": "if t > 0:\n    z = x, y\nelse:\n    z = y * 1, y[::-1]\nreturn z[0] - z[1]",
    "views": "if t > 0:\n    z = x[1:, None]\nelse:\n    z = x[:-1, None]\nreturn z + 0",
    "parts of numbers": "c = x + 1j * y\nif t > 0:\n    z = c.imag\nelse:\n    z = x\nreturn z + 1",
    "a view of it": "if t > 0:\n    x = x * 2\nv = x.T[::-1]\nreturn v + 1, x.reshape(-1) - 1",
    "written before": "x[...] = y - 1\nif t > 0:\n    x = x * 2\nreturn x + 1",
    "written inside before": (
        "if t > 0:\n    z = x\n    z[:, 1:] = 7\nelse:\n    z = y + 1\n    z[0:] = 5\nreturn z - 1"
    ),
    "written when nobody looks": (
        "z = y + 1\nif t > 0:\n    w = z\nelse:\n    w = x\ns = w * 2\nz[0:] = 5\nreturn s, z - 1"
    ),
    "each round": (
        "s = 0.0\nfor k in range(3):\n    z = x\n    if t > k:\n        z = y * k\n"
        "    s += z.sum()\nreturn s"
    ),
    "and kept for the next": (
        "s = 0.0\nfor k in range(4):\n    if t < k:\n        x = x / 2\n    s += x.sum()\n"
        "return s, x * 2"
    ),
    "while": "k = 0\nwhile k < 3:\n    k += 1\n    if t > k:\n        x = y * 2\nreturn x + 1",
    "unrolled": "for z in (x, y):\n    if t > 0:\n        z = z * 2\n    y = y + z\nreturn y * 1",
    "rows": (
        "s, n = 0.0, len(x)\nfor k in range(n):\n    r = x[k]\n    if t > k:\n"
        "        r = x[n - 1 - k]\n    s += r.sum()\nreturn s"
    ),
    "in a function": (
        "def g(u):\n    if t > 0:\n        u = u * 2\n    return u + 1\nreturn g(x), g(y), g(x + y)"
    ),
    "given back": "if t > 0:\n    x = x / 2\nreturn x",
    "part of it given back": "if t > 0:\n    x = x / 2\nreturn x[1:], y",
    "letters": "if t > 0:\n    x = x / 2\nreturn np.einsum('ij,ij->i', x, y)",
}  # fmt: skip
"""Names that are one array of the caller, or another that is no array of the caller; read only."""

ONE_OF_TWO = {
    "given on both sides": "if t > 0:\n    z = x\nelse:\n    z = y\n",
    "before and inside": "z = x\nif t > 0:\n    z = y[::-1]\n",
    "exchanged": "z, u = x, y\nif t > 0:\n    z, u = u, z\n",
    "one of two already": "z = x\nif t > 0:\n    z = y + 1\nif t > 1:\n    z = y\n",
    "a chain": "if t > 2:\n    z = x\nelif t > 0:\n    z = y * 2\nelse:\n    z = y\n",
}
"""Names that may view one of two arrays of the caller."""

LAYOUTS = {
    "C": np.array,
    "F": lambda a: np.array(a, order="F"),
    "mirrored": lambda a: np.repeat(a, 2, 1)[:, ::-2],
    "one row": lambda a: np.broadcast_to(a[:1], a.shape),
}
CALLS = [("C", (7, 5), (3.0, 1.0, -1.0, -3.0)), ("C", (0, 3), (1.0, -1.0)), ("F", (4, 3), (1.5,)),
         ("mirrored", (3, 2), (-1.5,)), ("one row", (3, 3), (1.5, -1.5))]  # fmt: skip


@pytest.mark.parametrize("name", EITHER)
def test_what_is_one_of_the_callers_arrays_is_read_as_python_reads_it(
    name: str, backend: str
) -> None:
    body = EITHER[name]
    function = compiled("x, y, t", body)
    for layout, shape, tests in CALLS:
        if layout == "one row" and "written" in name or 0 in shape and ".max()" in body:
            continue
        for t in tests:
            x = LAYOUTS[layout](np.arange(1.0, np.prod(shape) + 1).reshape(shape))
            mine, pythons = (x, np.cos(x) * 3), (x.copy("K"), np.cos(x) * 3)
            got, wanted = run_on(backend, function, *mine, t), plain("x, y, t", body, *pythons, t)
            assert_same(got, wanted, where=f"{layout} {shape} {t}")
            assert_same(mine, pythons)


@pytest.mark.parametrize("use", ["return z + 1", "z[0, 0] = 1\nreturn 0.0", "return z"])
@pytest.mark.parametrize("name", ONE_OF_TWO)
def test_what_may_be_one_of_two_of_the_callers_arrays_is_refused(name: str, use: str) -> None:
    says, body = ("may be one of two arrays",), ONE_OF_TWO[name] + use
    found = refused("x, y, t", body, X.copy(), X * 2, 1.0, says=says, offers=(" = x.copy()`",))
    assert found.code == "CD0202"


def test_what_comes_back_is_an_array_of_its_own() -> None:
    x = X.copy()
    for body in ("if t > 0:\n    x = x * 2\nreturn x", "if t > 0:\n    return x * 2\nreturn x"):
        got = run("numpy", "x, t", body, x, -1.0)
        assert_same(got, x)
        assert not np.shares_memory(got, x)


WRITES = {
    "a cell": "z[0, 0] = 1",
    "all of it": "z[...] = y",
    "an operator": "z += 1",
    "an operator on cells": "z[1:] *= 2",
    "through a view": "v = z.T[0]\nv[:] = 2",
    "by a method": "z.fill(2)",
    "by out=": "np.add(y, 1, out=z)",
    "by a function": "def g(u):\n    u[0] = 5\ng(z)",
    "in letters": "z[i, j] = y[i, j]",
    "in a loop": "for k in range(2):\n    z[k] = k",
    "after a test": "if t > 5:\n    z[0] = 1",
}


@pytest.mark.parametrize("end", ["\nreturn x + z", "\nreturn 0.0"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_afterwards_is_refused(write: str, end: str) -> None:
    for start in (
        "if t > 0:\n    z = x\nelse:\n    z = x * 2\n",
        "if t > 0:\n    z = x * 2\nelse:\n    z = x\n",
    ):
        body = start + write + end
        found = refused("x, y, t", body, X.copy(), X * 2, 1.0, says=("`z`",), offers=(".copy()",))
        assert found.code == "CD0208"
    read = "if t > 0:\n    x = x * 2\n" + write.replace("z", "x") + end.replace("z", "y")
    refused("x, y, t", read, X.copy(), X * 2, 1.0, says=("`x`",), offers=("`x = x.copy()`",))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_copy_is_the_way_out(write: str, backend: str) -> None:
    if "[i, j]" not in write:
        for start in (
            "if t > 0:\n    z = x.copy()\nelse:\n    z = x * 2\n",
            "z = x.copy()\nif t > 0:\n    z = z * 2\n",
        ):
            body = start + write + "\nreturn x + z"
            for t in (1.0, -1.0):
                got = run(backend, "x, y, t", body, X.copy(), X * 2, t)
                assert_same(got, plain("x, y, t", body, X.copy(), X * 2, t))


def test_the_array_itself_is_not_written_between() -> None:
    start = "if t > 0:\n    z = x\nelse:\n    z = y * 2\n"
    for body in (
        "x[0] = 1\nreturn z + 1", "k[0] = 1\nreturn z + 1", "s = z[0, 0]\nx += 1\nreturn s + z",
        "for k in range(3):\n    t += z[0, 0]\n    x[0] = t\nreturn t", "x[0] = 1\nreturn z",
    ):  # fmt: skip
        offers = ("`z = x.copy()`",)
        refused("x, y, t", f"k = x\n{start}{body}", X.copy(), X, 1.0, says=("`z`",), offers=offers)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("x[1:]", "`z` is f64[2, 3] or f64[1, 3]"),
        ("x[0]", "`z` is f64[2, 3] or f64[3]"),
        ("x.astype(np.float32)", "`z` is f64[2, 3] or f32[2, 3]"),
        ("n", "`z` is f64[2, 3] or i64[2, 3]"),
        ("n * 2", "`z` is f64[2, 3] or i64[2, 3]"),
        ("1.0", "`z` is f64[2, 3] or float 1.0"),
        ("(x, y)", "`z` is f64[2, 3] or a tuple"),
    ],
)
def test_what_is_no_one_array_says_what_it_is(other: str, says: str) -> None:
    arguments = X, X * 2, X.astype(int), 1.0
    for body in (f"if t > 0:\n    z = x\nelse:\n    z = {other}\nreturn z",):
        refused("x, y, n, t", body, *arguments, says=(says, "depending on a test"))
    chain = f"if t > 0:\n    z = x\nelif t > -1:\n    z = {other}\nelse:\n    z = y\nreturn z"
    refused("x, y, n, t", chain, *arguments, says=("depending on a test",))


def test_a_type_to_meet_in_is_offered() -> None:
    body = "if t > 0:\n    x = x / 2\nreturn x"
    found = refused("x, t", body, X.astype(int), 1.0, says=("`x` is f64[2, 3] or i64[2, 3]",))
    assert "x = x.astype(...)" in found.diagnostics[0].helps[0]


@pytest.mark.parametrize("second", ["t > 1:\n    x", "t > 1:\n    y = x\n    x"])
def test_after_more_branches_it_is_still_the_callers(second: str) -> None:
    body = f"if t > 0:\n    x = x * 2\nif {second} = x / 2\nreturn x + 0"
    says = "`x` is f64[2, 3] or i64[2, 3]"
    refused("x, t", body, X.astype(int), 1.0, says=(says,))
    for t in (-1.0, 0.5, 2.0):
        assert_same(run("numpy", "x, t", body, X, t), plain("x, t", body, X, t))


@pytest.mark.parametrize(
    "body",
    [
        "if t > 0:\n    z = x\nreturn z",
        "if t > 0:\n    z = x\nelif t > -1:\n    z = y\nreturn z",
        "if t > 0:\n    if t > 1:\n        z = x\nelse:\n    z = y\nreturn z",
        "for k in range(3):\n    if t > k:\n        z = x\n    t += z[0, 0]\nreturn t",
    ],
)
def test_a_name_of_one_side_stays_one(body: str) -> None:
    refused("x, y, t", body, X, X, 1.0, says=("`z` is set on one side",))


def test_lists_keep_their_own_sum() -> None:
    body = "if t > 0:\n    z = x\nelse:\n    z = x[::-1]\nreturn z + z"
    refused("x, t", body, [1.0, 2.0], 1.0, says=("list",))


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5, 6)])
def test_sizes_of_the_run(sizes: tuple[int, ...], backend: str) -> None:
    body = "if t > 0:\n    x = x / x.max()\nreturn x + 1"
    function = compiled("x, t", body)
    for size in sizes:
        for t in (1.0, -1.0):
            x = np.arange(1.0, size + 1)
            assert_same(run_on(backend, function, x, t), plain("x, t", body, x, t))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("if t > 0:\n    y = 1.0\nreturn y", "CD0202"),
        ("if t > 0:\n    y = 1.0\nelse:\n    y = x\nreturn y", "CD0202"),
        ("if t > 0:\n    return 1.0\nreturn x", "CD0425"),
        ("if i < 1:\n    x[0, j] = 1.0", "CD0515"),
        ("if i < 1:\n    t = 1.0", "CD0515"),
        ("if x > 0:\n    t = 1.0", "CD0408"),
    ],
)
def test_what_does_not_meet_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, t", body, X.copy(), 1.0)


def test_what_sides_set_stands_at_their_lines() -> None:
    text = """def f(x):
    q = x.sum()
    if q > 1:
        r = np.log(q)
    else:
        r = -1.0
    return r
"""
    f = pe.cd_from_source(text, {"np": np})
    shown = str(f.explain(np.ones(3)))
    assert re.search(r"4 \| +r = log\(q\)", shown) and re.search(r"6 \| +r = -1\.0", shown)
    for given, line in ((np.ones(3), 4), (np.zeros(3), 6)):
        with pe.trace() as trace:
            f(given)
        assert [r.line for r in trace.where(array="r")] == [line]
        assert trace.why("r").record.line == line


AFTER_RAISE = (
    "v = np.zeros((3, int(x[0])))\nv[1] = 2.0\nreturn v[:, 0]",
    "n = int(x[0])\nv = np.arange(3.0 * n).reshape(3, n)\nreturn v[0]",
    "n = int(x[0])\nv = np.arange(3.0 * n).reshape(3, n)\nreturn v.T",
    "return np.arange(int(x[0]))[1:]",
    "v = np.zeros((3, int(x[0])))\nv = v[:, 1:] + 1\nreturn v.T",
    "if x[1] > 5:\n    v = np.zeros(2)\nelif x[1] > 6:\n    raise KeyError('k')\n"
    "else:\n    v = np.ones(2)\n"
    "return v + np.arange(int(x[0]))[:2]",
)  # fmt: skip


@pytest.mark.parametrize("body", AFTER_RAISE)
@pytest.mark.parametrize(
    "test",
    ["if x[1] < 0:\n    raise ValueError('no')\n",
     "if x[1] >= 0:\n    pass\nelse:\n    raise ValueError('no')\n"],
)  # fmt: skip
def test_what_is_made_after_a_raise_lives_on(test: str, body: str, backend: str) -> None:
    made = pe.cd_from_source(
        "def f(x):\n" + "".join(f"    {line}\n" for line in (test + body).splitlines()), {"np": np}
    ).on(backend)
    given = np.array([4.0, 1.0])
    assert_same(made(given), plain("x", test + body, given))
    with pytest.raises(CdError, match="CD0762.*no"):
        made(np.array([4.0, -1.0]))


def test_an_error_that_the_program_raises_comes_before_those_of_sizes(backend: str) -> None:
    text = (
        "def f(x, y):\n    if len(x) != len(y):\n        raise ValueError('sizes')\n"
        "    z = x + y\n    return z[1:]\n"
    )
    made = pe.cd_from_source(text, {"np": np}).on(backend)
    for n in (3, 4, 5, 6):
        assert made(np.ones(n), np.ones(n)).tolist() == [2.0] * (n - 1)
        with pytest.raises(CdError, match="CD0762.*sizes"):
            made(np.ones(n), np.ones(n + 2))
