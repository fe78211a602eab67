"""Every operation of the table, in CUDA, on every type it admits, against its NumPy meaning.

The kernels run on this processor, so functions of CUDA's library are those of the C library here;
what is written in `csrc` is what runs on a device.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Cast
from plusequals.lowering.ir.interpret import run_procedure

from ..codegen.programs import assign, at, node, over, procedure, read, symbols
from ..test_ops import FAMILIES, cases, differences, everything, operands, specials, wanted
from .batch import compiled_one
from .on_cpu import needs_gxx, overflows


@needs_gxx
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_operation_has_its_numpy_meaning_in_cuda(family: str) -> None:
    whole, arrays, results = everything(family)
    with settings.override(stop_after="lower", verify=False):
        code = compiled_one(whole)
    code.run([*arrays, *results])
    wrong = []
    for (op, dtype), got in zip(cases(family), results):
        points = operands(op, dtype)
        want = wanted(op, dtype, points)
        for k in differences(op, dtype, got, want)[:3]:
            args = ", ".join(repr(point[k]) for point in points)
            wrong.append(f"{op.name}_{dtype.short}({args}) = {got[k]!r}, not {want[k]!r}")
    assert not wrong, "\n".join(wrong)
    assert overflows(code) == 0


@needs_gxx
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_cast_agrees_with_the_interpreter() -> None:
    sources = [(node(k, f"from_{d.short}", specials(d).shape, d), False)
               for k, d in enumerate(dtypes.ALL)]  # fmt: skip
    inputs = [specials(dtype) for dtype in dtypes.ALL]
    body, outs = [], []
    for number, ((source, _), to) in enumerate(itertools.product(sources, dtypes.ALL)):
        i = type(symbols("i")[0])("i", number)
        assert source.static_shape is not None
        out = node(100 + number, f"{to.short}_of_{source.dtype.short}", source.shape, to)
        value = read(source, i) if to is source.dtype else Cast(read(source, i), to)
        body.append(assign(out.label, out, at(i), value, over((i, 0, source.static_shape[0]))))
        outs.append(out)
    whole = procedure("casts", sources, body, results=outs)
    got, want = ([np.zeros(o.static_shape or (), o.dtype.numpy) for o in outs] for _ in range(2))
    compiled_one(whole).run([*inputs, *got])
    run_procedure(whole, [*inputs, *want], print)
    wrong = []
    for out, mine, oracle in zip(outs, got, want):
        same = (mine == oracle) | ((mine != mine) & (oracle != oracle))
        wrong += [f"{out.label}[{k}] = {mine[k]!r}, not {oracle[k]!r}"
                  for k in np.flatnonzero(~same)[:3]]  # fmt: skip
    assert not wrong, "\n".join(wrong)
