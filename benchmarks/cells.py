"""All workloads, and the cells that a run is asked for."""

from __future__ import annotations

from collections.abc import Iterable

from . import elementwise, nets, points, products, reductions, rows, stencils, tables
from .cell import Cell, Workload

WORKLOADS: tuple[Workload, ...] = (
    *elementwise.WORKLOADS,
    *rows.WORKLOADS,
    *reductions.WORKLOADS,
    *stencils.WORKLOADS,
    *products.WORKLOADS,
    *nets.WORKLOADS,
    *points.WORKLOADS,
    *tables.WORKLOADS,
)


def cell(name: str) -> Cell:
    """Return the cell of that name: `saxpy:small`. Raises KeyError."""
    return {known.name: known for known in select()}[name]


def select(names: Iterable[str] = (), sizes: Iterable[str] = ()) -> tuple[Cell, ...]:
    """Return the cells that are asked for, in the order of the list above; all without a name.

    A name is that of a workload, of a kind, or of a cell (`gemm_f32:512`); a size is its own name
    or its regime. Raises ValueError for what names nothing.
    """
    names, sizes = tuple(names), tuple(sizes)
    every = [Cell(work, size) for work in WORKLOADS for size in work.sizes]
    for asked in names:
        if not any(asked in _names(cell) for cell in every):
            known = ", ".join(work.name for work in WORKLOADS)
            raise ValueError(f"there is no workload `{asked}`; there are {known}")
    for asked in sizes:
        if not any(asked in (cell.size.name, cell.size.regime) for cell in every):
            raise ValueError(f"there is no size `{asked}`; there are small, medium and large")
    return tuple(
        cell
        for cell in every
        if not names or any(name in _names(cell) for name in names)
        if not sizes or {cell.size.name, cell.size.regime} & set(sizes)
    )


def _names(cell: Cell) -> tuple[str, str, str]:
    return cell.workload.name, cell.workload.kind, cell.name
