"""The pass pipeline: all passes in order, and the placement of nodes at its end.

Passes are functions from program to program, listed in one tuple; none calls another. After each,
the observer is shown the program and, where requested, the invariants are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.diagnostic import CdValueError, Diagnostic, nearest
from ..base.garbage_collector import gc_paused
from ..base.lazy_import import lazy_modules
from .analysis.carried_scalars import verify_scalars
from .analysis.conflicting_iterations import has_conflicting_iterations
from .analysis.effects import summarize
from .analysis.privatization import annotate_private
from .cpu.checks.blocked import block_checks
from .cpu.checks.fused import fuse_checks
from .cpu.checks.rollback import fuse_with_rollback
from .cpu.deferred_accumulation import (
    distribute_accumulations,
    distribute_reductions,
)
from .cpu.delinearize import delinearize_loops
from .cpu.distribute_columns import distribute_columns
from .cpu.fma import form_fma
from .cpu.force_simd import force_simd
from .cpu.function_stages import distribute_functions
from .cpu.gemm.complex_products import use_real_form
from .cpu.gemm.symmetric import mirror_triangles
from .cpu.gemm.tiles import tile_products
from .cpu.masked_lanes import mask_lanes
from .cpu.outer_vectorize import vectorize_outer
from .cpu.parallelize import parallelize
from .cpu.peel import peel_loops
from .cpu.private_temporaries import privatize_temporaries
from .cpu.privatized_arrays import privatize_arrays
from .cpu.reductions.arg_reduction import block_arg_reductions
from .cpu.reductions.column_strips import vectorize_columns
from .cpu.reductions.early_exit import insert_early_exits
from .cpu.reductions.lanes import vectorize_reductions
from .cpu.reductions.narrow_accumulators import narrow_accumulators
from .cpu.reductions.row_jam import jam_row_reductions
from .cpu.split_wrapped import split_wrapped_loops
from .cpu.time_tiling import tile_stencils
from .cpu.transposed_tiles import tile_transposed
from .ir.decision import Decision, Pass, always, for_any
from .ir.loops import If, Program
from .ir.node import Node
from .memory_requests import resolve_requests
from .passes import inferred_decisions as inferred
from .passes.buffer_swap import swap_buffers
from .passes.contract_arrays import contract_arrays
from .passes.cse import cse
from .passes.dce import eliminate_dead_code
from .passes.dead_stores import eliminate_dead_stores, eliminate_zero_fills
from .passes.fuse import fuse
from .passes.inferred_decisions import first_writes, for_target, rewriting, with_span
from .passes.inline import virtualize
from .passes.inplace import compute_inplace
from .passes.licm import hoist
from .passes.reduction_order import set_reduction_order
from .passes.result_values import annotate_results
from .passes.reuse import eliminate_repeated_nests
from .passes.search_to_gather import search_to_gather
from .passes.simplify import simplify
from .passes.sink import sink
from .passes.unroll import unroll
from .placement import Placement, place_nodes
from .target import Target

if TYPE_CHECKING:
    from .cpu import complex_pairs
    from .gpu import mapping
    from .gpu import passes as device
    from .gpu.mapping import MappedProgram
    from .passes import unguard_products
    from .transform import split_index_set
else:  # imported lazily: few programs need it
    unguard_products, complex_pairs, split_index_set = lazy_modules(
        __package__, ".passes.unguard_products", ".cpu.complex_pairs", ".transform.split_index_set"
    )
    device, mapping = lazy_modules(__package__, ".gpu.passes", ".gpu.mapping")

Observer = Callable[[str, Program], None]
"""Called with the name of a stage and the program after it."""


def _schedules(target: Target) -> bool:
    return target.schedule and not target.short


def _reorders(target: Target) -> bool:
    return target.schedule and target.reorders


def _has_fma(target: Target) -> bool:
    return _reorders(target) and target.fma


def _set_reduction_order(program: Program, target: Target) -> Program:
    return set_reduction_order(program, target.fma)


def _unguard_products(program: Program) -> Program:
    """Return the program with unguarded products of matrices, if it has any test."""
    body = (stmt for kernel in program.kernels for stmt in kernel.body)
    return (
        unguard_products.unguard_products(program)
        if any(If in summarize(s).kinds for s in body)
        else program
    )


def _split_index_sets(program: Program) -> Program:
    """Return the program with the index sets of its loops split where one iteration defines what
    others use."""
    return (
        split_index_set.split_and_rename(program)
        if has_conflicting_iterations(program)
        else program
    )


def _complex_to_pairs(program: Program) -> Program:
    """Return the program with complex numbers as pairs of real ones, if it has any."""
    is_complex = any(node.dtype.kind == "c" for node in _nodes(program))
    return complex_pairs.scalarize_complex(program) if is_complex else program


PASSES: tuple[Pass, ...] = (
    Pass("use_real_form", use_real_form, _has_fma),
    Pass("set_reduction_order", for_target(_set_reduction_order), _reorders),
    Pass("unroll", rewriting(unroll)),
    Pass("simplify", rewriting(simplify), always),
    Pass("unguard_products", rewriting(_unguard_products)),  # while guards are around
    # before the table is inlined
    Pass("search_to_gather", rewriting(search_to_gather, *inferred.LOOKUPS)),
    # before inlining duplicates it
    Pass("eliminate_repeated_nests", rewriting(eliminate_repeated_nests, *inferred.REPEATED)),
    Pass("eliminate_dead_stores", rewriting(eliminate_dead_stores, *inferred.OVERWRITTEN)),
    Pass("eliminate_dead_code", rewriting(eliminate_dead_code)),
    Pass("virtualize", for_any(virtualize), always),
    Pass("fuse", for_any(fuse)),  # the remaining nests
    Pass("sink", for_any(sink)),  # unfused sums
    Pass("contract_arrays", for_any(contract_arrays)),  # after fusion
    Pass("swap_buffers", for_any(swap_buffers)),
    Pass("compute_inplace", for_any(compute_inplace)),
    Pass("simplify 2", rewriting(simplify)),  # of operands that moves combined
    Pass("cse", rewriting(cse, *inferred.SHARED)),  # later passes count equal work once
    Pass("hoist", rewriting(hoist, *inferred.HOISTED)),
    # fills of what is fused by now
    Pass("eliminate_zero_fills", rewriting(eliminate_zero_fills, *inferred.ZEROS)),
    Pass("eliminate_dead_code 2", rewriting(eliminate_dead_code)),
    Pass("annotate_results", rewriting(annotate_results)),  # while writes are whole nests
    Pass("annotate_private", for_target(annotate_private), _schedules),  # before loops are split
    Pass("split_index_sets", rewriting(_split_index_sets), _schedules),
    Pass("complex_to_pairs", rewriting(_complex_to_pairs, *inferred.PARTS), _schedules),
    Pass("mask_lanes", mask_lanes, _schedules),
    Pass("narrow_accumulators", narrow_accumulators, _schedules),
    Pass("mirror_triangles", mirror_triangles, _schedules),
    Pass("tile_products", tile_products, _schedules),
    Pass("distribute_columns", distribute_columns, _schedules),
    Pass("vectorize_columns", vectorize_columns, _schedules),
    Pass("delinearize_loops", rewriting(delinearize_loops), _schedules),
    Pass("split_wrapped_loops", for_target(split_wrapped_loops), _schedules),
    Pass("peel_loops", for_target(peel_loops), _schedules),
    Pass("simplify 3", rewriting(simplify), _schedules),
    Pass("vectorize_outer", vectorize_outer, _schedules),
    Pass("block_arg_reductions", for_any(block_arg_reductions), _schedules),
    Pass("distribute_reductions", distribute_reductions, _reorders),
    Pass("vectorize_reductions", for_any(vectorize_reductions), _reorders),
    Pass("form_fma", rewriting(form_fma), _reorders),
    Pass("tile_transposed", tile_transposed, _schedules),
    Pass("distribute_accumulations", distribute_accumulations, _schedules),
    Pass("privatize_arrays", privatize_arrays, _schedules),
    Pass("insert_early_exits", insert_early_exits, _schedules),  # after parallel sums have chunks
    Pass("jam_row_reductions", jam_row_reductions, _schedules),
    Pass("fuse_with_rollback", for_target(fuse_with_rollback), _schedules),
    Pass("fuse_checks", for_target(fuse_checks), _schedules),
    Pass("block_checks", block_checks, _schedules),
    Pass("distribute_functions", distribute_functions, _schedules),
    Pass("tile_stencils", tile_stencils, _schedules),
    Pass("privatize_temporaries", for_target(privatize_temporaries), _schedules),
    Pass("force_simd", for_target(force_simd), _schedules),
    # the finished nests
    Pass("parallelize", for_target(parallelize, *inferred.PARALLEL), _schedules),
)


@gc_paused()
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
    placement = place_nodes(program, decisions, target.stack_bytes)
    if target.schedule and target.vector_bits > 64:
        placement = replace(placement, vector_bits=target.vector_bits)
    if not stop_after:
        placement = replace(placement, modes=resolve_requests(lowered, program, decisions))
    elif any(node.request is not None for node in _nodes(lowered)):
        optimize(lowered, target)  # a request that the whole pipeline refuses is refused here, too
    return program, replace(placement, polls=target.schedule, picks=target.schedule)


def map_to_device(
    program: Program, target: Target, observe: Observer | None = None,
    verify: Callable[[Program], None] | None = None, stop_after: str = "",
) -> MappedProgram:  # fmt: skip
    """Return what `optimize` returned as kernels of a device: after its passes, nests are mapped.

    The arguments are those of `optimize`; where `stop_after` names a pass before the device's,
    these are left out. The mapping itself is the stage `mapping`, in which all ends.
    """
    stages, named = device.GPU_PASSES, [stage.name for stage in device.GPU_PASSES]
    if stop_after:
        stages = stages[: named.index(stop_after) + 1] if stop_after in named else ()
    program, decisions = _run(stages, program, target, observe, verify)
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
    spans, wanted = first_writes(program), {node.id for node in program.locals}
    for stage in stages:
        before = program
        new_decisions: tuple[Decision, ...] = ()
        if stage.when(target):
            program, new_decisions = stage.run(program, target)
        if any(node.id not in spans for node in program.locals):
            spans = first_writes(program) | spans
        decisions += (
            with_span(decision, spans) for decision in new_decisions
            if decision.outcome != "removed" or decision.node is None or decision.node.id in wanted
        )  # fmt: skip
        if observe is not None:
            observe(stage.name, program)
        if verify is not None and (program is not before or stage.name == "lower"):
            verify(program)
            verify_scalars(program)
    return program, tuple(decisions)


def _nodes(program: Program) -> tuple[Node, ...]:
    return (*(p.node for p in program.parameters), *program.results, *program.locals)


def _stages(stop_after: str) -> tuple[Pass, ...]:
    """Return the stages up to the named one, all of them where none is named."""
    stages = (Pass("lower", rewriting(lambda lowered: lowered)), *PASSES)
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
