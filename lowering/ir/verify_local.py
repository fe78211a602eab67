"""Verifier checks of single statements; each yields messages about what is wrong.

They receive a `StatementView` at a statement, which walks its expressions once.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter

from ...base.dataclass import dataclass
from . import assignments, dtypes, loops
from .assignments import Access, Assign, Pair
from .dtypes import DType
from .expressions import Apply, Cast, Const, Dynamic, Expr, Index, Read, Reduce, Select, walk
from .faults import error_class
from .instructions import VECTOR_BYTES, AwaitProducts, CopyVector, MatMul, StoreVector
from .loops import AnyStatement
from .node import Node
from .ops import PAIR_OPS, Op
from .walk import expressions_of, parts

Messages = Iterator[str]


def nodes_in(expr: Expr) -> tuple[Node, ...]:
    """Return the nodes that an expression reads."""
    return tuple(dict.fromkeys(e.node for e in walk(expr) if isinstance(e, Read)))


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement with its own expressions."""

    statement: AnyStatement
    exprs: tuple[Expr, ...]
    """All of its expressions and their subexpressions."""

    @classmethod
    def at(cls, statement: AnyStatement) -> StatementView:
        """Return the view of a statement."""
        return cls(statement, tuple(e for expr in expressions_of(statement) for e in walk(expr)))

    @property
    def accesses(self) -> Iterator[tuple[Node, tuple[Index, ...]]]:
        """The nodes and subscripts that it reads and writes."""
        yield from ((a.node, a.index) for a in parts(self.statement).targets)
        yield from ((e.node, e.index) for e in self.exprs if isinstance(e, Read))


def ranks_match(look: StatementView) -> Messages:
    """An access has one subscript for each axis."""
    for node, index in look.accesses:
        if len(index) != node.rank:
            yield f"{node} of rank {node.rank} has {len(index)} indices"


def constants_fit(look: StatementView) -> Messages:
    """A constant is a value of its type."""
    for expr in look.exprs:
        if isinstance(expr, Const) and not _is_value(expr.value, expr.dtype):
            yield f"{expr.value!r} is no {expr.dtype}"


def _is_value(value: object, dtype: DType) -> bool:
    match dtype.kind:
        case "b":
            return isinstance(value, bool)
        case "i" | "u":
            lo = 0 if dtype.kind == "u" else -(1 << (dtype.bits - 1))
            return isinstance(value, int) and lo <= value < lo + (1 << dtype.bits)
        case "f":
            return isinstance(value, int | float)
        case "c":
            return isinstance(value, int | float | complex)


def operands_fit(look: StatementView) -> Messages:
    """Operands are of one type, which the op admits and computes in, and the result type
    follows."""
    for expr in look.exprs:
        if isinstance(expr, Apply):
            yield from _operands(expr)


def _operands(apply: Apply) -> Messages:
    op, kinds = apply.op, {arg.dtype for arg in apply.args}
    if len(apply.args) != op.arity:
        yield f"{op} takes {op.arity} operands, not {len(apply.args)}"
    if len(kinds) != 1:
        yield f"the operands of {op} are of types {sorted(map(repr, kinds))}"
        return
    dtype = kinds.pop()
    yield from _admits(op, dtype)
    if apply.dtype != _result(op, dtype):
        yield f"{op} of {dtype} gives {_result(op, dtype)}, not {apply.dtype}"


def _admits(op: Op, dtype: DType) -> Messages:
    if dtype.kind not in op.admits:
        yield f"{op} does not admit {dtype}"
    elif dtype != dtype.compute:
        yield f"{op} is computed in {dtype.compute}, not {dtype}"


def _result(op: Op, dtype: DType) -> DType:
    match op.result:
        case "same":
            return dtype
        case "bool":
            return dtypes.bool_
        case "real":
            return dtype.real
        case "unsigned":
            return dtypes.BY_SHORT[f"u{dtype.bits}"]
        case "signed":
            return dtypes.BY_SHORT[f"i{dtype.bits}"]
        case "float":
            return dtypes.BY_SHORT[f"f{dtype.bits}"]
        case "complex":
            return dtypes.complex64 if dtype.bits == 32 else dtypes.complex128


def selects_agree(look: StatementView) -> Messages:
    """Both arms of a select are of one type, and its test is bool."""
    for expr in look.exprs:
        if isinstance(expr, Select):
            if expr.yes.dtype != expr.no.dtype:
                yield f"the sides are {expr.yes.dtype} and {expr.no.dtype}"
            if expr.test.dtype != dtypes.bool_:
                yield f"the test is {expr.test.dtype}"


def tests_are_bool(look: StatementView) -> Messages:
    """Tests of branches, loops and checks, and predicates of domains, are bool."""
    statement = look.statement
    fields = parts(statement)
    tests = [d.where for d in fields.domains if d.where is not None]
    tests += [e.domain.where for e in look.exprs if isinstance(e, Reduce) and e.domain.where]
    match statement:
        case (
            assignments.While() | loops.While() | assignments.Branch() | loops.If()
            | assignments.Check() | loops.Check()
        ):  # fmt: skip
            tests.append(statement.test)
        case _:
            pass
    yield from (f"a test is {test.dtype}" for test in tests if test.dtype != dtypes.bool_)


def indices_are_integers(look: StatementView) -> Messages:
    """Data-dependent subscripts and values of `Let` are int64."""
    statement = look.statement
    for node, index in look.accesses:
        for subscript in index:
            if isinstance(subscript, Dynamic) and subscript.value.dtype != dtypes.int64:
                yield f"an index of {node} is {subscript.value.dtype}"
    if isinstance(statement, assignments.Let) and statement.value.dtype != dtypes.int64:
        yield f"{statement.symbol.name} is {statement.value.dtype}"


def stored_types_agree(look: StatementView) -> Messages:
    """The stored or accumulated value is of the node's type."""
    match look.statement:
        case Assign(Access(node), _, _, value) | loops.Update(Access(node), _, value):
            pass
        case loops.Store(Access(node), value) | loops.Fill(node, value):
            pass
        case CopyVector(Access(node), value):
            pass
        case StoreVector(Access(node), _, values):
            yield from (message for one in values for message in _stored(one, node))
            return
        case _:
            return
    yield from _stored(value, node)


def _stored(value: Expr, node: Node) -> Messages:
    if value.dtype != node.dtype:
        yield f"a value of {value.dtype} goes into {node} of {node.dtype}"


def accumulators_fit(look: StatementView) -> Messages:
    """The op of an accumulation admits the node's type; a plain assignment reduces over nothing."""
    match look.statement:
        case Assign(_, None, initialize, _, _, reduced):
            if reduced.ranges:
                yield "a plain assignment reduces over ranges"
            if initialize:
                yield "a plain assignment has no neutral element"
        case Assign(target, op, initialize) if op is not None:
            yield from _accumulator(op, target.node)
            if initialize and op.neutral is None and op.name not in PAIR_OPS:
                yield f"{op} has no neutral element"
        case loops.Update(access, op):
            yield from _accumulator(op, access.node)
        case _:
            return


def _accumulator(op: Op, node: Node) -> Messages:
    if op.arity != 2 or op.result != "same" and node.dtype != dtypes.bool_:
        yield f"{op} does not accumulate"
    yield from _admits(op, node.dtype)


def pairs_fit(look: StatementView) -> Messages:
    """Pairs occur with argmin and argmax and only with them; their position is int64."""
    match look.statement:
        case Assign(_, op, _, _, _, _, pair) | loops.Update(_, op, _, pair):
            yield from _pair(op, pair)
        case _:
            pass
    for expr in look.exprs:
        if isinstance(expr, Reduce) and (expr.op.name in PAIR_OPS) != (expr.position is not None):
            yield f"a reduction by {expr.op} has the wrong kind of position"


def _pair(op: Op | None, pair: Pair | None) -> Messages:
    if (op is not None and op.name in PAIR_OPS) != (pair is not None):
        yield f"{op} {'has a' if pair else 'has no'} place for the position"
    if pair is not None and pair.access.node.dtype != dtypes.int64:
        yield f"the position goes into {pair.access.node} of {pair.access.node.dtype}"


def vectors_fit(look: StatementView) -> Messages:
    """Elements of a vector are contiguous, and at least two; a copy is of 16 bytes."""
    match look.statement:
        case CopyVector(target, Read(node, index), count, (axis, other)):
            yield from _contiguous(target, axis)
            yield from _contiguous(Access(node, index), other)
            if count * node.dtype.itemsize != VECTOR_BYTES:
                yield f"{count} elements of {node} are copied at once"
        case StoreVector(access, axis, values):
            yield from _contiguous(access, axis)
            if len(values) < 2:
                yield f"{len(values)} elements of {access.node} are a vector"
        case _:
            pass


def _contiguous(access: Access, axis: int) -> Messages:
    rank = access.node.rank
    if axis not in range(-rank, 0) or access.node.element_strides[axis].constant != 1:
        yield f"{access.node} is not contiguous along axis {axis}"
    elif isinstance(access.index[axis], Dynamic):
        yield f"data decides where a vector of {access.node} is"


def products_fit(look: StatementView) -> Messages:
    """Accumulators of products are float32 and have axes of static extents; as many products are
    added at once. Both factors are read from tiles of one type."""
    match look.statement:
        case AwaitProducts(node):
            yield from _accumulators_of_products(node)
        case MatMul(Access(node), first, second, over):
            yield from _accumulators_of_products(node)
            factors = [_converted(factor) for factor in (first, second)]
            if not all(isinstance(factor, Read) for factor in factors):
                yield "a factor is not an element of a tile"
            if len({factor.dtype for factor in factors}) > 1:
                yield f"factors are of {factors[0].dtype} and {factors[1].dtype}"
            if any(factor.dtype != node.dtype for factor in (first, second)):
                yield f"products of {first.dtype} and {second.dtype} are added to {node.dtype}"
            if any((one.hi - one.lo).constant is None for one in over):
                yield "a tile is of run-time size"
        case _:
            pass


def _converted(factor: Expr) -> Expr:
    """Return what a conversion of a factor converts, if it is one."""
    return factor.value if isinstance(factor, Cast) else factor


def _accumulators_of_products(node: Node) -> Messages:
    if not node.rank or node.static_shape is None or node.dtype != dtypes.float32:
        yield f"{node} cannot hold sums of products"


def no_reduce(look: StatementView) -> Messages:
    """No reduction is left inside an expression."""
    if any(isinstance(expr, Reduce) for expr in look.exprs):
        yield "a reduction is left inside an expression"


def allocations_are_dynamic(look: StatementView) -> Messages:
    """Only nodes of run-time shape are allocated."""
    statement = look.statement
    if isinstance(statement, assignments.Alloc) and statement.node.static_shape is not None:
        yield f"{statement.node} has a static shape"


def permutations_fit(look: StatementView) -> Messages:
    """Both sides of a permutation have the same nodes, of equal types, shapes and strides."""
    statement = look.statement
    if not isinstance(statement, assignments.Permute):
        return
    nodes, sources = statement.nodes, statement.sources
    if sorted({n.id for n in nodes}) != sorted(n.id for n in sources):
        yield "the two sides are not the same nodes"
    elif len({(node.dtype, node.shape, node.strides) for node in nodes}) > 1:
        yield f"{', '.join(map(repr, nodes))} are of different shapes, strides or types"


def faults_can_be_raised(look: StatementView) -> Messages:
    """A fault names an error class, and its message has a value for each slot."""
    statement = look.statement
    if not isinstance(statement, assignments.Check | loops.Check):
        return
    try:
        if ":" not in statement.fault.kind:
            error_class(statement.fault.kind)
    except KeyError:
        yield f"there is no error class {statement.fault.kind}"
    slots = [slot for _, slot, _, _ in Formatter().parse(statement.fault.message) if slot]
    if any(not s[0].isdigit() or int(s[0]) >= len(statement.values) for s in slots):
        yield f"the message has slots {slots} for {len(statement.values)} values"


def steps_are_not_zero(look: StatementView) -> Messages:
    """The step of a loop is not zero."""
    if isinstance(look.statement, assignments.For | loops.For) and look.statement.step == 0:
        yield "the step is zero"
