"""Name resolution: parameter, local, captured object, index variable, built-in word or unbound."""

from __future__ import annotations

import re

from ...base.diagnostic import CdError, CdNameError, CdTypeError, Diagnostic, Label, Span, nearest
from ...lowering.ir.expressions import Position
from ...lowering.ir.indexing import Symbol, var
from ..numpy.table import WORDS
from ..source import surface as s
from ..source.function_source import MISSING, LateNumber
from ..source.idx import Letter
from ..values.builder import error
from ..values.types import WEAK_INT
from ..values.values import Path, Scalar, Unset, Value
from .scope import LETTER, Frame, new_letter


class Consequence(CdNameError):
    """An error that only follows from an earlier erroneous statement; it is not reported."""


def unset_name(name: str, value: Unset, span: Span) -> CdError:
    """Return the error of a name that may not be read: of one whose definition is wrong a
    consequence of that."""
    if value.failed:
        text = f"`{name}` has no value: what binds it is wrong"
        return Consequence(Diagnostic("CD0202", text, (Label(span),)))
    return error("CD0202", CdNameError, f"`{name}` {value.reason}", span, helps=value.helps)


def resolve(frame: Frame, name: s.Name) -> Value:
    """Return the value of a bare name.

    CdNameError CD0201 where it is unbound, CD0202 where it has no value yet.
    """
    owner: Frame | None = frame
    while owner is not None:
        if name.id in owner.names:
            value = owner.names[name.id]
            if isinstance(value, Unset):
                raise unset_name(name.id, value, name.span)
            return value
        if name.id in owner.locals:
            raise error(
                "CD0202", CdNameError, f"`{name.id}` is read before it is assigned", name.span,
                helps=(f"assign it first: `{name.id} = ...`, or `{name.id}: f32[...]` for zeros",),
            )  # fmt: skip
        owner = owner.parent
    captured = frame.lookup(name.id)
    if isinstance(captured, LateNumber):
        raise captured_number_error(name, captured.value)
    if captured is not MISSING and not isinstance(captured, Letter):
        path = Path(frame.key + name.id, (), captured=True)
        return frame.inputs.wrap(frame.ctx, path, captured, True, name.span)
    if frame.letters is not None and is_letter(frame, name):
        if captured is MISSING:
            path = Path(frame.key + name.id, (), captured=True)
            frame.inputs.used[path] = frame.inputs.describe(captured, True)  # guard: unchanged
        return letter(frame, name.id, name.span)
    if name.id in WORDS:
        path = Path(frame.key + name.id, (), captured=True)
        frame.inputs.used[path] = frame.inputs.describe(captured, True)  # guard: still unbound
        return WORDS[name.id]
    if name.id == frame.function.name:
        raise error(
            "CD0430", CdTypeError, f"`{name.id}` calls itself", name.span,
            helps=("write the recursion as a loop",),
        )  # fmt: skip
    raise unknown(frame, name)


def captured_number_error(name: s.Name, number: object) -> CdError:
    """Return the error CD0203 of a number that is bound to a name like an index variable."""
    return captured_letter_error(
        name, f"the number {number!r}",
        f"rename the outside variable, or `del {name.id}`, to use it as an index",
        f"pass it as an argument, or write `{name.id} + 0`, to use the number",
    )  # fmt: skip


def captured_letter_error(name: s.Name, what: str, *helps: str) -> CdError:
    """Return the error CD0203 of a captured value whose name looks like an index variable."""
    text = f"`{name.id}` looks like an index letter, but is {what} around the function"
    return error("CD0203", CdNameError, text, name.span, helps=helps)


def letter(frame: Frame, name: str, span: Span) -> Scalar:
    """Return an index variable as a number; a new one is bound by the innermost implicit scope."""
    letters = frame.letters
    assert letters is not None
    symbol = bound_index_variable(frame, name)
    if symbol is None:
        symbol = new_letter(frame.ctx, name)
        letters.spans[symbol] = span
        if letters.on_left:
            letters.outer[name] = symbol
        elif letters.scopes and letters.scopes[-1][1]:
            letters.scopes[-1][0][name] = symbol
        else:
            letters.right[name] = symbol
    return Scalar(Position(var(symbol)), WEAK_INT)


def bound_index_variable(frame: Frame, name: str) -> Symbol | None:
    """Return the symbol that an index variable has here, None where it is new.

    A reduction that names no index variables binds those that occur only on the right.
    """
    letters = frame.letters
    assert letters is not None
    for scope, _ in reversed(letters.scopes):
        if name in scope:
            return scope[name]
    if name in letters.outer:
        return letters.outer[name]
    if letters.scopes and letters.scopes[-1][1]:
        return None
    return letters.right.get(name)


def is_letter(frame: Frame, name: s.Name) -> bool:
    """Whether a bare name would be an index variable here."""
    owner: Frame | None = frame
    while owner is not None:
        if name.id in owner.names or name.id in owner.locals:
            return False
        owner = owner.parent
    captured = frame.lookup(name.id)
    if isinstance(captured, Letter):
        return True
    spelled = LETTER.fullmatch(name.id) is not None and name.id not in WORDS
    return captured is MISSING and spelled


def unknown(frame: Frame, name: s.Name) -> CdNameError:
    """Return the error for an unbound name, with the nearest bound one as a suggestion."""
    pool = {*frame.names, *frame.locals, *WORDS}
    near = nearest(name.id, sorted(pool))
    if near and abs(len(near) - len(name.id)) > 2:  # `pandas` is no misspelling of `pad`
        near = None
    helps = (f"did you mean `{near}`?",) if near else ()
    if re.fullmatch(r"([a-z])\1+", name.id):
        initial = name.id[0]
        helps = (f"an index letter is one letter: `{initial}`, `{initial}2`, `{initial}_`", *helps)
    if LETTER.fullmatch(name.id):
        helps = ("index letters stand inside subscripts: `x[i]`", *helps)
    problem = error("CD0201", CdNameError, f"`{name.id}` is not defined", name.span, helps=helps)
    assert isinstance(problem, CdNameError)
    return problem
