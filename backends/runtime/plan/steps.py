"""The nodes of plans: steps, loops and branches, in scheduled bodies.

    Step    one routine, copy or merge: what it reads and writes, and how it is bound and run
    Loop    a part before its predicate and one after it, as often as that holds
    Branch  one of several bodies, chosen by a predicate; none for a negative number
    Body    nodes in program order with their dependences and streams

Nodes name physical arrays. In a loop whose arrays change places a name may stand for another one:
`Frame` says for which, in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field as item
from typing import Any, TypeAlias, assert_never

import numpy as np

from ....base.dataclass import dataclass
from ...captures import GraphPlace
from ...device_arrays.copies import copy, prepare_copy, snapshot
from ...interface import Array
from ..memory import Buffer
from .graph import Graph, Resource, graph_of
from .streams import Schedule, schedule

Run = Callable[[], object]
Maker = Callable[[str, Array], Array]
"""Makes an uninitialized array like another one, for a label."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Memory that is no field's array: that of arguments."""

    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Memory for the temporaries of one step, which it needs while it runs."""

    label: str
    size: int
    """In bytes."""


class Lent:
    """Memory that a plan lends a step for its temporaries."""

    __slots__ = ("_routine", "_run", "memory")

    def __init__(self, memory: Array, routine: Any) -> None:
        self.memory, self._routine = memory, routine
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The call there with the arrays of the routine itself, bound when it is needed first."""
        if self._run is None:
            self._run = self._routine.bind(self._routine.arrays, self.memory)
        return self._run


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """The number of the iteration of a loop, from 0: an argument of routines and of predicates."""

    loop: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What the names of a body stand for in one iteration."""

    arrays: Mapping[Buffer, Array]
    """The arrays in the places of others; those that are not in it are their own."""
    inputs: Mapping[str, Any]
    """The arguments that the run was given, by name."""
    counts: Mapping[Counter, int]
    """The iterations of the loops around."""
    where: str = ""
    """Which iterations these are, for errors."""
    recorded: bool = False
    """Whether a trace or a log observes the run."""
    given: Mapping[int, Any] | None = None
    """Arrays for arguments of a routine by position, in place of `inputs` by name."""
    lent: Mapping[Scratch, Lent] = item(default_factory=dict)
    """The memory of temporaries; calls allocate that of steps that are not in it."""

    def array(self, buffer: Buffer) -> Array:
        """Return the array that a name stands for."""
        return self.arrays.get(buffer, buffer.array)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One unit of work on a stream."""

    name: str
    kind: str
    """`routine`, `copy` or `merge`, as in a timeline."""
    devices: tuple[str, ...]
    reads: tuple[Resource, ...]
    writes: tuple[Resource, ...]
    bind: Callable[[Frame], Run]
    """Returns the work in a frame."""
    prepare: Callable[[GraphPlace], Callable[[], object]]
    """Returns what queues the work as a step of a graph; raises NotCapturable."""
    note: Callable[[], None]
    """Records the versions that it makes; called in program order when a run is queued."""
    arguments: Mapping[str, bool] = item(default_factory=dict)
    """The names of what a run may give it, and whether it writes that."""
    require: Callable[[Mapping[str, Any]], None] | None = None
    """Raises where inputs of a run do not fit."""
    line: str = ""
    """Where it was recorded: `train.py:12`."""
    routine: Any = None
    """The routine that is called, if it is a call."""
    stream: Any = None
    """The stream that the call itself would have queued it on."""
    scratch: Scratch | None = None
    """The temporaries that the plan may lend it memory for."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """What decides a loop or branch: a function of fresh values, or one element, a number."""

    function: Callable[..., Any] | None
    reads: tuple[Buffer | Counter, ...]
    counted: bool = False
    """Whether the function gets the number of iterations before the values."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays that it reads."""
        return tuple(read for read in self.reads if isinstance(read, Buffer))

    def evaluate(self, frame: Frame, count: int = 0) -> Any:
        """Return its value in a frame, in an iteration of its loop."""
        values = [
            frame.counts[read] if isinstance(read, Counter) else _fresh(frame.array(read))
            for read in self.reads
        ]
        if self.function is not None:
            return self.function(*([count] * self.counted), *values)
        (value,) = values
        return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _fresh(array: Array) -> Any:
    """Return a read-only copy of an array, a number of one without axes."""
    values = snapshot(array)
    values.flags.writeable = False
    return values if values.ndim else values[()]


@dataclass(frozen=True, slots=True, eq=False)
class Carry:
    """An array whose value of one iteration is another one's value of the next."""

    target: Buffer
    source: Buffer
    make: tuple[Maker, Maker]
    """What makes arrays where the target's, and the source's, are."""
    written: Callable[[], None]
    """Records the version that its last copy makes: of the source in a loop, else the target."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Nodes in program order, with their dependences and streams."""

    nodes: tuple[Node, ...]
    graph: Graph
    schedule: Schedule
    has_control_flow: bool
    """Whether there is a loop or a branch."""

    @property
    def steps(self) -> Iterator[Step]:
        """All steps in program order, also of the bodies inside."""
        for node in self.nodes:
            if isinstance(node, Step):
                yield node
            else:
                for body in node.bodies:
                    yield from body.steps

    @property
    def notes(self) -> Iterator[Callable[[], None]]:
        """What records the versions that are written, in program order."""
        for node in self.nodes:
            match node:
                case Step():
                    yield node.note
                case Loop() | Branch():
                    for body in node.bodies:
                        yield from body.notes
                    carries = node.carries if isinstance(node, Loop) else node.otherwise
                    yield from (carry.written for carry in carries)
                case _:
                    assert_never(node)


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A body that is repeated. For n iterations the part before the predicate runs n + 1 times."""

    name: str
    predicate: Predicate
    before: Body
    after: Body
    carries: tuple[Carry, ...]
    counter: Counter
    at_most: int | None
    reads: tuple[Resource, ...]
    writes: tuple[Resource, ...]
    devices: tuple[str, ...]
    line: str = ""
    kind = "loop"

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The parts, in program order."""
        return self.before, self.after


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Bodies of which one runs, or none; then each target has the value of its source."""

    name: str
    predicate: Predicate
    branches: tuple[Body, ...]
    otherwise: tuple[Carry, ...]
    reads: tuple[Resource, ...]
    writes: tuple[Resource, ...]
    devices: tuple[str, ...]
    line: str = ""
    kind = "branch"

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The branches."""
        return self.branches


Node: TypeAlias = Step | Loop | Branch


def scheduled(nodes: Sequence[Node], max_streams: int | None) -> Body:
    """Return nodes as a body, with their dependences and streams."""
    graph = graph_of(nodes)
    branches = not all(isinstance(node, Step) for node in nodes)
    return Body(tuple(nodes), graph, schedule(nodes, graph, max_streams), branches)


def conditional_accesses(
    bodies: Sequence[Body], read: Iterable[Resource], written: Iterable[Resource]
) -> tuple[tuple[Resource, ...], tuple[Resource, ...]]:
    """Return what a loop or a branch reads and writes, beside its bodies some resources.

    What it may write keeps its value where it does not, so that it is read, too.
    """
    reads = dict.fromkeys(read)
    writes: dict[Resource, None] = {}
    for body in bodies:
        for node in body.nodes:
            reads |= dict.fromkeys(node.reads)
            writes |= dict.fromkeys(node.writes)
    writes |= dict.fromkeys(written)
    return tuple(reads | writes), tuple(writes)


def devices_of(bodies: Sequence[Body], default: str) -> tuple[str, ...]:
    """Return the one device of a loop or branch: that of its first step."""
    for body in bodies:
        for node in body.nodes:
            return node.devices[:1]
    return (default,)


def copy_step(
    name: str,
    kind: str,
    device: str,
    ends: tuple[Buffer, Buffer],
    note: Callable[[], None],
    line: str,
    stream: Any = None,
) -> Step:
    """Return the step of a copy on a device from one array to another one."""
    source, target = ends

    def bind(frame: Frame) -> Run:
        source_array, target_array = frame.array(source), frame.array(target)
        return lambda: copy(target_array, source_array, name)

    def prepare(place: GraphPlace) -> Callable[[], None]:
        return prepare_copy(target.array, source.array, place)

    return Step(
        name, kind, (device,), (source,), (target,), bind, prepare, note, line=line, stream=stream
    )
