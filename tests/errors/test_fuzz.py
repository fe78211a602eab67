"""Mutants of valid functions run, or raise an error of the family; never anything else."""

import pytest

from tests.errors import fuzz
from tests.errors.fuzz import Hang, mutant, mutants, outcome

PARTS, MUTANTS = 8, 2000


@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_run_or_raise_an_error_of_the_family(part: int) -> None:
    each = MUTANTS // PARTS
    wrong = []
    seen = []
    for one in mutants(part * each, each):
        try:
            seen.append(outcome(one))
        except (Exception, Hang) as problem:
            wrong.append(f"mutant {one.number}: {type(problem).__name__}: {problem}\n{one.text}")
    assert not wrong, "\n\n".join(wrong)
    assert "ran" in seen
    assert len(set(seen)) > 10


def test_a_number_makes_the_same_mutant() -> None:
    assert mutant(17).text == mutant(17).text


def test_after_a_hang_nothing_else_is_tried_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(one: fuzz.Mutant, backend: str) -> str:
        if one.number == 3:
            raise Hang("took more than 10 s")
        return "ran"

    monkeypatch.setattr(fuzz, "outcome", slow)
    seen, failed, left = fuzz.tried(range(1, 9), "numpy")
    assert (seen["ran"], len(failed), left) == (2, 1, range(4, 9))
    assert failed[0].startswith("# mutant 3: Hang: took more")
