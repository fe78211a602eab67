"""Every construct that the language has is taken over as it is, with the span of its text."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plusequals.base.diagnostic import NOWHERE, CdSyntaxError
from plusequals.dsl.source import surface as s
from plusequals.dsl.source.function_source import read_source, source_from_text
from plusequals.dsl.source.parse import MAX_DEPTH, parse


def function(text: str) -> s.Function:
    return parse(source_from_text(text, "example.py"))


def body(*lines: str) -> tuple[s.Statement, ...]:
    return function("def f(x):\n" + "\n".join("    " + line for line in lines)).body


def value(text: str) -> s.Expr:
    (statement,) = body(f"t = {text}")
    assert isinstance(statement, s.Assign)
    return statement.value


def n(name: str) -> s.Name:
    return s.Name(name, NOWHERE)


def lit(constant: object) -> s.Literal:
    return s.Literal(constant, NOWHERE)


# -- what is admitted -----------------------------------------------------------------------------

EXPRESSIONS = {
    "x": n("x"),
    "1": lit(1),
    "'a'": lit("a"),
    "1j": lit(1j),
    "None": lit(None),
    "...": lit(...),
    "a.b.c": s.Attribute(s.Attribute(n("a"), "b", NOWHERE), "c", NOWHERE),
    "x[i, j]": s.Subscript(n("x"), (n("i"), n("j")), NOWHERE),
    "x[(i, j)]": s.Subscript(n("x"), (n("i"), n("j")), NOWHERE),
    "x[()]": s.Subscript(n("x"), (), NOWHERE),
    "x[i]": s.Subscript(n("x"), (n("i"),), NOWHERE),
    "x[*i]": s.Subscript(n("x"), (s.Starred(n("i"), NOWHERE),), NOWHERE),
    "x[1:, ::2]": s.Subscript(
        n("x"),
        (s.Slice(lit(1), None, None, NOWHERE), s.Slice(None, None, lit(2), NOWHERE)),
        NOWHERE,
    ),
    "f(x, *y, k=1)": s.Call(
        n("f"),
        (n("x"), s.Starred(n("y"), NOWHERE)),
        (s.Keyword("k", lit(1), NOWHERE),),
        NOWHERE,
    ),
    "sum[k < j](e)": s.Call(
        s.Subscript(n("sum"), (s.Compare((n("k"), n("j")), ("<",), NOWHERE),), NOWHERE),
        (n("e"),),
        (),
        NOWHERE,
    ),
    "a < b <= c is not d": s.Compare(
        (n("a"), n("b"), n("c"), n("d")), ("<", "<=", "is not"), NOWHERE
    ),
    "a and b and c": s.Logical("and", (n("a"), n("b"), n("c")), NOWHERE),
    "a or b": s.Logical("or", (n("a"), n("b")), NOWHERE),
    "a if b else c": s.Conditional(n("b"), n("a"), n("c"), NOWHERE),
    "(a, b)": s.Sequence((n("a"), n("b")), "tuple", NOWHERE),
    "[a, *b]": s.Sequence((n("a"), s.Starred(n("b"), NOWHERE)), "list", NOWHERE),
    "[e for k in z if a if b]": s.Comprehension(n("e"), n("k"), n("z"), (n("a"), n("b")), NOWHERE),
    "f(e for k in z)": s.Call(
        n("f"), (s.Comprehension(n("e"), n("k"), n("z"), (), NOWHERE, True),), (), NOWHERE
    ),
    "lambda a, b=1: a": s.Lambda(
        (s.Param("a", "any", None, None, NOWHERE), s.Param("b", "any", lit(1), None, NOWHERE)),
        n("a"),
        NOWHERE,
    ),
    "f'a{x}b{y:.3f}'": s.Format(("a", (n("x"), ""), "b", (n("y"), ".3f")), NOWHERE),
    "f'{x:}'": s.Format(((n("x"), ""),), NOWHERE),
    "f''": s.Format((), NOWHERE),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text: str) -> None:
    assert value(text) == EXPRESSIONS[text]


@pytest.mark.parametrize("op", "+ - * / // % ** @ & | ^ << >>".split())
def test_binary_and_augmented_operators(op: str) -> None:
    assert value(f"a {op} b") == s.Binary(op, n("a"), n("b"), NOWHERE)
    assert body(f"a {op}= b") == (s.Augment(n("a"), op, n("b"), NOWHERE),)


@pytest.mark.parametrize("op", ["-", "+", "~", "not"])
def test_unary_operators(op: str) -> None:
    assert value(f"{op} a") == s.Unary(op, n("a"), NOWHERE)


@pytest.mark.parametrize("op", "== != < <= > >= in is".split() + ["not in", "is not"])
def test_comparisons(op: str) -> None:
    assert value(f"a {op} b") == s.Compare((n("a"), n("b")), (op,), NOWHERE)


STATEMENTS = {
    "a = b = 1": s.Assign((n("a"), n("b")), lit(1), NOWHERE),
    "a, b = 1": s.Assign((s.Sequence((n("a"), n("b")), "tuple", NOWHERE),), lit(1), NOWHERE),
    "m: f32[k]": s.Declare(n("m"), s.Subscript(n("f32"), (n("k"),), NOWHERE), None, NOWHERE),
    "m: f32 = 1": s.Declare(n("m"), n("f32"), lit(1), NOWHERE),
    "for t in z: pass": s.For(n("t"), n("z"), (s.Pass(NOWHERE),), NOWHERE),
    "while a: break": s.While(n("a"), (s.Break(NOWHERE),), NOWHERE),
    "while a: continue": s.While(n("a"), (s.Continue(NOWHERE),), NOWHERE),
    "if a: b": s.If(n("a"), (s.Evaluate(n("b"), NOWHERE),), (), NOWHERE),
    "with comment('t'): pass": s.Comment(lit("t"), (s.Pass(NOWHERE),), NOWHERE),
    "with pe.comment('t'): pass": s.Comment(lit("t"), (s.Pass(NOWHERE),), NOWHERE),
    "return": s.Return(None, NOWHERE),
    "return a": s.Return(n("a"), NOWHERE),
    "assert a": s.Assert(n("a"), None, NOWHERE),
    "assert a, b": s.Assert(n("a"), n("b"), NOWHERE),
    "raise": s.Raise(None, NOWHERE),
    "raise a": s.Raise(n("a"), NOWHERE),
    "print(a)": s.Evaluate(s.Call(n("print"), (n("a"),), (), NOWHERE), NOWHERE),
    "def g(): return a": s.Define(
        s.Function("g", (), (s.Return(n("a"), NOWHERE),), None, NOWHERE), NOWHERE
    ),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement(text: str) -> None:
    assert body(text) == (STATEMENTS[text],)


def test_elif_is_an_if_in_the_other_branch() -> None:
    (statement,) = body("if a: pass", "elif b: pass", "else: break")
    inner = s.If(n("b"), (s.Pass(NOWHERE),), (s.Break(NOWHERE),), NOWHERE)
    assert statement == s.If(n("a"), (s.Pass(NOWHERE),), (inner,), NOWHERE)
    assert isinstance(statement, s.If)
    assert statement.orelse[0].span.text == "elif b"


def test_parameters_of_every_kind() -> None:
    read = function("def f(a, /, b: f32[n] = 1, *c, d, e=2, **g) -> f32: pass")
    assert [(p.name, p.kind) for p in read.params] == [
        ("a", "positional"), ("b", "any"), ("c", "*"), ("d", "keyword"), ("e", "keyword"),
        ("g", "**"),
    ]  # fmt: skip
    assert [p.default for p in read.params] == [None, lit(1), None, None, lit(2), None]
    assert read.params[1].annotation == s.Subscript(n("f32"), (n("n"),), NOWHERE)
    assert read.params[1].span.text == "b: f32[n]"


def test_docstring_is_apart() -> None:
    read = function('def f(x):\n    """One.\n\n    Two.\n    """\n    return x\n')
    assert read.doc == "One.\n\nTwo."
    assert read.body == (s.Return(n("x"), NOWHERE),)
    assert function("def f(x):\n    'only'\n").body == ()
    assert function("def f(x):\n    f'{x}'\n").doc is None


def test_decorators_of_the_function_itself_are_not_its_business() -> None:
    assert function("@cd(debug=True)\n@other\ndef f(x): pass").name == "f"


def test_lambda_as_a_function() -> None:
    read = function("lambda x, y=1: x[i] * y")
    assert (read.name, [p.name for p in read.params], read.doc) == ("<lambda>", ["x", "y"], None)
    (statement,) = read.body
    assert isinstance(statement, s.Return)
    assert statement.span.text == "x[i] * y"


def test_python_function_is_parsed_where_it_stands() -> None:
    def scale(y, x):
        y[i, j] += 2 * x[j, i]

    (statement,) = parse(read_source(scale)).body
    assert statement.span.text == "y[i, j] += 2 * x[j, i]"
    assert statement.span.source.name == __file__
    assert statement.span.column == 8


# -- spans ----------------------------------------------------------------------------------------


def test_every_part_has_the_span_of_its_text() -> None:
    line = "y[i] = sum(a.b[i, 1:n:2] * -x, acc=f64) if t < 1 else (1, [z])"
    _, statement = body("é = 'ü'; " + line)
    texts = [part.span.text for part in parts(statement)]
    assert texts == [
        line,
        "y[i]", "y", "i",
        "sum(a.b[i, 1:n:2] * -x, acc=f64) if t < 1 else (1, [z])",
        "t < 1", "t", "1",
        "sum(a.b[i, 1:n:2] * -x, acc=f64)", "sum",
        "a.b[i, 1:n:2] * -x", "a.b[i, 1:n:2]", "a.b", "a", "i", "1:n:2", "1", "n", "2", "-x", "x",
        "acc=f64", "f64",
        "(1, [z])", "1", "[z]", "z",
    ]  # fmt: skip


def parts(node: object) -> list:
    """Every part of a Surface value that has a span, outer parts first."""
    if isinstance(node, tuple):
        return [part for item in node for part in parts(item)]
    if not hasattr(node, "span"):
        return []
    inner = [getattr(node, name) for name in node.__slots__ if name != "span"]
    return [node, *parts(tuple(inner))]


@pytest.mark.parametrize(
    ("header", "rest"),
    [
        ("for t in range(3)", " : pass"),
        ("for t in (range(3))", ":  # a: comment\n        pass"),
        ("for t in x[1:2]", ": pass"),
        ("while (a)", ":\n        pass"),
        ("if x[a:b] > 0", ": y = {}['a'] if 0 else 1".replace("{}", "z")),
        ('with comment("a: b")', ": pass"),
        ("def g()", ": pass"),
        ("def g(a, /, *, b: f32 = z[1:2]) -> f32", ": pass"),
    ],
)
def test_span_of_a_compound_statement_is_its_header(header: str, rest: str) -> None:
    (statement,) = body(header + rest)
    assert statement.span.text == header


def test_header_over_several_lines() -> None:
    (statement,) = body("for t in (  # one: two", "    range(3)", "  ): pass")
    assert statement.span.text == "for t in (  # one: two range(3) )"


@pytest.mark.parametrize(
    "text", ["f'{x} é {y + 1}'", "f'é {x}' f'{y + 1}'", "f'''\n{x} {y + 1}'''"]
)
def test_values_of_an_f_string_are_placed_or_have_the_whole(text: str) -> None:
    read = value(text)
    assert isinstance(read, s.Format)
    last = read.parts[-1]
    assert isinstance(last, tuple)
    allowed = ["y + 1"] if sys.version_info >= (3, 12) else ["y + 1", read.span.text]
    assert last[0].span.text in allowed


# -- depth ----------------------------------------------------------------------------------------


def test_expression_within_the_limit() -> None:
    read = value(" + ".join(["x"] * (MAX_DEPTH - 2)))
    assert isinstance(read, s.Binary)


def test_parse_deep_in_the_stack_of_the_caller() -> None:
    source = source_from_text("def f(x):\n    y = " + "-" * 150 + "x\n")

    def at_depth(depth: int) -> s.Function:
        return parse(source) if depth == 0 else at_depth(depth - 1)

    room = sys.getrecursionlimit() - len(stack_of_here())
    for spare in (30, 60, 120, 200):
        with pytest.raises(CdSyntaxError) as caught:
            at_depth(room - spare)
        assert caught.value.code == "CD0103"


def stack_of_here() -> list[object]:
    frame, frames = sys._getframe(), []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


# -- properties -----------------------------------------------------------------------------------

ATOMS = st.sampled_from(["x", "é", "1", "2.5", "'é'", "x[i, j]", "x[1:]", "a.b", "f(x)"])
COMPOUND = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+ * < @ and".split()), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("x[{}, {}:]".format, inner, inner),
        st.builds("sum[k < {}]({}, acc={})".format, inner, inner, inner),
        st.builds("(-{})".format, inner),
    ),
    max_leaves=12,
)


@given(COMPOUND)
def test_text_under_any_span_parses_to_the_same_part(text: str) -> None:
    for part in parts(value(text)):
        if not isinstance(part, s.Slice | s.Keyword):
            assert value(part.span.text) == part
