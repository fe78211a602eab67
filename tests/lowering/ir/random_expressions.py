"""Random typed expressions over nasty numbers, to hold rewriting rules to their word."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plusequals.lowering.ir import dtypes, indexing
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.evaluate import State, symbol_key
from plusequals.lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

TYPES = tuple(t for t in dtypes.ALL if t.kind in "biuf" and t is not dtypes.bfloat16)
COMPUTED = tuple(t for t in TYPES if t.compute is t)
I, J, N = Symbol("i", 0), Symbol("j", 1), Symbol("n", 2)
RANGES = (Range(I, const(0), const(8)), Range(J, var(I), var(I) + 3))
KNOWN = Bounds({N: (0, None)}).inside(RANGES[0]).inside(RANGES[1])
FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.7, -2.5, math.inf, -math.inf, math.nan, 1e-45, -1e-310,
          1e30, 2.0**31, -(2.0**63), 255.0, 4.0, 0.1)  # fmt: skip
INTS = (0, 1, -1, 2, 3, 7, 8, 31, 127, 128, 255, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_UNARY = ("neg", "abs", "sign", "floor", "ceil", "trunc", "rint", "sqrt", "recip", "relu", "sat01",
          "logical_not", "invert", "isnan", "signbit")  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "floordiv", "mod", "max", "min", "fmax", "eq", "ne", "lt",
           "le", "gt", "ge", "and", "or", "bitand", "bitor", "bitxor", "shl", "shr",
           "copysign")  # fmt: skip


def values(dtype: DType) -> tuple[bool | int | float, ...]:
    """Return the numbers of the lists that the type can hold."""
    match dtype.kind:
        case "b":
            return (False, True)
        case "f":
            with np.errstate(over="ignore"):
                return tuple(dtype.numpy.type(x).item() for x in FLOATS)
        case _:
            info = np.iinfo(dtype.name)
            return tuple(x for x in (*INTS, int(info.max)) if info.min <= x <= info.max)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes expressions whose reads are of two nodes of rank 0 for each type."""

    rng: random.Random

    def expression(self, dtype: DType, depth: int) -> Expr:
        """Return an expression of the type, at most that deep."""
        if depth == 0 or self.rng.random() < 0.1:
            return self._leaf(dtype)
        choice = self.rng.random()
        if choice < 0.12:
            test = self.expression(dtypes.bool_, depth - 1)
            return Select(
                test, self.expression(dtype, depth - 1), self.expression(dtype, depth - 1)
            )
        if choice < 0.3 or dtype.compute is not dtype:
            return Cast(self.expression(self.rng.choice(TYPES), depth - 1), dtype)
        return self._apply(dtype, depth) or self._leaf(dtype)

    def _apply(self, dtype: DType, depth: int) -> Expr | None:
        op = OPS[self.rng.choice(_BINARY if self.rng.random() < 0.75 else _UNARY)]
        of = dtype
        if op.result == "bool":
            if dtype is not dtypes.bool_:
                return None
            of = self.rng.choice((*COMPUTED, dtypes.int64))
        if of.kind not in op.admits or op.result == "real" and of is not dtype:
            return None
        first = self.expression(of, depth - 1)
        if op.arity == 1:
            return Apply(op, (first,), dtype)
        again = self.rng.random() < 0.15
        return Apply(op, (first, first if again else self.expression(of, depth - 1)), dtype)

    def _leaf(self, dtype: DType) -> Expr:
        choice = self.rng.random()
        if dtype is dtypes.int64 and choice < 0.4:
            return Position(self.index(2))
        if choice < 0.7:
            small = self.rng.random() < 0.5
            found = values(dtype)
            return Const(self.rng.choice(found[:5] if small else found), dtype)
        return Read(self.rng.choice(nodes_of(dtype)), ())

    def index(self, depth: int) -> Affine:
        """Return an index expression of the symbols I and J."""
        choice = self.rng.random()
        if depth == 0 or choice < 0.4:
            leaf = self.rng.choice((var(I), var(J), const(self.rng.randrange(-3, 9))))
            return leaf + self.rng.randrange(-2, 3)
        if choice < 0.6:
            left, right = self.index(depth - 1), self.index(depth - 1)
            return left * self.rng.choice((1, 2, -1, 8)) + right
        if choice < 0.8:
            build = self.rng.choice((indexing.minimum, indexing.maximum))
            return build(self.index(depth - 1), self.index(depth - 1))
        build = self.rng.choice((indexing.floordiv, indexing.mod))
        return build(self.index(depth - 1), const(self.rng.choice((1, 2, 3, 8, 16))))


def nodes_of(dtype: DType) -> tuple[Node, Node]:
    """Return the two nodes of a type."""
    first = 2 * dtypes.ALL.index(dtype)
    return Node(first, f"a_{dtype}", (), dtype), Node(first + 1, f"b_{dtype}", (), dtype)


def states(rng: random.Random, count: int) -> Iterator[State]:
    """Yield states with nasty values in every node, and positions inside of their ranges."""
    for _ in range(count):
        state = State(print)
        for dtype in TYPES:
            for node in nodes_of(dtype):
                state.arrays[node.id] = np.array(rng.choice(values(dtype)), dtype.numpy)
        first = rng.randrange(8)
        state.numbers.update({symbol_key(I): first, symbol_key(J): first + rng.randrange(3)})
        yield state
