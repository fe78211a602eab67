"""A process whose calls take for ever, unless a signal ends them: run by `test_threads`.

python -m tests.backends.cc.long_calls CACHE CALL interrupted|short|handled
"""

from __future__ import annotations

import signal
import sys
from unittest import mock

import numpy as np

import plusequals as pe
from plusequals.base import settings
from plusequals.dsl.api.cd import CdFunction
from plusequals.idx import i, k

LONG = 10**11


@pe.cd
def steps(y, n: int):
    for _ in range(n):
        y[i] = y[i] * 0.5 + 1.0


@pe.cd
def sum_of(y, x, n: int):
    y[0] = sum[k in range(n)](x[k % 7] * 0.5)


@pe.cd
def search(y, n: int):
    count = 0
    while count < n:
        count += 1
        if y[0] > count * 1e9:
            break
    y[1] = count


@pe.cd
def shared(y, n: int):
    for a in range(64):
        for _ in range(n):
            y[a] = y[a] * 0.5 + 1.0


Y, X = np.zeros(64), np.ones(7)
CALLS = {
    "steps": lambda n: steps(Y, n),
    "sum_of": lambda n: sum_of(Y, X, n),
    "search": lambda n: search(Y, n),
    "shared": lambda n: shared(Y, n),
}


def say(text: object) -> None:
    print(text, flush=True)


def interrupted(name: str) -> None:
    """Two calls are interrupted, and a third one is whole."""
    for _ in range(2):
        try:
            CALLS[name](LONG)
            say("not interrupted")
        except KeyboardInterrupt:
            say("interrupted")
    Y[...] = 0
    CALLS[name](10)
    say(Y[:2].tolist())


def short(name: str) -> None:
    """The same where calls go the short way."""
    for _ in range(4):
        CALLS[name](10)
    long_way = CdFunction._call

    def told(*args: object, **kwargs: object) -> object:
        say("the long way")
        return long_way(*args, **kwargs)

    with mock.patch.object(CdFunction, "_call", told):
        interrupted(name)


def handled(name: str) -> None:
    """Handlers run during a call, and one of them raises."""
    heard = []

    def stop(*_: object) -> None:
        raise ValueError(f"heard {len(heard)}")

    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    signal.signal(signal.SIGUSR1, stop)
    say("set")
    try:
        CALLS[name](LONG)
    except ValueError as error:
        say(error)


def main(cache: str, name: str, what: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.use(cache_dir=cache, optimize=1, schedule=True, threads=2, parallel_from=0)
    CALLS[name](10)
    if name == "sum_of":
        sum_of.explain(Y, X, LONG)  # each `n` is compiled, which Ctrl-C would end, too
    say("ready")
    {"interrupted": interrupted, "short": short, "handled": handled}[what](name)


if __name__ == "__main__":
    main(*sys.argv[1:])
