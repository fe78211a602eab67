"""IR 1: what a function means, as accumulating assignments over index domains.

    Procedure := name, parameters, locals, results, body
    Statement := Assign(target, op, initialize, value, free, reduced, pair)
               | For(symbol, lo, hi, step, body)       sequential
               | While(prelude, test, body)            prelude runs before every test
               | Branch(test, then, other)
               | Block(comment, body)
               | Let(symbol, value)                    read an integer once
               | Alloc(node)                           storage of a run-time shape, zero-filled
               | Permute(nodes, sources)               exchange the arrays behind nodes
               | Check(test, fault, values, over)      must hold at every point, or the call raises
               | Print(pieces) | Break | Continue

The meaning of `Assign`, for the state before the statement (snapshot):

    for each point of `free`:        (in order; outermost range first)
        if initialize: target := neutral(op)
        for each point of `reduced`: target := target op value     (op None: target := value)

Where `pair` is given the op is argmin or argmax: the target keeps the best value and the pair's
access the position of the first best one; `initialize` starts from "nothing found" (position -1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from numpy import generic

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from .dtypes import DType, shown
from .expressions import Domain, Expr, Index
from .indexing import Affine, Symbol
from .memo import Remembers
from .node import Node
from .ops import Op


@dataclass(frozen=True, slots=True)
class Access:
    """A place that is written."""

    node: Node
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Where argmin or argmax keep the position, and what the position of a point is."""

    access: Access
    position: Affine


@dataclass(frozen=True, slots=True)
class Fault:
    """What a failed check raises: a code, an error class by name, a message with `{0}` slots."""

    code: str
    kind: str
    """The name of the `CdError` class, for example `CdIndexError`."""
    message: str
    """Filled by `str.format` with the values at the failing point."""
    helps: tuple[str, ...] = ()


Names = tuple[tuple[Node, str], ...]
"""What the source calls arrays at a place, where that is not their label."""


@dataclass(frozen=True, slots=True)
class Assign(Remembers):
    """For each point of its domain, `target = target op value`; see the module's text."""

    target: Access
    op: Op | None
    initialize: bool
    value: Expr
    free: Domain
    reduced: Domain = Domain()
    pair: Pair | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    names: Names = field(default=(), compare=False, repr=False)
    call: Span | None = field(default=None, compare=False, repr=False)
    """The call that it is a part of, where that is of a function which no user wrote."""


@dataclass(frozen=True, slots=True)
class For(Remembers):
    """`for symbol in range(lo, hi, step)`, sequential; step is a number, never zero."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    counts: bool = field(default=False, repr=False)
    """Whether its rounds only count the terms of running totals, whose order may be left open."""


@dataclass(frozen=True, slots=True)
class While(Remembers):
    """Run `prelude`, leave when `test` is false, run `body`, again."""

    prelude: tuple[Statement, ...]
    test: Expr
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch(Remembers):
    """`if test: then` `else: other`."""

    test: Expr
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    many: bool = field(default=False, repr=False)
    """Whether `then` is what a device of many threads does, whatever the test says, which is false:
    both sides leave the same."""


@dataclass(frozen=True, slots=True)
class Block(Remembers):
    """Statements under a comment: `with comment("...")`, or an inlined call."""

    comment: str
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let(Remembers):
    """Bind a symbol to an int64 value for the rest of the enclosing statement list."""

    symbol: Symbol
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Alloc(Remembers):
    """Give a node of run-time shape its storage, sized by its shape now and filled with zeros."""

    node: Node
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Permute(Remembers):
    """Afterwards `nodes[k]` is the array that `sources[k]` was; shapes and dtypes are equal."""

    nodes: tuple[Node, ...]
    sources: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check(Remembers):
    """`test` must hold at every point of `over`; the first point where it does not raises."""

    test: Expr
    fault: Fault
    values: tuple[Expr, ...] = ()
    over: Domain = Domain()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Print(Remembers):
    """Show text and values as they are now, in Python's spelling or a value's own format."""

    pieces: tuple[str | Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    formats: tuple[str | None, ...] = ()
    """The format of each value, in order, None for `str`; all are plain where there are none."""
    end: str = "\n"
    logs: bool = False
    """Whether it is a line of a log, which a device shows by itself."""
    dtypes: tuple[DType, ...] = ()
    """The element type of each value as the source has it; where there are none, its own."""

    def text(self, values: Iterable[generic]) -> str:
        """Return what is shown for the values of the pieces that are no texts."""
        formats = self.formats or ("",) * len(self.pieces)
        types = self.dtypes or (None,) * len(self.pieces)
        found = map(shown, values, formats, types)
        return "".join(p if isinstance(p, str) else next(found) for p in self.pieces) + self.end


@dataclass(frozen=True, slots=True)
class Break(Remembers):
    """Leave the innermost loop."""


@dataclass(frozen=True, slots=True)
class Continue(Remembers):
    """Go on with the next round of the innermost loop."""


Statement = (
    Assign | For | While | Branch | Block | Let | Alloc | Permute | Check | Print | Break | Continue
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A node that the caller provides; `written` says that the body may write it.

    A scalar argument is a node of rank 0. `written` parameters are writable arrays.
    """

    node: Node
    written: bool
    log: int | None = None
    """Of an array that the body fills from its start, as zeros before: its place in the counters,
    the last parameter, of how much it filled of the first axis. A run that fails keeps it, too."""
    returns: bool = False
    """Whether the array that it is at the end, where it traded places, is copied to the caller's.
    Others that do are names of the function, and the arrays of the caller stay where they are."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A whole function after elaboration.

    `parameters` come in call order (captured arrays last), `results` are new arrays handed to the
    caller, `locals` all other nodes with storage of their own: all start as zeros.
    Nodes of run-time shape are among them too, and get their storage where `Alloc` stands.
    """

    name: str
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    results: tuple[Node, ...]
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    names: Names = field(default=(), compare=False, repr=False)
    """What arrays are called at the end."""
    own: frozenset[Symbol] = field(default=frozenset(), compare=False, repr=False)
    """The indices that the source itself names: letters, loop variables, integers given to it."""
    taken: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """What its source gives values, and index letters, by name."""
