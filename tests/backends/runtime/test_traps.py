"""What the first system of this kind fell into, beside the tests called `trap` in other files.

arrays of a batch, and its names             test_batch
asked to be shared, written first            here
no order of writes after reads               test_order, test_device
a copy after streaming frees its source      test_transfer
merging with itself, or what is shared       test_device, here
a mismatch that is found late                test_device, here
an old host array over a computed one        test_field
uploads to one of two streams only           test_field
observing changes what is computed           test_field
rounds of a batch that are not full          tests/dsl/test_parallel
indices that nobody checks                   test_bindings
stale data of routines in a wrong order      here
a finalizer that uses what goes with it      here
"""

from __future__ import annotations

import gc
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.queue import Queue
from plusequals.idx import i
from tests.backends.runtime.test_device import context, merge, reads, step, tensor, writes
from tests.backends.runtime.test_queue import BOTH

X = np.array([1.0, 2.0])


def asked(memory: str) -> pe.Tensor:
    return pe.tensor("p", 2, dtype="float64", init=1.0, memory=memory)


# ---------------------------------------------------------------- sharing


@pytest.mark.parametrize("device", ["numpy", "numpy:1"])
def test_trap_what_is_asked_to_be_shared_is_so_where_it_is_written_first(device: str) -> None:
    p, q = asked("on-device, shared-across-streams"), tensor("q")
    owner = writes.compile(p).link(context(device))
    reader = reads.compile(q, p).link(context(device))
    assert owner.context.find(p.value) is reader.context.find(p.value)
    owner()
    reader()
    assert q.numpy().tolist() == [4, 4]
    with pytest.raises(ValueError, match="CD0843"):
        writes.compile(p).link(context(device))


@pytest.mark.parametrize("device", ["numpy", "numpy:1"])
def test_trap_what_is_asked_for_every_stream_is_so_where_it_is_only_read(device: str) -> None:
    p, q = asked("on-device, per-stream"), tensor("q")
    one = reads.compile(q, p).link(context(device)).context.find(p.value)
    two = reads.compile(q, p).link(context(device)).context.find(p.value)
    writes.compile(p).link(context(device))
    writes.compile(p).link(context(device))
    assert one is not two and p.value.host not in (one, two)


# ---------------------------------------------------------------- merging


@pytest.mark.parametrize("mode", ["copy", "streaming"])
@pytest.mark.parametrize("device", ["numpy", "numpy:1"])
@BOTH
def test_trap_what_streams_share_is_merged_like_anything_else(
    mode: str, device: str, threaded: bool
) -> None:
    p, q = tensor(init=3.0), tensor("q")
    first, second = (reads.compile(q, p).link(context(device, threaded)) for _ in range(2))
    shared = first.context.find(p.value)
    assert shared is second.context.find(p.value)
    text = "def twice(q, p):\n    q[i] = p.merge[i] * 2.0\n"
    routine = pe.cd_from_source(text).compile(q, p).link(second.context)
    first.context.merge_into(routine, p, mode)
    routine()
    assert q.numpy().tolist() == [6, 6]


@BOTH
def test_trap_a_known_source_is_checked_when_linked_and_fills_every_call(threaded: bool) -> None:
    p, q = tensor(), tensor("q")
    one, two = (step.compile(p, X).link(context(threaded=threaded)) for _ in range(2))
    with pytest.raises(ValueError, match=r"CD0842.*`q\.grad` has no array"):
        merge.compile(q).link(one.context, merge_from=two.context)
    with pytest.raises(ValueError, match=r"CD0844.*`writes` merges nothing"):
        writes.compile(p).link(one.context, merge_from=two.context)
    routine: Any = two
    with pytest.raises(TypeError, match="CD0847"):
        merge.compile(p).link(one.context, merge_from=routine)
    merger = merge.compile(p).link(one.context, merge_from=two.context)
    for n in range(1, 4):
        one(X)
        two(n * X)
        merger()
        two(100 * X)
        assert one.context.numpy(p.grad).tolist() == [1 + n, 2 + 2 * n]
    two.context.finalize()
    with pytest.raises(pe.CdError, match="CD0845"):
        merger()


# ---------------------------------------------------------------- order of routines


@cd
def descend(p):
    p[i] -= p.grad[i]


@BOTH
def test_trap_routines_in_a_wrong_order_say_which_comes_first(threaded: bool) -> None:
    p = tensor()
    first = step.compile(p, X).link(context(threaded=threaded))
    update = descend.compile(p).link(first.context)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"(?s)CD0850.*`descend` reads `p\.grad`.*`step`"):
            update()
    assert p.numpy().tolist() == [1, 1] and p.value.clock == 0
    first(X)
    update()
    update()
    assert p.numpy().tolist() == [-1, -3]


def test_a_value_by_the_host_will_do_and_zeros_where_nobody_else_writes() -> None:
    p, q = tensor(), tensor("q")
    first = step.compile(p, X).link(context())
    update = descend.compile(p).link(first.context)
    p.grad[...] = 0.5
    update()
    assert p.numpy().tolist() == [0.5, 0.5]
    descend.compile(q).link(context())()
    assert q.numpy().tolist() == [1, 1]


def test_in_a_batch_it_is_the_order_of_the_batch() -> None:
    p, q = tensor(), tensor("q")
    _, update = pe.Batch(step.compile(p, X), descend.compile(p)).link(context())
    with pytest.raises(ValueError, match="CD0850"):
        update()
    update, _ = pe.Batch(descend.compile(q), step.compile(q, X)).link(context())
    update()
    assert q.numpy().tolist() == [1, 1]


@cd
def keeps(y, t, x):
    t[i] = x[i] * 2.0
    y[i] = t[1 - i]


@cd
def needs(y, t):
    y[i] += t[i]


@pytest.mark.parametrize("mode", ["local", "virtual"])
def test_trap_what_an_earlier_routine_let_go_is_not_read_as_zeros(mode: str) -> None:
    y, t = tensor("y"), pe.tensor("t", 2, dtype="float64", memory=mode)
    first = keeps.compile(y, t, tensor("x")).link(context())
    with pytest.raises(TypeError, match=f"(?s)CD0851.*`needs` reads `t`, which is {mode}.*`keeps`"):
        needs.compile(y, t).link(first.context)
    with pytest.raises(TypeError, match="CD0851"):
        pe.Batch(needs.compile(y, t)).link(first.context)
    if mode == "local":  # a virtual tensor that nothing computes cannot be compiled at all
        with pytest.raises(TypeError, match="CD0851"):
            pe.Batch(keeps.compile(y, t, tensor("x")), needs.compile(y, t)).link(context())
        needs.compile(y, t).link(context())
    keeps.compile(y, t, tensor("x")).link(first.context)


# ---------------------------------------------------------------- versions and failures


def test_trap_a_copied_version_outlives_the_array_that_was_finalized() -> None:
    p = tensor()
    one, two = (writes.compile(p).link(context()) for _ in range(2))
    one()
    two.context.copy_from(one.context, p)
    one.context.finalize()
    del two
    gc.collect()
    assert p.numpy().tolist() == [3, 3]


def test_trap_a_copied_version_outlives_the_array_that_went_back() -> None:
    p = tensor()
    one, two = (writes.compile(p).link(context()) for _ in range(2))
    one()
    two.context.copy_from(one.context, p)
    one.context.from_host(p)
    del two
    gc.collect()
    assert p.numpy().tolist() == [3, 3]


def test_who_needs_results_is_told_although_another_thread_was() -> None:
    p = tensor()
    total = pe.cd_from_source("def total(p):\n    return np.sum(p)\n", {"np": np})
    put = pe.cd_from_source("def put(p, n):\n    p[n] = 1.0\n")
    routine = put.compile(p, 0).link(context())
    sums = total.compile(p).link(routine.context)
    stream, gate, told = routine.context.stream, threading.Event(), []
    stream.submit(gate.wait)
    while stream.worker.tasks:  # until it is being done
        time.sleep(0.001)
    routine(7)
    thread = threading.Thread(target=lambda: told.append(pytest.raises(IndexError, sums)))
    thread.start()
    while len(stream.worker.tasks) < 2:
        time.sleep(0.001)
    gate.set()
    with suppress(IndexError):  # raised here, or there
        stream.synchronize()
    thread.join()
    assert len(told) == 1


def test_finalizers_of_what_goes_with_a_queue_may_use_it() -> None:
    seen: list[int] = []

    class Holder:
        """One of a circle that holds a queue, whose thread is idle."""

        def __init__(self) -> None:
            self.queue, self.itself = Queue("q", True), self
            self.queue.submit(partial(seen.append, 0))
            self.queue.synchronize()

        def __del__(self) -> None:
            for n in (1, 2):
                event = self.queue.submit(partial(seen.append, n))
                ended = time.monotonic() + 20
                while not event.done and time.monotonic() < ended:
                    time.sleep(0.001)

    worker = Holder().queue.worker
    gc.collect()
    assert seen == [0, 1, 2]
    thread = worker.thread
    assert thread is not None
    thread.join(20)
    assert not thread.is_alive(), "it ends with its queue"


@pytest.mark.parametrize("where", ["cc:0", "cc:1"])
def test_finalizers_of_what_goes_with_a_tensor_read_its_newest_version(where: str) -> None:
    said: list[Any] = []

    class Holder:
        """One of a circle that holds a tensor, and a routine that has written it."""

        def __init__(self) -> None:
            self.p, self.itself = pe.tensor("p", (3,), dtype="float64", init=1.0), self
            code = pe.cd_from_source("def step(p):\n    p[i] = p[i] * 2 + 1\n").compile(self.p)
            self.step = code.link(pe.device(where).stream().context())
            self.step(), self.step()

        def __del__(self) -> None:
            said.append(self.p.numpy().tolist())
            self.step()
            said.append(self.p.numpy().tolist())
            self.step.context.finalize()
            said.append(self.p.numpy().tolist())

    Holder()
    gc.collect()
    assert said == [[7.0] * 3, [15.0] * 3, [15.0] * 3]
