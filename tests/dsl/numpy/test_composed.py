"""Functions of NumPy whose meaning is written in the language."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ..elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ..elaborate.strict_oracle import assert_as_plain

EXPRESSIONS = (
    "np.isin(i, idx)",
    "np.isin(i, idx, invert=True)",
    "np.isin(3, idx, invert=True)",
    "np.isin(idx, np.arange(0, 90, 3))",
    "np.isin(np.arange(20) % 7, np.arange(-9, 9)[::-1], False, True)",
    "np.isin(nn, nn)",
    "np.isin(np.where(nn > 0, nn, 1), np.append(np.arange(20.0), np.nan))",
    "np.isin(i, i[:0])",
    "np.isin(i[:0], i)",
    "np.isin(k, [1, 2.0, 300])",
    "np.isin(b, [True])",
    "np.isin(x.T[::-1], x[1])",
    "np.unravel_index(np.argmax(x), x.shape), np.unravel_index(t.argmin(), t.shape)",
    "np.unravel_index(idx, (2, 3)), np.unravel_index(k, 9), np.unravel_index(7, (3, n))",
    "np.unravel_index(u % 24, t.shape), x[np.unravel_index(np.argmax(x), x.shape)]",
    "np.ediff1d(x)",
    "np.ediff1d(idx, to_end=[7, 8], to_begin=-1)",
    "np.ediff1d(v[:1])",
    "np.nancumsum(nn)",
    "np.nancumprod(nn)",
    "np.nancumsum(np.where(x > 0, x, np.nan), axis=0)",
    "np.nancumsum(i, 1)",
    "np.unwrap(9 * v)",
    "np.unwrap(9 * x, axis=0)",
    "np.unwrap(7 * x, period=3.0)",
    "np.unwrap(9 * y, 4.0)",
    "np.unwrap(np.array([0.0, np.pi, 2 * np.pi, 0.0, -np.pi]))",
    "np.vander(v)",
    "np.vander(v, 2)",
    "np.vander(idx, 3, increasing=True)",
    "np.hanning(n), np.hamming(n), np.blackman(n), np.bartlett(n)",
    "np.hanning(8), np.hamming(8), np.blackman(8), np.bartlett(8)",
    "np.hanning(1), np.hamming(0), np.blackman(1), np.bartlett(2)",
    "np.lexsort((idx % 2, u))",
    "np.lexsort([v])",
    "np.lexsort(k)",
    "np.block([[x, x], [x, 2 * x]])",
    "np.block([[v, v], [v, v + 1]])",
    "np.block([[m, np.zeros((4, 1))], [np.ones((1, 5))]])",
    "np.triu_indices(4)",
    "np.triu_indices(3, -1, 5), np.triu_indices(3, 1, 5), np.triu_indices(3, 9)",
    "np.tril_indices(4), np.tril_indices(5, 2, 4), np.tril_indices(4, -1)",
    "m[np.triu_indices(4, 1)], m[np.diag_indices(4)]",
    "np.diag_indices(2, 3)",
    "m[np.ix_([0, 2], [1, 3, 3])]",
    "m[np.ix_(idx[:2], idx)] = 5\nm",
    "np.ix_([2, 0, 1])",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("np.isin(z, v)", "CD0404.*complex"),
        ("np.isin(v)", "CD0440.*missing a required argument: 'test_elements'"),
        ("np.isin(v, v, other=1)", "CD0440.*unexpected keyword argument 'other'"),
        ("np.ediff1d()", "CD0440.*missing a required argument: 'ary'"),
        ("np.unwrap(v, foo=1)", r"CD0440.*'foo'.*here: unwrap\(p, discont, axis, period\)"),
        ("np.hanning(1, 2)", r"CD0440.*too many.*supported here: hanning\(M\)"),
        ("np.vander(x)", r"CD0452.*one axis, and is given f64\[3, 4\]"),
        ("np.lexsort((x, x))", r"CD0452.*keys along one axis(.|\n)*this is f64\[3, 4\]"),
        ("np.lexsort(())", "CD0452.*of which there is at least one"),
        ("np.block(([v, v],))", "CD0452.*lists of blocks, and is given a tuple"),
        ("np.block([[v], v])", "CD0452.*lists of unequal depth"),
        ("np.block([[]])", "CD0452.*an empty list"),
        ("np.ix_(x)", "CD0452.*lines of integers"),
        ("np.ix_([0.5])", "CD0452.*lines of integers"),
    ],
)
def test_what_is_refused_is_refused_at_the_call(body: str, text: str) -> None:
    with pytest.raises(pe.CdError, match=f"(?s){text}") as caught:
        compiled(body)
    assert "<library>" not in str(caught.value)


@pytest.mark.parametrize("dtypes", [("i8", "i8"), ("i1", "i8"), ("u2", "i1"), ("u8", "u8")])
def test_whole_numbers_are_marked_where_their_range_is_small(dtypes: tuple[str, str]) -> None:
    made = pe.cd_from_source("def f(x, y):\n    return np.isin(x, y)\n", {"np": np})
    least, most = int(np.iinfo(dtypes[1]).min), int(np.iinfo(dtypes[1]).max)
    first = list(range(0, 69, 3))
    lines = (
        [*first, 40, 50],
        [*first, 7, min(1 << 16, most)],
        [*first, 7, min((1 << 16) - 1, most)],
        [*first, least, most],
        [n + max(least, -9) for n in range(25)],
        [most - n for n in range(25)],
        [least + n for n in range(25)],
    )
    for line in lines:
        near = [n + by for n in line for by in (-1, 0, 1, 65536)]
        x, y = (
            np.array([n % 2**64 for n in some], "u8").astype(dtype)
            for some, dtype in zip((near, line), dtypes, strict=True)
        )
        np.testing.assert_array_equal(made(x, y), np.isin(x, y))


def test_whole_numbers_of_any_two_types_are_looked_for_by_value() -> None:
    text = "def f(x, y):\n    return np.isin(x, y)\n"
    near = [2**62 + n for n in range(20)]
    for types in (("u8", "i8"), ("i8", "u8"), ("u8", "i1"), ("i1", "u8"), ("?", "u8"), ("u8", "?")):
        made = pe.cd_from_source(text, {"np": np}, backend="numpy")
        x, y = (
            np.array([n % 2**64 for n in (*near[::step], 1, 300, 2**63, -1)], "u8").astype(dtype)
            for step, dtype in zip((1, 2), types, strict=True)
        )
        assert made(x, y).tolist() == [any(int(n) == int(m) for m in y) for n in x]


def test_a_table_has_to_fit_its_type() -> None:
    text = "def f(x, y):\n    return np.isin(x, y, kind='table')\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    for dtype, ends in (("i1", (-1, 127)), ("i4", (-1, 2**31 - 1)), ("u8", (1, 2**63))):
        x, y = np.array([0, ends[1]], dtype), np.array(ends, dtype)
        with pytest.raises(ValueError, match="CD0442.*looks among numbers that are [0-9]* apart"):
            f(x, y)
        assert f(x, y[1:]).tolist() == [False, True] and not f(x, y[:0]).any()
    assert f(np.arange(3, dtype="u1"), np.array([0, 255], "u1")).tolist() == [True, False, False]


AS_IN_NUMPY = (
    "np.unwrap(i, period=6), np.unwrap(i, period=5, axis=0), np.unwrap(i, 3, period=6)",
    "np.unwrap(k, period=7), np.unwrap(i, period=6.0), np.unwrap(b, period=6), np.unwrap(idx)",
    "np.lexsort([[1.5, 0.0, 0.0, 2.0], v]), np.lexsort(([1, 0], (2, 2))), np.lexsort(x)",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.lexsort((v, w))", "CD0301", "the keys of `lexsort`: sizes 4 and 5 differ"),
    ("np.lexsort((w, v))", "CD0301", "the keys of `lexsort`: sizes 5 and 4 differ"),
    ("np.vander(v, -1)", "CD0445", "the number of columns is negative: -1"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


@pytest.mark.parametrize(
    "blocks",
    ["[a]", "[a, b]", "a", "[[a, b]]", "[[[a, b]]]", "[[[a], [b]], [[b], [a]]]", "[[c], [c]]",
     "[[[c, c]]]", "[1, 2]", "[[[[a]]]]"],
)  # fmt: skip
def test_blocks_are_joined_along_an_axis_for_each_list(blocks: str) -> None:
    assert_as_plain(f"np.block({blocks})", np.ones(2), np.arange(2.0), np.array([[1, 2], [3, 4]]))
