"""Selection of the driver API: PyCUDA where it is installed, else `cuda.bindings`.

They are probed on first use of a device. A missing package, driver library or device is reported
as a sentence, which `pe.backends()` and errors show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..gpu.driver_protocol import Driver, DriverMissing
from .driver_bindings import Bindings
from .driver_pycuda import PyCuda

DRIVERS: tuple[tuple[str, Callable[[], Driver]], ...] = (
    ("pycuda", PyCuda),
    ("cuda.bindings", Bindings),
)


def find_driver() -> Driver:
    """Return the driver to use; raises Missing with the reason of each candidate."""
    reasons = []
    for package, make in DRIVERS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyCUDA warns of versions without a driver
                driver = make()
                if driver.count() > 0:
                    return driver
            reasons.append(f"{driver.name} finds no device")
        except Exception as why:  # packages raise various errors where something is missing
            reasons.append(f"{package}: {_first_line(why)}")
    raise DriverMissing("; ".join(reasons))


def _first_line(why: Exception) -> str:
    return (str(why).strip().splitlines() or [type(why).__name__])[0]
