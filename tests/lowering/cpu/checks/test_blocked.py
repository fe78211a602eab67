"""Checks of many rounds at once: the same error, of the same round, and only where it may be."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.checks.blocked import block_checks
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, of_any_size, scheduled
from ...shown import lowered

TARGET = Target(schedule=True)
BODIES = {
    "a look": "y[i] = x[k[i]]",
    "two looks": "y[i] = z[k[i], m[i]]",
    "what is added to": "y[k[i]] += 1",
    "a shifted one": "y[i] = x[k[i] + 1]",
    "rows": "w[i, j] = x[k2[i, j]]",
    "what is looked up is looked up": "y[i] = x[k[m[i]]]",
}
WRONG = [None, (7, 0), (1023,), (1024, 5), (2049,)]


def arrays(dtype: str, wrong: tuple[int, ...] | None, size: int = 2050) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    k, m = (rng.integers(0, 5, size).astype(dtype) for _ in range(2))
    for at, value in zip(wrong or (), (99, -3), strict=False):
        k[at % size] = value
        m[-1 - at % size] = -value
    given = {"k": k, "m": m, "k2": np.stack([m, k]), "x": rng.random(7), "y": np.zeros(size)}
    return given | {"z": rng.random((6, 6)), "w": np.zeros((2, size))}


def made(body: str) -> tuple[Any, list[str]]:
    names = [name for name in ("k", "m", "k2", "x", "y", "z", "w") if f"{name}[" in body]
    return function(f"def f({', '.join(names)}):\n    {body}\n"), names


def ran(f: Any, arrays: list[Any]) -> list[Any]:
    f(*arrays)
    return arrays


def outcome(run: Any) -> Any:
    """What a run gives: bytes, or the text of its error."""
    try:
        return [one.tobytes() for one in run()]
    except CdError as problem:
        return str(problem)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "i8") for name in BODIES), ("a look", "i4"), ("a look", "u1")]
)
def test_the_same_check_fails(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, names = made(BODIES[name])
    for size in (2050, 3):
        for wrong in WRONG if dtype != "u1" else WRONG[:1]:
            given = [arrays(dtype, wrong, size)[name] for name in names]
            found = []
            for block in (10, 1 << 40):
                monkeypatch.setattr(thresholds, "CHECKED_BLOCK_ITERATIONS", block)
                program = scheduled(f.procedure(*given), TARGET)
                found.append(outcome(partial(interpreted, program, *given)))
            assert found[0] == found[1]
            told = wrong is not None and name in ("a look", "two looks", "rows")
            assert isinstance(found[0], str) or not told


@pytest.mark.parametrize("name", BODIES)
def test_c_says_the_same_on_any_number_of_threads(name: str) -> None:
    f, names = made(BODIES[name])
    for wrong in WRONG:
        given = [arrays("i8", wrong, 70_000)[name] for name in names]
        found = []
        for threads, schedule in ((1, False), (1, True), (2, True), (7, True)):
            mine = [one.copy() for one in given]
            with settings.override(threads=threads, schedule=schedule, parallel_from=1):
                found.append(outcome(partial(ran, f.on("cc"), mine)))
        assert all(one == found[0] for one in found)


def test_sizes_of_the_run_are_bounds_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "CHECKED_BLOCK_ITERATIONS", 4)
    f, names = made(BODIES["a look"])
    for wrong in ((), (3,), (8,)):
        given = [arrays("i8", wrong, 9)[name] for name in names]
        program = scheduled(f.procedure(*given), TARGET)
        fixed = outcome(partial(interpreted, program, *given))
        program = scheduled(of_any_size(f, *given), TARGET)
        assert any(node.label == "k_least" for node in program.locals)
        assert outcome(partial(interpreted, program, *given)) == fixed


STAYS = {
    "few": ("y[i] = x[k[i]]", 1000, True),
    "what is no number of rounds": ("y[i] = x[k[i]]", 1024, False),
    "a test of reals": ("for i in range(2000):\n    assert x[i] > 0", 2000, True),
    "what a check before allows": (
        "for i in range(2000):\n    assert m[i] < 5\n    assert k[m[i]] < 5", 2000, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_one_by_one(name: str) -> None:
    body, size, stays = STAYS[name]
    program: Program = lowered(
        body, y=f"f64[{size}]", x=f"f64[{size}]", k=f"i64[{size}]", m=f"i64[{size}]"
    )
    assert (block_checks(program, TARGET) == (program, ())) == stays


def test_what_was_decided_is_told() -> None:
    program = lowered("y[i] = x[k[i]]", y="f64[2000]", x="f64[9]", k="i64[2000]")
    (told,) = block_checks(program, TARGET).decisions
    assert told.sentence() == (
        "the indices in `k` are checked for many iterations at once: "
        "the least and the greatest value tell whether one is out of bounds"
    )
