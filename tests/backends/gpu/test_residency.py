"""Streams, contexts, merges and transfers on devices: all that the run-time promises elsewhere."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base.diagnostic import CdBackendError, CdError, CdMemoryError

from ..cuda.foreign import Capsules, Theirs
from ..cuda.late import LateDriver
from ..cuda.on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(LateDriver())) as made:
        yield made
        for device in [one for key, one in RUNTIME.devices.items() if key[0] == "cuda"]:
            device.synchronize()


def on(text: str) -> Any:
    return pe.cd_from_source(text, {"np": np})


def p_of(n: int = 3, **more: Any) -> Any:
    return pe.tensor("p", (n,), "float64", init=1.0, **more)


GRAD = "def grad_step(p, batch):\n    p.grad[i] = p.value[i] * batch[i]\n"
MERGE = "def merge_grad(p):\n    p.grad += p.grad.merge\n"
STEP = "def step(p):\n    p[i] = p[i] * 2 + 1\n"


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize("mode", ["copy", "streaming"])
@pytest.mark.parametrize("names", [("cuda:0", "cuda:0"), ("cuda:0", "cuda:1"), ("cuda:1", "cc")])
def test_gradients_are_merged(
    made: CompiledCuda, threaded: bool, mode: str, names: tuple[str, str]
) -> None:
    p = p_of()
    one, two = (pe.device(name).stream(threaded) for name in names)
    code = on(GRAD).compile(p, np.ones(3))
    r1, r2 = code.link(one.context()), code.link(two.context())
    merge = on(MERGE).compile(p).link(r1.context)
    for k in range(3):
        r1(np.array([1.0, 2.0, 3.0]) + k)
        r2(np.array([10.0, 20.0, 30.0]))
        r2.context.merge_into(merge, p.grad, mode)
        merge()
        assert np.array_equal(p.grad.numpy(), np.array([11.0, 22.0, 33.0]) + k)


@pytest.mark.parametrize("threaded", [True, False])
def test_arrays_stay_on_the_device_between_routines(made: CompiledCuda, threaded: bool) -> None:
    p = p_of(500)
    device = pe.device("cuda:1")
    routine = on(STEP).compile(p).link(device.stream(threaded).context())
    log = made.opened(1).context.driver.log  # type: ignore[attr-defined]
    for _ in range(4):
        routine()
    device.synchronize()
    assert {what[0] for what in log} == {1}, "all of it on that device"
    assert [what[1] for what in log].count("launch") == 4
    assert [what[2] for what in log if what[1] == "upload"] == [4000]
    assert not [what for what in log if what[1] == "download" and what[2] > 100]
    assert np.array_equal(p.numpy(), np.full(500, 31.0))
    assert device.used_memory == 4000


def test_the_host_writes_and_reads_in_order(made: CompiledCuda) -> None:
    p = p_of()
    context = pe.device("cuda").stream().context()
    routine = on(STEP).compile(p).link(context)
    routine()
    p[...] = np.array([5.0, 6.0, 7.0])
    routine()
    assert np.array_equal(p.numpy(), [11.0, 13.0, 15.0])
    p[1:] = p[1:] + 1
    with p.edit() as a:
        a[0] = 0.0
    routine()
    assert np.array_equal(routine.context.numpy(p), [1.0, 29.0, 33.0])
    assert np.array_equal(on("def f(p):\n    return p + 1\n").on("cc")(p), [2.0, 30.0, 34.0])


def test_copies_between_devices_and_the_host(made: CompiledCuda) -> None:
    p = p_of()
    contexts = [pe.device(name).stream().context() for name in ("cuda:0", "cuda:1", "cc:1")]
    routines = [on(STEP).compile(p).link(context) for context in contexts]
    for source, target in ((0, 1), (1, 2), (2, 0)):
        routines[source]()
        routines[target].context.copy_from(routines[source].context, p)
        assert np.array_equal(routines[target].context.numpy(p), routines[source].context.numpy(p))
    routines[1].context.to_host(p)
    p[...] = 9.0
    routines[1].context.from_host(p)
    assert np.array_equal(routines[1].context.numpy(p), np.full(3, 9.0))


def test_finalize_gives_memory_back_and_keeps_what_was_computed(made: CompiledCuda) -> None:
    p, device = p_of(1000), pe.device("cuda")
    with device.stream().context() as context:
        routine = on(STEP).compile(p).link(context)
        routine()
        assert made.opened(0).pool.used > 8000
        routine.context.finalize()
    del routine, context
    gc.collect()
    assert device.used_memory == made.opened(0).pool.used == 0
    assert np.array_equal(p.numpy(), np.full(1000, 3.0))


def test_what_a_call_gives_and_what_comes_back(made: CompiledCuda) -> None:
    p = p_of(4)
    text = "def f(p, x, y, rate):\n    p[i] -= rate * x[i]\n    y[i] = p[i]\n    return p.sum()\n"
    stream = pe.device("cuda").stream()
    routine = on(text).compile(p, np.ones(4), np.ones(4), 0.5).link(stream.context())
    y = np.zeros(4)
    assert routine(np.arange(4.0), y, 0.5) == 1.0
    assert np.array_equal(y, [1.0, 0.5, 0.0, -0.5])


@pytest.mark.parametrize("threaded", [True, False])
def test_what_a_call_gives_may_be_on_the_device(made: CompiledCuda, threaded: bool) -> None:
    p, opened = p_of(4), made.opened(0)
    text = "def f(p, x, y):\n    p[i] += x[i]\n    y[i] = p[i] * 2\n    return y, x + 1, p.sum()\n"
    stream = pe.device("cuda").stream(threaded)
    x, y = Theirs(opened, np.arange(4.0)), Theirs(opened, np.zeros((4, 3)), see=lambda a: a[:, 1])
    routine = on(text).compile(p, x, y).link(stream.context())
    routine(x, y)
    log = opened.context.driver.log  # type: ignore[attr-defined]
    log.clear()
    same, more, total = routine(x, y)
    assert not [what for what in log if what[1] in ("upload", "download") and what[2] > 8]
    assert same is y and total == 16.0
    assert np.array_equal(more.numpy(), np.arange(4.0) + 1)
    assert np.array_equal(y.get()[:, 1], 2 * (1 + 2 * np.arange(4.0)))
    assert not y.get()[:, ::2].any()
    routine(more, y)
    assert np.array_equal(p.numpy(), 2 + 3 * np.arange(4.0))


def test_arrays_of_a_device_are_given_as_the_routine_takes_them(made: CompiledCuda) -> None:
    p, opened = p_of(4), made.opened(0)
    x = Theirs(opened, np.arange(8.0), see=lambda a: a[::2])
    code = on("def f(p, x):\n    p[i] += x[i]\n").compile(p, x)
    routine = code.link(pe.device("cuda:0").stream().context())
    routine.bindings["x"] = x
    routine()
    assert np.array_equal(p.numpy(), 1 + 2 * np.arange(4.0))
    rows: list[tuple[Any, Any, str]] = [
        (routine, Theirs(opened, np.ones(4)), "CD0702"),
        (routine, Theirs(opened, np.ones(4, "f4")), "CD0702"),
        (routine, Capsules(made.opened(1), np.ones(8), see=lambda a: a[::2]), "CD0886"),
        (code.link(pe.device("cc").stream().context()), x, "CD0886"),
    ]
    for one, given, error in rows:
        with pytest.raises(CdError) as caught:
            one(given)
            one.context.stream.synchronize()
        assert caught.value.code == error, str(caught.value)
    with pytest.raises(CdError, match="CD0708"):
        y = Theirs(opened, np.arange(8.0), see=lambda a: a[::2])
        both = on("def g(p, x, y):\n    y[i] = x[i] + p[i]\n").compile(p, x, y)
        y.address = x.address + 16
        both.link(pe.device("cuda:0").stream().context())(x, y)


def test_a_failure_names_the_routine_its_stream_and_the_line(made: CompiledCuda) -> None:
    p, k = p_of(4), np.array([0, 1, 9, 2])
    stream = pe.device("cuda:1").stream()
    routine = on("def pick(p, k):\n    p.grad[i] = p[k[i]]\n").compile(p, k).link(stream.context())
    routine(k)
    with pytest.raises(CdError) as caught:
        stream.synchronize()
    told = str(caught.value)
    assert "index 9" in told and "p.grad[i] = p[k[i]]" in told
    assert "in the routine `pick` on cuda:1/s0" in told
    routine(np.array([3, 2, 1, 0]))
    assert np.array_equal(p.grad.numpy(), np.ones(4))


def test_a_batch_and_a_device_that_is_not_there(made: CompiledCuda) -> None:
    p = p_of()
    one, two = pe.Batch(on(STEP).compile(p), on(STEP).compile(p, name="again")).link(
        pe.device("cuda:1").stream().context()
    )
    one(), two()
    assert np.array_equal(p.numpy(), np.full(3, 7.0))
    with pytest.raises(CdBackendError) as caught:
        pe.device("cuda:2")
    assert caught.value.code == "CD0883"


def test_memory_that_is_kept_can_be_given_back(made: CompiledCuda) -> None:
    device = pe.device("cuda")
    context: Any = made.opened(0).context
    p = p_of(1000)
    routine = on(STEP).compile(p).link(device.stream().context())
    routine()
    assert np.array_equal(p.numpy(), np.full(1000, 3.0))
    assert (device.used_memory, pe.device("cc").kept_memory, pe.device("cc").trim()) == (8000, 0, 0)
    routine.context.finalize()
    del routine
    gc.collect()
    kept = device.kept_memory
    assert kept >= 8000 and device.trim() == kept
    assert device.kept_memory == context.used == 0
    on(STEP).compile(p).link(device.stream().context())()
    assert np.array_equal(p.numpy(), np.full(1000, 7.0))


def test_a_stream_that_nobody_has_any_more_is_the_next_ones(made: CompiledCuda) -> None:
    """Once its work is done: not before."""
    opened, device, p = made.opened(0), pe.device("cuda"), p_of()
    step = on(STEP).compile(p)
    for _ in range(5):
        routine = step.link(device.stream(threaded=False).context())
        for _ in range(2):
            routine()
        p.numpy()
        del routine
        gc.collect()
    assert np.array_equal(p.numpy(), np.full(3, 2.0**11 - 1))
    assert len(opened._events) - (opened._plain is not None) <= 2
    lanes = [made.memory(0).lane() for _ in range(2)]
    made.memory(0).spare(lanes[0])
    opened.context.clear(opened.pool.take(8, "x", "f", lanes[0]), 8, lanes[0])
    assert opened.stream() not in lanes, "it is at work"
    opened.wait(lanes[0])
    assert opened.stream() is lanes[0]


def test_properties(made: CompiledCuda) -> None:
    device = pe.device("cuda:1")
    assert device.properties["model"] == "processor 1"
    assert device.suggested_streams == 2
    assert not device.uses_host_memory


def test_out_of_memory_names_fields(made: CompiledCuda) -> None:
    driver: Any = made.driver()
    driver.memory = 20_000
    p, q = p_of(1000), pe.tensor("q", (2000,), "float64")
    context = pe.device("cuda").stream().context()
    kept = on(STEP).compile(p).link(context)
    with pytest.raises(CdMemoryError) as caught:
        on("def g(q):\n    q[i] += 1\n").compile(q).link(context)
    assert "`q` of `cuda:0` takes 16,000 bytes" in str(caught.value)
    assert "`p` of `cuda:0` holds 8,192 bytes" in str(caught.value)
    kept()
    assert np.array_equal(p.numpy(), np.full(1000, 3.0))


def test_training_on_two_streams(made: CompiledCuda) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(64, 3))
    targets = inputs @ np.array([1.0, 2.0, 3.0])
    found = []
    for name in ("cuda", "cc"):
        w = pe.tensor("w", 3, dtype="float64")
        streams = [pe.device(name).stream() for _ in range(2)]
        gradient = on("def gradient(w, inputs, targets):\n"
                      "    w.grad[...] = 2.0 * (inputs @ w - targets) @ inputs\n")  # fmt: skip
        descend = on("def descend(w, rate):\n    w[i] -= rate * w.grad[i]\n")
        train = pe.DataParallel(gradient, descend, streams, (w.grad,), (w, 0.2 / len(inputs)))
        for _ in range(20):
            train(w, inputs, targets)
        train.synchronize()
        found.append(w.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


@pytest.mark.parametrize("threaded", [True, False])
def test_two_devices_wait_for_each_other(made: CompiledCuda, threaded: bool) -> None:
    """What is read there was written here, and is not written again before it was read: a driver
    that does all as late as it may would copy something else."""
    p, driver = p_of(400), cast(Any, made.driver())
    log = driver.log
    streams = [pe.device(name).stream(threaded) for name in ("cuda:0", "cuda:1")]
    here, there = (on(STEP).compile(p).link(stream.context()) for stream in streams)
    merge = on("def m(p):\n    p[...] = p + p.merge\n").compile(p).link(there.context)
    value = [1.0, 1.0]
    for mode in ("copy", "streaming"):
        here(), here()
        there.context.copy_from(here.context, p)
        here()
        there(), there()
        here.context.merge_into(merge, p, mode)
        here()
        merge()
        value[1] = ((value[0] * 4 + 3) * 2 + 1) * 2 + 1 + value[0] * 8 + 7
        value[0] = value[0] * 16 + 15
        found = [one.context.numpy(p) for one in (here, there)]
        assert [set(one.tolist()) for one in found] == [{number} for number in value]
    copied = [at for at, what in enumerate(log) if what[1] == "copy_from"]
    assert [log[at][:4] for at in copied] == 4 * [(1, "copy_from", 0, 3200)]
    assert {log[at][4] for at in copied} == {streams[1].lane}, "in the order of the target's stream"


def test_gradients_of_two_devices_are_gathered_and_the_sum_is_sent_back(
    made: CompiledCuda,
) -> None:
    rng, found = np.random.default_rng(1), []
    inputs = rng.normal(size=(30, 3))
    for names in (("cuda:0", "cuda:1", "cuda:1"), ("cc", "cc", "cc")):
        w = pe.tensor("w", 3, dtype="float64")
        streams = [pe.device(name).stream() for name in names]
        slope = on("def slope(w, x):\n    w.grad[...] = (x @ w - 1.0) @ x\n")
        descend = on("def descend(w, rate):\n    w[i] -= rate * w.grad[i]\n")
        train = pe.DataParallel(slope, descend, streams, (w.grad,), (w, 0.02))
        for _ in range(4):
            train(w, inputs)
        train.synchronize()
        found.append(w.numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)
