"""Two recordings compared: how many lowerings differ, where first, and that difference as text."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from .store import Recording

Row = Mapping[str, Any]
Names = Mapping[str, str]
_Waiting = dict[str, tuple[Row, Names]]
"""Programs of one side by name, with the texts of their batch."""
SENTENCES = "sentences of decisions"
"""What may differ without anything being computed in another way."""
_SHOWN = 60
"""Lines of a difference that are shown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing in which two lowerings of a program differ."""

    place: str
    before: str = ""
    after: str = ""
    """Texts, or sentences where there are none."""

    def __str__(self) -> str:
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), "before", "after", "", "", 3, ""
        )
        shown = list(lines)
        rest = len(shown) - _SHOWN
        return "\n".join(shown[:_SHOWN] + [f"... {rest} more lines"] * (rest > 0))


@dataclass(slots=True)
class Comparison:
    """What came of it."""

    programs: int = 0
    lowerings: int = 0
    differ: int = 0
    places: Counter[str] = field(default_factory=Counter)
    """Where the lowerings that differ do so first."""
    first: dict[str, tuple[str, Difference]] = field(default_factory=dict)
    """The first lowering that differs in a place."""
    renamed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Passes that do the same under another name, which nobody has said."""
    missing: list[str] = field(default_factory=list)
    """Programs that only one side has."""
    sentences: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether nothing but sentences differs."""
        return not (self.differ or self.renamed or self.missing)

    def __str__(self) -> str:
        lines = [
            f"{self.programs} programs, {self.lowerings} lowerings: "
            + (f"{self.differ} differ" if self.differ else "all equal")
        ]
        lines += [f"  {count:6} first in {place}" for place, count in self.places.most_common()]
        lines += [
            f"  {count:6} times `{old}` is `{new}`: --renamed '{old}={new}'"
            for (old, new), count in self.renamed.most_common()
        ]
        if self.missing:
            named = ", ".join(self.missing[:5])
            lines.append(f"  {len(self.missing)} programs are only on one side: {named}")
        if self.sentences:
            lines.append(f"  {self.sentences} lowerings tell their decisions in other sentences")
        for name, difference in self.first.values():
            lines.append(f"\n{name}: {difference.place}\n{difference}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as the same."""

    renamed: Names = field(default_factory=dict)
    """New names of passes, mappings and outcomes by their old ones."""
    words: Names = field(default_factory=dict)
    """Words of the printed loops, and of the text, that are others by now."""

    def name(self, old: str) -> str:
        """Return what a pass is called now."""
        return self.renamed.get(old, old)

    def text(self, old: str) -> str:
        """Return a text as it would be printed now."""
        for word, new in self.words.items():
            old = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", new, old)
        return old


def compare(before: Recording, after: Recording, rules: Rules, each: int = 1) -> Comparison:
    """Return how two recordings differ; of each place so many differences are kept."""
    found = Comparison()
    ours: _Waiting = {}
    theirs: _Waiting = {}
    for parts in zip_longest(before.batches(), after.batches()):
        for part, waiting in zip(parts, (ours, theirs), strict=True):
            if part is not None:
                waiting |= {one["name"]: (one, part["texts"]) for one in part["programs"]}
        for name in [name for name in ours if name in theirs]:
            (one, texts), (other, others) = ours.pop(name), theirs.pop(name)
            found.programs += 1
            _program(one, other, _Pair(texts, others, rules), found, each)
    found.missing = [*ours, *theirs]
    return found


def _program(before: Row, after: Row, pair: _Pair, found: Comparison, each: int) -> None:
    for variant in dict.fromkeys((*before["rows"], *after["rows"])):
        found.lowerings += 1
        one, other = before["rows"].get(variant), after["rows"].get(variant)
        found.renamed += pair.renamed(one, other)
        first = next(pair.differences(one, other), None)
        if first is None:
            continue
        if first.place == SENTENCES:
            found.sentences += 1
            continue
        found.differ += 1
        found.places[first.place] += 1
        if found.places[first.place] <= each:
            name = f"{before['name']} {variant}"
            found.first[f"{first.place} {found.places[first.place]}"] = name, first


@dataclass(frozen=True, slots=True)
class _Pair:
    """The texts of both sides by digest."""

    before: Names
    after: Names
    rules: Rules

    def differences(self, one: Row | None, other: Row | None) -> Iterator[Difference]:
        """Yield what differs between two lowerings, what comes first in the compiler first."""
        if one is None or other is None:
            sides = ("no such specialization" if row is None else "one" for row in (one, other))
            yield Difference("the run-time sizes", *sides)
            return
        if one.get("error") != other.get("error"):
            sides = (row.get("error", "it is lowered") for row in (one, other))
            yield Difference("what is refused", *sides)
        if "error" in one or "error" in other:
            return
        yield from self._stages(one["stages"], other["stages"])
        for key, place in (("text", "the text"), ("prelude", "the prelude of the text")):
            if not self.same(one[key], other[key]):
                yield self.shown(place, one[key], other[key])
        yield from self._tables(one["table"], other["table"])
        if one["sentences"] != other["sentences"]:
            yield self.shown(SENTENCES, one["sentences"], other["sentences"])

    def _stages(self, one: list[Any], other: list[Any]) -> Iterator[Difference]:
        for (name, key), (also, there) in zip(one, other, strict=False):
            if not self.same(key, there):
                label = self.rules.name(name)
                both = f"`{label}`" if label == also else f"`{label}`, and `{also}` in its place"
                yield self.shown(f"the program after {both}", key, there)
                return
        for at in range(min(len(one), len(other)), max(len(one), len(other))):
            (longer, side) = (one, "only before") if at < len(one) else (other, "only after")
            yield Difference(f"the stage `{longer[at][0]}`, {side}")

    def renamed(self, one: Row | None, other: Row | None) -> Counter[tuple[str, str]]:
        """Return the stages that are the same but for names that nobody has said."""
        pairs = zip((one or {}).get("stages", ()), (other or {}).get("stages", ()), strict=False)
        return Counter(
            (self.rules.name(name), also) for (name, key), (also, there) in pairs
            if self.rules.name(name) != also and self.same(key, there)
        )  # fmt: skip

    def _tables(self, one: Row, other: Row) -> Iterator[Difference]:
        for key in dict.fromkeys((*one, *other)):
            sides = [_lines(one.get(key), self.rules), _lines(other.get(key), Rules())]
            if sides[0] != sides[1]:
                yield Difference(f"the table of {key}", *sides)

    def same(self, key: str, there: str) -> bool:
        """Whether two texts are the same, but for words."""
        if key == there or not self.rules.words:
            return key == there
        return self.rules.text(self.before[key]) == self.after[there]

    def shown(self, place: str, key: str, there: str) -> Difference:
        """Return two texts that differ."""
        return Difference(place, self.rules.text(self.before[key]), self.after[there])


def _lines(value: Any, rules: Rules) -> str:
    """Return a part of a table, line by line."""
    if not isinstance(value, list):
        return str(value)
    rows = [row if isinstance(row, list) else [row] for row in value]
    named = [[rules.name(one) if isinstance(one, str) else one for one in row] for row in rows]
    return "\n".join(" ".join(map(str, row)) for row in named)
