"""Gradients give the same bits as text, for every number of threads, and as the interpreter does
where all operations are exactly rounded; and as kernels of a device what they give in C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cc.code import CompiledCode
from plusequals.base import settings
from plusequals.lowering.ir.assignments import Procedure
from tests.backends.cuda.on_cpu import needs_gxx
from tests.dsl.api.field_programs import FIELD
from tests.lowering.adjoint.pending import (
    Ended,
    Pending,
    apart,
    by_threads,
    compiled,
    flat,
    is_exact,
    remembering,
)
from tests.lowering.adjoint.programs import (
    EXTREMES,
    JUMPS,
    PARAMETERS,
    SORTS,
    WHILES,
    function_of,
    values_of,
)
from tests.programs.batch import NAME, Deferring, compile_all, installed
from tests.programs.devices import on_device, orders
from tests.programs.thresholds import lowered

GROUPS = {"extremes": EXTREMES, "jumps": JUMPS, "whiles": WHILES, "sorts": SORTS, "field": FIELD}
SHARED = {"threads": 2, "parallel_from": 1}
"""Settings under which threads divide every loop that they may."""


@contextmanager
def interpreted(**changed: Any) -> Iterator[Deferring]:
    """Interpret at first what is compiled inside of the `with`, under these settings."""
    changes = {"backend": NAME, "cache": False, "optimize": 0, "verify": False, **changed}
    with installed() as backend, settings.override(**changes), np.errstate(all="ignore"):
        yield backend


def pending_of(group: str, backend: Deferring) -> list[tuple[int, Pending]]:
    """Return the gradients of a group of programs, interpreted so far."""
    made = []
    for number, name in enumerate(GROUPS[group]):
        if group == "field":
            f, arguments, wrt = FIELD[name]
        else:
            f, arguments, wrt = function_of(GROUPS[group][name]), values_of(3), PARAMETERS
        first = len(backend.made)
        g = pe.value_and_gradient(f.on(NAME), wrt=wrt)
        found = flat(g(*copies(arguments)))
        codes = backend.made[first:]
        exact = all(is_exact(code.procedure) for code in codes)
        calls = [(copies(arguments), found)]
        made.append((number, Pending(name, g, codes, calls, 1e-9, exact, "")))
    return made


def copies(values: tuple[Any, ...]) -> list[Any]:
    return [np.copy(value) if isinstance(value, np.ndarray) else value for value in values]


def told(ended: dict[int, Ended]) -> list[str]:
    return [f"{why.kind}: {why.why}" for why in ended.values()]


@pytest.mark.parametrize("group", GROUPS)
def test_texts_give_the_same_bits(group: str) -> None:
    apart_in: list[str] = []
    with interpreted() as backend:
        for _, one in pending_of(group, backend):
            ((arguments, found),) = one.calls
            text = one.function.text(*copies(tuple(arguments)))
            made = pe.cd_from_source(text, one.function.names)
            if where := apart(flat(made(*copies(tuple(arguments)))), found, 0.0):
                apart_in.append(f"{one.way}: {where}\n{text}")
    assert not apart_in, "\n".join(apart_in)


@pytest.mark.parametrize("group", GROUPS)
def test_bits_are_those_of_any_number_of_threads(group: str) -> None:
    shared: list[bool] = []

    def translate(procedures: Sequence[Procedure]) -> list[CompiledCode]:
        codes = compile_all(procedures)
        shared.append(any(code.source.asks for code in codes))
        return codes

    with lowered(1), interpreted(**SHARED) as backend:
        assert not told(by_threads(pending_of(group, backend), translate))
    assert shared[1:] == [True, True], "threads divide no loop"


@pytest.mark.parametrize("group", GROUPS)
def test_bits_are_those_of_the_interpreter_where_all_is_exactly_rounded(group: str) -> None:
    with interpreted(profile="strict") as backend:
        exact = [one for one in pending_of(group, backend) if one[1].exact]
        assert exact, "no program is exactly rounded"
        assert not told(compiled(exact, compile_all))


@needs_gxx
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_give_what_is_interpreted_in_any_order(group: str) -> None:
    with interpreted(profile="strict") as backend:
        pending = remembering(pending_of(group, backend), "another order of threads")
        assert not told(compiled(pending, on_device, orders))
