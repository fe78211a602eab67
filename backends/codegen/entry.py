"""Exported entry point: unpacks arguments, allocates the arena, calls the body function.

The arena holds the routine's temporaries. The caller may lend its memory; otherwise it is allocated
by the call, a large one by the run-time library, where there is one, so that later calls reuse its
pages. Where the calling thread has other floating-point modes than the default, the entry point is
called again under the default modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .frame import LIBRARY, MAX_BYTES, Frame

LARGE_ARENA = 4 << 20
"""The size in bytes from which an arena uses huge pages; `spacious` has the same number."""


def entry_point(
    frame: Frame, name: str, faults: bool, shows: bool, asks: bool = False
) -> tuple[str, Iterator[str]]:
    """Return the head of the entry point and its statements."""
    count, memory = len(frame.arguments), frame.memory
    values = [
        f"*(const {frame.ctype(node)} *)args[{k}]" if node.id in frame.scope.by_value
        else f"args[{k}]" for k, node in enumerate(frame.arguments)
    ]  # fmt: skip
    sizes, library = f"(const int64_t *)args[{count + 2}]", f"args[{count + 3}]" if asks else ""
    values += [frame.name(buffer.node) for buffer in memory.arena]
    values += [f"args[{count}]"] * faults + [f"args[{count + 1}]"] * shows
    values += [library] * asks
    values += [f"({sizes})[{k}]" for k in range(len(memory.sizes))]
    call = f"{frame.function}({', '.join(values)})"
    lent = "" if shows else f"args[{count + 1}]"
    body = (
        _call_with_arena(frame, call, f"args[{count}]", sizes, library, lent)
        if memory.arena
        else _call_only(call)
    )
    return frame.dialect.entry.format(name), chain(_under_default_modes(name), body)


def _under_default_modes(name: str) -> Iterator[str]:
    yield "if (has_other_modes()) {"
    yield "    int ended;"
    yield f"    if (in_default_modes({name}, args, &ended)) return ended;"
    yield "}"


def _call_only(call: str) -> Iterator[str]:
    yield f"return {call};"


def _call_with_arena(
    frame: Frame, call: str, fault: str, sizes: str, library: str, lent: str
) -> Iterator[str]:
    """Yield the call of the body between allocation and release of the arena, which the caller may
    have lent."""
    memory = frame.memory
    nodes = [buffer.node for buffer in memory.arena]
    if memory.is_static:
        layout = memory.layout()
        is_large = layout.total >= LARGE_ARENA
        total = str(min(layout.total, MAX_BYTES))
        offsets = [str(min(layout.offsets[node.id], MAX_BYTES)) for node in nodes]
    else:
        is_large = True
        yield f"const int64_t *const places = {sizes} + {len(memory.sizes)};"
        total = "places[0]"
        offsets = [f"places[{k}]" for k in range(1, 1 + len(nodes))]
    allocate, release = "spacious" if is_large else "aligned", "free"
    if is_large and library:
        yield f"const shared_run *const {LIBRARY} = {library};"
        allocate, release = f"{LIBRARY}->lend", f"{LIBRARY}->give_back"
    given = f"{lent} ? {lent} : " if lent else ""
    yield f"char *const arena = {given}{allocate}({total});"
    yield "if (!arena) {"
    yield f"    ((int64_t *){fault})[0] = {total};"
    yield "    return 2;"
    yield "}"
    for node, offset in zip(nodes, offsets, strict=True):
        ctype = frame.ctype(node)
        yield f"{ctype} *const {frame.name(node)} = ({ctype} *)(arena + {offset});"
    yield f"const int status = {call};"
    yield f"if (!{lent}) {release}(arena);" if lent else f"{release}(arena);"
    yield "return status;"
