"""Loop headers, fill loops and pointer exchanges as text."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.diagnostic import Span
from ...lowering.ir.assignments import Access, Permute
from ...lowering.ir.expressions import Expr
from ...lowering.ir.indexing import Symbol, const, var
from ...lowering.ir.loops import Barrier, For, Stmt, Store
from ...lowering.ir.node import Node
from ...lowering.ir.walk import statements
from .c_expression import Scope
from .dialect import Dialect
from .names import Names

UNROLL_LIMIT = 16
"""The unroll limit of a loop whose full unrolling would take registers from its surroundings."""


def loop_header(
    name: str, lo: str, hi: str, step: int, kind: str = "int64_t", left: str | None = None
) -> str:
    """Return the header of a loop; a variable `left`, where given, counts remaining iterations.

    >>> loop_header("i", "n", "0", -2)
    'for (int64_t i = n; i > 0; i -= 2)'
    >>> loop_header("i", "0", "n", 2, left="m")
    'for (int64_t i = 0, m = trip_count(0, n, 2); m != 0; m--, i += 2)'
    """
    sign = "+" if step > 0 else "-"
    advance = f"{name}{sign}{sign}" if abs(step) == 1 else f"{name} {sign}= {abs(step)}"
    if left is not None:
        low, high = (lo, hi) if step > 0 else (hi, lo)
        count = f"trip_count({low}, {high}, {abs(step)})"
        return f"for ({kind} {name} = {lo}, {left} = {count}; {left} != 0; {left}--, {advance})"
    return _for_header(name, lo, hi, step, advance, kind)


def strip_mined_header(begin: str, end: str, lo: str, hi: str, by: int) -> tuple[str, str, str]:
    """Return the parts of a strip-mined loop with strips of `by`, the last one shorter: the header
    of the loop over strips, the test whether a strip is not the first, and the end of a strip.

    >>> print(*strip_mined_header("a", "b", "0", "n", -6), sep="\\n")
    for (int64_t a = 0, b; a > n; a = b)
    a < 0
    b = a - (uint64_t)n <= 6 ? n : a - 6;
    """
    limit = hi if hi.isidentifier() else f"({hi})"
    if by > 0:
        less, more, distance, later = "<", ">", f"{hi} - (uint64_t){begin}", f"{begin} + {by}"
    else:
        less, more, distance, later = ">", "<", f"{begin} - (uint64_t){limit}", f"{begin} - {-by}"
    header = f"for (int64_t {begin} = {lo}, {end}; {begin} {less} {hi}; {begin} = {end})"
    return header, f"{begin} {more} {lo}", f"{end} = {distance} <= {abs(by)} ? {hi} : {later};"


def loop_pragma(loop: For, dialect: Dialect) -> str:
    """Return the pragma above a loop: how far compilers are to unroll it.

    Iterations with a barrier share nothing, so that unrolling only takes registers; a loop around
    an unrolled one is unrolled twice.
    """
    if loop.kind == "serial":
        if any(isinstance(stmt, Barrier) for stmt in loop.body):
            return dialect.unroll_limit.format(1)
        if any(isinstance(stmt, For) and stmt.kind == "unrolled" for stmt in loop.body):
            return dialect.unroll_limit.format(2)
    if loop.kind == "rolled":
        return dialect.unroll_limit.format(UNROLL_LIMIT)
    return dialect.loop_hooks.get(loop.kind, "")


def distributed_header(
    loop: For, name: str, lo: str, hi: str, dialect: Dialect, kind: str = "int64_t"
) -> str:
    """Return the header of a loop distributed cyclically over threads; `kind` is the type of its
    variable."""
    sign = "+" if loop.step > 0 else "-"
    factor = "" if abs(loop.step) == 1 else f"*{abs(loop.step)}"
    first, count = (
        f"({kind}){text.format(_grid_axis(loop))}" for text in dialect.spread[loop.kind]
    )
    lo = f"{first}{factor}" if lo == "0" and sign == "+" else f"{lo} {sign} {first}{factor}"
    return _for_header(name, lo, hi, loop.step, f"{name} {sign}= {count}{factor}", kind)


def progress(loop: For, name: str) -> str:
    """Return the progress of a loop: a number that grows in program order.

    A thread loop whose iterations an inner loop strides over has none of its own: 0.
    """
    if loop.kind == "thread" and (count := (loop.hi - loop.lo).constant) is not None:
        for inner in statements(loop.body):
            stride = inner.lo.coefficient(loop.symbol) if isinstance(inner, For) else 0
            if stride and isinstance(inner, For) and inner.step == stride * count:
                return "0"
    return name if loop.step > 0 else f"-{name}"


def is_better_test(op: str, kind: str, value: str, best: str) -> str:
    """Return the test whether a value is better than the best one of an argmin or argmax.

    >>> is_better_test("argmin", "i", "a", "b")
    'a < b'
    """
    test = f"{value} {'<' if op == 'argmin' else '>'} {best}"
    return f"{test} || ({value} != {value} && {best} == {best})" if kind == "f" else test


def fill_loops(node: Node, value: Expr, span: Span) -> Stmt:
    """Return the loop nest that stores a value into every element."""
    symbols = [Symbol("ijklmn"[axis % 6], -1 - axis) for axis in range(node.rank)]
    stmt: Stmt = Store(Access(node, tuple(var(symbol) for symbol in symbols)), value, span)
    for symbol, extent in reversed(list(zip(symbols, node.shape, strict=True))):
        stmt = For(symbol, const(0), extent, 1, (stmt,), "serial", span)
    return stmt


def exchange_pointers(stmt: Permute, scope: Scope, names: Names) -> Iterator[str]:
    """Yield the lines that permute the pointers of arrays."""
    moves = [(n, s) for n, s in zip(stmt.nodes, stmt.sources, strict=True) if n.id != s.id]
    old_pointers: dict[int, str] = {}
    for node, _ in moves:
        name = scope.nodes[node.id]
        old_pointers[node.id] = names.fresh(f"old_{name}")
        yield f"{scope.dialect.types[node.dtype]} *const {old_pointers[node.id]} = {name};"
    for node, source in moves:
        yield f"{scope.nodes[node.id]} = {old_pointers.get(source.id, scope.nodes[source.id])};"
    names.release(old_pointers.values())


def _for_header(name: str, lo: str, hi: str, step: int, by: str, kind: str) -> str:
    return f"for ({kind} {name} = {lo}; {name} {'<' if step > 0 else '>'} {hi}; {by})"


def _grid_axis(loop: For) -> str:
    """Return the grid axis of a distributed loop: x is the innermost of its kind."""
    body, depth = loop.body, 0
    while (inner := next((s for s in body if isinstance(s, For)), None)) is not None:
        depth += inner.kind == loop.kind
        body = inner.body
    return "xyz"[depth]
