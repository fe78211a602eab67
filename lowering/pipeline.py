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
from .analysis.conflicting_iterations import has_conflicting_iterations
from .analysis.effects import summarize
from .analysis.privatization import annotate_private
from .cpu.checks.blocked import block_checks, decide_block_checks
from .cpu.checks.fused import fuse_checks
from .cpu.checks.rollback import fuse_with_rollback
from .cpu.deferred_accumulation import (
    decide_distribute_accumulations,
    decide_distribute_reductions,
    distribute_accumulations,
    distribute_reductions,
)
from .cpu.delinearize import delinearize_loops
from .cpu.distribute_columns import decide_distribute_columns, distribute_columns
from .cpu.fma import form_fma
from .cpu.force_simd import force_simd
from .cpu.function_stages import decide_distribute_functions
from .cpu.function_stages import distribute_functions as stages
from .cpu.gemm.complex_products import decide_real_form, use_real_form
from .cpu.gemm.symmetric import decide_mirror_triangles, mirror_triangles
from .cpu.gemm.tiles import decide_tile_products, tile_products
from .cpu.masked_lanes import decide_mask_lanes, mask_lanes
from .cpu.outer_vectorize import decide_vectorize_outer, vectorize_outer
from .cpu.parallelize import parallelize
from .cpu.peel import peel_loops
from .cpu.private_temporaries import privatize_temporaries
from .cpu.privatized_arrays import decide_privatize_arrays, privatize_arrays
from .cpu.reductions.arg_reduction import block_arg_reductions, decide_block_arg_reductions
from .cpu.reductions.column_strips import decide_vectorize_columns, vectorize_columns
from .cpu.reductions.early_exit import decide_early_exits, insert_early_exits
from .cpu.reductions.lanes import decide_vectorize_reductions, vectorize_reductions
from .cpu.reductions.narrow_accumulators import decide_narrow_accumulators, narrow_accumulators
from .cpu.reductions.row_jam import decide_jam_row_reductions, jam_row_reductions
from .cpu.split_wrapped import split_wrapped_loops
from .cpu.time_tiling import decide_tile_stencils, tile_stencils
from .cpu.transposed_tiles import in_square_tiles, transposed
from .ir.decision import Decided, Decision, Pass
from .ir.loops import If, Program
from .ir.node import Node
from .memory_requests import resolve_requests
from .passes.buffer_swap import decide_swap, swap_buffers
from .passes.contract_arrays import contract_arrays, decide_contraction
from .passes.cse import cse
from .passes.dce import eliminate_dead_code
from .passes.dead_stores import eliminate_dead_stores, eliminate_zero_fills
from .passes.fuse import decide_fusion, fuse
from .passes.inferred_decisions import first_writes, infer_decisions, with_span
from .passes.inline import decide_virtual, virtualize
from .passes.inplace import compute_inplace, decide_inplace
from .passes.licm import hoist
from .passes.reduction_order import set_reduction_order
from .passes.result_values import annotate_results
from .passes.reuse import eliminate_repeated_nests
from .passes.search_to_gather import search_to_gather
from .passes.simplify import simplify
from .passes.sink import decide_sinking, sink
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


def _ignore_target(decide: Callable[[Program], Decided]) -> Callable[[Program, Target], Decided]:
    """Return the decisions of a pass as a function of program and target, which needs no target."""
    return lambda program, _: decide(program)


PASSES: tuple[Pass, ...] = (
    Pass("real form", use_real_form, decide_real_form, _has_fma),
    Pass(
        "order", lambda program, t: set_reduction_order(program, t.fma), when=_reorders
    ),  # in program order
    Pass("unroll", lambda program, _: unroll(program)),
    Pass("simplify", lambda program, _: simplify(program), when=lambda _: True),
    Pass("regardless", lambda program, _: _unguard_products(program)),  # while guards are around
    Pass("gather", lambda program, _: search_to_gather(program)),  # before the table is inlined
    Pass(
        "repeated", lambda program, _: eliminate_repeated_nests(program)
    ),  # before inlining duplicates it
    Pass("overwritten", lambda program, _: eliminate_dead_stores(program)),
    Pass("dead", lambda program, _: eliminate_dead_code(program)),
    Pass("virtualize", lambda program, _: virtualize(program), _ignore_target(decide_virtual)),
    Pass(
        "fuse", lambda program, _: fuse(program), _ignore_target(decide_fusion)
    ),  # the remaining nests
    Pass("sink", lambda program, _: sink(program), _ignore_target(decide_sinking)),  # unfused sums
    Pass(
        "shrink", lambda program, _: contract_arrays(program), _ignore_target(decide_contraction)
    ),  # after fusion
    Pass("exchange", lambda program, _: swap_buffers(program), _ignore_target(decide_swap)),
    Pass("inplace", lambda program, _: compute_inplace(program), _ignore_target(decide_inplace)),
    Pass("simplify again", lambda program, _: simplify(program)),  # of operands that moves combined
    Pass("cse", lambda program, _: cse(program)),  # later passes count equal work once
    Pass("hoist", lambda program, _: hoist(program)),
    Pass(
        "zeros", lambda program, _: eliminate_zero_fills(program)
    ),  # fills of what is fused by now
    Pass("dead again", lambda program, _: eliminate_dead_code(program)),
    Pass("settled", lambda program, _: annotate_results(program)),  # while writes are whole nests
    Pass(
        "rounds", annotate_private, when=_schedules
    ),  # while every iteration writes before reading
    Pass("sections", lambda program, _: _split_index_sets(program), when=_schedules),
    Pass("pairs", lambda program, _: _complex_to_pairs(program), when=_schedules),
    Pass("masks", mask_lanes, decide_mask_lanes, _schedules),
    Pass("narrow", narrow_accumulators, decide_narrow_accumulators, _schedules),
    Pass("symmetric", mirror_triangles, decide_mirror_triangles, _schedules),
    Pass("tiles", tile_products, decide_tile_products, _schedules),
    Pass("split", distribute_columns, decide_distribute_columns, _schedules),
    Pass("strips", vectorize_columns, decide_vectorize_columns, _schedules),
    Pass("periods", lambda program, _: delinearize_loops(program), when=_schedules),
    Pass("wraps", split_wrapped_loops, when=_schedules),
    Pass("edges", peel_loops, when=_schedules),
    Pass("simplify edges", lambda program, _: simplify(program), when=_schedules),
    Pass("abreast", vectorize_outer, decide_vectorize_outer, _schedules),
    Pass(
        "best",
        lambda program, _: block_arg_reductions(program),
        _ignore_target(decide_block_arg_reductions),
        _schedules,
    ),
    Pass("put off", distribute_reductions, decide_distribute_reductions, _reorders),
    Pass(
        "lanes",
        lambda program, _: vectorize_reductions(program),
        _ignore_target(decide_vectorize_reductions),
        _reorders,
    ),
    Pass("rounding", lambda program, _: form_fma(program), when=_reorders),
    Pass("transposed", transposed, in_square_tiles, _schedules),
    Pass("defer", distribute_accumulations, decide_distribute_accumulations, _schedules),
    Pass("pieces", privatize_arrays, decide_privatize_arrays, _schedules),
    Pass(
        "answered", insert_early_exits, decide_early_exits, _schedules
    ),  # after parallel sums have chunks
    Pass("streams", jam_row_reductions, decide_jam_row_reductions, _schedules),
    Pass("undo", fuse_with_rollback, when=_schedules),
    Pass("beside", fuse_checks, when=_schedules),
    Pass("checks", block_checks, decide_block_checks, _schedules),
    Pass("stages", stages, decide_distribute_functions, _schedules),
    Pass("stencil", tile_stencils, decide_tile_stencils, _schedules),
    Pass("separate", privatize_temporaries, when=_schedules),
    Pass("picked", force_simd, when=_schedules),
    Pass("parallel", parallelize, when=_schedules),  # the finished nests
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
    spans, wanted = first_writes(program), {node.id for node in program.locals}
    for stage in stages:
        before = program
        if not stage.when(target):
            made: tuple[Decision, ...] = ()
        elif stage.decide is None:
            program = stage.run(program, target)
            made = infer_decisions(stage.name, before, program)
        else:
            program, made = stage.decide(program, target)
        if any(node.id not in spans for node in program.locals):
            spans = first_writes(program) | spans
        decisions += (
            with_span(one, spans) for one in made
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
