"""Pages whose examples, one after another, give what they show.

`--update-golden` writes what the examples give into a page instead of comparing it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import page

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize("name", ["trace", "gradients"])
def test_the_examples_give_what_is_shown(name: str, request: pytest.FixtureRequest) -> None:
    path = DOCS / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    found = page.filled(text, kept={})
    if request.config.getoption("--update-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert found == text
    assert len(page.examples(text)) == text.count("```python\n")
