"""Programs before, and the loops after: hoist."""

from __future__ import annotations

from plusequals.lowering.passes.licm import hoist

from ..shown import after


def test_work_leaves_as_many_loops_as_it_can() -> None:
    body = "y[i, j] = x[i, j] * exp(s) / log(t[i])"
    assert after(hoist, body, y="f32[4, 5]", x="f32[4, 5]", s="f32", t="f32[4]") == (
        "exp_s = exp(s)\n"
        "for i in 0..4:\n"
        "    log_t = log(t[i])\n"
        "    for j in 0..5:\n"
        "        y[i, j] = x[i, j] * exp_s / log_t"
    )


def test_dear_work_on_counters_alone_leaves() -> None:
    body = "for k in range(2, 9):\n    y[i, j] += sqrt(k) * x[i, j] / (1.0 - 0.9**n) + k"
    assert after(hoist, body, y="f64[4, 5]", x="f64[4, 5]", n="i64") == (
        "let n_2 = n\n"
        "difference = 1.0 - 0.9 ** f64(n_2)\n"
        "for k in 2..9:\n"
        "    sqrt_value = sqrt(f64(k))\n"
        "    for i in 0..4:\n"
        "        for j in 0..5:\n"
        "            y[i, j] += sqrt_value * x[i, j] / difference + f64(k)"
    )
    angles = "y[i, j] = x[i, j] * cos(0.1 * i) + (i + 2) * 3"
    assert after(hoist, angles, y="f32[4, 5]", x="f32[4, 5]") == (
        "for i in 0..4:\n"
        "    cos_product = f32(cos(0.1 * f64(i)))\n"
        "    for j in 0..5:\n"
        "        y[i, j] = x[i, j] * cos_product + f32(3*i + 6)"
    )


def test_what_the_loop_writes_stays() -> None:
    body = "for i in range(4):\n    y[i] = exp(x[0])\n    x[0] = y[i]"
    assert "exp_x" not in after(hoist, body, y="f32[4]", x="f32[4]")


def test_an_element_that_may_not_exist_is_not_read_early() -> None:
    body = "for i in range(n):\n    y[i % 4] = exp(x[2])"
    exists = after(hoist, body, y="f32[4]", x="f32[4]", n="i64")
    assert "\nexp_x = exp(x[2])\nfor i in" in exists
    guarded = "for i in range(4):\n    assert x[0] < 2\n    y[i] = exp(x[int(x[0])])"
    assert "exp_x = " not in after(hoist, guarded, y="f32[4]", x="f32[4]").split("for")[0]


def test_sums_of_products_stay_as_schedules_know_them() -> None:
    body = """
    for i in range(4):
        for k in range(5):
            for j in range(6):
                c[i, j] += 2 * a[i, k] * b[k, j]
    """
    shapes = {"c": "f32[4, 6]", "a": "f32[4, 5]", "b": "f32[5, 6]"}
    assert after(hoist, body, **shapes) == (
        "for i in 0..4:\n"
        "    for k in 0..5:\n"
        "        for j in 0..6:\n"
        "            c[i, j] += 2.0 * a[i, k] * b[k, j]"
    )
    dear = body.replace("2 * a[i, k]", "exp(a[i, k])")
    assert "        exp_a = exp(a[i, k])\n        for j in 0..6:" in after(hoist, dear, **shapes)


def test_a_side_of_a_choice_leaves_where_it_reads_what_exists_as_a_whole_choice_does() -> None:
    inner = "y[i, j] = where(x[i, j] > 0, exp(t[i]) + t[i] * 2, 0.0)"
    shapes = {"y": "f32[4, 5]", "x": "f32[4, 5]", "t": "f32[4]"}
    assert after(hoist, inner, **shapes) == (
        "for i in 0..4:\n"
        "    total = exp(t[i]) + t[i] * 2.0\n"
        "    for j in 0..5:\n"
        "        y[i, j] = total if x[i, j] > 0.0 else 0.0"
    )
    cheap = inner.replace("exp(t[i]) + ", "")
    assert "if x[i, j] > 0.0 else" in after(hoist, cheap, **shapes).split("j in")[1]
    unsure = inner.replace("t[i]", "t[i32(t[i])]")
    assert "total = " not in after(hoist, unsure, **shapes)
    whole = "y[i, j] = x[i, j] * sqrt(where(t[i] > 0, t[i], 1.0))"
    assert "    sqrt_value = sqrt(t[i] if t[i] > 0.0 else 1.0)\n    for j" in after(
        hoist, whole, **shapes
    )


def test_loops_after_one_another_share_names_until_something_is_written() -> None:
    body = """
    for i in range(4):
        y[i] = exp(s[0])
    for j in range(4):
        y[j] -= exp(s[0])
    s[0] = 2.0
    for k in range(4):
        y[k] += exp(s[0])
    """
    assert after(hoist, body, y="f32[4]", s="f32[1]") == (
        "exp_s = exp(s[0])\n"
        "for i in 0..4:\n"
        "    y[i] = exp_s\n"
        "for j in 0..4:\n"
        "    y[j] -= exp_s\n"
        "s[0] = 2.0\n"
        "exp_s_2 = exp(s[0])\n"
        "for k in 0..4:\n"
        "    y[k] += exp_s_2"
    )
