"""Capsules: what is read is what was written, and nobody is kept alive too long or let go early."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plusequals.backends.device_arrays import dlpack
from plusequals.backends.device_arrays.device_array import CPU, c_strides
from plusequals.lowering.ir import dtypes

PLAIN = [dtype for dtype in dtypes.ALL if dtype.name != "bfloat16"]


class Lent:
    """An array of the host that is given by our own capsules."""

    def __init__(self, array: Any, read_only: bool = False) -> None:
        self.array, self.read_only = array, read_only

    def __dlpack__(self, **_: Any) -> Any:
        array = self.array
        strides = tuple(step // array.itemsize for step in array.strides)
        return dlpack.export_array(
            self, array.ctypes.data, (CPU, 0), array.shape, strides, array.dtype, self.read_only
        )  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


@pytest.mark.parametrize("dtype", PLAIN, ids=lambda dtype: dtype.name)
def test_numpy_reads_what_we_make(dtype: Any) -> None:
    array = np.arange(6).astype(dtype.numpy).reshape(2, 3)
    for one in (array, array[:, ::2], array[:0], np.array(array[1, 1])):
        got = np.from_dlpack(Lent(one))
        assert got.dtype == one.dtype
        assert np.array_equal(got, one)


@pytest.mark.parametrize("dtype", PLAIN, ids=lambda dtype: dtype.name)
def test_we_read_what_numpy_makes(dtype: Any) -> None:
    array = np.arange(12).astype(dtype.numpy).reshape(3, 4)
    taken = dlpack.import_array(array[::2], None)
    assert (taken.address, taken.shape) == (array.ctypes.data, (2, 4))
    assert taken.strides == (8, 1)
    assert taken.device == (CPU, 0)
    assert taken.dtype == array.dtype
    assert taken.writable


def test_finalizers_of_what_goes_with_an_array_may_read_it() -> None:
    said: list[float] = []
    array = np.arange(3.0)
    gone = weakref.ref(array)

    class Holder:
        """One of a circle that holds what was taken."""

        def __init__(self, given: Any) -> None:
            self.taken, self.itself = given, self

        def __del__(self) -> None:
            assert gone() is not None, "nobody has let go of it"
            said.append(float(np.ctypeslib.as_array(
                (ctypes.c_double * 3).from_address(self.taken.address))[2]))  # fmt: skip

    Holder(dlpack.import_array(Lent(array), None))
    del array
    gc.collect()
    assert said == [2.0]
    assert gone() is None


def test_what_is_read_only_stays_so() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    assert not dlpack.import_array(array, None).writable


def test_what_we_make_read_only_stays_so() -> None:
    array = np.arange(6.0).reshape(2, 3)[:, 1:]
    got, taken = np.from_dlpack(Lent(array, True)), dlpack.import_array(Lent(array, True), None)
    assert np.array_equal(got, array) and not got.flags.writeable and not taken.writable
    assert (taken.address, taken.shape, taken.strides) == (array.ctypes.data, (2, 2), (3, 1))
    assert dlpack.import_array(Lent(array), None).writable


def test_bfloat16_has_a_kind_of_its_own() -> None:
    array = np.arange(4).astype(ml_dtypes.bfloat16)
    assert dlpack.import_array(Lent(array), None).dtype == array.dtype


@pytest.mark.parametrize("read_only", [False, True])
def test_owners_live_as_long_as_readers(read_only: bool) -> None:
    lent = Lent(np.arange(5.0), read_only)
    alive = weakref.ref(lent)
    got = np.from_dlpack(lent)
    taken = dlpack.import_array(lent, None)
    del lent
    gc.collect()
    assert alive() is not None
    del got
    gc.collect()
    assert alive() is not None
    del taken
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("read_only", [False, True])
def test_a_capsule_that_nobody_reads_lets_go(read_only: bool) -> None:
    lent = Lent(np.arange(5.0), read_only)
    alive, capsule = weakref.ref(lent), lent.__dlpack__()
    del lent
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_capsule_is_read_once() -> None:
    capsule = Lent(np.arange(5.0)).__dlpack__()

    class Given:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

    assert dlpack.import_array(Given(), None).shape == (5,)
    with pytest.raises(BufferError, match="no capsule"):
        dlpack.import_array(Given(), None)


def test_types_that_are_not_ours_are_refused() -> None:
    with pytest.raises(BufferError, match="elements of 4 bits and kind 0"):
        dlpack._element_type(0, 4, 1)
    with pytest.raises(BufferError):
        dlpack._element_type(2, 32, 4)


def test_strides_of_c_order() -> None:
    assert c_strides((2, 3, 4)) == (12, 4, 1)
    assert c_strides(()) == ()
