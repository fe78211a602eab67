"""Derivatives of functions, as functions whose source can be read.

    g = pe.gradient(loss, wrt=("w", "b"))
    d_w, d_b = g(x, w, b, y)            called like the function itself
    print(g.source)                     the statements that computed them, in the language

    pe.vjp(f, wrt="x")(x, d_y)          cotangents of parameters, from those of outputs
    pe.jvp(f, wrt="x")(x, t_x)          tangents of outputs, from those of parameters
    pe.backward(train)(w1, b1, x, y)    writes the gradients into the tensors' fields `grad`

The assignments of the function are differentiated (`lowering.adjoint`), for each of its
specializations; what results is compiled like any other function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from ...base.cached_property import cached_property
from ...base.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic
from ...lowering.adjoint.checkpoints import Memory
from ..elaborate.derivatives.derivative_rules import CallRule, Role
from ..elaborate.typed import Typed
from ..gradient.report import Kept, report
from ..gradient.requests import (
    Backward,
    CotangentProduct,
    Gradient,
    Request,
    TangentProduct,
    further_parameters,
    outputs_in_source,
    with_fresh_names,
    word_of,
)
from ..gradient.specializations import DerivedSpecializations, calling, with_parameters
from ..gradient.texts import Text, text_of
from ..source import surface as s
from ..source.definition import Definition
from ..specialize.variants import Lookup
from ..values.call_site import Word
from .cd import BoundFunction, CdFunction, cd_from_source
from .words import comment

Function = CdFunction[..., Any]
_SORTS = ("rank", "of_rank", "ordinal")
_WORDS: Mapping[str, object] = MappingProxyType(
    {"np": np, "comment": comment, **{name: Word(name) for name in _SORTS}}
)
"""The words of texts that are names around them."""


class Derivative(CdFunction[..., Any]):
    """A function under `@cd` that returns derivatives of what another one computes.

    It is called with the arguments of that function, and does to them what that does. Cotangents or
    tangents follow, by position or by name.
    """

    def __init__(self, function: Function, request: Request, backend: str | None = None) -> None:
        """Derive from a function. Raises CdTypeError CD0480 for what it has no parameters for."""
        known = function.__signature__.parameters.keys()
        request = with_fresh_names(request, known, function.surface)
        self.derived_from, self.request = function, request
        self._base = function.definition
        self._rules = _innermost(function).derivative_rules
        definition = Definition(self._base.around)
        definition.surface = with_parameters(function.surface, request)
        signature = _with_parameters(function, further_parameters(request))
        super().__init__(definition, signature, backend or function._backend)
        self.__doc__ = f"The {word_of(request)} of `{function.__name__}`."
        self._derived_rules: dict[tuple[str, ...], DerivedRules] = {}

    @property
    def definition(self) -> Definition:
        """The definition, renewed where that of the function was replaced."""
        is_current = self.derived_from.definition is self._base
        if not is_current or _innermost(self.derived_from).derivative_rules is not self._rules:
            renewed = Derivative(self.derived_from, self.request, self._backend)
            self.__dict__.pop("_forms", None)
            self.__dict__.update(renewed.__dict__)
        return self._definition

    @cached_property
    def _forms(self) -> DerivedSpecializations:
        definition = self.definition
        lookup = definition.around.lookup
        return DerivedSpecializations(
            definition.surface, lookup, self._backend, self._plans, self.derivations,
            _innermost(self) if self._rules else None,
        )  # fmt: skip

    @property
    def derivations(self) -> tuple[tuple[str, Request], ...]:
        """Which functions are derived, and what of each, in order: of a derivative's derivative
        first what the inner one is derived from."""
        function = self.derived_from
        inner = function.derivations if isinstance(function, Derivative) else ()
        return (*inner, (function.surface.name, self.request))

    def text(self, *args: Any, **kwargs: Any) -> str:
        """Return the source of the derivatives for arguments; nothing runs. CdTypeError CD0480
        where there is none."""
        specialization, _ = self._forms.peek(self._bind(args, kwargs), compiled=False)
        self._forms.latest = specialization.typed
        return self._text(specialization.typed).text

    def _text(self, typed: Typed) -> Text:
        lookup = self._base.around.lookup
        return text_of(typed, self.surface, self.__signature__, lookup)

    def kept(self, *args: Any, **kwargs: Any) -> Kept:
        """Return what is kept of the function's values for arguments; nothing runs."""
        arguments = self._bind(args, kwargs)
        specialization, _ = self._forms.peek(arguments, compiled=False)
        values = [get(arguments) for get in specialization.arrays]
        return report(specialization.procedure, values, specialization.typed.whole)

    @property
    def source(self) -> str:
        """The source of the latest specialization. CdValueError CD0481 before there is one,
        CdTypeError CD0480 where the language has no words for it."""
        latest = self._forms.latest
        if latest is None:
            raise CdValueError(
                Diagnostic(
                    "CD0481", f"`{self.__name__}` has no source yet: it depends on types",
                    helps=("call it, or ask `g.text(...)` for arguments",),
                )
            )  # fmt: skip
        return self._text(latest).text

    @property
    def names(self) -> Mapping[str, object]:
        """The global names that the latest source uses, for `cd_from_source`: what the function and
        those that it calls capture, as it is now, and three words of sorts."""
        latest = self._forms.latest
        captured = {} if latest is None else self._text(latest).names
        return {**_WORDS, **{name: get() for name, get in captured.items()}}

    def on(self, backend: str) -> Derivative:
        """Return the same derivative on another backend; the same object every time."""
        if backend not in self._on_backends:
            function = Derivative(self.derived_from, self.request, backend)
            self._on_backends.setdefault(backend, function)
        return cast(Derivative, self._on_backends[backend])

    def __reduce__(self) -> tuple[Any, ...]:
        return Derivative, (self.derived_from, self.request, self._backend)

    def __cd_for_values__(
        self, args: Sequence[Any], keywords: Mapping[str, Any], numbers: Sequence[object]
    ) -> tuple[s.Function, Lookup, Typed]:
        """Return source and scope of the derivative for arguments of these kinds, with which
        another function inlines it, and what it is the source of; `numbers` are those of them
        that are known at run time only.

        Raises CdTypeError CD0480 where the source needs more than the arguments.
        """
        arguments = self._bind(tuple(args), keywords)
        run_time = {id(number) for number in numbers}
        try:
            typed = self._forms.peek(arguments, compiled=False)[0].typed
        except CdError:
            names = [name for name, value in arguments.items() if id(value) in run_time]
            if not any(isinstance(arguments[name], int | np.integer) for name in names):
                raise
            text = (
                f"`{self.__name__}` cannot be derived where {' and '.join(names)} are no constants"
            )
            raise _refused(text, "pass numbers that are known when compiling") from None
        for name, value in arguments.items():
            if id(value) in run_time and name in typed.statics:
                raise _refused(
                    f"`{name}` of `{self.__name__}` decides its statements: pass a constant"
                )
        written = self._text(typed)
        around = _Around(written.names) if written.names else dict(_WORDS)
        made = cd_from_source(written.text, around, f"<{self.__name__}>")
        surface, lookup = made.__cd_function__()
        if written.renamed:  # it is called by the names that it has
            own = {name: written.renamed.get(name, name) for name in self.__signature__.parameters}
            surface = calling(self.surface, made, own)
        return surface, lookup, typed

    def __cd_rules__(self, wrt: tuple[str, ...]) -> DerivedRules | None:
        """Return its own derivatives in parameters as rules, for calls in what is differentiated;
        None where it has outputs of several kinds."""
        if wrt not in self._derived_rules:
            outputs = self.request.outputs if isinstance(self.request, TangentProduct) else ()
            if isinstance(self.request, Backward) or outputs is None or not wrt:
                return None
            if isinstance(self.request, Gradient) and self.request.with_value:
                return None
            self._derived_rules[wrt] = DerivedRules(self, wrt, _outputs_of(self))
        return self._derived_rules[wrt]

    @property
    def derived_lookup(self) -> Lookup:
        """The lookup of what its function captures."""
        return self._base.around.lookup

    def __repr__(self) -> str:
        wrt = self.request.wrt
        names = "all tensors" if wrt is None else ", ".join(wrt)
        return f"<{word_of(self.request)} of {self.derived_from.__name__} in {names}>"


class DerivedRules:
    """The derivatives of a derivative, as rules of it."""

    def __init__(self, function: Derivative, wrt: tuple[str, ...], outputs: Sequence[str]) -> None:
        """Store the function, and what it is differentiated in."""
        self._function, self._wrt, self._outputs = function, wrt, tuple(outputs)

    @cached_property
    def cotangents(self) -> CallRule:
        """The reverse derivative."""
        request = CotangentProduct(self._wrt, self._outputs, len(self._wrt) == 1)
        return self._rule(request, [("cotangent", at) for at in range(len(self._outputs))])

    @cached_property
    def tangents(self) -> CallRule:
        """The forward derivative."""
        request = TangentProduct(self._wrt, self._outputs)
        return self._rule(request, [("tangent", name) for name in self._wrt])

    @property
    def written(self) -> Mapping[str, CallRule]:
        """Both, by kind."""
        return {"cotangents": self.cotangents, "tangents": self.tangents}

    def _rule(self, request: Request, further: Sequence[tuple[Role, str | int]]) -> CallRule:
        made = Derivative(self._function, request)
        roles: dict[str, tuple[Role, str | int]] = {
            name: ("argument", name) for name in self._function.__signature__.parameters
        }
        roles |= dict(zip(further_parameters(made.request), further, strict=True))
        return CallRule(made, roles, self._wrt if further[0][0] == "cotangent" else None)


def _innermost(function: Function) -> Function:
    """Return the function whose source is derived: of a derivative what the first one is of."""
    while isinstance(function, Derivative):
        function = function.derived_from
    return function


class _Around(Mapping[str, object]):
    """The names around a derivative's source: words, and what is captured, as it is now."""

    def __init__(self, captured: Mapping[str, Callable[[], object]]) -> None:
        self._captured = captured

    def __getitem__(self, name: str) -> object:
        return self._captured[name]() if name in self._captured else _WORDS[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_WORDS, **self._captured})

    def __len__(self) -> int:
        return len({**_WORDS, **self._captured})


def _with_parameters(function: Function, names: Sequence[str]) -> inspect.Signature:
    """Return the signature of a function with further parameters: by name alone where one before
    these has a default."""
    known = list(function.__signature__.parameters.values())
    if len(set(names)) < len(names):
        raise _refused(f"a parameter of `{function.__name__}` is named twice")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    plain = all(one.kind <= kind and one.default is one.empty for one in known)
    new = [inspect.Parameter(n, kind if plain else inspect.Parameter.KEYWORD_ONLY) for n in names]
    last = [one for one in known if one.kind is inspect.Parameter.VAR_KEYWORD]
    first = [one for one in known if one not in last]
    return inspect.Signature([*first, *new, *last])


def gradient(
    function: Any, wrt: str | Sequence[str], memory: int | None = None, keep: str = "store"
) -> Derivative:
    """Return a function that returns the gradient of what `function` returns, one real number.

    `wrt` names the parameters, arrays of floats or numbers, or what these hold, as the source does:
    `model.w`, `layers[0]`. Of one name the result is an array of its shape and type, of a tuple or
    list the same of its items, of several names a tuple. Raises CdTypeError CD0480 for what
    is no such name.

    About `memory` states of each outermost loop are held at once; the others are computed again.
    Without, those of all iterations; where `keep` is "recompute", twice the root of these. Raises
    CdValueError CD0482 for other values.
    """
    names, single = _names(function, wrt)
    return _derivative(function, Gradient(names, single, memory=_memory(memory, keep)))


def value_and_gradient(
    function: Any, wrt: str | Sequence[str], memory: int | None = None, keep: str = "store"
) -> Derivative:
    """Return a function that returns what `function` returns, and its gradient; see `gradient`."""
    names, single = _names(function, wrt)
    return _derivative(function, Gradient(names, single, True, _memory(memory, keep)))


def vjp(
    function: Any,
    wrt: str | Sequence[str],
    outputs: str | Sequence[str] | None = None,
    memory: int | None = None,
    keep: str = "store",
) -> Derivative:
    """Return a function that returns the cotangents of parameters, from those of outputs.

    Outputs are what `function` returns, by the names that it has there (`result` without one), and
    the arguments that it writes; without `outputs` all of floats. It is called with the arguments
    of `function`, then a cotangent `d_y` of the shape of each output `y`, by position or name, and
    returns what `gradient` does: the sums over the outputs' elements of their cotangents times
    their derivatives. `memory`, `keep` and what it raises are those of `gradient`.
    """
    names, single = _names(function, wrt)
    wanted = _outputs(outputs)
    of_all = wanted is None
    if wanted is None:
        wanted = _outputs_of(function)
    held = _memory(memory, keep)
    return _derivative(function, CotangentProduct(names, wanted, single, of_all, held))


def jvp(
    function: Any, wrt: str | Sequence[str], outputs: str | Sequence[str] | None = None
) -> Derivative:
    """Return a function that returns the tangents of outputs: derivatives along a direction.

    It is called with the arguments of `function`, then the direction: a tangent `t_x` of the shape
    of each parameter `x` in `wrt`. One output (see `vjp`) gives an array or a number, several a
    tuple. Of a gradient it is the product of the Hessian with a vector. Raises as `gradient` does.
    """
    names, _ = _names(function, wrt)
    return _derivative(function, TangentProduct(names, _outputs(outputs)))


def backward(
    function: Any,
    loss: str = "loss",
    wrt: str | Sequence[str] | None = None,
    accumulate: bool = False,
    memory: int | None = None,
    keep: str = "store",
) -> Derivative:
    """Return a function that runs `function`, and writes the gradients of its tensors.

    `loss` is the name of what is differentiated: what `function` returns or writes, of an array the
    sum of its elements; one returned number may have any name. The gradient of each tensor `w` of
    floats whose values it reads, or of those in `wrt`, is written to `w.grad`, or added to it with
    `accumulate`. It is called with the arguments of `function`, and returns what that returns.
    `memory`, `keep` and what it raises are those of `gradient`.
    """
    _require_function(function)
    names = (wrt,) if isinstance(wrt, str) else None if wrt is None else tuple(wrt)
    request = Backward(names, loss, accumulate, _memory(memory, keep))
    return _derivative(function, request)


def _memory(states: int | None, keep: str) -> Memory | None:
    """Return how many states of loops are to be held, None for all."""
    if keep not in ("store", "recompute"):
        text = f'`keep` is "store" or "recompute", not {keep!r}'
        helps = ("leave it out to keep all states", "`memory=64` says how many to hold")
        raise CdValueError(Diagnostic("CD0482", text, helps=helps))
    if states is None:
        return Memory() if keep == "recompute" else None
    whole = isinstance(states, int | np.integer) and not isinstance(states, bool)
    if not whole or states < 1:
        text = f"`memory` is a number of states, an integer from 1 on, not {states!r}"
        helps = ("leave it out to keep all states", '`keep="recompute"` takes a number that fits')
        raise CdValueError(Diagnostic("CD0482", text, helps=helps))
    return Memory(int(states))


def _derivative(function: Any, request: Request) -> Derivative:
    """Return a derivative; that of a method is bound to its object, too."""
    if isinstance(function, BoundFunction):
        bound: BoundFunction[..., Any] = BoundFunction(
            Derivative(cast(Function, function.func), request), *function.args
        )
        return cast(Derivative, bound)
    return Derivative(function, request)


def _names(function: Any, wrt: str | Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the names of parameters, all of which the function has, and whether it is one."""
    _require_function(function)
    names = (wrt,) if isinstance(wrt, str) else wrt if isinstance(wrt, tuple | list) else (wrt,)
    if not all(isinstance(name, str) for name in names):
        raise _refused("`wrt` names parameters", 'write `wrt="x"` or `wrt=("x", "y")`')
    names = tuple(names)
    parameters = list(inspect.signature(function).parameters)
    for name in names:
        if re.split(r"[.\[]", name)[0] not in parameters:
            text = f"it has {', '.join(f'`{one}`' for one in parameters)}"
            raise _refused(f"`{function.__name__}` has no parameter `{name}`", text)
    return names, isinstance(wrt, str)


def _require_function(function: Any) -> None:
    if not isinstance(function, CdFunction | BoundFunction):
        text = f"a gradient is one of a `@cd` function, not of {type(function).__name__}"
        raise _refused(text, "decorate it with `@cd`")


def _refused(message: str, *helps: str) -> CdTypeError:
    return CdTypeError(Diagnostic("CD0480", message, helps=helps))


def _outputs(outputs: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (outputs,) if isinstance(outputs, str) else None if outputs is None else tuple(outputs)


def _outputs_of(function: Any) -> tuple[str, ...]:
    """Return the names of all outputs of a function."""
    function = function.func if isinstance(function, BoundFunction) else function
    if not isinstance(function, Derivative):
        return outputs_in_source(function.surface)
    match function.request:
        case Gradient(wrt, with_value=False) | CotangentProduct(wrt):
            return tuple(f"d_{name}" for name in wrt)
        case TangentProduct(_, tuple(outputs)):
            return tuple(f"t_{name}" for name in outputs)
        case _:
            raise _refused(f"`{function.__name__}` has outputs of several kinds: name `outputs`")
