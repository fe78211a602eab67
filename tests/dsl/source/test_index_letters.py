"""Names that are index letters stay so, whatever a loop around the function binds later."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.source import index_letters
from plusequals.dsl.source.function_source import MISSING, source_from_text
from plusequals.dsl.source.parse import parse

HEAD = """\
import numpy as np
from plusequals import cd
from plusequals.idx import j as column

x, y = np.arange(3.0), np.zeros(3)
"""


def module(folder: Path, text: str) -> ModuleType:
    """Return a module that is made of a text."""
    path = folder / "program.py"
    path.write_text(HEAD + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    with pe.override("numpy"):
        spec.loader.exec_module(made)
    return made


def test_a_loop_at_the_top_of_a_module_leaves_letters_alone(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        """
        @cd
        def step(y, x):
            y[i] += x[i]

        @cd
        def total(y, a):
            y[0] += a[column, k]

        @cd
        def shifted(x):
            return x[k:] * k

        for i in range(3):
            step(y, x)
        for i in range(3):
            step(np.zeros(4), np.zeros(4))  # of another size: compiled when `i` is a number
        text, page = str(step.explain(y, x)), step.on("cc").procedure(y, x)
        s = np.zeros(1)
        for column in range(2):
            for k in range(2):
                total(s, np.ones((2, 3)))
        parts = []
        for k in range(3):
            parts.append(shifted(x))
        """,
    )
    assert made.y.tolist() == [0.0, 3.0, 6.0] and made.s.tolist() == [24.0]
    assert [part.tolist() for part in made.parts] == [[0.0, 0.0, 0.0], [1.0, 2.0], [4.0]]
    assert pe.compare(made.step, (made.y, made.x)) is not None


def test_a_number_is_no_letter_where_it_is_bound_before_or_assigned(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        """
        for before in range(2):
            i = before

        @cd
        def bound(y, x):
            y[i] = x[i]

        @cd
        def assigned(y, x):
            y[m] = x[m]

        def outer(after):
            @cd
            def inner(y, x):
                y[p] = x[p] + after
            if after:
                p = 3
            return inner

        def later():
            global m
            m = 3

        assigned(y, x)
        """,
    )
    with pe.override("numpy"):
        made.assigned(made.y, made.x)
        made.outer(0)(made.y, made.x)
        made.later()
        for f in (made.bound, made.assigned, made.outer(1)):
            with pytest.raises(CdError, match="CD0203"):
                f(made.y, made.x)
    assert made.y.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "bound", ["np.array([0, 2])", "slice(1, 3)", "(1,)", "'a'", "None", "True", "1.5", "open", "np"]
)
def test_what_a_loop_binds_is_not_looked_at(tmp_path: Path, bound: str) -> None:
    made = module(
        tmp_path,
        f"""
        @cd
        def step(y, x):
            y[i] = 2 * x[i]

        step(y, x)
        for i in [{bound}]:
            step(y, x + 1)
        """,
    )
    assert made.y.tolist() == [2.0, 4.0, 6.0]


def test_a_number_that_is_assigned_later_is_refused_wherever_it_is_used(tmp_path: Path) -> None:
    made = module(
        tmp_path,
        """
        @cd
        def shift(y, x):
            if m > 0:
                y[m] = x[m - 1]

        shift(y, x)
        m = 0
        """,
    )
    assert made.y.tolist() == [0.0, 0.0, 1.0]
    with pe.override("numpy"), pytest.raises(CdError, match=r"CD0203.*the number 0(.*\n)*.*m > 0"):
        made.shift(made.y, made.x)


def test_compiled_forms_notice_what_a_namespace_binds() -> None:
    names: dict[str, object] = {}
    f = pe.cd_from_source("def f(y, x):\n    y[i] = x[i]", names, backend="numpy")
    y = np.zeros(2)
    f(y, np.ones(2))
    names["i"] = 1
    with pytest.raises(CdError, match="CD0203"):
        f(y, np.ones(2))
    del names["i"]
    f(y, np.full(2, 2.0))
    assert y.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("for i in range(3): f()", ""),
        ("with open('a') as i: f()", ""),
        ("print([i for i in x])", ""),
        ("x[i] = k == 3", ""),
        ("def g():\n    i = 3", ""),
        ("i = 3", "i"),
        ("i, k = 3, 4", "ik"),
        ("a = (i, (k, b)) = 3, (4, 5)", "ik"),
        ("if a:\n    i: int = 3", "i"),
        ("for k in range(3):\n    i += k", "i"),
        ("while (i := f()): pass", "i"),
        ("def k(): pass", "k"),
        ("import a as i", "i"),
        ("def g():\n    global i\n    i = 3", "i"),
        ("for i in x: pass\nfor k in x: k = 3", "k"),
    ],
)
def test_what_a_text_assigns_is_told_from_what_its_loops_bind(text: str, plain: str) -> None:
    lines = text.splitlines(keepends=True)
    found = index_letters.assigned_names({"i": MISSING, "k": MISSING}, [[], lines], 1)
    assert found == frozenset(plain)


def test_names_that_stand_alone_in_a_subscript() -> None:
    text = "def f(y, x):\n    y[i, j + 1] = sum[r](x[r, s:]) if z[q[w]] else x[v](u)"
    assert index_letters.subscript_names(parse(source_from_text(text))) == set("irwv")
