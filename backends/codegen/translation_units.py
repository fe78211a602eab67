"""Splitting of a text into translation units that are compiled in parallel."""

from __future__ import annotations

from .source import RegionLines, Source

MIN_LINES = 120
"""The least number of lines of a translation unit. Measured: starting a compiler and linking take
as long as 30 to 60 lines."""
HIDDEN = '__attribute__((visibility("hidden")))'
_PARAMETERS = "(const void *with, int64_t first, int64_t last, int64_t *fault)"


def split_source(source: Source, most: int, file: str) -> tuple[str, ...]:
    """Return at most so many translation units equivalent to the text; one if it is short.

    The first has the entry point. Diagnostics of all name the file and the lines of the whole text.
    """
    lines = source.text.split("\n")
    length = len(lines) - source.above
    groups = _assign_units(source, length, min(most, length // MIN_LINES))
    if len(groups) < 2:
        return (source.text,)
    first_unit = [*lines]
    for part in (part for group in groups[1:] for part in group):
        first_unit[part.functions - 1] = f"{HIDDEN} int {part.name}{_PARAMETERS};"
        first_unit[part.functions : part.last] = [""] * (part.last - part.functions)
    above = lines[: source.above]
    other_units = (
        [*above, *(line for part in group for line in _unit_lines(lines, part, file)), ""]
        for group in groups[1:]
    )
    return ("\n".join(first_unit), *map("\n".join, other_units))


def _assign_units(source: Source, length: int, most: int) -> list[list[RegionLines]]:
    """Return the regions of each translation unit; the first also has the remaining code.

    Longest processing time first, onto the shortest unit so far (Graham, Bounds on multiprocessing
    timing anomalies, 1969). Measured: a line of the remaining code, mostly declarations and calls,
    takes half as long.
    """
    groups: list[list[RegionLines]] = [[] for _ in range(most)]
    sizes = [(length - sum(map(_line_count, source.parts))) // 2, *[0] * (most - 1)]
    for part in sorted(source.parts, key=_line_count, reverse=True) if most else ():
        at = sizes.index(min(sizes))
        groups[at].append(part)
        sizes[at] += _line_count(part)
    return [*groups[:1], *(sorted(group) for group in groups[1:] if group)]


def _line_count(part: RegionLines) -> int:
    return part.last - part.functions + 1


def _unit_lines(lines: list[str], part: RegionLines, file: str) -> list[str]:
    """Return a region's lines, whose trampoline another translation unit calls."""
    region_lines = lines[part.first - 1 : part.last]
    at = next(
        at for at, line in enumerate(region_lines) if line.startswith(f"static int {part.name}(")
    )
    region_lines[at] = region_lines[at].replace("static", HIDDEN, 1)
    return [f'#line {part.first} "{file}"', *region_lines]
