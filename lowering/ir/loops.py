"""IR 2: loops over scalars and array elements, close to what a C compiler is given.

    Program := name, parameters, locals, results, kernels
    Kernel  := name, body
    Stmt    := For(symbol, lo, hi, step, kind, body)
             | While(prelude, test, body)
             | If(test, then, other)
             | Store(access, value)                    the element becomes the value
             | Update(access, op, value, pair)         the element becomes `element op value`
             | Fill(node, value)                       every element
             | Let(symbol, value) | Alloc(node) | Permute(nodes, sources)
             | Check(test, fault, values, span)        must hold now, or the call raises
             | Print(pieces) | Comment(text) | Break | Continue
             | Barrier                                 threads of a block wait for each other here

Statements run in order on the current state: snapshot semantics are gone, `lower` has added the
temporaries they need. Expressions are those of `expressions`, without `Reduce`.
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
from .memo import Remembers
from .node import Node
from .ops import Op

LoopKind = Literal[
    "serial",
    "unrolled",
    "vector",
    "parallel",
    "block",
    "thread",
    "packed",
    "tensor",
    "warpgroup",
    "settled",
    "paired",
    "atomic",
    "last",
    "rolled",
    "elemental",
]
"""How a loop runs. `packed`: 16 bytes at once. `tensor`: products of two tiles, by the threads of a
warp together; the order of the sums, and how they are rounded, is then the device's. `warpgroup`:
the same by four warps, whose sums may only be read behind a `settled`. `paired`: two neighbours, by
one instruction. `atomic`: one round, that updates an element as one. `last`: one round, by the last
block of those that come to it, behind a loop over blocks: what they wrote there is there. `rolled`:
as a serial one, of which few rounds are written out. `elemental`: one store of a function of
elements, for which C calls what does all rounds."""


@dataclass(frozen=True, slots=True)
class For(Remembers):
    """`for symbol in range(lo, hi, step)`; `kind` is how it runs, never what it means."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Stmt, ...]
    kind: LoopKind = "serial"
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    counts: bool = field(default=False, repr=False)
    """Whether its rounds only count the terms of running totals, whose order may be left open."""


@dataclass(frozen=True, slots=True)
class While(Remembers):
    """Run `prelude`, leave when `test` is false, run `body`, again."""

    prelude: tuple[Stmt, ...]
    test: Expr
    body: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If(Remembers):
    """`then` where `test` holds, else `other`."""

    test: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store(Remembers):
    """The element becomes the value, which is of the node's type."""

    access: Access
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update(Remembers):
    """The element becomes `element op value`: what permits parallel and tree reductions later.

    With a pair the op is argmin or argmax and the pair's element becomes the position of the
    first best value (-1 in it means that nothing was found yet).
    """

    access: Access
    op: Op
    value: Expr
    pair: Pair | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    over: tuple[Affine, ...] = ()
    """Where the term stands in each range that the statement reduces over, outermost first: these
    rounds only count terms, whose order a profile may leave open. None of a loop that was written.
    """


@dataclass(frozen=True, slots=True)
class Fill(Remembers):
    """Every element of the node becomes the value, a constant of the node's type."""

    node: Node
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check(Remembers):
    """`test` must hold now; otherwise the routine stops and the fault is raised with the values."""

    test: Expr
    fault: Fault
    values: tuple[Expr, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comment(Remembers):
    """A line for the reader: the originating statement, or a block's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Barrier(Remembers):
    """What the rounds of a thread loop wrote is there for those of the next; nothing otherwise."""

    later: int = 0
    """What was `packed` since the last so many barriers need not be there before later ones."""


Stmt = (
    For | While | If | Store | Update | Fill | Check | Comment
    | Let | Alloc | Permute | Print | Break | Continue | Barrier
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function of generated code, run in order after those before it."""

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
    rounds: tuple[tuple[int, Symbol], ...] = field(default=(), compare=False, repr=False)
    """The ids of locals, each with the symbol of loops of which every round writes before it reads
    them, whatever became of the statements that write."""
    whole: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    """The ids of results that are written everywhere, and before they are read: they may start as
    anything."""
    sized: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    """The ids of results whose shape follows from the sizes of arguments."""


AnyStatement = Statement | Stmt
"""A statement of either IR, for the tools that work on both."""
