"""What the host spends on a linked routine of one kernel, which is queued and not waited for."""

from __future__ import annotations

import time

import numpy as np

import plusequals as pe

CALLS = 200
"""Routines that are queued one after the other: fewer than a device keeps in its queue."""
ROUNDS = 15
LONGEST = 120.0
"""Seconds that the process may take that measures it."""
TEXT = "def halved(p):\n    p.value[i] = p.value[i] * 0.5 + 1\n"


def seconds(device: str = "cuda:0") -> float:
    """Return the median of what the host takes for a call, the device's work left out.

    Raises AssertionError where the routine did not compute what it should.
    """
    p = pe.tensor("launched", (1024,), dtype="float32", init=0.0)
    stream = pe.device(device).stream()
    routine = pe.cd_from_source(TEXT).compile(p).link(stream.context())
    found = []
    for _ in range(ROUNDS):
        stream.synchronize()  # so that the queue is never full
        start = time.perf_counter()
        for _ in range(CALLS):
            routine()
        found.append((time.perf_counter() - start) / CALLS)
    value = p.numpy()
    routine.context.finalize()
    assert np.allclose(value, 2 * (1 - 0.5 ** (CALLS * ROUNDS))), "it computes something else"
    return float(np.median(found))
