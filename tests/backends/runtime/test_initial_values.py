"""What a tensor begins with: NumPy's broadcasting, and errors of the family for what makes none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError


@pytest.mark.parametrize(
    ("shape", "options", "kind", "message"),
    [
        ((-1,), {}, ValueError, r"CD0860.: tensor `t` cannot be made: its shape \(-1,\) has a neg"),
        (-1, {}, ValueError, "CD0860.*negative"),
        ("ab", {}, TypeError, "CD0860.*'ab' is not made of whole numbers"),
        ((2.5,), {}, TypeError, "CD0860"),
        (None, {}, TypeError, "CD0860"),
        ((2,), {"dtype": "float33"}, TypeError, "CD0860.*'float33'\n.*did you mean `float32`"),
        ((2,), {"init": [1, 2, 3]}, ValueError, r"CD0860.*float32 elements of shape \(2,\)"),
        ((2,), {"init": lambda shape: np.ones(3)}, ValueError, "CD0860"),
        ((2,), {"init": 1j}, TypeError, "CD0860"),
        ((2,), {"init": "ab"}, ValueError, "CD0860"),
        ((10**30,), {}, ValueError, "CD0860.*more elements"),
        ((10**12, 10**8), {}, ValueError, "CD0860.*more elements"),
        ((2,), {"dtype": object}, TypeError, "CD0701"),
    ],
)
def test_what_makes_no_tensor(shape: Any, options: Any, kind: type, message: str) -> None:
    with pytest.raises(CdError, match=message) as caught:
        pe.tensor("t", shape, **options)
    assert isinstance(caught.value, kind)


def test_what_makes_one() -> None:
    assert pe.tensor("t", np.int64(3)).shape == (3,)
    assert pe.tensor("t", (), init=2).numpy() == 2
    filled = pe.tensor("t", [2, 3], "i4", init=[1, 2, 3])
    assert filled.numpy().tolist() == [[1, 2, 3]] * 2
    assert pe.tensor("t", (2, 0), init=np.ones).shape == (2, 0)
