"""Element types against NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.dtypes import ALL, DType, bfloat16, from_numpy, is_weaker, promote

IN_NUMPY = [dtype for dtype in ALL if dtype is not bfloat16]


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_numpy_dtype_and_sizes_agree(dtype: DType) -> None:
    assert from_numpy(dtype.numpy) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize
    assert dtypes.BY_NAME[dtype.name] is dtypes.BY_SHORT[dtype.short] is dtype
    if dtype is not bfloat16:
        assert dtype.numpy.kind == dtype.kind


@pytest.mark.parametrize(("left", "right"), [*itertools.product(IN_NUMPY, IN_NUMPY)])
def test_promotion_is_numpys(left: DType, right: DType) -> None:
    assert promote(left, right).numpy == np.promote_types(left.numpy, right.numpy)


@pytest.mark.parametrize("other", ALL, ids=repr)
def test_bfloat16_promotes_the_same_from_both_sides(other: DType) -> None:
    both = promote(bfloat16, other)
    assert both is promote(other, bfloat16)
    assert both.kind in "fc"
    assert both.bits >= other.bits or other.kind in "iu"


@pytest.mark.parametrize("dtype", IN_NUMPY, ids=repr)
def test_sums_widen_as_numpys(dtype: DType) -> None:
    assert dtype.summed.numpy == np.zeros(1, dtype.numpy).sum().dtype


@pytest.mark.parametrize(
    ("dtype", "compute", "real"),
    [
        (dtypes.float16, dtypes.float32, dtypes.float16),
        (bfloat16, dtypes.float32, bfloat16),
        (dtypes.complex64, dtypes.complex64, dtypes.float32),
        (dtypes.complex128, dtypes.complex128, dtypes.float64),
        (dtypes.int8, dtypes.int8, dtypes.int8),
    ],
)
def test_compute_and_real_types(dtype: DType, compute: DType, real: DType) -> None:
    assert (dtype.compute, dtype.real) == (compute, real)


@pytest.mark.parametrize("foreign", ["S3", "datetime64[s]", "longdouble", object, "no such type"])
def test_foreign_types_are_none(foreign: object) -> None:
    assert from_numpy(foreign) is None


def test_weak_scalars_adapt_to_their_kind_or_a_higher_one() -> None:
    ranks = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    for weak, strong in itertools.product(ranks, ranks):
        assert is_weaker(weak, strong) == (ranks[weak] <= ranks[strong])
