"""Where a definition ends: told by indentation where that is enough, else by tokens."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from plusequals.dsl.source import definition_blocks

AFTER = "after = 1\n"
BLOCKS = {
    "plain": "def f(x):\n    return x\n",
    "decorated": "@cd\n@other(\n    1,\n)\ndef f(x):\n    y = x\n\n    return y\n",
    "a comment at the margin": "def f(x):\n    y = x\n# here\n    return y\n",
    "a text at the margin": 'def f(x):\n    """One\ntwo.\n    """\n    return x\n',
    "brackets at the margin": "def f(\n    x,\n):\n    return (\n  x\n)\n",
    "a line that goes on": "def f(x):\n    y = x + \\\n1\n    return y\n",
    "one line": "def f(x): return x\n",
    "asynchronous": "async def f(x):\n    return x\n",
    "a definition inside": "def f(x):\n    def g(y):\n        return y\n    return g(x)\n",
}


@pytest.mark.parametrize("indent", ["", "    ", "\t"])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_definition_is_found_whatever_ends_it(name: str, indent: str) -> None:
    text = BLOCKS[name] if indent == "" else textwrap.indent(BLOCKS[name], indent)
    if indent and "margin" in name and name != "a comment at the margin":
        text = text.replace(f"{indent}two.", "two.").replace(f"{indent}):", "    ):")
    lines = ["x = 2\n", *text.splitlines(keepends=True), indent + AFTER]
    trees = list(definition_blocks.parse_candidates(lines, 2))
    whole = ast.parse("if 1:\n" + text if indent else text).body
    expected = whole[0].body if indent and isinstance(whole[0], ast.If) else whole
    assert trees and all(ast.dump(one) == ast.dump(two) for one, two in zip(trees[0], expected))
    assert [tree[0].end_lineno for tree in trees] == [1 + len(text.splitlines())] * len(trees)


def test_tokens_are_read_only_where_indentation_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspect, "getblock", None)
    lines = ["def f(x):\n", "    return x\n", AFTER]
    (tree,) = next(definition_blocks.parse_candidates(lines, 1))
    assert (tree.lineno, tree.end_lineno) == (1, 2)


def test_what_is_no_definition_yields_nothing() -> None:
    assert list(definition_blocks.parse_candidates(["def f(:\n", "    pass\n"], 1)) == []
    assert definition_blocks.parse_file(["def f(:\n"]).body == []
