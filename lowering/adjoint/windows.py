"""Sums that are scattered through windows that overlap, as sums over the windows.

    d_x[i + r] += d_y[i] * w[r]                         for i in [0, n), r in [0, k)

    d_y_padded[i + k - 1] = d_y[i]                      with k - 1 zeros on both sides
    d_x[i] += sum[r](d_y_padded[i - r + k - 1] * w[r])  for i in [0, n + k - 1)

The adjoint of a convolution adds to each element once for each place of the window, in an order
that no two iterations may change. Summed at the element, its places are independent of each other,
and the sum is a convolution, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..analysis.self_dependence import is_injective
from ..ir.assignments import Access, Alloc, Assign, Statement
from ..ir.expressions import Domain, Read, reads
from ..ir.indexing import Affine, Quasi, Range, Symbol, const, maximum, minimum, substitute, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import free_symbols
from .kept import Names
from .products import Product


@dataclass(frozen=True, slots=True)
class _Window:
    """A subscript `symbol + rest`: for each value of the symbol a window of elements."""

    range: Range
    rest: Affine
    least: Affine
    span: int
    """The largest `rest` less the least one."""

    @property
    def elements(self) -> Range:
        """The elements of all windows, by the symbol of the window."""
        lo, hi = self.range.lo + self.least, self.range.hi + self.least
        return Range(self.range.symbol, lo, hi + self.span)


def summed_over_windows(
    stmt: Statement, names: Names, allocations: list[Alloc], in_loop: bool
) -> list[Statement]:
    """Return statements that add the same to a cotangent, each element once; `allocations` receives
    what creates arrays before. The statement itself where its windows do not overlap, or its terms
    are no products of what has the places of windows and of what has not."""
    windows = _windows(stmt)
    if not windows or not isinstance(stmt, Assign):
        return [stmt]
    index = tuple(
        var(windows[axis].range.symbol) if axis in windows else at
        for axis, at in enumerate(stmt.target.index)
    )
    moved = {window.range.symbol: window for window in windows.values()}
    used = {s for at in index if isinstance(at, Affine) for s in at.symbols()}
    free = [r for r in stmt.free.ranges if r.symbol in used]
    places, others = Product(stmt.value.dtype).times(stmt.value).split(moved)
    letters = _letters(places, stmt)
    shifted = {s for window in windows.values() for s in window.rest.symbols()}
    if not is_injective(index, tuple(free)) or places.is_number or shifted & set(letters):
        return [stmt]
    padded = _padded(letters, moved, stmt, names, in_loop)
    if padded is None:
        return [stmt]
    if padded.static_shape is None:
        allocations.append(Alloc(padded))
    at = {r.symbol: var(r.symbol) - r.lo for r in letters.values()}
    inner = {s: moved[s].span if s in moved else 0 for s in letters}
    written = tuple(at[s] + inner[s] for s in letters)
    domain = Domain(tuple(letters.values()))
    copy = Assign(Access(padded, written), None, False, places.expr(), domain, span=stmt.span)
    back = {s: var(s) - window.rest for s, window in moved.items()}
    value = others.times(Read(padded, tuple(substitute(one, back) for one in written)))
    elements = [_within(moved[r.symbol], stmt) if r.symbol in moved else r for r in free]
    reduced = (*(r for r in stmt.free.ranges if r.symbol not in used), *stmt.reduced.ranges)
    target = Access(stmt.target.node, index)
    domain = Domain(tuple(elements))
    moved_sum = replace(stmt, target=target, value=value.expr(), free=domain)
    return [copy, replace(moved_sum, reduced=Domain(reduced))]


def _windows(stmt: Statement) -> dict[int, _Window]:
    """Return the windows of a sum's target by axis; none where it is of another form."""
    if not (isinstance(stmt, Assign) and stmt.op is OPS["add"] and not stmt.initialize):
        return {}
    if stmt.pair is not None or stmt.free.where is not None or stmt.reduced.where is not None:
        return {}
    if stmt.value.dtype.kind != "f" or is_injective(stmt.target.index, stmt.free.ranges):
        return {}
    ranges = {r.symbol: r for r in (*stmt.free.ranges, *stmt.reduced.ranges)}
    bounds = {s for r in ranges.values() for s in (*r.lo.symbols(), *r.hi.symbols())}
    if bounds & ranges.keys() or any(r.node == stmt.target.node for r in reads(stmt.value)):
        return {}
    subscripts = [at for at in stmt.target.index if isinstance(at, Affine)]
    if len(subscripts) < len(stmt.target.index):
        return {}
    uses = Counter(s for at in subscripts for s in at.symbols() & ranges.keys())
    found: dict[int, _Window] = {}
    for axis, at in enumerate(subscripts):
        inside = at.symbols() & ranges.keys()
        if len(inside) < 2:
            continue
        single = [s for s in inside if uses[s] == 1 and at.coefficient(s) == 1]
        window = _window(at, [ranges[s] for s in single], ranges)
        if window is None:
            return {}
        found[axis] = window
    return found


def _window(at: Affine, single: Sequence[Range], ranges: dict[Symbol, Range]) -> _Window | None:
    """Return the window of a subscript, over the longest of some ranges; None where there is none,
    or where it is not known to be shorter than that."""
    if not single or any(isinstance(atom, Quasi) for atom, _ in at.terms):
        return None
    sizes = {r: (r.hi - r.lo).constant for r in single}
    longest = max(single, key=lambda r: (sizes[r] is None, sizes[r] or 0, r.symbol.serial))
    rest = at - var(longest.symbol)
    ends: list[Affine] = []
    for sign in (1, -1):
        first = {
            s: ranges[s].lo if rest.coefficient(s) * sign > 0 else ranges[s].hi - 1
            for s in rest.symbols() & ranges.keys()
        }
        ends.append(substitute(rest, first))
    span, size = (ends[1] - ends[0]).constant, sizes[longest]
    if span is None or span < 0 or size is not None and size < span:
        return None
    return _Window(longest, rest, ends[0], span)


def _letters(places: Product, stmt: Assign) -> dict[Symbol, Range]:
    """Return the ranges that factors depend on, in the order in which most of them are subscripts
    of one array."""
    exprs = [*places.over, *places.under, *(test for test, _ in places.gates)]
    needed = {s for expr in exprs for s in free_symbols(expr)}
    ranges = {r.symbol: r for r in (*stmt.free.ranges, *stmt.reduced.ranges) if r.symbol in needed}
    orders = [
        [s for at in read.index if isinstance(at, Affine) for s in at.symbols() if s in ranges]
        for expr in exprs for read in reads(expr) if isinstance(read, Read)
    ]  # fmt: skip
    order = dict.fromkeys([*max(orders, key=len, default=[]), *ranges])
    return {symbol: ranges[symbol] for symbol in order}


def _padded(
    letters: dict[Symbol, Range], moved: dict[Symbol, _Window], stmt: Assign, names: Names,
    in_loop: bool,
) -> Node | None:  # fmt: skip
    """Return an array for the factors at all places of windows, with zeros around them; None where
    what is around them may change, or may be no elements."""
    ends = [end.constant for r in letters.values() for end in (r.lo, r.hi)]
    if in_loop and None in ends:
        return None
    if any((w.range.lo + w.least).constant is None for w in moved.values()):
        return None
    shape = []
    for s, r in letters.items():
        size = r.hi - r.lo
        around = 2 * moved[s].span if s in moved else 0
        shape.append((size if size.constant is not None else maximum(size, const(0))) + around)
    return names.array(f"{stmt.target.node.label}_padded", shape, stmt.value.dtype)


def _within(window: _Window, stmt: Assign) -> Range:
    """Return the elements of windows: those of the array where there may be no window."""
    elements = window.elements
    if elements.hi.constant is not None:
        return elements
    (extent,) = (
        extent for at, extent in zip(stmt.target.index, stmt.target.node.shape, strict=True)
        if isinstance(at, Affine) and at - window.rest == var(window.range.symbol)
    )  # fmt: skip
    return replace(elements, hi=minimum(elements.hi, extent))
