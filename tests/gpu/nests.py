"""Loops of every kind on the device, traced and not, held against the interpreter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError
from tests.lowering.nests_of_all_kinds import LARGE, NESTS, text_of

from .jobs import Job, NotAsked

Array = np.ndarray[Any, Any]
SIZES = (1, 5, 37, 70)
AGAIN = "ppt"
"""Twice, for the same bits in each run, and once with a trace."""
OTHERWISE = {
    "running columns": "what is recorded round by round is no running total that is cut in pieces",
}
"""Programs of which docs/cuda.md says that a trace may change the last bits, and why."""


def jobs(sizes: Iterable[int] = SIZES, runs: str = AGAIN, backend: str = "cuda") -> list[Job]:
    """Return a job for each program; `runs` are those that are compared: `p` a plain one, `t` one
    that is traced."""
    sizes = tuple(sizes)
    return [Job(name, partial(look, name, sizes, runs, backend)) for name in NESTS]


def look(name: str, sizes: Iterable[int], runs: str, backend: str) -> None:
    """Raise AssertionError where a program does not compute what the interpreter does.

    One function is called with all sizes, so that it gets code for any size, too. With a trace that
    may add in another order: its values are compared, and the bits of a function that is called
    with no other size. Raises NotAsked where the interpreter refuses it at each size.
    """
    function = _function(name)
    asked, wrong = 0, []
    for size in sizes if name not in LARGE else (5,):
        arguments = NESTS[name][1](size, np.random.default_rng(size))
        try:
            function.procedure(*arguments)
        except CdError:
            continue
        asked += 1
        try:
            compare(function, arguments, backend, runs.replace("t", ""))
            if "t" in runs:
                compare(function, arguments, backend, "t")
                if name not in OTHERWISE:
                    compare(_function(name), arguments, backend, "pt")
        except Exception as why:  # other sizes are looked at all the same
            wrong.append(f"{size}: {type(why).__name__}: {str(why).strip()}")
    assert not wrong, "\n".join(wrong)
    if not asked:
        raise NotAsked


def _function(name: str) -> pe.CdFunction:
    return pe.cd_from_source(text_of(name), {"np": np}, backend="numpy")


def compare(function: Any, arguments: list[Array], backend: str, runs: str = AGAIN) -> None:
    """Raise AssertionError where runs differ from the interpreter's, or from each other."""
    right = [a.copy() for a in arguments]
    function(*right)
    found = []
    for kind in runs:
        held = [a.copy() for a in arguments]
        with pe.trace() if kind == "t" else contextlib.nullcontext():
            function.on(backend)(*held)
        for got, want in zip(held, right, strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-5)
        found.append([a.tobytes() for a in held])
        what = "when it is traced" if kind == "t" else "from run to run"
        assert found[-1] == found[0], f"it differs {what}"
