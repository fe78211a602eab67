"""Loop-carried names: one slot each, widened where needed; exchanges of buffers cost nothing."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Alloc, Assign, For, Permute, Procedure
from tests.compare import assert_same
from tests.language.ask import plain, refused, run

from .scenes import found, typed

X = np.arange(6.0).reshape(2, 3) + 1.0
LOOPS = {
    "a number": "s = 0.0\nfor i in range(3):\n    s = s + x[0, i]\nreturn s",
    "an integer becomes a float": "s = 0\nfor i in range(3):\n    s = s * 0.5 + x[0, i]\nreturn s",
    "a Fibonacci pair": "a, b = 0, 1\nfor i in range(9):\n    a, b = b, a + b\nreturn a, b",
    "an array rebound": "y = x * 1.0\nfor i in range(3):\n    y = y + x\nreturn y",
    "an array and its old self": (
        "y = x * 1.0\nfor i in range(3):\n    z = y\n    y = z + x\nreturn y"
    ),
    "a view of what is rebound": (
        "y = x * 1.0\nv = y[0]\nfor i in range(2):\n    y = y * 2.0\nreturn y, v"
    ),
    "two exchanged arrays": (
        "a, b = x.copy(), x * 2.0\nfor i in range(3):\n    b[0] += a[1]\n    a, b = b, "
        "a\nreturn a, b"
    ),
    "three in a ring": (
        "a, b, c = x + 0.0, x + 1.0, x + 2.0\nfor i in range(4):\n    a, b, c = c, a, b\n"
        "return a, b, c"
    ),
    "exchanged with early leave": (
        "a, b = x.copy(), x * 2.0\nfor i in range(5):\n    a, b = b, a\n    if a[0, 0] > 1.5:\n"
        "        break\nreturn a, b"
    ),
    "a while": "n = 0\ns = 0.0\nwhile s < 4.0:\n    s += x[0, n]\n    n += 1\nreturn s, n",
    "set in a loop that runs": "for i in range(3):\n    last = x[1, i]\nreturn last",
    "the target after the loop": "for i in range(3):\n    x[0, i] = 0.0\nreturn i",
    "of another type after nested loops that run": (
        "s = x[0, 0]\nfor i in range(2):\n    for j in (1, 2):\n        s = j * i\nreturn s // 2, s"
    ),
    "of another type, where a nested loop may skip it": (
        "s = x[0, 0]\nfor i in range(2):\n    for j in range(3):\n        if x[i, j] > 1.5:\n"
        "            break\n        s = x[i, j] * 2.0\nreturn s"
    ),
    "of another type, where a nested loop has no iteration": (
        "s = x[0, 0]\nfor i in range(2):\n    for j in range(3, 1):\n        s = 1\nreturn s"
    ),
    "the target of a nested loop that runs": (
        "j = x[0, 0]\nfor i in range(2):\n    for j in range(1, 4, 2):\n        x[i, 0] += j\n"
        "return j"
    ),
    "a nest": (
        "s = 0\nfor i in range(2):\n    for j in range(3):\n        s = s + x[i, j]\n    "
        "s = s * 2\n"
        "return s"
    ),
    "one side only": (
        "s = 0.0\nfor i in range(3):\n    if x[0, i] > 1.5:\n        s = x[0, i]\nreturn s"
    ),
    "an inner target bound before": (
        "i, j = 0, 7\ns = 0\nfor i in range(2):\n    s = s * 10 + j\n"
        "    for j in range(3 * i):\n        s += j\nreturn s, i, j"
    ),
    "an inner target after a break": (
        "s = 0\nfor i in range(2):\n    for j in range(3):\n        if x[i, j] > 1.5 + i:\n"
        "            break\n    s = s * 10 + j\nreturn s"
    ),
    "an inner target that no round sets again": (
        "s = 0\nfor i in range(3):\n    for j in range(2 - i):\n        pass\n"
        "    s = s * 10 + j\nreturn s"
    ),
    "a target used by two loops": (
        "s = 0\nfor k in range(3):\n    for k in range(2):\n        s += k\n    s += 10 * k\n"
        "return s"
    ),
    "a target that is assigned below": (
        "for j in range(3):\n    x[0, j] += 1\nfor i in range(2):\n    for j in range(3):\n"
        "        x[i, j] += j\ni, j = 1, 2\nwhile i > 0 or j > 0:\n    if j > 0:\n        j -= 1\n"
        "        continue\n    i -= 1\nreturn i, j"
    ),
    "a best so far": (
        "best = -np.inf\nat = -1\nfor i in range(3):\n    if x[1, i] > best:\n"
        "        best = x[1, i]\n        at = i\nreturn best, at"
    ),
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loops_leave_what_python_leaves(body: str) -> None:
    mine, pythons = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine), plain("x", body, pythons))
    assert_same(mine, pythons)


def _inside(procedure: Procedure) -> list[object]:
    (loop,) = found(procedure, For)
    return list(loop.body)


def test_exchanged_arrays_change_hands_and_nothing_is_copied() -> None:
    body = "a, b = x.copy(), x * 2.0\nfor i in range(3):\n    a, b = b, a\nreturn a, b"
    (exchange,) = _inside(typed("x", body, X).procedure)
    assert isinstance(exchange, Permute)
    assert exchange.sources == exchange.nodes[::-1]


def test_a_slot_is_as_wide_as_the_widest_assignment() -> None:
    body = "s = 0\nfor i in range(3):\n    s = s + x[0, 0]\n    s = s * z\nreturn s"
    form = typed("x, z", body, X.astype("f4"), 2j)
    (loop,) = found(form.procedure, For)
    kept = {one.target.node.dtype.name for one in loop.body if isinstance(one, Assign)}
    assert kept == {"complex64"}


def test_names_used_within_a_round_only_are_not_carried() -> None:
    body = "for i in range(2):\n    t = x[i] * 2.0\n    x[i] = t + t\n"
    form = typed("x", body, X)
    outside = [one for one in form.procedure.body if isinstance(one, Assign | Alloc)]
    assert not outside and len(_inside(form.procedure)) == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("y = 0.0\nwhile n > 0:\n    y = y + x\n    n -= 1\nreturn y", "CD0208"),
        ("y = x * 1.0\nfor i in range(3):\n    y = y[0]\nreturn y", "CD0209"),
        ("for i in range(n):\n    t = x[: i + 1]\nreturn t", "CD0202"),
    ],
)
def test_what_has_no_one_place_is_refused(body: str, code: str) -> None:
    with pytest.raises(CdError, match=code):
        run("numpy", "x, n", body, X, 2)


LEFT = {
    "break": "for k in range(3):\n    if t > k: x = x * 2; break\nreturn x + 0",
    "continue": "for k in range(3):\n    if t > k: x = x * 2; continue\nreturn x + 0",
    "and read in the round": (
        "s = 0.0\nfor k in range(4):\n    s += x.sum()\n    if t > k: x = x * 2; continue\n"
        "    s *= 2\nreturn s"
    ),
    "a while": "k = 0\nwhile True:\n    k += 1\n    if k > t: x = y; break\nreturn x + k",
    "a while with more": (
        "k = 0\nwhile k < 4:\n    k += 1\n    if k > t: x = x + k; continue\n"
        "    y = y - k\nreturn x, y"
    ),
    "two tests": (
        "for k in range(3):\n    if t > k:\n        if x[0, 0] > 1 - k:\n            x = y\n"
        "            break\n    y = y + 1\nreturn x + 1"
    ),
    "an inner loop": (
        "s = 0.0\nfor k in range(3):\n    s += x.sum()\n    for l in range(2):\n"
        "        if t > l: x = x * 2; break\nreturn s, x + 1"
    ),
    "both sides": (
        "for k in range(3):\n    if t > k: x = x * 2; break\n    else:\n"
        "        x = x + 1\n        continue\nreturn x"
    ),
    "an else": (
        "for k in range(3):\n    if t > k: x = x * 2; break\nelse:\n    x = x + 5\n"
        "return x"
    ),
    "a number of the round": (
        "for k in range(3):\n    w = 1.0\n    if t > k: w = 2.5; break\nreturn w"
    ),
    "the number of the round": (
        "for k in range(4):\n    w = k\n    if t > k - 1: break\nreturn w, k"
    ),
    "a number before the round ends": (
        "s = 0\nfor k in range(4):\n    w = 2 * k + 1\n    for l in range(4):\n        v = l\n"
        "        if l == k: break\n    s += v\n    if t > k: continue\n    s += w\n"
        "    if k > 1: break\nreturn s, w, v, k"
    ),
    "a while and its number": (
        "k = 0\nwhile k < 5:\n    w = k\n    k += 2\n    if k > t: continue\n    k += 1\n"
        "return w, k"
    ),
    "exchanged": (
        "for k in range(3):\n    if t > k: x, y = y, x; break\n    x, y = y, x + 1\n"
        "return x - 2 * y"
    ),
    "in a function": (
        "def g(u):\n    for k in range(3):\n        if t > k: u = u * 2; break\n"
        "    return u + 1\nreturn g(x), g(y)"
    ),
    "under a name that a return leaves": (
        "for k in range(3):\n    if t > k:\n        x = x * 2\n        return x + 1\nreturn x"
    ),
}  # fmt: skip


LEFT |= {
    "a text": "w = 'a'\nfor k in range(3):\n    w = 'b'\nreturn w == 'b'",
    "nothing before": "w = None\nfor k in range(3):\n    w = x * 2\n    x = x + k\nreturn w",
    "nothing before an endless loop": (
        "w = None\nwhile True:\n    w = 3.0\n    if t < 1: break\n    t -= 1\nreturn w"
    ),
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_is_bound_where_a_round_is_left_is_what_goes_on(body: str, backend: str) -> None:
    for t in (-1.0, 0.5, 1.5, 9.0):
        mine, pythons = (X.copy(), X * 3), (X.copy(), X * 3)
        got = run(backend, "x, y, t", body, *mine, t)
        expected = plain("x, y, t", body, *pythons, t)
        assert_same(got, expected, where=f"{t}")
        assert_same(mine, pythons)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("for k in range(3):\n    w = x + k\n    if t > k: w = x * 2; break\nreturn w",
         "`w` is another array where its loop is left"),
        ("for k in range(3):\n    w = x\n    if t > k: w = y; continue\nreturn w",
         "`w` is another array where its loop is left"),
        ("w = x, y\nfor k in range(3):\n    if t > k: w = y, 'b'; break\nreturn w",
         "`w[1]` is f64[2, 3] before the loop, and str 'b' inside"),
        ("w = 'a'\nfor k in range(3):\n    if t > k: w = 'b'; break\nreturn w == 'a'",
         "each iteration makes another"),
        ("w = None\nfor k in range(x.shape[0] - 2):\n    w = 5.0\nreturn w",
         "changes from iteration"),
        ("w = None\nwhile t > 0:\n    w = 5.0\n    t -= 1\nreturn w", "changes from iteration"),
        ("w = x\nfor k in range(3):\n    if t > k: w = y; break\nw[0] = 3\nreturn y",
         "one array on some paths"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_refused(body: str, says: str) -> None:
    refused("x, y, t", body, X.copy(), X * 3, 1.0, says=(says,))


def test_none_that_the_loop_replaces_has_a_way_out() -> None:
    body = "s, w = 0.0, {}\nfor k in range(3):\n    s += {}\n    if x[k] > 1: w = x[k]\nreturn s"
    way = "give it a value of the loop's kind, and a flag: `w, found = 0.0, False` before the loop"
    text = body.format("None", "0.0 if w is None else w")
    refused("x", text, X.ravel(), says=("`w` is None before the loop",), offers=(way,))
    fixed = body.format("0.0", "w")
    assert_same(run("numpy", "x", fixed, X.ravel()), plain("x", fixed, X.ravel()))


def test_a_round_that_is_left_by_a_return_needs_no_slot() -> None:
    body = (
        "for k in range(3):\n    if x.sum() > k:\n        x = x * 2\n        return x\nreturn x + 1"
    )
    bodies = body, body.replace("x = x * 2\n        return x", "return x * 2")
    one, other = (len(typed("x", text, X).procedure.body) for text in bodies)
    assert one == other


WHOLE = {
    "a loop": "v[i, j] = c[i, j]\nfor t in range(n):\n    v[i, j] = b[i, j]\nreturn v",
    "a while": "v[i, j] = c[i, j]\nk = 0\nwhile k < n:\n    v[i, j] = b[i, j]\n    k += 1\n"
    "return v",
    "a break": "v[i, j] = c[i, j]\nfor t in range(3):\n    if t == n:\n        break\n"
    "    v[i, j] = b[i, j]\nreturn v",
    "a nest": "v[i, j] = c[i, j]\nfor t in range(2):\n    for k in range(n):\n"
    "        v[i, j] = b[i, j] + t\nreturn v",
    "set where it is left": "v[i, j] = c[i, j]\nfor t in range(3):\n    if t + 1 == n:\n"
    "        v[i, j] = b[i, j]\n        break\nreturn v",
    "set where it goes on": "v[i, j] = c[i, j]\nfor t in range(3):\n    if t < n:\n"
    "        v[i, j] = b[i, j]\n        continue\n    v[0, 0] += 0\nreturn v",
    "read first": "v[i, j] = c[i, j]\ns = 0.0\nfor t in range(n):\n    s += v[0, 0]\n"
    "    v[i, j] = b[i, j]\nreturn v + s",
}  # fmt: skip


@pytest.mark.parametrize("where", ["numpy", "cc"])
@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
def test_an_array_written_over_its_letters_in_a_loop_keeps_its_place(where: str, body: str) -> None:
    lines = "\n".join("    " + line for line in body.splitlines())
    f = pe.cd_from_source(f"def f(b, c, n):\n{lines}\n", {}, backend=where)
    for size in (2, 3, 4, 5, 6):  # from the fourth on sizes are the run's
        b, c = np.full((size, size), -1.0), np.arange(1.0, size * size + 1).reshape(size, size)
        for n in (0, 1, 2):
            want = b if n else c
            if "+ t" in body and n:
                want = b + 1.0
            if "s +=" in body:
                want = want + sum([1.0, -1.0][:n])
            np.testing.assert_array_equal(f(b, c, n), want)
    with pytest.raises(CdError, match="CD0301"):
        f(np.ones((2, 2)), np.ones((3, 3)), 1)


def test_a_name_may_stand_for_an_array_of_another_rank_in_a_loop_that_sets_it_first() -> None:
    body = (
        "t[i, j] = x[i, j] * 2\ns = np.sum(t)\ny = np.zeros(3)\nfor q in range(2):\n"
        "    for k in range(2):\n        t[i] = x[k, i] + q\n        y[i] += t[i]\nreturn y, s"
    )
    y, s = run("numpy", "x", body, X)
    np.testing.assert_array_equal(y, 2 * X.sum(axis=0) + 2)
    assert s == 2 * X.sum()


def test_a_function_inside_that_has_letters_of_its_own_in_a_statement_over_letters() -> None:
    body = (
        "def g(k):\n    w[i] = v[i] + k\n    return w\n"
        "v[i] = x[0, i] * 2\nfor k in range(3):\n    v[i] = g(k)[i]\nreturn v"
    )
    np.testing.assert_array_equal(run("numpy", "x", body, X), X[0] * 2 + 3)


MADE_AND_SWAPPED = """def f(x, n):
    old = {old}
    keep = old
    for t in range(n):
        new[i] = old[i] + 1
        old, new = new, old
    return old"""


def test_what_an_index_statement_makes_and_what_it_is_swapped_for_are_written_in_place(
    backend: str,
) -> None:
    text = MADE_AND_SWAPPED.replace("    keep = old\n", "")
    shared, own = (
        pe.cd_from_source(text.format(old=old), backend=backend) for old in ("x", "x.copy()")
    )
    for n, left in ((0, 0.0), (1, 0.0), (2, 2.0), (3, 2.0), (4, 4.0)):
        x = np.zeros(2)
        assert shared(x, n).tolist() == [n, n] and x.tolist() == [left, left]
        assert own(x, n).tolist() == [left + n] * 2 and x.tolist() == [left, left]


@pytest.mark.parametrize(
    "text",
    [
        MADE_AND_SWAPPED.format(old="x.copy()") + " + keep",
        MADE_AND_SWAPPED.format(old="x").replace("for t in range(n)", "while x[0] < n"),
        MADE_AND_SWAPPED.format(old="m[0]").replace("old[i]", "m[1, i]"),
    ],
)
def test_an_array_that_others_have_is_not_made_again_in_each_iteration(text: str) -> None:
    f = pe.cd_from_source(text.replace("f(x", "f(m, x"), backend="numpy")
    with pytest.raises(CdError, match="CD0208"):
        f(np.zeros((2, 2)), np.zeros(2), 3)


@pytest.mark.parametrize("body", ["s += v.sum()\n    v = v * 2", "w = v\n    v = x[m] * w.sum()"])
@pytest.mark.parametrize("loop", ["for t in range(3):", "while s < 99:"])
def test_a_selection_is_not_carried_into_the_next_iteration(loop: str, body: str) -> None:
    text = f"v = x[m]\ns = 0.0\n{loop}\n    {body}\nreturn s"
    with pytest.raises(CdError, match="CD0208.* each iteration makes another"):
        run("numpy", "x, m", text, np.arange(3.0), np.array([True, False, True]))


@pytest.mark.parametrize(
    "body",
    ["v = x[m] * t", "v += t", "x[m] = v * t", "if t > 0:\n        v = x[m]\n        x += v.sum()"],
)
def test_a_selection_that_each_iteration_makes_or_changes(body: str) -> None:
    text = f"v = x[m]\nfor t in range(3):\n    {body}\nreturn x"
    given, mask = np.arange(3.0), np.array([True, False, True])
    mine = given.copy()
    assert_same(run("numpy", "x, m", text, mine, mask), plain("x, m", text, given, mask))
    assert_same(mine, given)


class Rate:
    """An object with a number."""

    def __init__(self, value: float) -> None:
        self.value = value


CHANGED = {
    "a function": "g = np.sin\nfor v in x: x, g = g(x), np.cos\nreturn x",
    "a lambda": "g = lambda v: v\nfor v in x:\n    y[0] += g(v)\n    g = lambda v: 2 * v\nreturn y",
    "an inner function": (
        "def g(): return 1.0\nfor v in x:\n    y[0] += g()\n    def g(): return 2.0\nreturn y"
    ),
    "a method": "g = x.sum\nwhile y[0] < 5:\n    y[0] += g() + 1\n    g = x.max\nreturn y",
    "an object": "p = a\nfor v in x:\n    y[0] += p.value\n    p = b\nreturn y",
    "two objects": "p, q = a, b\nfor v in x:\n    p, q = q, p\n    y[0] += p.value * v\nreturn y",
    "what a function calls": (
        "def g(): return 1.0\ndef h(): return g()\nfor v in x:\n    y[0] += h()\n"
        "    def g(): return 2.0\nreturn y"
    ),
    "a text that functions of a tuple read": (
        "m = 'a'\nfs = (lambda: m == 'a', abs)\nfor v in x:\n    y[0] += fs[0]()\n"
        "    m = 'b'\nreturn y"
    ),
    "a selection that a function reads": (
        "t = x[x > 0]\nh = lambda: t.sum()\nfor v in x:\n    y[0] += h()\n"
        "    t = y[y > 1]\nreturn y"
    ),
}


@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED)
def test_what_the_previous_iteration_bound_to_no_number_is_refused(body: str) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    problem = refused("x, y, a, b", body, x, y, Rate(1.0), Rate(2.0))
    assert problem.code == "CD0208" and "each iteration makes another" in str(problem)


SET_FIRST = {
    "in each iteration": ("g = np.sin\nfor v in x:\n    g = np.cos\n    y[0] += g(v)\nreturn y"),
    "on some paths": (
        "for v in x:\n    if v > 1:\n        def h(k): return k + 1\n        y[0] += h(v)\n"
        "for v in y:\n    if v > 1:\n        def h(k): return k * 2\n        y[0] += h(v)\nreturn y"
    ),
    "unrolled": "g = np.sin\nfor k in (0, 1, 2): x, g = g(x), np.cos if k else np.tan\nreturn x",
    "of another function's own": (
        "v = (1.0, 2.0)\nh = lambda v: v + 1\nfor t in x:\n    v = (t, t)\n    y[0] += h(v[0])\n"
        "return y"
    ),
}


@pytest.mark.parametrize("body", SET_FIRST.values(), ids=SET_FIRST)
def test_functions_that_an_iteration_sets_first_are_its_own(body: str, backend: str) -> None:
    arguments = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 0.0])
    given = tuple(value.copy() for value in arguments)
    assert_same(run(backend, "x, y", body, *arguments), plain("x, y", body, *given))


MADE_BY_AN_INDEX_STATEMENT = {
    "a number": "c, s = 0.0, 0.0\nfor k in range(3):\n    s = s + c\n    {make}\nreturn s, c",
    "a tuple": "c, s = (0.0, 1), 0.0\nfor k in range(3):\n    s = s + c[0]\n    {make}\nreturn s",
    "None": (
        "c, s = None, 0.0\nfor k in range(3):\n    if c is not None: s += c[0]\n"
        "    {make}\nreturn s"
    ),
    "nested": (
        "c, s = 0.0, 0.0\nfor k in range(2):\n    for j in range(2):\n        s = s + c\n"
        "        {make}\nreturn s"
    ),
    "set first": "c, s = 0.0, 0.0\nfor k in range(3):\n    {make}\n    s += c[0]\nreturn s",
}  # fmt: skip


@pytest.mark.parametrize(
    "body", MADE_BY_AN_INDEX_STATEMENT.values(), ids=MADE_BY_AN_INDEX_STATEMENT
)
def test_an_index_statement_makes_an_array_of_what_was_none(body: str) -> None:
    x = np.array([0.5, -2.0, 3.0])
    got = run("numpy", "x", body.format(make="c[i] = x[i] * (k + 2)"), x)
    assert_same(got, plain("x", body.format(make="c = x * (k + 2)"), x))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("c, s, k = 0.0, 0.0, 0\nwhile k < 3:\n    s = s + c\n    c[i] = x[i] * k\n"
         "    k += 1\nreturn s",
         "`c` is float 0.0 before the loop and f64[3] inside"),
        ("h, s = 0, 0\nfor k in range(3):\n    s += 1 if h == 0 else 2\n"
         "    def h(): return 3\nreturn s",
         "`h` is a number before the loop and a function inside"),
    ],
)  # fmt: skip
def test_what_becomes_another_thing_in_a_loop_is_refused(body: str, says: str) -> None:
    assert refused("x", body, np.ones(3), says=(says,)).code == "CD0208"


def test_a_name_of_an_ended_loop_may_become_an_array() -> None:
    body = "for c in range(3): s = c\nfor k in range(n):\n    c[i] = x[i] * k\nreturn c"
    assert_same(run("numpy", "x, n", body, np.ones(2), 3), np.full(2, 2.0))


@pytest.mark.parametrize(
    "inner",
    [
        "u = y[s:s + h]\ny[s:s + h] = u + 1",
        "u = y[s:s + h]\nu[:] = u * 2",
        "u = y[s:s + h]\nu += s",
    ],
)
def test_views_that_an_inner_loop_binds_are_free_in_each_iteration_of_a_while(
    inner: str, backend: str
) -> None:
    indented = inner.replace("\n", "\n        ")
    body = f"h = 1\nwhile h < len(y):\n    for s in range(0, len(y), 2 * h):\n        {indented}\n"
    body += "    h *= 2\nreturn h"
    mine, plains = np.arange(8.0), np.arange(8.0)
    assert_same(run(backend, "y", body, mine), plain("y", body, plains))
    assert_same(mine, plains)
