"""docs/language.md says what is: its examples give what it shows, and every rule has tests.

`--update-golden` writes what the examples give into the page instead of comparing it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.dsl.numpy import registry
from plusequals.dsl.numpy.primitives import grids

from . import page
from .language.rules import TESTS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def written(request: pytest.FixtureRequest) -> None:
    """Write the page anew where that was asked for."""
    if request.config.getoption("--update-golden"):
        with settings.override("numpy"):
            PAGE.write_text(page.filled(TEXT), encoding="utf-8")


@pytest.mark.parametrize("example", page.examples(PAGE.read_text(encoding="utf-8")), ids=repr)
def test_example_gives_what_is_shown(example: page.Example, backend: str) -> None:
    with settings.override(backend):
        code, text = page.run(example)
    assert code == example.code
    assert text == example.text


def test_every_rule_has_an_example() -> None:
    shown = {example.rule for example in page.examples(TEXT)}
    assert [rule for rule in page.rules(TEXT) if rule not in shown] == []


def test_no_example_is_left_out() -> None:
    assert len(page.examples(TEXT)) == TEXT.count("```python\n")


def test_every_rule_has_tests_and_every_entry_a_rule() -> None:
    assert sorted(TESTS) == sorted(page.rules(TEXT))
    assert all(TESTS.values())


@pytest.mark.parametrize("name", sorted({name for names in TESTS.values() for name in names}))
def test_the_tests_of_rules_are_there(name: str) -> None:
    file, test = name.split("::")
    assert test in _tests_in(file if "/" in file else f"tests/language/{file}")


@cache
def _tests_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_rules_that_are_mentioned_exist() -> None:
    titles = {f"{rule} {title}" for rule, title in page.rules(TEXT).items()}
    titles |= set(re.findall(r"^## (.+)$", TEXT, re.MULTILINE))
    anchors = {_anchor(title) for title in titles}
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", TEXT) if link not in anchors] == []


def _anchor(title: str) -> str:
    """Return what a heading is called in links, as Git hosts make it."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return kept.replace(" ", "-")


def test_every_function_of_numpy_is_listed() -> None:
    section = TEXT[TEXT.index("### X1 ") : TEXT.index("```python", TEXT.index("### X1 "))]
    lists = dict(re.findall(r"^\* ([\w ]+): `([^`]+)`", section, re.MULTILINE))
    methods = set(lists.pop("Methods").split())
    assert methods == {name for name, _ in registry.methods()}
    lists.pop("Attributes")
    names = [name for text in lists.values() for name in text.split()]
    assert len(set(names)) == len(names)
    assert set(names) == {*_functions(), "mgrid", "ogrid", "r_", "c_"}
    assert len(grids.SPECIAL) == 4


def _functions() -> set[str]:
    """Return the names of NumPy's functions in the table, without `np.`."""
    found = set()
    for function, _ in registry.handlers():
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc) or isinstance(function, type) and function is not np.ndarray:
            if function is not np.dtype:
                continue  # methods of ufuncs, and element types
        module = getattr(function, "__module__", None) or ""
        inner = module.startswith(("numpy.linalg", "numpy.lib."))
        prefix = module.removeprefix("numpy.") + "." if inner else ""
        found.add(prefix + str(getattr(function, "__name__", "")))
    return found
