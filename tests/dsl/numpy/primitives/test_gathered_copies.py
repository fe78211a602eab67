"""What an array of positions selects is a copy: nothing writes the original through it."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError

WRITES = [
    "np.copyto({}, 9.0)", "{}.fill(9.0)", "{}[:] = 9.0", "{}[0] = 9.0", "{}[...] += 1.0",
    "np.add({0}, 1.0, out={0})", "{}.sort()",
]  # fmt: skip
SELECTIONS = ["x[[0, 2]]", "x[k]", "m[[0, 1]]", "m[:, [0, 1]]", "m[[0, 1], [1, 2]]", "m[k, 0]"]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_a_copy_is_refused(write: str, selection: str) -> None:
    text = f"def f(x, m, k):\n    {write.format(selection)}\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    with pytest.raises(CdError, match="CD0451.*new value"):
        f(np.zeros(3), np.zeros((3, 3)), np.array([0, 2]))


def test_the_selection_itself_is_written(backend: str) -> None:
    text = "def f(x, k):\n    x[[0, 2]] = 9.0\n    x[k] += 1.0\n    v = x[k]\n    v[:] = 5.0\n"
    x = np.zeros(3)
    with pe.override(backend):
        pe.cd_from_source(text, {"np": np})(x, np.array([1]))
    assert x.tolist() == [9.0, 1.0, 9.0]
