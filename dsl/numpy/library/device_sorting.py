"""Parallel merge sort for devices of many threads, as library definitions in the language.

The results equal those of the definitions of `sorting`. Merging is a gather: each output element
finds, by binary search along its diagonal, how many of the elements before it come from the first
run, so that all iterations of a merge are independent.

Source: O. Green, R. McColl and D. A. Bader, GPU Merge Path, 2012.
"""

from __future__ import annotations

from collections.abc import Callable

from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Branch
from ....lowering.ir.expressions import Const
from ...values.call_site import Site
from ...values.values import Array, Static

_NEVER = Const(False, dtypes.bool_)

_FIND = """
        for r in range(rows):
            for k in range(n):
                start{turn} = (k >> ({width} + 1)) << ({width} + 1)
                middle{turn} = min(start{turn} + (1 << ({width})), n)
                stop{turn} = min(middle{turn} + (1 << ({width})), n)
                before{turn} = k - start{turn}
                low{turn} = max(0, before{turn} - (stop{turn} - middle{turn}))
                high{turn} = min(before{turn}, middle{turn} - start{turn})
                while low{turn} < high{turn}:
                    half{turn} = (low{turn} + high{turn}) >> 1
                    p{turn} = {given}[r, clamp(start{turn} + half{turn})]
                    q{turn} = {given}[r, clamp(middle{turn} + before{turn} - half{turn} - 1)]
                    if q{turn} < p{turn} or (p{turn} != p{turn} and q{turn} == q{turn}):
                        high{turn} = half{turn}
                    else:
                        low{turn} = half{turn} + 1
                at{turn} = start{turn} + low{turn}
                other{turn} = middle{turn} + before{turn} - low{turn}
                if at{turn} >= middle{turn}:
                    at{turn} = other{turn}
                elif other{turn} < stop{turn}:
                    p{turn} = {given}[r, clamp(at{turn})]
                    q{turn} = {given}[r, clamp(other{turn})]
                    if q{turn} < p{turn} or (p{turn} != p{turn} and q{turn} == q{turn}):
                        at{turn} = other{turn}
                {made}[r, k] = {given}[r, clamp(at{turn})]
"""
"""Merge runs of `2**width` elements in pairs: `low` of the elements before `k` come from the first
run and the others from the second; element `k` is the lesser of the next ones of the two runs."""

_WIDTHS = """
    rows, n = x.shape
    count = rounds
    if rounds < 0:
        count = 0
        while (1 << (2 * count)) < n:
            count += 1
    for level in range(count):
"""


def _text(head: str, *merges: str) -> str:
    """Return the text of a function that makes two merges an iteration."""
    return f"def {head}:\n{_WIDTHS}{''.join(merges)}"


def _merge(given: str, target: str, turn: int, along: str = "") -> str:
    """Return the text of the first or second merge of an iteration, with the statements `along`."""
    width = "2 * level" if turn == 1 else "2 * level + 1"
    return _FIND.format(given=given, made=target, width=width, turn=turn) + along


SORT_ROWS = _text("sort_rows(x, w, rounds)", _merge("x", "w", 1), _merge("w", "x", 2))
"""Merge sort of each row in place, NaN last; `w` is scratch of the same shape. There are `rounds`
iterations of two merges each; a negative one stands for as many as the row length requires."""

ARGSORT_ROWS = _text(
    "argsort_rows(x, y, order, w, rounds)",
    _merge("x", "y", 1, "                w[r, k] = order[r, clamp(at1)]\n"),
    _merge("y", "x", 2, "                order[r, k] = w[r, clamp(at2)]\n"),
)
"""Stable merge sort of `x`, NaN last, that applies the permutation to `order`, too; `y` and `w` are
scratch."""


def merge_iterations(rows: Array) -> Static:
    """Return how many iterations of two merges sort rows, -1 where the length is dynamic."""
    size = rows.shape[1].constant
    return Static(-1 if size is None else (max(size - 1, 0).bit_length() + 1) // 2)


def either(site: Site, many: Callable[[], object], few: Callable[[], object]) -> None:
    """Emit a branch on the target: `many` for devices of many threads, `few` for all others."""
    ctx = site.ctx
    ctx.control += 1
    with ctx.block() as then:
        many()
    with ctx.block() as orelse:
        few()
    ctx.control -= 1
    ctx.emit(Branch(_NEVER, tuple(then), tuple(orelse), site.span, many=True))
