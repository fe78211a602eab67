"""Which floating-point modes are default ones, and that these hold inside."""

from __future__ import annotations

import pytest

from plusequals.base import float_modes
from tests.modes import IS_KNOWN, MODES, mode, now

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="the layout of `fenv_t` is not known here")


@pytest.mark.parametrize("name", MODES)
def test_other_modes_are_seen_and_are_back_after_an_error(name: str) -> None:
    assert float_modes.are_default()
    with mode(name) as set_to:
        assert not float_modes.are_default()
        with pytest.raises(ValueError, match="here"), float_modes.default():
            assert float_modes.are_default()
            raise ValueError("here")
        assert now() == set_to
    assert float_modes.are_default()


def test_it_decorates() -> None:
    @float_modes.default()
    def least() -> float:
        return smallest * 0.5

    smallest = 2.0**-1022
    with mode("flushed"):
        assert smallest * 0.5 == 0.0
        found = least()
    assert found.hex() == "0x0.8000000000000p-1022"
