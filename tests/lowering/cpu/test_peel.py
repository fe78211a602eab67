"""Loops cut at their edges: the same bits, and no questions in the middle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.peel import peel_loops
from plusequals.lowering.ir.expressions import Const, Position, Read, Select, walk
from plusequals.lowering.ir.indexing import Affine, Quasi, Symbol, affine_text, var
from plusequals.lowering.ir.loops import For, If, LoopKind, Program, Stmt, Store
from plusequals.lowering.ir.memory_mode import NEVER_VIRTUAL, Decision
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.rewrite import map_kernels, map_statements, rename
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import bodies, expressions_of, statements, writes
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ...compare import run_on
from ..scheduled import MODEST, function, interpreted, of_any_size
from ..shown import lowered

SIZES = (
    0,
    1,
    2,
    3,
    4,
    thresholds.MIN_PEELED_ITERATIONS + 1,
    thresholds.MIN_PEELED_ITERATIONS + 2,
    40,
    97,
)
PADDED = "def f(y, x):\n    y[i] = x[pad(i - 1)] + x[i] + 2 * x[pad(i + 2)]\n"
CLAMPED = "def f(y, x):\n    y[i] = x[clamp(i - 1)] - x[clamp(i + 1)] * x[i]\n"
WRAPPED = "def f(y, x):\n    y[i] = x[wrap(i - 1)] - x[wrap(i + 1)]\n"
GUARDED = """
def f(y, x):
    for i in range(len(x)):
        if i > 1:
            y[i] = y[i - 1] + x[i - 2]
        else:
            y[i] = -x[i]
"""
WINDOWS = """
def f(y, x):
    w = np.array([0.5, 2.0, -1.0, 0.25, 3.0])
    y[i] = sum(x[pad(i + k - 2)] * w[k])
"""
MIDDLE = "def f(y, x):\n    y[i] = x[i] if i < 20 else -x[i]\n"
PLANES = """
def f(y, x):
    y[i, j] = x[pad(i - 1), j] + x[pad(i + 1), j] + x[i, pad(j - 1)] + x[i, pad(j + 1)]
"""
TEXTS = [PADDED, CLAMPED, WRAPPED, GUARDED, WINDOWS]


def asks(stmt: Stmt) -> bool:
    """Whether a statement, or one inside, decides something."""
    inside = [stmt, *(one for body in bodies(stmt) for one in statements(body))]
    parts = [part for one in inside for e in expressions_of(one) for part in walk(e)]
    places = [at for part in parts if isinstance(part, Read) for at in part.index]
    places += [part.index for part in parts if isinstance(part, Position)]
    atoms = [atom for at in places if isinstance(at, Affine) for atom, _ in at.terms]
    if any(isinstance(atom, Quasi) for atom in atoms):
        return True
    return any(isinstance(one, Select | If) for one in (*parts, *inside))


def quiet(program: Program) -> bool:
    """Whether some loop has many rounds and no questions in it."""
    found = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    return any(
        isinstance(s, For)
        and s.kind == "serial"
        and ((s.hi - s.lo).constant or 99) >= thresholds.MIN_PEELED_ITERATIONS
        and not asks(s)
        for s in found
    )


def numbers(*shape: int) -> Any:
    made = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    if made.size > 4:
        made.flat[0], made.flat[4] = -0.0, np.nan
    return made


def arguments(*shape: int) -> tuple[Any, Any]:
    return np.zeros(shape, np.float32), numbers(*shape)


def same_bits(procedure: Any, *given: Any) -> bool:
    """Whether results have the same bits before and after; the cut loops are returned as well."""
    before, _ = optimize(lower(procedure), MODEST, None, None, "eliminate_dead_code 2")
    after, _ = optimize(lower(procedure), MODEST, None, None, "simplify 3")
    for got, want in zip(interpreted(after, *given), interpreted(before, *given), strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    return quiet(after)


@pytest.mark.parametrize("text", TEXTS)
def test_not_a_bit_changes(text: str) -> None:
    for size in SIZES:
        if text in (WRAPPED, CLAMPED) and not size:
            continue  # there is nothing to take
        given = arguments(size)
        assert (
            same_bits(function(text).procedure(*given), *given)
            or size < thresholds.MIN_PEELED_ITERATIONS + 4
        )


@pytest.mark.parametrize("text", [PADDED, CLAMPED])
def test_sizes_of_the_run_are_cut_too(text: str) -> None:
    made = function(text.replace("f(y, x)", "f(x)") + "    return y\n")
    procedure = of_any_size(made, numbers(5))
    for size in SIZES[1:]:
        assert same_bits(procedure, numbers(size))


def test_the_middle_may_be_anywhere() -> None:
    for size in (20, 21, 40, 97):
        given = arguments(size)
        assert (
            same_bits(function(MIDDLE).procedure(*given), *given)
            or size < thresholds.MIN_PEELED_ITERATIONS + 20
        )


def test_planes_are_cut_along_both_axes() -> None:
    for shape in ((0, 30), (1, 30), (30, 1), (30, 40), (2, 40)):
        given = arguments(*shape)
        assert same_bits(function(PLANES).procedure(*given), *given) or min(shape) < 30


@pytest.mark.parametrize("text", [*TEXTS, MIDDLE])
def test_code_gives_the_bits_of_the_interpreter(text: str) -> None:
    for size in (3, 97):
        results = []
        for way in ({"threads": 1}, {"threads": 3, "parallel_from": 0}, None):
            y, x = arguments(size)
            with settings.override(profile="strict", schedule=way is not None, **(way or {})):
                run_on("cc" if way else "numpy", function(text), y, x)
            results.append(y)
        for got in results[:2]:
            np.testing.assert_array_equal(got, results[2])


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = sum[i](x[i] if i > 0 else 1.0)",  # its terms are for `lanes`
        """
for i in range(90):
    if x[i] > 3:
        break
    y[i] = x[i - 1] if i > 0 else 0.0
""",
        "y[i] = x[i] if x[i] > 0 else 0.0",
        "for i in range(89, -1, -1):\n    y[i] = x[i] if i > 0 else 0.0",
        "for i in range(0, 90, 2):\n    y[i] = x[i] if i > 3 else 0.0",
        "for i in range(90):\n    y[i] = x[i] if i > 0 else 0.0\n    print(y[i])",
        """
for i in range(90):
    while y[i] < x[i]:
        y[i] += 1.0 if i > 0 else 2.0
""",
    ],
)
def test_other_loops_stay(body: str) -> None:
    program = lowered(body, y="f32[90]", x="f32[90]")
    assert peel_loops(program, Target(schedule=True, reorders=True)) is program


def whole(**sizes: int) -> dict[str, str]:
    """Return the arrays of a few lines: all of 90 elements where not told."""
    return {name: f"f32[{sizes.get(name, 90)}]" for name in ("y", "x")}


def pieces(body: str, reorders: bool = True, **arrays: str) -> list[str]:
    """Return the bounds of the outermost loops, once they are cut."""
    made = peel_loops(
        lowered(body, **(arrays or whole())), Target(schedule=True, reorders=reorders)
    )
    verify_program(made)
    loops = [stmt for kernel in made.kernels for stmt in kernel.body if isinstance(stmt, For)]
    return [f"{affine_text(loop.lo)}..{affine_text(loop.hi)}" for loop in loops]


@pytest.mark.parametrize(
    ("test", "bounds"),
    [
        ("i > 0", ["0..1", "1..90"]),
        ("i >= 1", ["0..1", "1..90"]),
        ("i > 7", ["0..8", "8..90"]),
        ("not (i < 3)", ["0..3", "3..90"]),
        ("40 - i > 0", ["0..40", "40..90"]),
        ("i < 45", ["0..45", "45..90"]),
        ("i < 60", ["0..60", "60..90"]),
        ("i == 5", ["0..6", "6..90"]),
        ("i < 89", ["0..89", "89..90"]),
        ("2 < i and i < 89", ["0..3", "3..89", "89..90"]),
        ("i > 0 or i > 4", ["0..5", "5..90"]),
        ("i > 0 or i < 45", ["0..45", "45..90"]),
        ("i < 80 or i < 85", ["0..80", "80..90"]),
    ],
)
def test_a_cut_is_where_the_answer_changes(test: str, bounds: list[str]) -> None:
    assert pieces(f"y[i] = x[i] if {test} else 0.0") == bounds


@pytest.mark.parametrize("test", ["i >= 0", "i < 90", "i > -9", "i < 200", "2 * i < 80"])
def test_an_answer_that_stays_needs_no_cut(test: str) -> None:
    """Nor is there one where the place is no multiple of the rounds."""
    assert pieces(f"y[i] = x[i] if {test} else 0.0") == ["0..90"]


@pytest.mark.parametrize(
    ("body", "bounds"),
    [
        ("y[i] = x[pad(i - 1)]", ["0..1", "1..90"]),
        ("y[i] = x[min(i, 60)] + x[max(i, 5)]", ["0..6", "6..61", "61..90"]),
        ("y[i] = x[wrap(i + 3)]", ["0..87", "87..90"]),
        ("y[i] = x[i // 8]", ["0..8", "8..90"]),
        ("y[i] = x[max(min(i, 60), 5)]", ["0..6", "6..61", "61..90"]),
        ("y[i] = x[max(5, min(i, 60))] + i // 3", ["0..6", "6..61", "61..90"]),
        ("y[i] = max[k in range(5)](x[clamp(i + k - 2)])", ["0..3", "3..88", "88..90"]),
        ("y[i] = min(i, 60)", ["0..61", "61..90"]),
        ("y[wrap(i + 1)] = x[i]", ["0..89", "89..90"]),
        ("y[clamp(i - 3)] += x[i]", ["0..4", "4..90"]),
        ("y[i] = x[2 * i // 2]", ["0..90"]),
        ("y[i] = x[89 - i]", ["0..90"]),
    ],
)
def test_subscripts_with_bounds_ask_too(body: str, bounds: list[str]) -> None:
    """Also where they say what is written."""
    assert pieces(body) == bounds


@pytest.mark.parametrize("assign", ["=", "+="])
def test_elements_that_data_chooses_may_be_written(assign: str) -> None:
    body = f"y[k[i]] {assign} x[i] if i > 0 else 1.0"
    assert pieces(body, **whole(), k="i64[90]") == ["0..90", "0..1", "1..90"]
    body = "y[k[clamp(i - 1)]] = x[i]"
    parts = ["0..2", "2..90"]
    assert pieces(body, **whole(), k="i64[90]") == [*parts, *parts], "the checks come first"


@pytest.mark.parametrize(
    ("test", "size", "parts"),
    [
        ("i > 0", 17, 2), ("i > 0", 16, 1), ("i > 2", 19, 2), ("i > 2", 18, 1),
        ("2 < i and i < len(x) - 2", 21, 3), ("2 < i and i < len(x) - 2", 20, 1),
        ("i < len(x) - 1", 17, 2), ("i < len(x) - 1", 16, 1),
    ],
)  # fmt: skip
def test_sixteen_rounds_have_to_be_left(test: str, size: int, parts: int) -> None:
    made = pieces(f"y[i] = x[i] if {test} else 0.0", y=f"f32[{size}]", x=f"f32[{size}]")
    assert len(made) == parts


def test_rounds_are_counted_from_where_the_loop_begins() -> None:
    text = "for i in range({0}, 90):\n    y[i] = x[i] if i > {1} else 0.0"
    assert pieces(text.format(5, 7)) == ["5..8", "8..90"]
    assert pieces(text.format(8, 7)) == ["8..90"]
    assert pieces(text.format(70, 73)) == ["70..74", "74..90"]
    assert pieces(text.format(70, 74)) == ["70..90"]


@pytest.mark.parametrize(("parts", "count"), [(1000, 2), (1001, 1)])
def test_long_bodies_are_not_written_twice(parts: int, count: int) -> None:
    def longer(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Store):
            return (stmt,)
        one = replace(stmt, value=Const(1.0, stmt.value.dtype))
        return (stmt,) + (one,) * (parts - len(walk(stmt.value)))

    program = lowered("y[i] = x[i] if i > 0 else 0.0", **whole())
    made = map_kernels(program, lambda body: map_statements(body, longer))
    assert sum(isinstance(s, For) for s in peel_loops(made, MODEST).kernels[0].body) == count


def test_loops_inside_have_their_part_in_it() -> None:
    body = "y[i] = sum[k](x[pad(i + k - 2)] * w[k])"
    assert pieces(body, **whole(), w="f32[5]") == ["0..2", "2..88", "88..90"]
    body = "y[i] = sum[k](x[pad(i - k)] * w[k])"
    assert pieces(body, **whole(), w="f32[5]") == ["0..4", "4..90"]
    body = """
for i in range(90):
    for j in range(i):
        y[i] += x[j] if i - j > 1 else 0.0
"""
    assert pieces(body) == ["0..2", "2..90"]


def test_sums_that_keep_their_order_are_cut() -> None:
    body = "y[0] = sum[i](x[i] if i > 0 else 1.0)"
    assert pieces(body, reorders=False) == ["0..1", "1..90"]
    assert pieces(body, reorders=True) == ["0..90"]
    columns = "y[i] = sum[j](z[i, j] if i > 0 else 1.0)"  # the rounds count no terms
    assert pieces(columns, y="f32[90]", z="f32[90, 5]") == ["0..1", "1..90"]


def test_a_test_inside_of_a_branch_is_seen() -> None:
    body = """
for i in range(90):
    if x[i] > 0:
        for j in range(2):
            y[i] += x[i] if i < 80 else 1.0
    else:
        y[i] = x[i] if i > 2 else 0.0
"""
    assert pieces(body) == ["0..3", "3..80", "80..90"]


@pytest.mark.parametrize("kind", ["vector", "unrolled", "parallel"])
def test_loops_of_other_kinds_stay(kind: LoopKind) -> None:
    program = lowered("y[i] = x[i] if i > 0 else 0.0", **whole())

    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        return (replace(stmt, kind=kind) if isinstance(stmt, For) else stmt,)

    made = map_kernels(program, lambda body: map_statements(body, changed))
    assert peel_loops(made, MODEST) == made


def test_loops_inside_of_loops_that_stay_are_cut() -> None:
    body = """
for t in range(3):
    print(t)
    y[i] = x[i] if i > 0 else 0.0
"""
    made = peel_loops(lowered(body, **whole()), MODEST)
    (loop,) = (stmt for stmt in made.kernels[0].body if isinstance(stmt, For))
    inside = [stmt for stmt in loop.body if isinstance(stmt, For)]
    assert [(affine_text(one.lo), affine_text(one.hi)) for one in inside] == [
        ("0", "1"),
        ("1", "90"),
    ]


OWN = """
for i in range(90):
    s = x[i] * 2 if i > 2 else 0.0
    t = np.zeros(4)
    for k in range(4):
        t[k] = s * k
    y[i] = s + t[3]
"""


def owned(program: Program) -> list[dict[str, Node]]:
    """Return what first and other rounds write, by name."""
    made = peel_loops(program, MODEST)
    verify_program(made)
    loops = [stmt for stmt in made.kernels[0].body if isinstance(stmt, For)]
    assert len({loop.symbol for loop in loops}) == 2
    return [{node.label: node for node in writes(loop.body)} for loop in loops]


def test_what_rounds_have_for_themselves_is_apart() -> None:
    """First and last rounds have temporaries of their own, arrays too."""
    one, other = owned(lowered(OWN, y="f64[90]", x="f64[90]"))
    assert set(one) == set(other) == {"s", "t", "y"}
    assert one["y"] == other["y"] and one["s"] != other["s"] and one["t"] != other["t"]
    assert one["t"].static_shape == (4,) and one["t"].dtype == other["t"].dtype


@pytest.mark.parametrize(
    "change", [{"shape": (var(Symbol("n", 9)),)}, {"request": Decision(NEVER_VIRTUAL, ())}]
)
def test_what_was_asked_for_is_one_array(change: dict[str, Any]) -> None:
    """That of a size that the run decides, too."""
    program = lowered(OWN, y="f64[90]", x="f64[90]")
    nodes = {n.id: replace(n, **change) for n in program.locals if n.label == "t"}
    assert nodes
    made = map_kernels(program, lambda body: rename(body, {}, nodes))
    made = replace(made, locals=tuple(nodes.get(n.id, n) for n in program.locals))
    loops = [stmt for stmt in peel_loops(made, MODEST).kernels[0].body if isinstance(stmt, For)]
    one, other = ({node.label: node for node in writes(loop.body)} for loop in loops)
    assert one["t"] == other["t"] and one["s"] != other["s"]


DYNAMIC = {
    "of a loop around it": ("for k in range(5):\n    y[i] += x[clamp(i + k - 2)]", 1),
    "of a number": (
        "r = abs(int(x[1] * 2))\nn = len(x)\nfor i in range(n):\n    for k in range(-r, r + 1):\n"
        "        y[i] += x[min(max(i + k, 0), n - 1)]",
        1,
    ),
    "the same for a row": (
        "n = len(x)\nfor s in range(-2, 3):\n    for i in range(n):\n        for k in range(n):\n"
        "            y[k] += x[min(max(i + s, 0), n - 1)]",
        0,
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_places_that_are_not_static(name: str) -> None:
    """What loops around it and numbers decide, where the innermost loop asks in each iteration."""
    body, cut = DYNAMIC[name]
    made = function("def f(y, x):\n    " + body.replace("\n", "\n    ") + "\n")
    for size in (5, thresholds.MIN_PEELED_ITERATIONS, 40, 97):
        given = arguments(size)
        given[1][:] = np.linspace(-3, 3, size)
        before, _ = optimize(
            lower(made.procedure(*given)), MODEST, None, None, "eliminate_dead_code 2"
        )
        whole = peel_loops(before, MODEST)
        after, _ = optimize(lower(made.procedure(*given)), MODEST, None, None, "simplify 3")
        for got, want in zip(interpreted(after, *given), interpreted(before, *given), strict=True):
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
        assert (whole is not before) == bool(cut) or size < thresholds.MIN_PEELED_ITERATIONS
        assert quiet(after) or not cut or size < thresholds.MIN_PEELED_ITERATIONS


def test_few_places_that_are_not_static() -> None:
    body = "for k in range(5):\n    y[i] += {}"
    four = " + ".join(f"x[clamp(i + {n} * k)]" for n in range(1, 5))
    five = four + " + x[clamp(i + 5 * k)]"
    texts = [f"def f(y, x):\n    {body.format(one)}\n" for one in (four, five)]
    texts = [text.replace("\n    y", "\n        y") for text in texts]
    cut = []
    for text in texts:
        program = lower(function(text).procedure(*arguments(97)))
        cut.append(peel_loops(program, MODEST) is not program)
    assert cut == [True, False]


LARGE = (-(2**63), -(2**63) + 3, -(2**63) + 88, 2**63 - 1, 2**63 - 5, 2**63 - 89, -5, 7)
SHIFTED = {
    "clamp(i + k)": lambda i, k, x: x[np.clip(i + k, 0, 89)],
    "clamp(k - i)": lambda i, k, x: x[np.clip(k - i, 0, 89)],
    "pad(i + k, 7)": lambda i, k, x: np.where((i + k >= 0) & (i + k < 90), x[(i + k) % 90], 7),
    "i if i + k < 30 else 0": lambda i, k, x: np.where(i + k < 30, x, x[0]),
    "i if i - k >= 30 else 0": lambda i, k, x: np.where(i - k >= 30, x, x[0]),
}


@pytest.mark.parametrize("at", SHIFTED)
def test_sums_with_large_numbers_wrap(at: str) -> None:
    """Loops are split at `-k` only where `i + k` does not overflow."""
    value = f"x[{at}]" if " if " not in at else "x[{}] if {} else x[{}]".format(
        *at.replace(" else ", " if ").split(" if ")
    )  # fmt: skip
    f = function(f"def f(y, x, k):\n    y[i] = {value}\n")
    x, i = np.arange(90.0), np.arange(90)
    for k in LARGE:
        y = np.zeros(90)
        run_on("cc", f, y, x, k)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y, SHIFTED[at](i, np.int64(k), x))


def test_data_between_loops_that_may_be_large() -> None:
    f = function(
        "def f(y, x, c):\n    for k in range(len(c)):\n        s = c[k]\n        t = s * 0.5\n"
        "        for i in range(90):\n            u = x[clamp(i + s)] + t\n"
        "            y[k, i] = u * u\n"
    )
    x, i, c = np.arange(90.0), np.arange(90), np.array(LARGE)
    y = np.zeros((len(c), 90))
    with settings.override(threads=2, parallel_from=0):
        run_on("cc", f, y, x, c)
    with np.errstate(over="ignore"):
        want = (x[np.clip(i + c[:, None], 0, 89)] + c[:, None] * 0.5) ** 2
    np.testing.assert_array_equal(y, want)
