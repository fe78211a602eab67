"""Every tuned constant of the schedules is drawn by the hunts, or kept for a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from plusequals.backends.cc import cpu_info
from plusequals.lowering import thresholds

from .thresholds import CHOICES, KEPT, ROOT, constants, home, lowered

CHECKOUT = Path(__file__).resolve().parents[2]


def test_each_constant_is_drawn_or_kept_for_a_reason_and_none_is_both() -> None:
    named = [*CHOICES, *(name for names in KEPT.values() for name in names)]
    assert sorted(set(named)) == sorted(named), "a constant is named twice"
    there = set(constants())
    missing = sorted(there - set(named))
    assert not missing, f"add these to CHOICES or KEPT of tests/programs/thresholds.py: {missing}"
    assert not sorted(set(named) - there), "these are gone: take them out of the table"


def test_what_is_drawn_is_tuned() -> None:
    schedules = [key for key in CHOICES if key.startswith("lowering.")]
    assert not schedules, (
        f"a tuned constant of a schedule belongs into lowering.thresholds: {schedules}"
    )


def test_nobody_imports_a_constant_by_name_so_that_one_place_sets_it() -> None:
    drawn = {(f"plusequals.{module}", name) for module, _, name in map(_split, CHOICES) if module}
    inside = "plusequals.lowering.thresholds"
    wrong = [
        f"{path.relative_to(CHECKOUT)}:{line} imports {name} of {module}"
        for path in _importing()
        for line, module, name in _imports(path)
        if f"{module}.".startswith(f"{inside}.") or (module, name) in drawn
    ]
    assert not wrong, "read it as an attribute of its module: " + "\n".join(wrong)


def _split(key: str) -> tuple[str, str, str]:
    return key.rpartition(".")


def _importing() -> Iterator[Path]:
    """Yield the files that may read constants, but for those that collect them."""
    for folder in ("lowering", "backends", "dsl", "plusequals/base", "tests", "benchmarks"):
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            if path.parent != CHECKOUT / "lowering" / "thresholds":
                yield path


def _imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield each name that a file imports from a module: the line, the module, the name."""
    parts = path.relative_to(CHECKOUT).parts
    package = parts if parts[0] in ("tests", "benchmarks", "plusequals") else ("plusequals", *parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            for alias in node.names:
                yield node.lineno, module, alias.name


def test_a_drawn_value_is_set_where_it_is_read_and_comes_back() -> None:
    before = {key: getattr(*home(key)) for key in CHOICES}
    target, seen = cpu_info.target(), set()
    for seed in range(1, 9):
        with lowered(seed):
            drawn = {key: getattr(*home(key)) for key in CHOICES}
            assert all(drawn[key] in choices for key, choices in CHOICES.items())
            now = cpu_info.target()
            assert 64 <= now.l1_bytes <= now.l2_bytes <= now.l3_bytes <= 1 << 16
            seen.add((thresholds.BLOCK_THREADS, thresholds.MAX_PRIVATE_BYTES, now.vector_bits))
    assert {key: getattr(*home(key)) for key in CHOICES} == before
    assert cpu_info.target() == target
    assert len(seen) > 4


def test_the_seed_zero_changes_nothing() -> None:
    before = constants()
    with lowered(0):
        assert constants() == before
    assert constants() == before


def test_each_constant_says_what_it_is() -> None:
    silent = [
        f"{path.name}: {statement.targets[0].id}"
        for path in sorted((ROOT / "lowering" / "thresholds").glob("*.py"))
        for statement, behind in _pairs(ast.parse(path.read_text(encoding="utf-8")).body)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        if not (isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant))
    ]
    assert not silent, f"add the unit and what it trades off: {silent}"


def _pairs(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    return zip(body, [*body[1:], None], strict=True)
