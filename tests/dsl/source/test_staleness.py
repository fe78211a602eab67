"""Text that is not what was run is noticed; code that import hooks rewrote is not taken for it."""

import ast
import importlib
import os
import sys
import types
from pathlib import Path

import pytest

from plusequals.base.diagnostic import CdSyntaxError
from plusequals.dsl.source.function_source import read_source
from plusequals.dsl.source.staleness import is_stale


def returned(function: object) -> str:
    """The text of what `function` returns."""
    found = read_source(function)
    last = found.tree.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    return found.span(last.value).text


def test_another_tree() -> None:
    def f(x):
        return x + 1

    assert not is_stale(f, ast.parse("def f(x):\n    return x + 1").body[0])
    assert is_stale(f, ast.parse("def f(x):\n    return x + 1.0").body[0])


def test_mangled_names_are_not_taken_for_an_edit() -> None:
    class Model:
        def step(self):
            return self.__secret

    assert returned(Model.step) == "self.__secret"


def test_function_under_the_import_hook_of_typeguard(tmp_path: Path, monkeypatch) -> None:
    typeguard = pytest.importorskip("typeguard")
    text = (
        "import functools\n\n"
        "def plain(x: int) -> int:\n    y: int = x + 1\n    return y * 2\n\n"
        "class Model:\n    def step(self, x: int) -> int:\n        return x * 3\n"
    )
    (tmp_path / "hooked.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with typeguard.install_import_hook(["hooked"]):
        hooked = importlib.import_module("hooked")
    sys.modules.pop("hooked")
    with pytest.raises(typeguard.TypeCheckError):
        hooked.plain("text")
    assert returned(hooked.plain) == "y * 2"
    assert returned(hooked.Model.step) == "x * 3"


def test_function_with_rewritten_asserts_is_not_taken_for_an_edit() -> None:
    def f(x):
        assert x > 0, "positive"
        return x + 1

    assert returned(f) == "x + 1"


@pytest.mark.parametrize(
    "edited",
    [
        "def f(x):\n    return x + 2\n",  # another constant
        "def f(x):\n    return x - 1\n",  # another operator
        "def f(y):\n    return y + 1\n",  # another name
        "import os\ndef f(x):\n    return x + 1\n",  # moved
        "def g(x):\n    return x + 1\n",  # gone
        "def f(x:\n",  # not Python at the moment
        "\n",
    ],
)
def test_file_edited_after_import(module, edited: str) -> None:
    loaded = module("def f(x):\n    return x + 1\n")
    assert returned(loaded.f) == "x + 1"
    path = Path(loaded.__file__)
    path.write_text(edited)
    os.utime(path, (1, 1))  # a change of time that `linecache` notices within one tick
    with pytest.raises(CdSyntaxError) as caught:
        read_source(loaded.f)
    assert caught.value.code == "CD0102"
    assert "edited since it was imported" in str(caught.value)


def test_edit_elsewhere_in_the_file_is_harmless(module) -> None:
    loaded = module("def f(x):\n    return x + 1\n")
    path = Path(loaded.__file__)
    path.write_text("def f(x):\n    return x + 1  # faster now\n\ndef g(): pass\n")
    os.utime(path, (1, 1))
    assert returned(loaded.f) == "x + 1"


def test_modules_of_the_standard_library_are_not_taken_for_edited() -> None:
    functions = [
        value
        for value in vars(ast).values()
        if isinstance(value, types.FunctionType) and value.__module__ == "ast"
    ]
    names = [read_source(function).name for function in functions]
    assert names == [function.__code__.co_name for function in functions]
