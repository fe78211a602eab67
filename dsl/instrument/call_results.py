"""Checks for new NaNs in the results of library calls.

    x = np.linalg.solve(a, b)    becomes    nans = the number of NaNs in a and b
                                            the statements of the library
                                            check: nans or no element of x is NaN

The statements between are not checked for NaNs or overflow: library text reinterprets bits, wraps
around and discards NaNs on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access, Alloc, Assign, Check, For, Procedure, Statement
from ...lowering.ir.expressions import Apply, Cast, Const, Domain, Expr, Index, Read
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import map_bodies
from ...lowering.ir.walk import binds, direct_effects, statements
from ..values.types import cast, negate
from .library_calls import classify_nodes, footprint, group_by_call, is_library_text

Loops = tuple[Symbol, ...]
"""The loop variables of the enclosing `for` statements, outermost first."""
CheckFactory = Callable[[Expr, Domain, Span, Loops], Check]
"""A function that returns the check of a test at each point of a domain, for a call in loops."""


def is_nan(expr: Expr) -> Expr:
    """Return the test whether a float or complex value is NaN."""
    return Apply(OPS["isnan"], (cast(expr, expr.dtype.compute),), dtypes.bool_)


class ResultChecks:
    """The traversal that adds the checks, and the counts that it adds to the local variables."""

    def __init__(self, procedure: Procedure, new_check: CheckFactory) -> None:
        nodes = (*(p.node for p in procedure.parameters), *procedure.locals, *procedure.results)
        sizes = [x for node in nodes for extent in node.shape for x in extent.symbols()]
        bound = [x for item in statements(procedure.body) for x in binds(item)]
        self.serial = max((x.serial for x in (*sizes, *bound)), default=0)
        self.last_id = max((node.id for node in nodes), default=0)
        self.seen = classify_nodes(procedure).seen
        self.new_check, self.named = new_check, procedure.source_symbols
        self.locals: list[Node] = []

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def add_to(self, body: tuple[Statement, ...], loops: Loops = ()) -> tuple[Statement, ...]:
        """Return a block, inside of loops, with the checks added."""
        out: list[Statement] = []
        for call, group in group_by_call(body):
            if call is None:
                (statement,) = group
                inner = loops
                if isinstance(statement, For) and statement.symbol in self.named:
                    inner = (*loops, statement.symbol)
                out.append(map_bodies(statement, partial(self.add_to, loops=inner)))
            elif any(map(is_library_text, statements(group))):
                out += self.around_call(call, group, loops)
            else:
                out += group
        return tuple(out)

    def around_call(
        self, call: Span, group: tuple[Statement, ...], loops: Loops
    ) -> Iterator[Statement]:
        """Yield the statements of a call with the check of its results around them."""
        floats = _float_accesses(group)
        results = [node for node in floats.written if node.id in self.seen]
        if not results:
            yield from group
            return
        counts: list[Expr] = []
        for node, indices in floats.indices.items():
            domain, index = footprint(node, indices, floats.bound, self.symbol)
            given = Cast(is_nan(Read(node, index)), dtypes.int64)
            total = Node(self.last_id + 1 + len(self.locals), "nans", (), dtypes.int64)
            self.locals.append(total)
            counts.append(Read(total, ()))
            op = OPS["add"] if domain.ranges else None
            yield Assign(Access(total, ()), op, op is not None, given, Domain(), domain)
        yield from group
        for node in results:
            domain, index = footprint(node, floats.indices[node], floats.bound, self.symbol)
            test = negate(is_nan(Read(node, index)))
            for count in counts:
                any_given = Apply(OPS["ne"], (count, Const(0, dtypes.int64)), dtypes.bool_)
                test = Apply(OPS["or"], (any_given, test), dtypes.bool_)
            yield self.new_check(test, domain, call, loops)


@dataclass(frozen=True, slots=True)
class _FloatAccesses:
    """The float arrays that exist around a call, and where its statements access them."""

    indices: dict[Node, list[tuple[Index, ...]]]
    written: tuple[Node, ...]
    bound: frozenset[Symbol]


def _float_accesses(group: tuple[Statement, ...]) -> _FloatAccesses:
    inlined = statements(group)
    bound = frozenset(x for item in inlined for x in binds(item))
    allocated = {statement.node for statement in inlined if isinstance(statement, Alloc)}
    indices: dict[Node, list[tuple[Index, ...]]] = {}
    written: dict[Node, None] = {}
    for statement in inlined:
        accesses: list[Access | Read] = [*direct_effects(statement).all_reads]
        if isinstance(statement, Assign):
            accesses.append(statement.target)
            written[statement.target.node] = None
        for access in accesses:
            indices.setdefault(access.node, []).append(access.index)
    visible = {
        node: accessed
        for node, accessed in indices.items()
        if node.dtype.kind in "fc"
        and node not in allocated
        and not bound & {x for extent in node.shape for x in extent.symbols()}
    }
    return _FloatAccesses(visible, tuple(node for node in written if node in visible), bound)
