"""Devices, streams, contexts: sharing of arrays, transfers, merges, ends."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i
from tests.backends.runtime.test_queue import BOTH


@cd
def step(p, x):
    p.grad[i] = p.value[i] * x[i]


@cd
def merge(p):
    p.grad += p.grad.merge


@cd
def reads(q, p):
    q[i] = p[i] + 1.0


@cd
def writes(p):
    p[i] = p[i] + 2.0


X = np.array([1.0, 2.0])


def tensor(label: str = "p", init: float = 1.0, size: int = 2) -> pe.Tensor:
    return pe.tensor(label, size, dtype="float64", init=init)


def context(device: str = "numpy", threaded: bool = True) -> pe.Context:
    return pe.device(device).stream(threaded).context()


def held(stream: pe.Stream) -> threading.Event:
    """Let a stream stand still until the event is set."""
    gate = threading.Event()
    stream.submit(gate.wait)
    return gate


# ---------------------------------------------------------------- devices


def test_a_device_is_the_same_every_time_and_tells_about_itself() -> None:
    one = pe.device("numpy:3")
    assert one is pe.device("numpy:3") and one is not pe.device("numpy")
    assert pe.device("numpy") is pe.device("numpy:0") and repr(one) == "<device numpy:3>"
    assert one.suggested_streams >= 1 and one.properties["uses host memory"] is False
    assert pe.device().backend == pe.settings.current().backend


@pytest.mark.parametrize("name", ["numpy:x", "numpy:-1", "numpy:64", "numpy:1:2"])
def test_there_is_no_such_device(name: str) -> None:
    with pytest.raises(pe.CdError, match="CD0840"):
        pe.device(name)


def test_memory_is_counted_while_it_is_held() -> None:
    device, p, q = pe.device("numpy:7"), tensor(), tensor("q")
    before = device.used_memory
    routine = reads.compile(q, p).link(device.stream().context())
    assert device.used_memory == before + 32
    routine.context.finalize()
    del routine, p, q
    gc.collect()
    assert device.used_memory == before


def test_all_streams_are_waited_for_and_the_failure_is_raised() -> None:
    device, seen = pe.device("numpy:8"), []
    one, two = device.stream(), device.stream()
    one.submit(lambda: 1 // 0)
    two.submit(lambda: seen.append(1))
    with pytest.raises(ZeroDivisionError):
        device.synchronize()
    assert seen == [1]
    device.synchronize()


# ---------------------------------------------------------------- sharing


def test_what_is_only_read_is_shared_by_the_streams_of_a_device() -> None:
    p, q = tensor(), tensor("q")
    for device, is_hosts in (("numpy", True), ("numpy:1", False)):
        one = reads.compile(q, p).link(context(device)).context.find(p.value)
        two = reads.compile(q, p).link(context(device)).context.find(p.value)
        assert one is two and (one is p.value.host) is is_hosts


def test_only_one_stream_writes_what_is_shared() -> None:
    p, q = tensor(), tensor("q")
    readers = reads.compile(q, p).link(context())
    owner = writes.compile(p).link(context())
    writes.compile(p).link(owner.context)
    with pytest.raises(pe.CdError, match=r"CD0843.*written by numpy:0/s\d+") as caught:
        writes.compile(p).link(context())
    assert "link what writes it before" in str(caught.value)
    owner()
    readers()
    assert q.numpy().tolist() == [4, 4] and p.numpy().tolist() == [3, 3]


def test_trap_what_is_written_first_has_an_array_on_every_stream() -> None:
    p, q = tensor(), tensor("q")
    one, two = writes.compile(p).link(context()), reads.compile(q, p).link(context())
    three = writes.compile(p).link(context())
    found = {id(routine.context.find(p.value)) for routine in (one, two, three)}
    assert len(found) == 3


def test_a_new_array_starts_as_the_newest_version() -> None:
    p, q = tensor(), tensor("q")
    trained = writes.compile(p).link(context("numpy:1"))
    trained()
    reader = reads.compile(q, p).link(context())
    reader()
    assert q.numpy().tolist() == [4, 4] and p.value.host.array.tolist() == [1, 1]


# ---------------------------------------------------------------- order and transfers


def test_trap_a_write_waits_for_a_copy_that_reads() -> None:
    p = tensor()
    one, two = writes.compile(p).link(context()), writes.compile(p).link(context())
    gate = held(two.context.stream)
    two.context.copy_from(one.context, p)
    for _ in range(3):
        one()
    assert not one.context.stream.query()
    gate.set()
    assert two.context.numpy(p).tolist() == [1, 1] and p.numpy().tolist() == [7, 7]


@pytest.mark.parametrize(("a", "b"), [("numpy", "numpy:1"), ("numpy:1", "numpy:2"), ("cc", "cc")])
def test_copies_between_devices_and_streams(a: str, b: str) -> None:
    p = tensor()
    one, two = writes.compile(p).link(context(a)), writes.compile(p).link(context(b))
    one()
    one()
    two.context.copy_from(one.context, p)
    two()
    assert p.numpy().tolist() == [7, 7]
    one.context.to_host(p)
    one.context.stream.synchronize()
    assert p.value.host.array.tolist() == [5, 5]


def test_transfers_of_what_is_not_there_say_what_is() -> None:
    p, q = tensor(), tensor("q")
    there = writes.compile(p).link(context()).context
    for what in (there.numpy, there.to_host, lambda q: context().copy_from(there, q)):
        with pytest.raises(pe.CdError, match="`q` has no array on .*\n.*: p\n.*from_host"):
            what(q)
    there.from_host(q)
    assert there.numpy(q).tolist() == [1, 1]


# ---------------------------------------------------------------- merging


MODES = pytest.mark.parametrize("mode", ["copy", "streaming"])
PLACES = pytest.mark.parametrize("places", ["numpy numpy", "numpy numpy:1", "cc:1 cc:1"])


@MODES
@PLACES
@BOTH
def test_gradients_of_two_streams_are_merged(mode: str, places: str, threaded: bool) -> None:
    p = tensor(init=3.0)
    code = step.compile(p, X)
    one, two = (code.link(context(place, threaded)) for place in places.split())
    merger = merge.compile(p).link(one.context)
    for _ in range(3):
        one(X)
        two(10 * X)
        two.context.merge_into(merger, p.grad, mode)
        merger()
        assert p.grad.numpy().tolist() == [33, 66]


@MODES
@BOTH
def test_trap_a_stream_merges_with_itself(mode: str, threaded: bool) -> None:
    p = tensor()
    one = step.compile(p, X).link(context(threaded=threaded))
    merger = merge.compile(p).link(one.context)
    one(X)
    one.context.merge_into(merger, p.grad, mode)
    merger()
    assert p.grad.numpy().tolist() == [2, 4]


@MODES
def test_the_source_is_held_until_the_consumer_is_done(mode: str) -> None:
    p = tensor()
    code = step.compile(p, X)
    one, two = code.link(context()), code.link(context())
    merger = merge.compile(p).link(one.context)
    one(X)
    two(10 * X)
    gate = held(one.context.stream)
    two.context.merge_into(merger, p.grad, mode)
    two(100 * X)  # before the call: what was to be read in place is copied first
    merger()
    two(1000 * X)  # after it: the write waits
    gate.set()
    assert one.context.numpy(p.grad).tolist() == [11, 22]
    assert two.context.numpy(p.grad).tolist() == [1000, 2000]


def test_a_copy_serves_any_number_of_calls_and_streaming_one() -> None:
    p = tensor()
    one = step.compile(p, X).link(context())
    merger = merge.compile(p).link(one.context)
    one(X)
    one.context.merge_into(merger, p.grad)
    merger()
    merger()
    assert p.grad.numpy().tolist() == [3, 6]
    for source in (one.context, step.compile(p, X).link(context("numpy:1")).context):
        source.merge_into(merger, p.grad, "streaming")
        merger()
        with pytest.raises(pe.CdError, match=r"CD0844.*is empty"):
            merger()


def test_trap_what_is_merged_is_checked_when_filled_and_when_called() -> None:
    p, q = tensor(), tensor("q")
    mine, other = merge.compile(p).link(context()), merge.compile(q)
    with pytest.raises(pe.CdError, match=r"CD0844.*is empty"):
        mine()
    with pytest.raises(pe.CdError, match=r"CD0844.*merges `p.grad`, and is given `p`"):
        mine.context.merge_into(mine, p)
    with pytest.raises(pe.CdError, match=r"CD0844.*merges nothing"):
        mine.context.merge_into(writes.compile(p).link(mine.context), p.grad)
    theirs = other.link(mine.context)
    theirs.context.merge_into(theirs, q.grad)
    with pytest.raises(pe.CdError, match=r"CD0844.*merges `p.grad`.*holds `q.grad`"):
        mine()
    with pytest.raises(pe.CdError, match="CD0846"):
        mine.context.merge_into(mine, p.grad, mode="moving")


# ---------------------------------------------------------------- ends


def test_a_context_is_finalized_once_and_frees_only_its_own() -> None:
    p, q = tensor(), tensor("q")
    parent = writes.compile(p).link(context("numpy:4"))
    child = reads.compile(q, p).link(parent.context)
    used = child.context.device.used_memory
    child()
    with child.context:
        pass
    child.context.finalize()
    assert q.numpy().tolist() == [2, 2], "what was computed is on the host"
    parent()
    assert parent.context.numpy(p).tolist() == [3, 3]
    del child
    assert parent.context.device.used_memory == used - 16


def test_what_was_finalized_cannot_be_used_nor_what_builds_on_it() -> None:
    p = tensor()
    parent = context()
    routine = writes.compile(p).link(parent)
    grandchild = writes.compile(p).link(routine.context)
    other = writes.compile(p).link(context())
    parent.finalize()
    for what in (
        routine,
        grandchild,
        lambda: writes.compile(p).link(routine.context),
        lambda: other.context.copy_from(routine.context, p),
        lambda: routine.context.numpy(p),
        lambda: routine.context.from_host(p),
    ):
        with pytest.raises(pe.CdError, match="CD0845"):
            what()
    other()


def test_finalizing_raises_what_failed_and_frees_all_the_same() -> None:
    p = tensor()
    routine = writes.compile(p).link(context())
    routine.context.stream.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        routine.context.finalize()
    assert not routine.context.fields


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_trap_everything_is_collected_in_any_order(order: tuple[int, ...]) -> None:
    device, p = pe.device("numpy:9"), tensor()
    stream = device.stream()
    there = stream.context()
    routine = writes.compile(p).link(there)
    gate = held(stream)
    routine()
    things = [p, stream, there, routine]
    del p, stream, there, routine
    for at in order:
        things[at] = None
        gc.collect()
    gate.set()
    last = tensor()
    writes.compile(last).link(device.stream(threaded=False).context())()
    assert last.numpy().tolist() == [3, 3]


@pytest.mark.parametrize("name", [3, 1.5, ["cc"]])
def test_what_is_no_name_is_no_device(name: Any) -> None:
    with pytest.raises(TypeError, match="CD0852.*name of a device"):
        pe.device(name)


def test_a_routine_that_lives_on_keeps_no_array_of_a_finalized_context() -> None:
    p = pe.tensor("p", 100_000, dtype="float64")
    device = pe.device("cc")
    before = device.used_memory
    parent = device.stream(threaded=False).context()
    routine = pe.cd_from_source("def up(p):\n    p[i] += 1.0\n").compile(p).link(parent)
    child = pe.cd_from_source("def down(p):\n    p[i] -= 0.5\n").compile(p).link(routine.context)
    routine(), child()
    assert device.used_memory == before + p.numpy().nbytes
    parent.finalize()
    assert device.used_memory == before + p.numpy().nbytes, "it is the child's"
    routine.context.finalize()
    assert device.used_memory == before
    for ended in (routine, child):
        with pytest.raises(pe.CdError, match=f"CD0845.*`{ended.name}` was linked into a context"):
            ended()
    assert p.numpy()[0] == 0.5


def test_a_device_waits_for_streams_that_nobody_refers_to() -> None:
    seen: list[int] = []

    def work() -> None:
        time.sleep(0.1)
        seen.append(1)

    pe.device("cc").stream().submit(work)
    pe.device("cc").synchronize()
    assert seen == [1]
