"""Products of complex matrices: the parts of what is read often lie apart, and no bit changes."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.ir.loops import Stmt
from plusequals.lowering.ir.walk import reads
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ..scheduled import function
from ..shown import lowered

PRODUCTS = {
    "matrices": "y[:] = x @ z",
    "transposed": "y[:] = x @ z.T + 1j * y",
    "conjugates": "y[:] = 2 * (x.conj().T @ z)",
    "on top": "y += x @ (z + 1)",
    "magnitudes": "y[:] = np.abs(x @ z)",
    "a vector": "y[0] = x @ z[:, 1]",
    "three": "y[:] = np.einsum('ij,jk,kl->il', x, z, x)",
    "with itself": "y[:] = x @ x",
    "in place": "y[:] = y @ z",
    "slices": "y[1:, 2:] = x[1:, :-1] @ z[1:, 2:]",
    "a loop": "for k in range(3):\n        y[:] = y / 2 + x @ z",
}


def _arrays(rows: int, dtype: str) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(rows)
    parts = rng.normal(0, 0.3, (3, 2, rows, rows))
    return tuple((re + 1j * im).astype(dtype) for re, im in parts)


def _bits(name: str, rows: int, dtype: str, **how: object) -> bytes:
    y, x, z = _arrays(rows, dtype)
    with settings.override("cc", **how):
        function(f"def f(y, x, z):\n    {PRODUCTS[name]}\n")(y, x, z)
    return y.tobytes()


@pytest.mark.parametrize("name", PRODUCTS)
def test_not_a_bit_changes(name: str) -> None:
    for rows, dtype in ((3, "c8"), (37, "c16")):
        plain, made = (
            _bits(name, rows, dtype, profile="strict", schedule=schedule)
            for schedule in (False, True)
        )
        assert made == plain
        few = {_bits(name, rows, dtype, threads=n, parallel_from=0) for n in (1, 3)}
        assert len(few) == 1


@pytest.mark.parametrize("name", ["transposed", "magnitudes", "three", "in place", "slices"])
def test_sizes_of_the_run_give_the_same(name: str) -> None:
    text = f"def f(y, x, z):\n    {PRODUCTS[name]}\n"
    made, known = function(text), {"np": np}
    exec(text, known)
    for rows in (20, 21, 22, 23, 40):
        got, wanted = _arrays(rows, "c16"), _arrays(rows, "c16")
        made(*got)
        known["f"](*wanted)  # each of them is NumPy too
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-10, atol=1e-12)


def _read(body: str, size: int) -> list[set[str]]:
    """Return which arrays each outermost statement reads."""
    sizes = dict.fromkeys("yxz", f"c128[{size}, {size}]")
    program, _ = optimize(
        lowered(body, **sizes), Target(schedule=True), stop_after="complex_to_pairs"
    )
    stmts: tuple[Stmt, ...] = program.kernels[0].body
    return [{node.label for node in reads((stmt,)) if node.rank} for stmt in stmts]


def test_which_arrays_are_put_apart() -> None:
    parts = {"x_re", "x_im", "z_re", "z_im"}
    assert _read("y[:] = x @ z", 30)[-1] == parts
    assert _read("y[:] = x @ z", 5)[-1] == {"x", "z"}, "few products are not worth it"
    assert _read("y[0] = x @ z[0]", 30)[-1] == {"x", "z"}, "one row is less than half of an array"
    assert set.union(*_read("y[i, j] = sum(x[i, k] * y[k, j])", 30)) >= {"x_re", "x_im"}
