"""Recognition of updates: stores that accumulate become updates, which are reassociable.

    m = max(m, x[i])                  becomes   m max= x[i]
    n = n - x[i]                                n += -x[i]          integers
    if x[i] > m: m = x[i]                       m max= x[i]         integers

A subscript that was already loaded and checked in the same iteration is not loaded again, so that
`y[k[i]] = max(y[k[i]], x[i])` reads and writes one element. Floating-point sums stay as they are:
they are order-preserving.

>>> program, _ = optimize(lowered('''
... for i in range(len(k)):
...     y[k[i]] = max(y[k[i]], x[i])
... ''', y="f32[9]", x="f32[8]", k="i64[8]"), Target("cuda"))
>>> print_loops(recognize_updates(program.kernels[0].body))
for i in 0..8:
    let at = k[i]
    check 0 <= at and at < 9 else CdIndexError('CD0601',
            'index {0} is out of range for axis 0 of `y` with size {1}', at, 9)
    # y[k[i]] = max(y[k[i]], x[i])
    y[at] max= x[i]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ..analysis.accumulators import is_reassociable
from ..ir.assignments import Access, Alloc, Let
from ..ir.expressions import Apply, Expr, Read, reads
from ..ir.indexing import Affine, Symbol, var
from ..ir.loops import Check, Comment, For, If, Stmt, Store, Update, While
from ..ir.ops import OPS, Op
from ..ir.rewrite import substitute, with_bodies
from ..ir.walk import bodies, statements, writes

EXTREMES = {"gt": "max", "ge": "max", "lt": "min", "le": "min"}
MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def recognize_updates(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements in which stores that accumulate inside of loops are updates."""
    sizes = {
        symbol for stmt in statements(body) if isinstance(stmt, Alloc)
        for extent in stmt.node.shape for symbol in extent.symbols()
    }  # fmt: skip
    return tuple(_in_loops(stmt, frozenset(sizes)) for stmt in body)


def _in_loops(stmt: Stmt, sizes: frozenset[Symbol]) -> Stmt:
    """Return a statement with the stores in its loops recognized."""
    if isinstance(stmt, For):
        return with_bodies(stmt, (_Available(sizes).body(stmt.body),))
    lists = tuple(tuple(_in_loops(nested, sizes) for nested in part) for part in bodies(stmt))
    return with_bodies(stmt, lists)


@dataclass(slots=True)
class _Available:
    """The available loads and checks where a statement runs."""

    sizes: frozenset[Symbol]
    """Symbols in shapes, which cannot be substituted."""
    values: list[tuple[Expr, Symbol]] = field(default_factory=list)
    tests: list[Expr] = field(default_factory=list)

    def body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Return statements without available loads and checks, those that accumulate as
        updates."""
        out: list[Stmt] = []
        renamed: dict[Symbol, Affine] = {}
        for stmt in body:
            (current,) = substitute((stmt,), renamed) if renamed else (stmt,)
            if isinstance(current, Let) and current.symbol not in self.sizes:
                available = next((s for value, s in self.values if value == current.value), None)
                if available is not None:
                    renamed[current.symbol] = var(available)
                    continue
                self.values.append((current.value, current.symbol))
            elif isinstance(current, Check):
                if current.test in self.tests:
                    continue
                if not any(reads(current.test)):
                    self.tests.append(current.test)
            out.append(self.inside(current))
            self.forget(current)
        return tuple(out)

    def inside(self, stmt: Stmt) -> Stmt:
        """Return a statement, and those nested in it, as updates."""
        if isinstance(stmt, Store):
            return match_update(stmt) or stmt
        if isinstance(stmt, Update):
            return normalize_subtraction(stmt)
        if isinstance(stmt, For | While):
            self.forget(stmt)
        lists = tuple(_Available(self.sizes, [*self.values], [*self.tests]).body(nested)
                      for nested in bodies(stmt))  # fmt: skip
        rewritten = with_bodies(stmt, lists)
        return match_min_max(rewritten) or rewritten if isinstance(rewritten, If) else rewritten

    def forget(self, stmt: Stmt) -> None:
        """Invalidate what a statement changes."""
        changed = {node.id for node in writes((stmt,))}
        if changed:
            self.values = [
                entry for entry in self.values
                if not any(read.node.id in changed for read in reads(entry[0]))
            ]  # fmt: skip


def match_update(stmt: Store) -> Update | None:
    """Return a store that accumulates as an update, None where it does not, or is
    order-preserving."""
    access, value = stmt.access, stmt.value
    if not isinstance(value, Apply) or len(value.args) != 2 or value.dtype is not access.node.dtype:
        return None
    left, right = value.args
    op, term = value.op, right
    if op.name == "sub" and value.dtype.kind in "iu" and _is_read_of(left, access):
        op, term = OPS["add"], Apply(OPS["neg"], (right,), value.dtype)
    elif op.side == "both" and value.dtype.kind != "f" and not _is_read_of(left, access):
        left, term = right, left
    if not _is_read_of(left, access) or not is_reassociable(op, value.dtype, exact=True):
        return None
    return _update(access, op, term, stmt)


def normalize_subtraction(stmt: Update) -> Update:
    """Return an integer subtraction as an addition of the negated term."""
    dtype = stmt.access.node.dtype
    if stmt.op.name != "sub" or dtype.kind not in "iu" or stmt.value.dtype is not dtype:
        return stmt
    return replace(stmt, op=OPS["add"], value=Apply(OPS["neg"], (stmt.value,), dtype))


def match_min_max(stmt: If) -> Update | None:
    """Return a branch that keeps the maximum or minimum of integers as an update."""
    test, then = stmt.test, [nested for nested in stmt.then if not isinstance(nested, Comment)]
    if len(then) != 1 or stmt.orelse or not isinstance(then[0], Store):
        return None
    store = then[0]
    if not isinstance(test, Apply) or test.op.name not in EXTREMES:
        return None
    (left, right), name = test.args, test.op.name
    if _is_read_of(left, store.access):
        left, right, name = right, left, MIRRORED[name]
    are_integers = store.access.node.dtype.kind in "iu" and left.dtype is store.value.dtype
    if not are_integers or left != store.value or not _is_read_of(right, store.access):
        return None
    return _update(store.access, OPS[EXTREMES[name]], left, store)


def _is_read_of(value: Expr, access: Access) -> bool:
    """Whether a value is the current value of an element."""
    return isinstance(value, Read) and value.node == access.node and value.index == access.index


def _update(access: Access, op: Op, term: Expr, stmt: Store) -> Update | None:
    """Return an update by a term that does not read the array; None for other terms."""
    if any(read.node == access.node for read in reads(term)):
        return None
    return Update(access, op, term, span=stmt.span)
