"""What is found out about a statement is kept with it, and found once.

A statement never changes, and the passes hand on those that they leave alone as they are. So what
one pass has found out about a statement is true for all others. It is no field: statements that
are equal are equal whatever is kept with them, and a changed copy starts without it.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class Remembers:
    """A value that never changes; has a place for each kind of thing that is found out about it.

    >>> class Loop(Remembers):
    ...     __slots__ = ()
    >>> def kinds(loop):
    ...     try:
    ...         return loop.summary
    ...     except AttributeError:
    ...         print("found out")
    ...         return keep(loop, "summary", {"For"})
    >>> loop = Loop()
    >>> kinds(loop), kinds(loop)
    found out
    ({'For'}, {'For'})
    """

    __slots__ = (
        "cost",
        "covered",
        "extents",
        "inside",
        "later",
        "lists",
        "own",
        "refusals",
        "scope",
        "serial",
        "sites",
        "summary",
        "uses",
        "work",
    )

    cost: Any
    """What its own expressions cost: `schedule.effort`."""
    covered: Any
    """Which arrays it reads only where it has written them before: `passes.access`."""
    extents: Any
    """The symbols of its ranges and sizes: `schedule.effort`."""
    inside: Any
    """Every statement inside of it: `walk.inside`."""
    later: Any
    """What the symbols that it binds are in a later round of it: `schedule.legal`."""
    lists: Any
    """The accesses in the lists inside of it: `passes.access`."""
    own: Any
    """Its own expressions, reads and writes: `walk.own`."""
    refusals: Any
    """Why its iterations may not run in any order, by what was known: `schedule.legal`."""
    scope: Any
    """The symbols that it needs, and those that it binds, with all that is inside: `verify`."""
    serial: Any
    """The highest number of a symbol that is bound in it: `fresh`."""
    sites: Any
    """The accesses in its own expressions: `passes.access`."""
    summary: Any
    """What it touches, with all that is inside of it: `passes.summary`."""
    uses: Any
    """The symbols that it uses itself: `walk.uses`."""
    work: Any
    """How much work one iteration is: `schedule.effort`."""


def keep(value: Remembers, name: str, found: T) -> T:
    """Return what was found out about a value, after keeping it there under that name."""
    object.__setattr__(value, name, found)
    return found
