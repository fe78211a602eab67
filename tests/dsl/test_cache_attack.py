"""The attack on the persistent cache: a sample of it, and that it sees what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.cc.fast_call import Guard
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
    loose = {Guard.EQUAL: [Guard.SAME]}
    monkeypatch.setattr(persist, "_check", lambda one: loose.get(one[0]) or check(one))
    program = Program("attacked", TEMPLATES[1], "1")
    calls = [Call((), {"v": value}, True) for value in ("1", "3")]
    (found,) = differences_of(program, calls, tmp_path)
    assert "cached" in found and "v=3" in found and "10" in found


def test_outcomes_differ_by_type_shape_value_and_sign() -> None:
    assert alike((1.0, [2]), (1.0, [2])) and alike(float("nan"), float("nan"))
    for one, other in ((0.0, -0.0), (1, 1.0), (1.0, 2.0), ((1,), [1]), ("a", "b"), (None, 0)):
        assert not alike(one, other)
    assert alike(1, 1.0, types=False)
