"""Packages that have arrays on a device, each with the same few verbs.

    Package := array, host, pointer, copied, takes, seen, aside, late, repeated, between

They are imported when they are asked for, and say why where they cannot be.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from ..jobs import NotAsked

Array = np.ndarray[Any, Any]
See = Callable[[Any], Any]
SEEN: Mapping[str, See] = {
    "transposed": lambda a: a.T,
    "every second": lambda a: a[::2, 1::3],
    "backwards": lambda a: a[::-1, ::-1],
    "a part": lambda a: a[2:, 3:],
    "a column": lambda a: a[:, 4],
    "one element": lambda a: a[2:3, 5:6],
    "no element": lambda a: a[2:2],
}
"""How arrays of two axes may lie that are a part of another one."""
LARGE = 6000
"""Rows of a product that keeps a device busy for some time."""
ROUNDS = 12


class Package(Protocol):
    """A package with arrays on a device."""

    name: str
    writable: bool
    """Whether its arrays may be written."""

    def array(self, data: Array) -> Any:
        """Return a new array on the device."""

    def host(self, one: Any) -> Array:
        """Return a copy on the host of what an array holds when all its work is done."""

    def pointer(self, one: Any) -> int:
        """Return the address of the first element."""

    def copied(self, one: Any) -> Any:
        """Queue a copy, and return it."""

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        """Return the ways to take an array of ours, by what they are called."""

    def seen(self, one: Any, how: str) -> Any:
        """Return a view."""

    def aside(self) -> AbstractContextManager[Any]:
        """Let its work go to a stream of its own inside the `with`."""

    def late(self, one: Any, value: float) -> None:
        """Queue much work, then the filling of an array."""

    def repeated(self, one: Any) -> Any:
        """Return a view of four elements that are all the first one."""

    def between(self) -> Sequence[Any]:
        """Return arrays whose elements are not where whole ones can be."""


def module(name: str) -> Any:
    """Return a module; raises NotAsked where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as why:  # what packages raise where they lack something varies
        said = (str(why).strip().splitlines() or [type(why).__name__])[0]
        raise NotAsked(f"{name} cannot be imported: {said}") from None


class CuPy:
    """CuPy, whose arrays name their stream."""

    name, writable = "cupy", True

    def __init__(self) -> None:
        self.cupy = module("cupy")

    def array(self, data: Array) -> Any:
        return self.cupy.asarray(data)

    def host(self, one: Any) -> Array:
        self.cupy.cuda.Device().synchronize()
        return self.cupy.asnumpy(one)

    def pointer(self, one: Any) -> int:
        return int(one.data.ptr)

    def copied(self, one: Any) -> Any:
        return one.copy()

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        return {"asarray": self.cupy.asarray, "from_dlpack": self.cupy.from_dlpack}

    def seen(self, one: Any, how: str) -> Any:
        return SEEN[how](one)

    @contextmanager
    def aside(self) -> Iterator[Any]:
        with self.cupy.cuda.Stream(non_blocking=True) as stream:
            yield stream

    def late(self, one: Any, value: float) -> None:
        large = self.cupy.ones((LARGE, LARGE), np.float32)
        for _ in range(ROUNDS):
            large = large @ large
        one[...] = value

    def repeated(self, one: Any) -> Any:
        return self.cupy.broadcast_to(one[:1], (4,))

    def between(self) -> Sequence[Any]:
        base = self.cupy.zeros(64, np.uint8)
        odd = self.cupy.ndarray((4,), np.float32, base.data + 2)
        return [odd, self.cupy.ndarray((4,), np.float32, base.data, strides=(6,))]


class Torch:
    """PyTorch, whose arrays come by DLPack."""

    name, writable = "torch", True

    def __init__(self) -> None:
        self.torch = module("torch")
        if not self.torch.cuda.is_available():
            raise NotAsked("torch sees no device")

    def array(self, data: Array) -> Any:
        data = np.array(data, order="C")
        if data.dtype.name == "bfloat16":  # as NumPy's own types, it knows no other
            return self.torch.from_numpy(data.view(np.int16)).cuda().view(self.torch.bfloat16)
        return self.torch.from_numpy(data).cuda()

    def host(self, one: Any) -> Array:
        self.torch.cuda.synchronize()
        if one.dtype == self.torch.bfloat16:
            return one.view(self.torch.int16).cpu().numpy().view(ml_dtypes.bfloat16)
        return one.cpu().numpy()

    def pointer(self, one: Any) -> int:
        return int(one.data_ptr())

    def copied(self, one: Any) -> Any:
        return one.clone()

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        return {
            "as_tensor": lambda one: self.torch.as_tensor(one, device="cuda"),
            "from_dlpack": self.torch.from_dlpack,
        }

    def seen(self, one: Any, how: str) -> Any:
        if how == "backwards":
            raise NotAsked("torch has no steps backwards")
        return SEEN[how](one)

    @contextmanager
    def aside(self) -> Iterator[Any]:
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            yield stream
        self.torch.cuda.current_stream().wait_stream(stream)

    def late(self, one: Any, value: float) -> None:
        large = self.torch.ones((LARGE, LARGE), device="cuda")
        for _ in range(ROUNDS):
            large = large @ large
        one.fill_(value)

    def repeated(self, one: Any) -> Any:
        return one[:1].expand(4)

    def between(self) -> Sequence[Any]:
        raise NotAsked("torch has no such arrays")


class Numba:
    """Numba's arrays on a device."""

    name, writable = "numba", True

    def __init__(self) -> None:
        self.cuda = module("numba.cuda")
        if not self.cuda.is_available():
            raise NotAsked("numba sees no device")
        self._stream: Any = 0
        self._held: list[Array] = []

    def array(self, data: Array) -> Any:
        return self.cuda.to_device(np.array(data, order="C"), stream=self._stream)

    def host(self, one: Any) -> Array:
        self.cuda.synchronize()
        self._held.clear()
        if one.size == 0:
            return np.empty(one.shape, one.dtype)
        return np.asarray(one.copy_to_host())

    def pointer(self, one: Any) -> int:
        return int(one.__cuda_array_interface__["data"][0])

    def copied(self, one: Any) -> Any:
        there = self.cuda.device_array(one.shape, one.dtype, stream=self._stream)
        there.copy_to_device(one, stream=self._stream)
        return there

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        return {"as_cuda_array": self.cuda.as_cuda_array}

    def seen(self, one: Any, how: str) -> Any:
        try:
            return SEEN[how](one)
        except Exception as why:  # which views there are varies with its versions
            raise NotAsked(f"numba has no such view: {why}") from None

    @contextmanager
    def aside(self) -> Iterator[Any]:
        self._stream = self.cuda.stream()
        try:
            yield self._stream
        finally:
            self._stream = 0

    def late(self, one: Any, value: float) -> None:
        if not self._stream:
            raise NotAsked("numba does not say what it queues where no stream is named")
        pinned = self.cuda.pinned_array(1 << 25, one.dtype)
        pinned[:] = value
        there = self.cuda.device_array(pinned.shape, pinned.dtype, stream=self._stream)
        for _ in range(ROUNDS):
            there.copy_to_device(pinned, stream=self._stream)
        one.copy_to_device(there[: one.size], stream=self._stream)
        self._held.append(pinned)  # until it has been copied

    def repeated(self, one: Any) -> Any:
        raise NotAsked("numba has no such arrays")

    def between(self) -> Sequence[Any]:
        raise NotAsked("numba has no such arrays")


class Jax:
    """JAX, whose arrays nobody may write."""

    name, writable = "jax", False

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes it all
        self.jax, self.dlpack = module("jax"), module("jax.dlpack")
        self.jax.config.update("jax_enable_x64", True)
        try:
            self.device = self.jax.devices("gpu")[0]
        except RuntimeError:
            raise NotAsked("jax sees no device") from None

    def array(self, data: Array) -> Any:
        return self.jax.device_put(data, self.device).block_until_ready()

    def host(self, one: Any) -> Array:
        return np.asarray(one)

    def pointer(self, one: Any) -> int:
        return int(one.unsafe_buffer_pointer())

    def copied(self, one: Any) -> Any:
        return one + 0

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        return {"from_dlpack": self.dlpack.from_dlpack}

    def seen(self, one: Any, how: str) -> Any:
        raise NotAsked("jax has no views")

    def aside(self) -> AbstractContextManager[Any]:
        raise NotAsked("jax has no streams for others")

    def late(self, one: Any, value: float) -> None:
        raise NotAsked("arrays of jax are not written")

    def repeated(self, one: Any) -> Any:
        raise NotAsked("jax has no views")

    def between(self) -> Sequence[Any]:
        raise NotAsked("jax has no such arrays")


PACKAGES: Mapping[str, Callable[[], Package]] = {
    "cupy": CuPy, "torch": Torch, "numba": Numba, "jax": Jax,
}  # fmt: skip
