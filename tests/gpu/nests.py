"""Loops of every kind on the device, traced and not, held against the interpreter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.lowering.diagnostic import CdError
from tests.lowering.schedule.nests_of_all_kinds import LARGE, NESTS, text_of

Array = np.ndarray[Any, Any]
SIZES = (1, 5, 37, 70)


def programs(sizes: Iterable[int] = SIZES) -> Iterator[tuple[str, int, Any, list[Array]]]:
    """Yield name, size, function and arguments of what the interpreter takes."""
    for size in sizes:
        for name in NESTS:
            if name in LARGE and size != 5:
                continue
            function = pe.cd_from_source(text_of(name), {"np": np}, backend="numpy")
            arguments = NESTS[name][1](size, np.random.default_rng(size))
            with contextlib.suppress(CdError):
                function.procedure(*arguments)
                yield name, size, function, arguments


def run(backend: str = "cuda", sizes: Iterable[int] = SIZES) -> int:
    """Return how many programs computed on a backend what the interpreter does.

    Raises AssertionError, when all have run, where one does not, or has other bits in a second run
    or when traced.
    """
    count, wrong = 0, []
    for name, size, function, arguments in programs(sizes):
        try:
            compare(function, arguments, backend)
        except Exception as why:  # the others are run all the same
            wrong.append(f"{name}, {size}: {type(why).__name__}: {str(why).strip()}")
        count += 1
    assert not wrong, f"{len(wrong)} of {count} programs:\n" + "\n".join(wrong)
    return count


def compare(function: Any, arguments: list[Array], backend: str) -> None:
    """Raise AssertionError where a program does not compute what the interpreter does."""
    right = [a.copy() for a in arguments]
    function(*right)
    runs = []
    for is_traced in (False, False, True):
        held = [a.copy() for a in arguments]
        with pe.trace() if is_traced else contextlib.nullcontext():
            function.on(backend)(*held)
        runs.append([a.tobytes() for a in held])
        for got, want in zip(held, right, strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    assert runs[0] == runs[1], "it differs from run to run"
    assert runs[0] == runs[2], "it differs when it is traced"
