"""Which driver is used, and what is said where there is none."""

from __future__ import annotations

import warnings

import pytest

from plusequals.backends.cuda import driver
from plusequals.backends.gpu.driver_protocol import Driver, DriverMissing

from .on_cpu import CpuDriver


def absent() -> Driver:
    warnings.warn("your CUDA headers are of another version", stacklevel=1)
    raise ImportError("libcuda.so.1: cannot open shared object file\nand more")


def empty() -> Driver:
    return CpuDriver(devices=0)


def there() -> Driver:
    return CpuDriver()


def test_the_first_that_finds_a_device_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "DRIVERS", (("one", absent), ("two", empty), ("three", there)))
    assert driver.find_driver().count() == 2


def test_where_there_is_none_all_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "DRIVERS", (("one", absent), ("two", empty)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DriverMissing) as caught:
            driver.find_driver()
    expected = "one: libcuda.so.1: cannot open shared object file; fibres finds no device"
    assert str(caught.value) == expected


def test_probing_this_machine_ends_in_a_driver_or_in_a_reason() -> None:
    try:
        assert driver.find_driver().count() > 0
    except DriverMissing as why:
        assert "pycuda" in str(why)
        assert "cuda.bindings" in str(why)
