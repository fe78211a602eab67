"""Loops and cases of graphs: conditional nodes, whose conditions are set by kernels.

    loop    its first part, and a kernel that sets the condition from the predicate; a node that
            repeats the second part, the first part again, and that kernel
    case    a kernel for each branch, which sets its condition where the number is that of the
            branch; then a node for each, which runs it once

All conditions of a case are set before any branch runs, which may write the predicate. What is
wrong is written into the memory of the graph, and told after its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..captures import GraphCase, GraphLoop
from .driver_protocol import Context, Handle, NotSupported

Queued = Callable[[], object]
"""Queues a step, while its stream is captured."""
ONE = (1, 1, 1)
SIGN = 1 << 63


class Conditions:
    """The conditional nodes of one graph."""

    def __init__(self, context: Context, empty: Callable[[int], Any], kernels: Callable[[], Any]):
        self._context, self._empty, self._kernels = context, empty, kernels
        self._faults: Any = None
        """Three numbers on the device: whether something is wrong, what, and in which node."""
        self._nodes: list[GraphLoop | GraphCase] = []

    def begin(self, stream: Handle) -> None:
        """Queue what the nodes need, at the begin of the graph."""
        if self._nodes:
            self._context.clear(self._faults.address, self._faults.nbytes, stream)

    def require(self) -> None:
        """Raise what was wrong in the last launch, which has ended."""
        if self._nodes:
            is_wrong, what, where = (int(number) for number in self._faults.numpy())
            if is_wrong:
                raise self._nodes[where].failure(what)

    def loop(
        self,
        loop: GraphLoop,
        parts: tuple[Sequence[Queued], Sequence[Queued], Sequence[Queued]],
        streams: tuple[Handle, Handle],
    ) -> Queued:
        """Return what queues a loop, given its first part, its second one, and the first again, of
        which the last two are queued on the stream of its body."""
        where, (go_on, _) = self._added(loop), self._kernels()
        count, (first, second, again) = self._empty(1), parts
        predicate, (stream, inner) = loop.predicate, streams
        mask = _mask(predicate.dtype)

        def queue() -> None:
            _queue_all(first)
            self._context.clear(count.address, count.nbytes, stream)
            condition = self._condition(loop, stream)
            given = (
                condition, predicate.address, predicate.dtype.itemsize, mask, count.address,
                loop.most, self._faults.address, where,
            )  # fmt: skip
            self._context.launch(go_on, ONE, ONE, given, stream)
            test: Queued = partial(self._context.launch, go_on, ONE, ONE, given, inner)
            self._queue_body([*second, *again, test], condition, streams, repeats=True)

        return queue

    def case(
        self,
        case: GraphCase,
        parts: tuple[Sequence[Sequence[Queued]], Sequence[Queued]],
        streams: tuple[Handle, Handle],
    ) -> Queued:
        """Return what queues a case, given its branches, and what runs for a negative number."""
        where, (_, choose) = self._added(case), self._kernels()
        branches, otherwise = parts
        predicate, (stream, _) = case.predicate, streams
        is_signed = predicate.dtype.kind == "i"

        def queue() -> None:
            bodies = [*enumerate(branches), (-1, otherwise)]
            conditions = [self._condition(case, stream) for _ in bodies]
            for condition, (which, _) in zip(conditions, bodies, strict=True):
                given = (
                    condition, predicate.address, predicate.dtype.itemsize, is_signed, which,
                    len(branches), self._faults.address, where,
                )  # fmt: skip
                self._context.launch(choose, ONE, ONE, given, stream)
            for condition, (_, body) in zip(conditions, bodies, strict=True):
                self._queue_body(body, condition, streams, repeats=False)

        return queue

    def _added(self, node: GraphLoop | GraphCase) -> int:
        """Return the number of a new node."""
        if self._faults is None:
            self._faults = self._empty(3)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _condition(self, node: GraphLoop | GraphCase, stream: Handle) -> int:
        try:
            return self._context.condition(stream)
        except NotSupported as why:
            raise node.refusal(str(why)) from None

    def _queue_body(
        self, body: Sequence[Queued], condition: int, streams: tuple[Handle, Handle], repeats: bool
    ) -> None:
        outer, inner = streams
        graph = self._context.conditional(outer, condition, repeats)
        self._context.begin_body(inner, graph)
        _queue_all(body)
        self._context.end_body(inner)


def _queue_all(steps: Sequence[Queued]) -> None:
    for queue in steps:
        queue()


def _mask(dtype: Any) -> int:
    """Return the bits of an element that make it true: all, but for the sign of a float."""
    bits = (1 << 8 * dtype.itemsize) - 1
    if dtype.kind not in "biu":
        bits >>= 1
    return int(np.uint64(bits).astype(np.int64))
