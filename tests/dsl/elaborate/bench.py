"""Arrays of an elaboration that has nothing around it, and what the interpreter makes of them."""

from __future__ import annotations

import numpy as np

from plusequals.base.diagnostic import NOWHERE
from plusequals.dsl.values.builder import Context
from plusequals.dsl.values.types import BOOL, TRUE, kind_of_number
from plusequals.dsl.values.values import Array, Scalar
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Parameter, Procedure
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.verify import verify_procedure


class Bench:
    """A context and the arrays behind its parameters."""

    def __init__(self) -> None:
        self.ctx = Context("f")
        self.arrays: dict[Node, np.ndarray] = {}

    def array(self, label: str, content: np.ndarray) -> Array:
        """Return a NumPy array as an array of the elaboration."""
        dtype = dtypes.from_numpy(content.dtype)
        assert dtype is not None
        self.ctx.serial += 1
        node = Node(self.ctx.serial, label, tuple(map(const, content.shape)), dtype)
        self.arrays[node] = content
        return self.ctx.whole(node, NOWHERE)

    def number(self, label: str, content: np.generic) -> Scalar:
        """Return a NumPy scalar as a run-time number."""
        kind = kind_of_number(content)
        assert kind is not None
        node = self.array(label, np.array(content)).element
        assert node is not None
        return Scalar(Read(node.node, ()), kind)

    def values(self, array: Array) -> np.ndarray:
        """Return the elements of an array after what was emitted so far has run."""
        return self._run(array)[1]

    def contents(self) -> list[np.ndarray]:
        """Return what the given arrays hold after what was emitted so far has run."""
        return self._run(Array((), (), TRUE, BOOL))[0]

    def _run(self, array: Array) -> tuple[list[np.ndarray], np.ndarray]:
        ctx, count = self.ctx, len(self.ctx.locals)
        with ctx.block() as copy:
            made = ctx.materialize(array, "made", NOWHERE).element
        assert made is not None
        others, ctx.locals[count:] = tuple(ctx.locals[:count]), []
        body = (*ctx.prologue, *ctx.out, *copy)
        parameters = tuple(Parameter(node, True) for node in self.arrays)
        procedure = Procedure("f", parameters, others, (made.node,), body, NOWHERE)
        verify_procedure(procedure, built=False)
        copies = [content.copy() for content in self.arrays.values()]
        (result,) = run_procedure(procedure, [*copies, None], print)
        return copies, result
