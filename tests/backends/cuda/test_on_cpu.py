"""The devices that this processor plays: streams of several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np

from .on_cpu import CpuDriver, Gxx, needs_gxx

TEXT = """
extern "C" __global__ void stepped(int64_t *y, int64_t by)
{
    for (int step = 0; step < 100; step++) {
        y[threadIdx.x] += by;
        __syncthreads();
    }
}
"""


@needs_gxx
def test_two_threads_may_launch_at_once(tmp_path: Path) -> None:
    context = CpuDriver().open(0)
    code = context.load(Gxx().build(TEXT, "", tmp_path).code)
    kernel = context.function(code, "stepped", 2)
    start = Barrier(2, timeout=60)

    def launched(by: int) -> set[int]:
        stream, found = context.stream(), np.zeros(64, np.int64)
        address = context.allocate(found.nbytes, stream)
        context.clear(address, found.nbytes, stream)
        start.wait()
        for _ in range(20):
            context.launch(kernel, (1, 1, 1), (64, 1, 1), (address, by), stream)
        context.download(found, address, stream)
        context.free(address, stream)
        return set(found.tolist())

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(launched, (1, 3))) == [{2000}, {6000}]
    assert context.used == 0
