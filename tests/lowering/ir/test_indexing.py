"""Index expressions mean what their construction says, and constructors normalise."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

from plusequals.lowering.ir import indexing
from plusequals.lowering.ir.indexing import (
    QUASI_BUILDERS,
    Affine,
    Quasi,
    Symbol,
    const,
    evaluate,
    floordiv,
    from_terms,
    maximum,
    minimum,
    mod,
    multiply,
    substitute,
    var,
)

from .build import symbols

I, J, N = LETTERS = symbols("i j n")
NUMBERS = st.integers(-9, 9)
VALUES = st.fixed_dictionaries(dict.fromkeys(LETTERS, NUMBERS))
MEANING: dict[str, Callable[[int, int], int]] = {
    "min": min, "max": max, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
}  # fmt: skip


def _combine(inner: st.SearchStrategy[Affine]) -> st.SearchStrategy[Affine]:
    divisors = st.integers(-6, 6).filter(bool).map(const)
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, NUMBERS),
        st.builds(lambda a, k: a + k, inner, NUMBERS),
        st.builds(lambda a, k: a - k, inner, NUMBERS),
        st.builds(lambda a: -a, inner),
        st.builds(minimum, inner, inner),
        st.builds(maximum, inner, inner),
        st.builds(multiply, inner, inner),
        st.builds(floordiv, inner, divisors),
        st.builds(mod, inner, divisors),
    )


AFFINE = st.recursive(
    st.sampled_from(LETTERS).map(var) | NUMBERS.map(const), _combine, max_leaves=6
)


@given(AFFINE, AFFINE, NUMBERS, VALUES)
def test_sums_and_multiples(
    left: Affine, right: Affine, factor: int, values: dict[Symbol, int]
) -> None:
    a, b = evaluate(left, values), evaluate(right, values)
    assert evaluate(left + right, values) == a + b
    assert evaluate(left - right, values) == a - b
    assert evaluate(left * factor, values) == a * factor
    assert evaluate(left + factor, values) == a + factor
    assert evaluate(left - factor, values) == a - factor
    assert evaluate(-left, values) == -a


@given(st.sampled_from(sorted(MEANING)), AFFINE, AFFINE, VALUES)
def test_constructors(op: str, left: Affine, right: Affine, values: dict[Symbol, int]) -> None:
    b = evaluate(right, values)
    if op in ("floordiv", "mod"):
        assume(b != 0 and right.constant != 0)
    built = QUASI_BUILDERS[op](left, right)
    assert evaluate(built, values) == MEANING[op](evaluate(left, values), b)


@given(AFFINE, st.dictionaries(st.sampled_from(LETTERS), AFFINE), VALUES)
def test_substitution_agrees_with_evaluation(
    index: Affine, new: dict[Symbol, Affine], values: dict[Symbol, int]
) -> None:
    then = {symbol: evaluate(new.get(symbol, var(symbol)), values) for symbol in LETTERS}
    assert evaluate(substitute(index, new), values) == evaluate(index, then)


@given(AFFINE)
def test_expressions_are_normal(index: Affine) -> None:
    assert all(factor != 0 for _, factor in index.terms)
    assert len({atom for atom, _ in index.terms}) == len(index.terms)
    assert index + 0 == index * 1 == index == index * -1 * -1
    assert (index - index) == const(0)
    assert substitute(index, {s: var(s) for s in LETTERS}) == index


@given(AFFINE, AFFINE)
def test_sums_have_their_terms_in_order(left: Affine, right: Affine) -> None:
    totals = dict(left.terms)
    for atom, factor in right.terms:
        totals[atom] = totals.get(atom, 0) - factor
    in_order = from_terms(totals, left.offset - right.offset)
    assert left - right == in_order
    assert hash(left - right) == hash(in_order)


@given(AFFINE, AFFINE)
def test_sums_commute(left: Affine, right: Affine) -> None:
    assert left + right == right + left
    assert multiply(left, const(3)) == multiply(const(3), left) == left * 3


@given(st.sampled_from(["min", "max", "mul"]), AFFINE, AFFINE)
def test_commutative_constructors_commute(op: str, left: Affine, right: Affine) -> None:
    assert QUASI_BUILDERS[op](left, right) == QUASI_BUILDERS[op](right, left)


def test_order_of_terms_tells_symbols_of_one_name_apart() -> None:
    one, two = minimum(var(I), var(N)), minimum(var(Symbol("i", 9)), var(N))
    assert one + two == two + one
    assert one != two


def test_what_folds() -> None:
    i, n = var(I), var(N)
    assert minimum(i, i + 3) == i
    assert maximum(i, i + 3) == i + 3
    assert floordiv(i * 4 + n * 8 + 6, const(4)) == i + n * 2 + 1
    assert mod(i * 4 + 6, const(4)) == const(2)
    assert floordiv(i, const(1)) == i
    assert mod(i, const(1)) == const(0)
    assert multiply(const(3), i) == i * 3


def test_views_of_an_expression() -> None:
    i, j = var(I), var(J)
    assert (const(4).constant, i.constant) == (4, None)
    assert (i.symbol, (i + 1).symbol, (i * 2).symbol, const(0).symbol) == (I, None, None, None)
    tail = minimum(i * 4 + 4, var(N)) + j * 3
    assert tail.symbols() == {I, J, N}
    assert (tail.coefficient(J), tail.coefficient(I)) == (3, 0)
    assert tail.terms[-1][0] == Quasi("min", i * 4 + 4, var(N))


def test_show() -> None:
    assert indexing.affine_text(var(I) * 2 - var(J) + 1) == "2*i - j + 1"
    assert indexing.affine_text(-var(I)) == "-i"
    assert indexing.affine_text(const(-3)) == "-3"
    assert indexing.affine_text(var(I), lambda s: f"v{s.serial}") == "v0"
    assert repr(minimum(var(I), var(N))) == "min(i, n)"


def test_a_remainder_keeps_the_factor_nearest_to_zero() -> None:
    i, n = var(I), var(N)
    assert mod(i - n, const(1000)).terms[0][0] == Quasi("mod", i - n, const(1000))
    assert mod(i + n * 999, const(1000)) == mod(i - n, const(1000))
    assert mod(-i, const(2)) == mod(i, const(2))
