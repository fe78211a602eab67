"""The table of rules: every rule shows what it does, and is tried for some operation."""

from __future__ import annotations

import inspect

import pytest

from plusequals.lowering.ir import algebra
from plusequals.lowering.ir.algebra import RULES, fold_constants
from plusequals.lowering.ir.expressions import Cast, Const
from plusequals.lowering.ir.ops import OPS

from .build import ap, f32, f64, i32, node, num, read

x = read(node(0, "x"))
USED = {rule for rules in RULES.values() for rule in rules}


def test_rules_are_of_known_operations_and_all_are_used() -> None:
    assert set(RULES) <= set(OPS)
    names = {rule.__name__ for rule in USED}
    taking = {
        name
        for name, function in inspect.getmembers(algebra, inspect.isfunction)
        if str(inspect.signature(function)) == "(expr: 'Apply') -> 'Expr | None'"
    }
    assert names == taking


@pytest.mark.parametrize("rule", sorted(USED, key=lambda rule: rule.__name__))
def test_every_rule_shows_what_it_does(rule: algebra.Rule) -> None:
    assert rule.__doc__ is not None and "`" in rule.__doc__ or "part of" in (rule.__doc__ or "")


def test_zeros_of_different_sign_are_not_the_same() -> None:
    assert ap("add", x, num(0.0)) != ap("add", x, num(-0.0))
    assert ap("add", x, num(-0.0)) == ap("add", x, num(-0.0))


def test_only_what_every_machine_rounds_alike_is_computed() -> None:
    assert fold_constants(ap("add", num(0.1), num(0.2))) == Const(0.30000001192092896, f32)
    assert fold_constants(ap("sqrt", num(2.0, f64))) == Const(2.0**0.5, f64)
    assert fold_constants(ap("exp", num(1.0))) is None
    assert fold_constants(ap("pow", num(2.0), num(0.5))) is None
    assert fold_constants(ap("pow", num(2, i32), num(5, i32))) == Const(32, i32)
    assert fold_constants(ap("sqrt", num(-1.0))) is None, "which NaN is for the machine to say"
    assert fold_constants(ap("mod", num(1, i32), num(0, i32))) is None
    assert fold_constants(Cast(num(300.7), i32)) == Const(300, i32)
