"""docs/architecture.md says what is: its examples, one after another, give what it shows.

`--update-golden` writes what they give into the page instead of comparing it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from . import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"


def test_the_examples_give_what_is_shown(request: pytest.FixtureRequest) -> None:
    kept: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    filled = page.filled(text, kept)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(filled, encoding="utf-8")
        return
    assert filled == text
    assert len(page.examples(text)) == text.count("```python\n")


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|c))?)`", PAGE.read_text(encoding="utf-8")))
    root = PAGE.parent.parent
    homes = (root, root / "dsl", root / "lowering", root / "backends", root / "plusequals")
    assert len(named) > 20
    assert [n for n in sorted(named) if not any((home / n).exists() for home in homes)] == []
