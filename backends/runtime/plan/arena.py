"""Memory of the arrays that only a plan sees, and of the temporaries of its steps: those that are
not needed at once share it.

    Lifetime    the body that an array is used in, and the nodes there that use it
    Arena       where each array lies in one piece of memory

Two arrays share memory only if every use of one has ended, by the waits that the plan has anyway,
when the other one is used first: no node waits for another one because of that. In program order
one comes before the other, too, as a run that is traced is in that order. Temporaries are used by
one node. Branches of which one runs, and the parts of a loop before and after its predicate, share
memory, too. Places are found as by the allocators of neural networks: the largest arrays first,
each at the lowest offset that is free while it is needed; in two other orders, too, of which the
best one is taken (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
2020).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import TypeAlias, TypeVar, assert_never

from ....base.dataclass import dataclass
from .graph import Resource
from .steps import Body, Branch, Loop, Node, Scratch, Step

ALIGNMENT = 64
"""The bytes that the place of an array is a multiple of: a cache line, a vector register."""

MOST_ORDERS = 8
"""How many orders of arrays are tried after each of three: more find hardly better ones."""
MOST_PLACES = 2_000
"""How many arrays, and pairs that are needed at once, are looked at for that: some milliseconds."""
MOST_PAIRS = 20_000
"""With more pairs of steps with temporaries that may run at once the plan lends them no memory:
finding places would take longer than 50 ms."""

_K = TypeVar("_K")
_Path: TypeAlias = tuple[tuple[int, int], ...]
"""The loops and branches around a body: for each its node, and which of its bodies it is."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Where an array is used."""

    bodies: tuple[Body, ...]
    """The body of its uses, after those around it."""
    path: _Path
    uses: frozenset[int]
    """The nodes that use it; a loop or a branch for all that is inside of it."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The places of arrays in one piece of memory."""

    offsets: Mapping[Resource, int]
    """Where each of them begins, in bytes."""
    size: int
    """The bytes in all."""


def uninitialized(body: Body, private: Collection[Resource]) -> list[tuple[Resource, Node]]:
    """Return the arrays that may be read before they have been written in whole, each with the
    first node that does."""
    found: dict[Resource, Node] = {}
    written: set[Resource] = set()
    for node in body.nodes:
        reads, writes = _exposed(node)
        for resource in reads - written:
            if resource in private:
                found.setdefault(resource, node)
        written |= writes
    return list(found.items())


def lifetimes(body: Body, private: Collection[Resource]) -> dict[Resource, Lifetime]:
    """Return where arrays are used, each in the innermost body that holds all of its uses, and the
    temporaries of steps.

    An array whose value goes from iteration to iteration is used by the whole loop.
    """
    return dict(_lifetimes((body,), (), private))


def _lifetimes(
    bodies: tuple[Body, ...], path: _Path, private: Collection[Resource]
) -> Iterator[tuple[Resource, Lifetime]]:
    body = bodies[-1]
    uses: dict[Resource, set[int]] = {}
    inside: dict[Resource, list[tuple[int, Lifetime]]] = {}
    for at, node in enumerate(body.nodes):
        for resource in _own(node):
            if resource in private:
                uses.setdefault(resource, set()).add(at)
        if isinstance(node, Step):
            if node.scratch is not None:
                uses[node.scratch] = {at}
            continue
        for part, inner in enumerate(node.bodies):
            outer = _exposed_in(inner)[0]
            for resource, lifetime in _lifetimes((*bodies, inner), (*path, (at, part)), private):
                inside.setdefault(resource, []).append((at, lifetime))
                if resource in outer:
                    uses.setdefault(resource, set()).add(at)
    for resource, found in inside.items():
        if len(found) == 1 and resource not in uses:
            yield resource, found[0][1]
        else:
            uses.setdefault(resource, set()).update(at for at, _ in found)
    for resource, nodes in uses.items():
        yield resource, Lifetime(bodies, path, frozenset(nodes))


def _own(node: Node) -> Iterator[Resource]:
    """Yield what a node itself uses, besides what is inside of it."""
    match node:
        case Step():
            yield from (*node.reads, *node.writes)
        case Loop():
            yield from node.predicate.buffers
            for carry in node.carries:
                yield from (carry.target, carry.source)
        case Branch():
            yield from node.predicate.buffers
            for carry in node.otherwise:
                yield from (carry.target, carry.source)
        case _:
            assert_never(node)


def _exposed(node: Node) -> tuple[Set[Resource], Set[Resource]]:
    """Return what a node reads of what was there before it, and what it has written in whole."""
    match node:
        case Step():
            reads = frozenset(node.reads)
            return reads, frozenset(node.writes) - reads
        case Loop():
            before, written = _exposed_in(node.before)
            after, later = _exposed_in(node.after)
            asked = frozenset(node.predicate.buffers)
            targets = frozenset(carry.target for carry in node.carries)
            sources = frozenset(carry.source for carry in node.carries)
            carried = sources & (written | later)  # after no iteration the target's first value
            read = before | (after | asked) - written | targets | (sources - carried)
            return read, written | carried
        case Branch():
            inner = [_exposed_in(branch) for branch in node.branches]
            read = {r for exposed, _ in inner for r in exposed}
            read |= {*node.predicate.buffers, *(carry.source for carry in node.otherwise)}
            targets = frozenset(carry.target for carry in node.otherwise)
            return read, targets.intersection(*(whole for _, whole in inner))
        case _:
            assert_never(node)


def _exposed_in(body: Body) -> tuple[Set[Resource], Set[Resource]]:
    read: set[Resource] = set()
    written: set[Resource] = set()
    for node in body.nodes:
        reads, writes = _exposed(node)
        read |= reads - written
        written |= writes
    return read, written


class Overlaps:
    """Which arrays may be needed at the same time."""

    def __init__(self) -> None:
        self._ancestors: dict[Body, Sequence[int]] = {}
        self._descendants: dict[Body, Sequence[int]] = {}
        self._order: dict[tuple[Body, frozenset[int]], tuple[int, int]] = {}

    def __call__(self, one: Lifetime, other: Lifetime) -> bool:
        """Whether two arrays may be needed at once, so that they cannot share memory."""
        common = 0
        while (
            common < len(one.path)
            and one.path[common : common + 1] == other.path[common : common + 1]
        ):
            common += 1
        at, other_at = one.path[common : common + 1], other.path[common : common + 1]
        if at and other_at and at[0][0] == other_at[0][0]:
            return False  # in two parts of one loop, or two branches
        body = one.bodies[common]
        uses, before = self._ordered(body, frozenset((at[0][0],)) if at else one.uses)
        others, before_others = self._ordered(
            body, frozenset((other_at[0][0],)) if other_at else other.uses
        )
        return not (_precede(uses, others, before_others) or _precede(others, uses, before))

    def at_once(self, life: Lifetime) -> int:
        """Return the nodes of its body, as bits, that may run while an array is needed: those whose
        temporaries overlap it."""
        body, uses = life.bodies[-1], life.uses
        before = self._ordered(body, uses)[1] & (1 << min(uses)) - 1
        if body not in self._descendants:
            self._descendants[body] = _descendants_of(body)
        after = functools.reduce(int.__and__, (self._descendants[body][at] for at in uses))
        after &= -1 << max(uses) + 1
        return (1 << len(body.nodes)) - 1 & ~(before | after)

    def _ordered(self, body: Body, nodes: frozenset[int]) -> tuple[int, int]:
        """Return nodes as bits, and the nodes that have ended before any of them starts."""
        key = body, nodes
        if key not in self._order:
            if body not in self._ancestors:
                self._ancestors[body] = ancestors_of(body)
            ended = [self._ancestors[body][at] for at in nodes]
            self._order[key] = sum(1 << at for at in nodes), functools.reduce(int.__and__, ended)
        return self._order[key]


def _precede(nodes: int, others: int, before: int) -> bool:
    """Whether nodes have ended before others, which have ancestors in common, start; also where all
    run in program order, as they do while a trace is taken."""
    first_other = (others & -others).bit_length()
    return nodes & before == nodes and nodes.bit_length() < first_other


def ancestors_of(body: Body) -> Sequence[int]:
    """Return the ancestors of each node, also by the order that a cap of streams made."""
    earlier: list[list[int]] = [[] for _ in body.nodes]
    for edge in (*body.graph.kept, *body.schedule.added):
        earlier[edge.after].append(edge.before)
    reached = [0] * len(body.nodes)
    for at in body.schedule.order:
        for before in earlier[at]:
            reached[at] |= reached[before] | 1 << before
    return reached


def _descendants_of(body: Body) -> Sequence[int]:
    """Return the nodes that each node is an ancestor of."""
    later: list[list[int]] = [[] for _ in body.nodes]
    for edge in (*body.graph.kept, *body.schedule.added):
        later[edge.before].append(edge.after)
    reached = [0] * len(body.nodes)
    for at in reversed(body.schedule.order):
        for after in later[at]:
            reached[at] |= reached[after] | 1 << after
    return reached


def _conflicts_of(lives: Mapping[_K, Lifetime]) -> dict[_K, set[_K]]:
    """Return what each array may be needed at once with.

    Most are temporaries, used by one node: of its own body an array meets only those of the nodes
    that may run while it is needed.
    """
    overlaps = Overlaps()
    conflicts: dict[_K, set[_K]] = {name: set() for name in lives}
    temporaries: dict[Body, dict[int, _K]] = {}
    others: list[_K] = []
    for name, life in lives.items():
        if isinstance(name, Scratch):
            temporaries.setdefault(life.bodies[-1], {})[min(life.uses)] = name
        else:
            others.append(name)
    masks = {body: sum(1 << at for at in used) for body, used in temporaries.items()}

    def meet(one: _K, other: _K) -> None:
        conflicts[one].add(other)
        conflicts[other].add(one)

    for name, life in lives.items():
        for body, used in temporaries.items():
            if body is life.bodies[-1]:
                for at in bits_of(overlaps.at_once(life) & masks[body]):
                    if used[at] is not name:
                        meet(name, used[at])
            else:
                for other in used.values():
                    if other not in conflicts[name] and overlaps(life, lives[other]):
                        meet(name, other)
    for at, name in enumerate(others):
        for other in others[:at]:
            if overlaps(lives[name], lives[other]):
                meet(name, other)
    return conflicts


def can_share_temporaries(lives: Mapping[_K, Lifetime]) -> bool:
    """Whether finding places for the temporaries of steps takes little time: not many run at
    once."""
    overlaps, nodes, pairs = Overlaps(), dict[Body, int](), 0
    own = [life for name, life in lives.items() if isinstance(name, Scratch)]
    for life in own:
        nodes[life.bodies[-1]] = nodes.get(life.bodies[-1], 0) | 1 << min(life.uses)
    for life in own:
        pairs += (overlaps.at_once(life) & nodes[life.bodies[-1]]).bit_count() - 1
    return pairs <= 2 * MOST_PAIRS


def bits_of(number: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def arena_of(sizes: Mapping[Resource, int], lives: Mapping[Resource, Lifetime]) -> Arena:
    """Return places for arrays of some bytes; those that are needed at once lie apart."""
    names = list(sizes)
    conflicts = _conflicts_of({name: lives[name] for name in names})
    orders = (
        sorted(names, key=lambda name: -sizes[name]),
        names,
        sorted(names, key=lambda name: (-len(conflicts[name]), -sizes[name])),
    )
    found = [Arena(*_improved(order, sizes, conflicts)) for order in orders]
    return min(found, key=lambda arena: arena.size)


def _improved(
    order: Sequence[_K], sizes: Mapping[_K, int], conflicts: Mapping[_K, Collection[_K]]
) -> tuple[dict[_K, int], int]:
    """Return the best places of an order, and of those that place what was last in the arena
    first, again and again: squeaky wheel optimization (Joslin and Clements, 1999)."""
    order = list(order)
    offsets, size = best = placed(order, sizes, conflicts)
    work = len(order) + sum(map(len, conflicts.values()))
    largest = max(sizes.values(), default=0)
    for _ in range(min(MOST_ORDERS, MOST_PLACES // max(work, 1))):
        if size == largest:
            break
        last = next(name for name in order if offsets[name] + sizes[name] == size)
        if order[0] == last:
            break
        order.remove(last)
        order.insert(0, last)
        offsets, size = placed(order, sizes, conflicts)
        if size < best[1]:
            best = offsets, size
    return best


def placed(
    order: Sequence[_K], sizes: Mapping[_K, int], conflicts: Mapping[_K, Collection[_K]]
) -> tuple[dict[_K, int], int]:
    """Return the offset of each array, and the size of all: the lowest free one, in an order."""
    offsets: dict[_K, int] = {}
    end = 0
    for name in order:
        taken = sorted((offsets[each], offsets[each] + sizes[each]) for each in conflicts[name]
                       if each in offsets)  # fmt: skip
        offset = 0
        for first, last in taken:
            if first >= offset + sizes[name]:
                break
            offset = max(offset, -(-last // ALIGNMENT) * ALIGNMENT)
        offsets[name] = offset
        end = max(end, offset + sizes[name])
    return offsets, end
