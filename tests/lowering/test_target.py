"""A target counts its lanes."""

from plusequals.lowering.target import Target


def test_lanes_are_at_least_one() -> None:
    assert Target(vector_bits=512).lanes(32) == 16
    assert Target(vector_bits=64).lanes(128) == 1
