"""The passes of the pipeline in order, each with the targets and the programs that need it.

A module of a pass that not every program needs is imported by its first run: where the
precondition of a pass does not hold it is the identity, so that a small program imports little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_import import lazy_functions
from .analysis.conflicting_iterations import has_conflicting_iterations
from .ir.decision import Pass, always, for_any
from .ir.loops import Program
from .passes import inferred_decisions as inferred
from .passes.cse import cse
from .passes.dce import eliminate_dead_code
from .passes.dead_stores import eliminate_dead_stores, eliminate_zero_fills
from .passes.inferred_decisions import for_target, rewriting
from .passes.licm import hoist
from .passes.result_values import annotate_results
from .passes.simplify import simplify
from .preconditions import (
    has_accumulators,
    has_answers,
    has_arg_reductions,
    has_branches,
    has_checks,
    has_clamps,
    has_complex,
    has_contractions,
    has_equality_tests,
    has_functions,
    has_guarded_accumulators,
    has_local_arrays,
    has_locals,
    has_nested_loops,
    has_permutations,
    has_products,
    has_remainders,
    has_short_loops,
    has_siblings,
    has_terms,
)
from .target import Target

if TYPE_CHECKING:
    from .analysis.privatization import annotate_private
    from .cpu.arg_selects import select_guarded
    from .cpu.checks.blocked import block_checks
    from .cpu.checks.fused import fuse_checks
    from .cpu.checks.rollback import fuse_with_rollback
    from .cpu.complex_pairs import scalarize_complex as complex_to_pairs
    from .cpu.deferred_accumulation import distribute_accumulations, distribute_reductions
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
    from .passes.buffer_swap import swap_buffers
    from .passes.contract_arrays import contract_arrays
    from .passes.fuse import fuse
    from .passes.inline import virtualize
    from .passes.inplace import compute_inplace
    from .passes.reduction_order import set_reduction_order
    from .passes.reuse import eliminate_repeated_nests
    from .passes.search_to_gather import search_to_gather
    from .passes.sink import sink
    from .passes.unguard_products import unguard_products
    from .passes.unroll import unroll
    from .transform.split_index_set import split_and_rename
else:  # each imported with its first run
    (
        annotate_private, select_guarded, block_checks, fuse_checks, fuse_with_rollback,
        complex_to_pairs, distribute_accumulations, distribute_reductions, delinearize_loops,
        distribute_columns, form_fma, force_simd, distribute_functions, use_real_form,
        mirror_triangles, tile_products, mask_lanes, vectorize_outer, parallelize, peel_loops,
        privatize_temporaries, privatize_arrays, block_arg_reductions, vectorize_columns,
        insert_early_exits, vectorize_reductions, narrow_accumulators, jam_row_reductions,
        split_wrapped_loops, tile_stencils, tile_transposed, swap_buffers, contract_arrays, fuse,
        virtualize, compute_inplace, set_reduction_order, eliminate_repeated_nests,
        search_to_gather, sink, unguard_products, unroll, split_and_rename,
    ) = lazy_functions(
        __package__,
        ".analysis.privatization:annotate_private", ".cpu.arg_selects:select_guarded",
        ".cpu.checks.blocked:block_checks",
        ".cpu.checks.fused:fuse_checks", ".cpu.checks.rollback:fuse_with_rollback",
        ".cpu.complex_pairs:scalarize_complex",
        ".cpu.deferred_accumulation:distribute_accumulations",
        ".cpu.deferred_accumulation:distribute_reductions", ".cpu.delinearize:delinearize_loops",
        ".cpu.distribute_columns:distribute_columns", ".cpu.fma:form_fma",
        ".cpu.force_simd:force_simd", ".cpu.function_stages:distribute_functions",
        ".cpu.gemm.complex_products:use_real_form", ".cpu.gemm.symmetric:mirror_triangles",
        ".cpu.gemm.tiles:tile_products", ".cpu.masked_lanes:mask_lanes",
        ".cpu.outer_vectorize:vectorize_outer", ".cpu.parallelize:parallelize",
        ".cpu.peel:peel_loops", ".cpu.private_temporaries:privatize_temporaries",
        ".cpu.privatized_arrays:privatize_arrays",
        ".cpu.reductions.arg_reduction:block_arg_reductions",
        ".cpu.reductions.column_strips:vectorize_columns",
        ".cpu.reductions.early_exit:insert_early_exits",
        ".cpu.reductions.lanes:vectorize_reductions",
        ".cpu.reductions.narrow_accumulators:narrow_accumulators",
        ".cpu.reductions.row_jam:jam_row_reductions", ".cpu.split_wrapped:split_wrapped_loops",
        ".cpu.time_tiling:tile_stencils", ".cpu.transposed_tiles:tile_transposed",
        ".passes.buffer_swap:swap_buffers", ".passes.contract_arrays:contract_arrays",
        ".passes.fuse:fuse", ".passes.inline:virtualize", ".passes.inplace:compute_inplace",
        ".passes.reduction_order:set_reduction_order", ".passes.reuse:eliminate_repeated_nests",
        ".passes.search_to_gather:search_to_gather", ".passes.sink:sink",
        ".passes.unguard_products:unguard_products", ".passes.unroll:unroll",
        ".transform.split_index_set:split_and_rename",
    )  # fmt: skip


def _schedules(target: Target) -> bool:
    return target.schedule and not target.short


def _shares(target: Target) -> bool:
    return _schedules(target) and target.threads > 1


def _reorders(target: Target) -> bool:
    return target.schedule and target.reorders


def _has_fma(target: Target) -> bool:
    return _reorders(target) and target.fma


def _set_reduction_order(program: Program, target: Target) -> Program:
    return set_reduction_order(program, target.fma)


def _split_index_sets(program: Program) -> Program:
    """Return the program with the index sets of its loops split where one iteration defines what
    others use."""
    return split_and_rename(program) if has_conflicting_iterations(program) else program


PASSES: tuple[Pass, ...] = (
    Pass("use_real_form", use_real_form, _has_fma, has_complex),
    Pass("set_reduction_order", for_target(_set_reduction_order), _reorders, has_terms),
    Pass("unroll", rewriting(unroll), needs=has_branches),
    Pass("simplify", rewriting(simplify), always),
    # while guards are around
    Pass("unguard_products", rewriting(unguard_products), needs=has_branches),
    # before the table is inlined
    Pass(
        "search_to_gather", rewriting(search_to_gather, *inferred.LOOKUPS), needs=has_equality_tests
    ),
    # before inlining duplicates it
    Pass(
        "eliminate_repeated_nests",
        rewriting(eliminate_repeated_nests, *inferred.REPEATED),
        needs=has_siblings,
    ),
    Pass("eliminate_dead_stores", rewriting(eliminate_dead_stores, *inferred.OVERWRITTEN)),
    Pass("eliminate_dead_code", rewriting(eliminate_dead_code)),
    Pass("virtualize", for_any(virtualize), always, has_locals),
    Pass("fuse", fuse, needs=has_siblings),  # the remaining nests
    Pass("sink", for_any(sink), needs=has_local_arrays),  # unfused sums
    Pass("contract_arrays", for_any(contract_arrays), needs=has_contractions),  # after fusion
    Pass("swap_buffers", for_any(swap_buffers), needs=has_permutations),
    Pass("compute_inplace", for_any(compute_inplace), needs=has_local_arrays),
    Pass("simplify 2", rewriting(simplify)),  # of operands that moves combined
    Pass("cse", rewriting(cse, *inferred.SHARED)),  # later passes count equal work once
    Pass("hoist", rewriting(hoist, *inferred.HOISTED)),
    # fills of what is fused by now
    Pass("eliminate_zero_fills", rewriting(eliminate_zero_fills, *inferred.ZEROS)),
    Pass("eliminate_dead_code 2", rewriting(eliminate_dead_code)),
    Pass("annotate_results", rewriting(annotate_results)),  # while writes are whole nests
    # before loops are split
    Pass("annotate_private", for_target(annotate_private), _shares, has_local_arrays),
    Pass("split_index_sets", rewriting(_split_index_sets), _schedules),
    Pass("complex_to_pairs", rewriting(complex_to_pairs, *inferred.PARTS), _schedules, has_complex),
    Pass("mask_lanes", mask_lanes, _schedules, has_branches),
    Pass("narrow_accumulators", narrow_accumulators, _schedules, has_accumulators),
    Pass("mirror_triangles", mirror_triangles, _schedules, has_nested_loops),
    Pass("tile_products", tile_products, _schedules, has_nested_loops),
    Pass("distribute_columns", distribute_columns, _schedules, has_nested_loops),
    Pass("vectorize_columns", vectorize_columns, _schedules, has_nested_loops),
    Pass("delinearize_loops", rewriting(delinearize_loops), _schedules, has_remainders),
    Pass("split_wrapped_loops", for_target(split_wrapped_loops), _schedules, has_remainders),
    Pass("peel_loops", for_target(peel_loops), _schedules, has_clamps),
    Pass("simplify 3", rewriting(simplify), _schedules),
    Pass("select_guarded", select_guarded, _schedules, has_guarded_accumulators),
    Pass("vectorize_outer", vectorize_outer, _schedules, has_nested_loops),
    Pass("block_arg_reductions", for_any(block_arg_reductions), _schedules, has_arg_reductions),
    Pass("distribute_reductions", distribute_reductions, _reorders, has_terms),
    Pass("vectorize_reductions", for_any(vectorize_reductions), _reorders, has_terms),
    Pass("form_fma", rewriting(form_fma), _reorders, has_products),
    Pass("tile_transposed", tile_transposed, _schedules, has_nested_loops),
    Pass("distribute_accumulations", distribute_accumulations, _shares, has_locals),
    Pass("privatize_arrays", privatize_arrays, _shares),
    # after parallel sums have chunks
    Pass("insert_early_exits", insert_early_exits, _schedules, has_answers),
    Pass("jam_row_reductions", jam_row_reductions, _schedules, has_nested_loops),
    Pass("fuse_with_rollback", for_target(fuse_with_rollback), _schedules, has_checks),
    Pass("fuse_checks", for_target(fuse_checks), _schedules, has_checks),
    Pass("block_checks", block_checks, _schedules, has_checks),
    Pass("distribute_functions", distribute_functions, _schedules, has_functions),
    Pass("tile_stencils", tile_stencils, _schedules, has_nested_loops),
    Pass("privatize_temporaries", for_target(privatize_temporaries), _shares, has_locals),
    Pass("force_simd", for_target(force_simd), _schedules, has_short_loops),
    # the finished nests
    Pass("parallelize", for_target(parallelize, *inferred.PARALLEL), _shares),
)
