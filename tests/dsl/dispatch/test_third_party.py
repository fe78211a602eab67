"""A backend of somebody else's: its code gets the fast path and the entries on disk, too."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache.cache import Cache
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.interface import API_VERSION
from plusequals.backends.runtime.state import RUNTIME

pytestmark = pytest.mark.usefixtures("short_way")
X = np.arange(4.0)


class TheirCode:
    """Code with the attributes of the protocols, and no others."""

    def __init__(self, code: Any) -> None:
        self.text, self.line_map, self.origin = code.text, code.line_map, code.origin
        self.run, self.bind, self.shape_of = code.run, code.bind, code.shape_of
        self.results, self.direct_call = code.results, code.direct_call
        self.allocated_results = code.allocated_results
        self.written_results = code.written_results


class Theirs:
    """A backend with the methods of the protocols, and no others."""

    name = "theirs"
    api_version = API_VERSION

    def __init__(self) -> None:
        self._compiler, self.cache = CompiledC(), Cache()
        self.restored = 0

    def unavailable(self) -> None:
        """Return None: there is a compiler here."""

    def compile(self, procedure: Any) -> TheirCode:
        """Return the procedure as code."""
        return TheirCode(self._compiler.compile(procedure))

    def code_inputs(self) -> Sequence[object]:
        """Return the version of their compiler."""
        return ["version 1"]

    def restore(self, saved: Mapping[str, Any], faults: Callable[[], Any]) -> Any:
        """Return code of an earlier process."""
        self.restored += 1
        return self._compiler.restore(saved, faults)

    def after_fork(self) -> None:
        """Do nothing: it has no locks."""


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Theirs]:
    backend = Theirs()
    with (
        mock.patch.dict(RUNTIME._backends, {"theirs": backend}),
        pe.override(backend="theirs", cache_dir=str(tmp_path / "cache")),
    ):
        yield backend


@pytest.fixture
def load(module: Callable[..., types.ModuleType]) -> Callable[[str], Any]:
    head = "import numpy as np\nfrom plusequals import cd\n@cd\n"
    return lambda text: module(head + text).f


def test_calls_take_the_fast_path(
    theirs: Theirs, load: Callable[[str], Any], long_ways: list[str]
) -> None:
    f = load("def f(x):\n    return np.sqrt(x) + 1, np.sum(x), x[1:]\n")
    f(X)
    assert type(f).__bases__ == (RUNTIME.load_caller().caller,)
    long_ways.clear()
    for _ in range(3):
        each, total, some = f(X)
        np.testing.assert_array_equal(each, np.sqrt(X) + 1)
        assert total == 6 and some.tolist() == [1, 2, 3]
    assert not long_ways


def test_a_later_process_compiles_nothing(theirs: Theirs, load: Callable[[str], Any]) -> None:
    text = "def f(x):\n    assert x[0] >= 0, 'it is negative'\n    return x * 2\n"
    np.testing.assert_array_equal(load(text)(X), X * 2)
    assert theirs.restored == 0
    again = load(text)
    np.testing.assert_array_equal(again(X), X * 2)
    assert theirs.restored == 1 and "_forms" not in vars(again)
    with pytest.raises(pe.CdError, match="it is negative"):
        again(X - 1)
    with pe.override(backend="cc"):
        load(text)(X)
    assert theirs.restored == 1, "entries are of one backend"


def test_code_that_is_gone_is_compiled(
    theirs: Theirs, load: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def f(x):\n    return x - 1\n"
    load(text)(X)
    monkeypatch.setattr(theirs, "restore", lambda *_: None)
    again = load(text)
    np.testing.assert_array_equal(again(X), X - 1)
    assert "_forms" in vars(again)
