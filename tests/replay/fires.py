"""Which passes, rewritings and mappings change how many programs of a recording.

A program counts as changed where its printed loops are others. Of the passes that fire on none, a
`*` marks those that made another program which is printed as the one before: what they did, if it
was anything, is an annotation, or shows in the text alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plusequals.lowering.gpu.mapping import Mapped

from .store import Recording

MAPPED = "mappings"
MAPPINGS = tuple(one.name.lower() for one in Mapped)
"""What loops become on a device, by the names of the reasons."""


@dataclass(slots=True)
class Fires:
    """The programs that something fires on, by backend and name."""

    programs: int = 0
    found: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    silent: dict[str, set[str]] = field(default_factory=dict)
    """The passes that made programs which are printed as those before."""

    def __str__(self) -> str:
        lines = [f"{self.programs} programs"]
        for backend, rows in self.found.items():
            lines += [f"\n{backend}:", *(_line(name, some) for name, some in rows.items() if some)]
            silent = self.silent.get(backend, ())
            none = [name + "*" * (name in silent) for name, some in rows.items() if not some]
            lines.append(f"  on none ({len(none)}): {', '.join(none) or '-'}")
        return "\n".join(lines)

    def on(self, name: str) -> Iterator[str]:
        """Yield the programs that something of that name fires on."""
        for backend, rows in self.found.items():
            yield from (f"{backend} {program}" for program in rows.get(name, ()))


def _line(name: str, programs: Sequence[str]) -> str:
    """Return on how many programs of each kind something fires."""
    kinds = Counter(program.partition("/")[0] for program in programs)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"  {len(programs):6}  {name}  ({told})"


def fires(recording: Recording) -> Fires:
    """Return what fires on the programs of a recording, passes in their order."""
    found, order = Fires(), dict[str, list[str]]()
    fired: dict[str, dict[str, list[str]]] = {}
    for part in recording.batches():
        for program in part["programs"]:
            found.programs += 1
            for backend, names in _fired(program, order, found.silent).items():
                for name in names:
                    fired.setdefault(backend, {}).setdefault(name, []).append(program["name"])
    for backend, names in order.items():
        rows = fired.get(backend, {})
        found.found[backend] = {name: rows.get(name, []) for name in names}
    found.found[MAPPED] = {name: fired.get(MAPPED, {}).get(name, []) for name in MAPPINGS}
    return found


def _fired(
    program: Mapping[str, Any], order: dict[str, list[str]], silent: dict[str, set[str]]
) -> dict[str, dict[str, None]]:
    """Return what fires on a program in any variant, by backend; all that ran is put in order."""
    found: dict[str, dict[str, None]] = {}
    for variant, row in program["rows"].items():
        backend = variant.split()[1].partition("-")[0]
        order[backend] = _merged(order.get(backend, []), row.get("ran", ()))
        silent.setdefault(backend, set()).update(row.get("silent", ()))
        changed = (name for name, _ in row.get("stages", ()) if name in row["ran"])
        found.setdefault(backend, {}).update(dict.fromkeys(changed))
        mapped = (name for name, _ in row.get("table", {}).get("mappings", ()))
        found.setdefault(MAPPED, {}).update(dict.fromkeys(mapped))
    return found


def _merged(names: list[str], others: Sequence[str]) -> list[str]:
    """Return names with those of others that are new, each behind what it came behind there."""
    known = set(names)
    if known.issuperset(others):
        return names
    out, last = list(names), -1
    for name in others:
        if name in known:
            last = max(last, out.index(name))
        else:
            last += 1
            out.insert(last, name)
            known.add(name)
    return out
