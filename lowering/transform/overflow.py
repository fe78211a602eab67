"""Loop versioning on large integers: tests under which index arithmetic does not overflow.

An index letter, a size and the variable of a loop are as small as what the machine can hold or
count to. An integer that is read once (`Let`) may be anything: `i + k >= 0` is `i >= -k` for small
`k` only. Transformations that solve for `i` keep the original loop for other values.

>>> from plusequals.lowering.ir.printer import print_expr
>>> program = lowered("y[i] = x[wrap(i + k)]", y="f32[8]", x="f32[8]", k="i64")
>>> (k,) = find_unbounded(program)
>>> i = Symbol("i", -1)
>>> for test in overflow_tests([var(i) + var(k) * 3], frozenset((k,))):
...     print(print_expr(test))
-144115188075855872 <= k
k <= 144115188075855872
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir import dtypes
from ..ir.assignments import Let
from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import Apply, Const, Expr, Position
from ..ir.indexing import Affine, Quasi, Symbol, var
from ..ir.loops import Program
from ..ir.ops import OPS
from ..ir.walk import statements

SAFE_BITS = 60
"""Positions have fewer bits, and sums of some numbers of fewer bits do not overflow."""


def find_unbounded(program: Program) -> frozenset[Symbol]:
    """Return the symbols of a program that are bound to integers of any magnitude."""
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    unbounded: set[Symbol] = set()
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            if isinstance(stmt, Let) and not _is_bounded(stmt.value, bounds, unbounded):
                unbounded.add(stmt.symbol)
    return frozenset(unbounded)


def overflow_tests(indices: Iterable[Affine], unbounded: frozenset[Symbol]) -> list[Expr]:
    """Return the tests of unbounded symbols under which no partial sum of these index expressions
    overflows; see `has_unbounded_products` for what they do not cover."""
    weight: dict[Symbol, int] = dict.fromkeys(unbounded, 0)
    for index in indices:
        total = 1 + sum(abs(k) for _, k in index.terms)
        for symbol in index.symbols() & unbounded:
            weight[symbol] = max(weight[symbol], total)
    tests: list[Expr] = []
    for symbol, total in sorted(weight.items(), key=lambda entry: entry[0].serial):
        if total:
            tests += magnitude_tests(symbol, 1 << SAFE_BITS - (total - 1).bit_length())
    return tests


def magnitude_tests(symbol: Symbol, most: int) -> Iterator[Expr]:
    """Yield the tests that a symbol is between `-most` and `most`."""
    here = Position(var(symbol))
    for left, right in (
        (Const(-most, dtypes.int64), here),
        (here, Const(most, dtypes.int64)),
    ):
        yield Apply(OPS["le"], (left, right), dtypes.bool_)


def has_unbounded_products(index: Affine, unbounded: frozenset[Symbol]) -> bool:
    """Whether a product in an index expression has a factor of any magnitude."""
    return any(
        isinstance(atom, Quasi)
        and (
            (atom.op == "mul" and not Affine(((atom, 1),)).symbols().isdisjoint(unbounded))
            or has_unbounded_products(atom.left, unbounded)
            or has_unbounded_products(atom.right, unbounded)
        )
        for atom, _ in index.terms
    )


def _is_bounded(value: Expr, bounds: Bounds, unbounded: set[Symbol]) -> bool:
    """Whether an integer surely has few bits."""
    if isinstance(value, Position):
        return _is_bounded_index(value.index, unbounded)
    low, high = bounds.value(value)
    most = 1 << SAFE_BITS
    return low is not None and -most <= low and high is not None and high <= most


def _is_bounded_index(index: Affine, unbounded: set[Symbol]) -> bool:
    """Whether an index expression is one of sizes and positions; a remainder is less than its
    divisor."""
    for atom, _ in index.terms:
        match atom:
            case Symbol():
                if atom in unbounded:
                    return False
            case Quasi("mod", _, right):
                if not _is_bounded_index(right, unbounded):
                    return False
            case Quasi(_, left, right):
                if not all(_is_bounded_index(side, unbounded) for side in (left, right)):
                    return False
    return True
