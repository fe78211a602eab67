"""Sums in lanes: their order is that of the page, whatever the loops around them look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.ir.expressions import reads
from plusequals.lowering.ir.loops import For, If, Update
from plusequals.lowering.ir.printer import print_expr
from plusequals.lowering.ir.walk import statements
from tests.compare import assert_same

from ...scheduled import LIKE_C, function, interpreted, of_any_size, scheduled

SIZES = (
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    9,
    31,
    thresholds.SUM_LANES,
    thresholds.SUM_LANES + 1,
    97,
    thresholds.SUM_BLOCK_TERMS - 1,
    thresholds.SUM_BLOCK_TERMS,
    thresholds.SUM_BLOCK_TERMS + 1,
    3 * thresholds.SUM_BLOCK_TERMS + 5,
)


def in_lanes(terms: Any, op: Any = np.add) -> Any:
    """Return the lanes of some terms, written from the page: blocks of blocks of steps."""
    assert terms.dtype.kind == "f" or op is np.add
    start = complex(-0.0, -0.0) if terms.dtype.kind == "c" else -0.0
    nothing = np.full(thresholds.SUM_LANES, start if op is np.add else 1.0, terms.dtype)

    def blocks(part: Any, sizes: tuple[int, ...]) -> Any:
        total = nothing.copy()
        if not sizes:
            for p, term in enumerate(part):
                total[p % thresholds.SUM_LANES] = op(total[p % thresholds.SUM_LANES], term)
            return total
        for start in range(0, len(part), sizes[0]):
            total = op(total, blocks(part[start : start + sizes[0]], sizes[1:]))
        return total

    return blocks(terms, (thresholds.SUM_SUPERBLOCK_TERMS, thresholds.SUM_BLOCK_TERMS))


def folded(lanes: Any, op: Any = np.add) -> Any:
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = op(lanes[:half], lanes[half:])
    return lanes[0]


def bits(value: Any) -> bytes:
    """Return the bits of numbers; of NaN there is one."""
    value = np.asarray(value)
    return np.where(np.isnan(value), value.dtype.type(np.nan), value).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("size", SIZES)
def test_the_order_of_a_sum_is_that_of_the_page(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size).astype(dtype)
    if x.dtype.kind == "c":
        x += (1j * rng.standard_normal(size)).astype(dtype)
    made = function("def f(x):\n    return sum(x[i])\n")
    expected = bits(x.dtype.type(0) + folded(in_lanes(x)))
    assert bits(interpreted(scheduled(made.procedure(x)), x)[0]) == expected
    if size > 1:
        assert bits(interpreted(scheduled(of_any_size(made, x)), x)[0]) == expected


def test_blocks_of_blocks() -> None:
    x = (
        np.random.default_rng(1)
        .standard_normal(thresholds.SUM_SUPERBLOCK_TERMS + thresholds.SUM_BLOCK_TERMS + 7)
        .astype("f4")
    )
    made = function("def f(x):\n    return sum(x[i])\n")
    with settings.override(schedule=True):
        assert bits(made.on("cc")(x)) == bits(np.float32(0) + folded(in_lanes(x)))


@pytest.mark.parametrize("first", [1, 5, thresholds.SUM_LANES + 3])
def test_a_sum_may_begin_anywhere(first: int) -> None:
    made = function(f"def f(x):\n    return sum[i in range({first}, len(x))](x[i])\n")
    for size in (
        first,
        first + 1,
        first + thresholds.SUM_LANES,
        first + thresholds.SUM_BLOCK_TERMS + thresholds.SUM_LANES + 2,
    ):
        x = np.random.default_rng(size).standard_normal(size).astype("f4")
        expected = bits(np.float32(0) + folded(in_lanes(x[first:])))
        assert bits(interpreted(scheduled(made.procedure(x)), x)[0]) == expected


BODIES = {
    "rows": "y[i] = sum(x[i, j])",
    "rows, added": "y[i] += sum(x[i, j])",
    "both axes": "y[0] = sum(x[i, j])",
    "a triangle": "y[i] = sum[j <= i](x[i, j])",
    "a choice": "y[i] = sum[j](x[i, j] if x[i, j] > 0 else 0)",
    "a guarded term": "y[i] = sum[j != 1](x[i, j])",
    "products": "y[i] = prod(x[i, j])",
    "a name in the loop": "m[i] = mean(x[i, j])\ny[i] = mean((x[i, j] - m[i]) ** 2)",
    "backwards": "y[i] = sum(z[i, j])",
    "a sum of sums": "y[i] = sum[j](x[i, j] * sum[k](x[j % 3, k] * x[i, k]))",
    "greatest": "y[i] = max(x[i, j])",
    "least, added": "y[i] = min(y[i], x[i, j])",
    "greatest of both": "y[0] = max(x[i, j] - 1)",
    "f64 of f32": "y[i] = sum(x[i, j], acc=f64)",
}


def _text(body: str) -> str:
    start = ["z = x[:, ::-1]"] if "z[" in body else []
    return "def f(y, x):\n" + "".join(f"    {line}\n" for line in (*start, *body.split("\n")))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(
    "shape",
    [(3, 0), (0, 5), (1, 1), (3, 7), (5, 33), (37, 37), (2, thresholds.SUM_BLOCK_TERMS + 9)],
)
def test_sizes_of_the_run_and_c_change_no_bit(name: str, shape: tuple[int, int]) -> None:
    if name == "a triangle" and shape[0] > shape[1] or name == "a sum of sums" and shape[1] > 35:
        pytest.skip("not a triangle, or too much for the interpreter")
    if name == "a sum of sums" and shape[0] < 3:
        pytest.skip("it reads three rows")
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.5, 1.5, shape).astype("f4"), np.full(max(shape[0], 1), -0.0, "f4")
    x *= rng.choice([-1, 1], shape).astype("f4")
    y = y if name in ("both axes", "greatest of both") else y[: shape[0]]
    made = function(_text(BODIES[name]))
    fixed = interpreted(scheduled(made.procedure(y, x), LIKE_C), y, x)[0]
    if shape in ((3, 0), (37, 37)):
        with settings.override(schedule=True):
            compiled = y.copy()
            made.on("cc")(compiled, x)
        assert bits(compiled) == bits(fixed)
    if min(shape) > 1:
        run = interpreted(scheduled(of_any_size(made, y, x), LIKE_C), y, x)[0]
        assert bits(run) == bits(fixed)
    plain = y.astype("f8")
    made.on("numpy")(plain, x.astype("f8"))
    np.testing.assert_allclose(fixed, plain, rtol=1e-4, atol=1e-5)


COMPLEX = {
    "rows": "y[i] = sum(x[i, j])",
    "columns": "y[i] = sum(x.T[i, j])",
    "squares": "y[i] += sum(x[i, j] * conj(x[i, j]))",
    "a matrix by a vector": "y[i] = sum(x[i, j] * x[0, j])",
    "a product": "y[i] = sum(x[i, j % 2] * x[j, k])",
    "all": "y[0] = sum(x[i, j])",
    "a choice": "y[i] = sum[j](x[i, j] if real(x[i, j]) > 0 else 2 * x[i, j])",
    "a guarded term": "y[i] = sum[j != 1](x[i, j])",
    "quotients": "y[i] = mean(x[i, j] / (3 + x[i, j]))",
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 0), "c8"),
        ((2, 7), "c16"),
        ((17, 17), "c8"),
        ((37, 40), "c16"),
        ((2, thresholds.SUM_BLOCK_TERMS + 9), "c8"),
    ],
)
def test_sums_of_complex_numbers(name: str, shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    y = np.full(shape[name == "columns"] if name != "all" else 1, 1j, dtype)
    made = function(_text(COMPLEX[name]))
    fixed = interpreted(scheduled(made.procedure(y, x), LIKE_C), y, x)[0]
    run = interpreted(scheduled(of_any_size(made, y, x), LIKE_C), y, x)[0]
    assert min(shape) < 2 or bits(run) == bits(fixed)
    compiled, plain = y.copy(), y.astype("c16")
    with settings.override(schedule=True):
        made.on("cc")(compiled, x)
    assert bits(compiled) == bits(fixed)
    made.on("numpy")(plain, x.astype("c16"))
    np.testing.assert_allclose(fixed, plain, rtol=1e-4, atol=1e-4)


def test_a_sum_of_complex_functions_has_lanes_of_complex_numbers() -> None:
    """`exp` has no formula of parts: what is added up stays complex."""
    x = np.linspace(-1, 1, 99) * (1 + 2j)
    made = function("def f(x):\n    return sum(exp(x[i]))\n")
    program = scheduled(made.procedure(x))
    assert [n.dtype.name for n in program.locals if n.rank] == ["complex128"]
    expected = bits(0j + folded(in_lanes(np.exp(x))))
    assert bits(interpreted(program, x)[0]) == expected
    with settings.override(schedule=True):
        np.testing.assert_allclose(made.on("cc")(x), np.sum(np.exp(x)), rtol=1e-13)


def test_a_sum_has_the_same_bits_beside_others() -> None:
    """The sums share their loops; the first one is over one of them, the second one over both."""
    x = np.random.default_rng(0).standard_normal((40, 70)).astype("f4")
    alone = function("def f(x):\n    return sum(x[i, j] * x[i, j])\n")
    text = "def f(x):\n    m[i] = sum(x[i, j])\n    return sum(x[i, j] * x[i, j]), m\n"
    both = function(text)
    (expected,) = interpreted(scheduled(alone.procedure(x)), x)
    found = interpreted(scheduled(both.procedure(x)), x)
    assert bits(found[0]) == bits(expected)
    rows = function("def f(x):\n    m[i] = sum(x[i, j])\n    return m\n")
    assert bits(found[1]) == bits(interpreted(scheduled(rows.procedure(x)), x)[0])


def test_a_loop_that_does_more_finds_the_lane_of_each_term() -> None:
    """Both sums are over `j`, one loop; the inner loop keeps the first from running in steps."""
    text = "def f(y, x):\n    y[i] = sum[j](x[i, j] * sum[k](x[j, k]))\n"
    x = np.random.default_rng(2).standard_normal((40, 40)).astype("f4")
    y = np.zeros(40, "f4")
    made = function(text)
    inner = [np.float32(0) + folded(in_lanes(row)) for row in x]
    expected = [np.float32(0) + folded(in_lanes(row * np.array(inner))) for row in x]
    assert bits(interpreted(scheduled(made.procedure(y, x)), y, x)[0]) == bits(expected)


def test_a_loop_that_does_more_starts_each_block() -> None:
    """A round of the loop over `i` has a loop of its own, so that no steps are made of rounds."""
    made = function("def f(x):\n    z[i] = sum(x[i, k])\n    return sum(z[i])\n")
    x = (
        np.random.default_rng(5)
        .standard_normal((2 * thresholds.SUM_BLOCK_TERMS + 40, 9))
        .astype("f4")
    )
    rows = np.array([np.float32(0) + folded(in_lanes(row)) for row in x])
    expected = np.float32(0) + folded(in_lanes(rows))
    assert bits(interpreted(scheduled(made.procedure(x)), x)[0]) == bits(expected)


def test_what_was_written_as_a_loop_is_added_in_its_order() -> None:
    made = function("def f(x):\n    s = 0.0\n    for v in x:\n        s += v\n    return s\n")
    x = np.array([1e16, 1.0, -1e16, 1.0])
    assert interpreted(scheduled(made.procedure(x)), x)[0] == 1.0
    with settings.override(schedule=True):
        assert made.on("cc")(x) == 1.0


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("size", [64, 77, 200])
def test_of_equal_zeros_the_first_is_taken(name: str, size: int) -> None:
    made = function(f"def f(x):\n    return {name}(x[i])\n")
    rng, sign = np.random.default_rng(size), -1 if name == "max" else 1
    for first in (0, 1, 40, size - 1):
        x = (sign * rng.uniform(0.5, 1, size)).astype("f4")
        x[first:] = rng.choice([0.0, -0.0], size - first)
        with settings.override(schedule=True):
            ours = made.on("cc")(x)
        assert np.signbit(ours) == np.signbit(x[first])
        assert np.signbit(interpreted(scheduled(made.procedure(x)), x)[0]) == np.signbit(x[first])
        assert ours == 0
        x[size // 2] = np.nan
        with settings.override(schedule=True):
            assert np.isnan(made.on("cc")(x))


def test_strict_is_program_order_and_off_changes_nothing() -> None:
    made = function("def f(x):\n    return sum(x[i])\n")
    x = np.array([1e16, 1.0, -1e16, 1.0])
    with settings.override(schedule=True, profile="strict"):
        assert made.on("cc")(x) == 1.0
    with settings.override(schedule=True):
        assert made.on("cc")(x) == 2.0
    with settings.override(schedule=False):
        assert made.on("cc")(x) == 1.0


def test_nothing_is_added_where_there_is_nothing_but_zeros() -> None:
    for values in ([-0.0] * 3, [-0.0] * 40, []):
        x, y = np.array([values], "f4"), np.array([-0.0], "f4")
        made = function("def f(y, x):\n    y[i] += x[i, j]\n")
        assert np.signbit(interpreted(scheduled(made.procedure(y, x)), y, x)[0]).all()


def test_nan_and_infinities_come_through() -> None:
    made = function("def f(x):\n    return sum(x[i])\n")
    for value in (np.nan, np.inf, -np.inf):
        x = np.ones(100, "f4")
        x[70] = value
        np.testing.assert_equal(interpreted(scheduled(made.procedure(x)), x)[0], value)


def test_long_sums_are_near_the_exact_ones() -> None:
    x = np.random.default_rng(5).standard_normal(10**6).astype("f4")
    with settings.override(schedule=True):
        ours = function("def f(x):\n    return sum(x[i])\n").on("cc")(x)
    exact = x.astype("f8").sum()
    assert abs(float(ours) - exact) < 100 * np.finfo("f4").eps * np.sqrt(np.square(x).sum())


def test_explain_says_what_is_in_lanes() -> None:
    made = pe.cd_from_source("def f(x):\n    return sum(x[i])\n", {})
    with settings.override(schedule=True):
        text = str(made.on("cc").explain(np.ones(99, "f4")))
    assert "are combined in SIMD lanes" in text
    assert any(
        isinstance(stmt, For) and stmt.kind == "vector"
        for kernel in scheduled(made.procedure(np.ones(99, "f4"))).kernels
        for stmt in statements(kernel.body)
    )


EXTREMES = {
    "two": "return x.max(), x.min()",
    "three": "return np.max(x), np.min(x), np.max(x * x)",
    "with a sum": "return np.max(x), np.sum(x), np.min(x)",
    "two of one": "a = max[j in range(len(x))](x[j])\nreturn a, max[j in range(len(x))](-x[j])",
    "written": (
        "a = -np.inf\nb = np.inf\nfor v in x:\n    a = max(a, v)\n    b = min(b, v)\nreturn a, b"
    ),
    "histogram": "return np.histogram(x, 6)[0]",
    "by rows": "y = np.stack([x, x * 2])\nreturn np.stack([y.max(axis=1), y.min(axis=1)])",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", EXTREMES)
def test_several_extremes_of_one_loop(name: str, dtype: str) -> None:
    lines = EXTREMES[name].replace("\n", "\n    ")
    made = function(f"def f(x):\n    {lines}\n")
    for size in (1, 31, 63, 64, 65, 100, 300):
        for seed in range(3):
            x = np.random.default_rng(seed + size).standard_normal(size).astype(dtype)
            if seed == 1:
                x[:] = np.where(x > 0, 0.0, -0.0)
            expected, found = made.on("numpy")(x), made.on("cc")(x)
            for one, other in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
                if name == "with a sum":
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
                else:
                    assert_same(one, other)


@pytest.mark.parametrize("size", [9, 15, 30, 31, 1000])
def test_what_is_left_behind_whole_steps_is_vectors(size: int) -> None:
    x = np.random.default_rng(size).standard_normal((3, size))
    made = function("def f(x):\n    y[i] = sum(x[i, j] * x[i, j])\n    return y\n")
    program = scheduled(made.procedure(x))
    loops = [s for k in program.kernels for s in statements(k.body) if isinstance(s, For)]
    serial = [loop for loop in loops if loop.kind == "serial" and loop.step == 1]
    assert [str(loop.hi) for loop in serial] == ["3"]
    expected = [bits(0 + folded(in_lanes(row * row))) for row in x]
    assert [bits(one) for one in interpreted(program, x)[0]] == expected


PADDED = {
    "a sum": "x[i, j]",
    "products": "x[i, j] * w[j]",
    "squares": "(x[i, j] - 0.25) ** 2",
    "in float64": "f64(x[i, j]) * 2",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PADDED)
def test_lanes_behind_the_last_term_add_nothing_and_read_nothing(name: str, dtype: str) -> None:
    made = function(f"def f(x, w):\n    y[i] = sum({PADDED[name]})\n    return y\n")
    for width in (9, 13, 17, 33, 37, 44, 47, 1029):
        x = np.random.default_rng(width).standard_normal((3, width)).astype(dtype)
        x[0, -1], x[1, -2:] = -0.0, (np.inf, np.nan)
        room = np.full(3 * width + 64, np.nan, dtype)
        room[: 3 * width] = x.ravel()
        inside = room[: 3 * width].reshape(3, width)
        weights = np.linspace(-1, 1, width, dtype=dtype)
        program = scheduled(made.procedure(inside, weights), LIKE_C)
        (row,) = interpreted(program, inside, weights)
        assert_same(made.on("cc")(inside, weights), row)


@pytest.mark.parametrize(("width", "vectors"), [(37, [32, 16]), (48, [32, 16]), (50, [32, 16, 16])])
def test_what_is_left_of_a_row_is_one_vector(width: int, vectors: list[int]) -> None:
    made = function("def f(x):\n    y[i] = sum(x[i, j])\n    return y\n")
    program = scheduled(made.procedure(np.zeros((3, width), "f4")))
    loops = [s for k in program.kernels for s in statements(k.body) if isinstance(s, For)]
    terms = [
        loop.hi.constant for loop in loops for stmt in loop.body
        if isinstance(stmt, Update) and {r.node.label for r in reads(stmt.value)} == {"x"}
    ]  # fmt: skip
    assert terms == vectors


def test_rows_of_any_size_that_are_one_block_have_no_others() -> None:
    made = function("def f(x):\n    y[i] = sum(x[i, j])\n    return y\n")
    program = scheduled(of_any_size(made, np.zeros((3, 77), "f4")))
    (test,) = [
        s for k in program.kernels for s in statements(k.body)
        if isinstance(s, If) and any(isinstance(one, For) for one in s.orelse)
    ]  # fmt: skip
    assert f"<= {thresholds.SUM_BLOCK_TERMS}" in print_expr(test.test)
    short, long = (list(statements(side)) for side in (test.then, test.orelse))
    assert not [
        s
        for s in short
        if isinstance(s, For)
        and s.step in (thresholds.SUM_BLOCK_TERMS, thresholds.SUM_SUPERBLOCK_TERMS)
    ]
    assert [s.step for s in long if isinstance(s, For) and s.step > thresholds.SUM_LANES] == [
        thresholds.SUM_SUPERBLOCK_TERMS,
        thresholds.SUM_BLOCK_TERMS,
    ]


@pytest.mark.parametrize("text", ["max", "min", "sum", "prod"])
def test_ranges_whose_ends_are_far_apart(text: str) -> None:
    """A range whose end is before its start has no terms, however far that is."""
    f = function(f"def f(x, k, m):\n    return {text}[j in range(k, m)](x[j])\n")
    x = np.arange(1.0, 91.0)
    with settings.override("cc"):
        for m in (9, 10, 11, 12, 80):  # run-time values from the fourth on
            assert_same(f(x, m // 2, m), getattr(np, text)(x[m // 2 : m]))
        for k, m in ((3, -(2**63)), (2**63 - 1, -5), (2**62 + 5, -(2**62) - 5)):
            expected = {"max": -np.inf, "min": np.inf, "sum": 0.0, "prod": 1.0}[text]
            assert f(x, k, m) == expected


ASSIGNED = {
    "last": "last = v[t]",
    "last of a name": "d = v[t] * 2.0; last = d + 1.0",
    "recurrence": "last = last * 0.5 + v[t]",
    "one behind": "y[t] = last; last = v[t]",
    "guarded": "last = v[t] if v[t] > 1.0 else last",
}


@pytest.mark.parametrize("size", (7, 9, 16, 40, 300))
@pytest.mark.parametrize("total", ("np.sum(v)", "np.max(v)", "np.min(v)", "v @ v", "np.std(v)"))
@pytest.mark.parametrize("assigned", ASSIGNED)
def test_scalars_that_loops_beside_reductions_assign(assigned: str, total: str, size: int) -> None:
    text = (
        f"def f(v, y):\n    last = 0.5\n    for t in range(len(v)):\n        {ASSIGNED[assigned]}\n"
        f"    r = {total}\n    return r, last\n"
    )
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    v = np.arange(1.0, size + 1) * 0.37
    found, wanted = np.zeros(size), np.zeros(size)
    with settings.override(threads=1):
        given = pe.cd_from_source(text, names)(v, found)
    expected = names["f"](v, wanted)
    assert np.allclose(given, expected, rtol=1e-12) and np.array_equal(found, wanted)


@pytest.mark.parametrize("shape", ((5, 7), (40, 70), (64, 1000)))
def test_a_sum_around_a_search_has_the_order_of_one_alone(shape: tuple[int, int]) -> None:
    alone = pe.cd_from_source("def f(x):\n    s = sum[i, j](x[i, j] * x[i, j])\n    return s\n")
    text = (
        "def f(x, y):\n    p[i] = argmax[j](x[i, j])\n    s = sum[i, j](x[i, j] * x[i, j])\n"
        "    y[i, j] = x[i, j] * s if p[i] == j else 0.0\n    return s\n"
    )
    beside = pe.cd_from_source(text)
    x = np.random.default_rng(3).random(shape, np.float32)
    assert alone(x) == beside(x, np.zeros_like(x))


def test_a_loop_that_a_sum_leaves_stays() -> None:
    text = (
        "def f(x):\n    s = 0.0\n    for i in range(len(x)):\n        for j in range(9):\n"
        "            if x[i, j] < 0.0:\n                break\n            s += x[i, j]\n"
        "    return s\n"
    )
    x = np.random.default_rng(3).random((40, 9)) - 0.2
    names: dict[str, Any] = {}
    exec(text, names)
    assert pe.cd_from_source(text)(x) == names["f"](x)


@pytest.mark.parametrize("total", ("np.sum(v)", "np.max(v)", "v @ v"))
def test_scalars_that_loops_only_accumulate_have_lanes(total: str) -> None:
    made = pe.cd_from_source(f"def f(v):\n    r = {total}\n    return r\n", {"np": np})
    program = scheduled(made.procedure(np.ones(40)))
    loops = [s for s in statements(program.kernels[0].body) if isinstance(s, For)]
    assert any(loop.kind == "vector" and loop.hi.constant == 32 for loop in loops)
