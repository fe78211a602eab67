"""What tests of kernels have in common: loops of a few lines, and whether a kernel means them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.analysis.parallel_band import Facts, facts_of, trip_count
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.ir.fresh import Fresh, fresh_for
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Comment, For, Program, Stmt
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.rewrite import map_statements
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target
from tests.lowering.shown import lowered

Array = np.ndarray[Any, Any]


class Case:
    """The loops of a function, after all passes."""

    def __init__(self, body: str, exact: bool = False, **arrays: str) -> None:
        program, _ = optimize(lowered(body, **arrays), Target("cuda"))
        plain = tuple(s for s in program.kernels[0].body if not isinstance(s, Comment))
        self.program = replace(program, kernels=(replace(program.kernels[0], body=plain),))
        self.facts: Facts = facts_of(self.program, exact)
        self.fresh: Fresh = fresh_for(self.program)
        nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
        self.nodes: dict[int, Node] = {node.id: node for node in nodes}

    @property
    def body(self) -> tuple[Stmt, ...]:
        return self.program.kernels[0].body

    @property
    def last(self) -> int:
        """The place of the last loop."""
        return max(at for at, stmt in enumerate(self.body) if isinstance(stmt, For))

    def loop(self, at: int | None = None) -> For:
        """Return a loop of the function, the last if not told."""
        found = self.body[self.last if at is None else at]
        assert isinstance(found, For)
        return found

    def with_kernel(self, made: Sequence[Stmt], at: int | None = None) -> Program:
        """Return the program with kernels in the place of a loop, the last if not told."""
        where = self.last if at is None else at
        body = (*self.body[:where], *made, *self.body[where + 1 :])
        program = replace(self.program, kernels=(replace(self.program.kernels[0], body=body),))
        out = self.fresh.declared(program)
        verify_program(out)
        return out

    def assert_same(self, made: Sequence[Stmt], at: int | None = None, seed: int = 0) -> None:
        """Fail unless kernels do what a loop did, in both orders of blocks and threads."""
        rng = np.random.default_rng(seed)
        arrays = [filled(p.node, rng) for p in self.program.parameters]
        expected = ran(self.program, arrays)
        program = self.with_kernel(made, at)
        for one in (program, backwards(program)):
            for got, want in zip(ran(one, arrays), expected):
                if self.facts.exact or want.dtype.kind not in "fc":
                    assert got.tobytes() == want.tobytes(), print_program(one)
                else:
                    close = np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
                    assert close, print_program(one)

    def assert_scheduled(
        self, made: Program, given: Callable[[int], list[Array]], seeds: int
    ) -> None:
        """Fail unless what a pass made, and the whole schedule in both orders of blocks and
        threads, leave the bits of the program, or fail as it does, for arguments of all seeds."""
        whole = map_program(self.program, Target("cuda"), exact=True).program
        for program in (made, whole, backwards(whole)):
            verify_program(program)
            for seed in range(seeds):
                try:
                    want = ran(self.program, given(seed))
                except CdIndexError as error:
                    with pytest.raises(CdIndexError, match=str(error).splitlines()[0][-40:]):
                        ran(program, given(seed))
                    continue
                got = ran(program, given(seed))
                assert [a.tobytes() for a in got] == [a.tobytes() for a in want], seed


def filled(node: Node, rng: np.random.Generator) -> Array:
    """Return an array for a parameter; integers are small, and no index is out of range."""
    shape = node.static_shape
    assert shape is not None
    if node.dtype.kind in "iu":
        return rng.integers(0, 8, shape).astype(node.dtype.numpy)
    return (rng.integers(-64, 64, shape) / 16).astype(node.dtype.numpy)


def ran(program: Program, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays after a run on copies of them, results behind."""
    held = [np.array(array) for array in arrays]
    results = [np.zeros(n.static_shape or (), n.dtype.numpy) for n in program.results]
    run_program(program, [*held, *results], lambda text: None)
    return [*held, *results]


def backwards(program: Program) -> Program:
    """Return a program whose blocks and threads run from the last to the first."""

    def turned(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.kind not in ("block", "thread"):
            return (stmt,)
        last = stmt.lo + (trip_count(stmt) - 1) * stmt.step
        return (replace(stmt, lo=last, hi=stmt.lo - stmt.step, step=-stmt.step),)

    (kernel,) = program.kernels
    return replace(program, kernels=(replace(kernel, body=map_statements(kernel.body, turned)),))
