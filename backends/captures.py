"""Protocols of captures: steps of several streams that a device launches at once, as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable


class NotCapturable(Exception):
    """Work that a graph of a device cannot hold, with the reason: `reads what a call gives`."""


class GraphPlace(NamedTuple):
    """Where a step of a graph is queued while the graph is captured."""

    device: Any
    """The opened device of the graph."""
    stream: Any
    """The stream of the device that is captured; nothing else is queued on it."""
    home: Any
    """The stream that the graph is launched on, to which memory of the step belongs."""


class GraphStep(NamedTuple):
    """One step of a graph, of whose streams each is in order."""

    prepare: Preparation
    """Returns what queues the step, with all memory that it needs, which lives as long."""
    stream: int
    """The number of its stream; the graph begins and ends on stream 0."""
    waits: tuple[int, ...]
    """The positions of the steps of other streams that it waits for."""


GraphBody: TypeAlias = Sequence[GraphStep]
"""Steps of a conditional node, one after another."""


class GraphLoop(NamedTuple):
    """A part before a predicate, and a part that is repeated as long as that holds."""

    predicate: Any
    """An array of the device with one element."""
    before: GraphBody
    after: GraphBody
    most: int
    """How often it is repeated at most, negative without a limit."""
    failure: Callable[[int], Exception]
    """Returns the error of more iterations than that."""
    refusal: Callable[[str], Exception]
    """Returns the error for a driver that has no such nodes, with the reason."""


class GraphCase(NamedTuple):
    """Parts of which one runs, by the number of an element; `otherwise` for a negative one."""

    predicate: Any
    """An array of the device with one element, a whole number."""
    branches: Sequence[GraphBody]
    otherwise: GraphBody
    failure: Callable[[int], Exception]
    """Returns the error for a number that no part has."""
    refusal: Callable[[str], Exception]
    """Returns the error for a driver that has no such nodes, with the reason."""


Preparation: TypeAlias = Callable[[GraphPlace], Callable[[], object]] | GraphLoop | GraphCase
"""What makes a step of a graph."""


@runtime_checkable
class CanCapture(Protocol):
    """Code whose runs can be steps of a graph of its device."""

    def prepare_capture(
        self, arrays: Sequence[Any], place: GraphPlace, numbers: Sequence[int]
    ) -> Callable[[], object]:
        """Return a function that queues a run on device arrays; raises NotCapturable.

        Those at the positions `numbers` have one element, which is the same in each run.
        """


@runtime_checkable
class HasGraphs(Protocol):
    """Memory of a device whose driver can launch several steps at once, as a graph."""

    def graph(self, name: str, steps: Sequence[GraphStep], lane: Any) -> Callable[[], object]:
        """Return a function that launches steps as a graph on a stream, and waits for its end.

        Raises NotCapturable where the driver has no graphs, CdBackendError, CdMemoryError, and what
        preparing a step raises. The function raises the failures of loops and cases.
        """
