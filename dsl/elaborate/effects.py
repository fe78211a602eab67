"""Statements that act rather than assign: prints, checks, errors raised in the run."""

from __future__ import annotations

from ...lowering.diagnostic import (
    CdSyntaxError,
    CdTypeError,
    Span,
)  # fmt: skip
from ...lowering.ir.assignments import Check, Fault, Print
from ...lowering.ir.expressions import Domain, Expr
from .. import surface as s
from .arrays import as_scalar, describe
from .context import error
from .expressions import evaluate
from .frame import Frame
from .index_notation import scalar_statement, uses_letters
from .operators import as_affine, settle_test, test_of
from .types import FALSE, cast
from .values import Group, Scalar, Static, Value


def _message(frame: Frame, message: s.Expr | None) -> str:
    if message is None:
        return ""
    value = evaluate(frame, message)
    return str(value.value) if isinstance(value, Static) else message.span.text


def assertion(frame: Frame, test: s.Expr, message: s.Expr | None, span: Span) -> None:
    found = evaluate_any(frame, test)
    decided = settle_test(frame, test_of(frame, found, test.span))
    text = _message(frame, message) or f"`{test.span.text}` does not hold"
    if isinstance(decided, Static):
        if decided.value:
            return
        decided = Scalar(FALSE, as_scalar(Static(True), span).kind)
    fault = Fault("CD0761", "CdAssertionError", _plain(text))
    frame.ctx.emit(Check(decided.expr, fault, (), Domain(), span))


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def raising(frame: Frame, statement: s.Raise) -> None:
    """`raise Error("text")`: a check that fails where it stands."""
    kind, text = "Exception", ""
    match statement.error:
        case s.Call(s.Name(name), args, ()):
            kind = name
            text = " ".join(_message(frame, arg) for arg in args)
        case s.Name(name):
            kind = name
        case _:
            raise error(
                "CD0145", CdSyntaxError, "write `raise Error(\"text\")`", statement.span
            )
    families = {
        "IndexError": "CdIndexError", "TypeError": "CdTypeError", "NameError": "CdNameError",
        "AssertionError": "CdAssertionError", "ZeroDivisionError": "CdZeroDivisionError",
    }  # fmt: skip
    message = f"{kind}: {text}" if text else kind
    fault = Fault("CD0762", families.get(kind, "CdValueError"), _plain(message))
    frame.ctx.emit(Check(FALSE, fault, (), Domain(), statement.span))


def evaluation(frame: Frame, statement: s.Evaluate) -> None:
    value = statement.value
    if isinstance(value, s.Call) and isinstance(value.function, s.Name):
        function = evaluate(frame, value.function)
        if function == Static(print):
            _print(frame, value, statement.span)
            return
    if isinstance(value, s.Call):
        evaluate(frame, value)
        return
    if isinstance(value, s.Literal):
        return
    raise error(
        "CD0146", CdSyntaxError, "this expression has no effect", statement.span,
        helps=("assign it: `x = ...`, or remove it",),
    )  # fmt: skip


def _print(frame: Frame, call: s.Call, span: Span) -> None:
    """Emit a print of texts and numbers, in Python's spelling, blanks between them."""
    if call.keywords:
        raise error("CD0422", CdTypeError, "`print` here takes values only", call.keywords[0].span)
    pieces: list[str | Expr] = []
    for n, arg in enumerate(call.args):
        if n:
            pieces.append(" ")
        for part in arg.pieces if isinstance(arg, s.Format) else (arg,):
            inner = part[0] if isinstance(part, tuple) else part
            if isinstance(inner, str):
                pieces.append(inner)
                continue
            pieces.append(_printed(frame, inner))
    frame.ctx.emit(Print(tuple(pieces), span))


def _printed(frame: Frame, e: s.Expr) -> str | Expr:
    value = evaluate_any(frame, e)
    match value:
        case Static(inner):
            return str(inner)
        case Group() if (index := [as_affine(item) for item in value.items]) and all(
            item is not None and item.constant is not None for item in index
        ):
            return str(tuple(item.constant for item in index if item is not None))
        case Scalar(expr, kind):
            return cast(expr, kind.dtype.compute)
        case _:
            raise error(
                "CD0423", CdTypeError, "`print` shows numbers and texts", e.span,
                label=f"this is {describe(value)}", helps=("print elements: `print(x[0])`",),
            )  # fmt: skip


def evaluate_any(frame: Frame, e: s.Expr) -> Value:
    """Return an expression's value in either notation."""
    if uses_letters(frame, e):
        return scalar_statement(frame, e, e.span)
    return evaluate(frame, e)
