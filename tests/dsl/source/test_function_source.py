"""Finding the text of a function, wherever it was written, and the names around it."""

import ast
import builtins
import functools
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from plusequals.base.diagnostic import CdSyntaxError, CdTypeError, Source
from plusequals.dsl.source.function_source import (
    MISSING,
    FunctionSource,
    read_source,
    scope_of,
    scope_of_namespace,
    source_from_text,
    span_of,
    unwrap_function,
)


def cd(function: object = None, **options: object) -> object:
    """Stand in for the real decorator, with and without options."""
    return function if function is not None else lambda inner: inner


def loud(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def call(*args: object) -> object:
        return function(*args)

    return call


def run_cell(text: str, filename: str, **names: object) -> dict[str, object]:
    """Run `text` as a notebook does: compiled under a name whose lines `linecache` knows."""
    lines = text.splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    namespace: dict[str, object] = {"cd": cd, "loud": loud, **names}
    exec(compile(text, filename, "exec"), namespace)
    return namespace


def returned(found: FunctionSource) -> str:
    """The text under the span of the value that the function returns."""
    tree = found.tree
    if isinstance(tree, ast.Lambda):
        return found.span(tree.body).text
    last = tree.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    return found.span(last.value).text


# -- where functions are written ------------------------------------------------------------------


def test_function_of_a_file() -> None:
    found = read_source(returned)
    assert found.name == "returned"
    assert found.source.name == __file__
    assert found.source.text.startswith("def returned(")
    assert returned(found) == "found.span(last.value).text"


def test_line_numbers_are_those_of_the_file() -> None:
    found = read_source(returned)
    span = found.span(found.tree)
    assert span.line == returned.__code__.co_firstlineno
    assert Path(__file__).read_text().split("\n")[span.line - 1].startswith("def returned(")


def test_nested_function_has_the_columns_of_the_file() -> None:
    if True:

        def inner(x):
            return x + 1

    found = read_source(inner)
    assert found.span(found.tree).column == 8
    assert returned(found) == "x + 1"


def test_method_and_bound_method() -> None:
    class Model:
        def step(self, x):
            return x * 2

        @classmethod
        def make(cls, x):
            return x * 3

        @staticmethod
        def free(x):
            return x * 4

    assert returned(read_source(Model.step)) == "x * 2"
    assert returned(read_source(Model().step)) == "x * 2"
    assert returned(read_source(Model.make)) == "x * 3"
    assert returned(read_source(Model.__dict__["free"])) == "x * 4"


def test_tabs(module) -> None:
    loaded = module("def outer():\n\tdef f(x):\n\t\treturn x  +  1\n\treturn f\nf = outer()\n")
    found = read_source(loaded.f)
    assert returned(found) == "x  +  1"
    assert found.span(found.tree).column == 1


@pytest.mark.parametrize(
    "decorators",
    [
        "@cd\n",
        "@functools.cache\n@cd\n",
        "@cd\n@functools.cache\n",
        "@cd(\n    a=1,\n    b=(2, 3),\n)\n@functools.cache\n# a comment\n@cd\n",
        "@cd(a=cd(lambda: 1), b=lambda x: x)\n",
    ],
)
def test_decorators(module, decorators: str) -> None:
    loaded = module(
        f"\n\n{decorators}def f(x):\n    return x + 1\n\ndef g(): pass\n",
        cd=cd,
        functools=functools,
    )
    found = read_source(loaded.f)
    assert isinstance(found.tree, ast.FunctionDef)
    assert returned(found) == "x + 1"
    assert found.source.text.startswith(decorators)
    assert found.source.first_line == 3


def test_line_ends_form_feeds_and_separators_do_not_shift_lines(module) -> None:
    loaded = module('a = "\u2028"\n\x0c\ndef f(x):\n    t = "\x1c\u2028 é"; return x + 1\n')
    found = read_source(loaded.f)
    assert found.span(found.tree).line == 3
    assert returned(found) == "x + 1"
    assert span_of(found.tree.body[-1], found.source).text == "return x + 1"


def test_text_is_kept_when_linecache_forgets() -> None:
    filename = "<ipython-input-3-abc>"
    namespace = run_cell("@cd\ndef f(x):\n    return x + 1\n", filename)
    found = read_source(namespace["f"])
    del linecache.cache[filename]
    assert returned(found) == "x + 1"


def test_notebook_cell() -> None:
    namespace = run_cell("y = 1\n@cd\ndef f(x):\n    return x + 1\n", "<ipython-input-3-abc>")
    found = read_source(namespace["f"])
    assert found.source.name == "<cell 3>"
    assert found.span(found.tree).place == "<cell 3>:3:1"
    assert returned(found) == "x + 1"


def test_prompt_of_python_3_13() -> None:
    namespace = run_cell("@cd\ndef f(x):\n    return x + 1\n", "<python-input-0>")
    assert returned(read_source(namespace["f"])) == "x + 1"


def test_async_function_is_found_for_parse_to_refuse() -> None:
    async def f(x):
        return x

    assert isinstance(read_source(f).tree, ast.AsyncFunctionDef)


# -- lambdas --------------------------------------------------------------------------------------


def test_two_lambdas_on_one_line() -> None:
    f, g = (lambda x: x + 1), (lambda x: x + 2)
    assert returned(read_source(f)) == "x + 1"
    assert returned(read_source(g)) == "x + 2"


def test_lambda_in_a_lambda() -> None:
    f = lambda x: lambda y: x + y  # noqa: E731
    assert returned(read_source(f)) == "lambda y: x + y"
    assert returned(read_source(f(1))) == "x + y"


def test_lambda_behind_wide_characters() -> None:
    pair = ("é→🙂", lambda x: x * 2)
    found = read_source(pair[1])
    assert returned(found) == "x * 2"
    assert found.span(found.tree).text == "lambda x: x * 2"


def test_lambda_over_several_lines() -> None:
    f = cd(
        lambda x, *rest, key=1, **more: (
            x
            + 1
        )
    )  # fmt: skip
    assert returned(read_source(f)) == "x + 1"


# -- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (len, "builtin_function_or_method"),
        (int, "type"),
        (3, "int"),
        (functools.partial(returned), "functools.partial"),
    ],
)
def test_what_is_no_function(value: object, kind: str) -> None:
    with pytest.raises(CdTypeError) as caught:
        unwrap_function(value)
    assert caught.value.code == "CD0105"
    assert f"not a `{kind}`" in str(caught.value)


def test_what_a_decorator_made_is_the_function() -> None:
    @loud
    def f(x):
        return x

    assert unwrap_function(f) is f and returned(read_source(f)) == "function(*args)"
    assert unwrap_function(functools.cache(f)) is f


def test_an_object_that_only_names_what_it_wraps_is_no_function() -> None:
    class Proxy:
        __wrapped__ = staticmethod(len)

    with pytest.raises(CdTypeError, match="CD0105"):
        unwrap_function(Proxy())


# -- text given by the user -----------------------------------------------------------------------


def test_text() -> None:
    found = source_from_text("@cd\ndef f(x):\n    return x + 1\n", "example.py")
    assert (found.name, found.source.name) == ("f", "example.py")
    assert found.span(found.tree).place == "example.py:2:1"
    assert returned(found) == "x + 1"


def test_indented_text_with_empty_lines_before_and_windows_line_ends() -> None:
    found = source_from_text("\n\n    def f(x):\r\n        return x + 1\r\n")
    assert found.span(found.tree).place == "<text>:3:5"
    assert returned(found) == "x + 1"


@pytest.mark.parametrize("text", ["lambda x: x + 1", "f = lambda x: x + 1"])
def test_text_of_a_lambda(text: str) -> None:
    assert returned(source_from_text(text)) == "x + 1"


@pytest.mark.parametrize(
    "name, text",
    [
        ("text_empty", ""),
        ("text_two_functions", "def f(): pass\ndef g(): pass\n"),
        ("text_import", "import numpy as np\ndef f(): pass\n"),
        ("text_statement", "x = 1\n"),
        ("text_not_python", "def f(x):\n    return x +\n"),
        ("text_not_python_indented", "\n    def f(x):\n        return (x\n"),
    ],
)
def test_other_text_is_refused(golden, name: str, text: str) -> None:
    with pytest.raises(CdSyntaxError) as caught:
        source_from_text(text, "example.py")
    assert caught.value.code in ("CD0100", "CD0106")
    golden(f"{name}.err")(str(caught.value))


def test_text_nested_too_deeply_for_python() -> None:
    with pytest.raises(CdSyntaxError) as caught:
        source_from_text("def f(x):\n    return " + "(" * 5000 + "x" + ")" * 5000)
    assert caught.value.code in ("CD0100", "CD0103")


# -- spans ----------------------------------------------------------------------------------------

PIECES = [
    "naïve", "'é→🙂'", "1.5", "...", "a.b", "x[i, j]", "x[1:n:2]", "f(x, *y, k=2)", "-x", "not x",
    "a @ b", "a < b <= c", "a and b or c", "a if b else c", "(1, 2)", "[1, 2]",
    "[e for e in y if e]", "lambda x: x", "f'{x} é'", "(yield x)", "{1: 2}", "{1, 2}",
]  # fmt: skip


@pytest.mark.parametrize("before", ["", "é = 'é→🙂'; ", "\t"])
@pytest.mark.parametrize("piece", PIECES)
def test_text_under_a_span_is_what_was_written(piece: str, before: str) -> None:
    indent = "" if before == "\t" else "    "
    found = source_from_text(f"def f():\n{indent}{before}ü = {piece}; z = 1\n")
    assert isinstance(found.tree, ast.FunctionDef)
    assign = found.tree.body[-2]
    assert isinstance(assign, ast.Assign)
    inside = piece.strip("()") if piece == "(yield x)" else piece
    assert found.span(assign.value).text == inside
    assert span_of(assign.value, found.source) == found.span(assign.value)


def test_span_over_several_lines() -> None:
    found = source_from_text("def f(é):\n    return (é +\n            'ü' * 2)\n")
    assert returned(found) == "é + 'ü' * 2"


def test_span_outside_the_text_is_empty() -> None:
    assert Source("example.py", 1, "x").line(7) == ""


# -- scopes ---------------------------------------------------------------------------------------


def test_scope_resolves_cells_then_globals_then_builtins() -> None:
    captured = object()

    def f():
        return captured, PIECES, len

    scope = scope_of(f)
    assert scope.lookup("captured") is captured
    assert scope.lookup("PIECES") is PIECES
    assert scope.lookup("len") is builtins.len
    assert scope.lookup("no_such_name") is MISSING
    assert {"captured", "PIECES", "len"} <= scope.names()


def test_scope_is_read_anew_each_time() -> None:
    rate = 1

    def f():
        return rate

    scope = scope_of(f)
    assert scope.lookup("rate") == 1
    rate = 2
    assert scope.lookup("rate") == 2
    del rate
    assert scope.lookup("rate") is MISSING


def test_scope_of_a_cached_function_is_that_of_the_function() -> None:
    rate = 3

    @functools.cache
    def f():
        return rate

    assert scope_of(f).lookup("rate") == 3


def test_scope_of_a_namespace() -> None:
    namespace: dict[str, object] = {"rate": 1}
    scope = scope_of_namespace(namespace)
    namespace["rate"] = 2
    assert scope.lookup("rate") == 2
    assert scope.lookup("len") is builtins.len
    assert repr(scope.lookup("other")) == "MISSING"


def test_a_cell_that_is_kept_in_a_temporary_file_is_shown_by_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"ipykernel_1/2.py": ("Cell", "In[7]"), "cells/a.py": None}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    namespace = run_cell("@cd\ndef f(x):\n    return x + 1\n", "ipykernel_1/2.py")
    assert read_source(namespace["f"]).source.name == "<cell 7>"
    namespace = run_cell("@cd\ndef f(x):\n    return x + 1\n", "cells/a.py")
    assert read_source(namespace["f"]).source.name == "cells/a.py"
