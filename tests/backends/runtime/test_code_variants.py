"""Code of a procedure: made once for each backend and choice of settings."""

from __future__ import annotations

import pytest

from plusequals.backends.runtime.code_variants import CodeVariants
from plusequals.base import settings

from .. import procedures


def codes() -> tuple[CodeVariants, list[tuple[object, str]]]:
    asked: list[tuple[object, str]] = []

    def record(wanted: object, backend: str) -> object:
        asked.append((wanted, backend))
        return object()

    return CodeVariants(procedures.scale(), record), asked


def test_code_is_made_once_for_a_backend_and_settings() -> None:
    made, _ = codes()
    assert not made.has("numpy")
    first = made.on("numpy")
    assert made.has("numpy") and made.on("numpy") is first
    with settings.override(optimize=1):
        assert not made.has("numpy") and made.on("numpy") is not first
    made.keep("numpy", made.on("numpy"))
    assert made.on("numpy") is first


@pytest.mark.parametrize("wanted", ["all", "some"])
def test_so_is_code_that_records(wanted: str) -> None:
    made, asked = codes()
    assert made.recording(wanted, "numpy") is made.recording(wanted, "numpy")
    assert made.recording(wanted, "cc") is not made.recording(wanted, "numpy")
    assert asked == [(wanted, "numpy"), (wanted, "cc")]


def test_what_is_needed_is_what_is_read_before_it_is_written() -> None:
    made, _ = codes()
    labels = [parameter.node.label for parameter in made.procedure.parameters]
    assert [labels[at] for at in sorted(made.needed)] == ["x"]
