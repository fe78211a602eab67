"""Fresh locals and symbols: names that occur nowhere else in a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ...base.dataclass import dataclass
from . import walk
from .assignments import Alloc
from .dtypes import DType
from .expressions import Apply, Cast, Expr, Read
from .indexing import Affine, Symbol, const
from .loops import Program, Stmt
from .memo import memoize
from .node import Node, Purpose

_NOUNS = {"add": "total", "sub": "difference", "mul": "product", "div": "quotient"}
"""Names of the results of arithmetic; other operations give their own name."""


@dataclass(slots=True)
class Fresh:
    """Creates scalars and symbols, and keeps the scalars until the program declares them."""

    node: int
    serial: int
    nodes: list[Node] = field(default_factory=list)
    sizes: frozenset[Symbol] = frozenset()
    """The sizes of arguments, which are bound at entry."""

    def fits(self, shape: Iterable[Affine]) -> bool:
        """Whether an array of a shape can be allocated at entry."""
        return all(extent.symbols() <= self.sizes for extent in shape)

    def scalar(self, label: str, dtype: DType) -> Node:
        """Return a new scalar local."""
        self.node += 1
        node = Node(self.node, label, (), dtype)
        self.nodes.append(node)
        return node

    def array(
        self, label: str, shape: tuple[int | Affine, ...], dtype: DType, purpose: Purpose = ""
    ) -> Node:
        """Return a new local for a schedule; its shape is static, or of sizes of arguments."""
        self.node += 1
        extents = tuple(const(size) if isinstance(size, int) else size for size in shape)
        node = Node(self.node, label, extents, dtype, purpose=purpose)
        self.nodes.append(node)
        return node

    def like(self, node: Node) -> Node:
        """Return a new local like another one."""
        self.node += 1
        copy = replace(node, id=self.node)
        self.nodes.append(copy)
        return copy

    def symbol(self, name: str) -> Symbol:
        """Return a new symbol."""
        self.serial += 1
        return Symbol(name, self.serial)

    def declared(self, program: Program) -> Program:
        """Return the program with the created nodes among its locals, and with allocations of those
        of run-time shape that have none yet."""
        if not self.nodes:
            return program
        inside = [stmt for kernel in program.kernels for stmt in walk.statements(kernel.body)]
        allocated = {stmt.node.id for stmt in inside if isinstance(stmt, Alloc)}
        allocations = tuple(
            Alloc(node) for node in self.nodes
            if node.static_shape is None and node.id not in allocated
        )  # fmt: skip
        first, *rest = program.kernels
        kernels = (
            (replace(first, body=(*allocations, *first.body)), *rest)
            if allocations
            else program.kernels
        )
        return replace(program, locals=(*program.locals, *self.nodes), kernels=kernels)


def fresh_for(program: Program) -> Fresh:
    """Return a source of scalars and symbols that the program does not have."""
    nodes = (*(p.node for p in program.parameters), *program.locals, *program.results)
    serials = [s.serial for node in nodes for extent in node.shape for s in extent.symbols()]
    serials += [_highest_serial(stmt) for kernel in program.kernels for stmt in kernel.body]
    extents = (extent for p in program.parameters for extent in p.node.shape)
    sizes = frozenset(extent.symbol for extent in extents if extent.symbol is not None)
    last_id = max((n.id for n in nodes), default=-1)
    return Fresh(max(last_id, program.last_id), max(serials, default=-1), sizes=sizes)


def _highest_serial(stmt: Stmt) -> int:
    """Return the highest serial of a symbol bound in a statement, -1 where none is; memoized."""
    try:
        memo: int = stmt.serial
    except AttributeError:
        serials = [_highest_serial(nested) for body in walk.bodies(stmt) for nested in body]
        serials += [symbol.serial for symbol in walk.binds(stmt)]
        memo = memoize(stmt, "serial", max(serials, default=-1))
    return memo


def label_of(expr: Expr) -> str:
    """Return a short name for a local that holds the value: the operation and its operand.

    >>> from plusequals.lowering.ir.dtypes import float32, float64
    >>> label_of(Cast(Read(Node(0, "rate", (), float64), ()), float32))
    'rate_f32'
    """
    match expr:
        case Read(node):
            return f"{node.label}_at"
        case Cast(Read(node), dtype):
            return f"{node.label}_{dtype.short}"
        case Cast(value, _):
            return label_of(value)
        case Apply(op) if op.name in _NOUNS:
            return _NOUNS[op.name]
        case Apply(op, args):
            inner = args[0].node.label if isinstance(args[0], Read) else label_of(args[0])
            return f"{op}_{inner if len(inner) <= 16 else 'value'}"
        case _:
            return "value"
