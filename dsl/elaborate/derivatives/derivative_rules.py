"""Calls of functions whose derivatives the user wrote, in what is differentiated.

    y = f(x, n)        x_in = x;  a block of the statements of `f`, which computes y_out from x_in,
                       with the statements of its rule;  y = y_out

The rule is a function under `@cd`, which is elaborated for arrays like those of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, Literal, Protocol, assert_never

import numpy as np

from ....base.dataclass import dataclass
from ....base.diagnostic import CdError, CdTypeError, Span
from ....lowering.adjoint.derivative_rules import without_rules
from ....lowering.adjoint.simplify import simplified
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import (
    Alloc,
    Block,
    DerivativeRule,
    Let,
    LinearMap,
    Parameter,
    Procedure,
    Statement,
)
from ....lowering.ir.expressions import Const, Read, reads
from ....lowering.ir.indexing import Symbol, var
from ....lowering.ir.node import Node
from ....lowering.ir.walk import binds, statements, uses, writes
from ....lowering.ir.walk import reads as reads_of
from ...source import surface as s
from ...values.arrays import as_array, describe
from ...values.builder import Context, error
from ...values.types import Kind, cast
from ...values.values import Array, Group, Handle, Masked, Scalar, Static, Value
from ..branches import not_always
from ..captures.owners import below, compare, defaults_of, way_to
from ..normalize import build
from ..scope import Frame
from ..storage import stored
from .derived_calls import source_of_call
from .pointwise_rules import PointwiseCall

Role = Literal["argument", "output", "cotangent", "tangent", "zero"]
Inline = Callable[..., Value]
DIFFERENTIABLE = "fc"


@dataclass(frozen=True, slots=True)
class CallRule:
    """A derivative of a function, as a function under `@cd`."""

    function: Any
    roles: Mapping[str, tuple[Role, str | int]]
    """What each of its parameters is: an argument or its tangent, by the name of the function's
    parameter; an output, its cotangent, or zeros of its shape, by its number."""
    of: tuple[str, ...] | None
    """The parameters whose cotangents it returns; None where it returns tangents of outputs."""


class CallRules(Protocol):
    """The derivatives of a function that its user wrote, by kind."""

    @property
    def cotangents(self) -> CallRule | None:
        """The reverse derivative."""

    @property
    def tangents(self) -> CallRule | None:
        """The forward derivative."""

    @property
    def written(self) -> Mapping[str, CallRule]:
        """Those that are no transposes, by kind: `cotangents`, `tangents`."""


def rules_of(frame: Frame, function: Any) -> CallRules | None:
    """Return the rules of a function that is called, None where it has none, or where what calls
    it is not differentiated again. Later calls compare that it has these."""
    if not hasattr(function, "derivative_rules"):
        return None
    rules: CallRules | None = function.derivative_rules
    path = below(way_to(frame, function), "rules_identity")
    compare(frame, path, function.rules_identity)
    return rules if frame.ctx.derives else None


def call_by_rule(
    inline: Inline,
    decorated: Inline,
    frame: Frame,
    function: Any,
    rules: CallRules,
    args: tuple[Value, ...],
    keywords: Mapping[str, Value],
    span: Span,
) -> Value:
    """Return the value of a call, whose statements are emitted as a block with a rule.

    `inline` inlines a function, `decorated` calls one under `@cd`. CdTypeError CD0487 for calls
    that the derivative cannot be used for.
    """
    call = _Call(decorated, frame, function, span)
    ctx, before = frame.ctx, frame.ctx.serial
    surface, lookup = source_of_call(frame, function, args, keywords, span)
    known = call.by_name(surface, args, keywords)
    for name, (path, value) in (defaults_of(frame, surface, function) or {}).items():
        known.setdefault(name, frame.inputs.wrap(ctx, path, value, True, span))
    if ctx.pointwise:
        return call.at_letters(rules, known)
    values = {name: call.own(value, name, call.inputs) for name, value in known.items()}
    names = [param.name for param in surface.params if param.kind != "keyword"]
    given = tuple(values[name] for name in names[: len(args)])
    named = {name: values[name] for name in keywords}
    inside = ctx.serial
    with ctx.block() as body:
        result = inline(frame, surface, lookup, given, named, span, None, function)
        call.require_new(result)
    with ctx.block() as stores:
        result = call.own(result, "result", call.outputs, inside)
    call.require_pure(body, before)
    call.require_in_scope((*body, *stores))
    linear = {}
    for kind in sorted(set(ctx.derives)):
        rule: CallRule | None = getattr(rules, kind)
        if rule is not None:
            linear[kind] = call.linear_map(rule, values, result)
    ctx.out += [stmt for stmt in stores if isinstance(stmt, Alloc)]
    body = [*body, *(stmt for stmt in stores if not isinstance(stmt, Alloc))]
    stands_for = DerivativeRule(
        function.__name__, tuple(call.inputs), tuple(call.outputs), **linear
    )
    ctx.emit(Block(f"{function.__name__}(...)", tuple(body), span, stands_for))
    return result


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a function with rules."""

    decorated: Inline
    frame: Frame
    function: Any
    span: Span
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)

    @property
    def ctx(self) -> Context:
        """The state of the elaboration."""
        return self.frame.ctx

    def refused(self, why: str, way_out: str) -> CdError:
        """Return the error of a call that a rule does not fit."""
        name = self.function.__name__
        text = f"`{name}` has derivative rules, and {why}"
        return error("CD0487", CdTypeError, text, self.span, helps=(way_out,))

    def misfit(self, rule: CallRule, why: str, way_out: str = "") -> CdError:
        """Return the error of a rule that returns something else than derivatives."""
        written = getattr(rule.function, "derived_from", rule.function)
        text = f"`{written.__name__}`, a derivative rule of `{self.function.__name__}`, {why}"
        usual = "a rule returns arrays of the shapes of what they are derivatives of, in order"
        helps = (way_out or usual,)
        return error("CD0487", CdTypeError, text, self.span, helps=helps)

    def by_name(
        self, surface: s.Function, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Return the arguments by the names of their parameters."""
        if any(param.kind not in ("any", "positional", "keyword") for param in surface.params):
            raise self.refused("takes any number of arguments", "give each parameter a name")
        names = [param.name for param in surface.params if param.kind != "keyword"]
        return {**dict(zip(names, args, strict=False)), **keywords}

    def at_letters(self, rules: CallRules, known: Mapping[str, Value]) -> Value:
        """Return the value of a call at the points of index letters."""
        ctx, derives = self.ctx, self.ctx.derives

        def inlining(left: tuple[str, ...]) -> Callable[[Any, Mapping[str, Value]], Value]:
            def inline(function: Any, named: Mapping[str, Value]) -> Value:
                with self.deriving(left, function):
                    return self.decorated(self.frame, function, (), named, self.span)

            return inline

        value = inlining(())(self.function, known)
        if ctx.uses is not None:  # the ranges of the letters follow from what the function reads
            return value
        result = value
        for n, kind in reversed([*enumerate(derives)]):  # what is derived last comes first
            rule = rules.written.get(kind) or next(iter(rules.written.values()))
            call = PointwiseCall(
                self.frame, self.function, rule, self.span, inlining(derives[n + 1 :])
            )
            result = call.with_partials(known, value, result)
        return result

    def own(self, value: Value, label: str, nodes: list[Node], above: int | None = None) -> Value:
        """Return a value in arrays of its own, which `nodes` receives: new ones, or those with an
        `id` above a number."""
        ctx, span = self.ctx, self.span
        match value:
            case Handle() if ctx.tensor_value is not None:
                return self.own(ctx.tensor_value(value, span), label, nodes, above)
            case Array() if (node := self.whole_node(value, above)) and node not in nodes:
                nodes.append(node)
                return value
            case Array():
                array = ctx.materialize(value, label, span)
                assert isinstance(array.body, Read), "it is a whole array"
                nodes.append(array.body.node)
                return replace(array, kind=value.kind, listed=value.listed)
            case Scalar(expr, kind) if kind.dtype.kind in DIFFERENTIABLE or any(reads(expr)):
                nodes.append(ctx.variable(label, value, span))
                return Scalar(Read(nodes[-1], ()), kind)
            case Group(items):
                names = (f"{label}_{n}" for n in range(len(items)))
                own = (self.own(*pair, nodes, above) for pair in zip(items, names, strict=True))
                return value.of(own)
            case Masked():
                raise self.refused("gets or returns a selection", "copy it: `x[mask].copy()`")
            case _:
                return value

    def whole_node(self, value: Array, above: int | None) -> Node | None:
        """Return the array that a value is the whole of, if its `id` is above a number."""
        if above is None or not isinstance(value.body, Read) or value.copied or value.sealed:
            return None
        node = value.body.node
        is_whole = value.body.index == tuple(map(var, value.axes)) and value.shape == node.shape
        is_own = node.id > above and node in self.ctx.locals and node.static_shape is not None
        return node if is_whole and is_own else None

    def require_new(self, result: Value) -> None:
        """Refuse results that are arguments, or views of these."""
        match result:
            case Group(items):
                for item in items:
                    self.require_new(item)
            case Array() if (read := result.aliased) is not None and read.node in self.inputs:
                text = "returns an array that it is given, or a view of one"
                raise self.refused(text, "return a copy: `x.copy()`")

    def require_pure(self, body: Sequence[Statement], before: int) -> None:
        """Refuse what writes arguments, or other arrays of floats that were there before."""
        for node in writes(body):
            if node in self.inputs or node.id <= before and node.dtype.kind in DIFFERENTIABLE:
                text = f"writes `{node.label}`, which is there before the call"
                raise self.refused(text, "return a new array instead")

    def require_in_scope(self, body: Sequence[Statement]) -> None:
        """Refuse results of which a size is computed inside."""
        bound = {stmt.symbol for stmt in body if isinstance(stmt, Let)}
        for node in self.outputs:
            if any(bound & extent.symbols() for extent in node.shape):
                raise self.refused("returns an array whose size is data", "return its sum instead")

    def linear_map(self, rule: CallRule, values: Mapping[str, Value], result: Value) -> LinearMap:
        """Return a rule as statements, for arrays like those of the call."""
        ctx, span = self.ctx, self.span
        vectors, wanted = self.outputs, self.inputs
        if rule.of is None:
            vectors, wanted = wanted, vectors
        letter = "t" if rule.of is None else "d"
        formal = {node: self._like(node) for node in (*self.inputs, *self.outputs)}
        given = {node: self._like(node, f"{letter}_{node.label}") for node in vectors}
        zeros = self._zero_vectors(rule, values, _flat(result))
        parts = _flat(result)
        named = self._arguments(rule, values, parts, formal, given, zeros)
        local, bindings, above = len(ctx.locals), dict(ctx.bindings), ctx.serial
        with self.below(rule), ctx.block() as body:
            returned = self.decorated(self.frame, rule.function, (), named, span)
            pairs = self._pairs(rule, returned, values, result)
            found: dict[Node, Node] = {}
            for node, value in pairs:
                array = self._derivative(rule, node, value)
                whole = self.whole_node(array, above)
                fits = whole and (whole.shape, whole.dtype) == (node.shape, node.dtype)
                if whole is None or not fits or whole in found.values():
                    whole = self._stored(array, node, f"{letter}_{node.label}")
                found[node] = whole
        created = ctx.locals[local:]
        del ctx.locals[local:]
        ctx.bindings.clear()
        ctx.bindings.update(bindings)
        results = tuple(found.values())
        parameters = (*formal.values(), *given.values())
        have = (*parameters, *(p.node for p in ctx.parameters.values()), *ctx.locals)
        sizes = ctx.sizes | _free_symbols(body)
        procedure = Procedure(
            rule.function.__name__,
            tuple(Parameter(node, False) for node in parameters),
            tuple(node for node in created if node not in results),
            results,
            stored(tuple(body), created, results, sizes, have),
            span,
        )
        built = build(procedure)
        if read := set(reads_of(simplified(without_rules(built)).body)).intersection(
            zeros.values()
        ):
            name = next(iter(read)).label
            text = f"is not linear in `{name}`, so that it has no transpose"
            raise self.misfit(rule, text, "give the other rule, too: `vjp_rule` or `jvp_rule`")
        taken = {
            node for value in rule.roles.values() for node in self._vectors(value, values, parts)
        }
        ignored = tuple(node not in taken for node in vectors)
        return LinearMap(built, tuple(found.get(node) for node in wanted), ignored)

    def _zero_vectors(
        self, rule: CallRule, values: Mapping[str, Value], parts: Sequence[Value]
    ) -> dict[Node, Node]:
        """Return the vectors at which a transposed rule is differentiated, by what they are of."""
        found: dict[Node, Node] = {}
        for parameter, (role, at) in rule.roles.items():
            value = (
                values.get(at) if isinstance(at, str) else parts[at] if at < len(parts) else None
            )
            if role == "zero" and value is not None:
                found |= {node: self._like(node, parameter) for node in _own_nodes(value)}
        return found

    def _vectors(
        self, role: tuple[Role, str | int], values: Mapping[str, Value], parts: Sequence[Value]
    ) -> Iterator[Node]:
        """Yield the arrays whose cotangents or tangents a parameter of a rule is."""
        kind, at = role
        if kind in ("cotangent", "tangent"):
            value = values.get(at) if isinstance(at, str) else parts[at]
            yield from () if value is None else _own_nodes(value)

    @contextmanager
    def below(self, rule: CallRule) -> Iterator[None]:
        """Elaborate a rule: what uses it is differentiated fewer times from then on. It may call
        its function."""
        ctx = self.ctx
        kind = "tangents" if rule.of is None else "cotangents"
        left = ctx.derives[ctx.derives.index(kind) + 1 :]
        with self.deriving(left, rule.function), not_always(ctx, ctx.assumptions):
            yield

    @contextmanager
    def deriving(self, derives: tuple[str, ...], function: Any) -> Iterator[None]:
        """Elaborate a function, which may call itself, of which so much is derived."""
        ctx = self.ctx
        before = ctx.derives, ctx.active
        ctx.derives = derives
        ctx.active = tuple(one for one in ctx.active if one is not function.surface)
        try:
            yield
        finally:
            ctx.derives, ctx.active = before

    def _arguments(
        self,
        rule: CallRule,
        values: Mapping[str, Value],
        parts: Sequence[Value],
        formal: Mapping[Node, Node],
        given: Mapping[Node, Node],
        zeros: Mapping[Node, Node],
    ) -> dict[str, Value]:
        """Return the arguments of a rule by name; not those that the call does not pass."""
        named: dict[str, Value] = {}
        for parameter, (role, at) in rule.roles.items():
            if isinstance(at, int):
                if at >= len(parts):
                    raise self.misfit(rule, "is for a function with other results")
                value: Value | None = parts[at]
            else:
                value = values.get(at)
            if value is None:
                continue
            match role:
                case "argument" | "output":
                    named[parameter] = self._with(value, formal)
                case "cotangent" | "tangent":
                    named[parameter] = self._with(value, given, others_are_zero=True)
                case "zero":
                    named[parameter] = self._with(value, zeros, others_are_zero=True)
                case _:
                    assert_never(role)
        return named

    def _like(self, node: Node, label: str = "") -> Node:
        """Return a parameter of a rule, like an array of the call."""
        self.ctx.serial += 1
        return Node(self.ctx.serial, label or node.label, node.shape, node.dtype)

    def _with(
        self, value: Value, instead: Mapping[Node, Node], others_are_zero: bool = False
    ) -> Value:
        """Return a value whose own arrays have others in their place; numbers without an array,
        which are constants of the derivative, may become zeros."""
        match value:
            case Array(body=Read(node)) if node in instead:
                array = self.ctx.whole(instead[node], self.span, value.kind)
                return replace(array, listed=value.listed)
            case Scalar(Read(node, ()), kind) if node in instead:
                return Scalar(Read(instead[node], ()), kind)
            case Group(items):
                return value.of(self._with(item, instead, others_are_zero) for item in items)
            case _:
                return _zero(value) if others_are_zero else value

    def _pairs(
        self, rule: CallRule, returned: Value, values: Mapping[str, Value], result: Value
    ) -> Iterator[tuple[Node, Value]]:
        """Yield the arrays of the call with what a rule returns for them."""
        wanted = _flat(result) if rule.of is None else [values.get(name) for name in rule.of]
        given: Sequence[Value] = (returned,)
        if len(wanted) != 1:
            given = returned.items if isinstance(returned, Group) else ()
        if len(given) != len(wanted):
            what = "outputs" if rule.of is None else f"parameters: {', '.join(rule.of)}"
            raise self.misfit(
                rule, f"has to return a tuple, an item for each of {len(wanted)} {what}"
            )
        for target, value in zip(wanted, given, strict=True):
            if target is not None and value != Static(None):
                yield from self._nested(rule, target, value)

    def _nested(self, rule: CallRule, target: Value, value: Value) -> Iterator[tuple[Node, Value]]:
        match target:
            case Group(items):
                inside = value.items if isinstance(value, Group) else ()
                if len(inside) != len(items):
                    raise self.misfit(rule, f"returns {describe(value)} for {describe(target)}")
                for item, part in zip(items, inside, strict=True):
                    yield from self._nested(rule, item, part)
            case Array(body=Read(node)) | Scalar(Read(node, ())):
                if node.dtype.kind in DIFFERENTIABLE and value != Static(None):
                    yield node, value
            case _:
                return

    def _derivative(self, rule: CallRule, node: Node, value: Value) -> Array:
        """Return what a rule returns for an array of the call, which has its shape."""
        array = as_array(self.ctx, value, self.span)
        if array.rank != node.rank:
            sizes = [f"({', '.join(map(str, shape))})" for shape in (array.shape, node.shape)]
            text = f"returns an array of shape {sizes[0]} for `{node.label}` of shape {sizes[1]}"
            raise self.misfit(rule, text)
        for have, want in zip(array.shape, node.shape, strict=True):
            what = f"`{rule.function.__name__}` returns another shape than `{node.label}` has"
            self.ctx.equal_extents(have, want, what, self.span)
        if array.kind.dtype.kind == "c" and node.dtype.kind != "c":
            raise self.misfit(rule, f"returns complex numbers for `{node.label}`")
        return array

    def _stored(self, array: Array, like: Node, label: str) -> Node:
        """Return a new array, of the type of another one, in which a value is stored."""
        new = self.ctx.node(label, like.shape, like.dtype)
        target = self.ctx.whole(new, self.span)
        value = cast(array.at(tuple(map(var, target.axes))), like.dtype)
        self.ctx.store(target, value, self.span)
        return new


def _own_nodes(value: Value) -> Iterator[Node]:
    match value:
        case Array(body=Read(node)) | Scalar(Read(node, ())):
            yield node
        case Group(items):
            for item in items:
                yield from _own_nodes(item)
        case _:
            return


def _flat(value: Value) -> list[Value]:
    if isinstance(value, Group):
        return [part for item in value.items for part in _flat(item)]
    return [value]


def _zero(value: Value) -> Value:
    """Return the tangent of a constant."""
    match value:
        case Static(int() | float() | complex() | np.number()):
            return Static(0.0)
        case Scalar(expr):
            return Scalar(Const(0.0, expr.dtype.compute), Kind(dtypes.float64, True))
        case _:
            return value


def _free_symbols(body: Sequence[Statement]) -> frozenset[Symbol]:
    """Return the symbols that statements use and do not bind."""
    inside = list(statements(body))
    used = {symbol for stmt in inside for symbol in uses(stmt)}
    used |= {s for stmt in inside if isinstance(stmt, Alloc) for e in stmt.node.shape
             for s in e.symbols()}  # fmt: skip
    return frozenset(used.difference(*(binds(stmt) for stmt in inside)))
