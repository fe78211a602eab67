"""The pass pipeline: all passes in order, and the placement of nodes at its end.

Passes are functions from program to program, listed in one tuple; none calls another. After each,
the observer is shown the program and, where requested, the invariants are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.diagnostic import CdValueError, Diagnostic, nearest
from ..base.garbage_collector import paused
from ..base.lazy_import import later
from .analysis.conflicting_iterations import has_places
from .analysis.effects import summary
from .analysis.privatization import noted
from .cpu.checks.blocked import checks, in_blocks
from .cpu.checks.fused import beside
from .cpu.checks.rollback import undo
from .cpu.deferred_accumulation import defer, deferred, put_off, sums_put_off
from .cpu.delinearize import periods
from .cpu.distribute_columns import loops_split, split
from .cpu.fma import fused_products
from .cpu.force_simd import picked
from .cpu.function_stages import in_stages, stages
from .cpu.gemm.complex_products import in_real_form, real_form
from .cpu.gemm.symmetric import mirrored, symmetric
from .cpu.gemm.tiles import in_tiles, tiles
from .cpu.masked_lanes import masked, masks
from .cpu.outer_vectorize import abreast, rounds_abreast
from .cpu.parallelize import parallel
from .cpu.peel import edges
from .cpu.private_temporaries import separate
from .cpu.privatized_arrays import in_pieces, pieces
from .cpu.reductions.arg_reduction import best, by_blocks
from .cpu.reductions.column_strips import in_strips, strips
from .cpu.reductions.early_exit import answered, until_answered
from .cpu.reductions.lanes import in_lanes, lanes
from .cpu.reductions.narrow_accumulators import in_narrow, narrow
from .cpu.reductions.row_jam import in_streams, streams
from .cpu.split_wrapped import wraps
from .cpu.time_tiling import in_time, stencil
from .cpu.transposed_tiles import in_square_tiles, transposed
from .ir.decision import Decided, Decision, Pass
from .ir.loops import If, Program
from .ir.node import Node
from .memory_requests import settle
from .passes.buffer_swap import decide_exchange, exchange
from .passes.contract_arrays import shrink, shrunk
from .passes.cse import cse
from .passes.dce import dead
from .passes.dead_stores import overwritten, zeros
from .passes.fuse import fuse, fused
from .passes.inferred_decisions import located, noticed, origins
from .passes.inline import virtualize, virtualized
from .passes.inplace import decide_inplace, inplace
from .passes.licm import hoist
from .passes.reduction_order import order
from .passes.result_values import settled
from .passes.reuse import repeated
from .passes.search_to_gather import gather
from .passes.simplify import simplify
from .passes.sink import sink, sunk
from .passes.unroll import unroll
from .placement import Placement, place
from .target import Target

if TYPE_CHECKING:
    from .cpu import complex_pairs
    from .gpu import mapping
    from .gpu import passes as device
    from .gpu.mapping import Grid
    from .passes import unguard_products
    from .transform import split_index_set
else:  # imported lazily: few programs need it
    unguard_products, complex_pairs, split_index_set = later(
        __package__, ".passes.unguard_products", ".cpu.complex_pairs", ".transform.split_index_set"
    )
    device, mapping = later(__package__, ".gpu.passes", ".gpu.mapping")

Observer = Callable[[str, Program], None]
"""Called with the name of a stage and the program after it."""


def _schedules(target: Target) -> bool:
    return target.schedule and not target.short


def _reorders(target: Target) -> bool:
    return target.schedule and target.reorders


def _has_fma(target: Target) -> bool:
    return _reorders(target) and target.fma


def _unguard_products(program: Program) -> Program:
    """Return the program with unguarded products of matrices, if it has any test."""
    body = (stmt for kernel in program.kernels for stmt in kernel.body)
    return (
        unguard_products.regardless(program)
        if any(If in summary(s).kinds for s in body)
        else program
    )


def _split_index_sets(program: Program) -> Program:
    """Return the program with the index sets of its loops split where one iteration defines what
    others use."""
    return split_index_set.in_sections(program) if has_places(program) else program


def _complex_to_pairs(program: Program) -> Program:
    """Return the program with complex numbers as pairs of real ones, if it has any."""
    is_complex = any(node.dtype.kind == "c" for node in _nodes(program))
    return complex_pairs.pairs(program) if is_complex else program


def _ignore_target(decide: Callable[[Program], Decided]) -> Callable[[Program, Target], Decided]:
    """Return the decisions of a pass as a function of program and target, which needs no target."""
    return lambda program, _: decide(program)


PASSES: tuple[Pass, ...] = (
    Pass("real form", real_form, in_real_form, _has_fma),
    Pass("order", lambda program, t: order(program, t.fma), when=_reorders),  # in program order
    Pass("unroll", lambda program, _: unroll(program)),
    Pass("simplify", lambda program, _: simplify(program), when=lambda _: True),
    Pass("regardless", lambda program, _: _unguard_products(program)),  # while guards are around
    Pass("gather", lambda program, _: gather(program)),  # before the table is inlined
    Pass("repeated", lambda program, _: repeated(program)),  # before inlining duplicates it
    Pass("overwritten", lambda program, _: overwritten(program)),
    Pass("dead", lambda program, _: dead(program)),
    Pass("virtualize", lambda program, _: virtualize(program), _ignore_target(virtualized)),
    Pass("fuse", lambda program, _: fuse(program), _ignore_target(fused)),  # the remaining nests
    Pass("sink", lambda program, _: sink(program), _ignore_target(sunk)),  # unfused sums
    Pass("shrink", lambda program, _: shrink(program), _ignore_target(shrunk)),  # after fusion
    Pass("exchange", lambda program, _: exchange(program), _ignore_target(decide_exchange)),
    Pass("inplace", lambda program, _: inplace(program), _ignore_target(decide_inplace)),
    Pass("simplify again", lambda program, _: simplify(program)),  # of operands that moves combined
    Pass("cse", lambda program, _: cse(program)),  # later passes count equal work once
    Pass("hoist", lambda program, _: hoist(program)),
    Pass("zeros", lambda program, _: zeros(program)),  # fills of what is fused by now
    Pass("dead again", lambda program, _: dead(program)),
    Pass("settled", lambda program, _: settled(program)),  # while writes are whole nests
    Pass("rounds", noted, when=_schedules),  # while every iteration writes before reading
    Pass("sections", lambda program, _: _split_index_sets(program), when=_schedules),
    Pass("pairs", lambda program, _: _complex_to_pairs(program), when=_schedules),
    Pass("masks", masks, masked, _schedules),
    Pass("narrow", narrow, in_narrow, _schedules),
    Pass("symmetric", symmetric, mirrored, _schedules),
    Pass("tiles", tiles, in_tiles, _schedules),
    Pass("split", split, loops_split, _schedules),
    Pass("strips", strips, in_strips, _schedules),
    Pass("periods", lambda program, _: periods(program), when=_schedules),
    Pass("wraps", wraps, when=_schedules),
    Pass("edges", edges, when=_schedules),
    Pass("simplify edges", lambda program, _: simplify(program), when=_schedules),
    Pass("abreast", abreast, rounds_abreast, _schedules),
    Pass("best", lambda program, _: best(program), _ignore_target(by_blocks), _schedules),
    Pass("put off", put_off, sums_put_off, _reorders),
    Pass("lanes", lambda program, _: lanes(program), _ignore_target(in_lanes), _reorders),
    Pass("rounding", lambda program, _: fused_products(program), when=_reorders),
    Pass("transposed", transposed, in_square_tiles, _schedules),
    Pass("defer", defer, deferred, _schedules),
    Pass("pieces", pieces, in_pieces, _schedules),
    Pass("answered", answered, until_answered, _schedules),  # after parallel sums have chunks
    Pass("streams", streams, in_streams, _schedules),
    Pass("undo", undo, when=_schedules),
    Pass("beside", beside, when=_schedules),
    Pass("checks", checks, in_blocks, _schedules),
    Pass("stages", stages, in_stages, _schedules),
    Pass("stencil", stencil, in_time, _schedules),
    Pass("separate", separate, when=_schedules),
    Pass("picked", picked, when=_schedules),
    Pass("parallel", parallel, when=_schedules),  # the finished nests
)


@paused()
def optimize(
    program: Program, target: Target, observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None, stop_after: str = "",
) -> tuple[Program, Placement]:  # fmt: skip
    """Return the program after every pass, and where its nodes live.

    `verify` is called on the program before the first pass and after each that changes it, and
    raises where an invariant does not hold. `stop_after` names the last pass to run, `lower` for
    none of them, to bisect a wrong result. Raises CdValueError where there is no such pass, and
    CdTypeError CD0572 for requests that the whole pipeline does not meet, wherever it stops.
    """
    lowered = program
    if target.short and any(node.request is not None for node in _nodes(program)):
        target = replace(target, short=False)  # requests need passes that the short pipeline lacks
    program, decisions = _run(_stages(stop_after), program, target, observe, verify)
    placement = place(program, decisions, target.stack_bytes)
    if target.schedule and target.vector_bits > 64:
        placement = replace(placement, vector_bits=target.vector_bits)
    if not stop_after:
        placement = replace(placement, modes=settle(lowered, program, decisions))
    elif any(node.request is not None for node in _nodes(lowered)):
        optimize(lowered, target)  # a request that the whole pipeline refuses is refused here, too
    return program, replace(placement, polls=target.schedule, picks=target.schedule)


def map_to_device(
    program: Program, target: Target, observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None, stop_after: str = "",
) -> Grid:  # fmt: skip
    """Return what `optimize` returned as kernels of a device: after its passes, nests are mapped.

    The arguments are those of `optimize`; where `stop_after` names a pass before the device's,
    these are left out. The mapping itself is the stage `mapping`, in which all ends.
    """
    named = [stage.name for stage in device.GPU_PASSES]
    count = named.index(stop_after) + 1 if stop_after in named else 0 if stop_after else None
    program, decisions = _run(device.GPU_PASSES[:count], program, target, observe, verify)
    grid = mapping.map_kernels(program, target)
    if observe is not None:
        observe("mapping", grid.program)
    if verify is not None:
        verify(grid.program)
    return replace(grid, decisions=(*decisions, *grid.decisions))


def _run(
    stages: Iterable[Pass], program: Program, target: Target, observe: Observer | None,
    verify: Callable[[Program], None] | None,
) -> tuple[Program, tuple[Decision, ...]]:  # fmt: skip
    """Return the program after some stages, and what they decided."""
    decisions: list[Decision] = []
    spans, wanted = origins(program), {node.id for node in program.locals}
    for stage in stages:
        before = program
        if not stage.when(target):
            made: tuple[Decision, ...] = ()
        elif stage.decide is None:
            program = stage.run(program, target)
            made = noticed(stage.name, before, program)
        else:
            program, made = stage.decide(program, target)
        if any(node.id not in spans for node in program.locals):
            spans = origins(program) | spans
        decisions += (
            located(one, spans) for one in made
            if one.outcome != "removed" or one.node is None or one.node.id in wanted
        )  # fmt: skip
        if observe is not None:
            observe(stage.name, program)
        if verify is not None and (program is not before or stage.name == "lower"):
            verify(program)
    return program, tuple(decisions)


def _nodes(program: Program) -> tuple[Node, ...]:
    return (*(p.node for p in program.parameters), *program.results, *program.locals)


def _stages(stop_after: str) -> tuple[Pass, ...]:
    """Return the stages up to the named one, all of them where none is named."""
    stages = (Pass("lower", lambda lowered, _: lowered), *PASSES)
    names = [stage.name for stage in stages]
    if stop_after and stop_after not in names:
        names += [stage.name for stage in device.GPU_PASSES]
        if stop_after in names:
            return stages
        near = nearest(stop_after, names)
        raise CdValueError(
            Diagnostic(
                "CD0823", f"the setting `stop_after` names `{stop_after}`, which is no pass",
                notes=("the passes are " + ", ".join(names),),
                helps=(f"did you mean `{near}`?",) if near else (),
            )
        )  # fmt: skip
    return stages[: names.index(stop_after) + 1] if stop_after else stages
