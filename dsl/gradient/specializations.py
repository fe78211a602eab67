"""The specializations of a derivative: those of its function, whose assignments are differentiated.

What decides about a specialization, and how a call finds one, is that of the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...backends.call_entry import CacheEntry
from ...lowering.adjoint.derivative_rules import uses_rules, without_rules
from ...lowering.ir.verify import verify_procedure
from ..elaborate.typed import Typed
from ..source import surface as s
from ..specialize.specialization import SpecializationCache
from ..specialize.variants import Lookup
from ..values.values import Path
from .requests import (
    Request,
    TangentProduct,
    derive,
    further_parameters,
    returned_names,
    word_of,
)


class DerivedSpecializations(SpecializationCache):
    """The specializations of a derivative, or of one of a derivative; thread-safe."""

    def __init__(
        self,
        function: s.Function,
        lookup: Lookup,
        backend: str | None,
        plans: list[CacheEntry] | None,
        derivations: Sequence[tuple[str, Request]],
        called: object = None,
    ) -> None:
        """Store the function, which has the parameters of the derivative, and the derivations in
        their order: the name of what is derived, and what is requested of it.

        `called` is the function itself where it has derivative rules, which are used for calls.
        """
        super().__init__(
            function if called is None else _calling(function, called), lookup, backend, plans
        )
        self.returned = returned_names(function)
        self.derivations = tuple(derivations)
        self.derives = tuple(
            "tangents" if isinstance(request, TangentProduct) else "cotangents"
            for _, request in derivations
        )
        self.latest: Typed | None = None
        """What was derived last."""

    def _elaborate(self, *situation: Any) -> tuple[Typed, dict[Path, Path]]:
        typed, alias = super()._elaborate(*situation)
        names, has_rules = self.returned, uses_rules(typed.procedure)
        for name, request in self.derivations:
            typed, names = derive(request, typed, name, names, alias), ()
        typed = replace(typed, procedure=without_rules(typed.procedure), has_rules=has_rules)
        verify_procedure(typed.procedure)  # what is compiled is safe if it holds
        self.latest = typed
        return typed, alias


def _calling(function: s.Function, called: Any) -> s.Function:
    """Return the source of a function that calls another one, with its arguments."""
    own = [param.name for param in called.surface.params]
    return calling(function, called, {name: name for name in own})


def calling(function: s.Function, called: Any, names: Mapping[str, str]) -> s.Function:
    """Return the source of a function that calls another one with those of its parameters that
    `names` gives, each with what the other one calls it."""
    span = function.span
    args: list[s.Expr] = []
    keywords: list[s.Keyword] = []
    for param in function.params:
        if param.name not in names:
            continue
        value = s.Name(param.name, span)
        match param.kind:
            case "keyword":
                keywords.append(s.Keyword(names[param.name], value, span))
            case "**":
                keywords.append(s.Keyword(None, value, span))
            case "*":
                args.append(s.Starred(value, span))
            case _:
                args.append(value)
    call = s.Call(s.Literal(called, span), tuple(args), tuple(keywords), span)
    body = (s.Return(call, span),)
    return s.Function(function.name, function.params, body, function.doc, span)


def with_parameters(function: s.Function, request: Request) -> s.Function:
    """Return the source of a function with the parameters that a derivative has besides."""
    plain = all(p.kind in ("positional", "any") and p.default is None for p in function.params)
    further = tuple(
        s.Param(name, "any" if plain else "keyword", None, None, function.span)
        for name in further_parameters(request)
    )
    last = tuple(param for param in function.params if param.kind == "**")
    return s.Function(
        f"{function.name}_{word_of(request)}",
        (*(param for param in function.params if param not in last), *further, *last),
        function.body,
        function.doc,
        function.span,
    )
