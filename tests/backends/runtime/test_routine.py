"""Routines: what a call gives, what it returns, who may call, what is said when it fails."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i
from tests.backends.runtime.test_queue import BOTH, child


@cd
def axpy(p, a, x):
    p[i] = p[i] + a * x[i]


@cd
def fill(x, p):
    x[i] = p[i] * 2.0


@cd
def total(p, scale):
    return np.sum(p) * scale


@cd
def put(p, n):
    p[n] = 1.0


@cd
def overwrite(p, q):
    p[i] = q[i]


@cd
def interleave(p, q):
    p[::2] = q[::2]
    p[1::2] = 2.0 * q[1::2]


@cd
def every_second(p, q):
    p[::2] = q[::2]


X = np.array([1.0, 2.0])


def linked(function: pe.CdFunction, *args: object, threaded: bool = True) -> pe.Routine:
    return function.compile(*args).link(pe.device("cc").stream(threaded).context())


def tensor(label: str = "p") -> pe.Tensor:
    return pe.tensor(label, 2, dtype="float64", init=1.0)


@BOTH
def test_a_call_gives_arrays_by_place_or_name_and_numbers_are_kept(threaded: bool) -> None:
    p = tensor()
    routine = linked(axpy, p, 2.0, X, threaded=threaded)
    assert set(routine.bindings) == {"a"} and routine.compiled.names == ("a", "x")
    routine(2.0, X)
    routine(x=X)
    routine.bindings["a"] = 10.0
    routine(x=X)
    assert p.numpy().tolist() == [15, 29]


def test_what_a_call_gives_may_be_changed_at_once() -> None:
    p, given, gate = tensor(), X.copy(), threading.Event()
    routine = linked(axpy, p, 1.0, X)
    routine.context.stream.submit(gate.wait)
    routine(x=given)
    given[:] = 0
    gate.set()
    assert p.numpy().tolist() == [2, 3]


@BOTH
def test_results_and_arrays_to_be_written_are_waited_for(threaded: bool) -> None:
    p, x = tensor(), np.zeros(2)
    assert linked(total, p, 3.0, threaded=threaded)() == 6.0
    linked(fill, x, p, threaded=threaded)(x)
    assert x.tolist() == [2, 2]


def test_a_routine_says_what_it_reads_and_writes() -> None:
    p, q = tensor(), tensor("q")
    routine = linked(overwrite, p, q)
    assert routine.inputs == (q.value,) and routine.outputs == (p.value,)
    assert linked(interleave, p, q).inputs == (q.value,)
    assert set(linked(every_second, p, q).inputs) == {p.value, q.value}
    assert routine.merge_input is None and repr(routine).startswith("<routine overwrite on cc:0/s")


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "give it what it lacks: x"),
        ((1.0, X, X), {}, "it takes a, x"),
        ((), {"x": X, "y": X}, "it takes a, x"),
        ((1.0, np.zeros(3)), {}, "CD0702.*shape"),
        ((1.0, X.astype("float32")), {}, "CD0702.*float32"),
    ],
)
def test_wrong_arguments(args: tuple, kwargs: dict, says: str) -> None:
    p = tensor()
    routine = linked(axpy, p, 1.0, X)
    with pytest.raises(pe.CdError, match=f"(?s){says}"):
        routine(*args, **kwargs)
    assert p.numpy().tolist() == [1, 1]


def test_arrays_of_one_call_that_share_memory() -> None:
    @cd
    def apart(x, y, p):
        x[i] = p[i]
        y[i] = p[i] * 2.0

    x = np.zeros(3)
    routine = linked(apart, np.zeros(2), np.zeros(2), tensor())
    with pytest.raises(pe.CdError, match="CD0708"):
        routine(x[:2], x[:2])


@pytest.mark.parametrize("function", [put])
def test_trap_a_failure_names_routine_and_line_and_is_raised_once(function: pe.CdFunction) -> None:
    p = tensor()
    routine = linked(function, p, 0)
    after = axpy.compile(p, 1.0, X).link(routine.context)
    gate = threading.Event()
    routine.context.stream.submit(gate.wait)
    routine(7)
    after(x=X)
    gate.set()
    with pytest.raises(pe.CdError) as caught:
        routine.context.stream.synchronize()
    text = str(caught.value)
    assert "p[n] = 1.0" in text and "in the routine `put` on cc:0/s" in text
    routine.context.stream.synchronize()
    after(x=X)
    assert p.numpy().tolist() == [2, 3], "what was queued behind it was dropped"


def test_a_read_raises_what_should_have_computed_it() -> None:
    p, q = tensor(), tensor("q")
    routine = linked(put, p, 0)
    copy = overwrite.compile(q, p).link(pe.device("cc").stream().context())
    gate = threading.Event()
    routine.context.stream.submit(gate.wait)  # or it may have failed before the copy is queued
    routine(7)
    copy.context.copy_from(routine.context, p)
    copy()
    gate.set()
    with pytest.raises(pe.CdError, match="CD0601"):
        q.numpy()
    pe.device("cc").synchronize()


def test_an_inline_stream_raises_at_the_call() -> None:
    routine = linked(put, tensor(), 0, threaded=False)
    with pytest.raises(pe.CdError, match="CD0601"):
        routine(7)
    routine(1)


@BOTH
def test_trap_many_threads_call_one_routine(threaded: bool) -> None:
    p = tensor()
    routine, plain = linked(axpy, p, 1.0, X, threaded=threaded), tensor("q")
    whole = overwrite.compile(plain, p).link(routine.context)

    def many() -> None:
        for _ in range(25):
            routine(x=X)
            whole()

    threads = [threading.Thread(target=many) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert p.numpy().tolist() == plain.numpy().tolist() == [101, 201]


def test_one_function_on_several_backends_and_under_another_name() -> None:
    p = tensor()
    code = axpy.compile(p, 1.0, X, name="first")
    for name in ("cc", "numpy", "cc:1"):
        routine = code.link(pe.device(name).stream().context())
        routine(x=X)
        assert routine.name == "first" and routine.context.numpy(p)[0] in (2, 3, 4)
    assert repr(code) == "<compiled first>"


def test_what_is_no_context_and_what_is_constant() -> None:
    constant = pe.tensor("k", 2, dtype="float64", constant=True)
    stream = pe.device("numpy").stream()
    with pytest.raises(pe.CdError, match=r"CD0847.*into a Stream"):
        put.compile(tensor(), 0).link(stream)
    with pytest.raises(pe.CdError, match="CD0804"):
        put.compile(constant, 0).link(stream.context())


def test_trap_a_process_ends_with_routines_in_flight() -> None:
    done = child(
        "f = pe.cd_from_source('def f(p):\\n    p[i] = p[i] * 0.5 + 1.0\\n')\n"
        "p = pe.tensor('p', 100000)\n"
        "r = [f.compile(p).link(pe.device('numpy').stream().context()) for _ in range(2)]\n"
        "p.numpy()\n"
        "[s.context.stream.submit(lambda: time.sleep(0.1)) for s in r]\n"
        "c = f.on('cc').compile(p).link(pe.device('cc').stream().context())\n"
        "[c() for _ in range(500)]\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_static_index_is_a_whole_number_also_where_it_is_bound() -> None:
    p = tensor()
    routine = linked(put, p, 1, threaded=False)
    routine.bindings["n"] = 1.5
    for call in (lambda: routine(1.7), routine, lambda: routine(np.zeros(0))):
        with pytest.raises(TypeError, match="CD0702.*`n`"):
            call()
    assert p.numpy().tolist() == [1, 1]
    routine(0)
    assert p.numpy().tolist() == [1, 1] and p.value.clock == 1
