"""What expressions, indices and domains are worth."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdInternalError
from plusequals.lowering.ir import loops
from plusequals.lowering.ir.assignments import Break
from plusequals.lowering.ir.evaluate import PythonWriter, State, compile_index, compile_value
from plusequals.lowering.ir.evaluate import symbol_key as key
from plusequals.lowering.ir.expressions import Domain, Expr, Reduce, Select
from plusequals.lowering.ir.indexing import (
    Affine,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.ir.ops import OPS, PAIR_OPS

from .build import (
    acc,
    aff,
    ap,
    at,
    bool_,
    i64,
    node,
    num,
    over,
    pos,
    procedure,
    program,
    read,
    rng,
    symbols,
)

I, J = symbols("i j")


def value(expr: Expr, **numbers: int) -> Any:
    state = State(print, {}, {key(s): numbers[s.name] for s in (I, J) if s.name in numbers})
    with np.errstate(all="ignore"):
        return compile_value(expr)(state)


def test_select_evaluates_only_the_chosen_side() -> None:
    x = node(0, "x", 3)
    expr = Select(ap("gt", pos(I), num(0, i64)), read(x, aff(I) - 1), num(-1.0))
    state = State(print, {0: np.float32([5, 6, 7])})
    found = []
    for state.numbers[key(I)] in range(3):
        found.append(float(compile_value(expr)(state)))
    assert found == [-1, 5, 6]


@pytest.mark.parametrize(("name", "found"), [("and", [False, True, True]), ("or", [True] * 3)])
def test_the_second_test_is_evaluated_where_the_first_leaves_it_open(
    name: str, found: list[bool]
) -> None:
    x = node(0, "x", 3)
    first = ap("gt" if name == "and" else "eq", pos(I), num(0, i64))
    expr = ap(name, first, ap("gt", read(x, aff(I) - 1), num(0)))
    state = State(print, {0: np.float32([5, 6, 7])})
    assert [bool(compile_value(expr)(state)) for state.numbers[key(I)] in range(3)] == found


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (minimum(var(I), var(J)), 3),
        (maximum(var(I), var(J)), 5),
        (multiply(var(I), var(J)), 15),
        (floordiv(var(I) * 3 - var(J), const(5)), 2),
        (floordiv(-var(I), var(J)), -2),
        (mod(var(J) - var(I), var(I)), 3),
        (var(I) * 2 - var(J) + 1, 8),
        (const(4), 4),
    ],
)
def test_index_arithmetic(index: Affine, wanted: int) -> None:
    assert compile_index(index)(State(print, {}, {key(I): 5, key(J): 3})) == wanted


def points(domain: Domain) -> list[tuple[int, ...]]:
    """What the symbols of a domain are at each of its points."""
    writer, seen = PythonWriter(), []
    names = "".join(f"{writer.symbol(symbol)}, " for symbol in domain.symbols)
    note = f"{writer.refer(seen.append)}(({names}))"
    writer.function(writer.points(domain, [note]))(State(print))
    return seen


def test_points_come_in_order_where_the_predicate_holds() -> None:
    domain = over(rng(I, 0, 3), rng(J, I, 3), where=ap("ne", pos(J), num(1, i64)))
    assert points(domain) == [(0, 0), (0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(("where", "count"), [(None, 1), (True, 1), (False, 0)])
def test_a_domain_without_ranges_is_one_point_or_none(where: bool | None, count: int) -> None:
    predicate = None if where is None else num(where, bool_)
    assert len(points(over(where=predicate))) == count


def test_a_domain_has_any_number_of_ranges() -> None:
    many = symbols(" ".join(f"i{n}" for n in range(30)))
    ends = [2 if n % 10 == 0 else 1 for n in range(30)]
    domain = over(*(rng(symbol, 0, end) for symbol, end in zip(many, ends, strict=True)))
    assert points(domain) == [*itertools.product(*map(range, ends))]


def test_an_expression_has_any_depth() -> None:
    expr: Expr = num(0, i64)
    for _ in range(150):
        expr = ap("add", expr, num(1, i64))
    assert value(expr) == 150


def test_node_without_storage_is_an_internal_error() -> None:
    with pytest.raises(CdInternalError, match="row#0 has no storage"):
        value(read(node(0, "row", I), 0))


def test_nan_constants_and_signed_zeros_survive() -> None:
    assert math.isnan(value(num(float("nan"))))
    assert np.signbit(value(num(-0.0)))


def test_reduce_inside_an_expression() -> None:
    (i,) = symbols("i")
    square = ap("mul", pos(i), pos(i))
    total = Reduce(OPS["add"], over(rng(i, 0, 4)), square, i64)
    last = Reduce(PAIR_OPS["argmax"], over(rng(i, 0, 4)), square, i64, aff(i))
    assert (value(total), value(last)) == (14, 3)


@pytest.mark.parametrize("n", [2**62, 2**63 - 1, -(2**63), 2**40 + 1])
def test_positions_wrap_where_numbers_of_64_bits_do(n: int) -> None:
    i = np.array([n])
    with np.errstate(all="ignore"):
        wanted: dict[Affine, Any] = {
            var(I) * 2: i * 2,
            var(I) + 1: i + 1,
            -var(I): -i,
            multiply(var(I), var(I)) * 3 + 5: i * i * 3 + 5,
            floordiv(multiply(var(I), var(I)), const(3)): i * i // 3,
            mod(var(I) * 2, const(7)): i * 2 % 7,
            minimum(var(I) * 2, var(I)): np.minimum(i * 2, i),
        }
    for index, numbers in wanted.items():
        assert value(pos(index), i=n) == numbers[0], index


def test_a_place_wraps_before_it_is_out_of_its_array() -> None:
    x = node(0, "x", 3)
    state = State(print, {0: np.float32([5, 6, 7])}, {key(I): 2**62})
    assert compile_value(read(x, var(I) * 4 + 1))(state) == 6
    with pytest.raises(CdInternalError):
        compile_value(read(x, var(I) * 4 + 3))(state)


def test_nothing_is_divided_by_zero() -> None:
    assert value(pos(floordiv(var(I), var(J))), i=5, j=0) == 0
    assert value(pos(mod(var(I), var(J))), i=5, j=0) == 0


def ran(of: loops.Program, array: np.ndarray) -> np.ndarray:
    """The array after a run on it."""
    run_program(of, [array], print)
    return array


def test_statements_are_as_deep_as_they_like_and_a_break_leaves_its_loop() -> None:
    many = symbols(" ".join(f"i{n}" for n in range(26)))
    x = node(0, "x", dtype=i64)
    body: tuple[loops.Stmt, ...] = (
        loops.Update(at(x), OPS["add"], num(1, i64)),
        loops.If(ap("eq", read(x), num(4, i64)), (Break(),)),
        loops.Update(at(x), OPS["add"], num(2, i64)),
    )
    for n, symbol in enumerate(many):
        body = (loops.If(ap("ge", read(x), num(0, i64)), body),)
        if n in (0, 12, 25):
            body = (loops.For(symbol, aff(0), aff(4), 1, body),)
        elif n % 2:
            body = (loops.For(symbol, aff(0), aff(1), 1, body),)
    assert ran(program((x,), (), *body), np.array(0)) == 3 + 1 + 15 * 4 * 3


def test_a_test_after_many_others_is_asked() -> None:
    x = node(0, "x", 2, dtype=i64)
    body: tuple[loops.Stmt, ...] = (loops.Store(at(x, 1), num(-1, i64)),)
    for n in reversed(range(150)):
        here = ap("eq", read(x, 0), num(n, i64))
        body = (loops.If(here, (loops.Store(at(x, 1), num(n * n, i64)),), body),)
    for given, wanted in ((0, 0), (149, 149**2), (150, -1)):
        assert ran(program((x,), (), *body), np.array([given, 7])).tolist() == [given, wanted]


def test_what_starts_from_nothing_needs_no_neutral_element() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 3, dtype=i64)
    p = procedure((x,), (), acc(at(x, i), "mod", num(4, i64), over(rng(i, 0, 3))))
    x_out = np.array([3, 6, 8])
    run_procedure(p, [x_out], print)
    assert x_out.tolist() == [3, 2, 0]
