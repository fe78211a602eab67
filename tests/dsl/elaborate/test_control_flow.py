"""Loops that run and loops that unroll: leaving early, names after them, what is known inside."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Branch, Break, Check, For, While
from tests.compare import assert_same
from tests.language.ask import compiled, plain, run

from .scenes import found, typed

X = np.arange(12.0).reshape(3, 4) - 5.0
LOOPS = {
    "break": (
        "s = 0.0\nfor i in range(4):\n    if x[0, i] > -3.5:\n        break\n    s += 1.0\nreturn s"
    ),
    "continue": (
        "s = 0\nfor i in range(4):\n    if i % 2 == 1:\n        continue\n    s += i\nreturn s"
    ),
    "break unrolled": (
        "s = 0\nfor i in [1, 2, 3]:\n    if i == 3:\n        break\n    s += i\nreturn s"
    ),
    "continue unrolled": (
        "s = 0\nfor i in (1, 2, 3):\n    if i == 2:\n        continue\n    s += i\nreturn s"
    ),
    "break in a while": "n = 0\nwhile True:\n    n += 1\n    if n > 4:\n        break\nreturn n",
    "a test with a prelude": "n = 0\nwhile x[:, n].sum() < 0.0 and n < 3:\n    n += 1\nreturn n",
    "no round at all": "s = 7\nfor i in range(0):\n    s = i\nreturn s",
    "a nest with break": (
        "s = 0\nfor i in range(3):\n    for j in range(4):\n        if j > i:\n            break\n"
        "        s += 1\nreturn s"
    ),
    "two targets": "s = 0.0\nfor i, row in enumerate(x):\n    s += i * row[i]\nreturn s",
    "nested targets": (
        "s = 0.0\nfor i, (a, b) in enumerate(zip(x[0], x[1])):\n    s += i * a * b\nreturn s"
    ),
    "two targets after a break": (
        "for i, v in enumerate(x[0]):\n    if v != x[0, 0]:\n        break\n"
        "else:\n    return -1, x.sum()\nreturn i, x[0, :i].sum() * v"
    ),
    "nested targets after the loop": (
        "i = 7\nfor i, (a, b) in enumerate(zip(x[0], x[1])):\n    if a * b > 9.0:\n"
        "        break\nreturn i, a - b"
    ),
    "two targets after a loop in a loop": (
        "s = 0.0\nfor k in range(3):\n    for i, v in enumerate(x[0]):\n        if i == k:\n"
        "            break\n    s += v * (i + 1)\nreturn s, i"
    ),
    "a variable that was an array before": (
        "c = x * 2.0\ns = c.sum()\nfor a in range(3):\n    for c in range(2):\n"
        "        s += c\nreturn s"
    ),
    "a variable that was another array in a loop before": (
        "s = 0.0\nfor row in x:\n    c = row * 2.0\n    s += c[0]\nfor a in range(3):\n"
        "    for b in range(2):\n        for c in range(int(x[0, 0])):\n            s += c\n"
        "return s"
    ),
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loops_do_what_python_does(body: str) -> None:
    assert_same(run("numpy", "x", body, X), plain("x", body, X))


def test_a_jump_that_is_known_leaves_nothing_behind() -> None:
    body = "s = 0\nfor i in [1, 2, 3]:\n    if i == 2:\n        break\n    s += i\nreturn s"
    form = typed("x", body, X)
    assert not found(form.procedure, Break) and not found(form.procedure, Branch)


def test_accesses_by_the_counter_need_no_check() -> None:
    body = "for i in range(1, len(x)):\n    x[i, 0] = x[i - 1, 0]"
    assert not found(typed("x", body, X).procedure, Check)
    outside = "for i in range(len(x) + 1):\n    x[i, 0] = 1.0"
    assert found(typed("x", outside, X).procedure, Check)


def test_what_a_while_tests_is_known_inside() -> None:
    body = "n = 0\nwhile n < 3:\n    x[n, 0] = 0.0\n    n += 1"
    (loop,) = found(typed("x", body, X).procedure, While)
    assert [type(one) for one in loop.prelude] == []
    mine, pythons = X.copy(), X.copy()
    run("numpy", "x", body, mine)
    plain("x", body, pythons)
    assert_same(mine, pythons)


def test_a_counter_is_an_index_and_stays_symbolic() -> None:
    (loop,) = found(typed("x", "for i in range(2, 9, 3):\n    x[0, 0] = i", X).procedure, For)
    assert (str(loop.lo), str(loop.hi), loop.step) == ("2", "9", 3)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("for i in range(3):\n    return x[0, :i]", "CD0144"),
        ("for i in range(len(x)):\n    return x", "CD0434"),
        ("if j > 0:\n    for i in range(3):\n        x[i, j] = 0.0", "CD0520"),
        ("for a, b in [(1, 2, 3)]:\n    x[0, 0] = a", "CD0419"),
        ("for a.b in range(3):\n    x[0, 0] = 1.0", "CD0142"),
    ],
)
def test_what_loops_cannot_do_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x", body, X.copy())


NEVER_READ = {
    "a loop without rounds": ("for k in range(1, len(a)):\n    a[k] -= a[0]\nreturn a", 0, 0.0),
    "its body is not looked at": ("for k in range(len(a)):\n    a[k] = a @ w\nreturn a", 0, 0.0),
    "over nothing": ("t = 0.0\nfor v in a:\n    t += v / a[-1]\nreturn t", 0, 0.0),
    "a while": ("k = 1\nwhile k < len(a):\n    a[k] -= a[0]\n    k += 1\nreturn a", 0, 0.0),
    "run-time rounds": ("for k in range(int(w[0])):\n    a[k] = a[5]\nreturn a", 2, 0.0),
    "of an empty array": ("for k in range(int(w[0])):\n    a[0] += a[5]\nreturn a", 0, 0.0),
    "a side of an if": ("if w[0] > 0:\n    return a[5]\nreturn a[-1]", 2, 0.0),
    "a side of a choice": ("return a[5] if w[0] > 0 else a[-2]", 2, 0.0),
    "behind and": ("return w[0] > 0 and a[5] > 0", 2, 0.0),
    "behind a break": (
        "for k in range(2):\n    if w[0] < 1:\n        break\n    a[k] = a[-5]\nreturn a", 2, 0.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "size", "first"), NEVER_READ.values(), ids=NEVER_READ)
def test_a_place_that_is_never_reached_may_be_none(body: str, size: int, first: float) -> None:
    w = np.array([first, 1.0, 2.0])
    assert_same(run("numpy", "a, w", body, np.ones(size), w), plain("a, w", body, np.ones(size), w))


@pytest.mark.parametrize("name", [name for name in NEVER_READ if NEVER_READ[name][1]])
def test_the_run_fails_where_it_is_reached(name: str, backend: str) -> None:
    body = NEVER_READ[name][0]
    with pytest.raises(CdError, match="index -?5 is out of range for axis 0 of `a` with size 2"):
        run(backend, "a, w", body, np.ones(2), np.array([1.0, 1.0, 2.0]))


@pytest.mark.parametrize(
    "body",
    ["w[0] = 9.0\nreturn a[5]", "for k in range(2):\n    w[0] = a[5]\nreturn a",
     "for k in range(len(w)):\n    for n in [1, 2]:\n        w[k] = a[5]"],
)  # fmt: skip
def test_a_place_that_is_surely_reached_is_refused_before_anything_is_written(body: str) -> None:
    w = np.zeros(3)
    with pytest.raises(CdError, match="index 5 is out of range for axis 0 of `a` with size 2"):
        run("numpy", "a, w", body, np.ones(2), w)
    assert not w.any()


BECOMES_AN_ARRAY = {
    "a sum": "y = 0\nfor k in range(1, 6, 2):\n    y += x * k\nreturn y, x",
    "a sum of one": "y = 0\nfor k in range(1, 2):\n    y += x / k\nreturn y",
    "of no round": "y = 0\nfor k in range(1, 1):\n    y += x / k\nreturn y",
    "horner": "y = 0.0\nfor c in x[0]:\n    y = y * x + c\nreturn y",
    "backwards": "y = 1\nfor k in range(3, 0, -1):\n    y = y * x - k\nreturn y, k",
    "the variable after it": "y = 0\nfor k in range(2):\n    y = y + x * k\nreturn y, k",
    "positions beside": "y = 0\nfor k, v in enumerate(x):\n    y = y * k + v\nreturn y",
    "a loop in a loop": (
        "y = 0\nfor k in range(3):\n    for n in range(2):\n        y = y + x * (k + n)\nreturn y"
    ),
    "the one before": "y = 1\nfor k in range(4):\n    z = y\n    y = y * x\nreturn y + z",
    "small integers": (
        "b = x.astype(np.int8)\ny = 0\nfor k in range(3):\n    y = y + b * k\nreturn y"
    ),
    "in place": "y = 0\nfor k in range(3):\n    y = x\n    y += 1\nreturn y, x",
    "a sum in a while": (
        "n = 0\nwhile n < 3:\n    y = 0\n    for k in range(2):\n        y += x * n\n"
        "    x[0] = y[1]\n    n += 1\nreturn x"
    ),
}


@pytest.mark.parametrize("body", BECOMES_AN_ARRAY.values(), ids=BECOMES_AN_ARRAY)
def test_a_number_before_a_loop_may_be_an_array_in_it(body: str) -> None:
    mine, pythons = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine), plain("x", body, pythons), 1e-12)
    assert_same(mine, pythons)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_how_many_rounds_there_are_decides_whether_it_is_one(rounds: int) -> None:
    body = "y = 0\nfor k in range(n):\n    y = y + x * k\nreturn y"
    assert_same(run("numpy", "x, n", body, X, rounds), plain("x, n", body, X, rounds))


@pytest.mark.parametrize(
    "body",
    [
        "y = 0\nwhile x[0, 0] < 9:\n    y = y + x\n    x[0, 0] += 1\nreturn y",
        "y = 0\nfor k in range(3):\n    if x[0, k] > 0:\n        y = y + x\nreturn y",
        "y = 0\nfor k in range(3):\n    if k == x[0, 0]:\n        break\n    y = y + x\nreturn y",
        "y = 0\nfor k in range(int(x[0, 0])):\n    y = y + x\nreturn y",
    ],
)
def test_a_number_that_may_stay_one_is_made_an_array_by_hand(body: str) -> None:
    with pytest.raises(CdError, match="CD0208.*number before the loop") as caught:
        run("numpy", "x", body, X.copy())
    assert "`y = np.zeros((3, 4))`" in str(caught.value)


LAST_ITEMS = {
    "a number that is updated": "q = x[0]\nfor v in (1.0, q): y[0] = v\nq -= 1\nreturn v, q, y",
    "pairs": ("q = x[0]\nfor v, w in ((1.0, 2), (q, q + 1)): y[0] = v\nq = 7.0\nreturn v, w, q, y"),
    "a tuple": "q = x[0]\nfor t in ((1.0, q), (q, x[1])): pass\nq = 7.0\nx[1] = 9\nreturn t, q",
    "of an iteration before": (
        "q = x[0]\nfor r in range(3):\n    for v in (1.0, q): y[0] += v\n    q = v * 2 + r\n"
        "    y[1] = v\nreturn v, q, y"
    ),
    "left early": "q = x[0]\nfor v in (1.0, q):\n    if v > y[0]: break\nq += 5\nreturn v, q",
    "an element": "for v in (x[0], x[1]): pass\nx[1] = 55\nreturn v",
    "read by a function": (
        "q = x[0]\nfor v in (1.0, q):\n    def g(): return v\nq += 5\nreturn g(), q"
    ),
    "read by a lambda before": (
        "q = x[0]\ng = lambda: v\nfor v in (1.0, q): pass\nq = 5\nreturn g()"
    ),
    "read by the lambdas of a list": (
        "q = x[0]\nfs = [lambda: v for v in (1.0, q)]\nq += 5\nreturn fs[0](), q"
    ),
}


@pytest.mark.parametrize("body", LAST_ITEMS.values(), ids=LAST_ITEMS)
def test_an_unrolled_loop_leaves_the_item_that_it_had(body: str, backend: str) -> None:
    mine, given = np.array([0.5, 3.0, -1.0]), np.array([0.5, 3.0, -1.0])
    got = run(backend, "x, y", body, mine, mine * 2)
    assert_same(got, plain("x, y", body, given, given * 2))
    assert_same(mine, given)


def test_an_item_that_nobody_reads_later_is_not_stored() -> None:
    body = "q = x[0]\nfor v in (1.0, q): x[1] += v\nq -= 1\nreturn q"
    form = typed("x", body, np.arange(3.0))
    assert not any(node.label == "v" for node in form.procedure.locals)


WIDENED = {
    "an array": "for _ in range(3):\n    x = (x + np.roll(x, 1)) / 2\nreturn x",
    "a nest": "for _ in range(2):\n    for k in range(2):\n        x = (x + x[::-1]) / 2\nreturn x",
    "a number": "s = x[-1]\nfor v in x:\n    s = (s + s) * 0.5 + v\nreturn s",
    "bools": "m = x > 90\nfor _ in range(3):\n    m = m + m + 1\nreturn m",
    "another integer": "s = x[-1]\nfor v in x:\n    s = s * 2 + np.int32(v)\nreturn s",
    "a tuple": "t = (x[-1], 0)\nfor v in x:\n    t = ((t[0] + t[0]) * 0.5, 1)\nreturn t",
    "a while": "k = 0\nwhile k < 3:\n    x = (x + x) / 2\n    k += 1\nreturn x",
    "a while in a for": (
        "for _ in range(2):\n    k = 0\n    while k < 2:\n        x = (x + x) / 2\n        k += 1\n"
        "return x"
    ),
    "on one side": (
        "y = x * 1.0\nif x[0] < 9:\n    for _ in range(2):\n        x = (x + x) // 3 + 0.5\n"
        "    y = x\nreturn y"
    ),
    "a while that may not run": "while x[0] < 9:\n    x = (x + x) / 2 + 1\nreturn x * 1.0",
    "a while that does not run": "while x[0] > 9:\n    x = (x + x) / 2\nreturn x * 1.0",
    "a tuple in a while": (
        "t = (x[-1], x)\nwhile t[0] < 300:\n    t = ((t[0] + t[0]) * 2.5, (t[1] + t[1]) / 2)\n"
        "return t"
    ),
    "assigned first": "y = x\nfor k in range(2):\n    y = x * 0.5\n    y = y + y\nreturn y",
    "not widened": "for _ in range(3):\n    x = x + x\nreturn x",
}


@pytest.mark.parametrize("body", WIDENED.values(), ids=WIDENED)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_first_iteration_computes_in_narrow_integers(body: str, backend: str) -> None:
    x = np.array([3, 200, 90, 130], np.uint8)
    assert_same(run(backend, "x", body, x.copy()), plain("x", body, x.copy()))


def test_a_number_of_iterations_that_an_argument_gives() -> None:
    body = "for _ in range(n):\n    x = (x + x) / 2\nreturn x"
    f = compiled("x, n", body)
    x = np.array([3, 200], np.uint8)
    for n in (1, 2, 3, 4, 2, 5):
        assert_same(f(x, n), plain("x, n", body, x, n))


CARRIED_TARGETS = {
    "numbers": "s = a + b",
    "exchanged": "s = s * 3 + a + 2 * b if (a, b) != (b, a) else s",
    "jumps": "s += b\n        if s > 20: break\n        a += s",
}


@pytest.mark.parametrize(
    "items", ["((1, 2), (3, 4.5))", "((s, a), (a, s))", "((b, a), (a, s + 1))"]
)
@pytest.mark.parametrize("body", CARRIED_TARGETS.values(), ids=CARRIED_TARGETS)
def test_an_outer_loop_carries_the_targets_of_an_unrolled_one(body: str, items: str) -> None:
    text = (
        f"a = b = s = 0\nfor k in range(n):\n    s += a\n    for a, b in {items}:\n"
        f"        {body}\nreturn a, b, s"
    )
    for n in (0, 3):
        got, expected = run("numpy", "n", text, n), plain("n", text, n)
        assert got == expected


def test_an_outer_loop_carries_tuples_in_the_targets_of_an_unrolled_one() -> None:
    body = (
        "a, s = (0, 1), 0\nwhile s < 90:\n    s += a[0] + 1\n"
        "    for a, (b, c) in (((1, 2), (2, a)), ((3, s), (4, a))): s += b + c[1]\nreturn s, a"
    )
    assert run("cc", "", body) == plain("", body)
