"""What `zip`, `enumerate`, `reversed` and `map` give, where all of it is taken at once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compare import assert_same
from tests.language.ask import plain, refused, run

X = np.array([0.5, -2.0, 3.0])
TAKEN = {
    "a tuple of pairs": "return tuple(zip((x[0], x[1]), (x[2], 3.0)))",
    "a list of arrays' pairs": "return list(zip(x, x[::-1]))",
    "positions": "return list(enumerate(x, 1)), tuple(enumerate((x[0], 'a')))[0]",
    "reversed": "return tuple(reversed((x[0], x[1]))), list(reversed(x))",
    "a function of each": "return list(map(abs, x)), sum(map(lambda v: v * 2, x))",
    "a function of pairs": "return list(map(lambda a, b: a * b, x, x[::-1]))",
    "a captured name": "each = 3.0\nreturn sum(map(lambda v: v * each, x))",
    "a user's function": "def g(v, w=2): return v * w\nreturn max(map(g, x))",
    "extremes of pairs": "return min(zip(x, x)), max(enumerate((x[0], x[1])))",
    "unpacked": "a, b, c = map(float, x)\np, q = zip(*[(x[0], 1), (x[1], 2)])\nreturn a + b, p, q",
    "spliced": "return [*zip((1, 2), (3, 4))], [0, *reversed((x[0], x[1]))]",
    "decided": "return all(map(lambda v: v > -3, x)), any(map(lambda v: v > 3, x))",
    "transposed": "return tuple(zip(*((x[0], x[1]), (x[2], 3.0))))",
    "transposed twice": "return list(zip(*zip((1, 2), (3, x[0]))))",
    "rows": "s = 0.0\nfor a, b in zip(*[x, x * 2]): s = s * 2 + a * b\nreturn s",
    "a range of a tuple": "t = (1, 3)\ns = 0\nfor k in range(*t): s = s * 3 + k\nreturn s",
    "another function of that name": "zip = max\nreturn zip(x[0], x[1])",
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_items_are_taken_at_once(body: str, backend: str) -> None:
    assert_same(run(backend, "x", body, X.copy()), plain("x", body, X.copy()))


@pytest.mark.parametrize(
    ("body", "way"),
    [
        ("pairs = zip(x, x)\nreturn len(pairs)", "list(zip(x, x))"),
        ("for v in map(abs, x): x[0] += v\nreturn x", "list(map(abs, x))"),
        ("return list(filter(None, x))", "[v for v in x if v > 0]"),
    ],
)
def test_as_a_value_it_has_a_way_out(body: str, way: str) -> None:
    problem = refused("x", body, X.copy(), says=("taken once",), offers=(f"`{way}`",))
    assert problem.code == "CD0427"


def test_the_function_of_a_map_is_evaluated_once() -> None:
    def make(c: Any) -> Any:
        c[0] += 1
        return lambda v: v * c[0]

    body = "f = make(x)\nreturn list(map(f, (1, 2, 3)))"
    given, mine = X.copy(), X.copy()
    assert_same(run("numpy", "x", body, mine, make=make), plain("x", body, given, make=make))
    assert_same(mine, given)
    for called in ("make(x)", "lambda v, w=make(x): w(v)"):
        body = f"return list(map({called}, (1, 2, 3)))"
        problem = refused("x", body, X.copy(), offers=(f"`f = {called}`",), make=make)
        assert problem.code == "CD0427"
