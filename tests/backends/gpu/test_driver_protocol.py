"""What copies are given."""

import ml_dtypes
import numpy as np
import pytest

from plusequals.backends.gpu.driver_protocol import Properties, bytes_of


@pytest.mark.parametrize("dtype", [np.float64, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_bytes_are_those_of_the_array(dtype: type) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    data = bytes_of(array)
    assert data.tobytes() == array.tobytes()
    data[:] = 0
    assert not array.any()


def test_bytes_of_a_scalar_and_of_nothing() -> None:
    assert bytes_of(np.array(1.5)).nbytes == 8
    assert bytes_of(np.empty((0, 3))).nbytes == 0


def test_code_is_compiled_for_the_architecture() -> None:
    assert Properties("H100", (9, 0), 132, 80 << 30).target == "sm_90"
    assert Properties("B200", (10, 0), 148, 180 << 30).target == "sm_100"
    assert Properties("H100", (9, 0), 132, 80 << 30).target_of(specific=True) == "sm_90a"
    assert Properties("H100", (9, 0), 132, 80 << 30).target_of(specific=False) == "sm_90"
