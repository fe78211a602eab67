"""How many forms are kept."""

from __future__ import annotations

from typing import Any, cast

from plusequals.dsl.tables import MOST, Table, keep


def test_the_latest_forms_are_kept() -> None:
    table, made = Table(), [cast("Any", object()) for _ in range(MOST + 2)]
    for one in made:
        keep(table.full, "key", one)
    assert table.full["key"] == tuple(reversed(made[2:]))
    assert table.quick == {}
