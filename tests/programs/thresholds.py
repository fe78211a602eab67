"""From which sizes on a device is used in which way, lowered so that small programs use all ways.

What a random program computes is small, and most of what kernels do begins with large sizes. The
numbers that decide it change no meaning, so any of these have to give right results.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

import plusequals.lowering.schedule as schedule

CHOICES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "anew": {"WRITTEN": (8, 64, 1000)},
    "grid": {"MOST_NODES": (1, 3, 64)},
    "hosts": {"SMALL": (1, 16)},
    "prefer": {"POINTS": (1, 2048)},
    "segments": {"MANY": (2, 64, 256)},
    "fronts": {"FEWEST": (2, 3, 32)},
    "inward": {"FEW": (1, 1024), "LONG": (1, 32)},
    "points": {
        "THREADS": (32, 64), "EACH": (2, 3), "MANY": (1, 1 << 20), "FEW": (2, 3, 64),
        "PRIVATE_BYTES": (0, 16, 256), "EXPANDED_BYTES": (64, 1 << 28),
    },
    "team": {"SHARED_BYTES": (16, 128, 47 * 1024), "WORTH": (1, 2, 8), "LONG": (1, 3)},
    "dealing": {"STRIP": (2, 3, 32)},
    "registers": {"BYTES": (8, 32, 128)},
    "early": {"BYTES": (8, 64)},
    "tree": {"WARP": (4, 32), "LAST": (1, 2, 4)},  # no more than threads, and than those
    "scan": {"MOST": (2, 3, 1024), "ROUNDS": (2, 3, 32), "ENOUGH": (1, 1 << 16)},  # as below
    "chunks": {"MOST": (2, 3), "ROUNDS": (3, 7)},  # or parts would have parts without end
    "owners": {
        "MOST": (2, 3, 4096), "PIECES": (2, 3, 1024), "ROUNDS": (1, 2), "UNKNOWN": (2, 7),
        "FEWEST": (1, 2), "THREADS": (4, 1 << 16),
    },
    "columns": {"THREADS": (16, 64), "TERMS": (1, 2), "WORTH": (65,)},  # as there
    "device_contraction": {"LEAST": (1,)},
    "device_parts": {"TERMS": (1, 2, 256)},
    "device_tiles": {"ENOUGH": (1, 3, 128), "LARGE": (1, 1 << 21)},
    "tensor_tiles": {"LEAST": (1, 16)},
    "fission": {"FEWEST": (1, 2, 32)},
    "lasts": {"FEWEST": (1, 2, 1024)},
    "ranks": {"FEWEST": (1, 2), "ROUNDS": (1, 2, 3)},
}  # fmt: skip
"""By the file that has it."""


@contextmanager
def lowered(seed: int) -> Iterator[None]:
    """Use other numbers inside of the `with`, drawn by a seed; 0 are those that there are."""
    rng = random.Random(seed)
    before: list[tuple[ModuleType, str, int]] = []
    try:
        for file, names in CHOICES.items() if seed else ():
            for name, choices in names.items():
                value = rng.choice(choices)
                for module in _users(file, name):
                    before.append((module, name, getattr(module, name)))
                    setattr(module, name, value)
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)


@cache
def _users(file: str, name: str) -> tuple[ModuleType, ...]:
    """Return the module that has a number, and those that take it from there."""
    own = importlib.import_module(f"{schedule.__name__}.{file}")
    assert isinstance(getattr(own, name), int), f"{file} has no {name}"
    out = [own]
    for path in sorted(Path(schedule.__path__[0]).glob("*.py")):
        taken = [line for line in _imports(path) if line.startswith(f"from .{file} import ")]
        if any(name in line.replace(",", " ").split() for line in taken):
            out.append(importlib.import_module(f"{schedule.__name__}.{path.stem}"))
    return tuple(out)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return the imports of a file, each in one line."""
    text = path.read_text(encoding="utf-8").replace("(\n", " ").replace(",\n", ",")
    return tuple(" ".join(line.split()) for line in text.splitlines())
