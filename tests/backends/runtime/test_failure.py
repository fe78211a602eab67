"""What went wrong is told once."""

from __future__ import annotations

import gc

import pytest

from plusequals.backends.runtime.failure import Failure


def raised() -> ValueError:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        return error


def test_it_is_told_once_and_holds_no_frames() -> None:
    failure = Failure(raised())
    assert failure.error.__traceback__ is None and not failure.reported
    with pytest.raises(ValueError, match="wrong"):
        raise failure.tell()
    assert failure.reported and failure.when > 0
    assert failure.error.__traceback__ is None


@pytest.mark.parametrize(("quiet", "told"), [(False, False), (True, False), (False, True)])
def test_what_nobody_was_told_is_written(
    quiet: bool, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = Failure(raised(), quiet)
    if told:
        failure.tell()
    del failure
    gc.collect()
    assert ("ValueError: wrong" in capsys.readouterr().err) == (not quiet and not told)
