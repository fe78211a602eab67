"""Parts of an explanation: rows of numbers, and sentences in order."""

from __future__ import annotations

from plusequals.base.diagnostic import Source, Span
from plusequals.dsl.explain.parts import (
    Remark,
    assumptions,
    count_rows,
    join_lines,
    operation_rows,
    sort_remarks,
)
from plusequals.lowering.analysis.iteration_domains import Assumption
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.printer import Line
from plusequals.lowering.operation_counts import OperationCounts

SOURCE = Source("model.py", 1, "one\ntwo\nthree\n")


def line(number: int, column: int = 0) -> Span:
    return Span(SOURCE, number, column, number, column + 1)


def test_sentences_come_once_and_in_the_order_of_the_source() -> None:
    told = [
        Remark("b", line(3)),
        Remark("a", line(1)),
        Remark("b", line(3, 2)),
        Remark("b", line(2)),
    ]
    assert [(one.sentence, one.span.line) for one in sort_remarks(told, line(1))] == [
        ("a", 1), ("b", 2), ("b", 3),
    ]  # fmt: skip
    away = Span(Source("above.py", 1, ""), 1, 0, 1, 1)
    assert [one.span.line for one in sort_remarks([Remark("a", away), *told], line(1))] == [
        1,
        2,
        3,
        1,
    ]
    counts = OperationCounts({}, (), 0, 0, (Assumption("y", line(2)), Assumption("x", line(1))))
    assert [one.sentence for one in assumptions(counts, line(1))] == ["x", "y"]


def test_rows_say_the_numbers_and_what_is_only_about_right() -> None:
    counts = OperationCounts({"add": 1500, "exp": 2}, (), 4096, 512)
    operations, least, moved, peak = count_rows(counts)
    assert operations == ("operations", "1,502", "")
    assert least[1:] == ("0", "") and moved[1:] == ("0", "")
    assert peak == (
        "peak temporary memory", "4,608", "4,096 bytes allocated, 512 bytes on the stack",
    )  # fmt: skip
    assert operation_rows(counts) == [("addition", "1,500"), ("exp", "2")]
    about = OperationCounts({"add": 1500}, (), 0, 0, (), True)
    assert count_rows(about)[0][1] == "about 1,500"


def test_operations_have_names_of_their_own() -> None:
    counts = OperationCounts(dict.fromkeys(OPS, 1), (), 0, 0)
    names = [name for name, _ in operation_rows(counts)]
    assert len(set(names)) == len(OPS)


def test_lines_as_text() -> None:
    assert join_lines((Line("a"), Line("  b"))) == "a\n  b\n"
    assert join_lines(()) == ""
