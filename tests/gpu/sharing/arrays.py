"""Arrays of a package as arguments, and ours as arrays of a package: in place, in order, refused.

Each check is given a package and raises what is wrong.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

import plusequals as pe
from plusequals.backends.device_arrays.device_array import DeviceArray

from ..jobs import NotAsked
from .packages import SEEN, Package
from .said import Array, on, refused, same

Check = Callable[[Package], None]
AXPY = "def axpy(y, x, a):\n    y[i] += a * x[i]\n"
PLUS = "def plus(x):\n    return x + 1\n"
ADDED = "def added(y, x):\n    y[...] += 2 * x + 1\n"
SUMS = "def sums(x):\n    return x * 2 + 1, x.sum(axis=0), x[::-1].T\n"
ROUNDS = 30
SLOW = f"""
def slow(x):
    y = x + 1
    for t in range({ROUNDS}):
        y[i] = y[i] * 0.5 + 1
    return y
"""
LARGE = 1 << 26
"""Elements of arrays that take a device some time."""
TYPES = ("float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "complex64")


def whole() -> Array:
    """Return an array of two axes, each element another number."""
    return np.arange(9.0 * 12).reshape(9, 12)


def require_writable(package: Package) -> None:
    """Raise NotAsked where nobody may write arrays of a package."""
    if not package.writable:
        raise NotAsked(f"arrays of {package.name} are not written")


# --------------------------------------------------------------------------- in place


def used_in_place(package: Package) -> None:
    require_writable(package)
    f = on(AXPY)
    for n in (0, 1, 7, 70_000):
        x, y = package.array(np.arange(float(n))), package.array(np.ones(n))
        for _ in range(3):
            f(y, x, 2.0)
        same(package.host(y), 1 + 6 * np.arange(n))
        same(package.host(x), np.arange(float(n)), "it changes what is only read")


def read_however_it_lies(how: str, package: Package) -> None:
    want, x = SEEN[how](whole()), package.seen(package.array(whole()), how)
    same(on(PLUS)(x), want + 1)
    if want.ndim == 2:
        for got, right in zip(on(SUMS)(x), on(SUMS, "numpy")(want), strict=True):
            same(got, right)


def written_however_it_lies(how: str, package: Package) -> None:
    require_writable(package)
    data, x = whole(), np.array(SEEN[how](whole()) * 3)
    y, f = package.array(data), on(ADDED)
    for _ in range(2):
        f(package.seen(y, how), x)
        SEEN[how](data)[...] += 2 * x + 1
    same(package.host(y), data, "other elements are written, or wrong ones")


def of_each_type(dtype: str, package: Package) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    data = (np.arange(40) % (2 if dtype == "bool" else 40)).astype(kind)
    try:
        x = package.array(data)
    except Exception as why:  # which types there are varies
        raise NotAsked(f"{package.name} has no {dtype}: {why}") from None
    got = on("def same(x):\n    y[i] = x[i]\n    return y\n")(x)
    assert isinstance(got, DeviceArray) and got.dtype == kind, f"the type is {got.dtype}"
    same(got.numpy(), data)
    taken = package.takes()["from_dlpack" if "from_dlpack" in package.takes() else _any(package)]
    same(package.host(taken(got)), data, "what the package sees")


def _any(package: Package) -> str:
    return next(iter(package.takes()))


def with_arrays_of_the_host(package: Package) -> None:
    f = on("def both(z, x, k):\n    z[i] = x[i] - k[i]\n    return x + k\n")
    x, z, k = package.array(np.arange(6.0)), np.zeros((6, 2))[:, 1], np.ones(6)
    got = f(z, x, k)
    same(z, np.arange(6.0) - 1)
    assert isinstance(got, DeviceArray), "with an array of the device results stay there"
    same(got, np.arange(6.0) + 1)


def captured_and_in_tuples(package: Package) -> None:
    names: dict[str, Any] = {"w": package.array(np.arange(4.0))}
    names["o"] = SimpleNamespace(v=package.array(np.full(4, 2.0)))
    text = "def inside(x, p):\n    return x + w * o.v + p[0]\n"
    f = pe.cd_from_source(text, names, backend="cuda")
    x, p = package.array(np.zeros(4)), package.array(np.ones(4))
    for _ in range(2):
        same(f(x, (p, 1)), 2 * np.arange(4.0) + 1)
    names["w"] = package.array(np.ones(4))
    same(f(x, (p, 1)), np.full(4, 3.0))


def traced(package: Package) -> None:
    text = "def f(x):\n    m[i] = max(x[i, j])\n    y = x / m[:, None]\n    return y.sum(axis=0)\n"
    data, found = whole() + 1, []
    for where, given in (("cc", data), ("cuda", package.array(data))):
        with pe.override(profile="strict"), pe.trace() as trace:
            got = on(text, where)(given)
        found.append([*map(str, trace)])
        same(got, on(text, "numpy")(data))
    assert found[0] == found[1] and found[0], "the records differ"


# --------------------------------------------------------------------------- in order


def behind_what_is_queued(package: Package) -> None:
    require_writable(package)
    f, n = on(AXPY), 1000
    x, y = package.array(np.zeros(n)), package.array(np.zeros(n))
    f(y, x, 1.0)
    for value in (3.0, 5.0):
        package.late(x, value)
        f(y, x, 1.0)
        package.late(x, -1.0)  # behind the call
    same(package.host(y), np.full(n, 8.0), "it does not wait for what was queued")
    same(package.host(x), np.full(n, -1.0))


def behind_what_is_queued_aside(package: Package) -> None:
    require_writable(package)
    f, g, n = on(AXPY), on(PLUS), 1000
    with package.aside():
        x, y = package.array(np.zeros(n)), package.array(np.zeros(n))
        f(y, x, 1.0)
        results = []
        for value in (3.0, 5.0):
            package.late(x, value)
            f(y, x, 1.0)
            results.append(g(x))
            package.late(x, -1.0)
        same(package.host(y), np.full(n, 8.0), "it does not wait for what was queued")
        for got, value in zip(results, (4.0, 6.0), strict=True):
            same(got.numpy(), np.full(n, value), "a result")


def memory_that_others_still_use(package: Package) -> None:
    """What was lent is not given to a later call before those who have it are done."""
    f, data = on(PLUS), np.arange(200_000.0)
    x, nothing = package.array(data), package.array(np.zeros(200_000))
    for take in package.takes().values():
        taken = take(f(x))  # nobody but the package holds it
        gc.collect()
        for _ in range(4):
            f(nothing)
        same(package.host(taken), data + 1, "its memory was given away")
        del taken
        gc.collect()
        same(f(x), data + 1)


# --------------------------------------------------------------------------- results


def results_are_taken_without_a_copy(package: Package) -> None:
    double, x = on("def f(x):\n    return x * 2\n"), package.array(whole())
    for way, take in package.takes().items():
        r = double(x)
        taken = take(r)
        assert package.pointer(taken) == r.address, f"{way} copies it"
        same(package.host(taken), 2 * whole(), way)
        if package.writable:
            on("def one(y):\n    y[2, 3] = -1\n")(taken)
            same(r.numpy()[2, 3], np.float64(-1), "what one writes the other sees")


def results_taken_before_they_are_computed(package: Package) -> None:
    slow, n = on(SLOW), LARGE
    slow(package.array(np.zeros(n)))
    for k, (way, take) in enumerate(package.takes().items(), 2):  # each way with other numbers
        copy = package.copied(take(slow(package.array(np.full(n, float(k))))))
        want = np.full(n, 2 + (k - 1) * 2.0**-ROUNDS)
        same(package.host(copy), want, f"{way} does not wait")


def results_that_are_views(package: Package) -> None:
    f, data = on("def f(x):\n    y = x * 2\n    return y.T, y[1:, 2:]\n"), whole()
    views = f(package.array(data))
    refusals = []
    for got, want in zip(views, (2 * data.T, 2 * data[1:, 2:]), strict=True):
        same(got.numpy(), want)
        for way, take in package.takes().items():
            try:
                taken = take(got)
            except Exception as why:  # not all take each layout
                refusals.append(f"{way}: {why}")
                continue
            same(package.host(taken), want, way)
    if refusals:
        raise NotAsked("; ".join(refusals))


def results_go_from_call_to_call(package: Package) -> None:
    f, r = on(PLUS), package.array(np.arange(5000.0))
    for _ in range(50):
        r = f(r)
    same(r.numpy(), np.arange(5000.0) + 50)
    same(r.copy().numpy(), np.arange(5000.0) + 50)
    same(np.from_dlpack(r, device="cpu"), np.arange(5000.0) + 50)


# --------------------------------------------------------------------------- refused


def refused_by_code_of_the_processor(package: Package) -> None:
    x = package.array(np.ones(3))
    for where in ("cc", "numpy"):
        told = refused("CD0886", on(PLUS, where), x)
        assert "lies in the memory of a GPU" in told, told


def refused_where_it_is_read_only(package: Package) -> None:
    if package.writable:
        raise NotAsked(f"arrays of {package.name} are written")
    refused("CD0703", on(AXPY), package.array(np.ones(3)), np.ones(3), 1.0)


def refused_where_arrays_overlap(package: Package) -> None:
    require_writable(package)
    x, f = package.array(np.arange(20.0)), on("def f(y, x):\n    y[i] = x[i] + 1\n")
    refused("CD0708", f, x[1:11], x[:10])
    f(x[10:], x[:10])
    same(package.host(x), np.concatenate((np.arange(10.0), np.arange(10.0) + 1)))


def refused_where_an_element_is_at_several_places(package: Package) -> None:
    require_writable(package)
    refused("CD0704", on("def f(y):\n    y[i] += 1\n"), package.repeated(package.array(np.ones(4))))


def refused_where_elements_are_no_whole_ones(package: Package) -> None:
    for one in package.between():
        refused("CD0887", on(PLUS), one)


OF_ALL: Mapping[str, Check] = {
    "used in place": used_in_place,
    **{f"read, {how}": partial(read_however_it_lies, how) for how in SEEN},
    **{f"written, {how}": partial(written_however_it_lies, how) for how in SEEN},
    **{f"of {dtype}": partial(of_each_type, dtype) for dtype in TYPES},
    "with arrays of the host": with_arrays_of_the_host,
    "captured and in tuples": captured_and_in_tuples,
    "traced": traced,
    "behind what is queued": behind_what_is_queued,
    "behind what is queued aside": behind_what_is_queued_aside,
    "memory that others still use": memory_that_others_still_use,
    "results taken without a copy": results_are_taken_without_a_copy,
    "results taken before they are computed": results_taken_before_they_are_computed,
    "results that are views": results_that_are_views,
    "results go from call to call": results_go_from_call_to_call,
    "refused by code of the processor": refused_by_code_of_the_processor,
    "refused where it is read-only": refused_where_it_is_read_only,
    "refused where arrays overlap": refused_where_arrays_overlap,
    "refused where an element is at several places": refused_where_an_element_is_at_several_places,
    "refused where elements are no whole ones": refused_where_elements_are_no_whole_ones,
}
"""What is asked of each package."""
