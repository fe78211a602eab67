"""Every construct that is refused says where it is, what it is, and what to write instead."""

import ast
import sys
from pathlib import Path

import pytest

from plusequals.base.diagnostic import CdSyntaxError
from plusequals.dsl.source import unsupported
from plusequals.dsl.source.function_source import source_from_text
from plusequals.dsl.source.parse import MAX_DEPTH, MAX_PROBLEMS, parse


def errors(text: str) -> CdSyntaxError:
    with pytest.raises(CdSyntaxError) as caught:
        parse(source_from_text(text, "example.py"))
    return caught.value


def is_parsed(text: str) -> bool:
    return parse(source_from_text(text, "example.py")).name == "f"


# -- `=+` and `=-` --------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", "+-")
@pytest.mark.parametrize(
    ("written", "is_refused"),
    [
        ("p ={} lr * g", True),
        ("p={} lr", True),
        ("p ={}lr", True),
        ("p ={}(lr)", True),
        ("p ={} \\\n        lr", True),
        ("p ={}\\\n        lr", True),
        ("p = \\\n        {}lr", False),
        ("p={}lr", False),
        ("p = {}lr", False),
        ("p = {} lr", False),
        ("p= {}lr", False),
        ("p =({}lr)", False),
        ("p = q ={} lr", True),
        ("p[i] ={} lr", True),
        ("p: f32 ={} lr", True),
        ("é = 'ü'; p ={} lr", True),
        ("p {}= lr", False),
        ("p *={} lr", False),
        ("f(p ={} lr)", False),
        ("p == {} lr", False),
    ],
)
def test_sign_after_the_equals_sign(written: str, is_refused: bool, sign: str) -> None:
    text = "def f(p):\n    " + written.format(sign) + "\n"
    if is_refused:
        assert [problem.code for problem in errors(text).diagnostics] == ["CD0104"]
    else:
        assert is_parsed(text)


def test_the_offered_lines_parse() -> None:
    for problem in errors("def f(p):\n    p[i] =- lr * g + 1\n    p =+ g\n").diagnostics:
        for text in problem.helps:
            assert is_parsed("def f(p):\n    " + text.split("`")[1])


# -- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "async_def": "async def g():\n    pass",
    "async_for": "async for t in x:\n    pass",
    "async_with": "async with x:\n    pass",
    "async_comprehension": "y = [t async for t in x]",
    "await": "y = await x",
    "yield": "yield x",
    "yield_from": "y = 1 + (yield from x)",
    "generator": "y = (t for t in x)",
    "generator_beside_arguments": "y = sum((t for t in x), 1)",
    "class": "class A(B, metaclass=C):  # a comment\n    pass",
    "try": "try:\n    y = {}\nexcept Error:\n    pass",
    "try_star": "try:\n    pass\nexcept* Error:\n    pass",
    "with_other": 'with open("x") as h:\n    pass',
    "with_two": 'with comment("a"), comment("b"):\n    pass',
    "with_comment_as": 'with comment("a") as b:\n    pass',
    "with_comment_without_text": "with comment():\n    pass",
    "import": "import numpy as np",
    "import_from": "from numpy import exp",
    "global": "global y",
    "nonlocal": "nonlocal y",
    "delete": "del y, z",
    "match": "match x:\n    case 1:\n        pass",
    "walrus": "y = (z := x + 1)",
    "dict": "y = {1: 2}",
    "set": "y = {1, 2}",
    "dict_comprehension": "y = {k: 1 for k in x}",
    "set_comprehension": "y = {k for k in x}",
    "starred_target": "head, *tail = x",
    "starred_loop_target": "for (a, *b) in x:\n    pass",
    "decorated": "@cache\ndef g():\n    pass",
    "dynamic_format": 'print(f"{x:{width}}")',
    "bytes": 'y = b"text"',
    "keywords": "y = f(**x)",
    "raise_from": "raise ValueError('x') from error",
    "sign_minus": "p =- lr * p.grad",
    "sign_plus": "p[i] =+ q[i]",
}
if sys.version_info >= (3, 12):
    REFUSED |= {
        "type_alias": "type A = int",
        "type_parameters": "def g[T](x: T):\n    pass",
    }
NEWER = {"type_alias", "type_parameters"}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(golden, name: str) -> None:
    lines = "\n".join("    " + line for line in REFUSED[name].split("\n"))
    golden(f"{name}.err")(str(errors(f"@cd\ndef f(x):\n{lines}\n")))


def test_async_function_itself(golden) -> None:
    golden("async_function.err")(str(errors("@cd\nasync def f(x):\n    y = await x\n")))


def test_every_refusal_has_a_code_of_its_family_a_sentence_and_a_help() -> None:
    listed = [*unsupported.UNSUPPORTED.values()]
    listed += [v for v in vars(unsupported).values() if isinstance(v, unsupported.Unsupported)]
    for why in listed:
        assert why.code.startswith("CD01")
        assert why.message[0] != " " and not why.message.endswith(".")
        assert why.help


def test_all_kinds_of_nodes_are_admitted_or_refused_by_name() -> None:
    admitted = {
        "Assign", "AugAssign", "AnnAssign", "Expr", "Return", "Assert", "Raise", "Break",
        "Continue", "Pass", "For", "While", "If", "With", "FunctionDef",
        "Name", "Constant", "Attribute", "Starred", "UnaryOp", "BinOp", "Compare", "BoolOp",
        "IfExp", "Subscript", "Slice", "Call", "Tuple", "List", "ListComp", "Lambda", "JoinedStr",
        "FormattedValue", "Interpolation",  # parts of f-strings and template strings
    }  # fmt: skip
    deprecated = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    kinds = {kind.__name__ for base in (ast.stmt, ast.expr) for kind in base.__subclasses__()}
    assert kinds - deprecated - admitted <= set(unsupported.UNSUPPORTED)
    assert not admitted & set(unsupported.UNSUPPORTED)


def test_all_problems_are_reported_at_once_in_order(golden) -> None:
    caught = errors(
        "@cd\n"
        "def f(x, lr):\n"
        "    import numpy as np\n"
        "    try:\n"
        "        y = {1: b''}\n"
        "        x =- lr * x\n"
        "    finally:\n"
        "        pass\n"
        "    with open('y') as h:\n"
        "        del x\n"
        "    return [t for t in (yield)]\n"
    )
    golden("several.err")(str(caught))


def test_no_more_than_twenty_problems() -> None:
    caught = errors("def f(x):\n" + "    del x\n" * 30)
    assert len(caught.diagnostics) == MAX_PROBLEMS
    assert [problem.labels[0].span.line for problem in caught.diagnostics] == list(range(2, 22))


def test_nested_expression(golden) -> None:
    caught = errors("def f(x):\n    y = x\n    y = " + "-" * (MAX_DEPTH + 1) + "x\n")
    assert caught.code == "CD0103"
    assert len(caught.diagnostics) == 1
    golden("nested_expression.err")(str(caught))


def test_no_golden_file_without_a_test(golden_folder: Path) -> None:
    others = {"async_function", "several", "nested_expression"}
    assert {path.stem for path in golden_folder.iterdir()} - NEWER == ({*REFUSED, *others} - NEWER)
