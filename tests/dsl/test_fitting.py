"""Floats that do not fit the integer type that they are cast to; test_checked.py has the rest."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

_CASTS = [
    ("f8", "i4", [-(2.0**31) - 0.9, -0.9, 2.0**31 - 0.1], [1e20, np.nan, -3e9, 2.0**31]),
    ("f8", "i4", [], [-(2.0**31) - 1, -np.inf]),
    ("f8", "i8", [-(2.0**63), 2.0**63 - 1024], [2.0**63, -(2.0**63) - 2048, np.nan]),
    ("f8", "u8", [-0.5, 2.0**64 - 2048], [-1.0, 2.0**64]),
    ("f4", "i4", [-(2.0**31), 2.0**31 - 128], [2.0**31, -(2.0**31) - 256]),
    ("f4", "u1", [-0.5, 255.5], [256.0, -1.0, np.inf]),
    ("f2", "i2", [-32768.0], [32768.0, np.nan]),
    ("c16", "i1", [127.5 + 300j], [128.0 + 0j]),
]


@pytest.mark.parametrize(("given", "to", "fitting", "others"), _CASTS)
def test_floats_that_are_no_integers_of_the_type(
    given: str, to: str, fitting: list[float], others: list[float], backend: str
) -> None:
    function = pe.cd_from_source(f"def f(a):\n    return a.astype('{to}')", backend=backend)
    plain = function(np.array(others, given)).tolist()
    with pe.checked(overflow=True):
        found = function(np.array(fitting, given)).tolist()
        assert found == [int(np.real(value)) for value in fitting]
        for value in others:
            with pytest.raises(ValueError, match="CD0766.*a float has no place"):
                function(np.array([value], given))
    assert len(plain) == len(others), "without checked mode each becomes something"
