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
    "schedule": "plusequals.lowering.schedule",
    "passes": "plusequals.lowering.passes",
    "emit": "plusequals.backends.emit",
}
"""The packages whose constants are looked at, by the first word of a key below."""

DEVICE: Choices = {
    "schedule.anew": {"WRITTEN": (8, 64, 1000), "MOST_PARTS": (4, 64)},
    "schedule.finish": {"MOST_NODES": (1, 3, 64)},
    "schedule.hosts": {"SMALL": (1, 16)},
    "schedule.prefer": {"POINTS": (1, 2048)},
    "schedule.segments": {"MANY": (2, 64, 256)},
    "schedule.fronts": {"FEWEST": (2, 3, 32), "SKEWS": ((0,), (0, 1), (0, 1, 2, 3))},
    "schedule.inward": {"FEW": (1, 1024), "LONG": (1, 32), "CHEAP": (0, 8, 64)},
    "schedule.points": {
        "THREADS": (32, 64), "EACH": (2, 3), "MANY": (1, 1 << 20), "FEW": (2, 3, 64),
        "PRIVATE_BYTES": (0, 16, 256), "EXPANDED_BYTES": (64, 1 << 28),
    },
    "schedule.team": {"SHARED_BYTES": (16, 128, 47 * 1024), "WORTH": (1, 2, 8), "LONG": (1, 3)},
    "schedule.dealing": {"STRIP": (2, 3, 32)},
    "schedule.registers": {"BYTES": (8, 32, 128)},
    "schedule.early": {"BYTES": (8, 64)},
    "schedule.tree": {"WARP": (4, 32), "LAST": (1, 2, 4)},  # no more than threads, and than those
    "schedule.scan": {"MOST": (2, 3, 1024), "ROUNDS": (2, 3, 32), "ENOUGH": (1, 1 << 16)},
    "schedule.chunks": {"MOST": (2, 3), "ROUNDS": (3, 7)},  # or parts would have parts without end
    "schedule.owners": {
        "MOST": (2, 3, 4096), "PIECES": (2, 3, 1024), "ROUNDS": (1, 2), "UNKNOWN": (2, 7),
        "FEWEST": (1, 2), "THREADS": (4, 1 << 16),
    },
    "schedule.columns": {"THREADS": (16, 64), "TERMS": (1, 2), "WORTH": (65,)},  # as there
    "schedule.device_contraction": {"LEAST": (1,)},
    "schedule.device_parts": {"TERMS": (1, 2, 256), "FEW": (2, 8), "LONG": (2, 512)},
    "schedule.device_tiles": {"ENOUGH": (1, 3, 128), "LARGE": (1, 1 << 21)},
    "schedule.tensor_tiles": {"LEAST": (1, 16)},
    "schedule.fission": {"FEWEST": (1, 2, 32)},
    "schedule.lasts": {"FEWEST": (1, 2, 1024)},
    "schedule.ranks": {"FEWEST": (1, 2), "ROUNDS": (1, 2, 3)},
}  # fmt: skip
"""Those that only devices ask for, by the file that has them."""

HOST: Choices = {
    "schedule.answered": {"BLOCK": (2, 3, 16, 1024)},
    "schedule.beside": {"BLOCK": (2, 3, 16, 1024)},
    "schedule.best": {"BLOCK": (32, 64, 1024), "FEW": (32, 64)},  # no less than lanes
    "schedule.blocks": {
        "COLUMNS": (4, 16, 1024), "ROWS": (4, 12, 576), "GROUP": (64, 1 << 18),
        "BYTES": (32, 256, 2048), "LINE": (1, 4, 16), "LONG": (4, 32, 2048),
        "SUMS": (256, 4096, 5 << 19), "FEW": (1, 4, 10), "FULL": (0, 3), "UNEVEN": (1, 4),
        "FREE": (1, 3, 16), "NARROW": (1, 2), "MINE": (0.1, 0.75), "MANY": (1, 4, 64),
        "WHOLE": ((1, 256), (2, 1 << 20)), "ONCE": (1, 16), "KEPT": (1, 3), "SMALL": (1, 64, 8192),
    },
    "schedule.contraction": {"LONG": (2, 16, 512), "OFTEN": (1, 8), "WIDE": (1, 4, 32)},
    "schedule.deferred": {
        "SHARE": (0, 1, 16), "ROOM": (16, 64, 1 << 18), "UNKNOWN": (1, 3, 256), "EACH": (0, 2),
    },
    "schedule.edges": {"LEAST": (1, 2, 16), "_LARGEST": (20, 1000), "MOST": (0, 2, 4)},
    "schedule.effort": {
        "WRITE": (1, 50), "PRINTED": (1, 1000), "SCALAR": (1, 8), "DEAR": (1, 16),
        "AT_ONCE": (1, 16),
    },
    "schedule.extremes": {"FEW": (1, 5)},
    "schedule.guarded": {"DEAR": (0, 64, 1000)},
    "schedule.integers": {"ROWS": (2, 10, 160), "TRIES": (1, 10, 400)},
    "schedule.jam": {"MOST": (1, 2, 4, 7)},
    "schedule.kinds": {"ROOM": (0, 512, 4 << 20, 4 << 20, 4 << 20)},
    "schedule.lane_parts": {"LARGEST": (4, 96)},
    "schedule.lanes": {"BLOCK": (32, 64, 1024), "BLOCKS": (2048, 1 << 15), "SHORT": (1, 3, 8)},
    "schedule.lockstep": {"LANES": (2, 3, 32)},
    "schedule.masks": {"FEW": (0, 4), "DEAR": (0, 128, 1000)},
    "schedule.narrow": {"FEW": (0, 2, 16)},
    "schedule.periods": {"LEAST": (1, 2, 16)},
    "schedule.picked": {"MOST": (1, 3, 64)},
    "schedule.pieces": {
        "SHARE": (0, 1, 4), "WIDE": (1, 2, 16), "LONG": (0, 1, 4), "EVEN": (1, 512),
        "EACH": (1, 2, 4),
    },
    "schedule.places": {"MOST": (1, 4, 8)},
    "schedule.planes": {"OFTEN": (1, 2, 16)},
    "schedule.real_form": {"FEW": (1, 2, 8), "SMALL": (1, 64, 1 << 17)},
    "schedule.split": {"AT_A_TIME": (32, 64, 2048)},
    "schedule.stage": {"NEAR": (1, 2, 8), "FEW": (1, 2, 16), "SAME": (64, 4096)},
    "schedule.stages": {
        "ROUNDS": (2, 3, 256), "FEW": (1, 2, 32), "LONG": (2, 3, 2048), "MANY": (0, 2, 16),
    },
    "schedule.stencil": {
        "MOST_STAGES": (1, 2, 32), "MOST_TEXT": (1, 3, 12), "NEAR": (16, 64, 256, 16 << 10),
        "FAR": (0, 256, 4 << 20), "PIECES": (1, 2, 4),
    },
    "schedule.streams": {"MOST": (2, 3, 4), "LARGEST": (4, 60)},
    "schedule.strips": {"ROWS": (1, 2, 4), "FEW": (1, 2, 12), "UNKNOWN": (1, 2, 8)},
    "schedule.transposed": {"TILE": (16, 32, 128), "NEAR": (1, 6, 256), "LINE": (8, 16, 64)},
    "schedule.wraps": {"LEAST": (1, 2, 16), "MOST": (0, 1, 2, 3)},
    "schedule.sums": {"MANY": (0, 3, 32)},
    "schedule.sweeps": {"ROOM": (16, 256, 64 << 10), "MOST_PERIOD": (1, 2, 4)},
    "schedule.symmetric": {"ROWS": (2, 3, 48), "TERMS": (2, 3, 64)},
    "schedule.together": {"CHEAP": (0, 8, 64)},
    "passes.access": {
        "FIRST": (1, 2, 4, 8), "BRANCHES": (0, 1, 4), "CUTS": (1, 2, 8), "PARTS": (1, 2, 8),
    },
    "passes.buffers": {"STACK_SHARE": (1, 2, 16)},
    "passes.cost": {"CHEAP": (0, 2, 8), "UNKNOWN": (2, 64), "STORE": (0, 4, 30), "READ": (1, 4)},
    "passes.fuse": {"BACK": (1, 3, 64)},
    "passes.products": {"TILED": (1, 64, 4096), "LEFT": (1, 4, 32)},
    "passes.unroll": {"ROUNDS": (1, 3, 5, 9), "STATEMENTS": (2, 8, 96)},
    "passes.virtualize": {"MAX_SIZE": (2, 8, 64, 200)},
    "emit.eager": {"FEW": (2, 16), "LAST": (1, 3)},
    "emit.heads": {"ROLLED": (1, 2, 16)},
    "emit.held": {"MOST_UNROLLED": (1, 4, 32)},
    "emit.parts": {"ROOM": (0, 64, 1024, 32 * 1024)},
    "emit.prelude": {"INLINED": (0, 2, 32)},
    "emit.polls": {"LONG": (1, 64, 1 << 27)},
    "emit.rolled": {"SHORT": (1, 2, 4), "PIECE": (1, 16, 64)},
    "emit.vectors": {"PEELED": (1, 4, 16), "NARROW": (64, 256), "MANY": (1, 8)},
}  # fmt: skip
"""Those of passes that all targets share, of the schedule of C, and of how C is written."""

CHOICES: Choices = {**DEVICE, **HOST}
"""Values by the key of the file and the name of the constant."""

KEPT: Mapping[str, tuple[str, ...]] = {
    "a fact of a processor, of C or its compilers or of the machine, not a policy": (
        "emit.dialect.VECTOR", "emit.order.PEELED", "emit.order.WRITTEN_OUT",
        "passes.buffers.ALIGNMENT", "passes.buffers.STACK_BYTES",
        "schedule.early.WORD",
        "schedule.registers.WORD", "schedule.lane_parts.WIDEST", "schedule.nests.MOST_IN_ORDER",
        "schedule.points.MOST_OUTER", "schedule.finish.AXES", "schedule.tensor_tiles.UNIT",
        "schedule.tensor_tiles.ROW", "schedule.tensor_units.PIECE", "schedule.tensor_units.WIDE",
        "emit.widths.MOST_THREADS", "emit.turns.PIECE", "emit.turns.WIDTH",
    ),
    "a bound that a proof needs": (
        "emit.ends.SIZE", "emit.frame.MOST", "emit.widths.LIMIT", "schedule.effort.MOST",
        "schedule.growing.SMALL", "schedule.searches.LAST", "schedule.truth.SAFE",
        "emit.polls.FAR", "emit.ends.LEAST", "emit.ends.MOST",
    ),
    "a number of the prelude or of the run-time library, too": (
        "emit.entry.LARGE", "emit.polls.PIECE", "emit.record.SLOTS",
    ),
    "the order in which terms are added, which every target shares": (
        "schedule.best.LANES", "schedule.lanes.LANES",
    ),
    "a mark that is no size": (
        "schedule.integers._FRESH", "schedule.predicate._ON",
    ),
    "the look of a text": ("emit.layout.WIDTH", "emit.names.LONGEST"),
    "how strongly an operator of C binds": (
        "emit.c_text.ADD", "emit.c_text.AND", "emit.c_text.BITAND", "emit.c_text.BITOR",
        "emit.c_text.BITXOR", "emit.c_text.CHOOSE", "emit.c_text.EQUAL", "emit.c_text.MUL",
        "emit.c_text.OR", "emit.c_text.POSTFIX", "emit.c_text.RELATE", "emit.c_text.SHIFT",
        "emit.c_text.UNARY",
    ),
    "how one text is divided among compilers; hunts compile many procedures as one": (
        "emit.division.LEAST",
    ),
    "a shape of kernels that other numbers are derived from when they are imported": (
        "schedule.device_contraction.DEPTH", "schedule.device_contraction.SIDE",
        "schedule.device_tiles.ACROSS", "schedule.device_tiles.NEIGHBOURS",
        "schedule.device_tiles.STEP", "schedule.neighbours.SIZE", "schedule.points.MOST_EACH",
    ),
    "a limit of kernels that small programs reach, on either side of it": (
        "schedule.copied.MOST", "schedule.finish.BLOCKS", "schedule.finish.LONG",
        "schedule.finish.SHARED_BYTES",
        "schedule.owners.PARTS_BYTES", "schedule.searches.MANY",
    ),
}  # fmt: skip
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
    folder, _, stem = file.partition(".")
    return f"{FOLDERS[folder]}.{stem}"


@cache
def _importers() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the modules that import a constant, by where it is from and its name."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for folder, package in FOLDERS.items():
        for path in _files(folder):
            inside = f"{package}.{path.stem}"
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
    for folder, package in FOLDERS.items():
        for path in _files(folder):
            module = importlib.import_module(f"{package}.{path.stem}")
            for name in _assigned(path):
                if _is_number(getattr(module, name)):
                    found[f"{folder}.{path.stem}.{name}"] = getattr(module, name)
    return found


def _files(folder: str) -> list[Path]:
    package = importlib.import_module(FOLDERS[folder])
    return [p for p in sorted(Path(package.__path__[0]).glob("*.py")) if p.stem != "__init__"]


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
