"""Other libraries on the same device; each is left out, with its reason, where it is not there."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cell import Array, Case

from .kernels import LeftOut
from .machine import Machine, median
from .work import Measured, empty


@dataclass(frozen=True, slots=True)
class Ready:
    """A call of a library whose arguments are on the device, and how to read what it gives."""

    call: Callable[[], object]
    results: Callable[[object], list[Array]]
    seconds: Callable[[Machine, Callable[[], object]], float] = median
    """How it is timed: by events of the device, unless the library has streams of its own."""


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as why:  # what a package raises where its parts do not fit varies
        raise LeftOut(f"{name} cannot be imported: {first_line(why)}") from None


def first_line(why: BaseException) -> str:
    """Return what an error says, in one line."""
    return (str(why).strip().splitlines() or [type(why).__name__])[0][:100]


def torch_eager(what: Measured, case: Case) -> Ready:
    """Return PyTorch's own functions, called one by one."""
    return _torch(what, case, False)


def torch_compiled(what: Measured, case: Case) -> Ready:
    """Return PyTorch's functions as one compiled graph."""
    return _torch(what, case, True)


def _torch(what: Measured, case: Case, compiled: bool) -> Ready:
    torch = _module("torch")
    if not torch.cuda.is_available():
        raise LeftOut("this PyTorch has no CUDA")
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = what.tf32
    functions = what.functions("torch")
    tensors = [_tensor(torch, array) for array in (*empty(case), *case.inputs)]
    layout = getattr(functions, f"layout_{what.called}", list)
    arguments = (*layout(tensors), *case.numbers)
    function = getattr(functions, what.called)
    if compiled:
        plain = getattr(functions, f"compiled_{what.called}", function)
        function = torch.compile(plain, dynamic=False, fullgraph=True)
    outputs = arguments[: len(case.results)]
    return Ready(
        lambda: function(*arguments),
        lambda found: [_array(torch, one) for one in _several(found, outputs)],
    )


def _tensor(torch: Any, array: Array) -> Any:
    """Return an array on the device; PyTorch takes those of bfloat16 by their bits."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).cuda()
    return torch.from_numpy(array).cuda()


def _array(torch: Any, tensor: Any) -> Array:
    """Return a tensor of the device as an array, of float32 where NumPy has no such type."""
    wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    found: Array = wide.cpu().numpy()
    return found


def triton(what: Measured, case: Case) -> Ready:
    """Return kernels of Triton, for what `on_triton` has one of."""
    _module("triton")
    torch, kernels = _module("torch"), _module(f"{__package__}.on_triton")
    if not hasattr(kernels, what.triton):
        raise LeftOut("there is no kernel of it")
    tensors = [_tensor(torch, array) for array in (*empty(case), *case.inputs)]
    arguments, outputs = (*tensors, *case.numbers), tensors[: len(case.results)]
    return Ready(
        lambda: getattr(kernels, what.triton)(*arguments),
        lambda found: [_array(torch, one) for one in outputs],
    )


def cupy(what: Measured, case: Case) -> Ready:
    """Return the NumPy functions on arrays of CuPy."""
    if what.tf32:
        raise LeftOut("it multiplies by tensor cores only where its environment says so")
    library = _module("cupy")
    function = getattr(what.functions("numpy"), what.called)
    arrays = [library.asarray(array) for array in (*empty(case), *case.inputs)]
    arguments = (*arrays, *case.numbers)
    outputs = arrays[: len(case.results)]
    return Ready(
        lambda: function(*arguments),
        lambda found: [library.asnumpy(one) for one in _several(found, outputs)],
    )


def jax(what: Measured, case: Case) -> Ready:
    """Return JAX's compiled functions; its streams are its own, so the host's clock is taken."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # it would take most memory
    library = _module("jax")
    if all(device.platform == "cpu" for device in library.devices()):
        raise LeftOut("this JAX has no CUDA")
    precision = "tensorfloat32" if what.tf32 else "highest"
    library.config.update("jax_default_matmul_precision", precision)
    static = [
        len(case.inputs) + at for at, one in enumerate(case.numbers) if isinstance(one, int)
    ]  # fmt: skip
    function = library.jit(getattr(what.functions("jax"), what.called), static_argnums=static)
    arguments = (*map(library.numpy.asarray, case.inputs), *case.numbers)
    return Ready(
        lambda: library.block_until_ready(function(*arguments)),
        lambda found: [np.asarray(one) for one in _several(found, ())],
        lambda machine, call: host_median(call),
    )


def host_median(call: Callable[[], object], budget: float = 0.5) -> float:
    """Return the median of what calls take by the clock of the host."""
    found, ends = [], time.monotonic() + budget
    while len(found) < 7 or (len(found) < 200 and time.monotonic() < ends):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return float(np.median(found[2:]))


def _several(found: object, outputs: Sequence[Any]) -> Sequence[Any]:
    if found is None:
        return outputs
    return found if isinstance(found, tuple | list) else (found,)


PEERS: dict[str, Callable[[Measured, Case], Ready]] = {
    "PyTorch": torch_eager, "PyTorch compiled": torch_compiled, "Triton": triton,
    "CuPy": cupy, "JAX": jax,
}  # fmt: skip
