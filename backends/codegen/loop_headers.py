"""What the walk writes for loops and fills, and for arrays that trade places."""

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

ROLLED = 16
"""So many rounds of a loop are written out where all would take registers from what is around."""


def head(
    name: str, lo: str, hi: str, step: int, kind: str = "int64_t", left: str | None = None
) -> str:
    """Return the head of a loop; in `left`, where that is given, it counts the rounds to come.

    >>> head("i", "n", "0", -2)
    'for (int64_t i = n; i > 0; i -= 2)'
    >>> head("i", "0", "n", 2, left="m")
    'for (int64_t i = 0, m = rounds_between(0, n, 2); m != 0; m--, i += 2)'
    """
    sign = "+" if step > 0 else "-"
    by = f"{name}{sign}{sign}" if abs(step) == 1 else f"{name} {sign}= {abs(step)}"
    if left is not None:
        low, high = (lo, hi) if step > 0 else (hi, lo)
        count = f"rounds_between({low}, {high}, {abs(step)})"
        return f"for ({kind} {name} = {lo}, {left} = {count}; {left} != 0; {left}--, {by})"
    return _for(name, lo, hi, step, by, kind)


def pieces(begin: str, end: str, lo: str, hi: str, by: int) -> tuple[str, str, str]:
    """Return the head of a loop over the pieces of another one, of `by` each but for the last; the
    test whether a piece is not the first; and what says where a piece ends.

    >>> print(*pieces("a", "b", "0", "n", -6), sep="\\n")
    for (int64_t a = 0, b; a > n; a = b)
    a < 0
    b = a - (uint64_t)n <= 6 ? n : a - 6;
    """
    ends = hi if hi.isidentifier() else f"({hi})"
    if by > 0:
        less, more, gap, later = "<", ">", f"{hi} - (uint64_t){begin}", f"{begin} + {by}"
    else:
        less, more, gap, later = ">", "<", f"{begin} - (uint64_t){ends}", f"{begin} - {-by}"
    head = f"for (int64_t {begin} = {lo}, {end}; {begin} {less} {hi}; {begin} = {end})"
    return head, f"{begin} {more} {lo}", f"{end} = {gap} <= {abs(by)} ? {hi} : {later};"


def hook(loop: For, dialect: Dialect) -> str:
    """Return what stands above a loop: how compilers are to write it out.

    Rounds in which threads meet have nothing in common, and take registers where they are written
    one behind the other; of those that have others written out in them two are enough.
    """
    if loop.kind == "serial":
        if any(isinstance(stmt, Barrier) for stmt in loop.body):
            return dialect.rolled.format(1)
        if any(isinstance(stmt, For) and stmt.kind == "unrolled" for stmt in loop.body):
            return dialect.rolled.format(2)
    if loop.kind == "rolled":
        return dialect.rolled.format(ROLLED)
    return dialect.loop_hooks.get(loop.kind, "")


def spread(loop: For, name: str, lo: str, hi: str, dialect: Dialect, kind: str = "int64_t") -> str:
    """Return the head of a loop of which each thread runs the rounds that are its own; `kind` is
    the type of its variable."""
    sign = "+" if loop.step > 0 else "-"
    factor = "" if abs(loop.step) == 1 else f"*{abs(loop.step)}"
    first, count = (f"({kind}){text.format(_axis(loop))}" for text in dialect.spread[loop.kind])
    lo = f"{first}{factor}" if lo == "0" and sign == "+" else f"{lo} {sign} {first}{factor}"
    return _for(name, lo, hi, loop.step, f"{name} {sign}= {count}{factor}", kind)


def place(loop: For, name: str) -> str:
    """Return how far a loop has come, as a number that grows in the order of the program.

    Of threads that share the rounds of a loop in turn the loop alone tells.
    """
    if loop.kind == "thread" and (count := (loop.hi - loop.lo).constant) is not None:
        for inner in statements(loop.body):
            by = inner.lo.coefficient(loop.symbol) if isinstance(inner, For) else 0
            if by and isinstance(inner, For) and inner.step == by * count:
                return "0"
    return name if loop.step > 0 else f"-{name}"


def better(op: str, kind: str, value: str, best: str) -> str:
    """Return the test whether a value is better than the best one of an argmin or argmax.

    >>> better("argmin", "i", "a", "b")
    'a < b'
    """
    test = f"{value} {'<' if op == 'argmin' else '>'} {best}"
    return f"{test} || ({value} != {value} && {best} == {best})" if kind == "f" else test


def filling(node: Node, value: Expr, span: Span) -> Stmt:
    """Return the loops that store a value into every element."""
    symbols = [Symbol("ijklmn"[axis % 6], -1 - axis) for axis in range(node.rank)]
    out: Stmt = Store(Access(node, tuple(var(symbol) for symbol in symbols)), value, span)
    for symbol, extent in reversed(list(zip(symbols, node.shape, strict=True))):
        out = For(symbol, const(0), extent, 1, (out,), "serial", span)
    return out


def exchange(stmt: Permute, scope: Scope, names: Names) -> Iterator[str]:
    """Yield the lines by which arrays trade places."""
    moves = [(n, s) for n, s in zip(stmt.nodes, stmt.sources, strict=True) if n.id != s.id]
    held: dict[int, str] = {}
    for node, _ in moves:
        name = scope.nodes[node.id]
        held[node.id] = names.fresh(f"old_{name}")
        yield f"{scope.dialect.types[node.dtype]} *const {held[node.id]} = {name};"
    for node, source in moves:
        yield f"{scope.nodes[node.id]} = {held.get(source.id, scope.nodes[source.id])};"
    names.release(held.values())


def _for(name: str, lo: str, hi: str, step: int, by: str, kind: str) -> str:
    return f"for ({kind} {name} = {lo}; {name} {'<' if step > 0 else '>'} {hi}; {by})"


def _axis(loop: For) -> str:
    """Return which axis of a grid deals a loop out: x is the innermost of its kind."""
    inside, depth = loop.body, 0
    while (inner := next((s for s in inside if isinstance(s, For)), None)) is not None:
        depth += inner.kind == loop.kind
        inside = inner.body
    return "xyz"[depth]
