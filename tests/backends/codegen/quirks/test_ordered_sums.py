"""Sums of several terms in order: the same numbers at every level of optimization."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings

SUMS = {
    "swapped": "for i in range(N):\n    s += d[2*i+1]\n    s += d[2*i]",
    "in one expression": "for i in range(N):\n    s = s + d[2*i+1] + d[2*i]",
    "a short loop": "for i in range(N):\n    for j in range(2):\n        s += d[2*i+1-j]",
    "four": "for i in range(N):\n    for j in range(4):\n        s += d[4*i+3-j]",
    "permuted": "for i in range(N):\n    for k in (2, 0, 3, 1):\n        s += d[4*i+k]",
    "products": "for i in range(N):\n    s += d[2*i+1]*e[2*i+1]\n    s += d[2*i]*e[2*i]",
    "with a gap": "for i in range(N):\n    s += d[4*i+1]\n    s += d[4*i]",
    "an element": "for i in range(N):\n    o[0] += d[2*i+1]\n    o[0] += d[2*i]\ns = o[0]",
    "of each row": "for k in range(2):\n    for i in range(N):\n        o[k] += d[2*i+1]\n"
    "        o[k] += d[2*i]\ns = o[0] + 3 * o[1]",
    "a computed element": "q = int(abs(d[0]) * 0)\nfor i in range(N):\n    o[q] += d[2*i+1]\n"
    "    o[q] += d[2*i]\ns = o[q]",
    "a computed element, stored": "q = int(abs(d[0]) * 0)\nfor i in range(N):\n"
    "    o[q] = o[q] + d[2*i+1] + d[2*i]\ns = o[q]",
    "computed twice": "for i in range(N):\n    o[int(abs(d[0]) * 0)] += d[2*i+1]\n"
    "    o[int(abs(d[1]) * 0)] += d[2*i]\ns = o[0]",
    "of two loops": "for i in range(N):\n    for k in range(2):\n        o[k] += d[2*i+1]\n"
    "    for l in range(2):\n        o[l] += d[2*i]\ns = o[0] + 3 * o[1]",
    "NumPy": "s = d[:2*N].reshape(N, 2)[:, ::-1].sum()",
    "taken": "s = d[:4*N].reshape(N, 4)[:, [2, 0, 3, 1]].sum()",
}


@pytest.mark.parametrize("kind", ["f4", "f8", "c16"])
@pytest.mark.parametrize("optimize", [2, 3])
@pytest.mark.parametrize("name", SUMS)
def test_terms_are_added_in_their_order(name: str, optimize: int, kind: str) -> None:
    rng = np.random.default_rng(5)
    parts = rng.integers(-8, 9, (2, 2, 160)) / 4
    d, e = (parts[0] + 1j * parts[1] if kind == "c16" else parts[0]).astype(kind)
    for count in (4, 8, 16, 33):
        lines = SUMS[name].replace("N", str(count)).splitlines()
        body = "".join(f"    {line}\n" for line in lines)
        text = f"def f(d, e, o):\n    s = d[0] * 0\n{body}    return s\n"
        plain: dict[str, object] = {"np": np}
        exec(text, plain)
        wanted = plain["f"](d, e, np.zeros(2, kind))  # type: ignore[operator]  # it is the function
        for profile in ("default", "strict"):
            with settings.override(profile=profile, optimize=optimize):
                f = pe.cd_from_source(text, {"np": np})
                assert f(d, e, np.zeros(2, kind)) == wanted, (count, profile)


@pytest.mark.parametrize("optimize", [1, 2, 3])
@pytest.mark.parametrize(
    "lines",
    [
        "o[q] += d[2*i+1]\n        o[q] += d[2*i]",
        "o[q] = o[q] + d[2*i+1] + d[2*i]",
        "o[k[0]] += d[2*i+1]\n        o[k[0]] += d[2*i]",
        "p = k[0]\n        o[p] += d[2*i+1]\n        o[p] += d[2*i]",
    ],
)
def test_an_element_may_be_chosen_by_an_array(lines: str, optimize: int) -> None:
    text = f"def f(d, k, o):\n    q = k[0]\n    for i in range(16):\n        {lines}\n"
    d, k, found, wanted = np.arange(64.0) % 7, np.array([1, 0]), np.zeros(2), np.zeros(2)
    with settings.override(optimize=optimize):
        pe.cd_from_source(text)(d, k, found)
    plain: dict[str, object] = {}
    exec(text, plain)
    plain["f"](d, k, wanted)  # type: ignore[operator]  # it is the function
    assert found.tolist() == wanted.tolist()


def test_only_several_terms_of_an_iteration_keep_vectors_away() -> None:
    def code(body: str) -> str:
        text = f"def f(d, o):\n    for i in range(64):\n        {body}\n"
        with pe.override(profile="strict"):
            return pe.cd_from_source(text).explain(np.zeros(300), np.zeros(300)).code

    assert "compiler_barrier();" in code("o[0] += d[2*i]; o[0] += d[2*i+1]")
    assert "compiler_barrier();" not in code("o[0] += d[2*i]; o[1] += d[2*i+1]")
    assert "compiler_barrier();" not in code("o[i] += d[2*i]; o[i] += d[2*i+1]")
    assert "compiler_barrier();" not in code("o[0] += d[i] + d[i+1]")
    assert "compiler_barrier();" not in code("o[int(d[i])] += d[2*i]; o[int(d[i])] += d[2*i+1]")
