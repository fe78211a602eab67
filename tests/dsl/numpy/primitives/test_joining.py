"""Joined, repeated, shifted, padded and picked."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.ir.assignments import Assign
from plusequals.lowering.ir.walk import statements

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.roll(v, 1)",
    "np.roll(x, -2, axis=1)",
    "np.roll(x, 5)",
    "np.roll(np.roll(x, 1, 0), -1, 1)",
    "np.roll(x, (1, 2), axis=(0, 1))",
    "np.repeat(v, 2)",
    "np.repeat(x, 2, axis=0)",
    "x.repeat(3, axis=1)",
    "np.tile(v, 2)",
    "np.tile(x, (2, 1))",
    "np.tile(v, (2, 2))",
    "np.stack([v, v * 2])",
    "np.stack((x, y), axis=-1)",
    "np.concatenate([v, w])",
    "np.concatenate((x, y), axis=1)",
    "np.concatenate([x, x[:1]])",
    "np.concatenate([x, y], axis=None)",
    "np.hstack((v, w))",
    "np.hstack((x, y))",
    "np.vstack((v, v))",
    "np.vstack((x, v))",
    "np.dstack((x, y))",
    "np.column_stack((v, v))",
    "np.append(v, 3.0)",
    "np.append(x, x, axis=0)",
    "np.triu(x)",
    "np.triu(v), np.tril(v, 1), np.triu(v[:2], -1)",
    "np.tril(m, -1)",
    "np.triu(m, 1)",
    "np.diag(v)",
    "np.diag(m)",
    "np.diag(v, 1)",
    "np.diag(v, -2)",
    "np.diag(x, 1)",
    "np.pad(v, 2)",
    "np.pad(x, ((1, 0), (2, 1)))",
    "np.pad(v, (1, 2), mode='edge')",
    "np.pad(v, 3, 'wrap')",
    "np.pad(v, 3, 'reflect')",
    "np.pad(v, 1, constant_values=7)",
    "np.take(v, idx)",
    "np.take(x, [0, 2], axis=0)",
    "np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1)",
    "np.copyto(v, 1.0) or v",
    "np.fill_diagonal(m, 0) or m",
    "np.stack([x, x], axis=1)",
    "np.concatenate((v, [1.0, 2.0]))",
    "np.concatenate([i, x])",
    "np.concatenate([u, u])",
    "np.concatenate((i, u[:, None].repeat(4, 1)[:3]), dtype=np.int32)",
    "np.hstack([v, 1.0])",
    "np.vstack([x, y, x])",
    "np.roll(x, n, axis=1)",
    "np.roll(x[:, ::2], 1, axis=0)",
    "np.tile(x, 2)",
    "np.tile(v, (3, 1, 2))",
    "np.repeat(x, n, axis=1)",
    "np.diag(np.diag(m))",
    "np.tril(np.ones((3, 3)))",
    "np.triu(np.ones((4, 4), dtype=bool), 1)",
    "np.pad(x, 1, mode='constant', constant_values=2.0)",
    "np.concat([v, v])",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(("first", "dtype"), [("zf", "float64"), ("v", "int64"), ("i[0]", "uint8")])
def test_what_numpy_casts_only_when_told_is_not_joined(first: str, dtype: str) -> None:
    with pytest.raises(pe.CdError, match=f"CD0405.*are not joined as {dtype}"):
        compiled(f"np.concatenate(({first}, v[:0]), dtype=np.{dtype})")


@pytest.mark.parametrize("body", ["np.concatenate([x, v])", "np.stack([x, v])"])
def test_arrays_of_other_ranks_are_not_joined(body: str) -> None:
    with pytest.raises(pe.CdError, match="need"):
        compiled(body)


@pytest.mark.parametrize(
    "body",
    [
        "np.pad(a @ b, 1)",
        "np.pad(a @ b, 1, mode='reflect')",
        "np.tile(a @ b + 1, (2, 3))",
        "np.repeat(a @ b, 2, axis=1)",
        "np.cumsum(a @ b, axis=1)",
        "np.maximum.accumulate(a @ b)",
    ],
)
def test_sums_are_computed_once_wherever_they_go(body: str) -> None:
    a, b = np.arange(12.0).reshape(4, 3), np.arange(15.0).reshape(3, 5)
    made = pe.cd_from_source(f"def f(a, b):\n    return {body}\n", {"np": np})
    sums = (s for s in statements(made.procedure(a, b).body) if isinstance(s, Assign) and s.op)
    assert [one.target.node.static_shape for one in sums] == [(4, 5)]
    np.testing.assert_array_equal(made.on("numpy")(a, b), eval(body, {"np": np, "a": a, "b": b}))


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_an_empty_axis_has_no_elements_to_be_extended_by(mode: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return np.pad(x, 1, mode={mode!r})\n", {"np": np})
    sized = pe.cd_from_source(
        f"def f(n):\n    return np.pad(np.zeros(n[0]), 1, mode={mode!r})\n", {"np": np}
    )
    for call in (lambda: f(np.zeros(0)), lambda: f(np.ones((2, 0))), lambda: sized(np.array([0]))):
        with pytest.raises(ValueError, match="CD0459.*an empty axis has no elements"):
            call()
    rows = f"def f(x):\n    return np.pad(x, ((1, 1), (0, 0)), mode={mode!r})\n"
    assert pe.cd_from_source(rows, {"np": np})(np.ones((2, 0))).shape == (4, 0)
    assert sized(np.array([2])).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("size", [0, 1, 7])
def test_elements_move_around_by_any_number(size: int, backend: str) -> None:
    f = pe.cd_from_source("def f(x, n):\n    return np.roll(x, n)\n", {"np": np}, backend=backend)
    x = np.arange(size)
    for shift in (3, -10, 10**13, 10**18 + 2, 2**63 - 1, -(2**63)):
        assert f(x, shift).tolist() == np.roll(x, shift).tolist(), shift


@pytest.mark.parametrize(
    "body",
    [
        "y = np.repeat(x, n)\ny[0] = 3\nreturn y", "return np.repeat(x, n)[:3] * 1",
        "y = np.tile(x, n)\ny[1] = 3\nreturn y", "y = np.pad(x, 2 * n)\ny[0] = 1\nreturn y",
        "y = np.kron(x, np.broadcast_to(x[0], 4 * n))\ny[0] = 1\nreturn y",
    ],
)  # fmt: skip
def test_sizes_that_no_memory_holds_are_told_at_run_time(body: str) -> None:
    text = "def f(x, n):\n    " + body.replace("\n", "\n    ")
    f = pe.cd_from_source(text, {"np": np})
    for n in range(2, 7):
        f(np.ones(4), n)
    for n in (2**61 + 1, 2**60, 2**62 - 1):
        with pytest.raises((ValueError, MemoryError, OverflowError)):
            f(np.ones(4), n)


AS_IN_NUMPY = (
    "np.roll(x, (1,), axis=(0, 1)), np.roll(x, 1, axis=()), np.roll(x, (1, 2), axis=0)",
    "np.roll(x, [1, 2], [0, 1]), np.roll(x, (1, 2)), np.roll(x, 1, axis=(0, 1))",
    "np.pad(x, ((1, 2),)), np.pad(x, (1,)), np.pad(x, [[1], [2]])",
    "np.pad(x, np.array([[1, 2], [0, 3]]))",
    "np.take(v, [True, False, True]), np.take(v, b1)",
    "np.take(x, [True, False], 1), np.take(v, True)",
    "np.fill_diagonal(t[:, :2, :2], 7.0)\nreturn t",
    "np.fill_diagonal(t[:, :2, :2], v[:2])\nreturn t",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.roll(x, (1, 2), axis=(0, 1, 0))", "CD0311", "`roll` is given 2 shifts, and 3 axes"),
    ("np.roll(x, ((1, 2), (1, 2)), axis=(0, 1))", "CD0311", "a shift of `roll` is one integer"),
    ("np.pad(x, (1, 2, 3))", "CD0452", "`pad_width` gives an axis one width or two, and has 3"),
    (
        "np.pad(x, ((1, 2), (1, 2), (1, 2)))",
        "CD0452",
        "`pad_width` has 3 rows, and the array 2 axes",
    ),
    ("np.pad(x, ((1, 2), (1, 2, 3)))", "CD0452", "one width or two, and has 3"),
    ("np.pad(x, ((1, 2), 3))", "CD0452", "`pad_width` mixes numbers and pairs of them"),
    ("np.pad(x, ())", "CD0452", "one width or two, and has 0"),
    (
        "np.take_along_axis(x, np.array([0]), 1)",
        "CD0452",
        "as many axes of positions as f64[3, 4] has",
    ),
    (
        "np.take_along_axis(x, x, 1)",
        "CD0501",
        "takes integers as positions, and is given f64[3, 4]",
    ),
    ("np.fill_diagonal(t, 7.0)", "CD0301", "axes of one diagonal: sizes 2 and 3 differ"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


MIXED = "k1, u1, h1 = k[0], u, h[0]\n"
SEVERAL = (
    "np.concatenate([k1, u1, h1])", "np.hstack([u1, k1, h1])", "np.vstack([k1, h1, u1])",
    "np.dstack([k1, u1, h1])", "np.column_stack([k1, u1, h1])", "np.stack([k1, u1, h1])",
    "np.block([[k1, u1, h1]])", "np.block([[k1, u1], [h1, h1]])", "np.r_[k1, u1, h1]",
    "np.c_[k1, u1, h1]", "np.clip(k1, u1, h1)", "k1.clip(u1, h1)", "k1.clip([0, 1, 2, 3], h1)",
    "np.select([k1 > 1, k1 > 0], [k1, u1], h1)", "np.einsum('i,i,i->i', k1, u1, h1)",
    "np.result_type(k1, u1, h1)", "np.result_type(k1, u1, h1, 2.5)",
    "np.append(k1, [u[0], h[0, 0]])",
    "np.array([k1[0], u1[0], h1[0]])", "np.array([k1, u1, h1])",
)  # fmt: skip


@pytest.mark.parametrize("body", SEVERAL)
def test_several_types_have_one_common_type(body: str) -> None:
    assert_same_as_numpy(MIXED + body)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect"])
def test_a_border_of_elements_takes_no_constants(mode: str) -> None:
    call = f"np.pad(a, 1, mode={mode!r}"
    assert_refused("CD0440", f"{call}, constant_values=5)", np.arange(3))
    assert_as_plain(f"{call}), np.pad(a, 1), np.pad(a, 1, constant_values=5)", np.arange(3))


def test_constants_of_a_border_are_checked_where_there_is_no_border() -> None:
    call = "np.pad(np.array(7), 1, constant_values=((1, 2), (3, 4)))"
    assert_refused("CD0452", call, np.arange(3))
