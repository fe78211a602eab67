"""Expressions, subscripts and domains compiled to Python text: the lower half of the interpreter.

An expression becomes the text of a Python expression over NumPy scalars, a domain the lines of
`for` and `if` around others. In such a text arrays are called `a0`, their sizes `s0_0`, symbols
`i0`, cells of arrays `c0`; `k0` is any other object, such as a constant or the function of an
operation. Texts of programs that differ in those only are equal, and are compiled once. An
out-of-bounds access is a bug of the compiler and raises `CdInternalError`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.diagnostic import CdInternalError, Diagnostic
from .expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
)
from .faults import raise_fault
from .indexing import Affine, Quasi, Range, Symbol
from .node import Node
from .ops import Op, neutral_of
from .scalars import conversion_function, is_better, scalar_function

Array = NDArray[Any]
Lines = list[str]


@dataclass(frozen=True, slots=True)
class State:
    """The state of a running program: the array of each node id, the value of each symbol."""

    show: Callable[[str], None]
    arrays: dict[int, Array] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """By the `symbol_key` of each symbol."""

    def array(self, node: Node) -> Array:
        """The array of a node. Raises CdInternalError where it has no storage yet."""
        array = self.arrays.get(node.id)
        if array is None:
            raise invalid_program_error(f"{node} has no storage")
        return array


def symbol_key(symbol: Symbol) -> str:
    """Return the name of a symbol in the numbers of a state."""
    return f"{symbol.name}.{symbol.serial}"


_LIMIT = 2**63
MAX_STATEMENT_DEPTH = 10
"""Nesting depth of statements in one Python function, which may have 20 loops."""
_MAX_RANGES = 8
"""Ranges of a domain in one Python function."""
_MAX_EXPRESSION_DEPTH = 40
"""Nesting depth of expressions in one Python function, whose text may have 200 open brackets."""


def invalid_program_error(text: str) -> CdInternalError:
    """Return the error for a program that no lowering may produce."""
    return CdInternalError(Diagnostic("CD0991", f"an impossible program was interpreted: {text}"))


def compile_value(expr: Expr) -> Callable[[State], Any]:
    """Return the function from a state to the expression's value, a NumPy scalar of its dtype."""
    writer = PythonWriter()
    return writer.function([f"return {writer.value(expr)}"])


def compile_index(index: Affine) -> Callable[[State], int]:
    """Return the function from a state to the 64-bit value of an index expression."""
    writer = PythonWriter()
    return writer.function([f"return {writer.number(index)}"])


@dataclass(frozen=True, slots=True)
class PythonWriter:
    """Writes one Python function, and keeps the objects that its names stand for."""

    constants: list[Any] = field(default_factory=list)
    nodes: dict[int, Node] = field(default_factory=dict)
    """By id, in the order of their names."""
    arrays: dict[int, str] = field(default_factory=dict)
    symbols: dict[Symbol, str] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)
    parts: list[Lines] = field(default_factory=list)
    """The lines of nested functions, for what runs more than once or is too deep for one."""

    def function(self, lines: Lines) -> Callable[[State], Any]:
        """Return the function whose body the lines are; it stores new arrays in the state."""
        names, nodes = [symbol_key(symbol) for symbol in self.symbols], list(self.nodes.values())
        constants, run = tuple(self.constants), _compile_text("\n".join(self._function_text(lines)))

        def call(state: State) -> Any:
            arrays = [_array_of(node, state) for node in nodes]
            return run(constants, arrays, [state.numbers.get(name) for name in names], state)

        return call

    def _function_text(self, lines: Lines) -> Lines:
        sizes = [name for node in self.nodes.values() for name in self.sizes(node)]
        shared = [*self.arrays.values(), *sizes, *self.symbols.values()]
        nonlocal_ = [f"nonlocal {', '.join(shared)}"] if shared else []
        return with_suite("def run(known, arrays, numbers, state):", [
            f"[{', '.join(f'k{n}' for n in range(len(self.constants)))}] = known",
            f"[{', '.join(self.arrays.values())}] = arrays",
            f"[{', '.join(self.symbols.values())}] = numbers",
            *(line for node in self.nodes.values() for line in self.size_bindings(node)),
            *(line for n, part in enumerate(self.parts)
              for line in with_suite(f"def part{n}():", [*nonlocal_, *part])),
            *lines,
        ])  # fmt: skip

    def part(self, lines: Lines) -> str:
        """Return the call of a nested function with these lines."""
        self.parts.append(lines)
        return f"part{len(self.parts) - 1}()"

    def refer(self, what: Any) -> str:
        """Return the name of an object."""
        self.constants.append(what)
        return f"k{len(self.constants) - 1}"

    def array(self, node: Node) -> str:
        """Return the name of the array behind a node."""
        self.nodes.setdefault(node.id, node)
        return self.arrays.setdefault(node.id, f"a{len(self.arrays)}")

    def sizes(self, node: Node) -> Lines:
        """Return the names of the array's sizes."""
        name = self.array(node)[1:]
        return [f"s{name}_{axis}" for axis in range(node.rank)]

    def size_bindings(self, node: Node) -> Lines:
        """Return the lines that bind the sizes after a node gets an array."""
        sizes = self.sizes(node)
        return [f"[{', '.join(sizes)}] = {self.array(node)}.shape"] if sizes else []

    def symbol(self, symbol: Symbol) -> str:
        """Return the name of a symbol."""
        return self.symbols.setdefault(symbol, f"i{len(self.symbols)}")

    def value(self, expr: Expr, depth: int = 0) -> str:
        """Return the Python of an expression, a NumPy scalar of its dtype."""
        if depth > _MAX_EXPRESSION_DEPTH:
            return self.part([f"return {self.value(expr)}"])
        depth += 1
        match expr:
            case Const(value, dtype):
                return self.refer(dtype.numpy.type(value))
            case Read(node, index):
                return self._element(node, index, depth)
            case Position(index):
                return f"int64({self.number(index, depth)})"
            case Apply(Op(name="and" | "or" as word), (left, right), _):
                # an earlier test may guard the reads of a later one, as in C
                return f"({self.value(left, depth)} {word} {self.value(right, depth)})"
            case Apply(op, args, _):
                meaning = self.refer(scalar_function(op, args[0].dtype))
                return f"{meaning}({', '.join(self.value(arg, depth) for arg in args)})"
            case Cast(value, dtype):
                convert = self.refer(conversion_function(value.dtype, dtype))
                return f"{convert}({self.value(value, depth)})"
            case Select(test, yes, no):
                holds, if_so, if_not = (self.value(operand, depth) for operand in (test, yes, no))
                return f"({if_so} if {holds} else {if_not})"
            case Reduce():
                return self.part(self._reduce(expr))
            case _:
                assert_never(expr)

    def _reduce(self, expr: Reduce) -> Lines:
        value = self.value(expr.value)
        if expr.position is not None:
            op, here = self.refer(expr.op), self.number(expr.position)
            test = f"if found < 0 or beats({op}, candidate, best):"
            each = [f"candidate = {value}", *with_suite(test, [f"best, found = candidate, {here}"])]
            return ["best, found = None, -1", *self.points(expr.domain, each),
                    "return int64(found)"]  # fmt: skip
        dtype, meaning = expr.dtype, self.refer(scalar_function(expr.op, expr.dtype))
        neutral = self.refer(dtype.numpy.type(neutral_of(expr.op, dtype.kind, dtype.bits)))
        each = [f"total = {meaning}(total, {value})"]
        return [f"total = {neutral}", *self.points(expr.domain, each), "return total"]

    def points(self, domain: Domain, each: Lines) -> Lines:
        """Return the lines of loops that run these lines at each point of a domain, in order."""
        if domain.where is not None:
            each = with_suite(f"if {self.value(domain.where)}:", each)
        return self._over(domain.ranges, each)

    def _over(self, ranges: Sequence[Range], each: Lines) -> Lines:
        outer, inner = ranges[:-_MAX_RANGES], ranges[-_MAX_RANGES:]
        for range_ in reversed(inner):
            lo, hi = self.number(range_.lo), self.number(range_.hi)
            each = with_suite(f"for {self.symbol(range_.symbol)} in range({lo}, {hi}):", each)
        return (
            with_suite(f"for _ in {self.part(self._over(outer, ['yield']))}:", each)
            if outer
            else each
        )

    def _element(self, node: Node, index: tuple[Index, ...], depth: int) -> str:
        array, sizes = self.array(node), self.sizes(node)
        if not index:
            return f"{array}[()]"
        names, tests = [], []
        for subscript, size in zip(index, sizes, strict=True):
            text = self.index(subscript, depth)
            names.append(text if _is_plain_symbol(subscript) else self.new_cell())
            at = text if _is_plain_symbol(subscript) else f"({names[-1]} := {text})"
            tests.append(f"(0 <= {at} < {size})")
        cell = ", ".join(names)
        outside = f"{array}[within({self.refer(node)}, {array}, ({cell},))]"
        # `&` evaluates all tests, so that every name is bound
        both = (" and " if all(map(_is_plain_symbol, index)) else " & ").join(tests)
        return f"({array}[{cell}] if {both} else {outside})"

    def cell(self, node: Node, index: tuple[Index, ...]) -> tuple[Lines, str]:
        """Return the lines that compute a cell of an array, and its text between brackets."""
        if not index:
            return [], "()"
        sizes = self.sizes(node)
        names, setup, moved = [], [], []
        for subscript in index:
            text = self.index(subscript)
            names.append(text if _is_plain_symbol(subscript) else self.new_cell())
            moved.append("_" if _is_plain_symbol(subscript) else names[-1])
            setup += [] if _is_plain_symbol(subscript) else [f"{names[-1]} = {text}"]
        tests = " and ".join(f"0 <= {n} < {size}" for n, size in zip(names, sizes, strict=True))
        cell = ", ".join(names)
        outside = (
            f"[{', '.join(moved)}] = within({self.refer(node)}, {self.array(node)}, ({cell},))"
        )
        return [*setup, *with_suite(f"if not ({tests}):", [outside])], cell

    def new_cell(self) -> str:
        """Return a new name for a cell."""
        self.cells.append(f"c{len(self.cells)}")
        return self.cells[-1]

    def index(self, index: Index, depth: int = 0) -> str:
        """Return the Python of a subscript, which may have to be wrapped."""
        if isinstance(index, Dynamic):
            return f"int({self.value(index.value, depth)})"
        return self._sum(index, depth)

    def number(self, index: Affine, depth: int = 0) -> str:
        """Return the Python of the 64-bit value of an index expression."""
        if not index.terms:
            return self.refer(_wrap_64(index.offset))
        exact = self._sum(index, depth)
        return exact if index.symbol is not None else f"wrapped({exact})"

    def _sum(self, index: Affine, depth: int) -> str:
        if depth > _MAX_EXPRESSION_DEPTH:
            return self.part([f"return {self._sum(index, 0)}"])
        terms = [
            self._atom(atom, depth + 1)
            if factor == 1
            else f"{self.refer(factor)} * {self._atom(atom, depth + 1)}"
            for atom, factor in index.terms
        ]
        if index.offset or not terms:
            terms.append(self.refer(index.offset))
        return " + ".join(terms)

    def _atom(self, atom: Symbol | Quasi, depth: int) -> str:
        if isinstance(atom, Symbol):
            return self.symbol(atom)
        left, right = self.number(atom.left, depth), self.number(atom.right, depth)
        if sign := _SIGNS.get(atom.op) if atom.op == "mul" or atom.right.constant else None:
            return f"({left} {sign} {right})"
        return f"{atom.op}({left}, {right})"


_SIGNS = {"mul": "*", "floordiv": "//", "mod": "%"}


def _is_plain_symbol(index: Index) -> bool:
    return isinstance(index, Affine) and index.symbol is not None


def with_suite(head: str, lines: Lines) -> Lines:
    """Return a statement of Python with a body."""
    return [head, *(f" {line}" for line in lines or ["pass"])]


@functools.lru_cache(2000)
def _compile_text(text: str) -> Callable[..., Any]:
    """Return the function `run` of a text; memoized."""
    scope: dict[str, Any] = dict(_GLOBALS)
    exec(text, scope)  # noqa: S102 - the text of `PythonWriter`, in which nothing else is written
    run: Callable[..., Any] = scope["run"]
    return run


class _MissingArray:
    """Stands for the array of a node that has no storage yet."""

    def __init__(self, node: Node) -> None:
        self.node, self.shape = node, (0,) * node.rank

    def __getitem__(self, cell: Any) -> Any:
        raise invalid_program_error(f"{self.node} has no storage")

    __setitem__: Any = __getitem__


def _array_of(node: Node, state: State) -> Array | _MissingArray:
    array = state.arrays.get(node.id)
    return _MissingArray(node) if array is None else array


def _store_arrays(state: State, arrays: dict[int, Array | _MissingArray]) -> None:
    """Store arrays in a state, by the ids of their nodes."""
    state.arrays.update({
        node: array for node, array in arrays.items() if not isinstance(array, _MissingArray)
    })  # fmt: skip


def _check_bounds(
    node: Node, array: Array | _MissingArray, cell: tuple[int, ...]
) -> tuple[int, ...]:
    """Return a cell wrapped to 64 bits; raises where it is out of bounds."""
    if isinstance(array, _MissingArray):
        array[cell]
    wrapped = tuple(map(_wrap_64, cell))
    if not all(0 <= at < size for at, size in zip(wrapped, array.shape, strict=True)):
        raise invalid_program_error(f"{node} of shape {array.shape} is accessed at {wrapped}")
    return wrapped


def _wrap_64(number: int) -> int:
    """Return a number wrapped to 64 bits, as C's arithmetic does."""
    if -_LIMIT <= number < _LIMIT:
        return number
    return (number + _LIMIT) % (2 * _LIMIT) - _LIMIT


def _floordiv(left: int, right: int) -> int:
    return left // right if right else 0


def _mod(left: int, right: int) -> int:
    return left % right if right else 0


_GLOBALS = {
    "beats": is_better, "floordiv": _floordiv, "int64": np.int64, "leave": _store_arrays,
    "mod": _mod, "within": _check_bounds, "wrapped": _wrap_64, "zeros": np.zeros,
    "raise_fault": raise_fault,
}  # fmt: skip
"""The globals of the written Python."""
