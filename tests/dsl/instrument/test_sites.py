"""Sites and layouts."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.dsl.instrument import sites as s
from plusequals.dsl.instrument.sites import Column, Layout
from plusequals.lowering.ir import dtypes

from ..tracing.functions import CALLS


def test_rows_are_as_wide_as_the_most_symbols_need() -> None:
    function, make = CALLS["triangle"]
    with pe.trace() as trace:
        function(*make())
    layout = trace.runs[0].layout
    assert layout.width == s.FIRST_SYMBOL + 2 == trace.runs[0].table.shape[1]
    assert Layout(()).width == s.FIRST_SYMBOL
    assert [site.number for site in layout.sites] == list(range(len(layout.sites)))


def test_cells_of_a_point_do_not_overlap() -> None:
    function, make = CALLS["kinds"]
    with pe.trace() as trace:
        function(*make())
    for site in trace.runs[0].layout.sites:
        floats, ints = [], []
        for column in site.columns:
            cells = [column.position + n for n in range(1 + (column.dtype.kind == "c"))]
            (floats if column.is_float else ints).extend(cells)
        assert sorted(floats) == list(range(site.floats))
        assert len(set(ints)) == len(ints) and max(ints, default=-1) < max(site.ints, 1)


def test_floats_and_complex_numbers_are_kept_as_floats() -> None:
    kinds = {name: Column("after", None, dtypes.BY_NAME[name], 0).is_float
             for name in ("float16", "complex64", "int8", "bool", "uint64")}  # fmt: skip
    assert [name for name, is_float in kinds.items() if is_float] == ["float16", "complex64"]
    assert np.dtype(np.float64).itemsize == 8
