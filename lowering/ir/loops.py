"""IR 2: loop nests over scalars and array elements, close to the C that is emitted.

    Program := name, parameters, locals, results, kernels
    Kernel  := name, body
    Stmt    := For(symbol, lo, hi, step, kind, body)
             | While(prelude, test, body)
             | If(test, then, other)
             | Store(access, value)                    the element becomes the value
             | Update(access, op, value, pair, atomic) the element becomes `element op value`
             | Fill(node, value)                       every element
             | CopyVector(target, source, count, axes) elements that follow each other, at once
             | StoreVector(access, axis, values)       likewise, each its value
             | MatMul(accumulator, first, second, over, unit)
                                                       products of two tiles, by a matrix unit
             | Let(symbol, value) | Alloc(node) | Permute(nodes, sources)
             | Check(test, fault, values, span)        must hold now, or the call raises
             | Print(pieces) | Comment(text) | Break | Continue
             | Barrier                                 barrier of the threads of a block
             | LastBlock(body)                         once, by the last block that arrives
             | AwaitProducts(node)                     until products have been added to a node

Statements run in order on the current state: `lower` has replaced snapshot semantics by
temporaries. Expressions are those of `expressions`, without `Reduce`. Vectors and products are
instructions of devices, see `instructions`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from .assignments import (
    Access,
    Alloc,
    Break,
    Continue,
    Fault,
    Let,
    Pair,
    Parameter,
    Permute,
    Print,
    Statement,
)
from .expressions import Expr
from .indexing import Affine, Symbol
from .instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from .memo import Memoized
from .node import Node
from .ops import Op

LoopKind = Literal[
    "serial",
    "unrolled",
    "vector",
    "parallel",
    "block",
    "thread",
    "rolled",
    "elemental",
]
"""How a loop runs. `rolled`: serial, with few iterations unrolled. `elemental`: one store of an
elementwise function, for which C calls a function that does all iterations."""


@dataclass(frozen=True, slots=True)
class For(Memoized):
    """`for symbol in range(lo, hi, step)`; `kind` is how it runs, never what it means.

    The step is any number but zero, and no pass makes all loops count up by one: where it is
    negative, values fall from `lo` to above `hi`. Most schedules leave loops whose step is not 1.
    """

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Stmt, ...]
    kind: LoopKind = "serial"
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    counts: bool = field(default=False, repr=False)
    """Whether its iterations only count the terms of running totals, which are reassociable."""


@dataclass(frozen=True, slots=True)
class While(Memoized):
    """Run `prelude`, leave when `test` is false, run `body`, repeat."""

    prelude: tuple[Stmt, ...]
    test: Expr
    body: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If(Memoized):
    """`then` where `test` holds, else `other`."""

    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store(Memoized):
    """The element becomes the value, which is of the node's type."""

    access: Access
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update(Memoized):
    """The element becomes `element op value`: a reduction, which may be parallelized or become a
    tree.

    With a pair the op is argmin or argmax and the pair's element becomes the position of the first
    best value (-1 in it means "nothing found yet").
    """

    access: Access
    op: Op
    value: Expr
    pair: Pair | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    over: tuple[Affine, ...] = ()
    """The position of the term in each range that the statement reduces over, outermost first:
    these iterations only count terms, so that a profile may reassociate them. Empty for a loop that
    was written."""
    atomic: bool = field(default=False, repr=False)
    """Whether it is one operation, as other threads may update the element at the same time; their
    order is any. There is no pair then."""


@dataclass(frozen=True, slots=True)
class Fill(Memoized):
    """Every element of the node becomes the value, a constant of the node's type."""

    node: Node
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check(Memoized):
    """`test` must hold now; otherwise the routine stops and the fault is raised with the values."""

    test: Expr
    fault: Fault
    values: tuple[Expr, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comment(Memoized):
    """A line for the reader: the originating statement, or a block's text."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    """The statement whose text it is; NOWHERE for a block's text."""


@dataclass(frozen=True, slots=True)
class Barrier(Memoized):
    """Writes in the iterations of one thread loop are visible in those of the next; no other
    effect."""

    later: int = 0
    """Each `CopyVector` since the last so many barriers need not be complete before later
    barriers."""


@dataclass(frozen=True, slots=True)
class LastBlock(Memoized):
    """`body` runs once, on the block that arrives last of those of the loop over blocks before it,
    all of whose writes it sees."""

    body: tuple[Stmt, ...]


Stmt = (
    For | While | If | Store | Update | Fill | CopyVector | StoreVector | MatMul | Check | Comment
    | Let | Alloc | Permute | Print | Break | Continue | Barrier | LastBlock
    | AwaitProducts
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function of generated code; kernels run in order."""

    name: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels in order, and the nodes they share. Locals and results start as zeros."""

    name: str
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    results: tuple[Node, ...]
    kernels: tuple[Kernel, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    private_annotations: tuple[tuple[int, Symbol], ...] = field(
        default=(), compare=False, repr=False
    )
    """Iteration-private locals: their ids, each with the symbol of loops in which every iteration
    writes them before it reads them, whatever becomes of the statements that write."""
    whole: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    """The ids of results all of whose elements are written before they are read: their initial
    values are arbitrary."""
    sized: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    """The ids of results whose shape is a function of the sizes of arguments."""
    last_id: int = field(default=-1, compare=False, repr=False)
    """The highest id of a node when it was lowered: ids of removed nodes are not given again, so
    that decisions name one node."""


AnyStatement = Statement | Stmt
"""A statement of either IR, for the tools that work on both."""
