"""The function that is called from outside: arguments from a block of pointers, and storage.

It makes the arena, where the arrays are that only the routine has, and calls the body. A large
arena is lent by the run-time library, where there is one: later calls find its pages there.
Where the calling thread has other floating-point modes than the default ones, it is called again
under these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .frame import LIBRARY, MOST, Frame

LARGE = 4 << 20
"""From so many bytes on storage is worth large pages; `spacious` has the same number."""


def entry_of(
    frame: Frame, name: str, faults: bool, shows: bool, asks: bool = False
) -> tuple[str, Iterator[str]]:
    """Return the head of the entry, and its statements: the arena, the call of the body."""
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
    body = _around(frame, call, f"args[{count}]", sizes, library) if memory.arena else _alone(call)
    return frame.dialect.entry.format(name), chain(_under_default_modes(name), body)


def _under_default_modes(name: str) -> Iterator[str]:
    yield "if (has_other_modes()) {"
    yield "    int ended;"
    yield f"    if (in_default_modes({name}, args, &ended)) return ended;"
    yield "}"


def _alone(call: str) -> Iterator[str]:
    yield f"return {call};"


def _around(frame: Frame, call: str, fault: str, sizes: str, library: str) -> Iterator[str]:
    """Yield the call of the body, with the arena made before and given up after."""
    memory = frame.memory
    nodes = [buffer.node for buffer in memory.arena]
    if memory.is_static:
        layout = memory.layout()
        is_large = layout.total >= LARGE
        total = str(min(layout.total, MOST))
        places = [str(min(layout.offsets[node.id], MOST)) for node in nodes]
    else:
        is_large = True
        yield f"const int64_t *const places = {sizes} + {len(memory.sizes)};"
        total = "places[0]"
        places = [f"places[{k}]" for k in range(1, 1 + len(nodes))]
    make, give_up = "spacious" if is_large else "aligned", "free"
    if is_large and library:
        yield f"const shared_run *const {LIBRARY} = {library};"
        make, give_up = f"{LIBRARY}->lend", f"{LIBRARY}->give_back"
    yield f"char *const arena = {make}({total});"
    yield "if (!arena) {"
    yield f"    ((int64_t *){fault})[0] = {total};"
    yield "    return 2;"
    yield "}"
    for node, place in zip(nodes, places, strict=True):
        ctype = frame.ctype(node)
        yield f"{ctype} *const {frame.name(node)} = ({ctype} *)(arena + {place});"
    yield f"const int status = {call};"
    yield f"{give_up}(arena);"
    yield "return status;"
