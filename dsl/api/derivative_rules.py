"""Derivatives that the user writes: `@f.vjp_rule` and `@f.jvp_rule`.

    @f.vjp_rule                     of `f(x, n)`, which returns `y`
    @cd
    def f_vjp(x, y, d_y):           takes arguments, outputs and their cotangents, by name
        return d_y * y, None        returns the cotangent of each parameter

Where a derivative of the other kind is asked for, a rule is transposed: it is linear in what it is
applied to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base.cached_property import cached_property
from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ..elaborate.derivatives.derivative_rules import CallRule, Role
from ..gradient.requests import (
    CotangentProduct,
    further_parameters,
    returned_names,
    returned_values,
)
from ..source import surface as s
from .cd import CdFunction, cd
from .gradients import Derivative

Function = CdFunction[..., Any]
Roles = dict[str, tuple[Role, str | int]]


def vjp_rule(function: Function, rule: Any = None, wrt: str | Sequence[str] | None = None) -> Any:
    """Return a function under `@cd` that is from now on the reverse derivative of `function`.

    See `CdFunction.vjp_rule`. Raises CdTypeError CD0487 for parameters that mean nothing.
    """
    if rule is None:
        return lambda one: vjp_rule(function, one, wrt)
    made = _compiled(rule)
    roles = _roles(function, made, "d", returned_names(function.surface))
    names = _parameters(function) if wrt is None else _known(function, made, wrt)
    set_rules(function, (CallRule(made, roles, names),))
    return made


def _known(function: Function, rule: Function, wrt: str | Sequence[str]) -> tuple[str, ...]:
    """Return the parameters that a rule is for, all of which the function has."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    if unknown := [name for name in names if name not in _parameters(function)]:
        text = f"`{function.__name__}` has no parameter `{unknown[0]}`"
        raise _refused(text, rule.surface, f"it has {_listed(_parameters(function))}")
    return names


def jvp_rule(function: Function, rule: Any = None, wrt: str | Sequence[str] | None = None) -> Any:
    """Return a function under `@cd` that is from now on the forward derivative of `function`.

    See `CdFunction.jvp_rule`. Raises CdTypeError CD0487 for parameters that mean nothing, and where
    the rule takes other tangents than those of the parameters in `wrt`.
    """
    if rule is None:
        return lambda one: jvp_rule(function, one, wrt)
    made = _compiled(rule)
    roles = _roles(function, made, "t", _parameters(function))
    if wrt is not None:
        names = _known(function, made, wrt)
        taken = [str(at) for role, at in roles.values() if role == "tangent"]
        if sorted(taken) != sorted(names):
            text = f"it takes tangents of {_listed(taken) or 'nothing'}, and `wrt` names "
            raise _refused(text + _listed(names), made.surface, "name the same parameters")
    set_rules(function, (CallRule(made, roles, None),))
    return made


def _compiled(rule: Any) -> Function:
    return rule if isinstance(rule, CdFunction) else cd(rule)


def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(param.name for param in function.surface.params)


def _roles(function: Function, rule: Function, letter: str, vectors: Sequence[str]) -> Roles:
    """Return what each parameter of a rule is, by its name."""
    arguments, outputs = _parameters(function), returned_names(function.surface)
    known: Roles = {name: ("output", at) for at, name in enumerate(outputs)}
    more: list[Roles] = [{name: ("argument", name)} for name in arguments]
    more += [
        {f"{letter}_{name}": ("cotangent", at) if letter == "d" else ("tangent", name)}
        for at, name in enumerate(vectors)
    ]
    twice: set[str] = set()
    for one in more:
        twice |= known.keys() & one.keys()
        known |= one
    roles: Roles = {}
    for param in rule.surface.params:
        if param.name in twice:
            text = (
                f"`{param.name}` is more than one thing that a rule of `{function.__name__}` gets"
            )
            raise _refused(text, param, "give the outputs and arguments of that other names")
        if param.name in known:
            roles[param.name] = known[param.name]
        elif param.default is None:
            text = f"`{param.name}` is nothing that a rule of `{function.__name__}` gets"
            raise _refused(text, param, f"it gets, by name: {_listed(known)}")
    return roles


class DerivativeRules:
    """The derivatives of a function that its user wrote; where there is one kind alone, the other
    is its transpose."""

    def __init__(self, function: Function, written: Mapping[str, CallRule]) -> None:
        """Store the function and what was written, by kind: `cotangents`, `tangents`."""
        self._function, self.written = function, written

    @cached_property
    def cotangents(self) -> CallRule | None:
        """The reverse derivative; None where there is none, and no transpose."""
        return self.written.get("cotangents") or self._transposed("tangents")

    @cached_property
    def tangents(self) -> CallRule | None:
        """The forward derivative; None where there is none, and no transpose."""
        return self.written.get("tangents") or self._transposed("cotangents")

    def _transposed(self, kind: str) -> CallRule | None:
        rule = self.written.get(kind)
        return None if rule is None else _transposed(self._function, rule)


def set_rules(function: Function, rules: Iterable[CallRule]) -> None:
    """Make functions of the user derivatives of another one, beside those that it has."""
    definition = function.definition
    definition.rules_identity = object()
    for rule in rules:
        definition.written_rules["tangents" if rule.of is None else "cotangents"] = rule
    definition.derivative_rules = DerivativeRules(function, dict(definition.written_rules))


def restore_rules(function: Function, rules: Iterable[tuple[Any, ...]]) -> None:
    """Give a function the rules that it was pickled with: the fields of each."""
    set_rules(function, (CallRule(*rule) for rule in rules))


def _transposed(function: Function, rule: CallRule) -> CallRule | None:
    """Return the transpose of a rule as a rule; None where it does not take all vectors."""
    kind = "tangent" if rule.of is None else "cotangent"
    vectors = [name for name, (role, _) in rule.roles.items() if role == kind]
    surface = rule.function.surface
    values = returned_values(surface)
    given = [
        (name, at) for at, (name, value) in enumerate(zip(returned_names(surface), values))
        if not (isinstance(value, s.Literal) and value.value is None)
    ]  # fmt: skip
    if not vectors or not given or len(values) != _count(function, rule):
        return None
    if kind == "cotangent" and len(vectors) != len(returned_names(function.surface)):
        return None
    wrt = vectors[0] if len(vectors) == 1 else tuple(vectors)
    names = tuple(name for name, _ in given)
    request = CotangentProduct((wrt,) if isinstance(wrt, str) else wrt, names, isinstance(wrt, str))
    transposed = Derivative(rule.function, replace(request, prefix="along_"))
    roles: Roles = {
        name: ("zero", at) if role == kind else (role, at)
        for name, (role, at) in rule.roles.items()
    }
    further = further_parameters(transposed.request)
    for name, (_, at) in zip(further, given, strict=True):
        roles[name] = ("cotangent", at) if rule.of is None else ("tangent", rule.of[at])
    if rule.of is None:
        return CallRule(transposed, roles, tuple(str(rule.roles[name][1]) for name in vectors))
    order = [rule.roles[name][1] for name in vectors]
    return CallRule(transposed, roles, None) if order == sorted(order, key=int) else None


def _count(function: Function, rule: CallRule) -> int:
    """Return how many values a rule has to return."""
    return len(returned_names(function.surface) if rule.of is None else rule.of)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _refused(message: str, at: s.Function | s.Param, help_: str) -> CdTypeError:
    return CdTypeError(Diagnostic("CD0487", message, (Label(at.span),), helps=(help_,)))
