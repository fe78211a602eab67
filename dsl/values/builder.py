"""IR builder: emitted statements, fresh symbols and nodes, and integer facts of an elaboration.

One `Context` lives for one elaboration of one function. Blocks are emitted into lists that are
swapped while a body is elaborated, so that a body can be discarded and elaborated again.
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
from ...lowering.ir.expressions import (
    Apply,
    Domain,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
    walk,
)
from ...lowering.ir.indexing import Affine, Range, Symbol, const, substitute, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, Op
from ...lowering.ir.walk import uses as uses_of
from .bounds_messages import index_fault
from .fix_hints import WAYS_OUT, before_the_points
from .range_analysis import Assumptions, corner, factors, says_of_indices
from .types import TRUE, WEAK_INT, Kind, cast
from .values import Array, Handle, Path, Scalar, Value, whole

_CUT = WAYS_OUT["CD0301"]
AXIS_NAMES = "ijklmnopqrstuvw"


class NeedStatic(Exception):
    """Restart request: numbers among the inputs have to be static; elaboration starts again.

    Where dynamic sizes have to be, it fails: the function is compiled for its static sizes.
    """

    def __init__(self, names: frozenset[str], sizes: frozenset[Symbol] = frozenset()) -> None:
        super().__init__(names, sizes)
        self.names = names
        self.sizes = sizes
        self.span: Span | None = None
        """The statement that needs it."""


class NeedLists(Exception):
    """Restart request: elaboration starts again with comprehensions of few items unrolled."""


class NeedState(Exception):
    """Restart request: the function writes its inputs.

    Elaboration starts again with the numbers at `paths` as arguments of each call, and with
    properties of objects inlined.
    """

    def __init__(self, paths: frozenset[Path], properties: bool) -> None:
        super().__init__(paths, properties)
        self.paths = paths
        self.properties = properties


class NeedKind(Exception):
    """Restart request: loop-carried names need slots, or wider ones; the loop is elaborated again.

    `kind` None is that of the value before the loop.
    `inner` is a loop whose variable the name is: the enclosing loop is the one that carries it.
    """

    def __init__(self, *names: str, kind: Kind | None = None, inner: object = None) -> None:
        super().__init__(*names, kind)
        self.names = names
        self.kind = kind
        self.inner = inner


class NeedOrder(Exception):
    """Restart request: the layout of a local array matters, and has to be tracked."""


class NeedUnroll(Exception):
    """Restart request: a loop variable has to be static; its loop is unrolled."""

    def __init__(self, symbol: Symbol) -> None:
        super().__init__(symbol)
        self.symbol = symbol


@dataclass(frozen=True, slots=True)
class Use:
    """A use of an index expression as the subscript of an axis, for range inference."""

    index: Affine | Expr
    extent: Affine
    axis: int
    name: str
    span: Span


Origins = frozenset["str | Symbol"]
"""Inputs that would be static in other specializations: names in `Context.given`, and the symbols
of dynamic sizes."""
NO_ORIGINS: Origins = frozenset()


@dataclass
class Context:
    """State of the IR builder. `origin` maps the symbol of an integer parameter to its name."""

    function_name: str
    prologue: list[Statement] = field(default_factory=list)
    """Statements before all others: reads of run-time integers, early checks."""
    out: list[Statement] = field(default_factory=list)
    assumptions: Assumptions = field(default_factory=Assumptions)
    conditions: tuple[Expr, ...] = ()
    """Tests under which the expression now being elaborated is evaluated (`a if c else b`)."""
    parameters: dict[Path, Parameter] = field(default_factory=dict)
    locals: list[Node] = field(default_factory=list)
    origin: dict[Symbol, str] = field(default_factory=dict)
    derives: tuple[str, ...] = ()
    """The derivatives that are made of what is elaborated, in order: `cotangents`, `tangents`."""
    given: frozenset[str] = frozenset()
    """Names in `origin` that calls gave many values: dynamic where they can be."""
    preferred: set[str] = field(default_factory=set)
    """Those of `given` that would be static if they were not dynamic."""
    assigned: frozenset[str] = frozenset()
    """Those of `given` that the function assigns: they are dynamic in every specialization."""
    deciding: Origins = NO_ORIGINS
    """The inputs that alone decide the condition of the branch being merged."""
    derived: dict[Node | Symbol, Origins | None] = field(default_factory=dict)
    """The inputs from which alone the value of a variable is computed, None where it has other
    run-time values; for variables of which that was asked when they were set."""
    chosen: dict[Node, tuple[Origins, frozenset[Node]]] = field(default_factory=dict)
    """The arrays that are copies of one of two arrays: the inputs that alone choose it, and the
    arrays."""
    guarded: set[Expr] = field(default_factory=set)
    """Divisors and products of `given` names and sizes that are proven, or checked by an emitted
    check, to give what Python computes; quotients of arrays, which NumPy computes for any."""
    unguarded: set[Expr] = field(default_factory=set)
    """Divisors and quotients of Python numbers at iteration points, which are not checked."""
    stored: dict[Node, list[Expr | None]] = field(default_factory=dict)
    """What was stored in each variable so far; None stands for what a loop stores later."""
    unstored: set[Expr] = field(default_factory=set)
    """The numbers that targets of loops were bound to, which no variable stores."""
    loop_symbols: set[Symbol] = field(default_factory=set)
    unrollable: dict[Symbol, object] = field(default_factory=dict)
    """The loop statement of each loop variable, to unroll it where the variable must be static."""
    uncounted: set[Symbol] = field(default_factory=set)
    """Variables of loops with a run-time number of iterations: these are not unrolled."""
    permuted: set[Node] = field(default_factory=set)
    """Nodes whose buffers a loop permutes (`Permute`) instead of copying."""
    shared: frozenset[Node] = frozenset()
    """Local nodes that the caller gets in several results: a copy instead of a view would show."""
    rebound: set[Node] = field(default_factory=set)
    """Nodes that carry, across iterations, an attribute that a call rebinds to another array."""
    called: Names = ()
    """The names of arrays where a statement is elaborated."""
    asks_layout: bool = False
    """Whether a result depends on the layout (strides) of an argument."""
    orders: bool = False
    """Whether the memory order that NumPy gives new arrays is tracked; see `memory_order`."""
    unordered: set[Node] = field(default_factory=set)
    """Nodes of arrays whose memory order, or contiguity, in NumPy is known at run time only."""
    swapped: dict[Node, np.dtype[Any]] = field(default_factory=dict)
    """The dtypes of arguments that are in another byte order; see `byte_order`."""
    mixed: set[str] = field(default_factory=set)
    """Names to which iterations of a loop bind arrays of different memory orders."""
    said: set[Symbol | str] = field(default_factory=set)
    """Index and loop variables of the source, and the names that it assigns."""
    bindings: dict[tuple[Node, Span], frozenset[Node]] = field(default_factory=dict)
    """Writes (node, span) that rebind a whole array, with the nodes it would alias in Python."""
    sizes: frozenset[Symbol] = frozenset()
    """Dynamic sizes of parameters."""
    stack: tuple[Span, ...] = ()
    """The calls being inlined, outermost first."""
    active: tuple[object, ...] = ()
    """The functions being elaborated, outermost first; recursion is refused."""
    control: int = 0
    """Nesting depth of loops and run-time branches at the point of emission."""
    unsure: int = 0
    """Of `control`, those that may skip it: not loops that surely complete a first iteration."""
    ended: bool = False
    """Whether the point of emission is unreachable: an unconditional check before it fails."""
    domain: tuple[Range, ...] = ()
    """The ranges of the index variables in scope, outermost first."""
    tensor_value: Callable[[Handle, Span], Array] | None = None
    """Returns the value of a persistent tensor as an array; set by `elaborate`."""
    constant: Callable[[np.ndarray[Any, Any], DType], Node] | None = None
    """Returns the hidden input for a constant table; set by `elaborate`."""
    tables: dict[Node, np.ndarray[Any, Any]] = field(default_factory=dict)
    """The constant tables among the inputs."""
    inline_source: Callable[[str, Sequence[Value], Mapping[str, Value], Span], Value] | None = None
    """Inlines a library function, given as source text; set by `elaborate`."""
    uses: list[Use] | None = None
    """During range inference: the uses of index variables so far (no checks are emitted)."""
    unrolls_items: bool = False
    """Whether comprehensions of few items are unrolled, although they could be arrays."""
    item_nodes: set[Node] = field(default_factory=set)
    """The arrays that comprehensions are, whose items have one type."""
    returned_lists: set[Node] = field(default_factory=set)
    """The arrays that are returned as lists."""
    chose_arrays: bool = False
    """Whether one is an array that could have been unrolled."""
    of_items: bool = False
    """Whether the iteration points are items of a comprehension, with Python's number types."""
    serial: int = 0

    @property
    def stable(self) -> frozenset[Symbol]:
        """Symbols valid in the whole scope of a name: loop variables, parameters, sizes."""
        return frozenset(self.loop_symbols) | self.origin.keys() | self.sizes

    @property
    def pointwise(self) -> bool:
        """Whether expressions are being elaborated per point of an iteration domain."""
        return bool(self.domain) or self.uses is not None

    def symbol(self, name: str) -> Symbol:
        """Return a fresh symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def size(self, name: str) -> Affine:
        """Return a dynamic size of a parameter: a fresh symbol, at least 2."""
        symbol = self.symbol(name)
        self.sizes |= {symbol}
        self.assumptions = self.assumptions.with_bounds(symbol, const(2), None)
        return var(symbol)

    def axes(self, rank: int) -> tuple[Symbol, ...]:
        """Return fresh symbols for the axes of an array."""
        return tuple(self.symbol(AXIS_NAMES[n % len(AXIS_NAMES)]) for n in range(rank))

    def node(self, label: str, shape: tuple[Affine, ...], dtype: DType) -> Node:
        """Return a new local node; one of dynamic shape gets its `Alloc` here."""
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

        CdSyntaxError CD0522 where it would use an index variable, which no loop binds.
        """
        index_vars = {r.symbol for r in self.domain}
        unbound = sorted(index_vars & uses_of(statement), key=str) if index_vars else ()
        if unbound and not isinstance(statement, Break | Continue):
            names = ", ".join(f"`{symbol.name}`" for symbol in unbound)
            allocates = isinstance(statement, Alloc | Assign | Let)
            what = "needs an array of its own" if allocates else "would have to run"
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
        """Context manager: yield a new list that collects the statements emitted inside."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def knowing(self, assumptions: Assumptions) -> Iterator[None]:
        """Context manager: replace the integer facts inside."""
        outer, self.assumptions = self.assumptions, assumptions
        try:
            yield
        finally:
            self.assumptions = outer

    @contextmanager
    def under(self, test: Expr) -> Iterator[None]:
        """Context manager: expressions inside are evaluated under the predicate `test`."""
        outer, self.conditions = self.conditions, (*self.conditions, test)
        try:
            with self.knowing(self.assumptions.assuming(test)):
                yield
        finally:
            self.conditions = outer

    def let(self, name: str, value: Expr, span: Span) -> Symbol:
        """Return a fresh symbol bound by an emitted `Let` to an int64 value."""
        symbol = self.symbol(name)
        self._derive(symbol, value)
        self.emit(Let(symbol, value, span))
        return symbol

    def store(
        self, target: Array, value: Expr, span: Span, op: Op | None = None,
        where: Expr | None = None,
    ) -> None:  # fmt: skip
        """Emit `target op= value` over all axes of the target; `value` is over the same axes."""
        element = target.element
        assert element is not None, "a store needs an element"
        free = Domain(target.ranges, where)
        self.emit(Assign(Access(element.node, element.index), op, False, value, free, span=span))

    def materialize(
        self, value: Array, label: str, span: Span, dtype: DType | None = None
    ) -> Array:
        """Return a new array that the value is stored in, in C order."""
        node = self.node(label, value.shape, dtype or value.kind.dtype)
        target = self.whole(node, span)
        self.store(target, cast(value.at(tuple(map(var, target.axes))), node.dtype), span)
        self.bindings[node, span] = frozenset()
        return target

    def variable(self, label: str, value: Scalar, span: Span) -> Node:
        """Return a new rank-0 node initialized with the value."""
        node = self.node(label, (), value.kind.dtype)
        self.set(node, value.expr, span)
        return node

    def set(self, node: Node, expr: Expr, span: Span) -> None:
        """Emit `node = expr` for a rank-0 node."""
        value = cast(expr, node.dtype)
        self._derive(node, expr)
        self.stored.setdefault(node, []).append(value)
        if value != Read(node, ()):
            self.emit(Assign(Access(node, ()), None, False, value, Domain(), span=span))

    def origins_of(self, expr: Expr) -> Origins | None:
        """Return the inputs from which alone a value is computed: as static ones they would make
        it static. None where it depends on other run-time values."""
        origins: set[str | Symbol] = set()
        for part in walk(expr):
            match part:
                case Position(index):
                    found = [self._origins_of_symbol(symbol) for symbol in index.symbols()]
                case Read(node, ()):
                    found = [self._origins_of_node(node)]
                case Read() | Reduce():
                    return None
                case _:
                    continue
            for each in found:
                if each is None:
                    return None
                origins |= each
        return frozenset(origins)

    def require_known(self, origins: Origins) -> None:
        """Raise NeedStatic for inputs that decide more than a value."""
        if origins:
            names = frozenset(name for name in origins if isinstance(name, str))
            raise NeedStatic(names, frozenset(x for x in origins if isinstance(x, Symbol)))

    def _origins_of_symbol(self, symbol: Symbol) -> Origins | None:
        if symbol in self.sizes:
            return frozenset((symbol,))
        name = self.origin.get(symbol)
        return self.derived.get(symbol) if name not in self.given else frozenset((name,))

    def _origins_of_node(self, node: Node) -> Origins | None:
        if node in self.derived:
            return self.derived[node]
        names = (str(path) for path, parameter in self.parameters.items() if parameter.node == node)
        return frozenset((name,)) if (name := next(names, "")) in self.given else None

    def _derive(self, target: Node | Symbol, value: Expr) -> None:
        """Record the inputs from which alone a variable is computed, as far as it is set so far."""
        if self.given or self.sizes:
            former, origins = self.derived.get(target, NO_ORIGINS), self.origins_of(value)
            if former is not None:
                self.derived[target] = None if origins is None else former | origins

    def derive_choice(self, node: Node, deciding: Origins) -> None:
        """Record that a variable has one of two values: as `deciding` decides, or, if that is
        empty, as other run-time values do."""
        origins = self.derived.get(node)
        self.derived[node] = origins | deciding if origins is not None and deciding else None

    def check(
        self, test: Expr, fault: Fault, values: tuple[Expr, ...], span: Span, over: Domain
    ) -> None:
        """Emit a run-time check, under the conditions of the expression being elaborated."""
        self.emit(Check(self.under_conditions(test), fault, values, over, span))

    def check_sizes(
        self, test: Expr, fault: Fault, sides: tuple[Position, Position], span: Span
    ) -> None:
        """Emit a run-time check of sizes.

        Where they are sizes of arguments and the check is unconditional it goes into the prologue,
        before any write, so that the call can be specialized by its sizes alone.
        """
        only_sizes = {x for side in sides for x in side.index.symbols()} <= self.sizes
        if only_sizes and not (self.control or self.conditions or self.pointwise):
            self.prologue.append(Check(test, fault, sides, Domain(), span))
        else:
            self.check(test, fault, sides, span, Domain())

    def guard(self, value: Expr, test: Expr, fault: Fault, span: Span) -> None:
        """Emit the check that a value computed from `given` parameters or sizes equals Python's."""
        if not self.pointwise:
            self.check(test, fault, (), span, Domain())
            self.guarded.add(value)

    def guard_product(self, value: Expr, test: Expr, fault: Fault, span: Span) -> None:
        """Emit the check that a product has 64 bits: of sizes alone with those of sizes, so that
        it separates no loops."""
        is_of_sizes = isinstance(value, Position) and value.index.symbols() <= self.sizes
        if is_of_sizes and not (self.control or self.conditions or self.pointwise):
            self.prologue.append(Check(test, fault, (), Domain(), span))
            self.guarded.add(value)
        else:
            self.guard(value, test, fault, span)

    def under_conditions(self, test: Expr) -> Expr:
        """Return `test` predicated on the enclosing conditions: true where they do not hold."""
        for condition in reversed(self.conditions):
            test = Select(condition, test, TRUE)
        return test

    def require(
        self, index: Affine | Expr, extent: Affine, axis: int, name: str, span: Span
    ) -> None:
        """Require `0 <= index < extent` here: proven, or checked at run time at every point.

        A failing check raises CdIndexError CD0601 with the index and the size.
        """
        if self.uses is not None:
            for factor in factors(index) if isinstance(index, Affine) else ():
                if factor.symbols() <= self.origin.keys():
                    self.prefer_static(factor)
            self.uses.append(Use(index, extent, axis, name, span))
            return
        if isinstance(index, Affine):
            assumptions = self.assumptions
            above, below = assumptions.nonnegative(index), assumptions.less(index, extent)
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
            # a run-time integer argument: checked before any write
            fault, values = index_fault(value, extent, axis, name, (), span.text)
            self.prologue.append(Check(test, fault, values, Domain(), span))
            return
        self.check(test, fault, values, span, Domain(self.domain))

    def _refute(self, index: Affine, extent: Affine, axis: int, name: str, span: Span) -> None:
        """Raise CdIndexError CD0602 where a point of the domain is surely out of range."""
        index_vars = {r.symbol for r in self.domain}
        used = sorted(index.symbols(), key=str)
        if (
            any(map(says_of_indices, self.conditions))
            or not used
            or not index_vars.issuperset(used)
        ):
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
        """Require equal extents: proven, refused (CdShapeError CD0301) or checked at run time."""
        if self.assumptions.equal(left, right):
            return
        text, sides = f"{what}: sizes {{0}} and {{1}} differ", (Position(left), Position(right))
        if self.assumptions.differ(left, right):
            raise error("CD0301", CdShapeError, text.format(left, right), span, helps=ways)
        fault = Fault("CD0301", "CdShapeError", text, ways)
        self.check_sizes(compare("eq", left, right), fault, sides, span)
        if not self.control and not self.conditions:
            self.assumptions = self.assumptions.with_facts(left - right, right - left)

    def scalar_index(self, symbol: Symbol) -> Scalar:
        """Return a symbol as a scalar of the kind of a Python int."""
        return Scalar(Position(var(symbol)), WEAK_INT)

    def require_static_parameters(self, index: Affine) -> None:
        """Raise NeedStatic where `index` uses integer parameters, so that they become static."""
        names = {self.origin[symbol] for symbol in index.symbols() if symbol in self.origin}
        if names:
            raise NeedStatic(frozenset(names))

    def prefer_static(self, index: Affine) -> None:
        """Raise NeedStatic where `index` uses integer parameters that are not all in `given`."""
        names = {self.origin[symbol] for symbol in index.symbols() if symbol in self.origin}
        if not names <= self.given:
            raise NeedStatic(frozenset(names - self.given))
        self.preferred |= names

    def require_static(self, index: Affine) -> None:
        """Raise NeedStatic or NeedUnroll where either makes symbols of `index` static."""
        self.require_static_parameters(index)
        self.require_unrolled((index,))

    def require_unrolled(self, index: Sequence[Index]) -> None:
        """Raise NeedUnroll where an index uses a loop variable, so that its loop is unrolled."""
        for symbol in (
            x for subscript in index if isinstance(subscript, Affine) for x in subscript.symbols()
        ):
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
    """Return an error of one diagnostic with `span` as its primary location."""
    helps = helps or WAYS_OUT.get(code, ())
    return kind(Diagnostic(code, message, (Label(span, label), *labels), notes, helps))


def compare(op: str, left: Affine, right: Affine) -> Expr:
    """Return the comparison `left op right` of two index expressions, as a bool expression."""
    return Apply(OPS[op], (Position(left), Position(right)), dtypes.bool_)
