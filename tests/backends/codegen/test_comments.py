"""Comments of generated code: one for a nest, none for scalars; branches and tests read plainly."""

from __future__ import annotations

import doctest

import numpy as np

import plusequals as pe
from plusequals.backends.codegen import comments
from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.comments import visible_comments
from plusequals.base.diagnostic import Source, Span
from plusequals.lowering.ir.loops import Comment
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

SEARCH = """\
def f(y, x, k):
    low = x[0] * 2
    with comment("the search"):
        for i in range(len(x)):
            at = 0
            if x[i] > low:
                at = 1
            elif x[i] > 0:
                at = 2
            elif x[i] > -1:
                at = 3
            y[i] = at
    y[k] += 1.0 - low
"""


BRANCHES = """\
def f(y, x, k):
    for i in range(1, len(x)):
        if x[i] > 2:
            y[k[i]] = y[i - 1]
        elif x[i] > 1:
            y[i] = y[i - 1] * 2
        elif x[i] > 0:
            y[0] = y[k[i]]
"""


def body_of(text: str, *arguments: object) -> str:
    """Return the functions of the C text of a function for such arguments."""
    procedure = pe.cd_from_source(text, {"np": np}).procedure(*arguments)
    source = print_program(*optimize(lower(procedure), Target(schedule=True)))
    return source.text.split("\n", source.above)[-1]


def test_scalars_have_no_comment_and_blocks_have_theirs() -> None:
    text = body_of(SEARCH, np.zeros(9), np.zeros(9), np.int64(1))
    found = [line.strip() for line in text.splitlines() if line.lstrip().startswith("/*")]
    assert found == [
        "/* the search */", "/* y[i] = at */", "/* end the search */", "/* y[k] += 1.0 - low */",
    ]  # fmt: skip


def test_branches_are_chained_and_checks_have_the_opposite_test() -> None:
    text = body_of(BRANCHES, np.zeros(9), np.zeros(9), np.zeros(9, np.int64))
    assert text.count("} else if (") == 2 and "} else {" not in text
    several = "def f(y, x):\n    y[i] = x[i] if i < 3 else 0.0\n    assert len(y) > x[0], 'no'\n"
    assert "if (!(9.0 > x[0]))" in body_of(several, np.zeros(9), np.zeros(9))  # it may be NaN
    whole = (
        "def f(y, k):\n    assert k[0] == 4, 'no'\n    assert 3 <= k[1], 'no'\n    y[i] = k[2]\n"
    )
    checks = body_of(whole, np.zeros(9), np.zeros(9, np.int64))
    assert "if (k[0] != 4)" in checks and "if (k[1] < 3)" in checks


def test_what_a_nest_comes_from_is_said_once() -> None:
    assert doctest.testmod(comments).failed == 0
    span = Span(Source("f.py", 1, "a = b\n"), 1, 0, 1, 5)
    headed = Comment("a = b", span)
    assert visible_comments((headed,), "") == frozenset()
    assert visible_comments((Comment("a block"), headed), "") == {0}
    text = body_of("def f(y, x):\n    y[i] = x[i] / sum[j](x[j])\n", np.zeros(9), np.zeros(9))
    assert text.count("/* y[i] = x[i] / sum[j](x[j]) */") == 1


def test_a_negative_term_follows_its_constant() -> None:
    text = body_of("def f(y, x):\n    y[i] = x[8 - i] + -3.0\n", np.zeros(9), np.zeros(9))
    assert "x[8 - i] - 3.0" in text
