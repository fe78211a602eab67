"""Accumulations to where data says in pieces: not a bit changes, whatever the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.privatized_arrays import PrivatizeReason, privatize_arrays
from plusequals.lowering.ir.expressions import Apply, Const
from plusequals.lowering.ir.loops import For, If, Program, Stmt
from plusequals.lowering.ir.rewrite import map_kernels, map_statements
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.passes.simplify import simplify
from plusequals.lowering.target import Target

from ..scheduled import MODEST, function, interpreted, of_any_size, out_of_order, scheduled
from ..shown import lowered, text_of

EAGER = replace(MODEST, threads=3, parallel_from=1000)
TAKEN = {
    "counts": "h[k[i]] += 1",
    "weights": "h[k[i]] += w[i]",
    "greatest": "h[k[i]] = max(h[k[i]], w[i])",
    "least": "h[k[i]] = min(h[k[i]], w[i])",
    "bits": "h[k[i]] |= w[i]",
    "turned bits": "h[k[i]] ^= w[i]",
    "computed": "h[(3 * k[i] + w[i]) % 9] += 1",
    "under a test": "for i in range(len(k)):\n    if w[i] > 0:\n        h[k[i] % 9] += w[i]",
    "backwards": "for i in range(len(k) - 1, -1, -1):\n    h[k[i] % 9] += w[i]",
    "of two axes": "g[k[i] % 3, k[i] // 3 % 3] += w[i]",
    "two at once": "for i in range(len(k)):\n    h[k[i] % 9] += 1\n    b[k[i] % 4] |= w[i]",
    "with a loop inside": "for i in range(len(k)):\n    g[k[i] % 3] += w[i]",
}
STAY = {
    "sums of reals": "r[k[i]] += w[i]",
    "differences": "h[k[i]] -= w[i]",
    "read as well": "for i in range(len(k)):\n    h[k[i] % 9] += h[0]",
    "in two ways": "for i in range(len(k)):\n    h[k[i] % 9] += 1\n    h[k[i] % 4] |= w[i]",
    "stored": "for i in range(len(k)):\n    h[k[i] % 9] = w[i]",
    "left early": "for i in range(len(k)):\n    if w[i] > 90:\n        break\n    h[k[i] % 9] += 1",
    "one after the other": "for i in range(1, len(k)):\n    h[k[i] % 9] += 1\n    w[i] += w[i - 1]",
    "checked as it goes": "for i in range(len(k)):\n    h[k[i]] += 1",
}
SHAPES = {"h": (9,), "g": (3, 3), "b": (4,), "r": (9,)}


def _arrays(text: str, size: int) -> list[Any]:
    random = np.random.default_rng(size)
    made = {name: random.integers(-9, 9, shape) for name, shape in SHAPES.items()}
    made["r"] = made["r"].astype("f8")
    made |= {"k": random.integers(0, 9, size), "w": random.integers(-99, 99, size)}
    return [made[name] for name in _names(text)]


def _names(text: str) -> list[str]:
    return [name for name in (*SHAPES, "k", "w") if f"{name}[" in text]


def _made(text: str) -> Any:
    inside = text.replace("\n", "\n    ")
    return function(f"def f({', '.join(_names(text))}):\n    {inside}\n")


def _are_pieces(program: Program) -> bool:
    return any(node.label.endswith("_parts") for node in program.locals)


@pytest.mark.parametrize("size", [0, 1, 500, 4099])
@pytest.mark.parametrize("name", TAKEN)
def test_not_a_bit_changes(name: str, size: int) -> None:
    arrays = _arrays(TAKEN[name], size)
    procedure = _made(TAKEN[name]).procedure(*arrays)
    made = scheduled(procedure, EAGER)
    alone = scheduled(procedure, replace(EAGER, threads=1))
    assert _are_pieces(made) == (size > 1) and not _are_pieces(alone)
    after, before = interpreted(out_of_order(made), *arrays), interpreted(alone, *arrays)
    assert [one.tolist() for one in after] == [one.tolist() for one in before]
    if size > 1:
        loops = (s for kernel in made.kernels for s in statements(kernel.body))
        assert any(
            isinstance(s, For) and s.hi.constant == 3 and s.kind == "parallel" for s in loops
        )


INSIDE = {
    "rows added": "r[k[i], j] += v[i, j]",
    "rows of differences": "r[k[i], j] -= 2 * v[i, j]",
    "rows one after the other": "for i in range(1, len(v)):\n    v[i] = v[i - 1] * 0.5 + v[i]",
    "rows of what is left": "for i in range(len(v)):\n    r[k[i] % 9] += v[i]",
}
NOT_INSIDE = {
    "left early": (
        "for i in range(1, len(v)):\n    for j in range(50):\n        if v[i, j] > 0.9:\n"
        "            break\n        v[i, j] += v[i - 1, j]"
    ),
    "a number that is needed behind": (
        "a = 0.0\nfor i in range(1, len(v)):\n    for j in range(50):\n"
        "        v[i, j] += v[i - 1, j]\n        a = v[i, j] * 2\nv[0, 0] = a"
    ),
    "where each row begins": (
        "for i in range(1, len(v)):\n    for j in range(i % 2, i % 2 + 49):\n"
        "        v[i, j] += v[i - 1, j]"
    ),
    "what all read": "for i in range(1, len(v)):\n    v[i] += v[i - 1, 0]",
    "neighbours": "for i in range(1, len(v)):\n    v[i, 1:] = v[i - 1, :-1]",
    "checked as it goes": "for i in range(len(v)):\n    r[k[i]] += v[i]",
}


def _rows(rows: int, columns: int) -> dict[str, Any]:
    random = np.random.default_rng(rows)
    return {
        "r": random.random((9, columns)),
        "v": random.random((rows, columns)),
        "k": random.integers(0, 9, rows),
    }


def _are_cut(text: str, arrays: dict[str, Any], target: Target = EAGER) -> bool:
    given = {name: a for name, a in arrays.items() if f"{name}[" in text or f"({name})" in text}
    inside = text.replace("\n", "\n    ")
    procedure = function(f"def f({', '.join(given)}):\n    {inside}\n").procedure(*given.values())
    made = scheduled(procedure, target)
    alone = scheduled(procedure, replace(target, threads=1))
    after, before = (interpreted(one, *given.values()) for one in (out_of_order(made), alone))
    assert [one.tobytes() for one in after] == [one.tobytes() for one in before]
    loops = (s for kernel in made.kernels for s in statements(kernel.body))
    return any(isinstance(s, For) and s.symbol.name == "piece" for s in loops)


@pytest.mark.parametrize("name", INSIDE)
def test_the_loop_inside_is_cut(name: str) -> None:
    assert _are_cut(INSIDE[name], _rows(40, 50))
    assert not _are_cut(INSIDE[name], _rows(40, 40)), "fewer than 16 for each thread"
    assert not _are_cut(INSIDE[name], _rows(3, 50)), "little to do"


@pytest.mark.parametrize("name", NOT_INSIDE)
def test_loops_inside_that_stay_whole(name: str) -> None:
    assert not _are_cut(NOT_INSIDE[name], _rows(40, 50))
    assert not _are_cut(NOT_INSIDE[name], _rows(120, 50), replace(EAGER, parallel_from=4000))


@pytest.mark.parametrize("size", [3, 4099])
@pytest.mark.parametrize("name", ["counts", "bits"])
def test_the_run_decides_where_it_knows_the_size(name: str, size: int) -> None:
    arrays = _arrays(TAKEN[name], size)
    made = _made(TAKEN[name])
    with settings.override("numpy"):
        for more in (2, 3, 4, 5):
            made.specialise(*(np.resize(a, size + more) if len(a) == size else a for a in arrays))
        procedure = made.procedure(*arrays)
    program = scheduled(procedure, EAGER)
    assert _are_pieces(program)
    found = [s for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, If)]
    assert any(len(one.then) > 1 and one.orelse for one in found), "both are there"
    careful = scheduled(procedure, replace(EAGER, parallel_from=10**7))
    (least,) = {
        value.value for kernel in careful.kernels for s in statements(kernel.body)
        if isinstance(s, If) and isinstance(s.test, Apply)
        for value in s.test.args if isinstance(value, Const)
    }  # fmt: skip
    assert least == 10**7
    alone = interpreted(scheduled(procedure, replace(EAGER, threads=1)), *arrays)
    assert [a.tolist() for a in interpreted(program, *arrays)] == [a.tolist() for a in alone]


@pytest.mark.parametrize("name", STAY)
def test_what_stays(name: str) -> None:
    arrays = _arrays(STAY[name], 4099)
    assert not _are_pieces(scheduled(_made(STAY[name]).procedure(*arrays), EAGER))


def test_what_has_to_be_worth_it() -> None:
    def labels(rounds: int, cells: int, **target: Any) -> int:
        program = lowered("h[k[i]] += 1", h=f"i64[{cells}]", k=f"u8[{rounds}]")
        found = privatize_arrays(program, replace(EAGER, **target)).decisions
        assert {one.reason for one in found} <= {PrivatizeReason.EXACT}
        return len(found)

    assert labels(9000, 256) == 1
    assert labels(400, 256) == 0, "as much as the copies"
    assert labels(9000, 1) == 1 and labels(9000, 0) == 0
    assert labels(9000, 256, threads=1) == 0
    assert labels(9000, 256, parallel_from=10**9) == 0
    assert labels(9000, 256, l2_bytes=4000) == 0, "no cache has the copies"


@pytest.mark.parametrize("name", ["checked", "checked_in_what_is_written", "rows"])
def test_the_loops_in_pieces(golden: Callable[[str], Callable[[str], None]], name: str) -> None:
    body, arrays = {
        "checked": ("h[k[i]] += w[i]", {"h": "i64[9]", "k": "i64[6000]", "w": "i64[6000]"}),
        "checked_in_what_is_written": ("h[h[i]] += w[i]", {"h": "i64[6000]", "w": "i64[6000]"}),
        "rows": (
            "t[k[i], j] += x[i, j]",
            {"t": "f32[256, 64]", "k": "u8[900]", "x": "f32[900, 64]"},
        ),
    }[name]
    target = Target(threads=2, parallel_from=3000)
    check = golden(f"{name}.txt")
    check(text_of(privatize_arrays(simplify(lowered(body, **arrays)), target).program))


def test_sizes_of_copies_are_known() -> None:
    made = _made("h[k[i]] += 1")
    assert not _are_pieces(scheduled(of_any_size(made, *_arrays("h[k[", 500)), EAGER))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_c_counts_alike_with_any_number_of_threads(threads: int) -> None:
    k = np.random.default_rng(3).integers(0, 200, 300_000, dtype="u1")
    made = _made("h[k[i]] += 1").on("cc")
    h = np.zeros(256, "i8")
    with settings.override(threads=threads):
        made(h, k)
        made(h, k)
    assert h.tolist() == (2 * np.bincount(k, minlength=256)).tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_wrong_is_found_before_anything_is_counted(threads: int) -> None:
    k = np.zeros(300_000, "i4")
    k[200_000], k[250_000] = 256, -7
    h = np.zeros(256, "i8")
    wrong = "index 256 is out of range for axis 0 of `h` with size 256, at i = 200000"
    with settings.override(threads=threads), pytest.raises(IndexError, match=wrong):
        _made("h[k[i]] += 1").on("cc")(h, k)
    assert not h.any()


DEEP = {
    "below another loop": "for i in range(2, len(v)):\n    for t in range(2):\n"
    "        v[i] = v[i - 1] * 0.5 + v[i - t]",
    "behind a number": "for i in range(1, len(v)):\n    s = i * 0.5\n    v[i] = v[i - 1] * s",
}


@pytest.mark.parametrize("name", DEEP)
def test_a_loop_deeper_inside_is_cut(name: str) -> None:
    assert _are_cut(DEEP[name], _rows(40, 50))
    assert not _are_cut(DEEP[name].replace("50", "40"), _rows(40, 40))
    assert not _are_cut(DEEP[name], _rows(40, 50), replace(EAGER, l2_bytes=1)), "no cache has it"


@pytest.mark.parametrize("kind", ["vector", "unrolled"])
def test_loops_inside_that_are_scheduled_stay_whole(kind: Any) -> None:
    program = lowered("for i in range(1, 40):\n    v[i] += v[i - 1]", v="f64[40, 50]")
    assert privatize_arrays(program, EAGER).decisions

    def with_kind(stmt: Stmt) -> tuple[Stmt, ...]:
        is_inner = isinstance(stmt, For) and not any(isinstance(s, For) for s in stmt.body)
        return (replace(stmt, kind=kind),) if is_inner else (stmt,)

    program = map_kernels(program, lambda body: map_statements(body, with_kind))
    made = privatize_arrays(program, EAGER)
    assert (made.program, made.decisions) == (program, ())


def test_where_a_loop_begins_counts() -> None:
    body = "for i in range(1, len(v)):\n    for j in range({}, 50):\n        v[i, j] += v[i - 1, j]"
    assert _are_cut(body.format(2), _rows(40, 50))
    assert not _are_cut(body.format(3), _rows(40, 50)), "47 are fewer than 16 for each thread"


@pytest.mark.parametrize(("bytes_of_cache", "are_cut"), [(3200, True), (3199, False)])
def test_what_is_written_may_fill_the_caches_of_all_threads_twice(
    bytes_of_cache: int, are_cut: bool
) -> None:
    v = np.ones((48, 50))
    assert v.nbytes == 2 * EAGER.threads * 3200
    body = "for i in range(1, len(v)):\n    v[i] += v[i - 1]"
    assert _are_cut(body, {"v": v}, replace(EAGER, l2_bytes=bytes_of_cache)) is are_cut


def test_pieces_are_several_for_each_thread_where_they_are_many() -> None:
    def ends(columns: int) -> set[int | None]:
        program = lowered("for i in range(1, 9):\n    v[i] += v[i - 1]", v=f"f64[9, {columns}]")
        made = privatize_arrays(program, replace(EAGER, l2_bytes=1 << 24)).program
        loops = (s for kernel in made.kernels for s in statements(kernel.body))
        return {s.hi.constant for s in loops if isinstance(s, For) and s.symbol.name == "piece"}

    assert (ends(1500), ends(3 * 512 * 2), ends(10**5)) == ({3}, {6}, {12})
