"""Mutants that change nothing that matters, read from `equivalent.toml`, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from .mutate import Mutant

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Mutants of a function: those whose new line contains a text, or all where it is empty."""

    function: str
    text: str
    reason: str
    old: str = ""
    """Where given, the line before has to contain this."""

    def matches(self, mutant: Mutant) -> bool:
        """Whether it speaks of a mutant."""
        same = mutant.function == self.function
        return same and self.text in mutant.new and self.old in mutant.old


def equivalents(module: str) -> tuple[Equivalent, ...]:
    """Return what is known of a module's mutants."""
    tables = tomllib.loads(FILE.read_text("utf-8")).get(module, [])
    return tuple(
        Equivalent(one["function"], one.get("new", ""), one["reason"], one.get("old", ""))
        for one in tables
    )
