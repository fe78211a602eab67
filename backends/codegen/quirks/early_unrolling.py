"""Short loops that compilers are to keep as loops, until they have looked for vectors.

gcc writes out the rounds of a short loop before that, if it knows their number. Then there is no
loop left, or only one around it, of whose rounds it makes vectors, with shuffles in between: the
code of the outer product of 16 numbers takes ten times as long.
"""

from __future__ import annotations

from ....lowering.analysis.subscripts import stride
from ....lowering.ir.assignments import Access
from ....lowering.ir.expressions import Expr, Read, reads
from ....lowering.ir.loops import Comment, For, Store, Update
from ....lowering.ir.node import Node

SHORT, PIECE = 4, 16
"""From so many rounds on, and bytes that they write, a loop may be one on vectors."""


def is_elementwise(loop: For) -> bool:
    """Whether a loop does the same to each of some neighbours, enough for a vector of them, or adds
    them up where their order says nothing.

    With as few rounds as can be, all that it reads has to be near, too: where it is not, what is
    done is no more than what it takes to bring it together.
    """
    rounds = (loop.hi - loop.lo).constant
    if loop.kind != "serial" or loop.step != 1 or rounds is None or rounds < SHORT:
        return False
    many = False
    for stmt in loop.body:
        match stmt:
            case Store(Access(_, ()), value):
                pass
            case Update(Access(node, ()), _, value, None):
                many = True
                if not _adds_up(node, value, loop):
                    return False
            case Store(Access(node, index), value) | Update(Access(node, index), _, value, None):
                many = rounds * node.dtype.itemsize >= PIECE
                if not many or stride(node, index, loop.symbol) != 1:
                    return False
            case Comment():
                continue
            case _:
                return False
        near = (stride(one.node, one.index, loop.symbol) in (0, 1) for one in reads(value))
        if rounds == SHORT and not all(near):
            return False
    return many


def _adds_up(node: Node, value: Expr, loop: For) -> bool:
    """Whether whole numbers that are neighbours are added up, of their own type: what is made of
    them is about as much work. Vectors of AVX2 do not multiply numbers of 64 bits."""
    size = node.dtype.itemsize
    whole = node.dtype.kind in "iu" and (size == 4 or (size == 8 and isinstance(value, Read)))
    return whole and all(
        one.dtype.itemsize == size and stride(one.node, one.index, loop.symbol) == 1
        for one in reads(value)
    )
