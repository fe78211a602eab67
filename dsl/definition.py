"""Where a function under `@cd` was defined: its text, read when it is asked for, and its names.

The lines of its file are kept from the moment of its definition, so that a file that is edited
later does not change what the function is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias

from ..lowering.later import Later
from ..lowering.once import once
from . import source
from .lines import lines_of
from .source import FunctionSource, Scope

if TYPE_CHECKING:
    from . import identity, parse
    from . import surface as s
else:
    identity, parse = Later(".identity", __package__), Later(".parse", __package__)


Inlined: TypeAlias = "FunctionType | Definition"
"""A function that another one inlines: Python's, or what one under `@cd` was defined by."""


class Definition:
    """What one function is: of a Python function, or of a text that was read already."""

    def __init__(self, scope: Scope, function: Callable[..., object] | None = None) -> None:
        """Keep what is around the function; of a Python function its lines, too."""
        self.scope = scope
        self.function = function
        self._lines = [] if function is None else lines_of(source.plain_function(function))

    @once
    def text(self) -> FunctionSource:
        """The function as it was written. Raises CdSyntaxError where that cannot be read."""
        assert self.function is not None, "a text is given where there is no function"
        return source.read_source(self.function, self._lines)

    @once
    def surface(self) -> s.Function:
        """The function as the language has it. Raises CdSyntaxError, as `text` and `parse` do."""
        return parse.parse(self.text)

    @once
    def fingerprint(self) -> str | None:
        """A digest of its text and code; None where another process could not make the same."""
        if self.function is None:
            return None
        try:
            plain = source.plain_function(self.function)
            return identity.fingerprint(plain, self._lines)
        except identity.Unknown:
            return None
