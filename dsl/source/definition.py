"""Where a function under `@cd` was defined: its text, read when it is asked for, and its names.

The lines of its file are kept from the moment of its definition, so that a file that is edited
later does not change what the function is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias

from ...base.cached_property import cached_property
from ...base.lazy_import import LazyModule
from . import function_source, index_letters
from .definition_lines import lines_of
from .function_source import FunctionSource, Scope

if TYPE_CHECKING:
    from . import fingerprint as identity
    from . import parse
    from . import surface as s
else:
    identity, parse = LazyModule(".fingerprint", __package__), LazyModule(".parse", __package__)


Inlined: TypeAlias = "FunctionType | Definition"
"""A function that another one inlines: Python's, or what one under `@cd` was defined by."""


class Definition:
    """What one function is: of a Python function, or of a text that was read already."""

    def __init__(self, scope: Scope, function: Callable[..., object] | None = None) -> None:
        """Keep what is around the function; of a Python function its lines, too."""
        self.scope = scope
        self.function = function
        self._lines: list[str] = []
        self._fixed: Mapping[str, object] = {}
        self.parts: function_source.Parts | None = None
        """What Python runs of it; None for a text."""
        if function is not None:
            plain = function_source.plain_function(function)
            self.parts = function_source.Parts.of(plain)
            self._lines, self._fixed = lines_of(plain), index_letters.fixed(plain, scope)

    @cached_property
    def text(self) -> FunctionSource:
        """The function as it was written. Raises CdSyntaxError where that cannot be read."""
        assert self.function is not None, "a text is given where there is no function"
        return function_source.read_source(self.function, self._lines)

    @cached_property
    def surface(self) -> s.Function:
        """The function as the language has it. Raises CdSyntaxError, as `text` and `parse` do."""
        return parse.parse(self.text)

    @cached_property
    def letters(self) -> Mapping[str, object]:
        """What may stand for an index letter, whatever is bound to its name after the decoration.

        Those that the module's own text assigns, other than in a loop, are none of them.
        """
        if not self._fixed or self.function is None:
            return {}
        plain = function_source.plain_function(self.function)
        texts = index_letters.texts_around(plain, self._lines)
        if texts is None:
            return {}
        apart = index_letters.assigned(self._fixed, texts, plain.__code__.co_firstlineno)
        return {name: role for name, role in self._fixed.items() if name not in apart}

    @cached_property
    def around(self) -> Scope:
        """The names around the function, with the roles that some have for good."""
        letters = self.letters
        if letters:
            alone = index_letters.subscripts(self.surface)
            letters = {name: role for name, role in letters.items() if name in alone}
        return self.scope._replace(letters=letters)

    @cached_property
    def fingerprint(self) -> str | None:
        """A digest of its text and code; None where another process could not make the same."""
        if self.function is None:
            return None
        try:
            plain = function_source.plain_function(self.function)
            known = identity.fingerprint(plain, self._lines)
            return known if not self.letters else f"{known} {' '.join(self.letters)}"
        except identity.Unknown:
            return None
