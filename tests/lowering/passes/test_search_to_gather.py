"""Programs before, and the loops after: gather."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.lowering.passes.search_to_gather import search_to_gather

from ..shown import after

TABLE = {"y": "f32[4]", "p": "i64[4]", "t": "f32[4, 9]"}


def test_a_masked_sum_is_a_guarded_look() -> None:
    expected = (
        "for n in 0..4:\n    y[n] = 0.0\n    y[n] += t[n, p[n]] if 0 <= p[n] and p[n] < 9 else 0.0"
    )
    assert (
        after(search_to_gather, "y[n] = sum[c](where(c == p[n], t[n, c], 0.0))", **TABLE)
        == expected
    )
    assert (
        after(search_to_gather, "y[n] = sum[c](where(p[n] == c, t[n, c], 0.0))", **TABLE)
        == expected
    )


def test_a_position_is_looked_up_without_a_guard_of_its_own() -> None:
    body = "y[n] = sum[c](where(c == n + 2, t[n, c], 0.0))"
    assert "t[n, n + 2] if 0 <= n + 2 and n + 2 < 9 else 0.0" in after(
        search_to_gather, body, **TABLE
    )


def test_a_loop_with_one_guarded_statement() -> None:
    body = """
    for n in range(4):
        for c in range(9):
            if c == p[n]:
                t[n, c] = y[n] + c
    """
    assert after(search_to_gather, body, **TABLE) == (
        "for n in 0..4:\n"
        "    let c = p[n]\n"
        "    if 0 <= c and c < 9:\n"
        "        t[n, c] = y[n] + f32(c)"
    )


def test_the_terms_of_a_sum_are_counted_by_the_loops_that_stay() -> None:
    kinds = {"y": "f64[4]", "p": "i64[3]", "t": "f64[3, 9]"}
    body = "y += sum[i, c, p[i] == c](t[i, c])"
    assert "let c = p[i]" in after(search_to_gather, body, **kinds)
    for index in ("p[i] == c", "c == i + 1"):
        source = f"def f(y, p, t):\n    y += sum[i, c, {index}](t[i, c])\n"
        y, p, t = np.zeros(4), np.array([8, 0, 5]), np.arange(27.0).reshape(3, 9)
        pe.cd_from_source(source)(y, p, t)
        chosen = p if "p" in index else np.arange(3) + 1
        np.testing.assert_array_equal(y, np.full(4, t[np.arange(3), chosen].sum()))


def test_what_is_not_exactly_one_look_stays() -> None:
    keeps = [
        "y[n] = 1.0 + sum[c](where(c == p[n], t[n, c], 1.0))",  # the others add as well
        "y[n] = max[c](where(c == p[n], t[n, c], 0.0))",
        "y[n] = sum[c](where(c < p[n], t[n, c], 0.0))",
        "y[n] += sum[c](where(c == p[c % 4], t[n, c], 0.0))",  # the number depends on c
        "y[n] = sum[c in range(9)](where(c == p[n], t[n, min(c, 3)], 0.0))",  # no plain position
        "y[n] = sum[c in range(9)](where(c == p[n], t[n, max(2, c)], 0.0))",
        "for n in range(4):\n  for c in range(9):\n    if c == p[n]:\n      p[n] = c + 1",
    ]
    for body in keeps:
        text = after(search_to_gather, body, **TABLE)
        assert "for c in 0..9:" in text, text


def test_sums_of_floats_have_to_start_from_zero() -> None:
    body = """
    for n in range(4):
        for c in range(9):
            y[n] += where(c == p[n], t[n, c], 0.0)
    """
    assert "for c in 0..9:" in after(search_to_gather, body, **TABLE)
    whole = {"y": "i64[4]", "p": "i64[4]", "t": "i64[4, 9]"}
    integers = body.replace("0.0", "0")
    assert after(search_to_gather, integers, **whole) == (
        "for n in 0..4:\n    y[n] += t[n, p[n]] if 0 <= p[n] and p[n] < 9 else 0"
    )


def test_what_makes_an_array_whose_size_is_the_index_stays() -> None:
    body = """
    for c in range(4):
        if c == p[0]:
            u = np.zeros(4 - c)
            for s in range(3):
                u[1:] = u[:-1] + 1
            y[c:] += u
    """
    assert after(search_to_gather, body, **TABLE).startswith("for c in 0..4:")
    assert "let c = p[0]" in after(
        search_to_gather, body.replace("4 - c", "4").replace("[c:]", ""), **TABLE
    )
