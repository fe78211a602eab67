"""Products of complex matrices as real ones: every way to compute them rounds in the same way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cc.cpu_info import target
from plusequals.base import settings
from plusequals.lowering.cpu.gemm.complex_products import use_real_form
from plusequals.lowering.ir.walk import statements, writes
from plusequals.lowering.target import Target

from ...scheduled import function
from ...shown import lowered

FORMS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "letters": ("y[i, j] = sum[k](x[i, k] * z[k, j])", lambda y, x, z: x @ z),
    "onto": ("y[i, j] += x[i, k] * conj(z[k, j])", lambda y, x, z: y + x @ z.conj()),
    "arrays": ("y[:] = 2 * (x @ z) + 1j", lambda y, x, z: 2 * (x @ z) + 1j),
    "turned": ("y[:] = (x.conj().T @ z.T).T", lambda y, x, z: (x.conj().T @ z.T).T),
    "second first": ("y[i, j] = sum[k](z[k, j] * x[i, k])", lambda y, x, z: x @ z),
    "stacked": ("y[:] = np.einsum('bij,bjk->bik', x[None], z[None])[0]", lambda y, x, z: x @ z),
    "steps": (
        "for t in range(2):\n        y[:] = y / 2 + x @ z",
        lambda y, x, z: y / 4 + 1.5 * x @ z,
    ),
}


def _given(size: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    parts = rng.normal(0, 1, (3, 2, size, size))
    y, x, z = ((re + 1j * im).astype(dtype) for re, im in parts)
    return y, x, z


def _run(made: pe.CdFunction, given: tuple[np.ndarray, ...], **how: object) -> np.ndarray:
    y, x, z = (one.copy() for one in given)
    with settings.override("cc", **how):
        made(y, x, z)
    return y


def _made(name: str) -> pe.CdFunction:
    return function(f"def f(y, x, z):\n    {FORMS[name][0]}\n")


@pytest.mark.parametrize("name", FORMS)
def test_known_sizes_sizes_of_the_run_and_threads_change_no_bit(name: str) -> None:
    given = _given(53, "c16")
    wanted = _run(_made(name), given)
    np.testing.assert_allclose(wanted, FORMS[name][1](*given), rtol=1e-10, atol=1e-10)
    if name in ("letters", "arrays", "second first", "stacked"):
        return  # as the others
    opened = _made(name)
    for size in (3, 4, 5, 6):
        _run(opened, _given(size, "c16"))
    assert _run(opened, given).tobytes() == wanted.tobytes()
    assert _run(_made(name), given, threads=3, parallel_from=0).tobytes() == wanted.tobytes()


def test_a_trace_changes_no_bit() -> None:
    given = _given(53, "c8")
    wanted = _run(_made("onto"), given)
    with pe.trace():
        assert _run(_made("onto"), given).tobytes() == wanted.tobytes()


@pytest.mark.skipif(not target().fma, reason="this processor does not multiply and add at once")
def test_a_corner_of_a_large_product_is_a_small_one() -> None:
    _, x, z = _given(70, "c16")
    product = function("def f(x, z):\n    return x @ z\n")
    whole = product(x, z)
    assert product(x[:5], z[:, :3].copy()).tobytes() == whole[:5, :3].tobytes()


def _nests(body: str, size: int) -> list[str]:
    """Return what each outermost nest writes."""
    program = lowered(body, **dict.fromkeys("yxz", f"c128[{size}, {size}]"))
    made, _ = use_real_form(program, Target(schedule=True, reorders=True, fma=True))
    kept = [stmt for stmt in made.kernels[0].body if statements((stmt,))[1:]]
    return [" ".join(sorted(node.label for node in writes((stmt,)))) for stmt in kept]


def test_which_products_are_real_ones() -> None:
    assert _nests("y[:] = x @ z", 60) == ["x_parts", "z_parts", "y_parts", "y y_sum"]
    assert _nests("y += x @ z", 60)[:2] == ["x_parts", "z_parts"]
    assert _nests("y[:] = x @ z", 20) == ["y"], "little is read often"
    assert _nests("y[:, :4] = x @ z[:, :4]", 200) == ["y"], "few columns"
    assert _nests("y[0] = x @ z[0]", 60) == ["y"], "a vector"
    loops = "for i in range(60):\n    for j in range(60):\n        for k in range(60):\n"
    assert _nests(loops + "            y[i, j] += x[i, k] * z[k, j]", 60) == ["y"], "as written"


def test_nothing_is_read_where_there_are_no_elements() -> None:
    product = function("def f(y, x, z):\n    y[:] = x @ z\n")
    for rows, terms, columns in ((3, 4, 5), (6, 7, 8), (9, 10, 11), (0, 5, 70), (70, 0, 70)):
        y = np.ones((rows, columns), complex)
        product(y, np.ones((rows, terms), complex), np.ones((terms, columns), complex))
        assert (y == terms).all()
