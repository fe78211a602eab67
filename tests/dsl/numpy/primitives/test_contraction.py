"""Products with sums."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "x @ v",
    "x @ x.T",
    "np.dot(x, v)",
    "np.dot(v, v)",
    "v @ v",
    "t @ q",
    "t @ v",
    "np.matmul(t, q)",
    "np.inner(x, x)",
    "np.outer(v, w)",
    "np.tensordot(t, q, axes=([2], [1]))",
    "np.einsum('ij,j->i', x, v)",
    "np.einsum('ij,kj', x, y)",
    "np.einsum('ii->i', m)",
    "np.einsum('ii', m)",
    "np.einsum('ijk,ikl->ijl', t, q)",
    "np.einsum('...j,j->...', t, v)",
    "np.einsum('ij->ji', x)",
    "np.einsum('i,j,k->ijk', v, w, v)",
    "d = np.einsum('ii->i', m)\nm[0] = 7.0\nd[1:] = 5.0\nm, d.copy()",
    "d = np.einsum('jii->ij', np.stack([m, m]))\nd[1:] = 5.0\nd",
    "d = np.einsum('ij->ji', x)\nx[0] = 7.0\nd[1] = 5.0\nx, d.copy()",
    "d = np.einsum('ba', x)\nx += 1.0\nd.copy()",
    "d = np.einsum('...j->j...', t)\nd[:2, 1] = 5.0\nt, d.copy()",
    "d = np.einsum('ij->ij', x + 1.0)\nd += x\nx, d",
    "d = np.einsum('ij->i', x)\nx += 1.0\nd",
    "np.vdot(z, z)",
    "np.kron(x, m)",
    "np.kron(v, w)",
    "np.cross(x[:, :3], x[:, 1:])",
    "np.trace(m)",
    "np.trace(k)",
    "m.trace(1)",
    "k @ k.T",
    "b @ b.T",
    "h @ h.T",
    "i @ x.T",
    "np.linalg.matrix_power(m, 5)",
    "np.linalg.multi_dot([x, m, v])",
    "np.add.outer(v, w)",
    "np.subtract.outer(v, x)",
    "np.maximum.outer(v, v)",
    "np.tensordot(x, m, 1)",
    "np.einsum('ij->', x)",
    "np.einsum('ij->j', k)",
    "np.einsum('i,i', v, v)",
    "np.einsum('ij,jk,kl->il', x, m, m)",
    "np.einsum('ij,ij->i', x, y)",
    "np.tensordot(x, x, axes=2)",
    "np.tensordot(t, x, axes=((1, 2), (0, 1)))",
    "t @ q[0]",
    "x @ q",
    "np.matmul(t, m)",
    "np.array([[1, 2], [3, 4]]) @ np.array([1.0, 2.0])",
    "x.dot(v)",
    "x.trace()",
    "z.conj().T @ z",
    "z @ z.T",
    "np.diag(v) @ m",
    "np.vecdot(x, x)",
    "np.linalg.trace(m)",
    "np.linalg.cross(x[:, :3], x[:, 1:])",
    "np.matvec(m, v)",
    "np.outer(v, w).sum()",
    "np.cross(v[:3], w[:3])",
    "np.dot(i.astype(np.int8), 100)",
    "np.dot(2.5, x.astype(np.float32))",
    "np.inner(i.astype(np.int8), 100)",
    "np.dot(i.astype(np.int8)[0, 0], 100) + 0 * i",
    "np.outer(i.astype(np.int8), 100)",
    "np.tensordot(i.astype(np.int8), 100, 0)",
    "np.multiply.outer(100, i.astype(np.int8))",
    "i.astype(np.int8).dot(100)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x @ x", "do not fit in a product"),
        ("x @ 2.0", "at least one axis"),
        ("np.einsum('ij,jk', x, v)", "does not fit"),
        ("np.cross(v, v)", "vectors of three"),
    ],
)
def test_operands_that_do_not_fit_are_refused(body: str, message: str) -> None:
    with pytest.raises(pe.CdError, match=message):
        compiled(body)


AS_IN_NUMPY = (
    "np.tensordot(x, x, axes=([], [])), np.tensordot(x, x, axes=(0, 0)), np.tensordot(x, y, -1)",
    "np.vecdot(t, v), np.inner(t, v), np.einsum('i,i', v, v[:1]), np.einsum('iI', x)",
    "np.linalg.outer(v, w), np.linalg.multi_dot([v[:3], x, v]), np.linalg.multi_dot([x, q[0]])",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.inner(v, v[:1])", "CD0301", "shapes (4,) and (1,) do not fit in a product"),
    ("np.inner(x, v[:1])", "CD0301", "shapes (3, 4) and (1,) do not fit"),
    ("np.tensordot(v, v[:1], 1)", "CD0301", "shapes (4,) and (1,) do not fit"),
    ("np.vecdot(x, v[:1])", "CD0301", "shapes (3, 4) and (1,) do not fit"),
    (
        "np.vecdot(x, 2.0)",
        "CD0454",
        "`vecdot` needs arrays with axes, given f64[3, 4] and float 2.0",
    ),
    ("np.tensordot(m, m, axes=([0, 0], [0, 1]))", "CD0446", "axis 0 is given twice"),
    ("np.tensordot(x, x, 3)", "CD0446", "`tensordot` contracts 3 axes of f64[3, 4] and f64[3, 4]"),
    ("np.tensordot(v, v, axes=2)", "CD0446", "contracts 2 axes of f64[4] and f64[4]"),
    (
        "np.tensordot(x, x, axes=((0,), (0, 1)))",
        "CD0311",
        "contracts axes in pairs, and is given 1 and 2",
    ),
    ("np.tensordot(x, x, axes=(0,))", "CD0311", "a number or two lists, and has 1 items"),
    ("np.tensordot(x, x, axes=(0, 1, 1))", "CD0311", "has 3 items"),
    ("np.trace(m, 0, 1, 1)", "CD0446", "axis 1 is given twice"),
    ("np.einsum('i1', x)", "CD0455", "'1' is no letter"),
    ("np.einsum('ij->i_', x)", "CD0455", "'_' is no letter"),
    (
        "np.einsum('ii', x[:, :1])",
        "CD0301",
        "the axes 'i' of one operand of `einsum`: sizes 3 and 1",
    ),
    ("np.linalg.outer(x, v)", "CD0452", "`linalg.outer` takes two vectors, and is given f64[3, 4]"),
    ("np.linalg.multi_dot([x])", "CD0453", "multiplies at least two arrays, and is given 1"),
    ("np.linalg.multi_dot([m, v, m])", "CD0452", "vectors only as the first and the last array"),
    (
        "np.linalg.matrix_power(x, 1)",
        "CD0301",
        "`matrix_power` takes square matrices: sizes 3 and 4",
    ),
    ("np.matvec(v, v)", "CD0452", "`matvec` takes matrices first, and is given f64[4]"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


@pytest.mark.parametrize("subscripts", ["...i->i", "i...->i", "...ij->ij", "...->"])
def test_axes_without_letters_are_in_the_output(subscripts: str) -> None:
    assert_refused("CD0455", f"np.einsum({subscripts!r}, a)", np.ones((2, 2, 2)))
    assert_as_plain("np.einsum('...ij->ij', a), np.einsum('...ij->...j', a)", np.eye(2))


def test_a_kronecker_product_of_numbers_is_a_number() -> None:
    assert_as_plain("np.kron(2, 3), np.kron(a, b), np.kron(a, c)", 3, np.array(2.0), np.ones(2))


@pytest.mark.parametrize("call", ["a[0].dot(a)", "a.sum().dot(a)", "a[0].partition(0)"])
def test_numbers_have_no_methods_of_arrays_alone(call: str) -> None:
    assert_refused("CD0414", call, np.arange(4.0))
