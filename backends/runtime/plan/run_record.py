"""What the steps of a run did, and what they waited for: recorded while a profile is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....base.dataclass import dataclass
from ..state import RUNTIME
from ..timeline import Timeline, Work
from .drafts import misuse
from .steps import Body, Step

MAX_SHOWN = 10
"""How many executions of one step an explanation shows."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a step of a run."""

    body: Body
    at: int
    """Its number in the body."""
    where: str
    """The iterations around it."""
    work: Work


class RunRecord:
    """The executions of the steps of a run; threads of streams add to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._timeline = RUNTIME.timeline
        """The profile that was taken when the run was queued, or later."""
        self._works: list[Work] = []
        self._executions: list[Execution] = []
        """Those works that are steps."""

    def profile(self) -> Timeline | None:
        """Return the profile that a step which is queued now is added to, if any."""
        if self._timeline is None:
            self._timeline = RUNTIME.timeline
        return self._timeline

    def timed(
        self, body: Body, at: int, where: str, stream: str, run: Callable[[], Any]
    ) -> Callable[[], Any]:
        """Return a step, queued now, that adds itself here and to a profile after its run; the step
        itself where none is taken."""
        timeline, node = self.profile(), body.nodes[at]
        if timeline is None:
            return run

        def note(work: Work) -> None:
            self._works.append(work)
            self._executions.append(Execution(body, at, where, work))

        return timeline.timed(node.name, node.kind, stream, run, note)

    def launch(self, stream: str, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return the launch of a graph, queued now, which adds itself here and to a profile."""
        timeline = self.profile()
        if timeline is None:
            return run
        return timeline.timed(self.name, "graph", stream, run, self._works.append)

    @property
    def timeline(self) -> Timeline:
        """The works of the run alone; CdTypeError CD0868 where no profile was taken."""
        return self._profiled().part(self._works)

    def _profiled(self) -> Timeline:
        if self._timeline is None:
            raise misuse(f"nothing was recorded of this run of `{self.name}`",
                         "run it while a profile is taken: `with pe.profile():`")  # fmt: skip
        return self._timeline

    def explanation(self, name: str) -> str:
        """Return when each execution of a step of a name was queued, what it waited for, and how
        long it took, "" where there is none. Times are microseconds since the first was queued.

        Raises CdTypeError CD0868 where no profile was taken.
        """
        self._profiled()
        return "\n".join(self._explained(name))

    def _explained(self, name: str) -> Iterator[str]:
        executions = sorted(self._executions, key=lambda each: each.work.queued)
        ended = {(each.body, each.at, each.where): each for each in executions}
        begin = executions[0].work.queued if executions else 0
        chosen = [each for each in executions if each.work.name == name]
        for each in chosen[:MAX_SHOWN]:
            work = each.work
            times = [f"{(t - begin) / 1e3:.1f}" for t in (work.queued, work.started, work.ended)]
            inside = f", {each.where}" if each.where else ""
            yield (f"{each.at} `{name}`{inside}: queued at {times[0]} us, ran on {work.where} "
                   f"from {times[1]} to {times[2]} us")  # fmt: skip
            last = max(_awaited(each, ended), key=lambda other: other.work.ended, default=None)
            if last is not None and last.work.ended > work.queued:
                node = last.body.nodes[last.at]
                reasons = [
                    ", ".join(edge.reasons) for edge in each.body.graph.edges
                    if (edge.before, edge.after) == (last.at, each.at)
                ]  # fmt: skip
                until = (last.work.ended - begin) / 1e3
                why = reasons[0] if reasons else "the order on its stream"
                yield f"    waited for {last.at} `{node.name}` until {until:.1f} us: {why}"
        if len(chosen) > MAX_SHOWN:
            yield f"and {len(chosen) - MAX_SHOWN} more"


def _awaited(each: Execution, ended: dict[tuple[Body, int, str], Execution]) -> Iterator[Execution]:
    """Yield what an execution came after, in the same iterations: by signals, and on its stream."""
    schedule, nodes = each.body.schedule, each.body.nodes
    earlier = list(schedule.waits[each.at])
    own = schedule.streams[each.at][0]
    order = [at for at in schedule.order if schedule.streams[at][0] == own]
    earlier += order[: order.index(each.at)][-1:]
    for at in earlier:
        found = ended.get((each.body, at, each.where))
        if found is not None and isinstance(nodes[at], Step):
            yield found
