"""Which sums may be added up in another order: the statement decides, not its loops."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.expressions import Apply
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.rewrite import map_kernels, rename
from plusequals.lowering.lower import lower
from plusequals.lowering.passes.reduction_order import find_updates, set_reduction_order

from ..scheduled import function, of_any_size
from ..shown import array, lowered

CASES = {
    "y[i] = sum(x[i, j])": "j",
    "y[j] = sum(x[i, j])": "",  # down columns
    "y[i] = sum(x[i, j] * w[j])": "j",
    "y[j] = sum(x[i, j] * v[i])": "",  # rows, each times a number
    "y[i] = sum(x[j, k] * x[k, i] * v[i])": "",
    "z[i, k] = sum(x[i, j] * x[k, j])": "",  # a product of matrices
    "z[i, k] = sum((x[i, j] - x[k, j]) ** 2)": "",  # and what is like one
    "y[0] = sum(x[i, j])": "i, j",
    "y[i] = max(x[i, j])": "j",
    "n[i] = sum(m[i, j])": "",  # integers are exact anyway
    "y[p[i]] += x[i, j]": "j",
    "y[p[j]] += x[i, j]": "",  # every term has a cell of its own
    "y[i] = sum(w[j] * v[i])": "j",  # what no letter of the sum moves does not count
    "y[i] = sum(q[i, j, k] * x[k, i])": "j, k",  # the largest operand decides
    "y[i] = sum(q[j, i, k])": "j, k",
    "y[i] = sum(q[j, k, i])": "",
    "y[i] = sum(q[c, i, j] * x[j, i])": "",  # where both are as large, either one
    "z[i, k] = sum(q[i, k, j] * x[i, j])": "j",  # one operand has all letters
    "z[i, k] = sum(x[i, j])": "j",
    "y[0] = sum(w[j] * v[j])": "j",
    "y[0] = sum(x[j, p[j]])": "j",  # data says where
    "y[p[i]] = sum(x[j, i])": "",  # data says where to
    "y[i] = sum[j >= i](w[j] * v[i])": "-i + j",  # a bound that is a letter of the target
    "z[i, c] = sum(x[i, j] * x[j, c])": "j",  # a number of the run is no letter
    "y[i] = sum[j >= c](x[i, j])": "j - max(0, c)",
    "for t in range(8):\n    y[i] = sum(w[j] * x[t, i])": "j",  # nor is a loop around
    "for t in range(8):\n    y[t] = sum(x[i, t])": "",  # but where it is one of the target
    "for t in range(8):\n    y[0] = sum(x[i, t])": "",  # or neighbours are of other rounds of it
    "for t in range(8):\n    y[0] = sum(x[t, i] * x[i, t])": "",
    "for t in range(8):\n    y[0] = sum(x[t, i] * w[i])": "i",
    "for t in range(8):\n    y[i] = sum(x[t, j] * x[j, i])": "",  # which make no row a matrix
    "for t in range(8):\n    y[i] = sum(x[i, j] * x[j, t])": "j",
    "z[i, k] = sum(x[m[i, j], k])": "",  # rows that data names
    "y[i] = sum(x[i, j] * w[p[j]])": "j",
    "y[0] = sum(x[i, 2])": "i",  # nobody uses the neighbours
    "for i in range(8):\n    for j in range(8):\n        y[i] += x[i, j]": "",  # as written
}
SPECS = {
    "y": "f32[8]", "z": "f32[8, 8]", "n": "i64[8]", "x": "f32[8, 8]", "m": "i64[8, 8]",
    "w": "f32[8]", "v": "f32[8]", "p": "i64[8]", "q": "f32[8, 8, 8]", "c": "i64",
}  # fmt: skip


def used(text: str) -> dict[str, str]:
    words = re.split(r"\W+", text)
    return {name: spec for name, spec in SPECS.items() if name in words}


@pytest.mark.parametrize("text", CASES)
def test_what_may_be_regrouped(text: str) -> None:
    (update,) = find_updates(set_reduction_order(lowered(text, **used(text))))
    assert ", ".join(str(at) for at in update.over) == CASES[text]


LAYOUTS = {
    ("y[i] = sum(a[i, j])", (8, 1)): "j",
    ("y[i] = sum(a[i, j])", (1, 8)): "",  # down columns in memory
    ("y[j] = sum(a[i, j])", (1, 8)): "i",
    ("y[i] = sum(a[i, j])", (-2, 32)): "",
    ("y[i] = sum(a[i, j])", (0, 3)): "j",  # rows that are one
    ("y[i] = sum(a[i, j] * w[j])", (1, 8)): "",
    ("y[0] = sum(a[i, j])", (1, 8)): "i, j",
}


@pytest.mark.parametrize(("text", "strides"), LAYOUTS)
def test_neighbours_are_those_in_memory(text: str, strides: tuple[int, ...]) -> None:
    given = {"y": np.ones(8, "f4"), "w": np.ones(8, "f4")}
    base = np.ones(999, "f4")[500:]
    given["a"] = np.lib.stride_tricks.as_strided(base, (8, 8), [4 * s for s in strides])
    mine = {name: one for name, one in given.items() if f"{name}[" in text}
    made = function(f"def f({', '.join(mine)}):\n    {text}\n")
    (update,) = find_updates(set_reduction_order(lower(made.procedure(*mine.values()))))
    assert ", ".join(str(at) for at in update.over) == LAYOUTS[text, strides]


@pytest.mark.parametrize(("text", "strides"), LAYOUTS)
def test_a_copy_has_the_neighbours_of_what_was_given(text: str, strides: tuple[int, ...]) -> None:
    program = lowered(text, **{n: s for n, s in used(text.replace("a[", "x[")).items() if n != "x"},
                      a="f32[8, 8]")  # fmt: skip
    (node,) = (one.node for one in program.parameters if one.node.label == "a")
    nearest = 0 if 0 < abs(strides[0]) < abs(strides[1]) else None
    copy = {node.id: replace(node, nearest=nearest)}
    turned = map_kernels(program, lambda body: rename(body, {}, copy))
    (update,) = find_updates(set_reduction_order(turned))
    assert ", ".join(str(at) for at in update.over) == LAYOUTS[text, strides]


RUN = ["y[i] = sum(x[i, j])", "y[j] = sum(x[i, j])", "z[i, -1] = sum(x[i, j] * z[j, -1])"]


@pytest.mark.parametrize("text", RUN)
def test_sizes_of_the_run_change_no_order(text: str) -> None:
    arrays = {name: np.ones_like(array(spec)) for name, spec in used(text).items()}
    made = function(f"def f({', '.join(arrays)}):\n{textwrap.indent(text, '    ')}\n")
    fixed, run = (
        [bool(update.over) for update in find_updates(set_reduction_order(lower(procedure)))]
        for procedure in (made.procedure(*arrays.values()), of_any_size(made, *arrays.values()))
    )
    assert fixed == run


SQUARES = {"y": "f64[8]", "x": "f64[8, 8]", "w": "f64[8]", "n": "i64[8]", "m": "i64[8, 8]"}
SINGLE = {name: spec.replace("f64", "f32") for name, spec in SQUARES.items()}


@pytest.mark.parametrize("specs", [SINGLE, SQUARES])
@pytest.mark.parametrize("text", ["y[i] = sum(x[i, j] * w[j])", "y[i] += x[j, i] * w[j]"])
def test_products_of_floats_are_marked_where_they_are_to_be(
    text: str, specs: dict[str, str]
) -> None:
    program = lowered(text, y=specs["y"], x=specs["x"], w=specs["w"])
    (before,), (plain,), (after,) = (
        list(find_updates(one))
        for one in (program, set_reduction_order(program), set_reduction_order(program, True))
    )
    assert plain.value == before.value
    assert isinstance(before.value, Apply)
    assert after.value == replace(before.value, op=OPS["product"])
    assert after.over == plain.over, "rounding and order are decided apart"


PLAIN = {
    "no product": "y[i] = sum(x[i, j] + w[j])",
    "a product among others": "y[i] = sum(x[i, j] * w[j] + 1)",
    "no sum": "y[i] = max(x[i, j] * w[j])",
    "multiplied": "y[i] = prod(x[i, j] * w[j])",
    "integers": "n[i] = sum(m[i, j] * m[i, j])",
    "no operation": "y[i] = sum(x[i, j])",
    "one term": "y[i] += x[i, 0] * w[0]",
    "loops that were written": "for i in range(8):\n    y[i] += x[i, 0] * w[0]",
}


@pytest.mark.parametrize("name", PLAIN)
def test_all_others_are_rounded_as_they_are_written(name: str) -> None:
    text = PLAIN[name]
    mine = {name: spec for name, spec in SINGLE.items() if f"{name}[" in text}
    program = lowered(text, **mine)
    before, after = (
        list(find_updates(one)) for one in (program, set_reduction_order(program, True))
    )
    assert [one.value for one in before] == [one.value for one in after]


def test_what_counts_no_terms_of_a_sum_stays_the_same() -> None:
    program = lowered("for i in range(8):\n    y[i] += x[i, 0] * w[0]", **used("y x w"))
    assert set_reduction_order(program, True) == program
