"""Derivatives of functions, as functions whose source can be read.

    g = pe.gradient(loss, wrt=("w", "b"))
    d_w, d_b = g(x, w, b, y)            called like the function itself
    print(g.source)                     the statements that computed them, in the language

    pe.vjp(f, wrt="x")(x, d_y=...)      cotangents of parameters, from those of outputs
    pe.jvp(f, wrt="x")(x, t_x=...)      tangents of outputs, from those of parameters
    pe.backward(train)(w1, b1, x, y)    writes the gradients into the tensors' fields `grad`

The assignments of the function are differentiated (`lowering.adjoint`), for each of its
specializations; the text of the result is compiled like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, CdValueError, Diagnostic
from ..gradient.requests import (
    Backward,
    CotangentProduct,
    Derived,
    Gradient,
    Request,
    TangentProduct,
    derived_text,
)
from ..specialize.variant_table import MAX_VARIANTS
from ..specialize.variants import Match, Specialization
from .cd import CdFunction, cd_from_source
from .words import comment

_NAMES: Mapping[str, object] = {"np": np, "comment": comment}
"""The names that the text of a gradient uses."""


@dataclass(eq=False, repr=False)
class Derivative:
    """A function that returns derivatives of what another function computes.

    It is called with the arguments of that function, and does to them what that does. Cotangents or
    tangents follow, by position or by name.
    """

    function: CdFunction[..., Any] | Derivative
    request: Request
    single: bool
    """Whether one array is returned, and no tuple."""
    made: list[tuple[Specialization, Derived, CdFunction[..., Any]]] = field(default_factory=list)
    """The specializations of the function, with what was derived from each."""

    @property
    def __name__(self) -> str:
        """The name of the function with what it computes: `loss_gradient`."""
        return f"{self.function.__name__}_{self.request.word}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the derivatives, after the value where it was asked for.

        Raises what the function raises, and CdTypeError CD0480 where it is not differentiable.
        """
        derived, given = self.resolved(args, kwargs)
        results = derived(*given)
        match self.request:
            case Gradient(with_value=True):
                value, *found = results
                return value, found[0] if self.single else tuple(found)
            case Gradient(wrt) | CotangentProduct(wrt):
                return results if self.single or len(wrt) > 1 else (results,)
            case TangentProduct() | Backward():
                return results

    def text(self, *args: Any, **kwargs: Any) -> str:
        """Return the source of the derivatives for arguments of the function; nothing runs."""
        return self._derived(args, kwargs)[0].text

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Return the explanation of a call; see `CdFunction.explain`."""
        derived, given = self.resolved(args, kwargs)
        return derived.explain(*given)

    def compile(self, *args: Any, name: str = "", **kwargs: Any) -> Any:
        """Return the derivative compiled for tensors; see `CdFunction.compile`."""
        derived, given = self.resolved(args, kwargs)
        return derived.compile(*given, name=name)

    @property
    def source(self) -> str:
        """The source that the last new kind of arguments was given. CdValueError CD0481 before."""
        if not self.made:
            raise CdValueError(
                Diagnostic(
                    "CD0481", f"`{self.__name__}` has no source yet: it depends on types",
                    helps=("call it, or ask `g.text(...)` for arguments",),
                )
            )  # fmt: skip
        return self.made[-1][1].text

    def __repr__(self) -> str:
        wrt = self.request.wrt
        names = "all tensors" if wrt is None else ", ".join(wrt)
        return f"<{self.request.word} of {self.function.__name__} in {names}>"

    def resolved(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[CdFunction[..., Any], list[Any]]:
        """Return the derived function for a call, and the arguments of that."""
        own, more, named, others = self._split(args, kwargs)
        derived, function, given = self._derived(own, named)
        names = derived.further[len(more) :]
        if len(more) > len(derived.further) or set(names) != set(others):
            further = ", ".join(derived.further) or "nothing"
            message = f"`{self.__name__}` takes {further} after the arguments of the function"
            raise CdTypeError(Diagnostic("CD0480", message, helps=(f"`{function!r}`",)))
        return function, [*given, *more, *(others[name] for name in names)]

    def _split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """Return the arguments of the function and those that follow, by position and by name."""
        names = _parameters(self.function)
        own = {name: value for name, value in kwargs.items() if names is None or name in names}
        if names is None:
            prefix = {"vjp": "d_", "jvp": "t_"}.get(self.request.word, " ")
            own = {name: value for name, value in kwargs.items() if not name.startswith(prefix)}
        others = {name: value for name, value in kwargs.items() if name not in own}
        count = len(args) if names is None else len(names)
        if isinstance(self.request, Gradient | Backward):
            return args, (), dict(kwargs), {}
        return args[:count], args[count:], own, others

    def _matched(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Match, dict[str, Any]]:
        """Return the specialization of the function for a call, and the arguments by name."""
        if isinstance(self.function, CdFunction):
            return self.function.on("numpy").matched(*args, **kwargs)
        inner, given = self.function.resolved(args, kwargs)
        return inner.on("numpy").matched(*given)

    def _derived(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Derived, CdFunction[..., Any], list[Any]]:
        """Return the derived text and function for arguments, and its first arguments."""
        match, arguments = self._matched(args, kwargs)
        for known, derived, function in self.made:
            if known is match.specialization:
                return derived, function, _given(derived, match, arguments)
        name = self.function.__name__
        derived = derived_text(self.request, match.specialization.typed, name)
        function = cd_from_source(derived.text, _NAMES, f"<{self.request.word} of {name}>")
        self.made.append((match.specialization, derived, function))
        del self.made[:-MAX_VARIANTS]
        return derived, function, _given(derived, match, arguments)


def _given(derived: Derived, match: Match, arguments: dict[str, Any]) -> list[Any]:
    """Return the first arguments of a derived function: inputs of the function, or tensors."""
    typed = match.specialization.typed
    if derived.given == tuple(typed.passed):
        return list(match.given(arguments))
    held = dict(zip(typed.passed, match.held, strict=True))
    return [
        held[path] if path in held else match.specialization.find(path)(arguments)
        for path in derived.given
    ]


def _parameters(function: CdFunction[..., Any] | Derivative) -> list[str] | None:
    """Return the names of a function's parameters, None where they depend on the call."""
    if isinstance(function, CdFunction):
        return list(function.__signature__.parameters)
    known = isinstance(function.request, Gradient | Backward)
    return _parameters(function.function) if known else None


def gradient(function: Any, wrt: str | Sequence[str]) -> Derivative:
    """Return a function that returns the gradient of what `function` returns, one real number.

    `wrt` names the parameters, arrays of floats or numbers: of one name the result is an array of
    that parameter's shape and type, of several a tuple of them. Raises CdTypeError CD0480 for what
    is no such name.
    """
    return Derivative(function, Gradient(_names(function, wrt)), isinstance(wrt, str))


def value_and_gradient(function: Any, wrt: str | Sequence[str]) -> Derivative:
    """Return a function that returns what `function` returns, and its gradient; see `gradient`."""
    return Derivative(function, Gradient(_names(function, wrt), True), isinstance(wrt, str))


def vjp(
    function: Any, wrt: str | Sequence[str], outputs: str | Sequence[str] | None = None
) -> Derivative:
    """Return a function that returns the cotangents of parameters, from those of outputs.

    Outputs are what `function` returns, by the names that it has there (`result` without one), and
    the arguments that it writes; without `outputs` all of floats. It is called with the arguments
    of `function`, then a cotangent `d_y` of the shape of each output `y`, by position or name, and
    returns what `gradient` does: the sums over the outputs' elements of their cotangents times
    their derivatives. Raises as `gradient` does.
    """
    request = CotangentProduct(_names(function, wrt), _outputs(outputs))
    return Derivative(function, request, isinstance(wrt, str))


def jvp(
    function: Any, wrt: str | Sequence[str], outputs: str | Sequence[str] | None = None
) -> Derivative:
    """Return a function that returns the tangents of outputs: derivatives along a direction.

    It is called with the arguments of `function`, then the direction: a tangent `t_x` of the shape
    of each parameter `x` in `wrt`. One output (see `vjp`) gives an array or a number, several a
    tuple. Of a gradient it is the product of the Hessian with a vector. Raises as `gradient` does.
    """
    request = TangentProduct(_names(function, wrt), _outputs(outputs))
    return Derivative(function, request, isinstance(wrt, str))


def backward(
    function: Any,
    loss: str = "loss",
    wrt: str | Sequence[str] | None = None,
    accumulate: bool = False,
) -> Derivative:
    """Return a function that runs `function`, and writes the gradients of its tensors.

    `loss` is the name of what is differentiated: what `function` returns or writes, of an array the
    sum of its elements; one returned number may have any name. The gradient of each tensor `w` of
    floats whose values it reads, or of those in `wrt`, is written to `w.grad`, or added to it with
    `accumulate`. It is called with the arguments of `function`, and returns what that returns.
    Raises as `gradient` does.
    """
    _require_function(function)
    names = (wrt,) if isinstance(wrt, str) else None if wrt is None else tuple(wrt)
    return Derivative(function, Backward(names, loss, accumulate), False)


def _names(function: Any, wrt: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of parameters, all of which the function has."""
    _require_function(function)
    names = (cast(str, wrt),) if isinstance(wrt, str) else tuple(wrt)
    parameters = _parameters(function)
    for name in names if parameters is not None else ():
        if name not in parameters:
            message = f"`{function.__name__}` has no parameter `{name}`"
            text = f"it has {', '.join(f'`{one}`' for one in parameters)}"
            raise CdTypeError(Diagnostic("CD0480", message, helps=(text,)))
    return names


def _require_function(function: Any) -> None:
    if not isinstance(function, CdFunction | Derivative):
        message = f"a gradient is one of a `@cd` function, not of {type(function).__name__}"
        raise CdTypeError(Diagnostic("CD0480", message, helps=("decorate it with `@cd`",)))


def _outputs(outputs: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (outputs,) if isinstance(outputs, str) else None if outputs is None else tuple(outputs)
