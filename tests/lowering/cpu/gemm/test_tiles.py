"""Products in tiles: not a bit changes, whatever the sizes, the axes and the rest around them."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.gemm import blocking
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, of_any_size, scheduled

TINY = Target(vector_bits=128, vector_registers=16, l1_bytes=512, l2_bytes=1024, l3_bytes=2048)
"""So little is in its caches that small products have several blocks of everything."""
M, N, K = "mnk"
ARRAYS: dict[str, tuple[str, ...]] = {
    "a": (M, K), "at": (K, M), "b": (K, N), "bt": (N, K), "c": (M, N), "ct": (N, M), "u": (M,),
    "v": (N,), "x": ("2", "m+2", "n+1"), "w": (K, "2", "3", "2"), "y": (K, M, N),
    "a3": ("3", M, K), "b3": ("3", K, N), "c3": ("3", M, N), "s": (M, M),
    "a4": ("3", "5", "2", M), "b4": (N, "2", "7", "3"), "r4": ("5", M, N, "7"), "d4": ("5", N),
    "x3": ("2", M, N, "3", "2"),
}  # fmt: skip
BODIES = {
    "a product": "c[i, j] = sum(a[i, k] * b[k, j])",
    "added to": "c[i, j] += a[i, k] * b[k, j]",
    "transposed": "c[i, j] = sum(at[k, i] * bt[j, k])",
    "stored the other way": "ct[j, i] = sum(a[i, k] * b[k, j])",
    "with itself": "s[i, j] = sum(a[i, k] * a[j, k])",
    "scaled": "c[i, j] = 0.5 * c[i, j] + 2.5 * sum(a[i, k] * b[k, j])",
    "with more around it": "c[i, j] = max(sum(a[i, k] * b[k, j]) + v[j], 0) * exp(u[i])",
    "of what is computed": "c[i, j] = sum(exp(a[i, k]) * (b[k, j] - v[j]))",
    "batches": "c3[q, i, j] = sum(a3[q, i, k] * b3[q, k, j])",
    "distances": "c[i, j] = sum((a[i, k] - b[k, j]) ** 2)",
    "shortest ways": "c[i, j] = min(a[i, k] + b[k, j])",
    "windows": "y[o, h, z] = sum(x[q, h + r, z + t] * w[o, q, r, t])",
    "backwards": "c[i, j] = sum(a[i, k] * bt[::-1].T[k, j])",
    "several rows": "r4[q, i, j, o] = sum(a4[e, q, f, i] * b4[j, f, o, e]) + u[i]",
    "rows around columns": "r4[q, i, j, o] = sum(b4[j, f, o, e] * a4[e, q, f, i]) * d4[q, j]",
    "many columns": "y[o, h, z] = sum(w[o, q, r, t] * x3[q, h, z, r, t])",
    "batches of rows": "c3[q, i, j] = sum(a3[q, i, k] * b[k, j])",
    "two results": "c[i, j] = sum(a[i, k] * b[k, j])\nct[j, i] = c[i, j] + 1",
}
TRIANGLES = {
    "a triangle": "if j <= i:\n    s[i, j] = sum(a[i, k] * a[j, k])",
    "a strict one above": "if i < j:\n    s[i, j] += a[i, k] * a[j, k]",
    "a band": "if i - 2 <= j and j < i + 5:\n    s[i, j] = sum(a[i, k] * a[j, k]) + u[j]",
    "a steep one": "if j < 3 * i - 4:\n    c[i, j] = 0.5 * c[i, j] + sum(a[i, k] * b[k, j])",
    "triangles of a batch": "if i <= j:\n    c3[q, i, j] = sum(a3[q, i, k] * b3[q, k, j])",
}
BODIES |= TRIANGLES
SHAPES = [
    (2, 3, 5),
    (6, 8, 21),
    (7, 9, 1),
    (13, 17, 50),
    (24, 2, 3),
    (5, 40, 0),
    (0, 9, 4),
    (9, 0, 4),
]
LARGE = [(12, 16, 50), (13, 17, 47)]


def _arrays(body: str, shape: tuple[int, int, int], dtype: str = "f4") -> dict[str, Any]:
    rng = np.random.default_rng(1)
    sizes = dict(zip("mnk", shape, strict=True))
    found: dict[str, Any] = {}
    for name, axes in ARRAYS.items():
        if f"{name}[" in body:
            extents = [eval(axis, {}, sizes) for axis in axes]
            found[name] = rng.standard_normal(extents).astype(dtype)
    return found


def _made(body: str, names: list[str]) -> Any:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return function(f"def f({', '.join(names)}):\n{lines}")


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_GEMM_TERMS", 0)


def _has_tiles(program: Any) -> bool:
    return any(
        isinstance(stmt, For) and stmt.kind == "unrolled"
        for kernel in program.kernels
        for stmt in statements(kernel.body)
    )


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row_tiles", [0, 100])
def test_not_a_bit_changes(
    name: str, shape: tuple[int, int, int], row_tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_ROW_TILES", row_tiles)
    arrays = _arrays(BODIES[name], shape)
    if name == "windows" and min(shape) == 0:
        pytest.skip("a window needs a place")
    made = _made(BODIES[name], list(arrays))
    procedure = made.procedure(*arrays.values())
    before = interpreted(scheduled(procedure, replace(TINY, schedule=False)), *arrays.values())
    tiny = replace(TINY, schedule=True, l3_bytes=1 << 16 if row_tiles else TINY.l3_bytes)
    program = scheduled(procedure, tiny)
    after = interpreted(program, *arrays.values())
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    if name not in TRIANGLES or min(shape[:2]) > 4:  # small ones may have a single row
        assert _has_tiles(program) == (min(min(one.shape) for one in arrays.values()) > 1)


@pytest.mark.parametrize("shape", [(13, 17, 50), (12, 16, 21)])
@pytest.mark.parametrize("name", [name for name in BODIES if name not in TRIANGLES])
def test_columns_copied_at_their_turn_give_the_bits_of_those_copied_for_all(
    name: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = _arrays(BODIES[name], shape)
    procedure = _made(BODIES[name], list(arrays)).procedure(*arrays.values())
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_ROW_TILES", 0)
    sizes, results = [], []
    for many, l2 in ((1, 1), (1, 5000), (1, 1 << 16), (1000, 5000)):
        monkeypatch.setattr(thresholds, "MIN_REPACKED_ROWS", many)
        monkeypatch.setattr(thresholds, "MAX_PACKED_COLUMNS", 32)
        target = replace(TINY, schedule=True, l2_bytes=l2, l3_bytes=1 << 16, threads=2)
        program = scheduled(procedure, target)
        sizes.append(sum(n.static_shape[0] for n in program.locals if n.label == "columns"))
        results.append([one.tobytes() for one in interpreted(program, *arrays.values())])
    assert all(one == results[0] for one in results)
    if (name, shape) == ("a product", (13, 17, 50)):
        assert sizes[0] < sizes[2], "of one tile at a time, of several"


@pytest.mark.parametrize("name", BODIES)
def test_sizes_of_the_run_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for many, shape in zip((1, 1000), LARGE, strict=True):
        monkeypatch.setattr(thresholds, "MIN_REPACKED_ROWS", many)
        if name in ("windows", "several rows", "rows around columns", "many columns"):
            pytest.skip("it counts by more loops than one, whose sizes have to be known")
        arrays = _arrays(BODIES[name], shape)
        made = _made(BODIES[name], list(arrays))
        target = replace(TINY, schedule=True, reorders=True, fma=True)
        fixed = interpreted(scheduled(made.procedure(*arrays.values()), target), *arrays.values())
        program = scheduled(of_any_size(made, *arrays.values()), target)
        assert _has_tiles(program) or name in TRIANGLES
        run = interpreted(program, *arrays.values())
        assert [one.tobytes() for one in fixed] == [one.tobytes() for one in run]


@pytest.mark.parametrize("name", ["a product", "scaled", "windows", "several rows", "a triangle"])
def test_rows_in_panels_give_the_bits_of_those_in_place(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = _arrays(BODIES[name], (13, 17, 50))
    procedure = _made(BODIES[name], list(arrays)).procedure(*arrays.values())
    texts, results = [], []
    for few in (0, 100):
        monkeypatch.setattr(thresholds, "MAX_IN_PLACE_TILES", few)
        program = scheduled(procedure, replace(TINY, schedule=True))
        texts.append([node.label for node in program.locals])
        results.append([one.tobytes() for one in interpreted(program, *arrays.values())])
    assert results[0] == results[1]
    assert "rows" in texts[0]


BOXES = {
    "a contraction": (
        "c[i, j, k, l] = sum(a[e, i, f, k] * b[j, f, l, e])",
        lambda i, k: {"c": (i, 3, k, 9), "a": (6, i, 4, k), "b": (3, 4, 9, 6)},
    ),
    "a convolution": (
        "c[h, v, o] = d[o] + sum(a[h + r, v + q, f] * b[r, q, f, o])",
        lambda h, v: {"c": (h, v, 9), "a": (h + 2, v + 2, 3), "b": (3, 3, 3, 9), "d": (9,)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("rows", [(4, 8), (4, 7), (2, 5), (6, 4), (8, 3), (6, 17)])
@pytest.mark.parametrize("name", BOXES)
def test_boxes_of_two_loops_give_the_bits_of_the_loops(
    name: str, rows: tuple[int, int], in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, shapes = BOXES[name]
    rng = np.random.default_rng(1)
    arrays = {n: rng.standard_normal(shape).astype("f4") for n, shape in shapes(*rows).items()}
    procedure = _made(text, list(arrays)).procedure(*arrays.values())
    plain = interpreted(scheduled(procedure, replace(TINY, schedule=False)), *arrays.values())
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_TILES", 100 if in_place else 0)
    for threads, l2, box in ((1, 1 << 14, (2, 3)), (2, 1 << 14, (2, 3)), (3, 1024, (2, 2))):
        columns = (4,) if name == "a convolution" else (1, 4)
        monkeypatch.setattr(blocking, "_shape", lambda *_, both=(box, columns): both)
        target = replace(TINY, schedule=True, threads=threads, l2_bytes=l2, l3_bytes=1 << 16)
        program = scheduled(procedure, target)
        assert (prod(box), 4) in [node.static_shape for node in program.locals]
        found = interpreted(program, *arrays.values())
        assert [one.tobytes() for one in found] == [one.tobytes() for one in plain]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", ["a product", "added to", "with more around it", "distances"])
def test_columns_are_read_in_place_for_few_rows(
    name: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_ROW_TILES", 2)
    arrays = _arrays(BODIES[name], (6 if few else 60, 37, 21))
    procedure = _made(BODIES[name], list(arrays)).procedure(*arrays.values())
    for threads in (1, 2):
        target = replace(TINY, schedule=True, threads=threads, l3_bytes=1 << 16)
        program = scheduled(procedure, target)
        assert ("columns" in [node.label for node in program.locals]) is not few


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("row_tiles", [0, 100])
def test_c_gives_the_bits_of_the_loops(
    name: str, dtype: str, row_tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_IN_PLACE_ROW_TILES", row_tiles)
    arrays = _arrays(BODIES[name], (19, 70, 11), dtype)
    made = _made(BODIES[name], list(arrays))
    with settings.override(schedule=True, profile="strict"):
        mine = [one.copy() for one in arrays.values()]
        made.on("cc")(*mine)
    before = made.procedure(*arrays.values())
    plain = interpreted(scheduled(before, replace(TINY, schedule=False)), *arrays.values())
    rtol = 1e-5 if "exp" in BODIES[name] else 0
    for one, other in zip(mine, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


REFUSED = {
    "one row": "c[0, j] = sum(a[0, k] * b[k, j])",
    "terms in a triangle": "c[i, j] = sum[k <= i](a[i, k] * b[k, j])",
    "what is read is written": "s[i, j] = sum(s[i, k] * s[k, j])",
    "a halved bound": "if i <= 2 * j:\n    c[i, j] = sum(a[i, k] * b[k, j])",
    "a triangle of others": "if q <= i:\n    c3[q, i, j] = sum(a3[q, i, k] * b3[q, k, j])",
    "three at once": "c[i, j] = sum(a[i, k] * b[k, j] * c[i, j])",
    "an index from data": "c[i, j] = sum(a[i, k] * b[k, (j + k) % 2])",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_product_keeps_its_loops_and_bits(name: str) -> None:
    arrays = _arrays(REFUSED[name], (9, 9, 9))
    made = _made(REFUSED[name], list(arrays))
    procedure = made.procedure(*arrays.values())
    before = interpreted(scheduled(procedure, replace(TINY, schedule=False)), *arrays.values())
    program = scheduled(procedure, replace(TINY, schedule=True))
    after = interpreted(program, *arrays.values())
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]


def test_a_loop_that_was_written_is_tiled_as_well() -> None:
    text = (
        "def f(c, a, b):\n    for i in range(9):\n        for j in range(8):\n"
        "            for k in range(7):\n                c[i, j] += a[i, k] * b[k, j]\n"
    )
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape) for shape in ((9, 8), (9, 7), (7, 8))]
    made = function(text)
    program = scheduled(made.procedure(*arrays), replace(TINY, schedule=True))
    assert _has_tiles(program)
    plain = scheduled(made.procedure(*arrays), replace(TINY, schedule=False))
    assert interpreted(program, *arrays)[0].tobytes() == interpreted(plain, *arrays)[0].tobytes()


def test_what_a_row_named_before_its_columns_stays_that() -> None:
    text = (
        "def f(c, a, b):\n    for i in range(9):\n        t = c[i, 0]\n"
        "        for j in range(8):\n            c[i, j] = sum(a[i, k] * b[k, j]) * t\n"
    )
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape) for shape in ((9, 8), (9, 7), (7, 8))]
    procedure = function(text).procedure(*arrays)
    plain = scheduled(procedure, replace(TINY, schedule=False))
    tiled = scheduled(procedure, replace(TINY, schedule=True, vector_bits=256))
    assert interpreted(tiled, *arrays)[0].tobytes() == interpreted(plain, *arrays)[0].tobytes()


@pytest.mark.parametrize("terms", ["n", "-1", "0", "3"])
def test_ranges_that_are_empty_read_nothing(terms: str) -> None:
    made = function(f"def f(c, a, b, n):\n    c[i, j] = sum[k < {terms}](a[i, k] * b[j, k])\n")
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(shape) for shape in ((9, 10), (9, 7), (10, 7))]
    for count in (-20, -3, 0, 1, 7):
        if terms != "n" and count:
            continue
        given = (*arrays, count)
        for procedure in (made.procedure(*given), of_any_size(made, *given)):
            plain = interpreted(scheduled(procedure, replace(TINY, schedule=False)), *given)
            tiled = interpreted(scheduled(procedure, replace(TINY, schedule=True)), *given)
            assert plain[0].tobytes() == tiled[0].tobytes()


def test_threads_and_traces_change_no_bit() -> None:
    arrays = _arrays(BODIES["scaled"], (300, 130, 70))
    made = _made(BODIES["scaled"], list(arrays))
    found = []
    for threads in (1, 2, 7):
        mine = [one.copy() for one in arrays.values()]
        with settings.override(schedule=True, threads=threads, parallel_from=1):
            made.on("cc")(*mine)
        found.append([one.tobytes() for one in mine])
    mine = [one.copy() for one in arrays.values()]
    with settings.override(schedule=True), pe.trace():
        made.on("cc")(*mine)
    found.append([one.tobytes() for one in mine])
    assert all(one == found[0] for one in found)
    assert found[0] != [one.tobytes() for one in arrays.values()]


LOOPS = "for p in range(a.shape[0]):\n    for q in range(b.shape[1]):\n"
BEHIND = {
    "the greatest": "return np.max(a @ b)",
    "a sum of all": "return np.sum((a @ b) ** 2)",
    "the place of the greatest": "return np.argmax(a @ b)",
    "whether any": "return np.any(a @ b > 4)",
    "a last one": f"{LOOPS}        s[0] = t[p, q] - s[0]",
    "sums of diagonals": f"{LOOPS}        z[p + q] += t[p, q]",
    "counts": "h[i32(t[i, j])] += 1",
    "something before": "d[i, j] = c[i, j] * 2\nd[i, j] += a[i, k] * b[k, j]\nc[i, j] = 1",
    "an array before": "c[i, j] = d[i, j]\nd[i, j] = c[i, j]\nd[i, j] += a[i, k] * b[k, j]",
    "more than arithmetic": "c[i, j] = t[i, j] + sum[q in range(3)](w[i, j, q])",
    "batches": "return (a3 @ b3).sum(axis=0)",
}
TO_ALL = {"a": (11, 7), "b": (7, 13), "c": (11, 13), "d": (11, 13), "s": (1,),
          "z": (30,), "h": (99,), "w": (11, 13, 3), "a3": (3, 9, 5), "b3": (3, 5, 10)}  # fmt: skip


def _behind(name: str) -> tuple[Any, list[Any]]:
    body = BEHIND[name]
    if "t[" in body:
        body = f"t[i, j] = sum(a[i, k] * b[k, j])\n{body}"
    rng = np.random.default_rng(7)
    names = [n for n in TO_ALL if f"{n}[" in body or f"{n} @" in body or f"@ {n}" in body]
    arrays = [abs(rng.standard_normal(TO_ALL[n])).astype("f4") for n in names]
    return _made(body, names), arrays


@pytest.mark.parametrize("name", BEHIND)
def test_what_is_around_a_product_leaves_its_tiles_and_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MIN_TILED_POINTS", 64)
    made, arrays = _behind(name)
    procedure, found = made.procedure(*arrays), []
    plain = interpreted(scheduled(procedure, replace(TINY, schedule=False)), *arrays)
    alone = scheduled(procedure, replace(TINY, schedule=True))
    assert _has_tiles(alone)
    assert [one.tobytes() for one in interpreted(alone, *arrays)] == [o.tobytes() for o in plain]
    unknown = of_any_size(made, *arrays)
    for one, threads in ((procedure, 1), (procedure, 3), (unknown, 1)):
        target = replace(TINY, schedule=True, reorders=True, fma=True, threads=threads)
        program = scheduled(one, target)
        assert _has_tiles(program) or one is unknown and "before" in name  # they check its sizes
        found.append([made.tobytes() for made in interpreted(program, *arrays)])
    assert all(one == found[0] for one in found)


def test_a_reduced_product_has_its_bits_with_threads_and_traces() -> None:
    made = _made("t = a @ b\nreturn t.sum(), t.max()", ["a", "b"]).on("cc")
    rng = np.random.default_rng(8)
    arrays = [rng.standard_normal(shape) for shape in ((40, 33), (33, 50))]
    found = []
    for threads in (1, 2):
        with settings.override(schedule=True, threads=threads, parallel_from=1, optimize=1):
            found.append(made(*arrays))
    with settings.override(schedule=True), pe.trace():
        found.append(made(*arrays))
    assert len({tuple(one.tobytes() for one in some) for some in found}) == 1


CONVOLUTION = "y[n, o, h, v] = {} sum(x[n, c, h + r, v + q] * w[o, c, r, q])"


@pytest.mark.parametrize(
    "sizes", [(2, 64, 33, 5, 13), (1, 60, 40, 2, 8), (3, 64, 16, 4, 33), (2, 20, 17, 9, 32)]
)
@pytest.mark.parametrize("text", ["", "t[v] * u[o] +", "y[n, o, h, v] +"])
def test_long_sums_of_windows_have_the_bits_of_their_loops(
    sizes: tuple[int, ...], text: str
) -> None:
    random = np.random.default_rng(3)
    n, c, o, h, v = sizes
    shapes = {"y": (n, o, h, v), "x": (n, c, h + 2, v + 4), "w": (o, c, 3, 5), "t": (v,), "u": (o,)}
    arrays = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    made = function(f"def f({', '.join(arrays)}):\n    {CONVOLUTION.format(text)}\n")
    found = []
    for schedule, threads in ((False, 1), (True, 1), (True, 2), (True, 5)):
        mine = [one.copy() for one in arrays.values()]
        with settings.override(
            schedule=schedule, threads=threads, parallel_from=1, profile="strict", optimize=1
        ):
            made.on("cc")(*mine)
        found.append([one.tobytes() for one in mine])
    assert all(one == found[0] for one in found)
    assert found[0][0] != arrays["y"].tobytes()


def test_what_is_small_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    arrays = _arrays(BODIES["a product"], (12, 16, 16))
    made = _made(BODIES["a product"], list(arrays))
    assert not _has_tiles(scheduled(made.procedure(*arrays.values()), replace(TINY, schedule=True)))


def test_explain_says_what_is_in_tiles() -> None:
    arrays = _arrays(BODIES["a product"], (32, 32, 32))
    with settings.override(schedule=True):
        text = str(_made(BODIES["a product"], list(arrays)).on("cc").explain(*arrays.values()))
    assert "is computed in tiles" in text
    assert "contiguously" in text
