"""Why a procedure is not differentiated."""

from __future__ import annotations

from ...base.diagnostic import Span


class NotDifferentiable(Exception):
    """A statement that has no adjoint: the reason, and where it is."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
