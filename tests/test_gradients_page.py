"""docs/gradients.md says what is: its examples, one after another, give what it shows.

`--update-golden` writes what the examples give into the page instead of comparing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gradients.md"


def test_the_examples_give_what_is_shown(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = page.filled(text, kept={})
    if request.config.getoption("--update-golden"):
        PAGE.write_text(found, encoding="utf-8")
        return
    assert found == text
    assert len(page.examples(text)) == text.count("```python\n")
