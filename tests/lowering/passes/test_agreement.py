"""Every program does the same, bit for bit, before and after every pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import reduce

import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdInternalError
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.passes.cse import cse
from plusequals.lowering.passes.dce import eliminate_dead_code
from plusequals.lowering.passes.fuse import fuse
from plusequals.lowering.passes.inline import virtualize
from plusequals.lowering.passes.licm import hoist
from plusequals.lowering.passes.search_to_gather import search_to_gather
from plusequals.lowering.passes.simplify import simplify
from plusequals.lowering.pipeline import PASSES
from plusequals.lowering.target import HOST

from ...compare import copied, run_on
from ...kernels.kernel import Kernel
from ...kernels.registry import KERNELS
from ...language import index_functions
from ...language.examples import EXAMPLES, Example
from ...programs.check import NAMES
from ...programs.generate import generate
from .agree import NAME, Change, checking, program_of

ALONE: dict[str, Change] = {
    "simplify": simplify,
    "gather": search_to_gather,
    "cse": cse,
    "hoist": hoist,
    "dead": eliminate_dead_code,
    "virtualize": virtualize,
    "fuse": fuse,
    "shrink": contract_arrays,
}


def _all(changes: list[Change]) -> Change:
    return lambda program: reduce(lambda now, change: program_of(change(now)), changes, program)


def _registered(program: Program) -> Program:
    steps = (step for step in PASSES if step.when(HOST))  # the others may add in another order
    return reduce(lambda now, step: step.run(now, HOST).program, steps, program)


CHANGES: dict[str, Change] = {
    **ALONE,
    "together": _all(
        [simplify, search_to_gather, eliminate_dead_code, simplify, cse, hoist, eliminate_dead_code]
    ),
    "twice": _all([cse, hoist, cse, hoist, simplify, eliminate_dead_code]),
    "shaped": _all([virtualize, fuse, contract_arrays]),
    "registered": _registered,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_examples_agree(example: Example) -> None:
    function: Callable[..., object] = getattr(index_functions, example.function)
    with checking(CHANGES) as backend:
        run_on(NAME, function, *example.make())
    assert backend.changed, "the program ran"


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_agree(kernel: Kernel) -> None:
    args, kwargs = kernel.make("tiny", 20)
    with checking({name: CHANGES[name] for name in ("together", "registered")}) as backend:
        run_on(NAME, pe.cd(kernel.function), *copied(args), **kwargs)
    assert backend.changed, "the program ran"


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree(seed: int) -> None:
    rng = random.Random(seed)
    ran = 0
    with checking(CHANGES) as backend:
        while not ran:
            program = generate(rng)
            try:
                function = pe.cd_from_source(program.text, NAMES, backend=NAME)
                function(*program.make().values())
            except CdInternalError:
                raise
            except pe.CdError:
                continue  # a program that is refused, or whose fault was compared already
            ran += 1
    assert backend.changed, "the program ran"
