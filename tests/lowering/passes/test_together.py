"""Known programs after all passes: their loops, and how many arrays they keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import plusequals as pe
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ...kernels.registry import KERNELS
from ...language import index_functions
from ...language.examples import EXAMPLES
from .digits import digits


def shaped(program: Program) -> Program:
    return optimize(program, HOST)[0]


def arrays(program: Program) -> dict[str, tuple[int, ...] | None]:
    """The locals that are more than scalars, with their shapes."""
    return {node.label: node.static_shape for node in program.locals if node.rank}


def example(name: str) -> Program:
    made = next(one for one in EXAMPLES if one.function == name)
    return lower(getattr(index_functions, name).procedure(*made.make()))


def kernel(name: str) -> Program:
    made = next(one for one in KERNELS if one.name == name)
    args, kwargs = made.make("tiny", 20)
    return lower(pe.cd(made.function).procedure(*args, **kwargs))


PROGRAMS: dict[str, tuple[Callable[[], Program], int]] = {
    "softmax": (lambda: example("softmax"), 1),
    "layernorm": (lambda: example("layernorm"), 0),
    "attention": (lambda: example("attention"), 1),
    "cholesky": (lambda: example("cholesky"), 0),
    "lu": (lambda: example("lu"), 0),
    "jacobi": (lambda: example("jacobi"), 1),
    "assign": (lambda: example("assign"), 0),
    "black_scholes": (lambda: kernel("black_scholes"), 0),
    "heat_3d": (lambda: kernel("heat_3d"), 0),
    "digits": (digits, 4),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_loops_are_those_expected(
    name: str, golden: Callable[[str], Callable[[str], None]]
) -> None:
    make, count = PROGRAMS[name]
    program = shaped(make())
    assert len(arrays(program)) == count, arrays(program)
    golden(f"{name}.txt")(print_program(program))


def test_the_digits_keep_what_every_example_needs_later() -> None:
    assert arrays(shaped(digits())) == {
        "r": (32, 96), "z": (32, 10), "e": (10,), "d": (32, 10),
    }, "the gradient of `r` takes the place of `r`, and the loss is summed as it comes"  # fmt: skip
