"""Calls of functions with derivative rules, elaborated with and without these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.lowering.ir.assignments import Block
from plusequals.lowering.ir.walk import statements


@cd
def square(x: Any, power: Any = 2) -> Any:
    y = x**power
    return y


@square.vjp_rule(wrt="x")
def square_vjp(x: Any, d_y: Any, power: Any = 2) -> Any:
    return 100.0 * power * d_y * x


@cd
def loss(x: Any) -> Any:
    return np.sum(square(x))


def test_without_a_derivative_a_call_has_no_rule() -> None:
    procedure = loss.procedure(np.ones(3))
    blocks = [stmt for stmt in statements(procedure.body) if isinstance(stmt, Block)]
    assert all(block.rule is None for block in blocks)
    derived = pe.gradient(loss, wrt="x").procedure(np.ones(3))
    blocks = [stmt for stmt in statements(derived.body) if isinstance(stmt, Block)]
    assert blocks and all(block.rule is None for block in blocks)


def test_arguments_that_a_call_leaves_out_have_the_defaults_of_the_rule() -> None:
    assert np.array_equal(pe.gradient(loss, wrt="x")(np.ones(3)), np.full(3, 200.0))


def test_keywords_and_numbers_reach_the_rule() -> None:
    @cd
    def cubes(x: Any) -> Any:
        return np.sum(square(x, power=3))

    assert np.array_equal(pe.gradient(cubes, wrt="x")(np.ones(3)), np.full(3, 300.0))


def test_a_rule_may_call_its_function() -> None:
    @cd
    def exponential(x: Any) -> Any:
        y = np.exp(x)
        return y

    @exponential.vjp_rule
    def exponential_vjp(x: Any, d_y: Any) -> Any:
        return d_y * exponential(x)

    x = np.linspace(0.0, 1.0, 4)
    g = pe.gradient(cd(lambda x: np.sum(exponential(x))), wrt="x")
    assert np.allclose(g(x), np.exp(x))
    assert np.allclose(pe.jvp(g, wrt="x")(x, np.ones(4)), np.exp(x))


def test_integers_that_are_overwritten_later_are_those_of_the_call() -> None:
    @cd
    def taken(x: Any, at: Any) -> Any:
        y = x[at]
        return y

    @taken.vjp_rule(wrt="x")
    def taken_vjp(x: Any, at: Any, d_y: Any) -> Any:
        d_x = np.zeros_like(x)
        np.add.at(d_x, at, d_y)
        return d_x

    @cd
    def total(x: Any) -> Any:
        at = np.array([0, 1])
        s = 0.0
        for _ in range(2):
            s += np.sum(taken(x, at) ** 2)
            at[:] = at + 1
        return s

    x = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(pe.gradient(total, wrt="x")(x), [2.0, 8.0, 6.0])


def test_selections_and_any_number_of_arguments_are_refused() -> None:
    @cd
    def summed(*parts: Any) -> Any:
        y = parts[0] + parts[1]
        return y

    summed.vjp_rule(lambda d_y: (d_y, d_y), wrt=())
    f = cd(lambda x: np.sum(summed(x, x)))
    with pytest.raises(TypeError, match="CD0487.*takes any number of arguments"):
        pe.gradient(f, wrt="x")(np.ones(3))
    g = cd(lambda x: np.sum(square(x[x > 0.0])))
    with pytest.raises(TypeError, match="CD0487.*gets or returns a selection"):
        pe.gradient(g, wrt="x")(np.ones(3))
