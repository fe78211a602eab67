"""New scalars and symbols are new, and have names that people read."""

from __future__ import annotations

from plusequals.lowering.ir.expressions import Cast
from plusequals.lowering.ir.fresh import fresh_for, label_of
from plusequals.lowering.ir.indexing import Symbol, const
from plusequals.lowering.ir.loops import For

from .build import ap, at, f32, f64, loops, node, num, program, read

x, y = node(3, "x"), node(7, "y", Symbol("n", 4))
i = Symbol("i", 9)


def test_ids_and_serials_follow_the_highest() -> None:
    body = For(i, const(0), const(2), 1, (loops.Store(at(x), num(1.0)),))
    before = program((x,), (y,), body)
    fresh = fresh_for(before)
    one, two = fresh.scalar("a", f32), fresh.scalar("a", f64)
    assert (one.id, two.id, one.shape, two.dtype) == (8, 9, (), f64)
    assert fresh.symbol("k") == Symbol("k", 10)
    assert fresh.declared(before).locals == (one, two)
    assert fresh_for(before).declared(before) is before


def test_names_say_what_is_done_to_what() -> None:
    assert label_of(ap("exp", read(x))) == "exp_x"
    assert label_of(ap("mul", read(x), read(x))) == "product"
    assert label_of(Cast(read(x), f64)) == "x_f64"
    assert label_of(Cast(ap("sqrt", read(x)), f64)) == "sqrt_x"
    assert label_of(read(x)) == "x_at"
