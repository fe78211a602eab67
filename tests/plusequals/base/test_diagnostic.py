"""The renderer of errors, and the family: text as a whole, columns, tabs, pickling, kinds."""

from __future__ import annotations

import copy
import pickle

import pytest

from plusequals.base import diagnostic
from plusequals.base.diagnostic import (
    NOWHERE,
    CdError,
    CdIndexError,
    CdShapeError,
    CdSyntaxError,
    CdTypeError,
    Diagnostic,
    Label,
    Source,
    Span,
    nearest,
    render,
)

TEXT = """\
def f(y, x):
    m[i] = max(x[i, j])
\ty[i] = x[i] +\ta[i]

    long = first(x,
                 second,
                 third)
    return y"""
SOURCE = Source("model.py", 10, TEXT)


def at(line: int, text: str, source: Source = SOURCE) -> Span:
    """Return the span of a piece of a line."""
    column = source.line(line).index(text)
    return Span(source, line, column, line, column + len(text))


def test_a_source_knows_its_lines_by_number() -> None:
    assert SOURCE.line(10) == "def f(y, x):" and SOURCE.line(17) == "    return y"
    assert SOURCE.line(9) == SOURCE.line(18) == ""


def test_a_span_knows_its_text_and_place() -> None:
    span = at(11, "max(x[i, j])")
    assert (span.text, span.place) == ("max(x[i, j])", "model.py:11:12")
    call = Span(SOURCE, 14, 11, 16, 23)
    assert call.text == "first(x, second, third)"


def test_one_label() -> None:
    problem = Diagnostic("CD0301", "sizes clash", (Label(at(11, "x[i, j]"), "size 3"),))
    assert render(problem) == (
        "error[CD0301]: sizes clash\n"
        " --> model.py:11:16\n"
        "11 |     m[i] = max(x[i, j])\n"
        "   |                ^^^^^^^ size 3"
    )


def test_labels_on_one_line_and_on_several() -> None:
    problem = Diagnostic(
        "CD0301",
        "sizes clash",
        (
            Label(at(17, "y"), "size 5"),
            Label(at(11, "m[i]"), "size 3"),
            Label(at(11, "x[i, j]")),
            Label(at(10, "x"), "given here"),
        ),
        notes=("no size-1 axes stretch",),
        helps=("write `y[0]`", "or cut it"),
    )
    assert render(problem) == (
        "error[CD0301]: sizes clash\n"
        " --> model.py:17:12\n"
        "10 | def f(y, x):\n"
        "   |          - given here\n"
        "11 |     m[i] = max(x[i, j])\n"
        "   |     ---- size 3\n"
        "   |                -------\n"
        "   ...\n"
        "17 |     return y\n"
        "   |            ^ size 5\n"
        "  = note: no size-1 axes stretch\n"
        "  = help: write `y[0]`\n"
        "  = help: or cut it"
    )


def test_tabs_keep_carets_below_their_text() -> None:
    problem = Diagnostic("CD0201", "no `a`", (Label(at(12, "a[i]"), "here"),))
    lines = render(problem).splitlines()
    assert lines[2:] == ["12 | \ty[i] = x[i] +\ta[i]", "   | \t             \t^^^^ here"]


def test_a_span_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    call = Span(SOURCE, 14, 11, 16, 23)
    lines = render(Diagnostic("CD0429", "no", (Label(call, "this call"),))).splitlines()
    assert lines[2:] == ["14 |     long = first(x,", "   |            ^^^^^^^^ this call"]


def test_a_span_without_width_has_one_caret() -> None:
    lines = render(Diagnostic("CD0100", "no", (Label(Span(SOURCE, 10, 12, 10, 12)),))).splitlines()
    assert lines[-1] == "   |             ^"


def test_wide_lines_and_wide_characters() -> None:
    text = "y = " + " + ".join(f"x{n}" for n in range(16)) + "  # größe"
    source = Source("wide.py", 1, text)
    lines = render(Diagnostic("CD0201", "no", (Label(at(1, "x15", source)),))).splitlines()
    assert lines[2] == f"1 | {text}"
    assert lines[3].index("^") == lines[2].index("x15") and lines[3].endswith("^^^")


def test_characters_of_two_places_and_of_none() -> None:
    source = Source("wide.py", 1, "x = '\u5e83\u3044' + e\u0301 + y")
    lines = render(Diagnostic("CD0201", "no", (Label(at(1, "y", source)),))).splitlines()
    assert lines[3] == "  | " + " " * 17 + "^"
    lines = render(Diagnostic("CD0201", "no", (Label(at(1, "\u5e83\u3044", source)),))).splitlines()
    assert lines[3] == "  |      ^^^^"


def test_line_numbers_of_different_width_are_aligned() -> None:
    source = Source("long.py", 98, "a\nb\nc\nd")
    problem = Diagnostic("CD0301", "no", (Label(at(101, "d", source)), Label(at(98, "a", source))))
    assert render(problem).splitlines()[2:] == [
        " 98 | a", "    | -", "    ...", "101 | d", "    | ^",
    ]  # fmt: skip


def test_labels_in_different_files_name_each() -> None:
    other = Source("other.py", 1, "w = 3")
    problem = Diagnostic("CD0301", "no", (Label(at(10, "y")), Label(at(1, "w", other), "and here")))
    assert render(problem).splitlines()[1:] == [
        " --> model.py:10:7",
        "10 | def f(y, x):",
        "   |       ^",
        " ::: other.py:1:1",
        " 1 | w = 3",
        "   | - and here",
    ]


def test_calls_that_were_inlined_are_told() -> None:
    problem = Diagnostic("CD0301", "no", (Label(at(10, "y")),), stack=(at(11, "max(x[i, j])"),))
    assert render(problem).endswith("\n  = called from model.py:11:12: `max(x[i, j])`")


def test_without_a_place_there_is_no_excerpt() -> None:
    for labels in ((), (Label(NOWHERE, "here"),)):
        assert render(Diagnostic("CD0801", "no backend", labels, helps=("use numpy",))) == (
            "error[CD0801]: no backend\n  = help: use numpy"
        )


FAMILY = {
    "CdSyntaxError": SyntaxError, "CdNameError": NameError, "CdTypeError": TypeError,
    "CdShapeError": ValueError, "CdIndexError": IndexError, "CdValueError": ValueError,
    "CdKeyError": KeyError, "CdAttributeError": AttributeError,
    "CdAssertionError": AssertionError, "CdZeroDivisionError": ZeroDivisionError,
    "CdOverflowError": OverflowError, "CdMemoryError": MemoryError,
    "CdRuntimeError": RuntimeError, "CdKeyboardInterrupt": KeyboardInterrupt,
    "CdBackendError": RuntimeError, "CdInternalError": RuntimeError,
}  # fmt: skip


def test_the_family_is_complete() -> None:
    found = {
        name
        for name, kind in vars(diagnostic).items()
        if isinstance(kind, type) and issubclass(kind, CdError) and kind is not CdError
    }
    assert found == set(FAMILY)


@pytest.mark.parametrize("name", FAMILY)
def test_every_error_is_pythons_kind_too_and_survives_pickling(name: str) -> None:
    kind = getattr(diagnostic, name)
    assert issubclass(kind, CdError) and issubclass(kind, FAMILY[name])
    problem = kind(
        Diagnostic("CD0301", "first", (Label(at(11, "m[i]"), "here"),)),
        Diagnostic("CD0302", "second"),
    )
    text = (
        "error[CD0301]: first\n --> model.py:11:5\n11 |     m[i] = max(x[i, j])\n"
        "   |     ^^^^ here\n\nerror[CD0302]: second"
    )
    for one in (problem, pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):  # noqa: S301
        assert type(one) is kind and str(one) == text
        assert one.diagnostics == problem.diagnostics and one.code == "CD0301"


def test_python_prints_a_syntax_error_whole() -> None:
    problem = CdSyntaxError(Diagnostic("CD0111", "no `try` here"))
    assert problem.msg == str(problem) == "error[CD0111]: no `try` here"
    assert CdIndexError.__mro__[1] is CdTypeError.__mro__[1] is CdShapeError.__mro__[1] is CdError


def test_the_nearest_name() -> None:
    assert nearest("sofmax", ["softmax", "max"]) == "softmax"
    assert nearest("zzz", ["softmax"]) is None


def test_of_a_long_line_what_is_around_its_labels_is_shown() -> None:
    line = f"y = {' + '.join(f'x{n:03}' for n in range(99))}"
    source = Source("long.py", 1, line)
    where, other = at(1, "x050", source), at(1, "x052", source)
    first, shown, carets, others = _excerpt_of(Label(where, "this"), Label(other, "and this"))
    assert first == " --> long.py:1:355"
    assert shown.startswith("1 | ... ") and shown.endswith(" ...") and len(shown) == 4 + 4 + 110 + 4
    assert shown[carets.index("^") :].startswith("x050") and carets.endswith("^^^^ this")
    assert shown[others.index("-") :].startswith("x052") and others.endswith("---- and this")


def test_of_a_long_line_marks_end_where_what_is_shown_ends() -> None:
    source = Source("long.py", 1, "y = " + "f(" * 200 + "x" + ")" * 200)
    span = Span(source, 1, 4, 1, len(source.text))
    _, shown, carets = _excerpt_of(Label(span))
    assert shown == f"1 | {source.text[:110]} ..." and carets == f"  |     {'^' * 106}"
    last, far = Label(at(1, "x", source)), Label(Span(source, 1, 0, 1, 1), "far")
    _, shown, outside, carets = _excerpt_of(last, far)
    assert shown[carets.index("^")] == "x" and outside.endswith("- far") and len(outside) < 20


def test_of_a_long_line_the_end_is_shown_whole() -> None:
    source = Source("long.py", 1, "y = " + "x + " * 60 + "end")
    _, shown, carets = _excerpt_of(Label(at(1, "end", source)))
    assert shown == f"1 | ... {source.text[-110:]}" and shown[carets.index("^") :] == "end"


def _excerpt_of(*labels: Label) -> list[str]:
    return render(Diagnostic("CD0301", "sizes clash", labels)).split("\n")[1:]
