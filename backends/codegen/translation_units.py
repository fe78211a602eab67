"""One text as several that are compiled side by side: compilers use one processor each."""

from __future__ import annotations

from .source import Apart, Source

LEAST = 120
"""How many lines a text has at least that is compiled by itself. A compiler's start and the
linker take as long as some 30 to 60 lines, by a measurement."""
HIDDEN = '__attribute__((visibility("hidden")))'
_GIVEN = "(const void *with, int64_t first, int64_t last, int64_t *fault)"


def divided(source: Source, most: int, file: str) -> tuple[str, ...]:
    """Return texts that are linked to what the whole text is, at most so many; one if it is short.

    The first has the entry. What compilers say of any names the file and the lines of the whole.
    """
    lines = source.text.split("\n")
    length = len(lines) - source.above
    groups = _groups(source, length, min(most, length // LEAST))
    if len(groups) < 2:
        return (source.text,)
    first = [*lines]
    for part in (part for group in groups[1:] for part in group):
        first[part.functions - 1] = f"{HIDDEN} int {part.name}{_GIVEN};"
        first[part.functions : part.last] = [""] * (part.last - part.functions)
    above = lines[: source.above]
    others = (
        [*above, *(line for part in group for line in _alone(lines, part, file)), ""]
        for group in groups[1:]
    )
    return ("\n".join(first), *map("\n".join, others))


def _groups(source: Source, length: int, most: int) -> list[list[Apart]]:
    """Return parts by the text that they go to, the first of which has what is no part.

    The longest that is left goes to what is shortest so far (Graham's rule of 1969). A line of what
    is no part, mostly declarations and calls, takes half as long, by a measurement.
    """
    groups: list[list[Apart]] = [[] for _ in range(most)]
    sizes = [(length - sum(map(_lines, source.parts))) // 2, *[0] * (most - 1)]
    for part in sorted(source.parts, key=_lines, reverse=True) if most else ():
        at = sizes.index(min(sizes))
        groups[at].append(part)
        sizes[at] += _lines(part)
    return [*groups[:1], *(sorted(group) for group in groups[1:] if group)]


def _lines(part: Apart) -> int:
    return part.last - part.functions + 1


def _alone(lines: list[str], part: Apart, file: str) -> list[str]:
    """Return a part's lines, whose caller another file calls."""
    inside = lines[part.first - 1 : part.last]
    at = next(at for at, line in enumerate(inside) if line.startswith(f"static int {part.name}("))
    inside[at] = inside[at].replace("static", HIDDEN, 1)
    return [f'#line {part.first} "{file}"', *inside]
