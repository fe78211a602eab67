"""Streams, events, merges, linked routines, traces and prints: what one device does."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME
from tests.dsl.tracing.functions import CALLS

from .said import Array, on, refused, same

GRAD = "def grad_step(p, batch):\n    p.grad[i] = p.value[i] * batch[i]\n"
MERGE = "def merge_grad(p):\n    p.grad += p.grad.merge\n"
STEP = "def step(p):\n    p[i] = p[i] * 2 + 1\n"
SLOPE = """
def gradient(w, inputs, targets):
    w.grad[...] = 2.0 * (inputs @ w - targets) @ inputs
"""
PICK = "def pick(p, k):\n    p.grad[i] = p[k[i]]\n"
TURNED = """
def turned(t, total, x):
    x[i, j] = -x[i, j]
    t[:] = x.sum(axis=0) - t
    total[0] = x.sum() - total[0]
"""
LARGE = 1_000_000
"""Elements of a large array."""
LENGTHS = (9_000, 1_000_003, 20_000_001)
"""Those of arrays of the host: small, large, more than is staged."""
THREADS, TIMES = 8, 60
CALLS_QUEUED = 3000
TURNS = 400
"""Runs whose sums are added up."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def made(text: str) -> Any:
    """Return a function of whichever backend it is linked on."""
    return pe.cd_from_source(text, {"np": np})


def tensor(n: int = 3, init: float = 1.0) -> Any:
    return pe.tensor("p", (n,), "float64", init=init)


# --------------------------------------------------------------------------- routines


def merges(threaded: bool, mode: str, other: str) -> None:
    p = tensor()
    one, two = pe.device("cuda:0").stream(threaded), pe.device(other).stream(threaded)
    code = made(GRAD).compile(p, np.ones(3))
    r1, r2 = code.link(one.context()), code.link(two.context())
    merge = made(MERGE).compile(p).link(r1.context)
    for k in range(5):
        r1(np.array([1.0, 2.0, 3.0]) + k)
        r2(np.array([10.0, 20.0, 30.0]))
        r2.context.merge_into(merge, p.grad, mode)
        merge()
        same(p.grad.numpy(), np.array([11.0, 22.0, 33.0]) + k)


def arrays_stay_on_the_device() -> None:
    device, n = pe.device("cuda:0"), LARGE
    gc.collect()
    before, p = device.used_memory, tensor(n)
    routine = made(STEP).compile(p).link(device.stream().context())
    for _ in range(4):
        routine()
    device.synchronize()
    assert device.used_memory - before == 8 * n, f"{device.used_memory - before} bytes are used"
    same(p.numpy(), np.full(n, 31.0))
    routine.context.finalize()
    del routine
    gc.collect()
    assert device.used_memory == before, "finalize gives it back"
    same(p.numpy(), np.full(n, 31.0), "what was computed stays")


def the_last_block_sees_what_all_others_wrote() -> None:
    """On two streams at once, whose blocks count themselves apart. Numbers change their sign from
    run to run, so that a part of the run before, or of the other stream, would be missed."""
    rows, columns = max(LARGE // 6000, 3), min(LARGE, 8192)  # so that columns are cut into parts
    turned = made(TURNED)
    held, random = [], np.random.default_rng(3)
    for _ in range(2):
        x = pe.tensor("x", (rows, columns), "float64")
        x[...] = random.integers(-50, 51, (rows, columns))
        t, total = (pe.tensor(name, size, "float64") for name, size in (("t", columns), ("a", 1)))
        context = pe.device("cuda:0").stream().context()
        held.append((turned.compile(t, total, x).link(context), x, t, total))
    want = [(-1) ** TURNS * TURNS * x.numpy().sum(axis=0) for _, x, _, _ in held]
    for _ in range(TURNS):
        for routine, *_ in held:
            routine()
    for (_, _, t, total), one in zip(held, want, strict=True):
        same(t.numpy(), one, "a sum of columns took a part too early")
        same(total.numpy(), one.sum(keepdims=True), "a sum over all took a part too early")


def many_calls_are_queued(threaded: bool) -> None:
    n = LARGE // 10
    p = tensor(n, 0.0)
    routine = made("def count(p):\n    p[i] = p[i] + 1\n").compile(p).link(
        pe.device("cuda:0").stream(threaded).context()
    )  # fmt: skip
    for _ in range(CALLS_QUEUED):
        routine()
    same(p.numpy(), np.full(n, float(CALLS_QUEUED)))


def the_host_writes_and_reads_in_order() -> None:
    p = tensor()
    routine = made(STEP).compile(p).link(pe.device("cuda").stream().context())
    routine()
    p[...] = np.array([5.0, 6.0, 7.0])
    routine()
    same(p.numpy(), np.array([11.0, 13.0, 15.0]))
    with p.edit() as a:
        a[0] = 0.0
    routine()
    same(routine.context.numpy(p), np.array([1.0, 27.0, 31.0]))
    same(made("def f(p):\n    return p + 1\n").on("cc")(p), np.array([2.0, 28.0, 32.0]))


def copies_between_contexts_and_the_host() -> None:
    p = tensor()
    contexts = [pe.device(name).stream().context() for name in ("cuda:0", "cuda:0", "cc:1")]
    routines = [made(STEP).compile(p).link(context) for context in contexts]
    for source, target in ((0, 1), (1, 2), (2, 0)):
        routines[source]()
        routines[target].context.copy_from(routines[source].context, p)
        same(routines[target].context.numpy(p), routines[source].context.numpy(p))
    routines[1].context.to_host(p)
    p[...] = 9.0
    routines[1].context.from_host(p)
    same(routines[1].context.numpy(p), np.full(3, 9.0))


def a_copy_as_between_devices() -> None:
    """By the verb that takes two contexts, here the same one: it waits for what is queued before
    it on its stream."""
    here, data = RUNTIME.backend("cuda").opened(0), np.arange(float(LARGE))
    stream = here.stream()
    places = [here.pool.take(data.nbytes, "a copy", "check", stream) for _ in range(2)]
    here.upload(places[0], data, stream)
    here.context.clear(places[1], data.nbytes, stream)
    here.context.copy_from(here.context, places[1], places[0], data.nbytes, stream)
    found = np.zeros(LARGE)
    here.download(found, places[1], stream)
    here.wait(stream)
    here.pool.give_back(places, stream)
    same(found, data)


def events_and_streams() -> None:
    p, q = tensor(LARGE), pe.tensor("q", (LARGE,), "float64", init=0.0)
    one, two = (pe.device("cuda:0").stream() for _ in range(2))
    work = made("def work(p):\n    for t in range(50):\n        p[i] = p[i] * 0.5 + 1\n")
    routine = work.compile(p).link(one.context())
    after = made("def after(q, p):\n    q[i] = p[i] + 1\n").compile(q, p)
    behind = after.link(two.context())
    routine()
    event = one.record()
    two.wait(event)
    behind()
    two.synchronize()
    assert event.query(), "what came before is done"
    event.wait()
    one.synchronize()
    assert one.query() and two.query()
    want = 2 - 0.5**50
    assert np.allclose(p.numpy(), want)


def a_failure_names_the_routine_its_stream_and_the_line() -> None:
    p, k = tensor(4), np.array([0, 1, 9, 2])
    stream = pe.device("cuda:0").stream()
    routine = made(PICK).compile(p, k).link(stream.context())
    routine(k)
    told = refused("CD0601", stream.synchronize)
    assert "index 9" in told and "p.grad[i] = p[k[i]]" in told, told
    assert "in the routine `pick` on cuda:0/s" in told, told
    routine(np.array([3, 2, 1, 0]))
    same(p.grad.numpy(), np.ones(4))


def two_streams_train_as_one_processor() -> None:
    rng, found = np.random.default_rng(0), []
    inputs = rng.normal(size=(64, 3))
    targets = inputs @ np.array([1.0, 2.0, 3.0])
    for name in ("cuda", "cc"):
        w = pe.tensor("w", 3, dtype="float64")
        streams = [pe.device(name).stream() for _ in range(2)]
        descend = made("def descend(w, rate):\n    w[i] -= rate * w.grad[i]\n")
        train = pe.DataParallel(
            made(SLOPE), descend, streams, (w.grad,), (w, 0.2 / len(inputs))
        )  # fmt: skip
        for _ in range(50):
            train(w, inputs, targets)
        train.synchronize()
        found.append(w.numpy())
    assert np.allclose(*found, rtol=1e-10), found


def threads_call_at_once() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        f = on(f"def f{number}(y, x):\n    y[i] += x[i] * {number}\n    return y.sum()\n")
        for n in range(1, TIMES):
            y = np.ones(n)
            total = f(y, np.arange(float(n)))
            if not np.array_equal(y, 1 + number * np.arange(n)) or total != y.sum():
                wrong.append(f"thread {number}, {n}: {y}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def a_device_that_is_not_there() -> None:
    count = RUNTIME.backend("cuda").driver().count()
    told = refused("CD0883", pe.device, f"cuda:{count}")
    assert f"there are {count}" in told, told


def a_forked_process_is_refused() -> None:
    on("def f(x):\n    x[i] += 1\n")(np.zeros(3))
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        said = "nothing"
        with contextlib.suppress(BaseException):
            said = refused("CD0882", on("def g(x):\n    x[i] += 1\n"), np.zeros(3))
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert "a forked process cannot use the devices of its parent" in said, said


# --------------------------------------------------------------------------- host arrays


def large_arrays_of_the_host() -> None:
    f = on("def f(y, x):\n    y[i] = x[i] * 2 + 1\n    return y.sum(), x + y\n")
    for n in LENGTHS:
        y, x = np.zeros((n, 2))[:, 1], np.arange(float(n))[::-1]
        total, both = f(y, x)
        assert np.array_equal(y, 2 * x + 1) and np.array_equal(both, 3 * x + 1), n
        assert np.isclose(total, y.sum(), rtol=1e-12), n


def a_failed_check_leaves_arrays_of_the_host() -> None:
    f = on("def f(y, x, k):\n    y[i] = 7\n    y[i] = x[k[i]]\n")
    y, x, k = np.zeros(5), np.arange(5.0), np.array([0, 1, 9, 2, 8])
    told = refused("CD0601", f, y, x, k)
    assert "index 9" in told and "y[i] = x[k[i]]" in told, told
    same(y, np.zeros(5), "arrays of the host stay as they were")
    f(y, x, k % 5)
    same(y, x[k % 5], "the device goes on")


# --------------------------------------------------------------------------- what is told


def prints_in_order() -> None:
    g = on("def f(x):\n    n = 0\n    while x.sum() > 1.0:\n        x[i] = x[i] / 2\n"
           "        n += 1\n        print('n', n, x[0])\n    return n\n")  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()) as held:
        assert g(np.arange(3.0) + 1) == 3
    assert held.getvalue() == "n 1 0.5\nn 2 0.25\nn 3 0.125\n", held.getvalue()


def traces_are_those_of_a_processor(name: str) -> None:
    function, make = CALLS[name]
    found = []
    for where in ("cc", "cuda"):
        with pe.override(profile="strict"), pe.trace() as trace:
            function.on(where)(*make())
        found.append([*map(str, trace)])
    assert found[0], "nothing was recorded"
    alike(*found)


def logs_are_those_of_a_processor(name: str) -> None:
    """The log that the device prints is that of compiled C."""
    function, make = CALLS[name]
    found = []
    asked: dict[str, Any] = {"debug_log_from_routines": True, "debug_log_by_printf": True}
    for where in ("cc", "cuda"):
        with tempfile.TemporaryDirectory() as folder:
            with pe.override(**asked, profile="strict", dump_dir=folder):
                function.on(where)(*make())
            (log,) = Path(folder).glob("*.log")
            lines = log.read_text("utf-8").splitlines()
            found.append([line.split(" = 0x")[0] for line in lines])
    alike(*found)


def alike(want: list[str], got: list[str]) -> None:
    """Raise AssertionError where lines differ in more than the last digits of their numbers: both
    have an `exp` of their own."""
    for one, other in zip(want, got, strict=True):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other), f"{other}\ninstead of\n{one}"
        numbers = [[*map(float, NUMBER.findall(line))] for line in (one, other)]
        assert np.allclose(*numbers, rtol=1e-6), f"{other}\ninstead of\n{one}"


def what_is_explained() -> None:
    f = on("def f(c, a, b):\n    c[i, j] = sum[k](a[i, k] * b[k, j])\n    return c.sum()\n")
    held: list[Array] = [np.ones((70, 70), "f2") for _ in range(3)]
    shown = f.explain(*held)
    assert shown.kernels, "nothing is known of kernels"
    for row in shown.kernels:
        assert row.registers > 0 and row.span.line in (2, 3), row
    assert "multiplied<" in shown.code and shown.kernel_table in str(shown)


CHECKS: Mapping[str, Callable[[], None]] = {
    **{
        f"merges, {mode}, with {other}, {kind}": partial(merges, kind == "threads", mode, other)
        for mode in ("copy", "streaming") for other in ("cuda:0", "cc")
        for kind in ("threads", "no threads")
    },
    "arrays stay on the device": arrays_stay_on_the_device,
    "the last block sees what all others wrote": the_last_block_sees_what_all_others_wrote,
    "many calls are queued, threads": partial(many_calls_are_queued, True),
    "many calls are queued, no threads": partial(many_calls_are_queued, False),
    "the host writes and reads in order": the_host_writes_and_reads_in_order,
    "copies between contexts and the host": copies_between_contexts_and_the_host,
    "a copy as between devices": a_copy_as_between_devices,
    "events and streams": events_and_streams,
    "a failure names the routine, its stream and the line":
        a_failure_names_the_routine_its_stream_and_the_line,
    "two streams train as one processor": two_streams_train_as_one_processor,
    "threads call at once": threads_call_at_once,
    "a device that is not there": a_device_that_is_not_there,
    "a forked process is refused": a_forked_process_is_refused,
    "large arrays of the host": large_arrays_of_the_host,
    "a failed check leaves arrays of the host": a_failed_check_leaves_arrays_of_the_host,
    "prints in order": prints_in_order,
    **{f"traces, {name}": partial(traces_are_those_of_a_processor, name) for name in CALLS},
    **{f"logs, {name}": partial(logs_are_those_of_a_processor, name) for name in CALLS},
    "what is explained": what_is_explained,
}  # fmt: skip
