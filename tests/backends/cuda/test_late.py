"""Nothing is wrong on a device that does everything as late as it may."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.gpu import staging
from plusequals.base.diagnostic import CdError

from .foreign import NEVER, Capsules, Theirs
from .late import LateContext, LateDriver
from .on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(LateDriver())) as made:
        yield made


def on(text: str) -> Any:
    return pe.cd_from_source(text, {"np": np}, backend="cuda")


@pytest.mark.parametrize("small", [0, staging.MAX_DIRECT_UPLOAD])
def test_arrays_of_the_host(
    made: CompiledCuda, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(staging, "MAX_DIRECT_UPLOAD", small)
    monkeypatch.setattr(staging, "MAX_BUFFER_BYTES", 1 << 12)
    f = on("def f(y, x):\n    y[i] = x[i] * 2 + 1\n    return y.sum(), x + y\n")
    for n in (0, 1, 700, 1501):
        y, x = np.zeros((n, 3))[:, 1], np.arange(float(n))[::-1]
        total, both = f(y, x)
        assert np.array_equal(y, 2 * x + 1)
        assert np.array_equal(both, 3 * x + 1)
        assert total == y.sum()


@pytest.mark.parametrize("stream", [77, 1, None, NEVER])
def test_arrays_of_others_in_order_with_their_work(made: CompiledCuda, stream: Any) -> None:
    device = made.opened(0)
    f, g = on("def f(y, x):\n    y[i] += x[i]\n    return y * 2\n"), on("def g(x):\n    x[i] = 0\n")
    late = device.context
    assert isinstance(late, LateContext)
    y, x = (Theirs(device, np.arange(400.0), stream=stream) for _ in range(2))
    if stream is None:
        late.finish()  # which is what they say
    r = f(y, x)
    late.upload(x.address, np.ones(400), x.queue)  # behind the call, on their stream
    if stream is None:
        late.finish()
    s = f(y, x)
    g(x)
    assert np.array_equal(y.get(), 2 * np.arange(400.0) + 1)
    assert not x.get().any()
    assert np.array_equal(r.numpy(), 4 * np.arange(400.0))
    assert np.array_equal(np.asarray(s), 4 * np.arange(400.0) + 2)


def test_arrays_by_dlpack(made: CompiledCuda) -> None:
    y, x = (Capsules(made.opened(0), np.arange(40.0)) for _ in range(2))
    on("def f(y, x):\n    y[i] += x[i]\n")(y, x)
    assert np.array_equal(y.get(), 2 * np.arange(40.0))


def test_memory_goes_from_result_to_result_in_order(made: CompiledCuda) -> None:
    device = made.opened(0)
    x, f = Theirs(device, np.arange(300.0)), on("def f(x):\n    return x + 1\n")
    found = f(x)
    for _ in range(20):
        found = f(found)
        gc.collect()
    assert np.array_equal(found.numpy(), np.arange(300.0) + 21)
    assert device.pool.used + device.pool.pooled_bytes <= 4 * (2560 + 512)


def test_who_looks_at_no_stream_is_in_order_on_the_default_one(made: CompiledCuda) -> None:
    device = made.opened(0)
    late, f = device.context, on("def f(x):\n    return x + 1\n")
    r, y = f(Theirs(device, np.arange(300.0))), Theirs(device, np.zeros(300), stream=1)
    late.copy(y.address, r.__cuda_array_interface__["data"][0], 2400, y.queue)
    assert np.array_equal(y.get(), np.arange(300.0) + 1)


def test_what_was_lent_and_let_go_is_not_written_before_they_are_done(made: CompiledCuda) -> None:
    device = made.opened(0)
    late = device.context
    x, f = Theirs(device, np.arange(300.0)), on("def f(x):\n    return x + 1\n")
    r = f(x)
    shown, y = r.__cuda_array_interface__, Theirs(device, np.zeros(300))
    late.follow(y.queue, shown["stream"])
    late.copy(y.address, shown["data"][0], 2400, y.queue)
    del r
    gc.collect()
    for _ in range(3):
        f(Theirs(device, np.zeros(300)))
    assert np.array_equal(y.get(), np.arange(300.0) + 1)


def test_faults_prints_and_questions(
    made: CompiledCuda, capsys: pytest.CaptureFixture[str]
) -> None:
    f = on("def f(y, x, k):\n    y[i] = x[k[i]]\n")
    x, k = np.arange(5.0), np.array([0, 1, 9, 2, 8])
    with pytest.raises(CdError, match="index 9"):
        f(np.zeros(5), x, k)
    with pytest.raises(CdError, match="index 9"):
        f(*(Theirs(made.opened(0), one) for one in (np.zeros(5), x, k)))
    g = on("def f(x):\n    n = 0\n    while x.sum() > 1.0:\n        x[i] = x[i] / 2\n"
           "        n += 1\n        print('n', n, x[0])\n    return n\n")  # fmt: skip
    assert g(np.arange(3.0) + 1) == 3
    assert capsys.readouterr().out == "n 1 0.5\nn 2 0.25\nn 3 0.125\n"


def test_one_array_of_the_host_among_those_of_the_device(made: CompiledCuda) -> None:
    f = on("def f(y, x):\n    y[i] += x[i]\n    return x * y\n")
    x = Theirs(made.opened(0), np.arange(9000.0))
    y = np.ones(9000)
    for _ in range(2):
        r = f(y, x)
    assert np.array_equal(y, 1 + 2 * np.arange(9000.0))
    assert np.array_equal(r.numpy(), np.arange(9000.0) * y)


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("limit", [0, staging.POOL_LIMIT])
def test_arrays_of_the_host_that_the_device_reaches_directly(
    made: CompiledCuda, monkeypatch: pytest.MonkeyPatch, n: int, limit: int
) -> None:
    monkeypatch.setattr(staging, "MAX_DIRECT_UPLOAD", 8 * 100)
    device = made.opened(0)
    device.staging = staging.StagingPool(device.context, limit)
    f = on("def f(y, x):\n    y[i] += x[i]\n")
    pinned = [device.context.pinned(8 * n).view(np.float64) for _ in range(2)]
    for given, one in ((pinned[0], np.arange(float(n))), (pinned[1], np.ones(n))):
        given[:] = one
    y, x = Theirs(device, np.zeros(n)), pinned[0]
    f(y, x)
    x[:] = -1  # at once
    assert np.array_equal(y.get(), np.arange(float(n)))
    z, x = pinned[1], Theirs(device, np.arange(float(n)))
    f(z, x)
    assert np.array_equal(z, 1 + np.arange(float(n))), "it is there when the call ends"
