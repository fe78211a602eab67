"""Fields on the host: clocks, snapshots, writing by item, by attribute and in place."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i
from tests.backends.runtime.test_queue import BOTH


@cd
def half(p):
    p[i] = p[i] * 0.5 + 1.0


@cd
def total(p):
    return np.sum(p)


def made(threaded: bool = True, device: str = "numpy", init: float = 8.0) -> tuple:
    p = pe.tensor("p", 2, dtype="float64", init=init)
    routine = half.compile(p).link(pe.device(device).stream(threaded).context())
    return p, routine


@BOTH
def test_the_host_sees_what_a_routine_computed_and_the_routine_what_the_host_wrote(
    threaded: bool,
) -> None:
    p, routine = made(threaded)
    routine()
    assert p.numpy().tolist() == [5, 5] and np.asarray(p).tolist() == [5, 5]
    p[0] = 100
    routine()
    assert p[0] == 51 and total(p) == 51 + 3.5
    half(p)
    routine()
    assert p.numpy().tolist() == [14.25, 2.375]


@BOTH
def test_trap_observing_never_changes_what_a_later_routine_computes(threaded: bool) -> None:
    (p, looked), (q, unseen) = made(threaded), made(threaded)
    for n in range(3):
        looked()
        unseen()
        p.numpy()
        total(p)
        looked.context.numpy(p)
        if n == 1:
            p[0] = q[0] = 4.0
    assert p.numpy().tolist() == q.numpy().tolist()
    assert p.value.host_tick == q.value.host_tick


@BOTH
def test_trap_what_a_device_computed_is_never_overwritten_by_an_older_host_array(
    threaded: bool,
) -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)
    context = pe.device("numpy").stream(threaded).context()

    @cd
    def make(p):
        p[i] = 20.0

    first = make.compile(p).link(context)
    second = half.compile(p).link(first.context)
    p[...] = 3.0
    first()
    second()
    assert p.numpy().tolist() == [11, 11]


@BOTH
def test_trap_every_stream_with_an_array_of_its_own_gets_the_upload(threaded: bool) -> None:
    p, one = made(threaded)
    two = half.compile(p).link(one.context.device.stream(threaded).context())
    p[...] = 6.0
    one()
    two()
    assert one.context.numpy(p).tolist() == two.context.numpy(p).tolist() == [4, 4]


def test_whole_fields_are_written_in_place_by_attribute() -> None:
    p = pe.tensor("p", (2, 2), fields=("vel",))
    there = p.vel.host.array
    p.grad[...] = 2
    p.vel = p.grad
    p.value = [[1, 2], [3, 4]]
    p[...] = p
    p.note = "an attribute like any other"
    assert p.vel.host.array is there and p.vel.numpy().tolist() == [[2, 2], [2, 2]]
    assert np.asarray(p, dtype="int32").tolist() == [[1, 2], [3, 4]] and len(p.vel) == 2


def test_edits_are_seen_by_routines_and_start_from_the_newest_version() -> None:
    p, routine = made()
    routine()
    with p.edit() as array:
        assert array.tolist() == [5, 5]
        array[1] = 7
    with pytest.raises(ZeroDivisionError), p.value.edit() as array:
        array[0] = 9
        raise ZeroDivisionError
    routine()
    assert p.numpy().tolist() == [5.5, 4.5]


def test_a_refused_write_leaves_the_newest_version() -> None:
    p, routine = made()
    routine()
    with pytest.raises(ValueError, match="broadcast"):
        p[...] = np.ones(3)
    assert p.numpy().tolist() == [5, 5]


def test_a_snapshot_never_changes_and_cannot_be_written() -> None:
    p, routine = made()
    before = p.numpy()
    routine()
    p[...] = 0
    assert before.tolist() == [8, 8]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1


def test_what_was_computed_outlives_the_context_that_computed_it() -> None:
    p, routine = made()
    routine()
    del routine
    gc.collect()
    assert p.numpy().tolist() == [5, 5]
    p, routine = made()
    routine()
    routine.context.finalize()
    assert p.numpy().tolist() == [5, 5]


def test_the_end_of_a_context_changes_nothing_that_another_one_reads() -> None:
    p, q = (pe.tensor(label, 2, dtype="float64", init=8.0) for label in "pq")
    device = pe.device("numpy")
    text = "def copy(q, p):\n    q[i] = p[i]\n"
    reader = pe.cd_from_source(text).compile(q, p).link(device.stream().context())
    writer = half.compile(p).link(pe.device("numpy:1").stream().context())
    writer()
    writer.context.finalize()
    reader()
    assert p.numpy().tolist() == [5, 5] and q.numpy().tolist() == [8, 8]
    p[0] = 1.0
    reader()
    assert q.numpy().tolist() == [1, 5]


def test_without_automatic_transfers_the_host_has_what_it_asked_for() -> None:
    p, routine = made()
    with pe.override(automatic_host_transfers=False):
        routine()
        assert p.numpy().tolist() == [8, 8]
        p[...] = 2.0
        routine()
        routine.context.to_host(p)
        assert p.numpy().tolist() == [3.5, 3.5]
        p[...] = 2.0
        routine.context.from_host(p)
        routine()
        assert routine.context.numpy(p).tolist() == [2, 2]


def test_a_look_that_waits_does_not_keep_others_from_scheduling() -> None:
    p, slow = made()
    q, other = made()
    gate = threading.Event()
    slow.context.stream.submit(gate.wait)
    slow()
    looking = threading.Thread(target=p.numpy)
    looking.start()
    other()
    assert q.numpy().tolist() == [5, 5]
    assert looking.is_alive()
    gate.set()
    looking.join()


def test_a_field_says_what_it_is() -> None:
    p = pe.tensor("p", (2, 3))
    assert repr(p.grad) == "field p.grad: f32[2, 3]" and p.grad.shape == (2, 3)
    assert p.grad[1].tolist() == [0, 0, 0]
