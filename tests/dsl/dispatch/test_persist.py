"""What is written to disk of a call, and when nothing is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache import cache
from plusequals.base import settings
from plusequals.dsl.dispatch import persist
from plusequals.dsl.source import fingerprint

from .found import HEAD, is_found

pytestmark = pytest.mark.usefixtures("short_way", "own_cache")
X = np.arange(3.0)


@pytest.fixture
def written(monkeypatch: Any) -> list[dict[str, Any]]:
    """The ways that are written, the latest last."""
    kept: list[dict[str, Any]] = []
    put = cache.Cache.put

    def noting(self: cache.Cache, key: str, entry: cache.Entry) -> bool:
        kept.extend(entry.metadata.get("ways", [])[:1])
        return put(self, key, entry)

    monkeypatch.setattr(cache.Cache, "put", noting)
    return kept


def test_a_way_says_what_was_read(module: Callable[..., Any], written: list[Any]) -> None:
    text = HEAD + "K = 2.0\ndef g(v):\n    return v * K\n@cd\ndef f(x):\n    return g(x) + np.pi\n"
    module(text).f(X)
    (way,) = written
    read = {(scope, name): words[0] for scope, name, _, words in way["reads"]}
    assert read[0, "g"] == "function" and read[0, "np"] == "module"
    assert read[1, "K"] == "constant" and way["owners"] == [[0, "g", []]]
    assert way["asked"] == [[["module", "numpy", True], "pi", fingerprint.describe(np.pi)]]
    assert way["code"]["name"] == "f" and way["faults"] == []


@pytest.mark.parametrize("what", ["sources", "settings", "helper", "rebound"])
def test_nothing_is_written_of_what_changed_meanwhile(
    module: Callable[..., Any], written: list[Any], monkeypatch: Any, what: str
) -> None:
    text = (
        HEAD + "def g(v, k=1.0):\n    return v + k\nh = g\n@cd\ndef f(x):\n    return g(x) + h(x)\n"
    )
    made = module(text)
    data_of, find = persist.entry_data, persist.persistent_cache.entry_keys

    def changing(*args: Any) -> Any:
        made.g.__defaults__ = (2.0,)
        return data_of(*args)

    def rebinding(*args: Any) -> Any:
        made.h = module(text).g
        return data_of(*args)

    def with_other_settings(*args: Any) -> Any:
        pe.use(compiler_timeout=settings.current().compiler_timeout + 1)
        return find(*args)

    match what:
        case "sources":
            monkeypatch.setattr(cache, "_stamp", lambda: "another")
        case "settings":
            monkeypatch.setattr(persist.persistent_cache, "entry_keys", with_other_settings)
        case "helper":
            monkeypatch.setattr(persist, "entry_data", changing)
        case "rebound":
            monkeypatch.setattr(persist, "entry_data", rebinding)
    np.testing.assert_array_equal(made.f(X), 2 * X + 2)
    assert written == []
    monkeypatch.undo()
    again = module(text)
    np.testing.assert_array_equal(again.f(X), 2 * X + 2)
    assert not is_found(again.f)


@pytest.mark.parametrize(
    "text",
    [
        "k = [1.0]\n@cd\ndef f(x):\n    return x + k[0]",
        "class A:\n    k = 2.0\na = A()\n@cd\ndef f(x):\n    return x + a.k",
        "def h(v):\n    return v\ndef g(v, k=h):\n    return k(v)\n@cd\ndef f(x):\n    return g(x)",
        "class A:\n    def m(self, v):\n        return v\nm = A().m\n"
        "@cd\ndef f(x):\n    return m(x)",
        "import functools\ndef h(v, w):\n    return v * w\ng = functools.partial(h, 2.0)\n"
        "@cd\ndef f(x):\n    return g(x) + h(x, 1.0)",
    ],
)
def test_what_cannot_be_said_is_not_written(
    module: Callable[..., Any], written: list[Any], text: str
) -> None:
    assert module(HEAD + text).f(X).shape == X.shape
    assert written == []


def test_a_few_ways_are_kept(module: Callable[..., Any]) -> None:
    text = HEAD + "@cd\ndef f(x):\n    return x * K\n"
    kept = []
    for number in (*range(10), 9, 2, 1):
        f = module(text, K=float(number)).f
        np.testing.assert_array_equal(f(X), X * number)
        kept.append(is_found(f))
    assert kept == [*[False] * 10, True, True, False]


def test_numbers_of_numpy_that_code_depends_on(module: Callable[..., Any]) -> None:
    text = HEAD + "@cd\ndef f(x, n):\n    return x.reshape(n, -1)[0] + 1\n"
    x, found = np.arange(6.0), []
    for number in (2, 3, np.int64(2), np.int64(3), np.int64(2), np.int32(3), 3, np.int64(3)):
        f = module(text).f
        np.testing.assert_array_equal(f(x, number), x.reshape(number, -1)[0] + 1)
        found.append(is_found(f))
    assert found == [False, False, False, False, True, False, True, True]


def test_a_float_after_a_whole_number_that_decided(module: Callable[..., Any]) -> None:
    text = HEAD + "@cd\ndef f(v):\n    if v < 0:\n        return 0.0\n    return v * 10\n"
    for calls in ((1, 2.5), (3.5, 2.5, 1), (2.5, 4.5), (-0.0, 0.0)):
        f = module(text).f
        for value in calls:
            assert str(f(value)) == str(value * 10)


@pytest.mark.parametrize("values", [(2, 3, 1, 4, 5, 0, 6, 2), (4, 0, 5, 2, 1, 4), (6, 5, 4, 3)])
def test_whole_numbers_of_many_values_that_decided(
    module: Callable[..., Any], values: tuple[int, ...]
) -> None:
    text = (
        HEAD
        + """
@cd
def f(x, n):
    return np.stack([x * k for k in range(n + 1)]) if n > 3 else x[:n]
@cd
def g(x, *, n):
    y = x + 0
    if n > 3:
        y[:n] = 1
    return y
"""
    )
    x, wanted = np.arange(9.0), []
    for n in values:
        whole = np.stack([x * k for k in range(n + 1)]) if n > 3 else x[:n]
        wanted += [whole, np.where(np.arange(9) < n, 1, x) if n > 3 else x]
    for _ in range(3):  # by the first compiled, by the others found
        now = module(text)
        found = [one for n in values for one in (now.f(x, n), now.g(x, n=n))]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_sizes_that_differ_in_a_run_broadcast_in_code_for_one_call(
    module: Callable[..., Any],
) -> None:
    text = HEAD + "@cd\ndef f(x, y, n):\n    return x[:n] * y\n"
    x, sizes = np.arange(9.0), [(2, 2), (3, 3), (4, 4), (5, 5), (1, 5), (6, 6), (1, 6), (1, 5)]
    for order in (sizes, sizes[::-1], sizes):
        f = module(text).f
        for n, size in (*order, *order):
            y = np.arange(1.0, size + 1)
            np.testing.assert_array_equal(f(x, y, n), x[:n] * y)
        with pytest.raises(pe.CdError, match="CD030[12]"):
            f(x, np.ones(5), 4)


def test_long_whole_numbers_and_signs_of_nan_are_told_apart(module: Callable[..., Any]) -> None:
    text = HEAD + "@cd\ndef f(x, k=K):\n    return x + np.copysign(1.0, W) + (k > 1)\n"
    for k, w in ((1, np.nan), (1 << 20000, np.nan), (1, -np.nan), (1, -np.nan)):
        f = module(text, K=k, W=float(w)).f
        np.testing.assert_array_equal(f(X), X + np.copysign(1.0, w) + (k > 1))
