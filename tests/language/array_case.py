"""What a case of array notation is: lines of text, and the inputs that its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def _draw(seed: int, *shape: int) -> np.ndarray:
    return 4.0 * np.random.default_rng(seed).random(shape) - 2.0


def _ints(seed: int, low: int, high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape)


def _complex(seed: int, *shape: int) -> np.ndarray:
    return _draw(seed, *shape) + 1j * _draw(seed + 50, *shape)


INPUTS: dict[str, Callable[[], Any]] = {
    "a": lambda: _draw(1, 3, 4),
    "b": lambda: _draw(2, 3, 4),
    "p": lambda: 0.2 + 0.15 * np.abs(_draw(3, 3, 4)),
    "c": lambda: _draw(4, 2, 3, 4),
    "d": lambda: _draw(5, 2, 4, 3),
    "sq": lambda: _draw(6, 4, 4) + 5.0 * np.eye(4),
    "spd": lambda: _draw(6, 4, 4) @ _draw(6, 4, 4).T + 5.0 * np.eye(4),
    "v": lambda: _draw(7, 4),
    "u": lambda: _draw(8, 3),
    "x": lambda: _draw(9, 9),
    "y": lambda: _draw(10, 9),
    "sorted_x": lambda: np.sort(_draw(11, 7)),
    "long_x": lambda: _draw(12, 300),
    "one": lambda: _draw(13, 1),
    "row": lambda: _draw(14, 1, 4),
    "col": lambda: _draw(15, 3, 1),
    "zero_d": lambda: np.array(1.5),
    "empty": lambda: np.zeros(0),
    "empty2": lambda: np.zeros((0, 4)),
    "nans": lambda: np.array([1.0, np.nan, -np.inf, np.inf, -0.0, 0.0]),
    "f": lambda: _draw(16, 3, 4).astype(np.float32),
    "fv": lambda: _draw(17, 4).astype(np.float32),
    "half": lambda: _draw(18, 4).astype(np.float16),
    "z": lambda: _complex(19, 3, 4),
    "zv": lambda: _complex(20, 4),
    "z8": lambda: _complex(21, 4).astype(np.complex64),
    "i": lambda: _ints(22, -9, 10, 3, 4),
    "j": lambda: _ints(23, 1, 6, 3, 4),
    "i4": lambda: _ints(24, -9, 10, 3, 4).astype(np.int32),
    "i2": lambda: _ints(25, -9, 10, 4).astype(np.int16),
    "i1": lambda: _ints(26, -99, 99, 4).astype(np.int8),
    "u1": lambda: _ints(27, 0, 256, 4).astype(np.uint8),
    "u4": lambda: _ints(28, 0, 99, 4).astype(np.uint32),
    "u8": lambda: _ints(29, 0, 99, 4).astype(np.uint64),
    "m": lambda: _draw(30, 3, 4) > 0,
    "m2": lambda: _draw(31, 3, 4) > 0,
    "mv": lambda: np.array([True, False, True, True]),
    "idx": lambda: np.array([3, 0, 0, 2, 1]),
    "perm": lambda: np.array([2, 0, 3, 1]),
    "neg": lambda: np.array([-1, 0, -4]),
    "idx2": lambda: _ints(32, 0, 4, 2, 3),
    "words": lambda: _ints(33, 0, 5, 20),
    "n": lambda: 3,
    "g": lambda: 0.5,
    "flag": lambda: True,
    "cz": lambda: 1.0 + 2.0j,
    "strong": lambda: np.float64(0.5),
    "strong32": lambda: np.float32(0.5),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a table: an expression to return, or statements after `!`, split at `;`."""

    group: str
    line: str

    def __repr__(self) -> str:
        return f"{self.group}: {self.line}"

    @property
    def body(self) -> list[str]:
        """The statements."""
        if self.line.startswith("!"):
            return [part.strip() for part in self.line[1:].split(";")]
        return [f"return {self.line}"]

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs it uses, in the order of the table; they become the parameters."""
        tree = ast.parse("\n".join(self.body))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return tuple(name for name in INPUTS if name in used)

    @property
    def text(self) -> str:
        """The whole function, as source text."""
        lines = "".join(f"    {statement}\n" for statement in self.body)
        return f"def f({', '.join(self.names)}):\n{lines}"

    def make(self) -> tuple[Any, ...]:
        """Return new arguments."""
        return tuple(INPUTS[name]() for name in self.names)

    def plain(self) -> Callable[..., Any]:
        """Return the function that Python and NumPy make of the text."""
        names: dict[str, Any] = {"np": np}
        exec(compile(self.text, "<case>", "exec"), names)
        return names["f"]


def table(groups: dict[str, str]) -> tuple[Case, ...]:
    """Return a case for each line of each group."""
    return tuple(
        Case(group, line.strip())
        for group, lines in groups.items()
        for line in lines.strip().splitlines()
    )
