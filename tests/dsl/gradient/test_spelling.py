"""Index expressions as text: Python reads from it what they are."""

from __future__ import annotations

import itertools

import pytest

from plusequals.dsl.gradient.spelling import index_text
from plusequals.lowering.ir.indexing import Affine, Symbol, const, floordiv, minimum, mod, var
from plusequals.lowering.ir.text import Scope

I, J = Symbol("i", 1), Symbol("j", 2)
INDICES = {
    "i - 1": var(I) - 1,
    "1 - i": -var(I) + 1,
    "-i": -var(I),
    "j - i": var(J) - var(I),
    "1 - (i + 1) % 3": -mod(var(I) + 1, const(3)) + 1,
    "-((i + 1) % 3)": -mod(var(I) + 1, const(3)),
    "2 * (i // 2) - j - 1": floordiv(var(I), const(2)) * 2 - var(J) - 1,
    "3 - min(1 - i, j)": -minimum(-var(I) + 1, var(J)) + 3,
}


@pytest.mark.parametrize("text", INDICES)
def test_an_index_is_written_so_that_python_reads_the_same(text: str) -> None:
    written = index_text(INDICES[text], Scope())
    assert "".join(written.split()) == "".join(text.split())
    for i, j in itertools.product(range(4), repeat=2):
        assert eval(written, {"i": i, "j": j}) == _value(INDICES[text], {I: i, J: j})


def _value(index: Affine, at: dict[Symbol, int]) -> int:
    total = index.offset
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            total += factor * at[atom]
            continue
        left, right = (_value(side, at) for side in (atom.left, atom.right))
        by = {"min": min(left, right), "mod": left % right, "floordiv": left // right} if (
            right) else {"min": min(left, right)}  # fmt: skip
        total += factor * by[atom.op]
    return total
