"""The arrays of a loop that change places: what an iteration computes is the next one's input.

    carry={x: y}    in each iteration `x` has the value that `y` had at the end of the last one

The array of `y` becomes that of `x`, and `y` gets a free one; nothing is copied but the last
value, where it is in another array than `y` has outside. The array that `x` has outside is not
written: who reads it after the loop sees the first value. After no iteration `y` has the first
value of `x`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...device_arrays.copies import copy
from ...interface import Array
from ..memory import Buffer
from .steps import Body, Frame, Loop


class Carrying:
    """The arrays that names of a loop stand for, from iteration to iteration."""

    def __init__(
        self,
        loop: Loop,
        frame: Frame,
        issue: Callable[[Callable[[], object]], object],
    ) -> None:
        self._issue = issue
        self._makers = {c.target: c.make[0] for c in loop.carries}
        self._makers |= {c.source: c.make[1] for c in loop.carries}
        self._carries = loop.carries
        targets = dict.fromkeys(carry.target for carry in loop.carries)
        written = {r for body in loop.bodies for node in body.nodes for r in node.writes}
        self._copied = {target for target in targets if target in written}
        """The targets that the loop writes: each has an array of its own."""
        self._outputs = [
            s for s in dict.fromkeys(c.source for c in loop.carries) if s not in targets
        ]
        self._kept = {s for s in self._outputs if _is_kept(loop, s)}
        """The outputs whose last value an iteration needs in their own array."""
        self._early = {s for s in self._outputs if _writes(loop.before, s)}
        """The outputs that the part before the predicate computes."""
        self._own = {s: frame.array(s) for s in self._outputs}
        self._first = {target: frame.array(target) for target in targets}
        self._free: dict[Buffer, list[Array]] = {s: [] for s in self._outputs}
        self.arrays: dict[Buffer, Array] = {**frame.arrays, **self._first, **self._own}
        """What the names stand for in this iteration."""
        self._last = dict(self._own)
        self._iterations = 0
        for target in targets:
            if target in self._copied:
                self.arrays[target] = self._copy(target, self._first[target])

    @property
    def shown(self) -> dict[Buffer, Array]:
        """What the names stand for in the predicate: the last value of each."""
        late = {s: self._last[s] for s in self._outputs if s not in self._early}
        return self.arrays | late

    def advance(self) -> None:
        """Let the arrays change places, at the end of an iteration."""
        if not self._carries:
            return
        old, new = self.arrays, dict(self.arrays)
        for carry in self._carries:
            if carry.target in self._copied:
                new[carry.target] = self._copy(carry.target, old[carry.source])
            else:
                new[carry.target] = old[carry.source]
        for output in self._outputs:
            self._last[output] = old[output]
            used = {id(new[carry.target]) for carry in self._carries}
            known = [*self._free[output], self._own[output]]
            free = next((array for array in known if id(array) not in used), None)
            if free is None:
                free = self._makers[output](output.label, self._own[output])
                self._free[output].append(free)
            if output in self._kept:
                self._queue_copy(free, old[output])
            new[output] = free
        self.arrays = new
        self._iterations += 1

    def finish(self) -> None:
        """Give each output its last value in the array that it has outside."""
        for output in self._outputs:
            if not self._iterations and output not in self._early:
                source = next(c.target for c in self._carries if c.source is output)
                self._queue_copy(self._own[output], self._first[source])
                continue
            last = self.arrays[output] if output in self._early else self._last[output]
            if last is not self._own[output]:
                self._queue_copy(self._own[output], last)

    def _copy(self, name: Buffer, source: Array) -> Array:
        array = self._makers[name](name.label, self._first[name])
        self._queue_copy(array, source)
        return array

    def _queue_copy(self, target: Array, source: Array) -> None:
        self._issue(lambda: copy(target, source, "carried"))


def _accesses(loop: Loop) -> Iterator[tuple[tuple[object, ...], tuple[object, ...]]]:
    for body in loop.bodies:
        for node in body.nodes:
            yield node.reads, node.writes


def _is_kept(loop: Loop, name: Buffer) -> bool:
    """Whether an iteration needs what a name held before: it reads that, or does not write it."""
    for reads, writes in _accesses(loop):
        if name in reads:
            return True
        if name in writes:
            return False
    return True


def _writes(body: Body, name: Buffer) -> bool:
    return any(name in node.writes for node in body.nodes)
