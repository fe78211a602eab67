"""However it is written, a known program keeps the arrays that an expert would, and no others."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import Check
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

from ..shown import lowered, text_of
from .variants import factors, formulas, rows
from .variants.variant import Variant

VARIANTS = (*rows.VARIANTS, *formulas.VARIANTS, *factors.VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS, ids=[one.name for one in VARIANTS])
def test_the_arrays_are_those_of_an_expert(variant: Variant) -> None:
    program, _ = optimize(lowered(variant.body, **variant.arrays), HOST)
    verify_program(program)
    kept = tuple(node.label for node in program.locals if node.rank)
    assert kept == variant.kept, text_of(program)
    checks = [s for s in statements(program.kernels[0].body) if isinstance(s, Check)]
    assert len(checks) <= 1, "what the ranges of loops imply is not checked"
