"""Values computed where they are used: what is inlined, to what, and every reason why not."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering import thresholds
from plusequals.lowering.ir.assignments import Alloc, Let
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Fill, For, Store
from plusequals.lowering.passes import inline as module
from plusequals.lowering.passes.inline import StoredReason, VirtualReason, virtualize

from ..ir.build import at, i64, node, num, program, read, symbols
from ..shown import after, array, lowered
from .agree import assert_agrees

INLINED = [
    ("u[i] = x[i] * 2\ny[i] = exp(u[i])", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         y[i] = exp(x[i] * 2.0)
     """),
    ("u[i] = x[i] * 2\ny[2:5] = u[3:6] + u[1:4]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..3:
         y[i + 2] = x[i + 3] * 2.0 + x[i + 1] * 2.0
     """),
    ("u[i] = exp(x[i])\ny[i] = u[2 * i + 1]", {"y": "f32[4]", "x": "f32[8]"},
     """
     for i in 0..4:
         y[i] = exp(x[2*i + 1])
     """),
    ("u[i, j] = exp(x[i, j])\ny[i, j] = u[j, i]", {"y": "f32[9, 8]", "x": "f32[8, 9]"},
     """
     for i in 0..9:
         for j in 0..8:
             y[i, j] = exp(x[j, i])
     """),
    ("u[i, j] = exp(x[i, j])\ny[i] = u[i, i]", {"y": "f32[8]", "x": "f32[8, 8]"},
     """
     for i in 0..8:
         y[i] = exp(x[i, i])
     """),
    ("u = x[::-1] * 2\ny[:] = u[::-1]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         y[i] = x[i] * 2.0
     """),
    ("d[i, j] = a[i] - b[j]\ny[i] = sum(d[i, j] ** 2)",
     {"y": "f32[8]", "a": "f32[8]", "b": "f32[9]"},
     """
     for i in 0..8:
         y[i] = 0.0
         for j in 0..9:
             y[i] += (a[i] - b[j]) * (a[i] - b[j])
     """),
    ("u: f32[8]\nif x[i] > 0:\n    u[i] = exp(x[i])\n    y[i] = u[i]",
     {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         if x[i] > 0.0:
             y[i] = exp(x[i])
     """),
    ("for s in range(3):\n    u[i] = x[i] * 2\n    y[i] = y[i] + u[i]",
     {"y": "f32[8]", "x": "f32[8]"},
     """
     for s in 0..3:
         for i in 0..8:
             y[i] = y[i] + x[i] * 2.0
     """),
    ("u[i] = x[i] * 2\nx[i] = u[i] + 1", {"x": "f32[8]"},
     """
     for i in 0..8:
         x[i] = x[i] * 2.0 + 1.0
     """),
    ("u[i] = x[i] * 2\nu[0] = 0\ny[i] = u[i]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         y[i] = 0.0 if i == 0 else x[i] * 2.0
     """),
    ("u: f32[8]\nu[::2] = x[::2]\ny[::2] = u[::2]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..4:
         y[2*i] = x[2*i]
     """),
    ("u: f32[8]\nu[1:] = x[1:]\ny[i] = u[i]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         y[i] = x[i] if 1 <= i else 0.0
     """),
    ("u: f32[8]\nif x[i] > 0:\n    u[i] = x[i]\ny[i] = u[i]", {"y": "f32[8]", "x": "f32[8]"},
     """
     for i in 0..8:
         y[i] = x[i] if x[i] > 0.0 else 0.0
     """),
    ("d: f32[8, 8]\nd[i, i] = x[i]\ny[i, j] = d[i, j] * 2", {"y": "f32[8, 8]", "x": "f32[8]"},
     """
     for i in 0..8:
         for j in 0..8:
             y[i, j] = (x[i] if j == i else 0.0) * 2.0
     """),
    ("t: f32[8]\nt[:4] = x\nt[4:] = x * 2\ny[:] = t[::-1]", {"y": "f32[8]", "x": "f32[4]"},
     """
     for i in 0..8:
         y[i] = x[-i + 3] * 2.0 if i <= 3 else x[-i + 7] if 3 < i else 0.0
     """),
]  # fmt: skip


@pytest.mark.parametrize(("body", "arrays", "expected"), INLINED, ids=[b for b, _, _ in INLINED])
def test_inlined(body: str, arrays: dict[str, str], expected: str) -> None:
    assert after(virtualize, body, **arrays) == textwrap.dedent(expected).strip()


def test_the_rounding_of_a_half_store_is_kept() -> None:
    program = lowered("u[i] = f16(x[i] * 3)\ny[i] = u[i] + 1", y="f32[8]", x="f32[8]")
    x = np.random.default_rng(3).random(8, dtype=np.float32)
    new = assert_agrees(program, virtualize, [np.zeros(8, np.float32), x])
    assert [node.label for node in new.locals] == []
    text = after(virtualize, "u[i] = f16(x[i] * 3)\ny[i] = u[i] + 1", y="f32[8]", x="f32[8]")
    assert "f16(x[i] * 3.0)" in text


KEPT = [
    ("u[i] = x[i]\nfor s in range(3):\n    w[i] = u[i] * 2\n    u, w = w, u\ny[i] = u[i]",
     "u", None),
    ("u[i] = x[i] * 2\nprint(u[3])", "u", StoredReason.PRINTED),
    ("u: f32[8]\nfor s in range(3):\n    y[i] = u[i]\n    u[i] = x[i] + s",
     "u", StoredReason.ELSEWHERE),
    ("u[i] = x[i] * 2\nx[i] = 0\ny[i] = u[i]", "u", StoredReason.CHANGED),
    ("u[i] = x[i] * 2\nx[1:] = u[:-1]", "u", StoredReason.CHANGED),
    ("u[i] = x[i] * 2\ny[i] = u[p[i]]", "u", StoredReason.UNKNOWN_POINT),
    ("u[i] = x[i] * 2\nu[1:] = u[1:] + 1\ny[i] = u[i]", "u", StoredReason.SEVERAL),
    ("u[i] = x[i] * 2\ny[i] = u[i]\nu[0] = 1\nx[i] = u[i]", "u", StoredReason.ELSEWHERE),
    ("u: f32[8]\nfor s in range(3):\n    u[1:] = x[1:]\n    y[i] = u[i]", "u",
     StoredReason.UNWRITTEN),
    ("u: f32[8]\nfor s in range(8):\n    u[0] = x[s]\ny[i] = u[i]", "u",
     StoredReason.UNKNOWN_POINT),
    ("u: f32[8]\nu[::2] = x[::2]\nu[1::2] = 1\ny[i] = u[i]", "u", StoredReason.UNKNOWN_POINT),
    ("u: f32[10]\nu[1:9] = x\ny[:] = u[:-2] + u[2:]", "u", StoredReason.COSTLY),
    ("u[i] = exp(x[i])\ny[i] = u[i] * u[i] + u[i]", "u", StoredReason.COSTLY),
    ("u[i] = exp(x[i])\ny[i] = sum[j](u[i] * a[i, j])", "u", StoredReason.COSTLY),
]  # fmt: skip
ARRAYS = {"y": "f32[8]", "x": "f32[8]", "p": "i64[8]", "a": "f32[8, 9]"}


@pytest.mark.parametrize(("body", "label", "reason"), KEPT, ids=[b for b, _, _ in KEPT])
def test_kept_for_a_reason(body: str, label: str, reason: StoredReason | None) -> None:
    program, decisions = virtualize(lowered(body, **ARRAYS))
    assert label in [node.label for node in program.locals]
    found = {made.reason for made in decisions if made.node and made.node.label == label}
    assert reason is None or found == {reason}


def test_a_value_that_keeps_other_arrays_alive_stays() -> None:
    body = "s[i] = sum(a[i, j])\nu[i] = s[i] / 3\ny[i, j] = u[i] * a[i, j]"
    _, decisions = virtualize(lowered(body, y="f32[8, 9]", a="f32[8, 9]"))
    assert StoredReason.ALIVE in [made.reason for made in decisions]


def test_no_expression_grows_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["u0[i] = x[i] + x[i]"] + [f"u{n}[i] = u{n - 1}[i] + u{n - 1}[i]" for n in range(1, 9)]
    body = "\n".join(lines) + "\ny[i] = u8[i]"
    program, decisions = virtualize(lowered(body, y="f32[8]", x="f32[8]"))
    reasons = [made.reason for made in decisions]
    assert StoredReason.LONG in reasons or StoredReason.COSTLY in reasons
    sizes = map(module._largest_expression, program.kernels[0].body)
    assert all(size <= thresholds.MAX_INLINED_NODES for size in sizes)
    assert set(reasons) & {VirtualReason.CHEAP, VirtualReason.ONCE}


def reason_of(body: str, label: str, **arrays: str) -> list[StoredReason | VirtualReason]:
    """Return why a node was decided as it was, after a run that shows that nothing else changed."""
    before = lowered(body, **arrays)
    rng = np.random.default_rng(7)
    given = [rng.random(np.shape(array(spec)), dtype=np.float32) for spec in arrays.values()]
    assert_agrees(before, virtualize, given)
    made = virtualize(before).decisions
    return [one.reason for one in made if one.node is not None and one.node.label == label]


FEW = {"y": "f32[8]", "z": "f32[8]", "x": "f32[8]", "a": "f32[8, 9]", "b": "f32[8, 9]"}


@pytest.mark.parametrize("asked", [False, True])
def test_a_cell_that_is_read_under_a_test_and_without_is_guarded(asked: bool) -> None:
    body = "u: f32[8]\nu[2:] = exp(x[2:])\n" + "memory(u, 'virtual')\n" * asked
    body += "for k in range(8):\n    y[k] = u[k] if k > 2 else 5\n    z[k] = u[k]"
    reasons = reason_of(body, "u", **FEW)
    assert reasons == [VirtualReason.ASKED if asked else StoredReason.COSTLY]


@pytest.mark.parametrize("size", ["known", "of the run"])
def test_only_arrays_of_known_size_start_as_zero(size: str) -> None:
    i, j, n = symbols("i j n")
    extent = const(8) if size == "known" else var(n)
    y, x, given = node(0, "y", 8), node(1, "x", 8), node(2, "size", dtype=i64)
    u = node(3, "u", extent)
    some = For(i, const(0), extent - 1, 1, (Store(at(u, i), read(x, i)),))
    use = For(j, const(0), extent, 1, (Store(at(y, j), read(u, j)),))
    made = program((y,), (x, given), Let(n, read(given)), Alloc(u), some, use, local=(u,))
    (decision,) = virtualize(made).decisions
    assert decision.reason == (VirtualReason.ONCE if size == "known" else StoredReason.UNWRITTEN)


@pytest.mark.parametrize("half", ["y[:4] = u[:4]", "y[4:] = u[4:]"])
def test_what_is_used_just_behind_its_last_layer_may_keep_others(half: str) -> None:
    body = "s[i] = sum(a[i, j])\nt[i] = sum(b[i, j])\nu: f32[8]\n"
    body += f"u[:4] = s[:4] * t[:4]\nu[4:] = s[4:] - t[4:]\n{half}"
    assert reason_of(body, "u", **FEW) == [VirtualReason.ONCE]


TWO = "s[i] = sum(a[i, j])\nt[i] = sum(b[i, j])\nu[i] = s[i] * t[i]\n"
HALVES = "u: f32[8]\nu[:4] = x[:4]\nu[4:] = exp(x[4:])\n"
CHOSEN = [
    ("u: f32[8]\nu[3] = exp(x[3])\ny[0] = u[3]", VirtualReason.ONCE),
    ("u: f32[8]\nu[3] = exp(x[3])\ny[0] = u[3]\nz[0] = u[3]", StoredReason.COSTLY),
    ("u: f32[8]\nu[8:] = exp(x[8:])\ny[8:] = u[8:]", VirtualReason.ONCE),
    (HALVES + "y[4:] = u[4:]\nz[4:] = u[4:]", VirtualReason.ONCE),
    (HALVES + "for k in range(3):\n    y[:4] = u[:4]\n    z[4:] = u[4:]", StoredReason.COSTLY),
    (
        "h = sum(x[i])\ng = sum(z[i])\nu[i] = x[i] * h * g\nz[i] = 1\ny[i] = u[i]",
        VirtualReason.ONCE,
    ),
    ("for k in range(3):\n    u[i] = x[i] * 2\n    y[i] += u[i]\nx[0] = 1", VirtualReason.ONCE),
    (TWO + "y[:4] = u[:4]\nx[4:] = u[4:]", StoredReason.ALIVE),
    ("u[i] = x[i] * 2\nmemory(u, 'local')\ny[i] = u[i]", StoredReason.ASKED),
    ("v: f32[8]\nv[0] = 1\nu[i] = x[i] * 2\nv[1:] = u[1:]\ny[i] = v[i]", StoredReason.SPREAD),
    (TWO + "z[i] = sum[j](a[i, j] * j)\ny[i] = u[i]", StoredReason.ALIVE),
    (TWO + "z[i] = sum[j](a[i, j] * j)\ny[i] = u[i] + s[i] * t[i]", VirtualReason.ONCE),
]


@pytest.mark.parametrize(("body", "reason"), CHOSEN)
def test_what_it_costs_decides(body: str, reason: StoredReason | VirtualReason) -> None:
    assert reason_of(body, "u", **FEW) == [reason]


def test_what_another_kernel_reads_stays() -> None:
    whole = lowered("u[i] = x[i] * 2\ny[i] = u[i]\nz[i] = u[i]", **FEW)
    (kernel,) = whole.kernels
    parts = kernel.body[:-1], kernel.body[-1:]
    apart = replace(whole, kernels=tuple(replace(kernel, body=part) for part in parts))
    assert virtualize(apart) == (apart, ())
    assert virtualize(whole).program.locals == ()


def test_an_expression_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "u[i] = x[i] * 2 + 1\ny[i] = u[i] + z[i] * z[i]\nz[i] = u[i]"
    sizes = [
        module._largest_expression(stmt)
        for stmt in virtualize(lowered(body, **FEW)).program.kernels[0].body
    ]
    for limit, reason in ((max(sizes), VirtualReason.CHEAP), (max(sizes) - 1, StoredReason.LONG)):
        monkeypatch.setattr(thresholds, "MAX_INLINED_NODES", limit)
        assert reason_of(body, "u", **FEW) == [reason]


def test_a_fill_in_trip_count_is_seen() -> None:
    i, j, k = symbols("i j k")
    y, x, u = node(0, "y", 8), node(1, "x", 8), node(2, "u", 8)
    some = For(i, const(2), const(5), 1, (Store(at(u, i), read(x, i)),))
    again = For(k, const(0), const(3), 1, (Fill(u, num(2.0)),))
    use = For(j, const(0), const(8), 1, (Store(at(y, j), read(u, j)),))
    made = program((y,), (x,), Fill(u, num(1.0)), some, again, use, local=(u,))
    given = [np.zeros(8, np.float32), np.arange(8, dtype=np.float32)]
    assert assert_agrees(made, virtualize, given) == made


LONG = "for j in range(n - 4):\n    y[j] = t[0]\n"


@pytest.mark.parametrize("uses", ["a = t[0]\n" + LONG, LONG + "a = t[0]\n"])
def test_a_loop_around_one_use_says_nothing_about_another(uses: str) -> None:
    body = "n = len(y)\nt = np.zeros(20)\nt[: n // 4] = x[0]\n" + uses + "return a\n"
    text = "def f(x, y):\n" + textwrap.indent(body, "    ")
    plain: dict[str, object] = {"np": np}
    exec(text, plain)
    function = pe.cd_from_source(text, {"np": np})
    for size in (8, 9, 10, 11, 12, 5, 4, 3, 2):  # of any size from the fourth on
        runs = []
        for run in (plain["f"], function):
            x, y = np.array([1.5, 2.0]), np.zeros(size)
            runs.append((run(x, y), y.tolist()))  # type: ignore[operator]
        assert runs[0] == runs[1]
