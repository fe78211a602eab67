"""Calls of functions with derivative rules at index letters: the rule as partial derivatives.

    y[i] = f(x[i], w[i])        f is inlined at each point, and with its value come the partial
                                derivatives df/dx, df/dw that its rule says, in place of those of
                                its operations

A rule is linear in what it is applied to, `d_y` or `t_x`: the factors of these are the partial
derivatives, whichever of the two rules it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ....base.dataclass import dataclass
from ....base.diagnostic import CdError, CdTypeError, Span
from ....lowering.adjoint.derivative_rules import by_rule, without_rule
from ....lowering.adjoint.rules import apply, number
from ....lowering.ir.expressions import Apply, Cast, Const, Expr, Read, Reduce, Select, reads
from ....lowering.ir.node import Node
from ....lowering.ir.ops import OPS
from ...values.builder import error
from ...values.values import Group, Scalar, Static, Value
from ..scope import Frame

_FLOATS = "f"


class Rule(Protocol):
    """A derivative of a function, see `derivative_rules.CallRule`."""

    @property
    def function(self) -> Any:
        """The rule, under `@cd`."""

    @property
    def roles(self) -> Mapping[str, tuple[Any, str | int]]:
        """What each of its parameters is."""

    @property
    def of(self) -> tuple[str, ...] | None:
        """The parameters whose cotangents it returns; None for tangents of outputs."""


Inline = Callable[[Any, Mapping[str, Value]], Value]
"""Elaborates a call of a function under `@cd`, by the names of its parameters."""


class _NotLinear(Exception):
    """What a rule returns is no sum of multiples of what it is applied to."""


@dataclass(frozen=True, slots=True)
class PointwiseCall:
    """A call at index letters of a function with a rule."""

    frame: Frame
    function: Any
    rule: Rule
    span: Span
    inline: Inline

    def refused(self, why: str, way_out: str) -> CdError:
        """Return the error of a call that the rule cannot be used for here."""
        text = f"`{self.function.__name__}` has derivative rules, is called at index letters, {why}"
        return error("CD0487", CdTypeError, text, self.span, helps=(way_out,))

    def with_partials(self, named: Mapping[str, Value], value: Value, given: Value) -> Value:
        """Return the value of the call with the partial derivatives that its rule says; the rule
        gets its outputs as `given`.

        CdTypeError CD0487 for a rule that is not linear, or arguments and outputs that are no
        numbers.
        """
        outputs = list(value.items) if isinstance(value, Group) else [value]
        for one in (*named.values(), *outputs):
            if not isinstance(one, Scalar | Static) or _kind(one) == "c":
                text = "and gets or returns something else there than real numbers"
                raise self.refused(text, "call it with whole arrays before")
        besides = self._read_besides(named)
        partials = self._partials(named, given.items if isinstance(given, Group) else [given])
        made = [
            self._with_partials(at, named, outputs, partials, besides) for at in range(len(outputs))
        ]
        return value.of(made) if isinstance(value, Group) else made[0]

    def _with_partials(
        self,
        at: int,
        named: Mapping[str, Value],
        outputs: Sequence[Value],
        partials: Mapping[tuple[int, str], Expr],
        besides: Sequence[Read],
    ) -> Value:
        output = outputs[at]
        if not isinstance(output, Scalar) or _kind(output) != _FLOATS:
            return output
        dtype, pairs = output.expr.dtype, list[tuple[Expr, Expr]]()
        for name, value in named.items():
            if isinstance(value, Scalar) and _kind(value) == _FLOATS:
                arg = value.expr if value.expr.dtype == dtype else Cast(value.expr, dtype)
                partial = partials.get((at, name))
                if partial is None:
                    arg, partial = self._undifferentiated(arg, name), number(1.0, dtype)
                pairs.append((arg, partial if partial.dtype == dtype else Cast(partial, dtype)))
        for read in besides:
            arg = self._undifferentiated(Cast(read, dtype), read.node.label)
            pairs.append((arg, number(1.0, dtype)))
        return replace(output, expr=by_rule(output.expr, pairs))

    def _undifferentiated(self, arg: Expr, name: str) -> Expr:
        return without_rule(arg, f"{name}` of `{self.function.__name__}")

    def _read_besides(self, named: Mapping[str, Value]) -> list[Read]:
        """Return what the function reads of floats besides its arguments."""
        marks = {name: self._marked(name, value) for name, value in named.items()}
        with self.frame.ctx.block():
            result = self.inline(self.function, marks)
        inside = result.items if isinstance(result, Group) else (result,)
        own = {one.expr.node for one in marks.values() if _is_mark(one)}
        found = (read for one in inside if isinstance(one, Scalar) for read in reads(one.expr))
        return list(dict.fromkeys(
            r for r in found if r.node not in own and r.node.dtype.kind in "fc"
        ))  # fmt: skip

    def _marked(self, name: str, value: Value) -> Any:
        """Return a number of its own in the place of a float."""
        if not isinstance(value, Scalar) or _kind(value) != _FLOATS:
            return value
        self.frame.ctx.serial += 1
        node = Node(self.frame.ctx.serial, name, (), value.expr.dtype)
        return replace(value, expr=Read(node, ()))

    def _partials(
        self, named: Mapping[str, Value], outputs: Sequence[Value]
    ) -> dict[tuple[int, str], Expr]:
        """Return the partial derivatives that the rule has, by output and parameter."""
        given: dict[str, Value] = {}
        vectors: dict[Node, str | int] = {}
        for parameter, (role, at) in self.rule.roles.items():
            if isinstance(at, int) and at >= len(outputs):
                raise self.refused("and its rule is for other results", "correct the rule")
            value = outputs[at] if isinstance(at, int) else named.get(at)
            if value is None:
                continue
            if role in ("cotangent", "tangent"):
                value = self._marked(parameter, value)
                if not _is_mark(value):
                    value = Static(0.0)
                else:
                    vectors[value.expr.node] = at
            given[parameter] = value
        returned = self.inline(self.rule.function, given)
        wanted: Sequence[str | int] = self.rule.of or tuple(range(len(outputs)))
        items = [returned] if len(wanted) == 1 else list(getattr(returned, "items", ()))
        if len(items) != len(wanted):
            text = f"and its rule has to return a tuple, an item for each of {len(wanted)}"
            raise self.refused(text, "correct the rule")
        found: dict[tuple[int, str], Expr] = {}
        for of, item in zip(wanted, items, strict=True):
            for vector, factor in self._factors(item, vectors):
                at, name = (vector, of) if isinstance(of, str) else (of, vector)
                assert isinstance(at, int) and isinstance(name, str), "an output, and a parameter"
                found[at, name] = factor
        return found

    def _factors(
        self, item: Value, vectors: Mapping[Node, str | int]
    ) -> Iterator[tuple[str | int, Expr]]:
        """Yield the factor of each of the vectors in what a rule returns; nothing for None."""
        if item == Static(None):
            return
        expr: Expr | None = item.expr if isinstance(item, Scalar) else None
        if isinstance(item, Static) and isinstance(item.value, int | float):
            expr = number(float(item.value), next(iter(vectors)).dtype)
        if expr is None or expr.dtype.kind not in "iuf":
            raise self.refused("and its rule returns no real number", "correct the rule")
        try:
            factors = _linear(expr, vectors.keys())
        except _NotLinear:
            names = ", ".join(f"`{node.label}`" for node in vectors)
            text = f"and its rule is no sum of multiples of {names}"
            raise self.refused(text, "call it with whole arrays before") from None
        for node, at in vectors.items():
            yield at, factors.get(node, number(0.0, expr.dtype))


def _kind(value: Value) -> str:
    return value.expr.dtype.kind if isinstance(value, Scalar) else ""


def _is_mark(value: Value) -> bool:
    return isinstance(value, Scalar) and isinstance(value.expr, Read) and not value.expr.index


def _linear(expr: Expr, vectors: Any) -> dict[Node, Expr]:
    """Return the factors of vectors in an expression that is a sum of multiples of these."""

    def depends(expr: Expr) -> bool:
        return any(read.node in vectors for read in reads(expr))

    match expr:
        case Read(node) if node in vectors:
            return {node: number(1.0, expr.dtype)}
        case Const(value) if not value:
            return {}
        case Apply(op, (inner,)) if op.name == "neg":
            return {n: apply("neg", one) for n, one in _linear(inner, vectors).items()}
        case Apply(op, (left, right)) if op.name in ("add", "sub"):
            one, other = _linear(left, vectors), _linear(right, vectors)
            if op.name == "sub":
                other = {n: apply("neg", factor) for n, factor in other.items()}
            both = {n: apply("add", one[n], other[n]) for n in one.keys() & other.keys()}
            return {**one, **other, **both}
        case Apply(op, (left, right)) if op.name in ("mul", "product"):
            if not depends(right):
                return {n: apply("mul", one, right) for n, one in _linear(left, vectors).items()}
            if not depends(left):
                return {n: apply("mul", left, one) for n, one in _linear(right, vectors).items()}
        case Apply(op, (left, right)) if op.name == "div" and not depends(right):
            return {n: apply("div", one, right) for n, one in _linear(left, vectors).items()}
        case Cast(inner, dtype) if dtype.kind == "f" and inner.dtype.kind == "f":
            return {n: Cast(one, dtype) for n, one in _linear(inner, vectors).items()}
        case Select(test, yes, no) if not depends(test):
            zero, sides = number(0.0, expr.dtype), (_linear(yes, vectors), _linear(no, vectors))
            nodes = dict.fromkeys((*sides[0], *sides[1]))
            return {n: Select(test, *(side.get(n, zero) for side in sides)) for n in nodes}
        case Reduce(op=op, value=value) if op is OPS["add"] and expr.position is None:
            if expr.domain.where is None or not depends(expr.domain.where):
                return {n: replace(expr, value=v) for n, v in _linear(value, vectors).items()}
        case _:
            pass
    raise _NotLinear
