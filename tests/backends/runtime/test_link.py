"""Routines: results made new, arguments checked, and the runtime that keeps backends."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from plusequals.backends.interface import Array
from plusequals.backends.runtime.link import link
from plusequals.backends.runtime.state import Runtime
from plusequals.base.diagnostic import CdInternalError

from .. import procedures


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


def test_results_are_new_arrays(backend: str, runtime: Runtime) -> None:
    routine = link(procedures.total(), backend, runtime)
    first, second = routine((np.arange(4.0),)), routine((np.ones(4),))
    assert (first[0].item(), second[0].item()) == (6.0, 4.0)
    assert first[0].shape == ()
    assert link(procedures.counting(), backend, runtime)((np.array(3),))[0].tolist() == [0, 1, 2]


def test_code_that_is_wanted_later_is_made_once(backend: str, runtime: Runtime) -> None:
    with mock.patch.object(runtime, "compile", wraps=runtime.compile) as compile_:
        routine = link(procedures.total(), backend, runtime, later=True)
        assert not compile_.called
        assert not routine.seconds
        assert [routine((np.ones(n),))[0].item() for n in (4, 4)] == [4.0, 4.0]
    assert compile_.call_count == 1
    assert routine.seconds > 0


def test_written_parameters_are_written_in_place(backend: str, runtime: Runtime) -> None:
    y = np.zeros(4)
    assert link(procedures.scale(), backend, runtime)((y, np.arange(4.0))) == ()
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


READ_ONLY = np.zeros(4)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("y", "why"),
    [
        (np.zeros(4, np.float32), "elements of type float32, compiled for float64"),
        (np.zeros(4, ">f8"), "elements of type >f8"),
        (np.zeros(5), r"shape \(5,\), compiled for \(4,\)"),
        (np.zeros((4, 1)), r"shape \(4, 1\)"),
        (np.zeros(8)[::2], "not in C order"),
        (READ_ONLY, "read-only"),
        (np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64), "misaligned"),
    ],
)
def test_other_arrays_than_compiled_for_are_refused(
    y: Array, why: str, backend: str, runtime: Runtime
) -> None:
    routine = link(procedures.scale(), backend, runtime)
    with pytest.raises(CdInternalError, match=why):
        routine((y, np.arange(4.0)))


def test_strides_are_checked(runtime: Runtime) -> None:
    routine = link(procedures.scale(strides=(2,)), "numpy", runtime)
    routine((np.zeros(4), np.zeros(8)[::2]))
    with pytest.raises(CdInternalError, match=r"strides in bytes \(24,\), compiled for \(2,\)"):
        routine((np.zeros(4), np.zeros(12)[::3]))
