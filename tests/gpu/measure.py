"""The benchmark on a device: results are checked, then timed, beside other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.cell import Array, Case, wrong
from benchmarks.table import NOTHING, seconds
from plusequals.backends.cuda.nvrtc import Compiler
from plusequals.base import settings

from .kernels import LeftOut, prepared
from .machine import Machine, median
from .peers import Ready, first_line
from .work import Mark, Measured, empty

BEGIN, END = "<!-- device: begin -->", "<!-- device: end -->"
COPIED = 1 << 29
"""Bytes that are copied to see how fast a device copies."""
Peer = Callable[[Measured, Case], Ready]


@dataclass(slots=True)
class Row:
    """One cell: the times of all, and why there is none."""

    name: str
    mark: Mark
    bytes: float
    flops: float
    ours: float | None = None
    others: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> float | None:
        """The time of the fastest other library."""
        return min(self.others.values(), default=None)


def copy_rate(machine: Machine, size: int = COPIED) -> float:
    """Return how many bytes a second a copy within the device reads and writes."""
    source, target = machine.allocate(size), machine.allocate(size)
    try:
        machine.clear(source, size)
        took = median(machine, lambda: machine.copy(target, source, size))
    finally:
        machine.free(source)
        machine.free(target)
    return 2 * size / took


def rows(
    machine: Machine, compiler: Compiler, cells: Sequence[Measured], peers: Mapping[str, Peer],
    is_small: bool = False,
) -> Iterator[Row]:  # fmt: skip
    """Yield what is measured of each cell."""
    for what in cells:
        cell = what.cell(is_small)
        case = what.workload.case(cell.size)
        right = what.workload.right(case)
        row = Row(cell.name, what.mark, cell.traffic(case), cell.flops)
        try:
            row.ours = ours(machine, compiler, what, case, right)
        except Exception as why:  # a cell that fails is a line of the table, not the end of it
            row.why["plusequals"] = first_line(why)
        for name, peer in peers.items():
            try:
                row.others[name] = theirs(machine, peer, what, case, right)
            except Exception as why:  # so is another library that does
                row.why[name] = first_line(why)
        yield row


def ours(
    machine: Machine, compiler: Compiler, what: Measured, case: Case, right: tuple[Array, ...]
) -> float:
    """Return the seconds of plusequals; raises LeftOut where its results are wrong."""
    outputs = empty(case)
    function = getattr(what.functions("plusequals"), what.called)
    with settings.override(tf32=what.tf32):
        made = prepared(function, (*outputs, *case.inputs, *case.numbers), machine, compiler)
    try:
        made.run()
        names = list(made_names(function))[: len(outputs)]
        _require(tuple(made.outputs(outputs, names)), right, what)
        return median(machine, made.run)
    finally:
        made.free()


def made_names(function: Callable[..., object]) -> Sequence[str]:
    """Return the names of the parameters of a `@cd` function."""
    plain = getattr(function, "__wrapped__", function)
    code = plain.__code__
    return list(code.co_varnames[: code.co_argcount])


def theirs(
    machine: Machine, peer: Peer, what: Measured, case: Case, right: tuple[Array, ...]
) -> float:
    """Return the seconds of a library; raises LeftOut where it cannot be run, or is wrong."""
    ready = peer(what, case)
    _require(tuple(ready.results(ready.call())), right, what)
    return ready.seconds(machine, ready.call)


def _require(found: tuple[Array, ...], right: tuple[Array, ...], what: Measured) -> None:
    problem = wrong(found, right, what.workload.tolerance)
    if problem is not None:
        raise LeftOut(f"wrong: {problem}")


# ------------------------------------------------------------------------------- the page


def table(found: Sequence[Row], rate: float, peers: Sequence[str]) -> str:
    """Return rows as a table of Markdown; `rate` is that of a copy, in bytes a second."""
    head = ["cell", "plusequals", "rate", "of a copy", *peers, "over the best"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in found:
        mine, best = row.ours, row.best
        moved = "" if mine is None or row.mark != "bytes" else f"{row.bytes / mine / rate:.2f}"
        ratio = NOTHING if mine is None or best is None else f"{mine / best:.2f}"
        times = [seconds(row.others[name]) if name in row.others else NOTHING for name in peers]
        lines.append(_line([
            f"`{row.name}`", NOTHING if mine is None else seconds(mine), _rate(row), moved, *times,
            ratio,
        ]))  # fmt: skip
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in found:
        for peer, why in row.why.items():
            reasons.setdefault((peer, why), []).append(f"`{row.name}`")
    said = [
        f"* {peer}{'' if 1 < len(names) == len(found) else ', ' + ', '.join(names)}: {why}"
        for (peer, why), names in reasons.items()
    ]
    return "\n".join([*lines, *(["", "Not measured:", "", *said] if said else [])])


def _rate(row: Row) -> str:
    if row.ours is None:
        return NOTHING
    if row.mark == "bytes":
        return f"{row.bytes / row.ours / 1e9:,.0f} GB/s"
    return f"{row.flops / row.ours / 1e12:.1f} TFLOP/s"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def into(page: str, text: str) -> str:
    """Return a page with what stands between the marks replaced; raises ValueError without."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{rest.split(END)[1]}"
