"""Policy numbers of both schedules and of the processor, drawn so that small programs use all ways.

What a random program computes is small, and most of what schedules do begins with large sizes. The
numbers that decide it change no meaning, so any of these have to give right results. `CHOICES` has
what is drawn, `KEPT` what is not, and why; a test holds that no tuned constant is in neither.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from plusequals.backends.cc import cpu_info

Choices = Mapping[str, Mapping[str, tuple[Any, ...]]]

FOLDERS = {
    "thresholds": "plusequals.lowering.thresholds",
    "analysis": "plusequals.lowering.analysis",
    "passes": "plusequals.lowering.passes",
    "transform": "plusequals.lowering.transform",
    "cpu": "plusequals.lowering.cpu",
    "gpu": "plusequals.lowering.gpu",
    "codegen": "plusequals.backends.codegen",
}
"""What constants are looked for in, by the first word of a key below."""

DEVICE: Choices = {
    "gpu.gemm.rematerialize": {"WRITTEN": (8, 64, 1000), "MOST_PARTS": (4, 64)},
    "gpu.reductions.last_block": {"MOST_NODES": (1, 3, 64)},
    "gpu.host_code": {"SMALL": (1, 16)},
    "gpu.mapping_heuristic": {"POINTS": (1, 2048)},
    "gpu.reductions.segmented": {"MANY": (2, 64, 256)},
    "gpu.recurrences.wavefront": {"FEWEST": (2, 3, 32), "SKEWS": ((0,), (0, 1), (0, 1, 2, 3))},
    "transform.perfect_nest": {
        "ENOUGH_POINTS": (1, 1024),
        "LONG_INNER_LOOP": (1, 32),
        "SINK_COST": (0, 8, 64),
    },
    "gpu.thread_points": {
        "THREADS": (32, 64),
        "EACH": (2, 3),
        "MANY": (1, 1 << 20),
        "FEW": (2, 3, 64),
        "PRIVATE_BYTES": (0, 16, 256),
    },
    "gpu.thread_block": {"SHARED_BYTES": (16, 128, 47 * 1024), "LONG": (1, 3)},
    "thresholds": {"MAX_EXPANDED_BYTES": (64, 1 << 28), "MIN_DISTRIBUTED_ITERATIONS": (1, 2, 8)},
    "gpu.cyclic_distribution": {"STRIP": (2, 3, 32)},
    "gpu.register_caching": {"BYTES": (8, 32, 128)},
    "gpu.load_hoisting": {"BYTES": (8, 64)},
    "gpu.reductions.block_reduction": {
        "WARP": (4, 32),
        "LAST": (1, 2, 4),
    },  # no more than threads, and than those
    "gpu.reductions.scan": {"MOST": (2, 3, 1024), "ROUNDS": (2, 3, 32), "ENOUGH": (1, 1 << 16)},
    "gpu.reductions.split_reduction": {
        "MOST": (2, 3),
        "ROUNDS": (3, 7),
    },  # or parts would have parts without end
    "gpu.owner_computes": {
        "MOST": (2, 3, 4096),
        "PIECES": (2, 3, 1024),
        "ROUNDS": (1, 2),
        "UNKNOWN": (2, 7),
        "FEWEST": (1, 2),
        "THREADS": (4, 1 << 16),
    },
    "gpu.reductions.column_reduction": {
        "THREADS": (16, 64),
        "TERMS": (1, 2),
        "WORTH": (65,),
    },  # as there
    "gpu.gemm.contraction": {"LEAST": (1,)},
    "gpu.gemm.split_k": {"TERMS": (1, 2, 256), "FEW": (2, 8), "LONG": (2, 512)},
    "gpu.gemm.shared_tiles": {"ENOUGH": (1, 3, 128), "LARGE": (1, 1 << 21)},
    "gpu.gemm.tensor_tiles": {"LEAST": (1, 16)},
    "transform.distribute": {"MIN_FISSION_ITERATIONS": (1, 2, 32)},
    "gpu.recurrences.last_writer": {"FEWEST": (1, 2, 1024)},
    "gpu.recurrences.multi_prefix": {"FEWEST": (1, 2), "ROUNDS": (1, 2, 3)},
}
"""Those that only devices ask for, by the file that has them."""

HOST: Choices = {
    "cpu.reductions.early_exit": {"BLOCK": (2, 3, 16, 1024)},
    "cpu.checks.fused": {"BLOCK": (2, 3, 16, 1024)},
    "cpu.reductions.arg_reduction": {
        "BLOCK": (32, 64, 1024),
        "FEW": (32, 64),
    },  # no less than lanes
    "cpu.gemm.blocking": {
        "COLUMNS": (4, 16, 1024),
        "ROWS": (4, 12, 576),
        "GROUP": (64, 1 << 18),
        "BYTES": (32, 256, 2048),
        "LINE": (1, 4, 16),
        "LONG": (4, 32, 2048),
        "SUMS": (256, 4096, 5 << 19),
        "FEW": (1, 4, 10),
        "FULL": (0, 3),
        "UNEVEN": (1, 4),
        "FREE": (1, 3, 16),
        "NARROW": (1, 2),
        "MINE": (0.1, 0.75),
        "MANY": (1, 4, 64),
        "WHOLE": ((1, 256), (2, 1 << 20)),
        "ONCE": (1, 16),
        "KEPT": (1, 3),
        "SMALL": (1, 64, 8192),
    },
    "analysis.iteration_domains": {"MAX_POINTS": (4, 64, 1 << 20)},
    "analysis.upward_exposed": {"MAX_EVENTS": (0, 16, 1 << 20)},
    "analysis.contraction": {
        "LONG_REDUCTION": (2, 16, 512),
        "MANY_COPIES": (1, 8),
        "MIN_COLUMNS": (1, 4, 32),
    },
    "cpu.deferred_accumulation": {
        "SHARE": (0, 1, 16),
        "ROOM": (16, 64, 1 << 18),
        "UNKNOWN": (1, 3, 256),
        "EACH": (0, 2),
    },
    "cpu.peel": {"LEAST": (1, 2, 16), "MOST": (0, 2, 4)},
    "analysis.cost": {
        "_MAX_SUBEXPRESSIONS": (20, 1000),
        "WRITE": (1, 50),
        "PRINT_COST": (1, 1000),
        "SCALAR": (1, 8),
        "LIBRARY_CALL_COST": (1, 16),
        "REGISTER_TILE_BYTES": (1, 16),
    },
    "cpu.reductions.min_max": {"FEW": (1, 5)},
    "cpu.predicated_reduction": {"DEAR": (0, 64, 1000)},
    "analysis.presburger": {"MAX_ROWS": (2, 10, 160), "MAX_TRIES": (1, 10, 400)},
    "cpu.unroll_and_jam": {"MOST": (1, 2, 4, 7)},
    "cpu.parallelize": {"ROOM": (0, 512, 4 << 20, 4 << 20, 4 << 20)},
    "cpu.reductions.lane_statements": {"LARGEST": (4, 96)},
    "cpu.reductions.lanes": {
        "BLOCK": (32, 64, 1024),
        "BLOCKS": (2048, 1 << 15),
        "SHORT": (1, 3, 8),
    },
    "cpu.divergent_lanes": {"LANES": (2, 3, 32)},
    "cpu.masked_lanes": {"FEW": (0, 4), "DEAR": (0, 128, 1000)},
    "cpu.reductions.narrow_accumulators": {"FEW": (0, 2, 16)},
    "cpu.delinearize": {"LEAST": (1, 2, 16)},
    "cpu.force_simd": {"MOST": (1, 3, 64)},
    "cpu.privatized_arrays": {
        "SHARE": (0, 1, 4),
        "WIDE": (1, 2, 16),
        "LONG": (0, 1, 4),
        "EVEN": (1, 512),
        "EACH": (1, 2, 4),
    },
    "analysis.conflicting_iterations": {"MAX_CONFLICTS": (1, 4, 8)},
    "cpu.complex_planes": {"OFTEN": (1, 2, 16)},
    "cpu.gemm.complex_products": {"FEW": (1, 2, 8), "SMALL": (1, 64, 1 << 17)},
    "cpu.distribute_columns": {"AT_A_TIME": (32, 64, 2048)},
    "cpu.gemm.packing": {"NEAR": (1, 2, 8), "FEW": (1, 2, 16), "SAME": (64, 4096)},
    "cpu.function_stages": {
        "ROUNDS": (2, 3, 256),
        "FEW": (1, 2, 32),
        "LONG": (2, 3, 2048),
        "MANY": (0, 2, 16),
    },
    "cpu.time_tiling": {
        "MOST_STAGES": (1, 2, 32),
        "MOST_TEXT": (1, 3, 12),
        "NEAR": (16, 64, 256, 16 << 10),
        "FAR": (0, 256, 4 << 20),
        "PIECES": (1, 2, 4),
    },
    "cpu.transposed_tiles": {"TILE": (16, 32, 128), "NEAR": (1, 6, 256), "LINE": (8, 16, 64)},
    "cpu.reductions.row_jam": {"MOST": (2, 3, 4), "LARGEST": (4, 60)},
    "cpu.reductions.column_strips": {"ROWS": (1, 2, 4), "FEW": (1, 2, 12), "UNKNOWN": (1, 2, 8)},
    "cpu.split_wrapped": {"LEAST": (1, 2, 16), "MOST": (0, 1, 2, 3)},
    "analysis.reductions": {"MIN_SPLIT_ITERATIONS": (0, 3, 32)},
    "analysis.stencil": {"MAX_ROW_BYTES": (16, 256, 64 << 10), "MAX_PERIOD": (1, 2, 4)},
    "cpu.gemm.symmetric": {"ROWS": (2, 3, 48), "TERMS": (2, 3, 64)},
    "gpu.recurrences.exit_flags": {"CHEAP": (0, 8, 64)},
    "analysis.accesses": {
        "MAX_FIRST_ITERATIONS": (1, 2, 4, 8),
        "MAX_BRANCHES": (0, 1, 4),
        "MAX_SPLIT_POINTS": (1, 2, 8),
        "MAX_PARTIAL_WRITES": (1, 2, 8),
    },
    "passes.buffer_sharing": {"STACK_SHARE": (1, 2, 16)},
    "analysis.expression_cost": {
        "RECOMPUTE_COST": (0, 2, 8),
        "UNKNOWN_SIZE": (2, 64),
        "STORE": (0, 4, 30),
        "READ": (1, 4),
    },
    "passes.fuse": {"MAX_STATEMENTS_BACK": (1, 3, 64)},
    "analysis.product_loops": {"MIN_TILED_POINTS": (1, 64, 4096), "MIN_TILE_SIDE": (1, 4, 32)},
    "passes.unroll": {
        "MAX_UNROLLED_ITERATIONS": (1, 3, 5, 9),
        "MAX_UNROLLED_STATEMENTS": (2, 8, 96),
    },
    "passes.inline": {"MAX_INLINED_SIZE": (2, 8, 64, 200)},
    "codegen.speculation": {"MAX_UNROLLED": (2, 16), "MAX_DISTANCE": (1, 3)},
    "codegen.loop_headers": {"UNROLL_LIMIT": (1, 2, 16)},
    "codegen.vector_variables": {"MAX_TRIP_COUNT": (1, 4, 32)},
    "codegen.parallel_regions": {"MAX_STACK_BYTES": (0, 64, 1024, 32 * 1024)},
    "codegen.prelude": {"MAX_INLINED_CALLS": (0, 2, 32)},
    "codegen.cancellation": {"LONG_LOOP_WORK": (1, 64, 1 << 27)},
    "codegen.quirks.early_unrolling": {"MIN_TRIP_COUNT": (1, 2, 4), "MIN_BYTES": (1, 16, 64)},
    "codegen.vectors": {
        "MAX_PEELED": (1, 4, 16),
        "NARROW_BITS": (64, 256),
        "MANY_ACCUMULATORS": (1, 8),
    },
}
"""Those of passes that all targets share, of the schedule of C, and of how C is written."""

CHOICES: Choices = {**DEVICE, **HOST}
"""Values by the key of the file and the name of the constant."""

KEPT: Mapping[str, tuple[str, ...]] = {
    "a fact of a processor, of C or its compilers or of the machine, not a policy": (
        "codegen.dialect.MIN_ALIGNED_BYTES",
        "codegen.quirks.vectorizer_dependence.ACCESS_LIMIT",
        "codegen.quirks.vectorizer_dependence.UNROLL_LIMIT",
        "passes.buffer_sharing.ALIGNMENT",
        "passes.buffer_sharing.STACK_BYTES",
        "gpu.load_hoisting.WORD",
        "gpu.register_caching.WORD",
        "cpu.reductions.lane_statements.WIDEST",
        "analysis.parallel_band.MAX_ORDERED_AXES",
        "gpu.thread_points.MOST_OUTER",
        "gpu.reductions.last_block.AXES",
        "gpu.gemm.tensor_tiles.UNIT",
        "gpu.gemm.tensor_tiles.ROW",
        "gpu.gemm.tensor_cores.PIECE",
        "gpu.gemm.tensor_cores.WIDE",
        "codegen.index_width.MAX_THREADS",
        "codegen.transposes.LOAD_BITS",
        "codegen.transposes.STORE_BITS",
    ),
    "a bound that a proof needs": (
        "codegen.quirks.counter_overflow.MAX_EXTENT",
        "codegen.frame.MAX_BYTES",
        "codegen.index_width.NARROW_LIMIT",
        "analysis.cost.MAX_WORK",
        "analysis.monotonic.MAX_INCREMENT",
        "gpu.recurrences.find_first.LAST",
        "analysis.predicate_facts.OVERFLOW_SAFE",
        "codegen.cancellation.MAX_STRIP_LENGTH",
        "codegen.quirks.counter_overflow.LEAST",
        "codegen.quirks.counter_overflow.MOST",
    ),
    "a number of the prelude or of the run-time library, too": (
        "codegen.entry.LARGE_ARENA",
        "codegen.cancellation.WORK_PER_POLL",
        "codegen.records.SLOTS",
    ),
    "the order in which terms are added, which every target shares": (
        "cpu.reductions.arg_reduction.LANES",
        "cpu.reductions.lanes.LANES",
    ),
    "a mark that is no size": (
        "analysis.presburger._FRESH",
        "transform.if_convert._ACTIVE",
    ),
    "the look of a text": ("codegen.text_layout.WIDTH", "codegen.names.MAX_LENGTH"),
    "how strongly an operator of C binds": (
        "codegen.c_text.ADD",
        "codegen.c_text.AND",
        "codegen.c_text.BITAND",
        "codegen.c_text.BITOR",
        "codegen.c_text.BITXOR",
        "codegen.c_text.SELECT",
        "codegen.c_text.EQUAL",
        "codegen.c_text.MUL",
        "codegen.c_text.OR",
        "codegen.c_text.POSTFIX",
        "codegen.c_text.RELATE",
        "codegen.c_text.SHIFT",
        "codegen.c_text.UNARY",
    ),
    "how one text is divided among compilers; hunts compile many procedures as one": (
        "codegen.translation_units.MIN_LINES",
    ),
    "a shape of kernels that other numbers are derived from when they are imported": (
        "gpu.gemm.contraction.DEPTH",
        "gpu.gemm.contraction.SIDE",
        "gpu.gemm.shared_tiles.ACROSS",
        "gpu.gemm.shared_tiles.NEIGHBOURS",
        "gpu.gemm.shared_tiles.STEP",
        "gpu.gemm.vector_stores.SIZE",
        "gpu.thread_points.MOST_EACH",
    ),
    "a limit of kernels that small programs reach, on either side of it": (
        "gpu.scalar_rematerialization.MOST",
        "gpu.reductions.last_block.BLOCKS",
        "gpu.reductions.last_block.LONG",
        "gpu.reductions.last_block.SHARED_BYTES",
        "gpu.owner_computes.PARTS_BYTES",
        "gpu.recurrences.find_first.MANY",
    ),
}
"""Constants that are numbers and stay as they are, by the reason."""


@contextmanager
def lowered(seed: int) -> Iterator[None]:
    """Use other numbers inside of the `with`, drawn by a seed; 0 are those that there are.

    Each is drawn by the seed and its own name, so that a new row changes no other one.
    """
    before: list[tuple[ModuleType, str, Any]] = []
    try:
        for file, names in CHOICES.items() if seed else ():
            for name, choices in names.items():
                value = random.Random(f"{seed}:{file}.{name}").choice(choices)
                for module in users(file, name):
                    before.append((module, name, getattr(module, name)))
                    setattr(module, name, value)
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


@cache
def users(file: str, name: str) -> tuple[ModuleType, ...]:
    """Return the module that has a constant, and those that import it from there."""
    own = importlib.import_module(module_of(file))
    assert hasattr(own, name), f"{file} has no {name}"
    return (
        own,
        *(importlib.import_module(one) for one in _importers().get((own.__name__, name), ())),
    )


def module_of(file: str) -> str:
    """Return the full name of a module, given its key."""
    folder, dot, inside = file.partition(".")
    return f"{FOLDERS[folder]}{dot}{inside}"


@cache
def _importers() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the modules that import a constant, by where it is from and its name."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for folder in FOLDERS:
        for key, path in _files(folder):
            inside = module_of(key)
            for dots, source, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
                above = inside.rsplit(".", len(dots))[0] if dots else ""
                where = f"{above}.{source}".strip(".")
                for name in re.findall(r"\b_?[A-Z][A-Z_0-9]*\b(?! as)", names):
                    found[where, name] = (*found.get((where, name), ()), inside)
    return found


_IMPORT = re.compile(r"^ *from (\.*)([\w.]*) import (\([^)]*\)|[^\n(]*)", re.MULTILINE)


def constants() -> dict[str, Any]:
    """Return every constant of the packages that is a number, or a tuple of such, by its key."""
    found: dict[str, Any] = {}
    for folder in FOLDERS:
        for key, path in _files(folder):
            module = importlib.import_module(module_of(key))
            for name in _assigned(path):
                if _is_number(getattr(module, name)):
                    found[f"{key}.{name}"] = getattr(module, name)
    return found


def _files(folder: str) -> list[tuple[str, Path]]:
    """Return the modules of a package, of those in it too, or the module: keys and files."""
    home = importlib.import_module(FOLDERS[folder])
    if not hasattr(home, "__path__"):
        return [(folder, Path(home.__file__ or ""))]
    root = Path(home.__path__[0])
    return [
        (".".join((folder, *path.relative_to(root).with_suffix("").parts)), path)
        for path in sorted(root.rglob("*.py")) if path.stem != "__init__"
    ]  # fmt: skip


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
