"""Values of tuned constants that hunts draw, so that small programs reach all of both schedules.

What a random program computes is small, and most of what schedules do begins with large sizes. The
constants of `lowering.thresholds` that decide it change no meaning, so any of these values have to
give right results. `CHOICES` has what is drawn, `KEPT` what is not, and why; a test holds that no
constant is in neither.
"""

from __future__ import annotations

import ast
import importlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import plusequals
from plusequals.backends.cc import cpu_info
from plusequals.lowering import thresholds

CHOICES: Mapping[str, tuple[Any, ...]] = {
    # -- analysis
    "MAX_RECOMPUTED_COST": (0, 2, 8),
    "STORE_COST": (0, 4, 30),
    "READ_COST": (1, 4),
    "ASSUMED_SIZE": (2, 64),
    "STORE_WORK": (1, 50),
    "SCALAR_WORK": (1, 8),
    "PRINT_COST": (1, 1000),
    "LIBRARY_CALL_COST": (1, 16),
    "REGISTER_TILE_BYTES_PER_UNIT": (1, 16),
    "MAX_VERSIONED_SUBEXPRESSIONS": (20, 1000),
    "LONG_REDUCTION_TERMS": (2, 16, 512),
    "MANY_COPIES_PER_TERM": (1, 8),
    "MIN_INTERCHANGED_COLUMNS": (1, 4, 32),
    "MIN_TILED_POINTS": (1, 64, 4096),
    "LITTLE_ACCUMULATION": (2, 4, 16, 256),
    "LITTLE_SHARED": (1, 2, 16),
    "MIN_TILE_SIDE": (1, 4, 32),
    "MIN_SEPARATE_MIN_MAX_ITERATIONS": (0, 3, 32),
    "MAX_STENCIL_ROW_BYTES": (16, 256, 64 << 10),
    "MAX_STENCIL_PERIOD": (1, 2, 4),
    "MAX_PARTIAL_WRITES": (1, 2, 8),
    "MAX_WRITING_BRANCHES": (0, 1, 4),
    "MAX_WRITE_BOUNDS": (1, 2, 8),
    "MAX_WRITE_STRIDE": (1, 2, 16),
    "MAX_WRITTEN_PARTS": (1, 20, 1000),
    "MAX_FIRST_ITERATIONS": (1, 2, 4, 8),
    "MAX_CONFLICTING_ITERATIONS": (1, 4, 8),
    "MAX_INEQUALITIES": (2, 10, 160),
    "MAX_INTEGER_TRIES": (1, 10, 400),
    "MAX_DOMAIN_POINTS": (4, 64, 1 << 20),
    "MAX_TIMED_ACCESSES": (0, 16, 1 << 20),
    # -- transform
    "MAX_EXPANDED_BYTES": (64, 1 << 28),
    "MIN_DISTRIBUTED_ITERATIONS": (1, 2, 8),
    "MIN_FISSION_ITERATIONS": (1, 2, 32),
    "MAX_SUNK_COST": (0, 8, 64),
    "ENOUGH_BLOCK_POINTS": (1, 1024),
    "LONG_INNER_LOOP_ITERATIONS": (1, 32),
    # -- passes
    "MAX_INLINED_NODES": (2, 8, 64, 200),
    "MAX_FUSION_DISTANCE": (1, 3, 64),
    "MAX_UNROLLED_ITERATIONS": (1, 3, 5, 9),
    "MAX_UNROLLED_STATEMENTS": (2, 8, 96),
    "STACK_LIMIT_MULTIPLE": (1, 2, 16),
    "LONG_LIVE_RANGE": (-1, 16, 1000),
    # -- cpu
    "MAX_PRIVATE_BYTES": (0, 512, 4 << 20, 4 << 20, 4 << 20),
    "MIN_DEFERRED_WORK_RATIO": (0, 1, 16),
    "MAX_DEFERRED_BYTES": (16, 64, 1 << 18),
    "MIN_DEFERRED_ITERATIONS_PER_THREAD": (0, 2),
    "MAX_DYNAMIC_DEFERRED_ITERATIONS": (1, 3, 256),
    "MIN_CHUNK_ITERATIONS": (1, 2, 16),
    "MIN_INNERMOST_CHUNK_ITERATIONS": (1, 512),
    "MAX_CHUNKS_PER_THREAD": (1, 2, 4),
    "MIN_CHUNKED_WORK_FACTOR": (0, 1, 4),
    "MIN_COPIED_WORK_RATIO": (0, 1, 4),
    "SUM_BLOCK_TERMS": (32, 64, 1024),
    "SUM_SUPERBLOCK_TERMS": (2048, 1 << 15),
    "MAX_WRITTEN_OUT_TERMS": (1, 3, 8),
    "MAX_WRITTEN_OUT_OPERATIONS": (4, 96),
    "ARG_BLOCK_TERMS": (32, 64, 1024),  # no less than lanes
    "MIN_BLOCKED_ARG_TERMS": (32, 64),
    "MIN_VECTOR_MIN_MAX_TERMS": (1, 5),
    "MAX_WIDE_ACCUMULATOR_ITERATIONS": (0, 2, 16),
    "EARLY_EXIT_BLOCK_ITERATIONS": (2, 3, 16, 1024),
    "STRIP_ROWS": (1, 2, 4),
    "MAX_SINGLE_STRIP_VECTORS": (1, 2, 12),
    "DYNAMIC_STRIP_WIDTHS": (1, 2, 8),
    "MAX_JAMMED_ROWS": (2, 3, 4),
    "MAX_JAMMED_STATEMENTS": (4, 60),
    "MAX_JAMMED_ITERATIONS": (1, 2, 4, 7),
    "DIVERGENT_LANES": (2, 3, 32),
    "MAX_UNMASKED_ITERATIONS": (0, 4),
    "MAX_MASKED_COST": (0, 128, 1000),
    "MAX_PREDICATED_TERM_COST": (0, 64, 1000),
    "MAX_FORCED_SIMD_ITERATIONS": (1, 3, 64),
    "MAX_STAGE_ITERATIONS": (2, 3, 256),
    "MIN_STAGE_ITERATIONS": (1, 2, 32),
    "MAX_EARLY_EXIT_STAGE_ITERATIONS": (2, 3, 2048),
    "MAX_INLINED_FUNCTIONS": (0, 2, 16),
    "CHECKED_BLOCK_ITERATIONS": (2, 3, 16, 1024),
    "MIN_PEELED_ITERATIONS": (1, 2, 16),
    "MAX_PEELED_BOUNDS": (0, 2, 4),
    "MIN_WRAPPED_ITERATIONS": (1, 2, 16),
    "MAX_WRAPPED_SUBSCRIPTS": (0, 1, 2, 3),
    "MIN_DELINEARIZED_ITERATIONS": (1, 2, 16),
    "MAX_COLUMN_EXPANDED_ITERATIONS": (32, 64, 2048),
    "MIN_COMPLEX_READS": (1, 2, 16),
    "TRANSPOSED_TILE_BYTES": (16, 32, 128),
    "MAX_UNTILED_ITERATIONS": (1, 6, 256),
    "MIN_STRIDE_BYTES": (8, 16, 64),
    "MAX_TILED_SWEEPS": (1, 2, 32),
    "MAX_PERIOD_SWEEPS": (1, 3, 12),
    "SWEEP_BLOCK_BYTES": (16, 64, 256, 16 << 10),
    "MAX_L3_BYTES_PER_THREAD": (0, 256, 4 << 20),
    "TIME_TILES_PER_THREAD": (1, 2, 4),
    # -- cpu_gemm
    "MIN_GEMM_TERMS": (1, 64, 8192),
    "MIN_COMPLEX_GEMM_TERMS": (1, 64, 1 << 17),
    "MIN_COMPLEX_GEMM_ROWS": (1, 2, 8),
    "MIN_SYMMETRIC_ROWS": (2, 3, 48),
    "MIN_SYMMETRIC_TERMS": (2, 3, 64),
    "MIN_TILE_SUMS": (1, 4, 10),
    "FULL_TILE_PENALTY": (0, 3),
    "MAX_PREDICATED_TILE_VECTORS": (1, 2),
    "MAX_PACKED_COLUMNS": (4, 16, 1024),
    "MAX_PACKED_ROWS": (4, 12, 576),
    "MAX_COLUMN_GROUP_BYTES": (64, 1 << 18),
    "MAX_PANEL_ROW_BYTES": (32, 256, 2048),
    "MIN_PANEL_DEPTH": (1, 4, 16),
    "MAX_PARTIAL_SUM_BYTES": (256, 4096, 5 << 19),
    "MAX_IN_PLACE_TERMS": (4, 32, 2048),
    "MAX_IN_PLACE_ROW_TILES": (0, 1, 4, 100),
    "MAX_IN_PLACE_STEPS": (4, 32, 2048),
    "MAX_IN_PLACE_TILES": (1, 2, 16),
    "PACKED_STEPS": (1, 2, 8),
    "CACHE_SET_PERIOD_BYTES": (64, 4096),
    "ROW_BLOCK_L2_FRACTION": (0.1, 0.75),
    "MAX_WHOLE_ROWS_L2": (1, 2),
    "MAX_WHOLE_ROWS_BYTES": (256, 1 << 20),
    "MIN_REPACKED_ROWS": (1, 4, 64),
    "PACK_ONCE_L3_FACTOR": (1, 16),
    "CACHED_COLUMNS_L2_FACTOR": (1, 3),
    "UNEVEN_BLOCKS_PER_THREAD": (1, 4),
    "CACHED_BLOCKS_PER_THREAD": (1, 3, 16),
    # -- gpu
    "BLOCK_THREADS": (32, 64),
    "POINTS_PER_THREAD": (2, 3),
    "MIN_SEVERAL_POINTS": (1, 1 << 20),
    "MIN_UNCOLLAPSED_ITERATIONS": (2, 3, 64),
    "MAX_THREAD_PRIVATE_BYTES": (0, 16, 256),
    "MIN_OCCUPYING_POINTS": (1, 2048),
    "MIN_BLOCK_LOOP_ITERATIONS": (1, 3),
    "MAX_BLOCK_SHARED_BYTES": (16, 128, 47 * 1024),
    "MAX_SEQUENTIAL_POINTS": (1, 16),
    "CYCLIC_STRIP_ITERATIONS": (2, 3, 32),
    "MAX_HOISTED_BYTES": (8, 64),
    "MAX_CACHED_ROW_BYTES": (8, 32, 128),
    "COMBINING_THREADS": (4, 32),
    "MAX_FINAL_PARTIALS": (1, 2, 4),  # no more than threads, and than those
    "MAX_REDUCTION_BLOCKS": (2, 3),
    "MIN_REDUCTION_BLOCK_TERMS": (3, 7),  # or parts would have parts without end
    "MIN_OCCUPYING_SEGMENTS": (2, 64, 256),
    "COLUMN_REDUCTION_THREADS": (16, 64),
    "MIN_COLUMN_TERMS_PER_THREAD": (1, 2),
    "MIN_COLUMN_TERMS": (65,),  # as there
    "MAX_SPLIT_KERNEL_ARRAYS": (1, 3, 64),
    "MAX_SCAN_CHUNKS": (2, 3, 1024),
    "MIN_SCAN_CHUNK_ITERATIONS": (2, 3, 32),
    "MIN_SERIAL_SCAN_ROWS": (1, 1 << 16),
    "MIN_PREFIX_CHUNK_ITERATIONS": (1, 2, 3),
    "MIN_PREFIX_CHUNKS": (1, 2),
    "MIN_LAST_WRITER_ITERATIONS": (1, 2, 1024),
    "WAVEFRONT_SKEWS": ((0,), (0, 1), (0, 1, 2, 3)),
    "MIN_WAVEFRONT_ITERATIONS": (2, 3, 32),
    "MAX_FLAG_VALUE_COST": (0, 8, 64),
    "MAX_OWNERS": (2, 3, 4096),
    "MAX_OWNED_CHUNKS": (2, 3, 1024),
    "MIN_OWNED_CHUNK_ITERATIONS": (1, 2),
    "ASSUMED_OWNED_ITERATIONS": (2, 7),
    "MIN_OWNED_CHUNKS": (1, 2),
    "MAX_OWNER_THREADS": (4, 1 << 16),
    "MIN_CONTRACTION_PRODUCTS": (1,),
    "MIN_OCCUPYING_TILES": (1, 3, 128),
    "MIN_LARGE_TILE_ELEMENTS": (1, 1 << 21),
    "MIN_SPLIT_TERMS": (1, 2, 256),
    "MAX_LARGE_TILE_SPLITS": (2, 8),
    "MIN_LARGE_TILE_SPLIT_TERMS": (2, 512),
    "MAX_REMATERIALIZED_COST": (8, 64, 1000),
    "MAX_REMATERIALIZED_NODES": (4, 64),
    "MIN_TENSOR_CORE_SIZE": (1, 16),
    # -- how C is written
    "backends.codegen.speculation.MAX_UNROLLED": (2, 16),
    "backends.codegen.speculation.MAX_DISTANCE": (1, 3),
    "backends.codegen.loop_headers.UNROLL_LIMIT": (1, 2, 16),
    "backends.codegen.vector_variables.MAX_TRIP_COUNT": (1, 4, 32),
    "backends.codegen.parallel_regions.MAX_STACK_BYTES": (0, 64, 1024, 32 * 1024),
    "backends.codegen.prelude.MAX_INLINED_CALLS": (0, 2, 32),
    "backends.codegen.cancellation.LONG_LOOP_WORK": (1, 64, 1 << 27),
    "backends.codegen.quirks.early_unrolling.MIN_TRIP_COUNT": (1, 2, 4),
    "backends.codegen.quirks.early_unrolling.MIN_BYTES": (1, 16, 64),
    "backends.codegen.vectors.MAX_PEELED": (1, 4, 16),
    "backends.codegen.vectors.NARROW_BITS": (64, 256),
    "backends.codegen.vectors.MANY_ACCUMULATORS": (1, 8),
}
"""Values by the name of a tuned constant, or by the module and name of one of another module."""

KEPT: Mapping[str, tuple[str, ...]] = {
    "how the segments of a loop are chosen, which decide what a gradient holds as the user asks": (
        "lowering.adjoint.checkpoints.MOST_CHOICES",
    ),
    "how many statements a gradient has for an extreme, which its text shows": (
        "lowering.adjoint.extremes.MOST",
    ),
    "a fact of processors, devices, C or its compilers, not a policy": (
        "lowering.analysis.parallel_band.MAX_ORDERED_AXES",
        "lowering.cpu.reductions.lane_statements.WIDEST",
        "lowering.gpu.gemm.tensor_tiles.ROW",
        "lowering.gpu.gemm.tensor_tiles.UNIT",
        "lowering.gpu.load_hoisting.WORD",
        "lowering.gpu.reductions.last_block.AXES",
        "lowering.gpu.register_caching.WORD",
        "lowering.gpu.thread_points.MOST_OUTER",
        "lowering.passes.buffer_sharing.ALIGNMENT",
        "lowering.passes.buffer_sharing.STACK_BYTES",
        "lowering.transform.overflow.SAFE_BITS",
        "backends.codegen.dialect.MIN_ALIGNED_BYTES",
        "backends.codegen.index_width.MAX_THREADS",
        "backends.codegen.quirks.crowded_functions.MAX_LOOPS",
        "backends.codegen.quirks.crowded_functions.MAX_TRIP_COUNT",
        "backends.codegen.quirks.vectorizer_dependence.ACCESS_LIMIT",
        "backends.codegen.quirks.vectorizer_dependence.UNROLL_LIMIT",
        "backends.codegen.vectors.LOAD_BITS",
        "backends.codegen.vectors.STORE_BITS",
    ),
    "a limit of Python's parser": (
        "lowering.ir.evaluate.MAX_STATEMENT_DEPTH",
        "lowering.ir.evaluate._MAX_EXPRESSION_DEPTH",
        "lowering.ir.evaluate._MAX_RANGES",
        "lowering.ir.instructions.VECTOR_BYTES",
    ),
    "a bound of a type, or one that a proof needs": (
        "lowering.analysis.cost.MAX_WORK",
        "lowering.gpu.recurrences.monotonic.MAX_INCREMENT",
        "lowering.analysis.predicate_facts.OVERFLOW_SAFE",
        "lowering.gpu.recurrences.find_first.LAST",
        "lowering.ir.bounds.UNBOUNDED_BITS",
        "lowering.ir.evaluate._LIMIT",
        "lowering.ir.exact._SAFE",
        "lowering.adjoint.rules._LOG10",
        "lowering.adjoint.rules._LOG2",
        "lowering.adjoint.rules._ROOT_PI",
        "backends.codegen.cancellation.MAX_STRIP_LENGTH",
        "backends.codegen.frame.MAX_BYTES",
        "backends.codegen.index_width.NARROW_LIMIT",
        "backends.codegen.quirks.counter_overflow.LEAST",
        "backends.codegen.quirks.counter_overflow.MAX_EXTENT",
        "backends.codegen.quirks.counter_overflow.MOST",
    ),
    "a number of the prelude or of the run-time library, too": (
        "backends.codegen.cancellation.WORK_PER_POLL",
        "backends.codegen.entry.LARGE_ARENA",
        "backends.codegen.records.SLOTS",
    ),
    "what an implementation of functions promises": ("lowering.ir.accuracy.LIBRARY",),
    "a mark that is no size": (
        "lowering.analysis.presburger._FRESH",
        "lowering.transform.if_convert._ACTIVE",
    ),
    "the look of a text": (
        "lowering.ir.printer._WIDTH",
        "backends.codegen.names.MAX_LENGTH",
        "backends.codegen.text_layout.WIDTH",
    ),
    "how strongly an operator binds": (
        "lowering.ir.text._ATOM",
        "backends.codegen.c_text.ADD",
        "backends.codegen.c_text.AND",
        "backends.codegen.c_text.BITAND",
        "backends.codegen.c_text.BITOR",
        "backends.codegen.c_text.BITXOR",
        "backends.codegen.c_text.EQUAL",
        "backends.codegen.c_text.MUL",
        "backends.codegen.c_text.OR",
        "backends.codegen.c_text.POSTFIX",
        "backends.codegen.c_text.RELATE",
        "backends.codegen.c_text.SELECT",
        "backends.codegen.c_text.SHIFT",
        "backends.codegen.c_text.UNARY",
    ),
    "how one text is divided among compilers; hunts compile many procedures as one": (
        "backends.codegen.translation_units.MIN_LINES",
    ),
    "the order in which terms are added, which every target shares": ("ARG_LANES", "SUM_LANES"),
    "a limit of effort that random programs do not reach": (
        "MAX_END_CANDIDATES",
        "lowering.operation_counts.MAX_TRACKED_ELEMENTS",
    ),
    "a shape of kernels that other constants are derived from when they are imported": (
        "MAX_POINTS_PER_THREAD",
        "TERM_UNROLL_FACTOR",
        "THREAD_TILE_SIDE",
        "TILE_DEPTH",
        "TILE_SIDE",
        "TILE_SIDE_THREADS",
        "VECTOR_STORE_COLUMNS",
        "WARPGROUP_TILE",
    ),
    "a limit of kernels that small programs reach, on either side of it": (
        "LONG_SERIAL_ITERATIONS",
        "MAX_CHUNK_COPIES_BYTES",
        "MAX_EXTRA_ITERATIONS",
        "MAX_LAST_BLOCK_GRID",
        "MAX_LAST_BLOCK_SHARED_BYTES",
        "MAX_REMATERIALIZED_OPERATIONS",
    ),
}
"""Constants that are numbers and stay as they are, by the reason."""

FOLDERS = ("lowering", "backends/codegen")
"""Where every constant that is a number has to be in one of both tables."""
ROOT = Path(plusequals.__file__).parent


@contextmanager
def lowered(seed: int) -> Iterator[None]:
    """Use other values inside of the `with`, drawn by a seed; 0 are those that there are.

    Each is drawn by the seed and its own name, so that a new row changes no other one.
    """
    before: list[tuple[ModuleType, str, Any]] = []
    try:
        for key, choices in CHOICES.items() if seed else ():
            module, name = home(key)
            before.append((module, name, getattr(module, name)))
            setattr(module, name, random.Random(f"{seed}:{key}").choice(choices))
        for name, made in _processor(random.Random(f"{seed}:processor")) if seed else ():
            before.append((cpu_info, name, getattr(cpu_info, name)))
            setattr(cpu_info, name, made)
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)


def _processor(rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield what stands in for what is asked of this machine: caches, streams and vectors."""
    few = (64, 256) if rng.random() < 0.5 else (256, 1 << 10, 1 << 12, 1 << 14, 1 << 16)
    sizes = sorted(rng.choice(few) for _ in range(3))
    yield "_cache_bytes", lambda level: sizes[level - 1]
    streams = rng.choice((1, 4))
    yield "_streams", lambda: streams
    missing = rng.choice(((), ("avx512f",), ("avx512f", "avx2")))
    lines = tuple(
        " ".join(word for word in line.split(" ") if word not in missing)
        for line in cpu_info._described()
    )
    yield "_described", lambda: lines


def home(key: str) -> tuple[ModuleType, str]:
    """Return the module that a constant is read from, and its name there."""
    module, _, name = key.rpartition(".")
    found = importlib.import_module(f"plusequals.{module}") if module else thresholds
    assert hasattr(found, name), f"there is no {key}"
    return found, name


def constants() -> dict[str, Any]:
    """Return every constant of the folders that is a number, or a tuple of such, by its key."""
    found: dict[str, Any] = {}
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        is_tuned = module.startswith("lowering.thresholds.")
        for name in _assigned(path):
            key = name if is_tuned else f"{module}.{name}"
            assert key not in found, f"two constants have the name {name}"
            value = getattr(*home(key))
            if _is_number(value):
                found[key] = value
    return found


def _assigned(path: Path) -> Iterator[str]:
    """Yield the names in upper case that a file assigns outside of functions and classes."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for node in (part for target in targets for part in ast.walk(target)):
            if isinstance(node, ast.Name) and node.id.isupper():
                yield node.id


def _is_number(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)
