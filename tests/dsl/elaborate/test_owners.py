"""The owner of a method is found from the method, in each call anew."""

from __future__ import annotations

import functools

import numpy as np

from plusequals import cd


class Scale:
    def __init__(self, rate: float, w: float) -> None:
        self.rate, self.w, self.other = rate, np.full(2, w), self.times

    def times(self, x):
        return x * self.rate + self.w

    @cd(backend="numpy")
    def step(self, x):
        return self.other(x)


def test_a_method_of_another_object_is_that_objects() -> None:
    x = np.ones(2)
    one, two = Scale(2.0, 1.0), Scale(2.0, 5.0)
    assert one.step(x).tolist() == [3.0, 3.0] and two.step(x).tolist() == [7.0, 7.0]
    form = Scale.step.specialise(one, x)
    one.other = two.times
    assert one.step(x).tolist() == [7.0, 7.0]
    assert Scale.step.specialise(one, x) is form
    one.other = Scale(3.0, 0.0).times
    assert one.step(x).tolist() == [3.0, 3.0]


def test_what_no_path_leads_to_is_the_very_object() -> None:
    @cd(backend="numpy")
    def f(g, x):
        return g(x)

    x = np.ones(2)
    for rate, w in ((2.0, 1.0), (2.0, 5.0)):
        part = functools.partial(Scale(rate, w).times)
        assert f(part, x).tolist() == [rate + w] * 2
