"""Attributes of arrays."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same

from ...elaborate.numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "x[x > 0].size",
    "x.shape",
    "x.ndim",
    "x.size",
    "x.nbytes",
    "x.dtype == np.float64",
    "np.sum(x, dtype=x.dtype)",
    "tuple(x.shape), list(x.shape)",
    "x.dtype.name",
    "x.dtype.itemsize, x.itemsize",
    "np.shape(x), np.ndim(x), np.size(x)",
    "np.isscalar(s)",
    "np.iscomplexobj(z), np.isrealobj(x)",
    "np.result_type(x, y) == np.float64",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


class _Line(NamedTuple):
    slope: Any
    start: Any = 1.0


def test_a_named_tuple_is_read_by_its_fields() -> None:
    f = pe.cd_from_source("def f(x, p):\n    q = p\n    return x * q.slope + p.start, len(p), p[1]")
    for slope in (2.0, np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.ones((3, 2))):
        got, size, start = f(np.ones(2), _Line(slope))
        assert_same(got, np.ones(2) * slope + 1.0)
        assert (size, start) == (2, 1.0)


def test_a_field_of_a_named_tuple_can_be_written_into() -> None:
    line = _Line(np.zeros(2))
    pe.cd_from_source("def f(p):\n    p.slope[0] = 7.0\n")(line)
    assert line.slope.tolist() == [7.0, 0.0]


def test_named_tuples_with_other_fields_are_other_arguments() -> None:
    f = pe.cd_from_source("def f(p):\n    return p.a\n")
    one, two = namedtuple("One", "a b"), namedtuple("Two", "b a")
    assert (f(one(1.0, 2.0)), f(two(1.0, 2.0))) == (1.0, 2.0)


def test_joined_with_others_a_named_tuple_is_a_tuple() -> None:
    with pytest.raises(pe.CdError, match="CD0414"):
        pe.cd_from_source("def f(p):\n    return (p + (1.0,)).slope\n")(_Line(1.0))


@pytest.mark.parametrize(("name", "help"), [("slop", "`slope`"), ("_asdict()", "its methods")])
def test_what_a_named_tuple_has_not_is_refused(name: str, help: str) -> None:
    with pytest.raises(pe.CdError, match="CD0414.*slope, start has no") as caught:
        pe.cd_from_source(f"def f(p):\n    return p.{name}\n")(_Line(1.0))
    assert help in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"), [((1, 2), "a tuple"), ([], "a list"), ([np.arange(3)] * 2, "a list")]
)
def test_tuples_and_lists_have_no_methods_of_arrays(given: Any, said: str) -> None:
    with pytest.raises(pe.CdError, match=f"CD0414.*{said} has no attribute `sum`") as caught:
        pe.cd_from_source("def f(x):\n    return x.sum()\n")(given)
    assert "np.array" in str(caught.value)
