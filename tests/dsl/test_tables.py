"""How many forms are kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from plusequals.dsl.elaborate.values import Path
from plusequals.dsl.forms import Watch
from plusequals.dsl.keys import describe_input
from plusequals.dsl.tables import MOST, NumbersSeen, Table, keep, keep_open


def test_the_latest_forms_are_kept() -> None:
    table, made = Table(), [cast("Any", object()) for _ in range(MOST + 2)]
    for one in made:
        keep(table.full, "key", one)
    assert table.full["key"] == tuple(reversed(made[2:]))
    assert table.quick == {}


def test_of_forms_for_many_calls_the_latest_are_kept() -> None:
    table, made = Table(), [cast("Any", object()) for _ in range(MOST + 2)]
    for one in made:
        keep_open(table.any_size, {}, one)
    assert [form for _, form in table.any_size] == made[2:]


def form(path: Path, value: object) -> Any:
    """What is asked of a form that was made for a value."""
    return SimpleNamespace(watched=(Watch(path, lambda _: value, describe_input(value, True), 0),))


@pytest.mark.parametrize("kind", [float, np.float32])
def test_floats_are_given_to_the_code_from_the_fourth_value_on(kind: type) -> None:
    seen, path = NumbersSeen(), Path("m", ("rate",))
    for value in (1.0, 2.0, 2.0, 3.0):
        assert seen.opened() == frozenset()
        seen.note(form(path, kind(value)))
    assert seen.opened() == {path}
    seen.close(seen.opened())
    assert seen.opened() == frozenset()


@pytest.mark.parametrize(
    ("path", "kind"), [(Path("rate", (), True), float), (Path("m", ("n",)), int)]
)
def test_whole_numbers_and_what_is_captured_are_constants(path: Path, kind: type) -> None:
    seen = NumbersSeen()
    for value in range(9):
        seen.note(form(path, kind(value)))
    assert seen.opened() == frozenset()
