"""Data parallel steps: equal to one stream up to rounding, and bit-equal from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.device import device
from plusequals.base.diagnostic import CdError
from plusequals.dsl.api.data_parallel import DataParallel
from plusequals.idx import k, n

RNG = np.random.default_rng(0)
X = RNG.normal(size=(23, 4))
Y = X @ np.arange(4.0) + 1


def trained(devices: Sequence[str], backend: str = "cc", steps: int = 5) -> tuple[Any, ...]:
    """Return the weights, the gradient and the loss after some steps, a stream for each device."""
    w = pe.tensor("w", (4,), dtype="float64", init=0.5)
    loss = pe.tensor("loss", (), dtype="float64")

    @cd
    def step(x, y, scale):
        r[n] = sum(x[n, k] * w.value[k]) - y[n]
        w.grad[k] = sum[n](2 * scale * r[n] * x[n, k])
        loss.value[...] = scale * np.sum(r * r)

    @cd
    def update(rate):
        w[k] -= rate * w.grad[k]

    streams = [device(name.replace("cc", backend)).stream() for name in devices]
    train = DataParallel(step, update, streams, (w.grad, loss), (0.1,))
    for _ in range(steps):
        train(X, Y, 1 / len(X))
    train.synchronize()
    return w.numpy(), w.grad.numpy(), loss.numpy()


def by_hand(steps: int = 5) -> tuple[Any, ...]:
    w = np.full(4, 0.5)
    for _ in range(steps):
        r = X @ w - Y
        grad, loss = 2 * r @ X / len(X), np.sum(r * r) / len(X)
        w = w - 0.1 * grad
    return w, grad, loss


@pytest.mark.parametrize(
    "devices",
    [["cc"], ["cc"] * 2, ["cc"] * 3, ["cc"] * 4, ["cc", "cc:1"], ["cc:1", "cc:2", "cc"]],
    ids=lambda names: "+".join(names),
)
def test_a_step_is_that_of_one_stream(devices: list[str]) -> None:
    for ours, expected in zip(trained(devices), by_hand(), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_the_interpreter_trains_as_well() -> None:
    for ours, expected in zip(trained(["cc"] * 2, "numpy", 2), by_hand(2), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_runs_give_the_same_bits_wherever_the_streams_are() -> None:
    first = trained(["cc"] * 3)
    for devices in (["cc"] * 3, ["cc", "cc:1", "cc:2"]):
        again = trained(devices)
        assert [a.tobytes() for a in first] == [b.tobytes() for b in again]


def adding(
    count: int = 4, threaded: bool = True, keeps: bool = False
) -> tuple[pe.Tensor, DataParallel]:
    """Return a number, and what makes it the sum of an array, or adds that, on several streams."""
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x):
        w.grad[...] = np.sum(x)

    @cd
    def update():
        w.value = w.value * keeps + w.grad

    streams = [device("cc").stream(threaded=threaded) for _ in range(count)]
    return w, DataParallel(step, update, streams, (w.grad,))


def test_more_streams_than_rows_leave_some_idle() -> None:
    w, train = adding()
    train(np.array([3.0, 4.0]))
    assert w.numpy() == 7
    train(np.array([3.0, 4.0, 5.0, 6.0, 7.0]))
    assert w.numpy() == 25


def test_trap_what_idle_streams_computed_before_is_not_added_again() -> None:
    w, train = adding()
    train(np.array([3.0, 4.0, 5.0, 6.0, 7.0]))
    assert w.numpy() == 25
    train(np.array([3.0, 4.0]))
    assert w.numpy() == 7


@pytest.mark.parametrize("batch", [(1.0,), (np.ones(3), np.ones(4))], ids=["none", "two sizes"])
def test_a_batch_needs_one_number_of_rows(batch: tuple[Any, ...]) -> None:
    w = pe.tensor("w", ())

    @cd
    def step(x, y=0.0):
        w.grad[...] = 1.0

    train = DataParallel(step, step, [device("cc").stream()], (w.grad,))
    with pytest.raises(CdError, match="CD0828"):
        train(*batch)


def test_it_needs_a_stream() -> None:
    @cd
    def step(x):
        x[...] = 1.0

    with pytest.raises(CdError, match="CD0827"):
        DataParallel(step, step, [], ())


@pytest.mark.parametrize(
    "batch",
    [
        [3, 4, 5, 6, 7],
        [[3.0], [4.0], [5.0], [6.0], [7.0]],
        [],
        memoryview(np.array([3.0, 4.0])),
    ],
    ids=["numbers", "rows", "empty", "memory"],
)
def test_what_makes_an_array_is_split_like_one(batch: Any) -> None:
    w, train = adding()
    train(batch)
    assert w.numpy() == np.sum(batch)


def test_lists_beside_arrays_have_as_many_rows() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x, y):
        w.grad[...] = np.sum(x) + np.sum(y)

    @cd
    def update():
        w.value[...] = w.grad

    train = DataParallel(step, update, [device("cc").stream() for _ in range(3)], (w.grad,))
    train(np.array([1.0, 2.0, 3.0, 4.0]), [10, 20, 30, 40])
    assert w.numpy() == 110
    with pytest.raises(CdError, match="CD0828.*4 and 5"):
        train(np.ones(4), [1, 2, 3, 4, 5])


class Held:
    def __init__(self) -> None:
        self.x = np.ones(3)


@pytest.mark.parametrize(
    "held", [[np.ones(3), np.ones(3)], (np.ones(3), np.ones(3)), Held()], ids=["list", "tuple", "x"]
)
def test_an_array_in_something_else_is_refused(held: Any) -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x, held):
        w.grad[...] = np.sum(x) + np.sum(held.x)

    train = DataParallel(step, step, [device("cc").stream()], (w.grad,))
    with pytest.raises(CdError, match="CD0828.*held"):
        train(np.ones(3), held=held)


OFFSET = np.array([1.0, 2.0])


def test_what_a_step_captures_goes_to_every_stream() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x):
        w.grad[...] = np.sum(x) + np.sum(OFFSET)

    @cd
    def update():
        w.value[...] = w.grad

    train = DataParallel(step, update, [device("cc").stream() for _ in range(2)], (w.grad,))
    train(np.ones(4))
    assert w.numpy() == 4 + 2 * 3


RATE = 1.0


@pytest.mark.parametrize("changed", ["RATE", "OFFSET", "held"])
def test_a_step_has_the_values_of_its_time(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    w = pe.tensor("w", (), dtype="float64")
    held = SimpleNamespace(count=2)

    @cd
    def step(x, held):
        w.grad[...] = np.sum(x) * held.count + np.sum(OFFSET)

    @cd
    def update():
        w.value[...] = w.grad * RATE

    train = DataParallel(step, update, [device("cc").stream() for _ in range(2)], (w.grad,))
    found = []
    for value in (1.0, 5.0, 1.0):
        if changed == "held":
            held.count = int(value)
        else:
            new = value if changed == "RATE" else np.full(2, value)
            monkeypatch.setitem(globals(), changed, new)
        train(np.ones(4), held)
        expected = (4 * held.count + 2 * np.sum(OFFSET)) * RATE
        found.append((w.numpy().item(), expected))
    assert [ours for ours, _ in found] == [expected for _, expected in found]


# ---------------------------------------------------------------------- recorded once, queued again


def test_calls_are_recorded_once_for_the_code_that_they_run() -> None:
    w, train = adding()
    for count in (5, 5, 2, 5, 2):
        train(np.arange(float(count)))
        assert w.numpy() == count * (count - 1) / 2
    recorded = dict(train._replays)
    train(np.arange(2.0)), train(np.arange(5.0))
    assert train._replays == recorded
    assert len(recorded) == 2


def test_what_a_step_returns_is_dropped() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x):
        w.grad[...] = np.sum(x)
        return np.sum(x), x * 2.0

    @cd
    def update():
        w.value += w.grad
        return w.value + 1.0

    train = DataParallel(step, update, [device("cc").stream() for _ in range(3)], (w.grad,))
    for _ in range(3):
        train(np.ones(7))
    assert w.numpy() == 21


def test_a_step_and_an_update_have_arguments_of_one_name() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x, rate):
        w.grad[...] = rate * np.sum(x)

    @cd
    def update(rate):
        w.value += rate * w.grad

    streams = [device("cc").stream() for _ in range(2)]
    train = DataParallel(step, update, streams, (w.grad,), (10.0,))
    for rate in (1.0, 2.0, 3.0):
        train(np.ones(4), rate)
    assert w.numpy() == 240


def test_trap_a_step_that_accumulates_begins_with_the_same_values_on_every_stream() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x):
        w.grad += np.sum(x)

    @cd
    def update():
        w.value += w.grad
        w.grad[...] = 0.0

    for devices in (["cc"] * 3, ["cc", "cc:1"]):
        w[...] = 0.0
        train = DataParallel(step, update, [device(d).stream() for d in devices], (w.grad,))
        found = []
        for _ in range(3):
            train(np.ones(6))
            found.append(w.numpy().item())
        assert found == [6, 12, 18]


def test_an_array_that_a_step_writes_is_written_when_the_call_returns() -> None:
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x, out):
        w.grad[...] = np.sum(x)
        out[n] = x[n] * 2.0

    @cd
    def update():
        w.value += w.grad

    train = DataParallel(step, update, [device("cc").stream() for _ in range(3)], (w.grad,))
    x, out = np.arange(7.0), np.zeros(7)
    for run in range(3):
        x += 1
        train(x, out)
        assert np.array_equal(out, 2 * x), run


def test_a_batch_may_be_changed_when_the_call_returns() -> None:
    w, train = adding()
    hold, x = Event(), np.ones(8)
    for context in train._contexts:
        context.stream.submit(hold.wait)
    train(x)
    x[...] = 100.0
    train(x)
    hold.set()
    train.synchronize()
    assert w.numpy() == 800
    x[...] = 1.0
    train(x)
    assert w.numpy() == 8


def test_values_that_the_host_writes_between_calls_are_used() -> None:
    def run(devices: Sequence[str]) -> list[float]:
        w = pe.tensor("w", (), dtype="float64", init=1.0)

        @cd
        def step(x):
            w.grad[...] = np.sum(x) * w.value

        @cd
        def update():
            w.value[...] = w.grad

        train = DataParallel(step, update, [device(d).stream() for d in devices], (w.grad,))
        found = []
        for value in (None, 3.0, None, 5.0):
            if value is not None:
                w[...] = value
            train(np.ones(4))
            found.append(w.numpy().item())
        return found

    assert run(["cc"] * 2) == run(["cc", "cc:1"]) == run(["cc:1", "cc", "cc:2"]) == [4, 12, 48, 20]


@pytest.mark.parametrize("threaded", [True, False])
def test_it_is_recorded_by_plans_and_deferred_like_other_calls(threaded: bool) -> None:
    w, train = adding(2, threaded, keeps=True)
    train(np.ones(4))
    with pe.plan() as plan:
        train(np.ones(4))
        train(np.ones(4))
    assert w.numpy() == 4
    plan(), plan()
    assert w.numpy() == 20
    with pe.deferred():
        train(np.ones(6))
    assert w.numpy() == 26


def test_an_error_of_a_step_comes_once_and_later_calls_run() -> None:
    w = pe.tensor("w", (3,), dtype="float64")

    @cd
    def step(x, at):
        w.grad[...] = 0.0
        w.grad[at[0]] = np.sum(x)

    @cd
    def update():
        w.value += w.grad

    train = DataParallel(step, update, [device("cc").stream() for _ in range(2)], (w.grad,))
    train(np.ones(4), np.array([0, 0, 2, 2]))
    train.synchronize()
    for _ in range(2):
        with pytest.raises(CdError) as caught:
            train(np.ones(4), np.array([0, 0, 7, 7]))
            train.synchronize()
        assert "on cc:0/s" in str(caught.value)
        with suppress(CdError):
            train.synchronize()
    assert w.numpy().tolist() == [2, 0, 2]
    train(np.ones(4), np.array([0, 0, 1, 1]))
    train.synchronize()
    assert w.numpy().tolist() == [4, 2, 2]


def test_steps_are_on_the_streams_that_were_given() -> None:
    _, train = adding()
    train(np.ones(4))
    train.synchronize()
    names = [context.stream.name for context in train._contexts]
    with pe.profile() as timeline:
        train(np.ones(4))
        train.synchronize()
    found = [(work.kind, work.name, work.where) for work in timeline.works]
    assert sorted(found) == sorted(
        [("routine", "step", name) for name in names]
        + [("routine", "merge_w_grad", names[at]) for at in (0, 1, 0)]
        + [("routine", "update", names[0])]
    )


def test_a_trace_sees_every_step() -> None:
    w, train = adding()
    train(np.ones(4))
    with pe.trace() as trace:
        train(np.arange(4.0))
        train.synchronize()
    assert trace.why("w", ()) is not None
    assert w.numpy() == 6
