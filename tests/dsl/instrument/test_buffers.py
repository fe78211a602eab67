"""The arrays of a recording, and the tests that it is made of."""

from __future__ import annotations

from plusequals.dsl.instrument import sites as s
from plusequals.dsl.instrument.buffers import Buffers, compare, conjunction, to_integer
from plusequals.lowering.ir.expressions import Apply, Select
from plusequals.lowering.ir.indexing import const, var


def test_they_are_given_last_and_new_to_the_procedure() -> None:
    buffers = Buffers(7, 40)
    assert [(p.node.id, p.log) for p in buffers.parameters] == [
        (41, s.ROWS), (42, s.FLOATS), (43, s.INTS), (44, None),
    ]  # fmt: skip
    symbols = [symbol.serial for size in buffers.capacity.values() for symbol in size.symbols()]
    new = buffers.symbol("fit")
    assert min(symbols) > 7 and new.serial > max(symbols)
    assert buffers.counter_access(s.LIMIT).node is buffers.used


def test_all_tests_hold_in_their_order() -> None:
    one, two = (
        compare("lt", const(1), const(2)),
        compare("eq", var(Buffers(0, 0).symbol("k")), const(3)),
    )
    assert conjunction(()) is None and conjunction((one,)) is one
    both = conjunction((one, two))
    assert isinstance(both, Apply) and both.args == (one, two)
    assert isinstance(to_integer(both), Select)
