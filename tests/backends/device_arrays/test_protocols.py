"""What is looked at as an array on a device, and what is not even asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plusequals.backends.device_arrays.protocols import may_be_device_array


class Shares:
    @property
    def __cuda_array_interface__(self) -> Any:
        raise AssertionError("nobody may read it to find out")


class ByCapsules:
    def __dlpack_device__(self) -> tuple[int, int]:
        raise AssertionError("nobody may call it to find out")


class Anything:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError("nobody may ask it")


@pytest.mark.parametrize("value", [Shares(), ByCapsules()])
def test_types_that_share(value: object) -> None:
    assert may_be_device_array(value)


@pytest.mark.parametrize(
    "value",
    [np.ones(3), np.float32(1), 2, 2.5, None, "x",
     SimpleNamespace(__cuda_array_interface__={})],
)  # fmt: skip
def test_what_is_of_the_host(value: object) -> None:
    assert not may_be_device_array(value)


def test_nobody_asks_an_object_itself() -> None:
    assert not may_be_device_array(Anything())
