"""All checks of sharing, in groups: each group is looked at by processes of its own.

The name of a group says who its checks are about: a package, `two` of them, `running` work, or what
has to be `alone`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from plusequals.backends.cuda import driver

from .. import abreast
from ..jobs import Job, NotAsked
from . import alone, arrays, running, two
from .arrays import Check
from .packages import PACKAGES, Package

SHARES = 3
"""Processes for checks of running work."""
LATER = 60.0
"""Seconds that a check for which nothing else may run may take."""


def jobs(group: str) -> list[Job]:
    """Return the checks of a group."""
    if group in PACKAGES:
        about = [
            Job(f"{group}: {name}", partial(of_package, group, check))
            for name, check in arrays.OF_ALL.items()
        ]
        return [Job(f"{group}: is there", partial(is_there, group)), *about]
    return [Job(name, check) for name, check in OTHERS[group].items()]


OTHERS: Mapping[str, Mapping[str, Callable[[], None]]] = {
    "two": two.CHECKS, "running": running.CHECKS, "alone": alone.CHECKS,
}  # fmt: skip


@cache
def _package(name: str) -> Package | NotAsked:
    try:
        return PACKAGES[name]()
    except NotAsked as why:
        return why


def is_there(name: str) -> None:
    """Raise NotAsked with the reason where a package cannot be used: it is told once."""
    found = _package(name)
    if isinstance(found, NotAsked):
        raise found


def of_package(name: str, check: Check) -> None:
    """Do a check of a package, where it is there."""
    found = _package(name)
    if isinstance(found, NotAsked):
        raise NotAsked
    check(found)


def ways() -> list[str]:
    """Return the ways to the driver that can be tried here."""
    return [way for way, _ in driver.DRIVERS if _is_installed(way)]


def _is_installed(way: str) -> bool:
    try:
        return find_spec(way) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def use(way: str) -> None:
    """Let this process go to the driver in one way only."""
    driver.DRIVERS = tuple(one for one in driver.DRIVERS if one[0] == way)


def command(way: str, group: str, *more: str) -> list[str]:
    """Return the command that looks at a group in a process of its own."""
    words = [sys.executable, "-m", "tests.gpu", "--inside", f"sharing {group}", "--way", way]
    return [*words, *more]


def side_by_side(way: str) -> dict[str, list[str]]:
    """Return what may run at the same time, by name."""
    groups = {group: command(way, group) for group in (*PACKAGES, "two")}
    for at in range(1, SHARES + 1):
        groups[f"running {at}"] = command(way, "running", "--share", f"{at}/{SHARES}")
    return groups


def apart(way: str) -> dict[str, list[str]]:
    """Return what has to run by itself, one after the other, by name."""
    count = len(alone.CHECKS)
    return {
        name: command(way, "alone", "--share", f"{at}/{count}")
        for at, name in enumerate(alone.CHECKS, 1)
    }


def passed(root: Path, seconds: float) -> bool:
    """Whether nothing is wrong, in each way to the driver that there is."""
    ran = []
    for way in ways():
        print(f"sharing by way of {way}", flush=True)
        here = abreast.run(side_by_side(way), "sharing", seconds, root)
        for name, words in apart(way).items():
            here += abreast.run({name: words}, "sharing", LATER, root)
        print(f"sharing by way of {way}: {abreast.progress(here)}", flush=True)
        ran += here
    return all(one.status == 0 and one.looked == one.count for one in ran)
