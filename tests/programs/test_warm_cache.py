"""Programs called with many sizes and values, in processes over one cache."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plusequals.dsl.dispatch import persist
from plusequals.dsl.elaborate.typed import Typed

from .call_sequences import CALLS, with_calls
from .check import Finding
from .findings import finding_of, write
from .hunt import program_of
from .model import ArgSpec, Program
from .reduce import reduced
from .warm_cache import check_sequences
from .ways import Ways

DECIDED = Program(
    """def f(x, p):
    if p > 3:
        return np.stack([x * t for t in range(p + 1)])
    return x[:p] * q
""",
    (ArgSpec("x", "float64", (9,)), ArgSpec("p", "int", kind="2"), ArgSpec("q", "int", kind="3")),
    captured=frozenset({"q"}),
)
"""What its integer is, decides what it returns."""


def calls_of(*numbers: int, **changes: Any) -> tuple[tuple[ArgSpec, ...], ...]:
    x, p, q = DECIDED.args
    return tuple((replace(x, **changes), replace(p, kind=str(one)), q) for one in numbers)


MANY = replace(
    DECIDED, calls=calls_of(1, 2, 3, 5, 6), orders=((0, 1, 2, 3, 4), (4, 0, 3), (1, 2, 4, 4))
)


def test_random_programs_of_many_calls_in_one_process() -> None:
    programs = [program_of(4, n, None, 1) for n in range(6)]
    cases = [case for one in programs for case in check_sequences([one], Ways(c=False))]
    assert not [str(case.finding) for case in cases if case.finding is not None]
    assert not all(case.refused for case in cases)


def test_calls_vary_by_sizes_numbers_and_order() -> None:
    program = with_calls(random.Random(1), DECIDED, 1)
    assert len(program.calls) == CALLS
    assert len({call[0].shape for call in program.calls}) >= 4
    assert len({call[1].kind for call in program.calls}) >= 4
    assert len({call[2].kind for call in program.calls}) >= 4
    orders = with_calls(random.Random(1), DECIDED, 3).orders
    assert len(orders) == len(set(orders)) == 3
    assert all(set(order) == set(range(CALLS)) for order in program.orders)


def test_new_interpreters_find_the_code_of_others() -> None:
    few = replace(MANY, orders=((0, 3), (3, 0)))
    cases = check_sequences([few, replace(few, text=few.text.replace("*", "+"))])
    assert [case.finding for case in cases] == [None, None]


def test_code_that_is_found_on_disk_for_another_integer_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(persist, "_is_key_sufficient", lambda *_: True)
    monkeypatch.setattr(Typed, "constant", frozenset())
    found = finding_of(MANY)
    assert found is not None and found.check == "warm"


def test_calls_are_made_fewer_and_simpler_and_can_be_stored(tmp_path: Path) -> None:
    def fails(program: Program) -> bool:
        calls = [program.calls[at] for at in program.orders[0]]
        numbers = [int(s.kind) for call in calls for s in call if s.name == "p"]
        return "p > 3" in program.text and 5 in numbers[1:]

    small = reduced(MANY, fails)
    assert len(small.calls) == 2 and len(small.orders) == 1 and len(small.orders[0]) == 2
    assert not small.captured and [spec.name for spec in small.calls[0]] == ["p"]
    path = write(Finding("warm", "process 0, call 1: result 0: 1 against 2", MANY), tmp_path)
    names: dict[str, Any] = {}
    text = path.read_text(encoding="utf-8").replace("from ..model", "from tests.programs.model")
    exec(compile(text, path, "exec"), names)
    assert names["PROGRAM"] == MANY
