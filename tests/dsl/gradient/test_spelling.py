"""Index expressions as text: Python reads from it what they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.gradient.spelling import UNSPELLED, index_text, value_text
from plusequals.lowering.adjoint.rules import NotDifferentiable
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Const, Read, Select
from plusequals.lowering.ir.indexing import Affine, Symbol, const, floordiv, minimum, mod, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
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


NAMES = pe.gradient(pe.cd_from_source("def f(x):\n    return x\n"), wrt="x").names
TYPES = {
    "b": dtypes.bool_, "i": dtypes.int64, "u": dtypes.uint64, "f": dtypes.float64,
    "c": dtypes.complex128,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OPS if name not in UNSPELLED])
def test_an_operation_is_a_word_of_that_meaning(name: str) -> None:
    op = OPS[name]
    for dtype in (TYPES[kind] for kind in op.admits):
        nodes = [Node(at, "xyz"[at], (const(3),), dtype) for at in range(op.arity)]
        operands = tuple(Read(node, (var(I),)) for node in nodes)
        text = value_text(Apply(op, operands, dtype), Scope())
        values = [np.array(v).astype(dtype.numpy) for v in ([2, 1, 3], [1, 2, 1], [1, 1, 2])]
        values = [v / 4 if dtype.kind in "fc" else v for v in values[: op.arity]]
        source = f"def f({', '.join('xyz'[: op.arity])}):\n    t[i] = {text}\n    return t\n"
        with np.errstate(all="ignore"):
            found = pe.cd_from_source(source, NAMES, backend="numpy")(*values)
            expected = [op.meaning(*(v[at] for v in values)) for at in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_an_operation_without_a_word_is_refused() -> None:
    x = Read(Node(0, "x", (), dtypes.float64), ())
    digits = Const(2.0, dtypes.float64)
    assert value_text(Apply(OPS["round_to"], (x, digits), dtypes.float64), Scope()).endswith(", 2)")
    with pytest.raises(NotDifferentiable, match="`round_to`"):
        value_text(Apply(OPS["round_to"], (x, x), dtypes.float64), Scope())


def test_a_test_that_chooses_keeps_together() -> None:
    p, q, r = (Read(Node(at, "pqr"[at], (), dtypes.bool_), ()) for at in range(3))
    yes, no = (Const(value, dtypes.bool_) for value in (True, False))
    chosen = Apply(OPS["and"], (p, Select(q, no, r)), dtypes.bool_)
    assert value_text(chosen, Scope()) == "p and (False if q else r)"
    assert value_text(Select(q, no, yes), Scope()) == "not q"
    assert value_text(Select(p, yes, q), Scope()) == "p or q"
    assert value_text(Select(p, q, no), Scope()) == "p and q"


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


@pytest.mark.parametrize("loss", ["x / 0.0", "3.0 * x / -0.0", "x % 0.0", "x * (2.0 + x) / 0.0"])
def test_quotients_by_zero_are_no_division_of_pythons(loss: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return np.sum({loss})\n", {"np": np}, backend="numpy")
    g, x = pe.gradient(f, wrt="x"), np.array([0.5, -2.0])
    with np.errstate(all="ignore"):
        found = g(x)
        again = pe.cd_from_source(g.source, g.names, backend="numpy")(x)
    np.testing.assert_array_equal(again, found)
