"""Programs before, and the loops after: cse."""

from __future__ import annotations

from plusequals.lowering.ir import loops
from plusequals.lowering.passes.cse import cse

from ..ir.build import ap, at, node, num, program, read
from ..shown import after, text_of


def test_statements_share_until_something_read_is_written() -> None:
    body = """
    for i in range(4):
        a[i] = x[i] * y[i]
        b[i] = x[i] * y[i] + 1
        x[i] = 0.0
        b[i] += x[i] * y[i]
    """
    assert after(cse, body, a="f32[4]", b="f32[4]", x="f32[4]", y="f32[4]") == (
        "for i in 0..4:\n"
        "    product = x[i] * y[i]\n"
        "    a[i] = product\n"
        "    b[i] = product + 1.0\n"
        "    x[i] = 0.0\n"
        "    b[i] += x[i] * y[i]"
    )


def test_the_largest_equal_work_is_named_and_smaller_work_inside() -> None:
    body = "y[i] = exp(x[i] + 1) * exp(x[i] + 1) + (x[i] + 1)"
    assert after(cse, body, y="f32[4]", x="f32[4]") == (
        "for i in 0..4:\n"
        "    total = x[i] + 1.0\n"
        "    exp_total = exp(total)\n"
        "    y[i] = exp_total * exp_total + total"
    )


def test_sides_of_a_choice_use_names_but_get_none() -> None:
    one = "y[i] = where(x[i] > 0, exp(x[i]), exp(x[i]) + 1)"
    assert "exp_x" not in after(cse, one, y="f32[4]", x="f32[4]")
    two = "y[i] = exp(x[i]) + where(x[i] > 0, exp(x[i]), 1.0)"
    assert after(cse, two, y="f32[4]", x="f32[4]") == (
        "for i in 0..4:\n    exp_x = exp(x[i])\n    y[i] = exp_x + (exp_x if x[i] > 0.0 else 1.0)"
    )


def test_zeros_of_different_sign_are_different() -> None:
    x, y = node(0, "x"), node(1, "y")
    first, second = (ap("add", read(x), num(zero)) for zero in (0.0, -0.0))
    same = program((y,), (x,), loops.Store(at(y), ap("mul", first, second)))
    assert text_of(cse(same)) == "y = (x + 0.0) * (x + -0.0)"


def test_loops_and_branches_use_what_was_computed_before_them() -> None:
    body = """
    for i in range(4):
        y[i] = exp(x[i])
        for j in range(3):
            z[i, j] = exp(x[i]) * j
        if y[i] > 2:
            y[i] += exp(x[i])
    """
    assert after(cse, body, y="f64[4]", z="f64[4, 3]", x="f64[4]") == (
        "for i in 0..4:\n"
        "    exp_x = exp(x[i])\n"
        "    y[i] = exp_x\n"
        "    for j in 0..3:\n"
        "        z[i, j] = exp_x * f64(j)\n"
        "    if y[i] > 2.0:\n"
        "        y[i] += exp_x"
    )


def test_a_loop_that_writes_what_is_read_shares_nothing_with_before() -> None:
    body = """
    y[0] = exp(x[0])
    for j in range(3):
        y[j] = exp(x[0])
        x[0] = j
    """
    assert "exp_x" not in after(cse, body, y="f64[4]", x="f64[4]")
