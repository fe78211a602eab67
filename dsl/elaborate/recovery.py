"""Error recovery: elaboration continues after an erroneous statement, to report all errors at once.

The names that such a statement binds are poisoned. An error that only follows from a poisoned
name is a `Consequence`, which is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...base.diagnostic import CdError, CdNameError, Diagnostic, Span
from ..numpy.table import WORDS
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.builder import NeedKind, NeedOrder, NeedStatic
from ..values.call_site import LIBRARY
from ..values.values import Group, Unset
from .names import Consequence, is_letter, unknown
from .scope import Frame, assigned_names, names_in, parts, rebound_names

_NARROWING = s.Return | s.Assert | s.Raise | s.Break | s.Continue
"""Statements after whose failure the facts are unknown."""


class Problems:
    """The errors of the statements of one body, in order."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._errors: list[CdError] = []
        self._spoiled: Consequence | None = None
        self._failed = False

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect an error that is raised inside.

        Any other exception after an error ends recovery, and the collected errors are raised:
        except a restart with more facts, which meets the same errors again.
        """
        self._failed = False
        ctx, letters = self._frame.ctx, self._frame.letters
        slots = dict(self._frame.slots)  # a loop that fails does not close its own
        state = ctx.control, ctx.unsure, ctx.domain, ctx.assumptions, ctx.conditions, ctx.uses
        try:
            yield
        except CdError as problem:
            self._failed, self._frame.letters, self._frame.slots = True, letters, slots
            ctx.control, ctx.unsure, ctx.domain, ctx.assumptions, ctx.conditions, ctx.uses = state
            if isinstance(problem, Consequence):
                self._spoiled = problem
            else:
                self._errors.append(problem)
        except (NeedKind, NeedOrder, NeedStatic, MemoryError):
            raise
        except Exception:
            self.tell()
            raise

    def goes_on(self, statement: s.Statement) -> bool:
        """Whether a statement failed and recovery continues after it; its bindings are poisoned."""
        frame = self._frame
        library = frame.function.span.source.name == LIBRARY
        if not self._failed or library:
            return False
        self._errors += _unbound_name_errors(frame, statement)
        if isinstance(statement, _NARROWING):
            return False
        names = set(rebound_names((statement,)))
        names |= {name for name in assigned_names((statement,)) if name not in frame.names}
        names |= {n.id for n in names_in(statement) if isinstance(frame.names.get(n.id), Group)}
        for name in names:
            frame.names[name] = Unset("has no value", statement.span, failed=True)
        return True

    def tell(self) -> None:
        """Raise the collected errors as one, of the class of the first; return if there is none.

        Postcondition: no two diagnostics have the same code and location, or the same unknown name.
        """
        unique: dict[tuple[str, Span | str], Diagnostic] = {}
        for problem in self._errors:
            for diagnostic in problem.diagnostics:
                by_message = diagnostic.code == "CD0201" or not diagnostic.labels
                location = diagnostic.message if by_message else diagnostic.labels[0].span
                unique.setdefault((diagnostic.code, location), diagnostic)
        if unique:
            raise type(self._errors[0])(*unique.values()) from self._errors[0].__cause__
        if self._spoiled is not None:
            raise self._spoiled


def _unbound_name_errors(frame: Frame, statement: s.Statement) -> Iterator[CdNameError]:
    """Yield the errors of the unbound names of a statement."""
    for name in _evaluated_names(statement):
        if _is_unbound(frame, name):
            yield unknown(frame, name)


def _evaluated_names(statement: s.Statement) -> Iterator[s.Name]:
    """Yield the names that a statement certainly evaluates, nested statements excluded."""
    match statement:
        case s.If(test, _, _) | s.While(test, _):
            yield from names_in(test)
        case s.For(_, iterable, _):
            yield from names_in(iterable)
        case s.Assign() | s.Augment() | s.Evaluate() | s.Return():
            if not any(
                isinstance(part, s.Conditional | s.Lambda) for part in _walk_nodes(statement)
            ):
                yield from names_in(statement)
        case _:
            pass


def _walk_nodes(node: object) -> Iterator[object]:
    yield node
    for part in parts(node):
        yield from _walk_nodes(part)


def _is_unbound(frame: Frame, name: s.Name) -> bool:
    owner: Frame | None = frame
    while owner is not None:
        if name.id in owner.names or name.id in owner.locals:
            return False
        owner = owner.parent
    is_defined = name.id in WORDS or name.id == frame.function.name or is_letter(frame, name)
    return not is_defined and frame.lookup(name.id) is MISSING
