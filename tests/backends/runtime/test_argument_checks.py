"""What transfers are given: fields and tensors, contexts and routines, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.runtime.argument_checks import expect_merge, field_of


def routine(p: pe.Tensor) -> pe.Routine:
    merge = pe.cd_from_source("def merge(p):\n    p.grad += p.grad.merge\n").compile(p)
    return merge.link(pe.device("numpy").stream().context())


def test_a_tensor_stands_for_its_value() -> None:
    p = pe.tensor("p", 2)
    assert field_of(p) is p.value and field_of(p.grad) is p.grad


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda r, p: r.context.from_host("p"), "about a field, and is given a str"),
        (lambda r, p: r.context.to_host(None), "about a field, and is given a NoneType"),
        (lambda r, p: r.context.copy_from(r, p), "about a context, and is given a Routine"),
        (lambda r, p: r.context.merge_into(r.context, p.grad), "routine, and is given a Context"),
        (lambda r, p: r.merge_from_host(3), "about a field, and is given a int"),
    ],
)
def test_anything_else_is_refused(use: Callable[[Any, Any], object], says: str) -> None:
    p = pe.tensor("p", 2)
    with pytest.raises(TypeError, match=f"CD0852.*{says}"):
        use(routine(p), p)


def test_a_routine_merges_one_field() -> None:
    p = pe.tensor("p", 2)
    expect_merge(routine(p), p.grad)
    with pytest.raises(ValueError, match="CD0844"):
        expect_merge(routine(p), p.value)
