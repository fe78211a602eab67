"""What a node says of its shape and layout."""

from __future__ import annotations

from plusequals.lowering.ir.dtypes import float32
from plusequals.lowering.ir.indexing import const, multiply, var
from plusequals.lowering.ir.node import Node

from .build import node, symbols

(N, M) = symbols("n m")


def test_static_shape_and_strides() -> None:
    x = node(3, "x", 2, 3, 4)
    assert (x.rank, x.static_shape, repr(x)) == (3, (2, 3, 4), "x#3")
    assert x.element_strides == (const(12), const(4), const(1))


def test_scalar() -> None:
    a = node(0, "a")
    assert (a.rank, a.static_shape, a.element_strides) == (0, (), ())


def test_run_time_shape() -> None:
    x = node(0, "x", 2, N, M)
    assert x.static_shape is None
    assert x.element_strides == (multiply(var(N), var(M)), var(M), const(1))


def test_given_strides_win() -> None:
    x = Node(0, "x", (const(2), const(3)), float32, (1, 2))
    assert x.element_strides == (const(1), const(2))
