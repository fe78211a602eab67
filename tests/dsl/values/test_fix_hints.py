"""What to type instead of work at each point names the function that was called."""

from __future__ import annotations

import pytest

from plusequals.dsl.values.fix_hints import before_the_points


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("np.median(x[i])", "`t = np.median(...)`"),
        ("helper(x[i])", "`t = helper(...)`"),
        ("print(v)", "for t in range(n):"),
        ("assert v > 2", "for t in range(n):"),
    ],
)
def test_the_function_that_was_called_is_named(text: str, offered: str) -> None:
    assert offered in before_the_points(text)[0]
