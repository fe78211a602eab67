"""Which modules get faults, and the tests that have to catch them, those of the module first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..lowering.passes.traps import TRAPS

ROOT = Path(__file__).resolve().parents[2]
PASSES = "tests/lowering/passes"
TRAP = f"{PASSES}/test_traps.py::test_every_pass_keeps_what_is_seen"
GOLDEN = f"{PASSES}/test_traps.py::test_the_loops_are_those_expected"
EXAMPLE = "tests/lowering/test_examples.py::test_the_example_is_true"
KINDS = {name.split(":")[0] for name in TRAPS}
TRAPPED = KINDS - {"buffers"}


class Target(NamedTuple):
    """A module and its tests."""

    module: str
    tests: tuple[str, ...]


SHARED = (
    f"{PASSES}/test_legality.py",
    f"{PASSES}/test_together.py",
    f"{PASSES}/test_prefixes.py::test_every_prefix_agrees[0]",
    f"{PASSES}/test_prefixes.py::test_every_prefix_agrees[4]",
)
"""Tests of all passes together."""

MODULES: dict[str, tuple[str, ...]] = {
    "lowering/analysis/accesses": (
        "lowering/passes/test_inline",
        "lowering/passes/test_fuse",
        "lowering/passes/test_contract_arrays",
    ),
    "lowering/analysis/carried_scalars": ("lowering/cpu/reductions/test_lanes",),
    "lowering/analysis/definite_writes": (),
    "lowering/analysis/definitions": ("lowering/passes/test_inline",),
    "lowering/analysis/effects": (
        "lowering/passes/test_inline",
        "lowering/passes/test_fuse",
    ),
    "lowering/analysis/expression_cost": ("lowering/passes/test_inline",),
    "lowering/analysis/fusion": ("lowering/passes/test_fuse",),
    "lowering/analysis/guarded_reads": (
        "lowering/analysis/test_accesses",
        "lowering/passes/test_legality",
    ),
    "lowering/analysis/product_loops": ("lowering/passes/test_fuse",),
    "lowering/analysis/subscripts": (
        "lowering/analysis/test_accesses",
        "lowering/passes/test_inline",
        "lowering/passes/test_fuse",
        "lowering/passes/test_contract_arrays",
    ),
    "lowering/ir/comments": (),
    "lowering/ir/decision": (),
    "lowering/passes/buffer_sharing": (),
    "lowering/passes/buffer_swap": (),
    "lowering/passes/contract_arrays": (),
    "lowering/passes/cse": (),
    "lowering/passes/dce": (),
    "lowering/passes/dead_stores": (),
    "lowering/passes/fuse": (),
    "lowering/passes/inferred_decisions": (),
    "lowering/passes/inline": (),
    "lowering/passes/inplace": (),
    "lowering/passes/licm": (),
    "lowering/passes/result_values": (),
    "lowering/passes/reuse": (),
    "lowering/passes/search_to_gather": (),
    "lowering/passes/simplify": (),
    "lowering/passes/sink": (),
    "lowering/passes/unguard_products": (),
    "lowering/passes/unroll": (),
    "lowering/cpu/outer_vectorize": ("lowering/cpu/reductions/test_strips_and_lanes",),
    "lowering/analysis/accumulation": (
        "lowering/analysis/test_contraction",
        "lowering/cpu/reductions/test_column_strips",
    ),
    "lowering/cpu/gemm/axes": ("lowering/cpu/gemm/test_tiles",),
    "lowering/cpu/checks/fused": (
        "lowering/cpu/checks/test_blocked",
        "lowering/cpu/checks/test_rollback",
    ),
    "lowering/cpu/reductions/arg_reduction": (),
    "lowering/cpu/gemm/blocking": ("lowering/cpu/gemm/test_tiles",),
    "lowering/cpu/checks/blocked": (),
    "lowering/analysis/contraction": ("lowering/cpu/gemm/test_tiles",),
    "lowering/cpu/deferred_accumulation": (),
    "lowering/cpu/peel": (),
    "lowering/analysis/cost": ("lowering/cpu/test_parallelize",),
    "lowering/cpu/gemm/partial_tiles": ("lowering/cpu/gemm/test_tiles",),
    "lowering/analysis/presburger": ("lowering/analysis/test_dependence",),
    "lowering/cpu/unroll_and_jam": ("lowering/cpu/test_outer_vectorize",),
    "lowering/cpu/parallelize": (),
    "lowering/cpu/reductions/lanes": ("lowering/analysis/test_reductions",),
    "lowering/analysis/dependence": (
        "lowering/analysis/test_dependence_private",
        "lowering/analysis/test_dependence_small",
        "lowering/cpu/test_parallelize",
        "lowering/cpu/reductions/test_column_strips",
        "lowering/cpu/test_outer_vectorize",
    ),
    "lowering/cpu/divergent_lanes": ("lowering/cpu/test_masked_lanes",),
    "lowering/cpu/masked_lanes": (
        "lowering/cpu/test_divergent_lanes",
        "lowering/transform/test_if_convert",
    ),
    "lowering/passes/reduction_order": (),
    "lowering/transform/outermost": (
        "lowering/cpu/reductions/test_column_strips",
        "lowering/cpu/gemm/test_tiles",
        "lowering/cpu/reductions/test_strips_and_lanes",
    ),
    "lowering/analysis/vectorizable": (
        "lowering/cpu/test_outer_vectorize",
        "lowering/cpu/reductions/test_strips_and_lanes",
    ),
    "lowering/analysis/involution": ("lowering/analysis/test_dependence",),
    "lowering/cpu/delinearize": (),
    "lowering/cpu/privatized_arrays": (),
    "lowering/transform/if_convert": (
        "lowering/cpu/test_masked_lanes",
        "lowering/cpu/test_divergent_lanes",
    ),
    "lowering/cpu/fma": (),
    "lowering/analysis/privatization": ("lowering/cpu/test_parallelize",),
    "lowering/transform/split_index_set": ("lowering/transform/test_distribute",),
    "lowering/cpu/private_temporaries": ("lowering/transform/test_renaming",),
    "lowering/cpu/gemm/packing": ("lowering/cpu/gemm/test_tiles",),
    "lowering/cpu/time_tiling": ("lowering/cpu/test_stencil",),
    "lowering/cpu/reductions/row_jam": (),
    "lowering/cpu/reductions/column_strips": (),
    "lowering/analysis/reductions": ("lowering/cpu/reductions/test_lanes",),
    "lowering/cpu/stencil": ("lowering/cpu/test_time_tiling",),
    "lowering/cpu/gemm/tiles": (),
    "lowering/cpu/checks/rollback": ("lowering/cpu/checks/test_fused",),
    "lowering/lower": ("lowering/analysis/test_self_dependence",),
    "lowering/analysis/self_dependence": ("lowering/test_lower",),
    "lowering/pipeline": ("lowering/ir/test_decision",),
    "backends/codegen/parallel_regions": (),
    "backends/codegen/vector_variables": (
        "backends/codegen/test_vectors",
        "backends/codegen/test_vectorizable",
    ),
    "backends/cache/cache": (),
    "dsl/dispatch/persistent_cache": (
        "dsl/dispatch/test_persistent_cache_entries",
        "dsl/source/test_fingerprint",
    ),
    "dsl/specialize/signature": (
        "dsl/specialize/test_signature_kinds",
        "dsl/dispatch/test_fast_path_tensors",
    ),
    "dsl/specialize/guards": (),
    "dsl/dispatch/persist": ("dsl/dispatch/test_persist_parts",),
    "lowering/ir/verify": (),
    "lowering/ir/verify_local": (),
}
"""Modules that get faults, and what tests them besides the file of their name."""

TRAPS_OF: dict[str, tuple[str, ...]] = {
    "lowering/analysis/accesses": ("virtualize", "fuse", "contract_arrays"),
    "lowering/analysis/definite_writes": (),
    "lowering/analysis/definitions": ("virtualize",),
    "lowering/analysis/effects": ("virtualize", "fuse"),
    "lowering/analysis/expression_cost": ("virtualize",),
    "lowering/analysis/fusion": ("fuse",),
    "lowering/analysis/guarded_reads": (),
    "lowering/analysis/product_loops": ("fuse",),
    "lowering/analysis/subscripts": ("virtualize", "fuse", "contract_arrays"),
    "lowering/ir/comments": (),
    "lowering/ir/decision": (),
    "lowering/passes/buffer_sharing": ("buffers",),
    "lowering/passes/buffer_swap": ("swap_buffers",),
    "lowering/passes/contract_arrays": ("contract_arrays",),
    "lowering/passes/cse": ("cse",),
    "lowering/passes/dce": ("eliminate_dead_code",),
    "lowering/passes/dead_stores": ("eliminate_dead_stores", "eliminate_zero_fills"),
    "lowering/passes/fuse": ("fuse",),
    "lowering/passes/inferred_decisions": (),
    "lowering/passes/inline": ("virtualize",),
    "lowering/passes/inplace": ("compute_inplace",),
    "lowering/passes/licm": ("hoist",),
    "lowering/passes/result_values": (),
    "lowering/passes/reuse": ("eliminate_repeated_nests",),
    "lowering/passes/search_to_gather": ("search_to_gather",),
    "lowering/passes/simplify": ("simplify",),
    "lowering/passes/sink": ("sink",),
    "lowering/passes/unguard_products": (),
    "lowering/passes/unroll": ("unroll",),
}
"""The kinds of traps, the first words of their names, that a pass or an analysis has to pass; `()`
where only the tests of all passes together reach it."""


def target(path: str) -> Target:
    """Return a module, given its path, with the tests that have to catch its faults."""
    folder, _, name = path.rpartition("/")
    own = f"tests/{folder}/test_{name}.py"
    tests = [own] if (ROOT / own).is_file() else []
    tests += [f"tests/{other}.py" for other in MODULES[path]]
    kinds = TRAPS_OF.get(path, ())
    tests += [f"{GOLDEN}[{kind}]" for kind in kinds if kind in TRAPPED]
    tests += [f"{TRAP}[{trap}]" for trap in TRAPS if trap.split(":")[0] in kinds]
    if path.startswith("lowering/") and folder not in ("lowering", "lowering/ir"):
        tests.append(f"{EXAMPLE}[{path.removeprefix('lowering/').replace('/', '.')}]")
    shared = SHARED if path in TRAPS_OF or folder == "lowering" else ()
    return Target("plusequals." + path.replace("/", "."), (*tests, *shared))


TARGETS = {path: target(path) for path in MODULES}
