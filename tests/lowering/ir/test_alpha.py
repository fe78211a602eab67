"""Equality up to serials and ids."""

from __future__ import annotations

from dataclasses import replace

from plusequals.lowering.ir import loops
from plusequals.lowering.ir.alpha import alpha_equal, canonical
from plusequals.lowering.ir.assignments import Alloc, Let, Procedure
from plusequals.lowering.ir.indexing import Symbol, floordiv, mod, var

from .build import ap, at, i64, node, num, pos, procedure, program, put, read, rng


def made(first: int, i: str = "i", label: str = "x", backwards: bool = False) -> Procedure:
    """One procedure, its serials and ids from `first` on, in either order."""
    a, b = (first + 1, first) if backwards else (first, first + 1)
    left, right, n = Symbol(i, a), Symbol("j", b), Symbol("n", first + 2)
    y, x = node(first, "y", 4, 4), node(first + 1, label, 4, 4)
    size, row = node(first + 2, "size", dtype=i64), node(first + 3, "row", n)
    split = floordiv(var(left) + var(right), var(n) + 1)
    value = ap("add", read(x, left, right), read(x, split, mod(var(right), var(left) + 4)))
    return procedure(
        (y,), (x, size),
        Let(n, read(size)),
        Alloc(row),
        put(at(y, left, right), value, rng(left, 0, 4), rng(right, left, 4)),
        local=(row,),
    )  # fmt: skip


def test_serials_ids_and_their_order_do_not_count() -> None:
    assert made(0) != made(40, backwards=True)
    assert alpha_equal(made(0), made(40, backwards=True))


def test_names_count_only_where_asked() -> None:
    assert not alpha_equal(made(0), made(0, i="a"))
    assert not alpha_equal(made(0), made(0, label="z"))
    renamed = replace(made(7, i="a", label="z"), name="g")
    assert alpha_equal(made(0), renamed, names=False)


def test_structure_counts() -> None:
    one, i, j = made(0), Symbol("i", 0), Symbol("j", 1)
    y, x = one.parameters[0].node, one.parameters[1].node
    turned = put(at(y, i, j), read(x, j, i), rng(i, 0, 4), rng(j, 0, 4))
    straight = put(at(y, i, j), read(x, i, j), rng(i, 0, 4), rng(j, 0, 4))
    assert not alpha_equal(replace(one, body=(turned,)), replace(one, body=(straight,)))
    assert not alpha_equal(one, replace(one, locals=()))


def test_programs_and_canonical_form() -> None:
    t, s = Symbol("t", 5), Symbol("t", 9)
    x, z = node(3, "x", 4), node(8, "x", 4)
    loop = loops.For(t, var(t) * 0, var(t) * 0 + 4, 1, (loops.Store(at(x, t), num(1.0)),))
    other = loops.For(s, var(s) * 0, var(s) * 0 + 4, 1, (loops.Store(at(z, s), num(1.0)),))
    first, second = program((x,), (), loop), program((z,), (), other)
    assert alpha_equal(first, second)
    assert canonical(first).parameters[0].node.id == 0
    assert canonical(canonical(first)) == canonical(first)
    shorter = replace(other, body=(loops.Store(at(z, s), ap("neg", num(1.0))),))
    assert not alpha_equal(first, program((z,), (), shorter))
    assert pos(t) != pos(s)
