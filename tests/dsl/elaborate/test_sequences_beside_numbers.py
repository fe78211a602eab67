"""Lists, tuples and ranges beside numbers and arrays: compared and combined as Python does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

X = np.arange(4.0)
CASES: list[tuple[str, tuple[Any, ...]]] = [
    *(
        (text, ())
        for text in (
            "range(3) == np.int64(2)", "range(2) != np.float64(1)", "range(3) < np.int64(2)",
            "np.int64(2) >= range(3)", "range(3) == 3", "range(3) == range(3)", "(1, 2) == None",
            "(1, 2) == np.int64(1)", "(1, 2) == 'a'", "[1, 2] == True", "range(3) + [1]",
            "[1, 2] + range(2)", "[1, 2] * range(2)", "range(2) - [1, 2]", "range(2) * (1, 2)",
            "(1, 2) + range(2)", "range(3) - range(3)", "range(3) + np.int64(1)",
            "range(2) == [0, 1]", "(0, 1) != range(2)",
        )
    ),
    *((f"range(3) {op} a", (np.int64(2),)) for op in ("==", "!=", "<", "+", "*")),
    *((f"a[:3] {op} range(3)", (X,)) for op in ("==", "<", "+")),
    *((f"range(3) {op} a", (3,)) for op in ("==", "!=", "<", "+", "*")),
    *(
        (text, (number,))
        for text in ("(1, 2) == a", "a == (1, 2)", "(1, 2) < a", "[1, 2] != a", "(a, 2) == a")
        for number in (1, 1.5, True, np.int64(1), np.float64(2))
    ),
    *((text, (X,)) for text in (
        "[a[0], 2.0] == 1", "[a[0], 2.0] == a[1]", "[a[0], 2.0] < 1", "[a[0], 1] * range(2)",
        "a[:2] == (0, 1)",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given"), CASES)
def test_the_value_is_python_s_or_both_refuse(
    text: str, given: tuple[Any, ...], backend: str
) -> None:
    source = f"def f({'a' if given else ''}):\n    return {text}\n"
    plain: dict[str, Any] = {"np": np}
    exec(source, plain)
    compiled = pe.cd_from_source(source, {"np": np}, backend=backend)
    try:
        wanted = plain["f"](*given)
    except TypeError:
        with pytest.raises(TypeError):
            compiled(*given)
        return
    found = compiled(*given)
    assert type(found) is type(wanted) and np.array_equal(found, wanted)
