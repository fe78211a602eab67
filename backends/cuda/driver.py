"""The driver that is used: PyCUDA where it is installed, else `cuda.bindings`, else why none.

They are probed when a device is first asked for. What is missing - a package, the driver's
library, a device - is a sentence, which `pe.backends()` and errors show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..gpu.driver_protocol import Driver, Missing
from .driver_bindings import Bindings
from .driver_pycuda import PyCuda

WAYS: tuple[tuple[str, Callable[[], Driver]], ...] = (
    ("pycuda", PyCuda),
    ("cuda.bindings", Bindings),
)


def find() -> Driver:
    """Return the driver to use; raises Missing with what each way said."""
    said = []
    for package, make in WAYS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyCUDA blames versions where there is no driver
                made = make()
                if made.count() > 0:
                    return made
            said.append(f"{made.name} finds no device")
        except Exception as why:  # what a package raises where something is missing varies
            said.append(f"{package}: {_told(why)}")
    raise Missing("; ".join(said))


def _told(why: Exception) -> str:
    return (str(why).strip().splitlines() or [type(why).__name__])[0]
