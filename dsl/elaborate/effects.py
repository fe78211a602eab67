"""Statements with side effects: prints, assertions, `raise`, calls as statements."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...base import diagnostic
from ...base.diagnostic import CdError, CdSyntaxError, CdTypeError, Span, class_of
from ...lowering.ir.assignments import Branch, Check, Fault, Print
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Domain, Expr
from ...lowering.ir.faults import fault_kind
from ..source import surface as s
from ..values.arrays import describe
from ..values.builder import Context, error
from ..values.call_site import LIBRARY
from ..values.evaluation_order import after
from ..values.fix_hints import WAYS_OUT, before_the_points
from ..values.types import FALSE, TRUE, cast, negate
from ..values.values import Array, Group, Opaque, Scalar, Static, Value
from .bindings import frozen
from .branches import not_always
from .expressions import evaluate, tested
from .index.free_variables import uses_letters
from .index.notation import scalar_statement
from .memory_requests import is_request, request
from .operators import as_affine
from .scope import Frame
from .truth import settle_test, test_of


def _message_template(
    frame: Frame, messages: tuple[s.Expr, ...], several: bool = False
) -> tuple[str, tuple[Expr, ...]]:
    """Return a message as a template for `str.format`, and the run-time numbers that fill it;
    `several` arguments of an error in the spelling of Python's tuple."""
    parts: list[str | tuple[s.Expr, str]] = []
    for n, message in enumerate(messages):
        parts += [", " if several else " "] if n else []
        parts += message.parts if isinstance(message, s.Format) else ((message, ""),)
    operands = iter(_operands(frame, [part[0] for part in parts if not isinstance(part, str)]))
    text, values = "", list[Expr]()
    for part in parts:
        if isinstance(part, str):
            text += _escape_braces(part)
            continue
        value = next(operands)
        if isinstance(value, Array) and not value.rank:
            value = Scalar(value.body, value.kind)
        if isinstance(value, Static):
            quoted = several and isinstance(value.value, str) and not part[1]
            text += _escape_braces(
                repr(value.value) if quoted else _format_value(value.value, part)
            )
        elif isinstance(value, Scalar):
            _format_value(value.kind.dtype.numpy.type(0).item(), part)
            text += f"{{{len(values)}:{part[1]}}}" if part[1] else f"{{{len(values)}}}"
            values.append(cast(value.expr, value.kind.dtype.compute))
        else:
            items_text = _sequence_text(value)
            text += _escape_braces(f"`{part[0].span.text}`" if items_text is None else items_text)
    return f"({text})" if several else text, tuple(values)


def _operands(frame: Frame, shown: list[s.Expr]) -> list[Value]:
    """Return the values that a text shows, evaluated from left to right."""
    values: list[Value] = []
    for e in shown:
        values.append(after(frame.ctx, values, partial(evaluate_any, frame, e), e.span))
    return values


def _sequence_text(value: Value) -> str | None:
    """Return a tuple or list of static items in Python's spelling, such as a shape; None for
    others."""
    if not isinstance(value, Group) or value.named_tuple is not None:
        return None
    texts = list[str]()
    for item in value.items:
        size = as_affine(item)
        if isinstance(item, Static):
            texts.append(repr(item.value))
        elif size is not None and size.constant is not None:
            texts.append(str(size.constant))
        elif (text := _sequence_text(item)) is not None:
            texts.append(text)
        else:
            return None
    inside = ", ".join(texts)
    if value.kind == "list":
        return f"[{inside}]"
    return f"({inside},)" if len(texts) == 1 else f"({inside})"


def _format_value(value: object, part: tuple[s.Expr, str]) -> str:
    """Return a value formatted by a format specification. CD0407 where it is wrong."""
    try:
        return format(value, part[1])
    except (TypeError, ValueError) as problem:
        raise error("CD0407", class_of(problem), str(problem), part[0].span) from None


def assertion(frame: Frame, test: s.Expr, message: s.Expr | None, span: Span) -> None:
    """Emit an `assert`: a run-time check, nothing where its test is statically true.

    The message is evaluated where the test does not hold: what that needs is emitted into a branch,
    with the check.
    """
    ctx = frame.ctx
    letters = uses_letters(frame, test)
    condition = evaluate_any(frame, test) if letters else tested(frame, test)
    decided = settle_test(frame, test_of(frame, condition, test.span))
    if isinstance(decided, Static) and decided.value:
        return
    holds = FALSE if isinstance(decided, Static) else decided.expr
    fails = negate(holds)
    if fails == TRUE:
        text, values = _assertion_text(frame, test, message)
        ctx.emit(Check(FALSE, Fault("CD0761", "CdAssertionError", text), values, Domain(), span))
        _flag_end(ctx, FALSE)
        return
    scope = ctx.under(fails) if ctx.pointwise else not_always(ctx, ctx.assumptions.assuming(fails))
    names, variables = dict(frame.names), dict(frame.variables)
    with ctx.block() as out, scope:
        text, values = _assertion_text(frame, test, message)
    frame.names, frame.variables = names, {**frame.variables, **variables}
    fault = Fault("CD0761", "CdAssertionError", text)
    if not out or ctx.pointwise:
        ctx.out += out
        holds = ctx.under_conditions(holds) if ctx.pointwise else holds
        ctx.emit(Check(holds, fault, values, Domain(), span))
    else:
        failure = Check(FALSE, fault, values, Domain(), span)
        ctx.emit(Branch(fails, (*out, failure), (), span))


def _assertion_text(
    frame: Frame, test: s.Expr, message: s.Expr | None
) -> tuple[str, tuple[Expr, ...]]:
    """Return the message of a failing assertion as a template, and the numbers that fill it."""
    text, values = _message_template(frame, () if message is None else (message,))
    return text or _escape_braces(f"`{test.span.text}` does not hold"), values


def _flag_end(ctx: Context, test: Expr) -> None:
    """Flag that execution ends here, where a check always fails and is always reached."""
    ctx.ended |= test == FALSE and not (ctx.control or ctx.conditions or ctx.pointwise)


def _escape_braces(text: str) -> str:
    """Return a text escaped for `str.format`."""
    return text.replace("{", "{{").replace("}", "}}")


def raising(frame: Frame, statement: s.Raise) -> None:
    """Elaborate `raise Error("text")`: a check that always fails.

    CdSyntaxError CD0145 for another error, CD0522 at the points of index variables.
    """
    if frame.ctx.pointwise:
        raise error(
            "CD0522", CdSyntaxError,
            "`raise` would have to run at every point of the index letters", statement.span,
            helps=before_the_points("raise"),
        )  # fmt: skip
    match statement.error:
        case s.Call(s.Name() | s.Attribute() as named, args, ()):
            kind = _error_class(frame, named)
        case s.Name() | s.Attribute() as named:
            kind, args = _error_class(frame, named), ()
        case _:
            kind = None
    if kind is None:
        raise error(
            "CD0145", CdSyntaxError, "`raise` here names an error class and a text", statement.span
        )
    text, values = _message_template(frame, args, len(args) > 1)
    name, span = kind.__name__, statement.span
    message = f"{name}: {text}" if text else name
    fault = Fault("CD0762", _exception_kind(kind, args), message)
    if fault.kind == "CdValueError" and kind is not ValueError:
        fault = replace(
            fault, helps=(f"to have it raised itself, let `{name}` be a name of a module",)
        )
    if span.source.name == LIBRARY:
        outside = [call for call in frame.ctx.stack if call.source.name != LIBRARY]
        fault, span = Fault("CD0460", "CdValueError", text, WAYS_OUT["CD0460"]), outside[-1]
    frame.ctx.emit(Check(FALSE, fault, values, Domain(), span))
    if fault.code != "CD0460":
        _flag_end(frame.ctx, FALSE)


def _error_class(frame: Frame, named: s.Expr) -> type[BaseException] | None:
    """Return the exception class that an expression names, None where it names none."""
    match evaluate(frame, named):
        case Static(kind) | Opaque(kind) if isinstance(kind, type):
            return kind if issubclass(kind, BaseException) else None
        case _:
            return None


def _exception_kind(kind: type[BaseException], args: tuple[s.Expr, ...]) -> str:
    """Return the kind of a fault for an exception class: a Cd class, or the class's import path."""
    cd_class = getattr(diagnostic, f"Cd{kind.__name__}", None)
    keeps_argument = kind in (KeyError, AttributeError)  # programs look at it: it is the key
    if cd_class is not None and cd_class.__bases__ == (CdError, kind) and not keeps_argument:
        return f"Cd{kind.__name__}"
    is_text = any(
        isinstance(arg, s.Format) or isinstance(arg, s.Literal) and isinstance(arg.value, str)
        for arg in args
    )
    return fault_kind(kind, len(args) == 1 and not is_text)


def evaluation(frame: Frame, statement: s.Evaluate) -> None:
    """Elaborate a call, a print or a literal as a statement; CdSyntaxError CD0146 for others."""
    value = statement.value
    if isinstance(value, s.Call) and isinstance(value.function, s.Name):
        function = evaluate(frame, value.function)
        if function == Static(print):
            _print(frame, value, statement.span)
            return
    if isinstance(value, s.Call) and is_request(frame, value):
        request(frame, value, statement.span)
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
    """Emit a print of texts and numbers, in Python's spelling, separated by `sep`."""
    shown: list[list[str | tuple[s.Expr, str | None]]] = [
        list(arg.parts) if isinstance(arg, s.Format) else [(arg, None)] for arg in call.args
    ]
    exprs = [part[0] for arg in shown for part in arg if not isinstance(part, str)]
    values = _operands(frame, exprs)
    options = {"sep": " ", "end": "\n"}
    for keyword in call.keywords:
        name, option = _print_option(keyword), partial(_option_text, frame, keyword)
        options[name] = after(frame.ctx, values, option, keyword.span)
    operands = iter(values)
    parts: list[str | Expr] = []
    formats: list[str | None] = []
    types: list[DType] = []
    for n, arg in enumerate(shown):
        if n:
            parts.append(options["sep"])
        for part in arg:
            printed = (
                part if isinstance(part, str) else _print_operand(next(operands), part[0], part[1])
            )
            if isinstance(printed, str):
                parts.append(printed)
                continue
            parts.append(cast(printed.expr, printed.kind.dtype.compute))
            formats.append(part[1])
            types.append(printed.kind.dtype)
    specs = tuple(formats)
    frame.ctx.emit(Print(tuple(parts), span, specs, options["end"], dtypes=tuple(types)))


def _print_option(keyword: s.Keyword) -> str:
    """Return the name of an option of `print`. CdTypeError CD0422 for an unknown one."""
    if keyword.name not in ("sep", "end", "flush"):
        message = "`print` here takes values, `sep=` and `end=`"
        raise error("CD0422", CdTypeError, message, keyword.span)
    return keyword.name


def _option_text(frame: Frame, keyword: s.Keyword) -> str:
    """Return the static text of an option of `print`. CdTypeError CD0422 for other values."""
    option = evaluate(frame, keyword.value)
    if keyword.name != "flush" and not (
        isinstance(option, Static) and isinstance(option.value, str)
    ):
        message = f"`{keyword.name}=` is a text known when compiling"
        raise error("CD0422", CdTypeError, message, keyword.span)
    return str(option.value) if isinstance(option, Static) else ""


def _print_operand(value: Value, e: s.Expr, spec: str | None) -> str | Scalar:
    """Return the text of a static value, or the number to print: by `str`, or by a format."""
    match value:
        case Static(inner):
            return str(inner) if spec is None else _format_value(inner, (e, spec))
        case Group() if (text := _sequence_text(value)) is not None:
            return text
        case Scalar(_, kind):
            _format_value(kind.dtype.numpy.type(0).item(), (e, spec or ""))
            return value
        case _:
            raise error(
                "CD0423", CdTypeError, "`print` shows numbers and texts", e.span,
                label=f"this is {describe(value)}", helps=("print elements: `print(x[0])`",),
            )  # fmt: skip


def evaluate_any(frame: Frame, e: s.Expr) -> Value:
    """Return an expression's value, in index notation where it has index variables."""
    if not uses_letters(frame, e):
        return evaluate(frame, e)
    if isinstance(e, s.Sequence):
        items = (evaluate_any(frame, item) for item in e.items)
        return Group(tuple(frozen(frame, item, "item", e.span) for item in items), e.kind)
    return scalar_statement(frame, e, e.span)
