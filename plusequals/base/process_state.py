"""The registry of all state that the process holds, which forks and `reset` walk.

Programs are values, and passes keep nothing. A module with something that outlives a call registers
it here when it is imported: what guards it, what becomes of it in a forked child, and what `reset`
does to it. docs/architecture.md shows the registry as a table. A test looks for module-level state
that is not registered.

A forked child renews from below, see `states`: locks and imports before what uses them. A fork is
prepared, and state is reset, from above.
"""

from __future__ import annotations

import os
import threading  # noqa: F401 - its own handler of forks has to run before ours
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import NamedTuple

Action = Callable[[], object]


class State(NamedTuple):
    """One kind of state. The texts are cells of the table; what has no action is kept."""

    name: str
    owner: str
    """The module that holds it, or whose objects do."""
    lock: str
    holders: tuple[str, ...] = ()
    """The names in the owner, or attributes of its classes, that hold it; none if objects do."""
    in_child: str = "kept"
    on_reset: str = "kept"
    before_fork: Action | None = None
    after_fork_in_parent: Action | None = None
    after_fork: Action | None = None
    """Called in the child, which has only the thread that forked."""
    reset: Action | None = None


_states: list[Callable[[], State]] = []
"""Functions that return them: few programs fork or reset, and all import."""


def register(state: Callable[[], State]) -> None:
    """Add the state of a module that is being imported; returns nothing."""
    _states.append(state)


def states() -> list[State]:
    """Return what the modules imported so far hold, from below.

    What is of this folder comes first, as the rest is built on it; both in the order of imports.
    """
    current = [state() for state in _states]
    return sorted(current, key=lambda state: not state.owner.startswith(f"{__package__}."))


def reset() -> None:
    """Forget what could make a later call differ from the same call in a new process.

    Settings are those of the environment, and nothing records or measures calls any more; work in
    flight is waited for. Compiled code stays, and devices do, as arrays of theirs may be in use.
    What a `with` around this call has changed holds until its end.
    """
    _run_all(state.reset for state in reversed(states()))


def _before_fork() -> None:
    _run_all(state.before_fork for state in reversed(states()))


def _after_fork_in_parent() -> None:
    _run_all(state.after_fork_in_parent for state in states())


def _after_fork() -> None:
    _run_all(state.after_fork for state in states())


def _run_all(actions: Iterable[Action | None]) -> None:
    """Run all actions in order, also those after one that raises; raise its error at the end."""
    with ExitStack() as stack:  # calls the last one first
        for action in reversed([action for action in actions if action is not None]):
            stack.callback(action)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork,
    )

register(
    lambda: State(
        name="this registry",
        owner=__name__,
        holders=("_states",),
        lock="the interpreter's lock",
    )
)
register(
    lambda: State(
        name="memos of pure functions and of properties: `cache`, `lru_cache`, `cached_property`",
        owner="the module of each",
        lock="none: they follow from their arguments",
    )
)
