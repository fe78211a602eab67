"""The specializations of a derivative: those of its function, whose assignments are differentiated.

What decides about a specialization, and how a call finds one, is that of the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from keyword import iskeyword
from typing import Any

from ...backends.call_entry import CacheEntry
from ...base.diagnostic import NOWHERE, CdTypeError, Diagnostic, Label
from ...lowering.adjoint.derivative_rules import uses_rules, without_rules
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.ir.node import Node
from ...lowering.ir.verify import verify_procedure
from ..elaborate.typed import Argument, Many, New, Return, Typed
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
from .source_text import source_text


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
    span, own = function.span, [param.name for param in called.surface.params]
    known = {param.name: param for param in function.params}
    args = [s.Name(name, span) for name in own if known[name].kind != "keyword"]
    keywords = [
        s.Keyword(name, s.Name(name, span), span) for name in own if known[name].kind == "keyword"
    ]
    call = s.Call(s.Literal(called, span), tuple(args), tuple(keywords), span)
    body = (s.Return(call, span),)
    return s.Function(function.name, function.params, body, function.doc, span)


def with_parameters(function: s.Function, request: Request) -> s.Function:
    """Return the source of a function with the parameters that a derivative has besides."""
    further = tuple(
        s.Param(name, "any", None, None, function.span) for name in further_parameters(request)
    )
    return s.Function(
        f"{function.name}_{word_of(request)}",
        (*function.params, *further),
        function.body,
        function.doc,
        function.span,
    )


def text_of(typed: Typed, function: s.Function) -> str:
    """Return a typed function as source text with the parameters of `function`, and further ones
    for what inlined functions capture.

    Raises CdTypeError CD0480 for what the language has no words for.
    """
    own = tuple(param.name for param in function.params)
    given, spelled = _spelled(typed, own)
    parameters = (*own, *given)
    name = function.name if function.name.isidentifier() else "derivative"
    results = [node for one in _flat(typed.returns) for node in _result(one, typed)]
    try:
        text = source_text(typed.procedure, name, results, spelled, parameters)
    except NotDifferentiable as why:
        message = f"`{function.name}` has no text: the language has no words for {why.reason}"
        span = function.span if why.span == NOWHERE else why.span
        helps = ("it can be called all the same",)
        raise CdTypeError(Diagnostic("CD0480", message, (Label(span),), helps=helps)) from None
    if not results:
        return text
    body, _, returned = text.rpartition("    return ")
    names = iter(returned.strip().split(", "))
    return f"{body}    return {_nested(typed.returns, typed, names, is_outermost=True)}\n"


def _nested(returns: Return, typed: Typed, names: Iterator[str], is_outermost: bool = False) -> str:
    """Return what a function returns as text, of the names of its arrays in order."""
    if not isinstance(returns, Many):
        return next(names) if _result(returns, typed) else "None"
    inside = ", ".join(_nested(item, typed, names) for item in returns.items)
    if returns.kind == "list":
        return f"[{inside}]"
    comma = "," * (len(returns.items) == 1)
    return inside + comma if is_outermost else f"({inside}{comma})"


def captured_names(typed: Typed) -> tuple[str, ...]:
    """Return the names around the function that its text uses."""
    roots = (path.root for path in typed.passed if path.captured and _is_written_out(path, typed))
    return tuple(dict.fromkeys(roots))


def _flat(returns: Return) -> list[Return]:
    if isinstance(returns, Many):
        return [one for item in returns.items for one in _flat(item)]
    return [returns]


def _result(one: Return, typed: Typed) -> tuple[Node, ...]:
    match one:
        case New(number):
            return (typed.procedure.results[number],)
        case Argument(path) if path in typed.passed:
            return (typed.procedure.parameters[typed.passed.index(path)].node,)
        case _:
            return ()


def _spelled(typed: Typed, own: Sequence[str]) -> tuple[dict[str, Path], dict[int, str]]:
    """Return the further parameters of a text beside its own, by name, and how it spells arrays."""
    taken = {*own, *captured_names(typed)}
    given: dict[str, Path] = {}
    spelled: dict[int, str] = {}
    for path, parameter in zip(typed.passed, typed.procedure.parameters, strict=True):
        whole = path.owner or path
        name = str(whole)
        if not _is_written_out(path, typed):
            name = plain = _identifier(whole.label)
            count = 2
            while name in taken or given.get(name, whole) != whole:
                name, count = f"{plain}_{count}", count + 1
            given[name] = whole
        field = "" if path.owner is None else f".{str(path.steps[-1])[1:]}"
        spelled[parameter.node.id] = name if field == ".value" else f"{name}{field}"
    return given, spelled


def _identifier(label: str) -> str:
    """Return the label of an array as a name: without the function that captures it."""
    name = re.sub(r"\W", "_", label.rpartition(":")[2])
    return name if name.isidentifier() and not iskeyword(name) else f"array_{name}"


def _is_written_out(path: Path, typed: Typed) -> bool:
    """Whether a text spells an array as the source does: a name with attributes and items."""
    whole = path.owner or path
    steps = (
        step.isidentifier() if isinstance(step, str) else isinstance(step, int | tuple)
        for step in whole.steps
    )  # fmt: skip
    return whole.root.isidentifier() and whole.root not in typed.constants and all(steps)
