"""Several texts as one: each line still comes from the statement that it came from."""

from __future__ import annotations

from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.source import merge_sources, preamble
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from . import programs as p


def test_joined_texts_keep_their_lines() -> None:
    target = Target(threads=2, parallel_from=0, schedule=True)
    sources = []
    for name in ("one", "two"):
        made = p.softmax()
        program, placement = optimize(lower(type(made)(name, *_fields(made))), target)
        sources.append(print_program(program, placement))
    both = merge_sources(sources)
    assert both[0].text == both[1].text
    assert both[0].text.count("typedef struct shared_run") == 1
    for alone, source in zip(sources, both, strict=True):
        before, lines = alone.text.splitlines(), source.text.splitlines()
        assert source.asks
        assert [before[at - 1] for at in alone.line_map] == [
            lines[at - 1] for at in source.line_map
        ]
        assert list(alone.line_map.values()) == list(source.line_map.values())


def test_what_stands_above_is_what_is_named() -> None:
    assert "floordiv_i64" in preamble("int x = floordiv_i64(7, 2);")
    assert "floordiv_i64" not in preamble("int x = 7;")


def _fields(made: p.Any) -> tuple[p.Any, ...]:
    return made.parameters, made.locals, made.results, made.body, made.span
