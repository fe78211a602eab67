"""Data parallel steps: equal to one stream up to rounding, and bit-equal from run to run."""

from __future__ import annotations

from collections.abc import Sequence
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


def adding_on_four() -> tuple[pe.Tensor, DataParallel]:
    """Return a number, and what makes it the sum of an array on four streams."""
    w = pe.tensor("w", (), dtype="float64")

    @cd
    def step(x):
        w.grad[...] = np.sum(x)

    @cd
    def update():
        w.value[...] = w.grad

    streams = [device("cc").stream() for _ in range(4)]
    return w, DataParallel(step, update, streams, (w.grad,))


def test_more_streams_than_rows_leave_some_idle() -> None:
    w, train = adding_on_four()
    train(np.array([3.0, 4.0]))
    assert w.numpy() == 7
    train(np.array([3.0, 4.0, 5.0, 6.0, 7.0]))
    assert w.numpy() == 25


def test_trap_what_idle_streams_computed_before_is_not_added_again() -> None:
    w, train = adding_on_four()
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
    w, train = adding_on_four()
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
