"""Diagnostics: spans, labels, rendered error messages, and the `CdError` hierarchy.

A `Diagnostic` is one problem: a stable code, one sentence, every source span involved, the values,
and a fix that can be typed. A `CdError` has one or more of them and renders them with the user's
own lines and carets. It imports nothing of the project.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import field, replace
from os.path import basename
from typing import TYPE_CHECKING, NoReturn

from .dataclass import dataclass
from .lazy_import import LazyModule

if TYPE_CHECKING:
    import difflib
    import unicodedata
else:
    difflib, unicodedata = LazyModule("difflib", None), LazyModule("unicodedata", None)


@dataclass(frozen=True, slots=True)
class Source:
    """The text that spans refer to: a file, a notebook cell or a string given by the user."""

    name: str
    """Printed before the line number: a path, or `<cell 3>`."""
    first_line: int
    """The line number, in `name`, of the first line of `text`."""
    text: str = field(repr=False)
    _lines: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lines", tuple(self.text.split("\n")))

    @property
    def short_name(self) -> str:
        """The name without the folders before it."""
        return self.name.replace("\\", "/").rpartition("/")[2]

    def line(self, number: int) -> str:
        """Return one line of the text by its absolute number, without its line end."""
        index = number - self.first_line
        return self._lines[index] if 0 <= index < len(self._lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text: lines absolute and 1-based, columns in characters and 0-based."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def text(self) -> str:
        """The source of the span on one line; line ends and indents inside become one space."""
        numbers = range(self.line, self.end_line + 1)
        lines = [self.source.line(number) for number in numbers]
        lines[-1] = lines[-1][: self.end_column]
        lines[0] = lines[0][self.column :]
        return " ".join(line.strip() for line in lines)

    @property
    def place(self) -> str:
        """`file:line:column`, the column 1-based as editors count."""
        return f"{self.source.name}:{self.line}:{self.column + 1}"


_MAX_COLUMNS = 110
"""Of lines with more columns an excerpt is shown, which begins so many columns before the label:"""
_LEAD_COLUMNS = 30

NOWHERE = Span(Source("<no source>", 1, ""), 1, 0, 1, 0)


@dataclass(frozen=True, slots=True)
class Label:
    """A span and its role in the problem; the text may be empty."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. `labels[0]` is its location; further labels are the other spans involved."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    stack: tuple[Span, ...] = ()
    """The inlined calls that led here, outermost first."""


class CdError(Exception):
    """Every error a user meets. `diagnostics` holds each problem; `str()` is the rendered text."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        Exception.__init__(self, *diagnostics)
        self.diagnostics = diagnostics

    @property
    def code(self) -> str:
        """The stable code of the first problem, for example `CD0301`."""
        return self.diagnostics[0].code

    def placed(self, span: Span) -> CdError:
        """Return the same error, with a label at the span where it has none."""
        return type(self)(
            *(d if d.labels else replace(d, labels=(Label(span),)) for d in self.diagnostics)
        )

    def __str__(self) -> str:
        return "\n\n".join(render(diagnostic) for diagnostic in self.diagnostics)

    def __reduce__(self) -> tuple[type[CdError], tuple[Diagnostic, ...]]:
        return type(self), self.diagnostics


class CdSyntaxError(CdError, SyntaxError):
    """The function uses Python in a way that the language does not admit."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.msg = str(self)  # what Python prints for an uncaught SyntaxError

    __str__ = CdError.__str__


class CdNameError(CdError, NameError):
    """A name is nothing, or plays two roles."""


class CdTypeError(CdError, TypeError):
    """A dtype, rank or kind of value does not fit."""


class CdShapeError(CdError, ValueError):
    """Sizes that have to agree do not."""


class CdIndexError(CdError, IndexError):
    """An index leaves its axis, or could."""


class CdKeyError(CdError, KeyError):
    """A captured mapping has no such key."""


class CdAttributeError(CdError, AttributeError):
    """An object, module or array has no such attribute."""


class CdValueError(CdError, ValueError):
    """A value is outside what an operation admits; also a user's own `raise` and `assert`."""


class CdAssertionError(CdError, AssertionError):
    """An `assert` of the user's function did not hold."""


class CdOverflowError(CdError, OverflowError):
    """A number of the run does not fit the type that it takes on."""


class CdZeroDivisionError(CdError, ZeroDivisionError):
    """A division by zero, in checked mode."""


class CdMemoryError(CdError, MemoryError):
    """There is not enough memory for what a function needs."""


class CdRuntimeError(CdError, RuntimeError):
    """A `raise RuntimeError(...)` of the user's function."""


class CdKeyboardInterrupt(CdError, KeyboardInterrupt):
    """A `raise KeyboardInterrupt(...)` of the user's function."""


class CdBackendError(CdError, RuntimeError):
    """A backend, compiler or device is missing or failed."""


class CdInternalError(CdError, RuntimeError):
    """The project is wrong, not the user; the message says what to send."""


_CLASSES: tuple[type[CdError], ...] = (
    CdIndexError, CdKeyError, CdAttributeError, CdTypeError, CdOverflowError, CdZeroDivisionError,
)  # fmt: skip


_OWN_PACKAGES = {__name__.partition(".")[0], "numpy", "astor", "cffi", *sys.stdlib_module_names}
"""Top-level packages whose exceptions, raised below a line of ours, are faults of ours."""


def class_of(problem: Exception) -> type[CdError]:
    """Return the class for what Python refuses with an exception, `CdValueError` for the rest.

    >>> class_of(KeyError("b")).__name__, class_of(RuntimeError()).__name__
    ('CdKeyError', 'CdValueError')
    """
    found = (kind for kind in _CLASSES if isinstance(problem, kind.__bases__[1]))
    return next(found, CdValueError)


def raise_internal_error(doing: str, problem: Exception, *labels: Label) -> NoReturn:
    """Raise CdInternalError CD0904 for an unexpected exception, with our line that raised it.

    One of the user's code is raised as it is: a signal's handler runs in any of our lines.
    """
    trace, where = problem.__traceback__, ""
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", __name__)
        if module.partition(".")[0] not in _OWN_PACKAGES:
            raise problem
        where = f" ({basename(code.co_filename)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    message = f"plusequals failed while {doing}: {type(problem).__name__}: {problem}{where}"
    helps = ("this is a fault of plusequals: please report it with the function's text",)
    raise CdInternalError(Diagnostic("CD0904", message, labels, helps=helps)) from problem


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name closest to a misspelled one, None where none is close."""
    return next(iter(difflib.get_close_matches(name, list(candidates), 1)), None)


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as text: header, location, excerpt with carets, notes, helps."""
    lines = [f"error[{diagnostic.code}]: {diagnostic.message}"]
    placed = [label for label in diagnostic.labels if label.span is not NOWHERE]
    if placed:
        lines.append(f" --> {placed[0].span.place}")
        lines += _excerpt(placed)
    for span in diagnostic.stack:
        lines.append(f"  = called from {span.place}: `{span.text}`")
    lines += [f"  = note: {note}" for note in diagnostic.notes]
    lines += [f"  = help: {text}" for text in diagnostic.helps]
    return "\n".join(lines)


def _excerpt(labels: list[Label]) -> list[str]:
    """Return the labelled source lines in order, one caret line below each label."""
    width = max(len(str(label.span.line)) for label in labels)
    out: list[str] = []
    previous: tuple[str, int] | None = None
    primary = labels[0]
    for label in sorted(labels, key=_sort_key):
        span = label.span
        location = (span.source.name, span.line)
        if previous is not None and previous[0] != location[0]:
            out.append(f" ::: {span.place}")
        elif previous is not None and span.line > previous[1] + 1:
            out.append(" " * width + " ...")
        line = span.source.line(span.line)
        if location != previous:
            start, stop = _shown_columns(
                line, [x.span for x in labels if _sort_key(x)[:2] == location], primary
            )
            before, after = "... " if start else "", " ..." if stop < len(line) else ""
            out.append(f"{span.line:>{width}} | {before}{line[start:stop]}{after}")
        previous = location
        carets = _carets(label, "^" if label is primary else "-", start, stop)
        out.append(f"{' ' * width} | {' ' * len(before)}{carets}")
    return out


def _sort_key(label: Label) -> tuple[str, int, int]:
    return label.span.source.name, label.span.line, label.span.column


def _shown_columns(line: str, spans: list[Span], primary: Label) -> tuple[int, int]:
    """Return the columns of a line that are shown: of a long line those around its labels."""
    if len(line) <= _MAX_COLUMNS:
        return 0, len(line)
    first = min(span.column for span in spans)
    if primary.span in spans and primary.span.end_column > first + _MAX_COLUMNS - _LEAD_COLUMNS:
        first = primary.span.column
    start = max(0, min(first - _LEAD_COLUMNS, len(line) - _MAX_COLUMNS))
    return start, start + _MAX_COLUMNS


def _carets(label: Label, mark: str, start: int, stop: int) -> str:
    """Return the carets of a label, clipped to the columns that are shown."""
    span = label.span
    line = span.source.line(span.line)
    end = min(span.end_column if span.end_line == span.line else len(line), stop)
    at = min(max(span.column, start), stop)
    lead = "".join("\t" if c == "\t" else " " * _cell_width(c) for c in line[start:at])
    marks = mark * max(1, sum(map(_cell_width, line[at:end])))
    return f"{lead}{marks}{' ' if label.text else ''}{label.text}"


def _cell_width(character: str) -> int:
    """Return how many terminal cells a character takes."""
    if character.isascii():  # without a module that has to be loaded, maybe for want of memory
        return 1
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
