"""A backend that does not exist is refused where it is named, not at every later call."""

from __future__ import annotations

import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError


def test_a_backend_is_refused_when_it_is_chosen() -> None:
    before = settings.current()
    with pytest.raises(CdBackendError, match="CD0801.*no backend `cuda9`"):
        pe.use("cuda9")
    with pytest.raises(CdBackendError, match="CD0801"):
        pe.use(backend="")
    with pytest.raises(CdBackendError, match='did you mean "numpy"'), pe.override("nump"):
        pass
    assert settings.current() == before


def test_what_there_is_can_be_chosen() -> None:
    for name in ("numpy", "cc", "cuda", "cuda:1"):
        with pe.override(name) as now:
            assert now.backend == name
    with pytest.raises(ValueError, match="CD0822"):
        pe.use(backend=3)  # type: ignore[arg-type]


def test_a_function_is_refused_with_its_backend() -> None:
    with pytest.raises(CdBackendError, match="CD0801"):
        pe.cd(backend="nope")
    function = pe.cd_from_source("def f(x):\n    return x + 1\n")
    with pytest.raises(CdBackendError, match="CD0801"):
        function.on("nump")
    with pytest.raises(CdBackendError, match="CD0801"):
        pe.cd_from_source("def f(x):\n    return x + 1\n", backend="nope")
