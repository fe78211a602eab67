"""What needs a device for itself: too little memory, and failures after which nothing goes on."""

from __future__ import annotations

import gc
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cuda import nvrtc
from plusequals.backends.runtime.state import RUNTIME

from ..machine import Cuda
from .said import Array, on, refused, same

BIG = "def big(x, n):\n    y = np.zeros(n)\n    y[:] = x[0]\n    return y\n"
FIRST = "def first(x):\n    return x + 1\n"
THEN = "def then(x):\n    return x * 2\n"
MANY = 1 << 20
SPARE = 1 << 30
"""Bytes that are left to others where nearly all is taken."""
ILLEGAL = 'extern "C" __global__ void wrong(float *x) { x[(1ll << 40) + threadIdx.x] = 1.0f; }'


def device() -> Any:
    """Return the first device, in use."""
    return RUNTIME.backend("cuda").opened(0)


class Lent:
    """An array on the device that belongs to no package."""

    def __init__(self, data: Array) -> None:
        here, self.data = device(), data
        self.address = here.context.allocate(data.nbytes, here.plain)
        here.upload(self.address, data, here.plain)
        here.wait(here.plain)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3, "shape": self.data.shape, "typestr": self.data.dtype.str,
            "data": (self.address, False), "strides": None, "stream": None,
        }  # fmt: skip


def poison() -> None:
    """Queue a kernel that writes where nothing is: the device refuses everything from then on."""
    machine = Cuda()
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        compiler = nvrtc.find_compiler(machine.facts.newest)
        made = compiler.build(ILLEGAL, machine.facts.target, Path(folder))
    kernel, place = machine.function(made.code, "wrong", 1), machine.allocate(4096)
    machine.launch(kernel, (1, 1, 1), (64, 1, 1), (place,))


def more_than_the_device_has() -> None:
    here, x, big = device(), Lent(np.full(1, 5.0)), on(BIG)
    kept, n = big(x, MANY), here.properties.memory // 4
    told = refused("CD0880", big, x, n)
    found = re.search(r"of `big` takes ([\d,]+) bytes of cuda:0, which has ([\d,]+) left", told)
    assert found, told
    size, left = (int(one.replace(",", "")) for one in found.groups())
    assert size >= 8 * n and 0 < left < here.properties.memory, told
    assert f"holds {8 * MANY:,} bytes" in told, f"who holds the rest is not told: {told}"
    same(kept.numpy(), np.full(MANY, 5.0), "what was there before")
    same(on(FIRST)(kept).numpy(), np.full(MANY, 6.0), "it goes on")


def fields_that_do_not_fit() -> None:
    here, x = device(), Lent(np.full(1, 5.0))
    p = pe.tensor("p", (MANY,), "float64", init=1.0)
    context = pe.device("cuda").stream().context()
    step = pe.cd_from_source("def step(p):\n    p[i] = p[i] * 2\n").compile(p).link(context)
    count = (here.context.free_memory() - SPARE) // 8
    held = on(BIG)(x, count)
    q = pe.tensor("q", (SPARE // 4,), "float64")

    def linked() -> None:
        pe.cd_from_source("def g(q):\n    q[i] += 1\n").compile(q).link(context)()
        context.stream.synchronize()

    told = refused("CD0880", linked)
    assert f"`q` of `cuda:0` takes {2 * SPARE:,} bytes" in told, told
    assert "of `big` holds " in told and f"`p` of `cuda:0` holds {8 * MANY:,} bytes" in told, told
    step()
    same(p.numpy(), np.full(MANY, 2.0), "it goes on")
    assert held.shape == (count,)


def memory_is_used_again() -> None:
    here, x, big = device(), Lent(np.full(1, 5.0)), on(BIG)
    n = here.context.free_memory() // 8 * 6 // 10  # once, not twice
    for size in (n, n, n, n, n + 1000, n + 2000, n - 1000):  # what is kept goes for other sizes
        held = big(x, size)
        assert held.shape == (size,)
        del held
        gc.collect()
    assert here.pool.used < n, f"{here.pool.used:,} bytes are in use"
    before, kept = here.context.free_memory(), here.pool.pooled_bytes
    assert pe.device("cuda").trim() == kept > n and not here.pool.pooled_bytes
    more = here.context.free_memory() - before
    assert more > n, f"of {kept:,} bytes that were kept {more:,} are free"


def work_that_fails_later() -> None:
    x, first, then = Lent(np.ones(1000)), on(FIRST), on(THEN)
    first(then(first(x))).numpy()  # compiled, and done
    queued = then(first(x))  # and nobody waits for it
    poison()
    told = refused("CD0884", lambda: [first(queued).numpy() for _ in range(1000)])
    assert "failed on cuda:0" in told, told
    assert "before it, and not waited for: " in told and "`then`" in told, told
    again = refused("CD0884", lambda: on(THEN)(np.ones(3)))
    assert "a device that has failed once may refuse everything" in again, again


CHECKS: Mapping[str, Callable[[], None]] = {
    "more than the device has": more_than_the_device_has,
    "fields that do not fit": fields_that_do_not_fit,
    "memory is used again": memory_is_used_again,
    "work that fails later": work_that_fails_later,
}
"""Each is done in a process of its own, while no other one runs."""
