"""Writes to where data says, each thread to its own elements, in the order of the program."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu import owner_computes as owners_of
from plusequals.lowering.gpu.owner_computes import map_owner_computes
from plusequals.lowering.ir.loops import For
from plusequals.lowering.transform.recognize_updates import recognize_updates

from .kernels import Case


def of(case: Case) -> tuple[For, ...]:
    made = map_owner_computes(case.loop(), case.facts, case.fresh, case.nodes)
    assert made is not None
    return made.body  # type: ignore[return-value]


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("size", [8, 11, 300])
def test_sums_and_stores_keep_their_order(n: int, size: int) -> None:
    for text in ("h[k[i]] += x[i]", "h[k[i]] = x[i]", "h[k[i]] = max(h[k[i]], x[i])"):
        case = Case(text, exact=True, h=f"f32[{size}]", k=f"i64[{n}]", x=f"f32[{n}]")
        if case.body and isinstance(case.body[-1], For):
            case.assert_same(of(case))


def test_several_axes() -> None:
    case = Case("h[k[i], j, m[i]] += x[i, j]", exact=True, h="f32[8, 3, 9]", k="i64[20]",
                m="i64[20]", x="f32[20, 3]")  # fmt: skip
    case.assert_same(of(case))


@pytest.mark.parametrize("size", [8, 9, 300])
@pytest.mark.parametrize("n", [31, 32, 61])
def test_what_is_exact_in_any_order_is_taken_in_pieces(
    n: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MIN_OWNED_CHUNK_ITERATIONS", 8)
    for text, real in (
        ("h[k[i]] += x[i]", "i32"), ("h[k[i]] *= x[i]", "u8"),
        ("h[k[i]] = max(h[k[i]], x[i])", "f32"), ("h[k[i], 1] += x[i]", "i64"),
    ):  # fmt: skip
        shape = f"{size}, 2" if ", 1]" in text else f"{size}"
        case = Case(text, exact=True, h=f"{real}[{shape}]", k=f"i64[{n}]", x=f"{real}[{n}]")
        made = of(case)
        assert len(made) == (2 if n >= 32 and size < 32 else 1)
        case.assert_same(made)


def test_pieces_of_several_axes_and_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_OWNED_CHUNKS", 5)
    monkeypatch.setattr(thresholds, "MIN_OWNED_CHUNK_ITERATIONS", 24)
    for text in (
        "h[k[i], j, m[i]] += x[i, j]",
        "for i in range(300):\n    h[k[i], 0, m[i]] += x[i, 1]\n    g[m[i]] += 1",
        "for i in range(299, -1, -2):\n    g[m[i]] += i",
    ):
        case = Case(text, exact=True, h="i64[8, 3, 9]", g="i32[9]", k="i64[300]", m="i64[300]",
                    x="i64[300, 3]")  # fmt: skip
        made = of(case)
        assert len(made) == 1 + ("h[" in text) + ("g[" in text)
        case.assert_same(made)


def test_where_the_order_matters_rounds_stay_together() -> None:
    for text, real in (("h[k[i]] += x[i]", "f32"), ("h[k[i]] = x[i]", "i64"),
                       ("h[k[i]] -= x[i]", "f64")):  # fmt: skip
        sizes = {"h": f"{real}[8]", "k": "i64[3000]", "x": f"{real}[3000]"}
        assert len(of(Case(text, exact=False, **sizes))) == 1


def test_pieces_are_no_more_than_their_memory_and_their_sums_are_worth() -> None:
    for n, size, pieces in (
        (1 << 22, 256, 1024), (100_000, 256, 390), (10_000, 5000, 8), (10_000, 20_000, 0),
        (1 << 20, 1 << 19, 8), (1 << 24, 1 << 22, 4),
    ):  # fmt: skip
        case = Case("h[k[i]] += x[i]", h=f"i32[{size}]", k=f"i64[{n}]", x=f"i32[{n}]")
        (loop,) = (s for s in case.body if isinstance(s, For) and s == case.loop())
        (node,) = (node for node in case.nodes.values() if node.label == "h")
        assert owners_of._count_chunks(loop, [node]) == pieces


@pytest.mark.parametrize(
    ("rows", "columns", "pieces"), [(500, 1000, 500), (4, 1000, 4), (3, 100_000, 0), (300, 2, 0)]
)
def test_rounds_of_loops_inside_count(rows: int, columns: int, pieces: int) -> None:
    text = f"for i in range({rows}):\n    for j in range({columns}):\n        h[k[i, j]] += 1"
    case = Case(text, h="i32[16]", k=f"i64[{rows}, {columns}]")
    (node,) = (node for node in case.nodes.values() if node.label == "h")
    assert owners_of._count_chunks(case.loop(), [node]) == pieces


def test_pieces_of_two_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_OWNED_CHUNK_ITERATIONS", 8)
    text = "for i in range(9):\n    for j in range(11 - i):\n        h[k[i, j]] += k[j, i]"
    case = Case(text, exact=True, h="i64[8]", k="i64[20, 20]")
    assert len(of(case)) == 1, "nothing is known of the inner loop"
    case = Case(text.replace(" - i", ""), exact=True, h="i64[8]", k="i64[20, 20]")
    made = of(case)
    assert len(made) == 2
    case.assert_same(made)


def test_what_is_read_as_well_is_refused() -> None:
    case = Case("for i in range(20):\n    h[k[i]] = h[i % 8] + 1", h="f32[8]", k="i64[20]")
    assert map_owner_computes(case.loop(), case.facts, case.fresh, case.nodes) is None


def test_scalars_are_refused() -> None:
    case = Case("for i in range(20):\n    s[0] = s[0] * 0.5 + x[i]", s="f32[1]", x="f32[20]")
    assert map_owner_computes(case.loop(), case.facts, case.fresh, case.nodes) is None


IN_PLACE = [
    "for i in range(len(k)):\n    if x[i] > h[k[i]]:\n        h[k[i]] = x[i]",
    "for i in range(len(k)):\n    h[k[i]] = 0.5 * h[k[i]] + x[i]",
    "for i in range(len(k)):\n    t = h[k[i]]\n    if t > 1:\n        h[k[i]] = t * x[i]",
    "for i in range(len(k)):\n    for j in range(3):\n        g[k[i], j] = 2 - g[k[i], j] * x[i]",
]


@pytest.mark.parametrize("n", [2, 37, 300])
@pytest.mark.parametrize("text", IN_PLACE)
def test_elements_that_are_read_by_who_owns_them(text: str, n: int) -> None:
    sizes = {"h": "f32[9]", "g": "f32[9, 3]", "k": f"u8[{n}]", "x": f"f32[{n}]"}
    case = Case(text, exact=True, **sizes)
    (loop,) = recognize_updates((case.loop(),))
    assert isinstance(loop, For)
    case.facts.tell((loop,), case.facts.temporaries_in(case.loop()))
    made = map_owner_computes(loop, case.facts, case.fresh, case.nodes)
    assert made is not None
    case.assert_same(made.body)


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(1, len(k)):\n    h[k[i]] = 0.5 * h[k[i - 1]] + x[i]",
        "for i in range(len(k)):\n    h[3] = 0.5 * h[3] + x[i]",
        "for i in range(len(k)):\n    t = h[k[i]]\n    h[k[i]] = t * x[i]\n    k[i] = int(t)",
    ],
)
def test_what_reads_other_elements_keeps_its_order(text: str) -> None:
    case = Case(text, exact=True, h="f32[9]", k="i64[37]", x="f32[37]")
    (loop,) = recognize_updates((case.loop(),))
    assert isinstance(loop, For)
    assert map_owner_computes(loop, case.facts, case.fresh, case.nodes) is None
