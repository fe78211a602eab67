"""The definition of a function under `@cd`: its source, parsed lazily, and its scope.

The lines of its file are read when it is defined, so that later edits of the file do not change
the function.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.cached_property import cached_property
from ...base.diagnostic import CdSyntaxError, Diagnostic, Label, Span
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


InlinedFunction: TypeAlias = "FunctionType | Definition"
"""A function that another one inlines: Python's, or what one under `@cd` was defined by."""


class Definition:
    """One function: a Python function, or a text that was parsed already."""

    def __init__(self, scope: Scope, function: Callable[..., object] | None = None) -> None:
        """Store the enclosing scope; of a Python function also the lines of its file."""
        self.scope = scope
        self.function = function
        self._lines: list[str] = []
        self._fixed: Mapping[str, object] = {}
        self.derivative_rules: Any = None
        """Derivatives that the user wrote, None where there are none."""
        self.written_rules: dict[str, Any] = {}
        self.rules_identity = object()
        """Another object after each change of the derivatives, which calls compare."""
        self.parts: function_source.FunctionSnapshot | None = None
        """Its code and defaults when it was defined; None for a text."""
        if function is not None:
            plain = function_source.unwrap_function(function)
            self.parts = function_source.FunctionSnapshot.of(plain)
            self._lines, self._fixed = (
                lines_of(plain),
                index_letters.fixed_at_decoration(plain, scope),
            )

    @cached_property
    def text(self) -> FunctionSource:
        """The source of the function. Raises CdSyntaxError where it cannot be read."""
        assert self.function is not None, "a text is given where there is no function"
        return function_source.read_source(self.function, self._lines)

    @cached_property
    def surface(self) -> s.Function:
        """The surface syntax of the function. Raises CdSyntaxError as `text` and `parse` do."""
        return parse.parse(self.text)

    @cached_property
    def letters(self) -> Mapping[str, object]:
        """The names fixed as index variables, whatever is bound to them after the decoration.

        Names that the text of the module assigns, other than in a loop, are excluded.
        """
        if not self._fixed or self.function is None:
            return {}
        plain = function_source.unwrap_function(self.function)
        texts = index_letters.module_texts(plain, self._lines)
        if texts is None:
            return {}
        assigned_names = index_letters.assigned_names(
            self._fixed, texts, plain.__code__.co_firstlineno
        )
        return {name: role for name, role in self._fixed.items() if name not in assigned_names}

    @cached_property
    def around(self) -> Scope:
        """The enclosing scope, with the names in subscripts that are fixed as index variables."""
        if not self._fixed:
            return self.scope
        subscripts = index_letters.subscript_names(self.surface)
        letters = {name: role for name, role in self.letters.items() if name in subscripts}
        late = subscripts.intersection(self._fixed).difference(letters)
        return self.scope._replace(letters=letters, late=late)

    @cached_property
    def fingerprint(self) -> str | None:
        """A digest of its text and code; None where it is not reproducible in another process."""
        if self.function is None:
            return None
        try:
            plain = function_source.unwrap_function(self.function)
            digest = identity.fingerprint(plain, self._lines)
            return digest if not self.letters else f"{digest} {' '.join(self.letters)}"
        except identity.NotPortable:
            return None


def call_text(signature: inspect.Signature) -> str:
    """Return arguments that a signature takes, each by its name: `x, y, z=z`."""
    texts: dict[object, str] = {
        inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
        inspect.Parameter.VAR_POSITIONAL: "*{0}",
        inspect.Parameter.VAR_KEYWORD: "**{0}",
    }
    return ", ".join(
        texts.get(parameter.kind, "{0}").format(parameter.name)
        for parameter in signature.parameters.values()
    )


def text_signature(namespace: Mapping[str, object], surface: s.Function) -> inspect.Signature:
    """Return the signature of a function text; default values are evaluated in the namespace."""
    kinds = {
        "positional": inspect.Parameter.POSITIONAL_ONLY,
        "any": inspect.Parameter.POSITIONAL_OR_KEYWORD,
        "keyword": inspect.Parameter.KEYWORD_ONLY,
        "*": inspect.Parameter.VAR_POSITIONAL,
        "**": inspect.Parameter.VAR_KEYWORD,
    }
    parameters = []
    for param in surface.params:
        default: Any = inspect.Parameter.empty
        if param.default is not None:
            default = eval(param.default.span.text, dict(namespace))  # the user's own text
        parameters.append(inspect.Parameter(param.name, kinds[param.kind], default=default))
    return inspect.Signature(parameters)


def require_compilable(source: FunctionSource) -> None:
    """Raise CD0100 for a text that parses but does not compile: a `break` outside a loop."""
    tree = source.tree
    module = ast.Expression(tree) if isinstance(tree, ast.Lambda) else ast.Module([tree], [])
    try:
        compile(module, source.source.name, "eval" if isinstance(tree, ast.Lambda) else "exec")
    except (SyntaxError, ValueError, RecursionError) as problem:
        text = getattr(problem, "msg", None) or str(problem)
        line, column = getattr(problem, "lineno", 1) or 1, (getattr(problem, "offset", 1) or 1) - 1
        end = getattr(problem, "end_offset", None) or column + 2
        span = Span(source.source, line, column, line, max(end - 1, column + 1))
        helps = ("correct the text: it has to be a function that Python itself would accept",)
        found = Diagnostic("CD0100", f"Python cannot read this: {text}", (Label(span),), (), helps)
        raise CdSyntaxError(found) from None
