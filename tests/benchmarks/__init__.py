"""Tests of the benchmarks: what they compute, measure and write. None of them asserts a time."""
