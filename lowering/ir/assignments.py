"""IR 1: the meaning of a function as accumulating assignments over index domains.

    Procedure := name, parameters, locals, results, body
    Statement := Assign(target, op, initialize, value, free, reduced, pair)
               | For(symbol, lo, hi, step, body)       sequential
               | While(prelude, test, body)            prelude runs before every test
               | Branch(test, then, other)
               | Block(comment, body)
               | Let(symbol, value)                    bind a run-time integer
               | Alloc(node)                           storage of a run-time shape, zero-filled
               | Permute(nodes, sources)               permute the arrays of nodes
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
from .dtypes import DType, format_scalar
from .expressions import Domain, Expr, Index
from .indexing import Affine, Symbol
from .memo import Memoized
from .node import Node
from .ops import Op


@dataclass(frozen=True, slots=True)
class Access:
    """A location that is written."""

    node: Node
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The location of the position of argmin or argmax, and the position of the current point."""

    access: Access
    position: Affine


@dataclass(frozen=True, slots=True)
class Fault:
    """What a failed check raises: a code, an error class by name, a message with `{0}` slots."""

    code: str
    kind: str
    """The name of the `CdError` class, for example `CdIndexError`."""
    message: str
    """A format string for `str.format`; its values are those at the failing point."""
    helps: tuple[str, ...] = ()


Names = tuple[tuple[Node, str], ...]
"""What the source calls arrays at a statement, where that is not their label."""


@dataclass(frozen=True, slots=True)
class Assign(Memoized):
    """For each point of its domain, `target = target op value`; see the module's docstring."""

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
    """The inlined call that it belongs to, where no user wrote the called function."""


@dataclass(frozen=True, slots=True)
class For(Memoized):
    """`for symbol in range(lo, hi, step)`, sequential; step is a number, never zero."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    step: int
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    counts: bool = field(default=False, repr=False)
    """Whether its iterations only count the terms of running totals, which are reassociable."""


@dataclass(frozen=True, slots=True)
class While(Memoized):
    """Run `prelude`, leave when `test` is false, run `body`, repeat."""

    prelude: tuple[Statement, ...]
    test: Expr
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch(Memoized):
    """`if test: then` `else: other`."""

    test: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    many: bool = field(default=False, repr=False)
    """Whether `then` is for devices of many threads (GPUs), and `other`, which computes the same,
    for all others: the test is false."""


@dataclass(frozen=True, slots=True)
class LinearMap:
    """A linear map as statements: a product with a Jacobian, or with its transpose."""

    procedure: Procedure
    """Its parameters are the inputs, the outputs, then the vectors that it is applied to."""
    results: tuple[Node | None, ...]
    """The results of the procedure, None for those that are zero."""
    ignored: tuple[bool, ...] = ()
    """Whether it takes no vector of an output (or input), of each."""


@dataclass(frozen=True, slots=True)
class DerivativeRule:
    """Derivatives of a block that computes new arrays, `outputs`, from arrays of its own, `inputs`;
    they stand for those of its statements."""

    name: str
    """The function that the block is a call of."""
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    cotangents: LinearMap | None = None
    """The cotangents of the inputs, from those of the outputs."""
    tangents: LinearMap | None = None
    """The tangents of the outputs, from those of the inputs."""


@dataclass(frozen=True, slots=True)
class Block(Memoized):
    """Statements under a comment: `with comment("...")`, or an inlined call."""

    comment: str
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    rule: DerivativeRule | None = field(default=None, compare=False, repr=False)
    """Derivatives that the user wrote, which differentiation uses; None in what is compiled."""


@dataclass(frozen=True, slots=True)
class Let(Memoized):
    """Bind a symbol to an int64 value for the rest of the enclosing statement list."""

    symbol: Symbol
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Alloc(Memoized):
    """Give a node of run-time shape its storage, sized by its shape now and filled with zeros."""

    node: Node
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Permute(Memoized):
    """Afterwards `nodes[k]` is the array that `sources[k]` was; shapes and dtypes are equal."""

    nodes: tuple[Node, ...]
    sources: tuple[Node, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check(Memoized):
    """`test` must hold at every point of `over`; the first point where it does not raises."""

    test: Expr
    fault: Fault
    values: tuple[Expr, ...] = ()
    over: Domain = Domain()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Print(Memoized):
    """Show text and the current values, in Python's spelling or a value's own format."""

    fragments: tuple[str | Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    formats: tuple[str | None, ...] = ()
    """The format of each value, in order, None for `str`; all are plain where this is empty."""
    end: str = "\n"
    logs: bool = False
    """Whether it is a line of a log, which a device shows by itself."""
    dtypes: tuple[DType, ...] = ()
    """The element type of each value in the source; its own where this is empty."""

    def text(self, values: Iterable[generic]) -> str:
        """Return the output for the values of the pieces that are expressions."""
        formats = self.formats or ("",) * len(self.fragments)
        types = self.dtypes or (None,) * len(self.fragments)
        current = map(format_scalar, values, formats, types)
        return (
            "".join(p if isinstance(p, str) else next(current) for p in self.fragments) + self.end
        )


@dataclass(frozen=True, slots=True)
class Break(Memoized):
    """Leave the innermost loop."""


@dataclass(frozen=True, slots=True)
class Continue(Memoized):
    """Start the next iteration of the innermost loop."""


Statement = (
    Assign | For | While | Branch | Block | Let | Alloc | Permute | Check | Print | Break | Continue
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A node that the caller provides, of rank 0 for a number; `written` ones may be written."""

    node: Node
    written: bool
    log: int | None = None
    """Of an array that the body fills from the start, as zeros before: its index in the counters
    (the last parameter) of how much of the first axis it filled. A failing run keeps it, too."""
    returns: bool = False
    """Whether the array that it is at the end, after permutations, is copied to the caller's. Else
    a permutation only renames arrays inside the function."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A whole function after elaboration.

    `parameters` are in call order (captured arrays last), `results` are new arrays returned to the
    caller, `locals` all other nodes with storage: all start as zeros. Nodes of run-time shape are
    included, and are allocated by `Alloc`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    results: tuple[Node, ...]
    body: tuple[Statement, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    names: Names = field(default=(), compare=False, repr=False)
    """What arrays are called at the end."""
    source_symbols: frozenset[Symbol] = field(default=frozenset(), compare=False, repr=False)
    """The indices that the source names: index letters, loop variables, integer arguments."""
    taken: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The names that the source assigns, and its index letters."""
