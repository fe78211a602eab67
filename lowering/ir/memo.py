"""Memoized analysis results, stored in the immutable statements that they are about.

A statement never changes, and passes return unchanged statements as the same objects. So what one
pass has computed about a statement holds for all others. The memo is no field: equality of
statements ignores it, and a changed copy starts without it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ...base.process_state import State, register

T = TypeVar("T")
register(
    lambda: State(
        name="facts about immutable nodes, kept with them",
        owner=__name__,
        lock="none: they follow from the node",
    )
)


class Memoized:
    """An immutable value with a slot for each analysis that is memoized in it.

    [...]

    >>> class Loop(Memoized):
    ...     __slots__ = ()
    >>> def kinds(loop):
    ...     try:
    ...         return loop.summary
    ...     except AttributeError:
    ...         print("found out")
    ...         return memoize(loop, "summary", {"For"})
    >>> loop = Loop()
    >>> kinds(loop), kinds(loop)
    found out
    ({'For'}, {'For'})
    """

    __slots__ = (
        "contents",
        "cost",
        "covered",
        "direct_effects",
        "extents",
        "inside",
        "later",
        "lists",
        "refusals",
        "scope",
        "serial",
        "sites",
        "summary",
        "uses",
        "work",
    )

    contents: Any
    """The kinds of statements and expressions in it: `preconditions`."""
    cost: Any
    """What its own expressions cost: `analysis.cost`."""
    covered: Any
    """The arrays it reads only after it has written them: `analysis.accesses`."""
    direct_effects: Any
    """Its own expressions, reads and writes: `walk.direct_effects`."""
    extents: Any
    """The symbols of its ranges and sizes: `analysis.cost`."""
    inside: Any
    """Every statement nested in it: `walk.inside`."""
    later: Any
    """The values of the symbols that it binds in a later iteration of it: `analysis.dependence`."""
    lists: Any
    """The accesses in the lists nested in it: `analysis.accesses`."""
    refusals: Any
    """Why its iterations may not be reordered, by the facts assumed: `analysis.dependence`."""
    scope: Any
    """The symbols that it needs, and those that it binds, nested statements included: `verify`."""
    serial: Any
    """The highest serial of a symbol bound in it: `fresh`."""
    sites: Any
    """The accesses in its own expressions: `analysis.accesses`."""
    summary: Any
    """Its side effects, nested statements included: `analysis.effects`."""
    uses: Any
    """The symbols that it uses itself: `walk.uses`."""
    work: Any
    """The work of one iteration: `analysis.cost`."""


def memoize(value: Memoized, name: str, result: T) -> T:
    """Return an analysis result after storing it in a value under that name."""
    object.__setattr__(value, name, result)
    return result
