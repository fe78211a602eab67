"""Rules V1 and F1 to F3: parts of complex arrays are views; tensors, fields and host access."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError

from ..compare import assert_same
from .ask import plain, refused, run

X = np.array([0.5, -1.0, 2.0])
Z = np.arange(6).reshape(2, 3) * (1 - 2j)


# parts of complex numbers, which are views


@pytest.mark.parametrize(
    "body",
    [
        "t = z.real\nt[:] = 0",
        "z.imag[:] = 1",
        "z.imag = z.real",
        "z.imag += 1\nz.real[z.real > 2] *= 3",
        "t = z.T.imag[1:]\nt /= 3\nreturn t",
        "t = z.real\nt[0] = t[0, ::-1]\nreturn t.sum()",
        "t = z[0].real\nt[[0, 2]] = 7.0\nreturn t",
        "t = z.copy().real\nt[:] = 7\nreturn t",
        "t = z * 2\nu = t.imag\nu[0] = 1\nreturn t, u",
        "z.real.sort()",
        "s = 0.0\nfor row in z.real:\n    row[0] = 9\n    s += row.sum()\nreturn s",
        "np.add(z.real, 1, out=z.imag)",
        "t = z.real\nfor k in range(3):\n    t = t + 1\nreturn t",
    ],
)
def test_v1_parts_of_complex_numbers_are_views(backend: str, body: str) -> None:
    z, expected = Z.copy(), Z.copy()
    assert_same(run(backend, "z", body, z), plain("z", body, expected))
    assert_same(z, expected)


def test_v1_letters_write_a_part(backend: str) -> None:
    z = Z.copy()
    run(backend, "z, x", "t = z.real\nt[i, j] = x[j]\nt[i, j] *= 2\nz.imag[i, 0] = 5", z, X)
    expected = Z.copy()
    expected.real, expected.imag[:, 0] = 2 * X, 5
    assert_same(z, expected)
    refused("z, x", "t = z.real\nt[i, 0] += x[j]", z, X, offers=("total",))


def test_v1_a_returned_part_is_a_view(backend: str) -> None:
    z = Z.copy()
    whole, part = run(backend, "z", "return z.imag, z[:, 1:].real", z)
    assert_same((whole, part), (Z.imag, Z.real[:, 1:]))
    whole[0, 0] = part[0, 0] = 99.0
    assert z[0, 0].imag == z[0, 1].real == 99.0


# tensors


def test_f1_a_tensor_stands_for_its_value(backend: str) -> None:
    p = pe.tensor("p", (3,), dtype="float64", init=X)
    body = """
        y = 2 * p + x
        y[:] = y - p
        for v in p:
            y += v
        return y, np.sum(p), -p, p > 0, max(p[i])
    """
    expected = X + X + X.sum(), X.sum(), -X, X > 0, X.max()
    assert_same(run(backend, "p, x", body, p, X), expected)


def test_f1_a_returned_tensor_is_itself_and_its_value_a_copy(backend: str) -> None:
    p = pe.tensor("p", (3,), dtype="float64", init=X)
    same, value = run(backend, "p", "return p, p.value", p)
    assert same is p
    value[:] = 0
    assert_same(p.numpy(), X)


def test_f1_snapshots_never_change(backend: str) -> None:
    p = pe.tensor("p", (3,), init=1)
    before = p.numpy()
    run(backend, "p", "p.value += 1", p)
    with p.edit() as values:
        values[0] = 7
    assert_same((before, p.numpy()), (np.ones(3, np.float32), np.array([7, 2, 2], np.float32)))
    assert not before.flags.writeable


def test_f2_fields_have_to_be_declared() -> None:
    refused("p", "p.vel = p * 2", pe.tensor("p", (3,)), says=("`vel`", "grad"), offers=("fields",))


def test_f3_constant_tensors_are_never_written(backend: str) -> None:
    c = pe.tensor("c", (3,), init=1, constant=True)
    refused("c", "c.value += 1", c, backend=backend, says=("constant",))
    with pytest.raises(CdTypeError, match="constant"):
        c[0] = 2
    assert_same(c.numpy(), np.ones(3, np.float32))
