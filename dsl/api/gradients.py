"""Gradients of functions, as functions whose source can be read.

    g = pe.gradient(loss, wrt=("w", "b"))
    d_w, d_b = g(x, w, b, y)            called like the function itself
    print(g.source)                     the statements that computed them, in the language

The assignments of the function are differentiated in reverse (`lowering.adjoint`), for each of its
specializations; the text of the result is compiled like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdTypeError, CdValueError, Diagnostic, Label, Span
from ...lowering.adjoint.adjoint import adjoint
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.ir.node import Node
from ..elaborate.normalize import build
from ..elaborate.typed import New, Typed
from ..gradient.source_text import source_text
from ..specialize.variant_table import MAX_VARIANTS
from ..specialize.variants import Specialization
from ..values.call_site import Word
from .cd import CdFunction, cd_from_source
from .words import comment

_NAMES: Mapping[str, object] = {
    "np": np, "comment": comment, **{name: Word(name) for name in ("rank", "of_rank", "ordinal")}
}  # fmt: skip
"""The names that the text of a gradient uses; those of words that sorts alone use included."""


@dataclass(eq=False, repr=False)
class Gradient:
    """A function that returns derivatives of a number that another function returns.

    It is called with the arguments of that function, and does to them what that does.
    """

    function: CdFunction[..., Any]
    wrt: tuple[str, ...]
    single: bool
    """Whether one array is returned, and no tuple."""
    with_value: bool
    made: list[tuple[Specialization, str, CdFunction[..., Any]]] = field(default_factory=list)
    """The specializations of the function, with the text and the function derived from each."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the derivatives, after the value where it was asked for.

        Raises what the function raises, and CdTypeError CD0480 where it is not differentiable.
        """
        _, derived, given = self._derived(args, kwargs)
        results = derived(*given)
        if self.with_value:
            value, *found = results
            return value, found[0] if self.single else tuple(found)
        return results if self.single or len(self.wrt) > 1 else (results,)

    def text(self, *args: Any, **kwargs: Any) -> str:
        """Return the source of the derivatives for arguments; nothing runs."""
        return self._derived(args, kwargs)[0]

    @property
    def source(self) -> str:
        """The source that the last new kind of arguments was given. CdValueError CD0481 before."""
        if not self.made:
            name = self.function.__name__
            raise CdValueError(
                Diagnostic(
                    "CD0481", f"the gradient of `{name}` has no source yet: it depends on types",
                    helps=("call it, or ask `g.text(...)` for arguments",),
                )
            )  # fmt: skip
        return self.made[-1][1]

    def __repr__(self) -> str:
        return f"<gradient of {self.function.__name__} in {', '.join(self.wrt)}>"

    def _derived(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[str, CdFunction[..., Any], Sequence[Any]]:
        """Return the derived text and function for arguments, and what it is to be called with."""
        match, arguments = self.function.on("numpy").matched(*args, **kwargs)
        for known, text, derived in self.made:
            if known is match.specialization:
                return text, derived, match.given(arguments)
        text, derived = self._derive(match.specialization.typed)
        self.made.append((match.specialization, text, derived))
        del self.made[:-MAX_VARIANTS]
        return text, derived, match.given(arguments)

    def _derive(self, typed: Typed) -> tuple[str, CdFunction[..., Any]]:
        procedure, name = build(typed.procedure), self.function.__name__
        inputs = [self._input(typed, wanted) for wanted in self.wrt]
        if not (isinstance(typed.returns, New) and typed.returns.kind and typed.procedure.results):
            raise _refused(name, "it does not return one number", procedure.span)
        output = procedure.results[typed.returns.number]
        if output.dtype.kind != "f":
            raise _refused(name, f"it returns a number of {output.dtype}", procedure.span)
        try:
            derived = adjoint(procedure, inputs, (output,), seeded=False)
        except NotDifferentiable as why:
            is_library = why.span == NOWHERE or why.span.source.name == "<library>"
            span = procedure.span if is_library else why.span
            raise _refused(name, f"{why.reason} has no derivative here", span) from None
        results = (*((output,) if self.with_value else ()), *derived.cotangents)
        written = f"{name}_gradient" if name.isidentifier() else "gradient"
        text = source_text(derived.procedure, written, results)
        return text, cd_from_source(text, _NAMES, f"<gradient of {name}>")

    def _input(self, typed: Typed, wanted: str) -> Node:
        """Return the node of an argument in which is differentiated."""
        pairs = zip(typed.passed, typed.procedure.parameters, strict=True)
        for path, parameter in pairs:
            if path.is_parameter and str(path) == wanted:
                if parameter.node.dtype.kind not in "fc":
                    text = f"`{wanted}` is of {parameter.node.dtype}"
                    raise _refused(self.function.__name__, text, typed.procedure.span)
                return parameter.node
        text = f"`{wanted}` is no array or run-time number in this call"
        raise _refused(self.function.__name__, text, typed.procedure.span)


def _refused(name: str, reason: str, span: Span) -> CdTypeError:
    message = f"`{name}` has no gradient: {reason}"
    helps = ("leave this part out, or write its derivative by hand",)
    return CdTypeError(Diagnostic("CD0480", message, (Label(span),), helps=helps))


def gradient(function: CdFunction[..., Any], wrt: str | Sequence[str]) -> Gradient:
    """Return a function that returns the gradient of what `function` returns, one real number.

    `wrt` names the parameters, arrays of floats or numbers: of one name the result is an array of
    that parameter's shape and type, of several a tuple of them. Raises CdTypeError CD0480 for what
    is no such name.
    """
    return _made(function, wrt, False)


def value_and_gradient(function: CdFunction[..., Any], wrt: str | Sequence[str]) -> Gradient:
    """Return a function that returns what `function` returns, and its gradient; see `gradient`."""
    return _made(function, wrt, True)


def _made(function: Any, wrt: str | Sequence[str], with_value: bool) -> Gradient:
    single = isinstance(wrt, str)
    names = (cast(str, wrt),) if single else tuple(wrt)
    if not isinstance(function, CdFunction):
        message = f"a gradient is one of a `@cd` function, not of {type(function).__name__}"
        raise CdTypeError(Diagnostic("CD0480", message, helps=("decorate it with `@cd`",)))
    parameters = list(function.__signature__.parameters)
    for name in names:
        if name not in parameters:
            message = f"`{function.__name__}` has no parameter `{name}`"
            text = f"it has {', '.join(f'`{one}`' for one in parameters)}"
            raise CdTypeError(Diagnostic("CD0480", message, helps=(text,)))
    return Gradient(function, names, single, with_value)
