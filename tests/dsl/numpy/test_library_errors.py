"""What is wrong in the text of a library function is told of the user's call of it."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError


@pytest.mark.parametrize(
    "call",
    ["np.block([[x], [np.ones(3)]])", "np.hanning(x)", "np.blackman(x)", "np.unwrap(x * 1j)"],
)
def test_the_place_is_the_users_line(call: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return {call}\n", {"np": np}, backend="numpy")
    with pytest.raises(CdError) as caught:
        f(np.ones(4))
    text = str(caught.value)
    assert "--> <text>:2:12" in text and call in text and "<library>" not in text
