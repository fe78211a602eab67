"""Surface syntax tree of `@cd` functions, before names are resolved.

    Function  := name, params, body
    Statement := Assign(targets, value) | Augment(target, op, value) | Reserve(name)
               | Declare(target, annotation, value)
               | For(target, iterable, body) | While(test, body) | If(test, then, other)
               | Comment(text, body) | Define(function) | Return(value) | Assert(test, message)
               | Raise(error) | Evaluate(value) | Break | Continue | Pass
    Expr      := Name | Literal | Attribute | Subscript | Slice | Call | Starred | Unary | Binary
               | Compare | Logical | Conditional | Sequence | Comprehension | Lambda | Format

Operators are spelled as in Python (`+`, `//`, `not in`). Each node has a span, which equality
ignores. No stage after `parse` sees Python's `ast`.
"""

from __future__ import annotations

import collections.abc as abc
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.diagnostic import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A bare name."""

    id: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, bool, None or `...`."""

    value: object
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`value.name`."""

    value: Expr
    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subscript:
    """`value[items]`; `x[i, j]` has two items, `x[(i, j)]` too, as in Python; `x[()]` has none."""

    value: Expr
    items: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)
    comma: bool = field(default=False, compare=False, repr=False)
    """Whether a single item is followed by a comma: `x[p,]` differs from `x[p]` for a tuple `p`."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`lower:upper:step` inside a subscript."""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Keyword:
    """`name=value` in a call; the name is None for `**value`."""

    name: str | None
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`function(args, keywords)`; `sum[k](e)` is a call of a subscript."""

    function: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Starred:
    """`*value` among arguments or in a sequence."""

    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`- + ~ not` before an operand."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """`+ - * / // % ** @ & | ^ << >>` between two operands."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`a < b <= c`: one more operand than operators; `in`, `not in`, `is`, `is not` too."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """`and` or `or` of two or more operands."""

    op: str
    operands: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`yes if test else no`."""

    test: Expr
    yes: Expr
    no: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple or list display (`kind` is `tuple` or `list`)."""

    items: tuple[Expr, ...]
    kind: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[element for target in iterable if test ...]` over static iterables only. A starred element
    is a list that is spliced in: of an inner loop."""

    element: Expr
    target: Expr
    iterable: Expr
    tests: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)
    is_lazy: bool = False
    """Whether it is a generator: what takes its items may stop."""


@dataclass(frozen=True, slots=True)
class Lambda:
    """`lambda params: body`."""

    params: tuple[Param, ...]
    body: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Format:
    """An f-string: text and values in order; a value may have a static format specification."""

    parts: tuple[str | tuple[Expr, str], ...]
    span: Span = field(compare=False, repr=False)


Expr = (
    Name | Literal | Attribute | Subscript | Slice | Call | Starred | Unary | Binary | Compare
    | Logical | Conditional | Sequence | Comprehension | Lambda | Format
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. `kind` is `positional`, `any`, `keyword`, `*` or `**`, as in Python."""

    name: str
    kind: str
    default: Expr | None
    annotation: Expr | None
    span: Span = field(compare=False, repr=False)


class MemoizedNode:
    """A statement or a function. It is immutable: the slots memoize the results of analyses."""

    __slots__ = ("defined", "first", "loads", "mentioned", "paths", "uses")

    defined: frozenset[str]
    """The names inside functions and lambdas nested in it."""
    first: dict[str, str]
    """The first use of a name when it runs, of the names queried so far."""
    loads: tuple[Name, ...]
    """The names read in it."""
    mentioned: frozenset[str]
    """All names that occur in it."""
    paths: abc.Mapping[tuple[int, int], tuple[tuple[tuple[Statement, ...], int], ...]]
    """Of a function: the blocks that enclose each loop, by the loop's position."""
    uses: dict[int, abc.Mapping[str, tuple[list[int], list[str]]]]
    """Of a function: the statements of a block that mention a name, and the first use from each."""


@dataclass(frozen=True, slots=True)
class Assign(MemoizedNode):
    """`a = b = value`: targets from left to right."""

    targets: tuple[Expr, ...]
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reserve(MemoizedNode):
    """Before a loop with an `else`: a name that is assigned on every exit of the loop."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Augment(MemoizedNode):
    """`target op= value`; `op` is the operator without `=`."""

    target: Expr
    op: str
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declare(MemoizedNode):
    """`target: annotation` or `target: annotation = value`."""

    target: Expr
    annotation: Expr
    value: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For(MemoizedNode):
    """`for target in iterable`; the span is the header's."""

    target: Expr
    iterable: Expr
    body: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While(MemoizedNode):
    """`while test`; the span is the header's."""

    test: Expr
    body: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If(MemoizedNode):
    """`if test: then else: other`; the span is the header's."""

    test: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comment(MemoizedNode):
    """`with comment("text"):` (the parser checked that there is one item without `as`)."""

    text: Expr
    body: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Return(MemoizedNode):
    """`return value`; None where nothing is returned."""

    value: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assert(MemoizedNode):
    """`assert test, message`."""

    test: Expr
    message: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Raise(MemoizedNode):
    """`raise Error("message")`; None for a bare raise, which is refused later."""

    error: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Evaluate(MemoizedNode):
    """An expression statement: a call, a print, or one without effect."""

    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Define(MemoizedNode):
    """A nested function definition: its body is inlined at calls."""

    function: Function
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Break:
    """`break`."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Continue:
    """`continue`."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pass:
    """`pass`."""

    span: Span = field(compare=False, repr=False)


Statement = (
    Assign | Augment | Reserve | Declare | For | While | If | Comment | Return | Assert | Raise
    | Evaluate | Define | Break | Continue | Pass
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function(MemoizedNode):
    """A function. `doc` is its docstring, which `body` omits."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    doc: str | None
    span: Span = field(compare=False, repr=False)
