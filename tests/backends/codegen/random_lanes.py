"""Random loops over lanes, for a search: emitted as vectors they give the bits of the loops.

python -m tests.backends.codegen.random_lanes --programs 1000 --seed 2
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from plusequals.backends.codegen.c_printer import print_program as emit
from plusequals.backends.codegen.vector_variables import vector_width
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.dtypes import DType
from plusequals.lowering.ir.expressions import Cast, Const, Expr, Read, Select
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import For, Kernel, Program, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.placement import place_nodes

from ...lowering.ir.build import ap, at, pos, symbols
from .harness import FFI, VECTORS, load

LANES, LOOPS, SPARE = 16, 40, 8
(lane,) = symbols("lane")
REALS = (dtypes.float32, dtypes.float64)
COUNTS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
READ = (*REALS, dtypes.bool_, dtypes.int8, *COUNTS)
SIZE = LANES + SPARE
GIVEN = {dtype: Node(n, f"x_{dtype}", (const(SIZE),), dtype) for n, dtype in enumerate(READ)}
SCALARS = {dtype: Node(20 + n, f"s_{dtype}", (), dtype) for n, dtype in enumerate(READ)}
MADE = {dtype: Node(40 + n, f"y_{dtype}", (const(LOOPS * LANES),), dtype)
        for n, dtype in enumerate((*REALS, *COUNTS))}  # fmt: skip
NAMED = {dtype: Node(60 + n, f"t_{dtype}", (), dtype) for n, dtype in enumerate(REALS)}
TRUTHS = Node(70, "truths", (const(SIZE),), dtypes.bool_)
"""Bools that the program made itself: local arrays are typed otherwise than parameters."""
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


@dataclass(slots=True)
class Maker:
    """Makes loops over lanes whose values may be of one lane, of all of them, or of no array."""

    rng: random.Random
    named: set[DType] = field(default_factory=set)

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def loop(self, number: int) -> tuple[Stmt, ...]:
        """Return the loop of that number, which writes a stretch of its own, and its sums."""
        self.named.clear()
        if self.chance(0.2):
            return self._counting(number)
        body = [self.statement(number) for _ in range(self.rng.randrange(1, 4))]
        return (For(lane, const(0), const(LANES), 1, tuple(body), "vector"),)

    def _counting(self, number: int) -> tuple[Stmt, ...]:
        """Return loops that count in lanes."""
        dtype = self.rng.choice(COUNTS)
        sums = Node(100 + number, "sums", (const(LANES),), dtype, purpose="lanes")
        first = self.rng.choice((Const(0, dtype), Read(SCALARS[dtype], ())))
        value = Cast(self.test(2), dtype) if self.chance(0.8) else self.element(GIVEN[dtype])
        loops = (
            Store(at(sums, lane), first),
            Update(at(sums, lane), OPS["add"], value),
            Store(at(MADE[dtype], var(lane) + number * LANES), Read(sums, (var(lane),))),
        )
        return tuple(For(lane, const(0), const(LANES), 1, (one,), "vector") for one in loops)

    def statement(self, number: int) -> Stmt:
        dtype = self.rng.choice(REALS)
        if self.chance(0.2):
            value = self.value(dtype, 3)
            self.named.add(dtype)
            return Store(at(NAMED[dtype]), value)
        access = at(MADE[dtype], var(lane) + number * LANES)
        if self.chance(0.1):  # as schedules fuse: gcc 12 gives `-fma(a, b, c)` the sign of -a*b - c
            return Store(access, ap("fma", *(self.value(dtype, 2) for _ in range(3))))
        if self.chance(0.4):
            return Store(access, self.value(dtype, 3))
        op = self.rng.choice(("add", "add", "mul", "max", "min"))
        return Update(access, OPS[op], self.value(dtype, 3))

    def value(self, dtype: DType, depth: int) -> Expr:
        """Return an expression of floats."""
        if depth == 0 or self.chance(0.2):
            return self.leaf(dtype)
        again = depth - 1
        match self.rng.randrange(7):
            case 0 | 1 | 2:
                name = self.rng.choice(("add", "sub", "mul", "div", "max", "min"))
                return ap(name, self.value(dtype, again), self.value(dtype, again))
            case 3:
                return ap("neg", self.value(dtype, again))
            case 4 if dtype is dtypes.float64:
                return Cast(self.value(dtypes.float32, again), dtype)
            case 5:
                bound = ap("lt", pos(var(lane)), Const(self.rng.randrange(LANES + 2), dtypes.int64))
                return Select(bound, self.leaf(dtype), Const(self.rng.choice((0.0, -0.0)), dtype))
            case _:
                test = self.test(again)
                return Select(test, self.value(dtype, again), self.value(dtype, again))

    def test(self, depth: int) -> Expr:
        """Return a test, of each lane or of all."""
        again = depth - 1
        if depth <= 0 or self.chance(0.3):
            return self.leaf(dtypes.bool_)
        match self.rng.randrange(5):
            case 0 | 1:
                dtype = self.rng.choice((*REALS, *COUNTS))
                sides = (self.leaf(dtype), self.leaf(dtype))
                return ap(self.rng.choice(_COMPARED), *sides)
            case 2:
                name = self.rng.choice(("bitand", "bitor", "bitxor"))
                return ap(name, self.test(again), self.test(again))
            case 3:
                return ap("logical_not", self.test(again))
            case _:
                one, other = self.test(again), self.test(again)
                known = Const(self.chance(0.5), dtypes.bool_)
                return Select(one, known, other) if known.value else Select(one, other, known)

    def leaf(self, dtype: DType) -> Expr:
        """Return an element of each lane, or what is the same for all of them."""
        if dtype in self.named and self.chance(0.3):
            return Read(NAMED[dtype], ())
        of = TRUTHS if dtype is dtypes.bool_ and self.chance(0.5) else GIVEN[dtype]
        match self.rng.randrange(6):
            case 0 | 1 | 2:
                return self.element(of)
            case 3:
                return Read(of, (const(self.rng.randrange(SIZE)),))
            case 4:
                other = self.rng.choice(READ)
                number = Read(GIVEN[other], (const(self.rng.randrange(SIZE)),))
                return number if other is dtype else Cast(number, dtype)
            case _:
                return Read(SCALARS[dtype], ())

    def element(self, of: Node) -> Expr:
        return Read(of, (var(lane) + self.rng.randrange(SPARE),))


def made(seed: int) -> tuple[Program, int]:
    """Return the program of a seed, and how many of its loops are emitted as vectors."""
    maker = Maker(random.Random(seed))
    k = Symbol("k", 99)
    fill = For(k, const(0), const(SIZE), 1, (
        Store(at(TRUTHS, k), ap("gt", Read(GIVEN[dtypes.float32], (var(k),)),
                                Const(0.0, dtypes.float32))),
    ))  # fmt: skip
    loops = [loop for number in range(LOOPS) for loop in maker.loop(number)]
    sums = {stmt.access.node for loop in loops if isinstance(loop, For) for stmt in loop.body
            if isinstance(stmt, Store) and stmt.access.node.label == "sums"}  # fmt: skip
    given = [Parameter(node, False) for node in (*GIVEN.values(), *SCALARS.values())]
    program = Program(
        "f", (*(Parameter(node, True) for node in MADE.values()), *given),
        (*NAMED.values(), TRUTHS, *sorted(sums, key=lambda one: one.id)), (),
        (Kernel("f", (fill, *loops)),),
    )  # fmt: skip
    verify_program(program)
    data = frozenset(node.id for node in (*GIVEN.values(), *SCALARS.values(), TRUTHS))
    return program, sum(bool(vector_width(one, 256, data)) for one in loops if isinstance(one, For))


def inputs(program: Program, seed: int) -> Iterator[NDArray[np.generic]]:
    """Yield an array for each parameter, with what is odd among floats."""
    rng = np.random.default_rng(seed)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 1e-40]
    for parameter in program.parameters:
        shape, dtype = parameter.node.static_shape, parameter.node.dtype
        assert shape is not None
        numbers = rng.integers(0 if dtype.kind in "bu" else -3, 4, shape).astype(dtype.name)
        if dtype.kind == "f":
            chosen = rng.choice(odd, shape)
            numbers = np.where(rng.random(shape) < 0.25, chosen, rng.standard_normal(shape))
        yield np.array(numbers, dtype.name)


def differences(seed: int, bits: int) -> list[str]:
    """Return what the vectors of a program give otherwise than its loops."""
    program, _ = made(seed)
    arrays = list(inputs(program, seed))
    source = emit(program, replace(place_nodes(program), vector_bits=bits))
    library = load(
        source.text, f"int {source.entry}(void **);", [*VECTORS, "-Wno-parentheses", "-O3"]
    )
    mine = [np.array(one) for one in arrays]
    pointers = [FFI.cast("void *", one.ctypes.data) for one in mine]
    entry = getattr(library, source.entry)
    assert entry(FFI.new("void *[]", [*pointers, *[FFI.NULL] * 300])) == 0
    run_program(program, arrays, lambda text: None)
    found = []
    for parameter, one, other in zip(program.parameters, mine, arrays, strict=True):
        same = (one == other) & (np.signbit(one) == np.signbit(other) if one.dtype.kind == "f"
                                 else True) | (one != one) & (other != other)  # fmt: skip
        for cell in np.flatnonzero(~same):
            text = f"{parameter.node.label}[{cell}], loop {cell // LANES}, lane {cell % LANES}"
            found.append(f"{text}: {one.flat[cell]} for {other.flat[cell]}")
    return found


def main() -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = 0
    for number in range(options.programs):
        seed, bits = options.seed * 1_000_000 + number, (128, 256)[number % 2]
        if differ := differences(seed, bits):
            found += 1
            print(f"\n{seed} of {bits} bits: {'; '.join(differ[:4])}")
            print(print_program(made(seed)[0])) if found == 1 else None
        print(f"\r{number + 1}/{options.programs} programs of {LOOPS} loops, {found} differ",
              end="", file=sys.stderr, flush=True)  # fmt: skip
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
