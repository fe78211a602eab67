"""The state of one elaboration: statements emitted so far, fresh symbols and nodes, what is known.

One `Context` lives for one elaboration of one function. Blocks are emitted into lists that are
swapped while a body is elaborated, so that a body can be thrown away and done again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import (  # fmt: skip
    CdError,
    CdIndexError,
    CdShapeError,
    CdSyntaxError,
    Diagnostic,
    Label,
    Span,
)
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Access,
    Alloc,
    Assign,
    Break,
    Check,
    Continue,
    Fault,
    Let,
    Names,
    Parameter,
    Statement,
)  # fmt: skip
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Domain, Expr, Index, Position, Read, Select
from ...lowering.ir.indexing import Affine, Range, Symbol, const, substitute, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, Op
from ...lowering.ir.walk import uses as uses_of
from .bounds_messages import index_fault
from .fix_hints import WAYS_OUT, before_the_points
from .range_analysis import Known, corner, factors, says_of_indices
from .types import TRUE, WEAK_INT, Kind, cast
from .values import Array, Handle, Path, Scalar, Value, whole

_CUT = WAYS_OUT["CD0301"]
AXIS_NAMES = "ijklmnopqrstuvw"


class NeedStatic(Exception):
    """An integer parameter turned out to be needed now; elaboration starts again with it static."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.names = names
        self.span: Span | None = None
        """The statement that needs it."""


class NeedState(Exception):
    """Inputs are what the function writes: elaboration starts again with the numbers at `paths`
    given in each call, and with properties of objects inlined."""

    def __init__(self, paths: frozenset[Path], properties: bool) -> None:
        super().__init__(paths, properties)
        self.paths = paths
        self.properties = properties


class NeedKind(Exception):
    """A name that lives across rounds of a loop needs a wider kind; the loop is done again.
    `inner` is a loop whose variable the name is: the next loop around it is the one to hold it."""

    def __init__(self, name: str, kind: Kind, inner: object = None) -> None:
        super().__init__(name, kind)
        self.name = name
        self.kind = kind
        self.inner = inner


class NeedOrder(Exception):
    """It matters how a local array is in memory: elaboration starts again with that known."""


class NeedUnroll(Exception):
    """A loop variable turned out to be needed as a number; its loop is done again, unrolled."""

    def __init__(self, symbol: Symbol) -> None:
        super().__init__(symbol)
        self.symbol = symbol


@dataclass(frozen=True, slots=True)
class Use:
    """An index expression and the axis that it subscripts."""

    index: Affine | Expr
    extent: Affine
    axis: int
    name: str
    span: Span


@dataclass
class Context:
    """Emission state; see the module's text. `origin` maps a parameter's symbol to its name."""

    function_name: str
    prologue: list[Statement] = field(default_factory=list)
    """Statements before all others: run-time integers read once."""
    out: list[Statement] = field(default_factory=list)
    known: Known = field(default_factory=Known)
    conditions: tuple[Expr, ...] = ()
    """Tests under which the expression now being elaborated is evaluated (`a if c else b`)."""
    parameters: dict[Path, Parameter] = field(default_factory=dict)
    locals: list[Node] = field(default_factory=list)
    origin: dict[Symbol, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    """Of the names in `origin` those that came with many values: run-time values if they can be."""
    deciding: frozenset[str] = frozenset()
    """Those of them that decide the branch whose sides are being merged."""
    guarded: set[Expr] = field(default_factory=set)
    """Divisors and products of such numbers that are checked to give what Python computes."""
    loop_symbols: set[Symbol] = field(default_factory=set)
    unrollable: dict[Symbol, object] = field(default_factory=dict)
    """The loop statement of each loop variable, to unroll it where its number is needed."""
    exchanged: set[Node] = field(default_factory=set)
    """Nodes whose arrays change places in a loop."""
    rebound: set[Node] = field(default_factory=set)
    """Nodes in which a loop keeps an attribute that a call has bound to another array."""
    called: Names = ()
    """What arrays are called where a statement is elaborated."""
    asks_layout: bool = False
    """Whether it was decided by how an argument lies in memory what something gives."""
    orders: bool = False
    """Whether it is known of new arrays in which order NumPy has their elements."""
    unordered: set[Node] = field(default_factory=set)
    """Nodes of arrays that NumPy has in another order, or with gaps, depending on the run."""
    mixed: set[str] = field(default_factory=set)
    """Names that iterations of a loop give arrays in different orders."""
    said: set[Symbol | str] = field(default_factory=set)
    """The letters and loop variables of the source, and the names that it gives a value."""
    bindings: dict[tuple[Node, Span], frozenset[Node]] = field(default_factory=dict)
    """Which writes make an array anew, and of what array Python would not make a copy there."""
    sizes: frozenset[Symbol] = frozenset()
    """Sizes of parameters that only the run knows."""
    stack: tuple[Span, ...] = ()
    """The calls being inlined, outermost first."""
    active: tuple[object, ...] = ()
    """The functions being elaborated, outermost first: none may call itself."""
    control: int = 0
    """How many loops and undecided branches are around what is emitted."""
    unsure: int = 0
    """How many of them may not get to it: not loops that surely run all of a first round."""
    ended: bool = False
    """Whether every run ends where this is: what follows is not looked at."""
    domain: tuple[Range, ...] = ()
    """The ranges of the index letters in scope, outermost first."""
    tensor_value: Callable[[Handle, Span], Array] | None = None
    """Gives the array of a persistent tensor's value; set by `elaborate`."""
    constant: Callable[[np.ndarray[Any, Any], DType], Node] | None = None
    """Gives the hidden input that is a table of constants; set by `elaborate`."""
    tables: dict[Node, np.ndarray[Any, Any]] = field(default_factory=dict)
    """The tables of constants among the inputs."""
    inline_source: Callable[[str, Sequence[Value], Mapping[str, Value], Span], Value] | None = None
    """Inlines a function of the library, given as text; set by `elaborate`."""
    uses: list[Use] | None = None
    """While the ranges of letters are collected: where they index what; nothing is checked."""
    of_items: bool = False
    """Whether the points are items of a comprehension: numbers, as Python has them."""
    serial: int = 0

    @property
    def stable(self) -> frozenset[Symbol]:
        """Symbols that hold wherever a name is visible: loop variables, parameters, sizes."""
        return frozenset(self.loop_symbols) | self.origin.keys() | self.sizes

    @property
    def pointwise(self) -> bool:
        """Whether expressions are being elaborated at each point of index letters."""
        return bool(self.domain) or self.uses is not None

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def size(self, name: str) -> Affine:
        """Return a run-time size of a parameter: a new symbol, at least 2."""
        symbol = self.symbol(name)
        self.sizes |= {symbol}
        self.known = self.known.with_bounds(symbol, const(2), None)
        return var(symbol)

    def axes(self, rank: int) -> tuple[Symbol, ...]:
        """Return new symbols for the axes of an array."""
        return tuple(self.symbol(AXIS_NAMES[n % len(AXIS_NAMES)]) for n in range(rank))

    def node(self, label: str, shape: tuple[Affine, ...], dtype: DType) -> Node:
        """Return a new local node; one of run-time shape is allocated here."""
        self.serial += 1
        node = Node(self.serial, label, shape, dtype)
        if (sizes := node.static_shape) is not None and math.prod(sizes) * dtype.bits >= 2**66:
            raise OverflowError(f"an array of shape {sizes} has more bytes than 64 bits can count")
        self.locals.append(node)
        if node.static_shape is None:
            self.emit(Alloc(node))
        return node

    def whole(self, node: Node, span: Span, kind: Kind | None = None) -> Array:
        """Return the array of a whole node."""
        return whole(node, self.axes(node.rank), kind or Kind(node.dtype), span)

    def emit(self, statement: Statement) -> None:
        """Append a statement to the block being built.

        CdSyntaxError CD0522 where it would need an index letter that nothing around it binds.
        """
        letters = {r.symbol for r in self.domain}
        stray = sorted(letters & uses_of(statement), key=str) if letters else ()
        if stray and not isinstance(statement, Break | Continue):
            names = ", ".join(f"`{symbol.name}`" for symbol in stray)
            makes = isinstance(statement, Alloc | Assign | Let)
            what = "needs an array of its own" if makes else "would have to run"
            raise error(
                "CD0522", CdSyntaxError,
                f"`{statement.span.text}` {what} at every point of {names}", statement.span,
                helps=before_the_points(statement.span.text),
            )  # fmt: skip
        if self.called and isinstance(statement, Assign):
            statement = replace(statement, names=self.called)
        self.out.append(statement)

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Collect what is emitted inside into a new list, which is the value."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def knowing(self, known: Known) -> Iterator[None]:
        """Replace what is known inside."""
        outer, self.known = self.known, known
        try:
            yield
        finally:
            self.known = outer

    @contextmanager
    def under(self, test: Expr) -> Iterator[None]:
        """Inside, expressions are evaluated only where the test holds."""
        outer, self.conditions = self.conditions, (*self.conditions, test)
        try:
            with self.knowing(self.known.assuming(test)):
                yield
        finally:
            self.conditions = outer

    def let(self, name: str, value: Expr, span: Span) -> Symbol:
        """Return a symbol that holds an int64 value, read here."""
        symbol = self.symbol(name)
        self.emit(Let(symbol, value, span))
        return symbol

    def store(
        self, target: Array, value: Expr, span: Span, op: Op | None = None,
        where: Expr | None = None,
    ) -> None:  # fmt: skip
        """Emit `target op= value` over all axes of a place; `value` is over the target's axes."""
        place = target.place
        assert place is not None, "a store needs a place"
        free = Domain(target.ranges, where)
        self.emit(Assign(Access(place.node, place.index), op, False, value, free, span=span))

    def materialize(
        self, value: Array, label: str, span: Span, dtype: DType | None = None
    ) -> Array:
        """Return a new array that holds the value."""
        node = self.node(label, value.shape, dtype or value.kind.dtype)
        target = self.whole(node, span)
        self.store(target, cast(value.at(tuple(map(var, target.axes))), node.dtype), span)
        self.bindings[node, span] = frozenset()
        return target

    def variable(self, label: str, value: Scalar, span: Span) -> Node:
        """Return a new rank-0 node set to the value."""
        node = self.node(label, (), value.kind.dtype)
        self.set(node, value.expr, span)
        return node

    def set(self, node: Node, expr: Expr, span: Span) -> None:
        """Emit `node = expr` for a rank-0 node."""
        value = cast(expr, node.dtype)
        if value != Read(node, ()):
            self.emit(Assign(Access(node, ()), None, False, value, Domain(), span=span))

    def check(
        self, test: Expr, fault: Fault, values: tuple[Expr, ...], span: Span, over: Domain
    ) -> None:
        """Emit a run-time check, under the conditions of the expression being elaborated."""
        self.emit(Check(self.under_conditions(test), fault, values, over, span))

    def check_sizes(
        self, test: Expr, fault: Fault, sides: tuple[Position, Position], span: Span
    ) -> None:
        """Emit a run-time check of sizes: where they are those of arguments and every run gets
        here, before anything is written, so that the call can be compiled for its sizes alone."""
        known = {x for side in sides for x in side.index.symbols()} <= self.sizes
        if known and not (self.control or self.conditions or self.pointwise):
            self.prologue.append(Check(test, fault, sides, Domain(), span))
        else:
            self.check(test, fault, sides, span, Domain())

    def guard(self, value: Expr, test: Expr, fault: Fault, span: Span) -> None:
        """Check that a value computed of numbers that came with many values is what Python has."""
        if not self.pointwise:
            self.check(test, fault, (), span, Domain())
            self.guarded.add(value)

    def under_conditions(self, test: Expr) -> Expr:
        """Return `test`, or true where the enclosing conditions do not hold."""
        for condition in reversed(self.conditions):
            test = Select(condition, test, TRUE)
        return test

    def require(
        self, index: Affine | Expr, extent: Affine, axis: int, name: str, span: Span
    ) -> None:
        """Require `0 <= index < extent` here: proven, or checked in the run at every point.

        A failing check raises CdIndexError CD0601 with the index and the size.
        """
        if self.uses is not None:
            for factor in factors(index) if isinstance(index, Affine) else ():
                if factor.symbols() <= self.origin.keys():
                    self.prefer_static(factor)
            self.uses.append(Use(index, extent, axis, name, span))
            return
        if isinstance(index, Affine):
            known = self.known
            above, below = known.nonnegative(index), known.less(index, extent)
            if above and below:
                return
            self._refute(index, extent, axis, name, span)
            value: Expr = Position(index)
        else:
            above, below, value = False, False, index
        low = Apply(OPS["le"], (Position(const(0)), value), dtypes.bool_)
        high = Apply(OPS["lt"], (value, Position(extent)), dtypes.bool_)
        test = high if above else low if below else Apply(OPS["and"], (low, high), dtypes.bool_)
        fault, values = index_fault(value, extent, axis, name, self.domain, span.text)
        early = isinstance(index, Affine) and index.terms and index.symbols() <= self.origin.keys()
        if early and not self.control and not self.conditions and extent.constant is not None:
            # a run-time integer given by the caller: checked before anything is written
            fault, values = index_fault(value, extent, axis, name, (), span.text)
            self.prologue.append(Check(test, fault, values, Domain(), span))
            return
        self.check(test, fault, values, span, Domain(self.domain))

    def _refute(self, index: Affine, extent: Affine, axis: int, name: str, span: Span) -> None:
        """Raise CdIndexError CD0602 where a point of the letters' ranges is surely out of range."""
        letters = {r.symbol for r in self.domain}
        used = sorted(index.symbols(), key=str)
        if any(map(says_of_indices, self.conditions)) or not used or not letters.issuperset(used):
            return
        for upwards in (False, True):
            point = corner(index, self.domain, upwards)
            at, size = substitute(index, point).constant, extent.constant
            if at is None or size is None or 0 <= at < size:
                continue
            inside = (
                (point[x] - substitute(lo, point), substitute(hi, point) - point[x])
                for x, lo, hi in ((r.symbol, r.lo, r.hi) for r in self.domain)
            )
            if all((a.constant or 0) >= 0 and (b.constant or 0) > 0 for a, b in inside):
                shown = ", ".join(f"{s.name} = {point[s]}" for s in used)
                raise error(
                    "CD0602", CdIndexError,
                    f"`{name}` is read at {index} = {at} when {shown}, but axis {axis} "
                    f"has size {size}", span,
                    helps=(
                        f"say what is outside: `pad({index})`, `clamp({index})` or `wrap({index})`",
                        "or restrict the index: an `if` on it, a binder's range, or a slice",
                    ),
                )  # fmt: skip

    def equal_extents(
        self,
        left: Affine,
        right: Affine,
        what: str,
        span: Span,
        ways: tuple[str, ...] = WAYS_OUT["CD0301"],
    ) -> None:
        """Require two extents to be equal: proven, refused (CdShapeError) or checked in the run."""
        if self.known.equal(left, right):
            return
        text, sides = f"{what}: sizes {{0}} and {{1}} differ", (Position(left), Position(right))
        if self.known.differ(left, right):
            raise error("CD0301", CdShapeError, text.format(left, right), span, helps=ways)
        fault = Fault("CD0301", "CdShapeError", text, ways)
        self.check_sizes(compare("eq", left, right), fault, sides, span)
        if not self.control and not self.conditions:
            self.known = self.known.with_facts(left - right, right - left)

    def scalar_index(self, symbol: Symbol) -> Scalar:
        """Return a symbol as a number, of the kind of a Python int."""
        return Scalar(Position(var(symbol)), WEAK_INT)

    def require_static_parameters(self, index: Affine) -> None:
        """Ask for another elaboration in which integer parameters in `index` are numbers."""
        names = {self.origin[symbol] for symbol in index.symbols() if symbol in self.origin}
        if names:
            raise NeedStatic(frozenset(names))

    def prefer_static(self, index: Affine) -> None:
        """Ask for another elaboration with the integer parameters in `index` as numbers, but for
        those that came with many values."""
        names = {self.origin[symbol] for symbol in index.symbols() if symbol in self.origin}
        if not names <= self.given:
            raise NeedStatic(frozenset(names - self.given))

    def require_static(self, index: Affine) -> None:
        """Ask for another elaboration with the symbols of `index` as numbers, if that helps."""
        self.require_static_parameters(index)
        self.require_unrolled((index,))

    def require_unrolled(self, index: Sequence[Index]) -> None:
        """Ask for the loops of variables in an index to be unrolled."""
        for symbol in (x for one in index if isinstance(one, Affine) for x in one.symbols()):
            if symbol in self.loop_symbols:
                raise NeedUnroll(symbol)


def error(
    code: str,
    kind: type[CdError],
    message: str,
    span: Span,
    *labels: Label,
    label: str = "",
    notes: tuple[str, ...] = (),
    helps: tuple[str, ...] = (),
) -> CdError:
    """Return an error of one diagnostic whose first place is `span`."""
    helps = helps or WAYS_OUT.get(code, ())
    return kind(Diagnostic(code, message, (Label(span, label), *labels), notes, helps))


def compare(op: str, left: Affine, right: Affine) -> Expr:
    """Return the comparison of two index expressions as a bool expression."""
    return Apply(OPS[op], (Position(left), Position(right)), dtypes.bool_)
