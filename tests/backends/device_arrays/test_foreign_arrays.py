"""Arrays of devices that lie in any way: used where they are, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.source import preamble
from plusequals.backends.cuda.dialect import CUDA
from plusequals.backends.device_arrays.foreign_arrays import as_placed, overlap_proxy_of
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.base.diagnostic import CdValueError

from ..cuda.foreign import Capsules, Theirs
from ..cuda.on_cpu import Array, CpuDriver, Gxx, backend, installed, needs_gxx

Seen = Callable[[Array], Array]
WAYS: dict[str, Seen] = {
    "transposed": lambda a: a[:6, :6].T,
    "every second": lambda a: a[::2, ::2][:4, :4],
    "backwards": lambda a: a[7::-1, 7::-1][:6, :6],
    "a column of each": lambda a: a[1:7, 2:8],
    "one row many times": lambda a: np.broadcast_to(a[3, 1:6], (5, 5)),
    "one element": lambda a: a[2:3, 4:5].T,
    "no element": lambda a: a[2:2, ::-1],
}


@pytest.fixture
def driver() -> CpuDriver:
    return CpuDriver(seed=3)


@pytest.fixture
def device(driver: CpuDriver) -> Iterator[OpenedDevice]:
    with installed(backend(driver)) as made:
        yield made.opened(0)


def on(text: str, where: str = "cuda") -> Any:
    return pe.cd_from_source(text, {"np": np}, backend=where)


@needs_gxx
@pytest.mark.parametrize("kind", [Theirs, Capsules])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_read_lies_in_any_way(device: OpenedDevice, way: str, kind: Any) -> None:
    see, whole = WAYS[way], np.arange(100.0).reshape(10, 10)
    text = "def f(x):\n    return x * 2 + x.sum(), x.sum(axis=0), x.T @ x\n"
    want = on(text, "numpy")(see(whole))
    for got, one in zip(on(text)(kind(device, whole, see=see)), want, strict=True):
        assert np.array_equal(np.asarray(got), one)


@needs_gxx
@pytest.mark.parametrize("way", [way for way in WAYS if "many" not in way])
def test_what_is_written_changes_its_own_elements_only(
    device: OpenedDevice, driver: CpuDriver, way: str
) -> None:
    see, whole = WAYS[way], np.arange(100.0).reshape(10, 10)
    text = "def f(y, x):\n    y[i, j] += x[j, i] * 2\n"
    y, x = Theirs(device, whole, see=see), see(whole.copy() + 1).T.copy()
    f = on(text)
    f(y, x)
    driver.log.clear()
    f(y, x)
    want = whole.copy()
    for _ in range(2):
        on(text, "numpy")(see(want), x)
    assert np.array_equal(y.get(), want)
    assert not [what for what in driver.log if what[1] == "copy"], "nothing is packed"


@needs_gxx
def test_each_layout_has_code_of_its_own_and_the_host_shares_it_not(device: OpenedDevice) -> None:
    whole = np.arange(100.0).reshape(10, 10)
    f = on("def f(y, x):\n    y[i, j] = x[i, j] * 10 + i + j\n")
    for see in (WAYS["transposed"], lambda a: a[:6, :6], WAYS["backwards"]):
        want = np.zeros((6, 6))
        on("def f(y, x):\n    y[i, j] = x[i, j] * 10 + i + j\n", "numpy")(want, see(whole))
        for x in (Theirs(device, whole, see=see), see(whole), Capsules(device, whole, see=see)):
            y = Theirs(device, np.zeros((6, 6)))
            f(y, x)
            assert np.array_equal(y.get(), want)


@needs_gxx
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_tiles_of_products_lie_in_any_way(device: OpenedDevice, dtype: str) -> None:
    draw = np.random.default_rng(4)
    a, b = (draw.integers(-3, 4, (130, 131)).astype(dtype) for _ in range(2))
    text = "def f(c, a, b):\n    c[i, j] += a[i, k] * b[k, j]\n"
    ways: list[tuple[Seen, Seen]] = [
        (lambda x: x[:70, 1:90], lambda x: x[2:91, 5:78]),
        (lambda x: x[:89, :70].T, lambda x: x[:73, :89].T),
        (lambda x: x[69::-1, 88::-1], lambda x: x[:89, ::-1][:, :73]),
        (lambda x: x[:70, :89], lambda x: np.broadcast_to(x[:89, :1], (89, 73))),
    ]
    for one, two in ways:
        c = Theirs(device, np.zeros((150, 73), "float32"), see=lambda x: x[:140:2])
        on(text)(c, Theirs(device, a, see=one), Theirs(device, b, see=two))
        want = one(a).astype("float32") @ two(b).astype("float32")
        assert np.array_equal(c.get()[:140:2], want)
        assert not c.get()[1::2].any() and not c.get()[140:].any()


@needs_gxx
def test_results_that_are_views_of_views(device: OpenedDevice) -> None:
    text = "def f(x):\n    return x.T, x[::-1, 1:], x[2], x\n"
    whole, see = np.arange(100.0).reshape(10, 10), WAYS["backwards"]
    x = Theirs(device, whole, see=see)
    *views, same = on(text)(x)
    assert same is x
    for got, want in zip(views, on(text, "numpy")(see(whole)), strict=False):
        assert np.array_equal(np.asarray(got), want)
    again = on("def g(x):\n    return x + 1\n")(views[1])
    assert np.array_equal(np.asarray(again), see(whole)[::-1, 1:] + 1)
    real, imag = on("def f(x):\n    return (x * 2).real, x.imag\n")(
        Theirs(device, np.arange(9) + 2j, see=lambda a: a[::-2])
    )
    both = on("def g(x, y):\n    return x + y\n")(real, imag)
    assert np.array_equal(both.numpy(), 18 - 4 * np.arange(5))


@needs_gxx
def test_sizes_of_the_run_go_on_with_layouts(device: OpenedDevice) -> None:
    f, whole = on("def f(x):\n    return x * 2\n"), np.arange(100.0)
    for n in range(3, 9):
        got = f(Theirs(device, whole, see=lambda a, n=n: a[::-3][:n]))  # type: ignore[misc]
        assert np.array_equal(got.numpy(), 2 * whole[::-3][:n])
        assert np.array_equal(f(Theirs(device, whole[:n])).numpy(), 2 * whole[:n])


@needs_gxx
def test_parts_of_one_array_that_do_not_touch(device: OpenedDevice) -> None:
    f, whole = on("def f(y, x):\n    y[i] = x[i] + 1\n"), np.arange(20.0)
    even = Theirs(device, whole, see=lambda a: a[::2])
    odd = Theirs(device, whole, see=lambda a: a[1::2])
    odd.address = even.address
    f(even, odd)
    assert np.array_equal(even.get()[::2], whole[1::2] + 1)
    with pytest.raises(CdValueError, match="CD0708"):
        both = Theirs(device, whole, see=lambda a: a[:10])
        both.address = even.address
        f(even, both)


def test_elements_that_are_written_are_of_one_place_each(device: OpenedDevice) -> None:
    y = Theirs(device, np.ones(4), see=lambda a: np.broadcast_to(a[:1], (4,)))
    with pytest.raises(CdValueError) as caught:
        on("def f(y):\n    y[i] += 1\n")(y)
    assert caught.value.code == "CD0704"


def test_how_an_array_lies_is_told_in_elements(device: OpenedDevice) -> None:
    whole = np.zeros((4, 6), np.float32)
    there = as_placed(Theirs(device, whole, see=lambda a: a[::-2, 1::3]))
    assert there is not None and there.whole
    assert (there.shape, there.strides) == ((2, 2), (-12, 3))
    assert overlap_proxy_of(there).strides == (-48, 12)
    assert overlap_proxy_of(3.0) == 3.0
    straight = as_placed(Theirs(device, whole, see=lambda a: a[1:3]))
    assert straight is not None and straight.strides is None
    between = as_placed(Theirs(device, np.zeros(4), strides=(12,)))
    assert between is not None and not between.whole


@needs_gxx
@pytest.mark.parametrize("offset", [0, 1, 8])
def test_what_is_copied_in_pieces_may_begin_anywhere(
    device: OpenedDevice, driver: CpuDriver, offset: int
) -> None:
    """Factors of tensor cores are copied 16 bytes at a time: others than such are moved first."""
    rng = np.random.default_rng(offset)
    a, b = (rng.integers(-4, 5, 32 * 32).astype(np.float16) for _ in range(2))
    held = np.concatenate([np.zeros(offset, np.float16), a])
    theirs = Theirs(device, held, see=lambda whole: whole[offset:].reshape(32, 32))
    f = on("def f(a, b):\n    c[i, j] = sum[k](a[i, k] * b[k, j])\n    return c\n")
    for _ in range(2):
        got = np.asarray(f(theirs, b.reshape(32, 32)))
        assert np.array_equal(got, a.reshape(32, 32) @ b.reshape(32, 32))
    assert np.array_equal(theirs.get(), held)


@needs_gxx
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_what_is_stored_in_pairs_may_begin_anywhere(device: OpenedDevice, offset: int) -> None:
    a, b = np.arange(4096.0, dtype="f4").reshape(64, 64), np.eye(64, dtype="f4")
    held = np.full(4096 + offset, 7.0, np.float32)
    theirs = Theirs(device, held, see=lambda whole: whole[offset:].reshape(64, 64))
    f = on("def f(c, a, b):\n    c[i, j] = sum[k](a[i, k] * b[k, j])\n")
    for _ in range(2):
        f(theirs, a, b)
        got = theirs.get()
        assert np.array_equal(got[offset:], a.ravel()) and (got[:offset] == 7).all()


@needs_gxx
@pytest.mark.parametrize("call", ["stored(x + {}, 1.0f, 2.0f)", "at_once(s, x + {})"])
def test_an_instruction_at_an_odd_place_is_noticed(call: str, tmp_path: Path) -> None:
    head = 'extern "C" __global__ void odd(float *x)\n{\n    __shared__ __align__(16) float s[4];\n'
    for at, is_fine in ((4, True), (1, False)):
        text = f"{head}    {call.format(at)};\n}}\n"
        context = CpuDriver().open(0)
        code = context.load(Gxx().build(preamble(text, CUDA) + text, "sm_90", tmp_path).code)
        given = context.function(code, "odd", 1), (1, 1, 1), (1, 1, 1), [context.allocate(64, 0)], 0
        if is_fine:
            context.launch(*given)
            continue
        with pytest.raises(DriverError, match="begin at an odd place"):
            context.launch(*given)


@needs_gxx
@pytest.mark.parametrize("kind", [Theirs, Capsules])
def test_arrays_that_never_change_are_not_written(device: OpenedDevice, kind: Any) -> None:
    made = type("ArrayImpl", (kind,), {"__module__": "jaxlib._jax"})(device, np.arange(4.0))
    assert np.array_equal(np.asarray(on("def f(x):\n    return x * 2\n")(made)), np.arange(4) * 2.0)
    with pytest.raises(CdValueError, match="CD0703"):
        on("def f(x):\n    x[i] = 1\n")(made)
