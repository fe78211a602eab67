"""Calls of compiled code: results, faults, prints, memory, and calls that are repeated."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cc.backend import CompiledC
from plusequals.base import settings
from plusequals.base.diagnostic import CdMemoryError, CdValueError
from tests.compare import assert_same
from tests.lowering.scheduled import function, of_any_size

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


def test_a_result_that_is_written_everywhere_is_made_of_anything(cc: CompiledC) -> None:
    x = np.arange(12.0).reshape(3, 4)
    for text, whole in (
        ("return x + 1", {0}),
        ("r = np.zeros(x.shape)\nr[1:] = x[1:]\nreturn r", set()),
    ):
        body = "".join(f"    {line}\n" for line in text.splitlines())
        made = pe.cd_from_source(f"def f(x):\n{body}", {"np": np})
        code = cc.compile(made.procedure(x))
        assert code.source.whole == whole and not code.source.allocated_results
        with settings.override(verify=True):
            (given,) = code.whole((x, None))[1:]
        assert given is not None and np.all(given.view(np.uint8) == (0xA5 if whole else 0))
        assert code.whole((x, given))[1] is given, "what is given is taken"
        assert_same(code.run((x, None))[0], made(x))


def test_shapes_that_the_sizes_of_arguments_tell(cc: CompiledC) -> None:
    made = function("def f(x):\n    return np.outer(x, x[1:])")
    code = cc.compile(of_any_size(made, np.ones(7)))
    assert code.source.whole == {0} and not code.source.allocated_results
    for size in (1, 2, 30):
        x = np.arange(float(size))
        assert code.shape_of(0, (x,)) == (size, size - 1)
        assert code.direct_call((x,)) is not None
        assert_same(code.run((x, None))[0], np.outer(x, x[1:]))
    counting = cc.compile(procedures.counting())
    assert (
        counting.source.allocated_results == {0}
        and counting.direct_call((np.array(3),)) is not None
    )


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


@pytest.mark.parametrize("is_open", [False, True], ids=["known sizes", "any size"])
def test_temporaries_in_memory_that_the_caller_lends(cc: CompiledC, is_open: bool) -> None:
    text = "def f(y, x):\n    t = x @ x\n    u = np.sort(t @ x)\n    y[i, j] = u[j, i]\n"
    made = pe.cd_from_source(text, {"np": np}, backend="numpy")
    for size in range(40, 44) if is_open else ():
        made(np.zeros((size, size)), np.zeros((size, size)))
    y, expected, x = np.zeros((50, 50)), np.zeros((50, 50)), np.arange(2500.0).reshape(50, 50) % 7
    code = cc.compile(made.procedure(y, x))
    assert bool(code.source.memory.sizes) == is_open
    room, all_ = code.arena_bytes((y, x)), code.temporary_bytes((y, x))
    assert room >= 2 * 50 * 50 * 8 and all_ is not None and all_ >= room
    unknown = (code.arena_bytes((None, None)), code.temporary_bytes((None, None)))
    assert unknown == ((0, None) if is_open else (room, all_))
    memory = np.full(room + 192, 0x5A, np.uint8)
    begin = 64 + -memory.ctypes.data % 64
    call = code.bind_in((y, x), memory[begin : begin + room])
    code.run((expected, x))
    for _ in range(2):
        y[...] = 0
        call()
        assert_same(y, expected)
    apart = np.concatenate((memory[:begin], memory[begin + room :]))
    assert np.all(apart == 0x5A) and not np.all(memory == 0x5A)


def test_code_that_prints_allocates_its_temporaries(cc: CompiledC) -> None:
    text = "def f(y, x):\n    t = np.sort(x)\n    y[i] = t[i]\n    print(y[0])\n"
    made, x = pe.cd_from_source(text, {"np": np}), np.zeros(5000)
    code = cc.compile(made.procedure(x.copy(), x))
    assert code.arena_bytes((x, x)) == 0
    assert (code.temporary_bytes((x, x)) or 0) >= x.nbytes
