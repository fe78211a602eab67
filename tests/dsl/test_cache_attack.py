"""The attack on the persistent cache: a sample of it, and that it sees what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.call_entry import Guard
from plusequals.dsl.dispatch import persist
from tests.dsl.cache_attack import alike, differences_of
from tests.dsl.cache_programs import TEMPLATES, Call, Program, draw, draw_calls

pytestmark = pytest.mark.usefixtures("short_way")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path) -> Iterator[None]:
    with pe.override(cache_dir=str(tmp_path / "cache")):
        yield


def test_calls_of_all_kinds_do_what_a_fresh_compilation_does(tmp_path: Path) -> None:
    rng = random.Random(7)
    for number in rng.sample(range(len(TEMPLATES)), 8):
        program = draw(rng, number)
        found = list(differences_of(program, draw_calls(rng, program, 4), tmp_path))
        assert not found, found[0]


def test_a_guard_that_is_missing_is_seen(tmp_path: Path, monkeypatch: Any) -> None:
    check = persist._check
    loose = {Guard.BITS: [Guard.ANY]}
    monkeypatch.setattr(persist, "_check", lambda one: loose.get(one[0]) or check(one))
    (number,) = (at for at, one in enumerate(TEMPLATES) if "return x * K0 + K1" in one.text)
    program = Program("attacked", TEMPLATES[number], "1")
    calls = [  # stored, found by another process, which then changes what is captured
        Call((number, "1"), {"x": "np.arange(4.0)"}, is_new)
        for number, is_new in (("2.5", True), ("2.5", True), ("3.5", False))
    ]
    found = [*differences_of(program, calls, tmp_path)]
    assert found and all("cached" in one for one in found)


def test_outcomes_differ_by_type_shape_value_and_sign() -> None:
    assert alike((1.0, [2]), (1.0, [2])) and alike(float("nan"), float("nan"))
    for one, other in ((0.0, -0.0), (1, 1.0), (1.0, 2.0), ((1,), [1]), ("a", "b"), (None, 0)):
        assert not alike(one, other)
    assert alike(1, 1.0, types=False)
