"""Calls of compiled code: results, faults, prints, memory, and calls that are repeated."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pytest

from plusequals.backends.cc.backend import CompiledC
from plusequals.lowering.diagnostic import CdMemoryError, CdValueError

from .. import procedures

Fake = Callable[..., str]


def test_strided_arrays_of_either_direction(cc: CompiledC) -> None:
    base, y = np.arange(8.0), np.zeros(4)
    cc.compile(procedures.scale(strides=(2,))).run((y, base[::2]))
    assert y.tolist() == [0.0, 4.0, 8.0, 12.0]
    cc.compile(procedures.scale(strides=(-2,))).run((y, base[7::-2]))
    assert y.tolist() == [14.0, 10.0, 6.0, 2.0]


def test_results_come_back_also_those_of_run_time_shape(cc: CompiledC) -> None:
    s = np.zeros(())
    assert cc.compile(procedures.total()).run((np.arange(4.0), s))[0] is s
    assert s == 6.0
    code = cc.compile(procedures.counting())
    for size in (0, 1, 1000):
        (r,) = code.run((np.array(size), None))
        assert r.tolist() == list(range(size))
        assert r.flags.writeable


def test_failed_check_is_the_error_it_names(cc: CompiledC) -> None:
    code = cc.compile(procedures.roots())
    y = np.zeros(4)
    for _ in range(2):
        with pytest.raises(CdValueError) as caught:
            code.run((y, np.array([4.0, 9.0, -0.5, 1.0])))
        assert caught.value.diagnostics[0].message == "x is -0.5 at i = 2"
        assert caught.value.diagnostics[0].helps == ("pass abs(x)",)
    code.run((y, np.array([4.0, 9.0, 16.0, 1.0])))
    assert y.tolist() == [2.0, 3.0, 4.0, 1.0]


def test_out_of_memory_is_an_error_with_the_amount(cc: CompiledC) -> None:
    with pytest.raises(CdMemoryError, match=r"not enough memory .* `counting`: \d+ bytes"):
        cc.compile(procedures.counting()).run((np.array(2**58), None))


def test_prints_go_where_python_prints_now(
    cc: CompiledC, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cc.compile(procedures.talking())
    wanted = "x[0] = 0.1, index 1; done\nagain 2.5\n"
    with contextlib.redirect_stdout(io.StringIO()) as redirected:
        code.run((np.array([0.1, 2.5, 3]),))
    assert redirected.getvalue() == wanted
    code.run((np.array([0.1, 2.5, 3]),))
    assert capsys.readouterr().out == wanted


def test_an_error_while_printing_is_raised(cc: CompiledC) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError("gone")

    call = cc.compile(procedures.talking()).bind((np.zeros(3),))
    with contextlib.redirect_stdout(Closed()), pytest.raises(BrokenPipeError):
        call()
    with contextlib.redirect_stdout(io.StringIO()) as redirected:
        call()
    assert redirected.getvalue().count("\n") == 2


def test_a_bound_call_can_be_repeated(cc: CompiledC) -> None:
    y, x = np.zeros(4), np.arange(4.0)
    call = cc.compile(procedures.scale()).bind((y, x))
    for factor in (1.0, 2.0):
        x *= factor
        call()
        assert y.tolist() == (2 * x).tolist()
