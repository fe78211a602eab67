"""A call's bits do not depend on the floating-point modes of the thread that makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from tests.modes import IS_KNOWN, MODES, mode, now

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="the layout of `fenv_t` is not known here")
TWO, SUBNORMAL = np.full(5000, 2.0), np.full(5000, 3e-310)


@cd
def values(x, s):
    tiny = 1e-300 * 1e-10  # folded when it is compiled
    return np.cbrt(x), np.sin(1e5 * x), np.exp(x), s + s, np.sum(s), x * tiny, x / 3


@cd
def checked(x, k: int):
    assert k < 3, f"{k} is too large"
    return x / 3 + k


def bits(results: Any) -> list[bytes]:
    return [np.asarray(one).tobytes() for one in results]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    return bits(values(TWO, SUBNORMAL))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_mode_gives_the_bits_of_the_default_one(threads: int, expected: list[bytes]) -> None:
    with settings.override(threads=threads, parallel_from=0):
        for name in MODES:
            for _ in range(3):  # as a first call, as one that learns, as one that is warm
                with mode(name) as set_to:
                    found = values(TWO, SUBNORMAL)
                    assert now() == set_to
                assert bits(found) == expected, name


@pytest.mark.parametrize("name", MODES)
def test_what_is_compiled_under_a_mode_is_compiled_as_always(name: str) -> None:
    function = cd(lambda x, s: np.cbrt(x) + s * (1e-300 * 1e-10) / 3)
    with mode(name), settings.override(cache=False):
        found = function(TWO[:50], SUBNORMAL[:50])
        told = function.procedure(TWO[:50], SUBNORMAL[:50])
    assert np.array_equal(found, function(TWO[:50], SUBNORMAL[:50]))
    assert str(told.body) == str(function.procedure(TWO[:50], SUBNORMAL[:50]).body)


def test_the_interpreter_computes_under_the_default_modes() -> None:
    with mode("flushed"):
        found = values.on("numpy")(TWO[:3], SUBNORMAL[:3])
    assert bits(found) == bits(values.on("numpy")(TWO[:3], SUBNORMAL[:3]))
    assert np.all(found[3] == SUBNORMAL[:3] * 2) and found[4] > 0


@pytest.mark.parametrize("warm", [False, True])
def test_the_mode_is_back_after_an_error(warm: bool) -> None:
    if warm:
        checked(TWO, 1), checked(TWO, 2)
    with mode("up") as set_to:
        with pytest.raises(CdError, match="5 is too large"):
            checked(TWO, 5)
        assert now() == set_to
        half = checked(TWO, 1)
    assert np.array_equal(half, TWO / 3 + 1)


@cd
def thirds(y, x):
    y[:] = x / 3


@pytest.mark.parametrize("name", ["flushed", "up"])
def test_the_thread_of_a_stream_has_the_default_modes(name: str) -> None:
    given, out = np.full(64, 3e-310), pe.tensor("out", 64, np.float64)
    with mode(name):
        routine = thirds.compile(out, given).link(pe.device("cc").stream().context())
        routine(x=given)
        found = out.numpy()
    assert np.array_equal(found, given / 3)
