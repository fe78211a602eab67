"""Derivatives that can be asked for, and the source text of each for one specialization.

A request names parameters and outputs of a function; `derived_text` finds their arrays in the
assignments of a specialization, differentiates these, and prints the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdTypeError, Diagnostic, Label, Span
from ...lowering.adjoint.adjoint import adjoint
from ...lowering.adjoint.kept import Names
from ...lowering.adjoint.rules import NotDifferentiable, number
from ...lowering.adjoint.tangent import tangent
from ...lowering.ir.assignments import Access, Assign, Parameter, Procedure, Statement
from ...lowering.ir.expressions import Domain, Read
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import rename
from ...lowering.ir.walk import reads
from ..elaborate.normalize import build
from ..elaborate.typed import Argument, Constant, Many, New, Return, Typed
from ..values.values import Path
from .source_text import source_text


@dataclass(frozen=True, slots=True)
class Gradient:
    """The cotangents of parameters, of one real number that the function returns."""

    wrt: tuple[str, ...]
    with_value: bool = False
    word: ClassVar[str] = "gradient"


@dataclass(frozen=True, slots=True)
class CotangentProduct:
    """The cotangents of parameters, from those of outputs: a product with the Jacobian's rows."""

    wrt: tuple[str, ...]
    outputs: tuple[str, ...] | None
    """Names of outputs, None for all of floats."""
    word: ClassVar[str] = "vjp"


@dataclass(frozen=True, slots=True)
class TangentProduct:
    """The tangents of outputs, from those of parameters: a product with the Jacobian's columns."""

    wrt: tuple[str, ...]
    outputs: tuple[str, ...] | None
    word: ClassVar[str] = "jvp"


@dataclass(frozen=True, slots=True)
class Backward:
    """The cotangents of tensors, in their fields `grad`."""

    wrt: tuple[str, ...] | None
    """Tensors as they are written in the call, None for all of floats."""
    loss: str
    accumulate: bool
    word: ClassVar[str] = "backward"


Request = Gradient | CotangentProduct | TangentProduct | Backward


@dataclass(frozen=True, slots=True)
class Derived:
    """The text of a derivative for one specialization, and how it is called."""

    text: str
    given: tuple[Path, ...]
    """The inputs of the function, or their tensors, that the text's parameters stand for."""
    further: tuple[str, ...]
    """The names of the parameters that follow: cotangents or tangents."""


@dataclass(frozen=True, slots=True)
class _Output:
    """What a function returns or writes, by the name that it has in the source."""

    name: str
    node: Node
    is_number: bool = False


def derived_text(request: Request, typed: Typed, name: str) -> Derived:
    """Return the text of a derivative of a function, for one specialization.

    Raises CdTypeError CD0480 where there is none.
    """
    procedure = build(typed.procedure)
    case = _Case(name, typed, procedure)
    try:
        match request:
            case Gradient():
                return case.gradient(request)
            case CotangentProduct():
                return case.cotangent_product(request)
            case TangentProduct():
                return case.tangent_product(request)
            case Backward():
                return case.backward(request)
            case _:
                assert_never(request)
    except NotDifferentiable as why:
        is_library = why.span == NOWHERE or why.span.source.name == "<library>"
        span = procedure.span if is_library else why.span
        raise refused(name, f"{why.reason} has no derivative here", span) from None


def refused(name: str, reason: str, span: Span) -> CdTypeError:
    """Return the error of a function that has no derivative."""
    message = f"`{name}` has no gradient: {reason}"
    helps = ("leave this part out, or write its derivative by hand",)
    return CdTypeError(Diagnostic("CD0480", message, (Label(span),), helps=helps))


@dataclass(frozen=True, slots=True)
class _Case:
    """A specialization of a function whose derivative is asked for."""

    name: str
    typed: Typed
    procedure: Procedure

    def gradient(self, request: Gradient) -> Derived:
        """Return the text that returns the cotangents of parameters."""
        inputs = self.inputs(request.wrt)
        returns = self.typed.returns
        if not (isinstance(returns, New) and returns.kind and self.procedure.results):
            raise self.refused("it does not return one number")
        output = self.procedure.results[returns.number]
        if output.dtype.kind != "f":
            raise self.refused(f"it returns a number of {output.dtype}")
        made = adjoint(self.procedure, inputs, (output,), seeded=False)
        results = (*((output,) if request.with_value else ()), *made.cotangents)
        return self.derived(request, made.procedure, results, ())

    def cotangent_product(self, request: CotangentProduct) -> Derived:
        """Return the text that takes cotangents of outputs, and returns those of parameters."""
        inputs, outputs = self.inputs(request.wrt), self.outputs(request.outputs)
        made = adjoint(self.procedure, inputs, [one.node for one in outputs])
        further = _labels("d_", outputs)
        return self.derived(request, made.procedure, made.cotangents, further)

    def tangent_product(self, request: TangentProduct) -> Derived:
        """Return the text that takes tangents of parameters, and returns those of outputs."""
        inputs, outputs = self.inputs(request.wrt), self.outputs(request.outputs)
        made = tangent(self.procedure, inputs, [one.node for one in outputs])
        further = tuple(f"t_{wanted}" for wanted in request.wrt)
        return self.derived(request, made.procedure, made.tangents, further)

    def derived(
        self, request: Request, made: Procedure, results: Sequence[Node], further: tuple[str, ...]
    ) -> Derived:
        """Return the text of a procedure whose last parameters are called as given."""
        count = len(made.parameters) - len(further)
        nodes = {p.node.id: n for p, n in zip(made.parameters[count:], further, strict=True)}
        text = source_text(made, self.written_name(request), results, nodes)
        return Derived(text, tuple(self.typed.passed), further)

    def backward(self, request: Backward) -> Derived:
        """Return the text that writes the cotangents of tensors into their fields."""
        values = dict(self.values(request.wrt))
        (output,) = self.outputs_named((request.loss,), or_only=True)
        returned = list(self.returned_numbers(self.typed.returns))
        made = adjoint(self.procedure, list(values.values()), (output.node,), seeded=False)
        body, fields = _into_fields(made.procedure, values, made.cotangents, request.accumulate)
        parameters = [*self.procedure.parameters, *(Parameter(n, True) for n in fields.values())]
        cotangents = {node.id for node in made.cotangents}
        new = replace(
            made.procedure,
            parameters=tuple(parameters),
            locals=(*made.procedure.locals, *made.cotangents),
            results=tuple(n for n in made.procedure.results if n.id not in cotangents),
            body=body,
        )
        paths = [
            *self.typed.passed,
            *(Path(o.root, (*o.steps, "@grad"), o.captured) for o in values),
        ]
        given, spelled = _spelled(paths, new.parameters)
        text = source_text(new, self.written_name(request), returned, spelled, tuple(given))
        return Derived(text, tuple(given.values()), ())

    def written_name(self, request: Request) -> str:
        """Return the name of the derived function."""
        return f"{self.name}_{request.word}" if self.name.isidentifier() else request.word

    def refused(self, reason: str) -> CdTypeError:
        """Return the error, at the whole function."""
        return refused(self.name, reason, self.procedure.span)

    def inputs(self, wrt: Iterable[str]) -> list[Node]:
        """Return the nodes of arguments in which is differentiated."""
        return [self.input(wanted) for wanted in wrt]

    def input(self, wanted: str) -> Node:
        """Return the node of an argument, or of the values of a tensor."""
        for path, parameter in zip(self.typed.passed, self.procedure.parameters, strict=True):
            is_value = path.owner is not None and path.steps[-1] == "@value"
            whole = path.owner if is_value else path
            if whole is not None and not whole.captured and str(whole) == wanted:
                if parameter.node.dtype.kind != "f":
                    raise self.refused(f"`{wanted}` is of {parameter.node.dtype}")
                return parameter.node
        raise self.refused(f"`{wanted}` is no array or run-time number in this call")

    def values(self, wrt: tuple[str, ...] | None) -> Iterator[tuple[Path, Node]]:
        """Yield the tensors that are differentiated in, with the nodes of their values."""
        read = reads(self.procedure.body)
        found = {
            path.owner: parameter.node
            for path, parameter in zip(self.typed.passed, self.procedure.parameters, strict=True)
            if path.owner is not None and path.steps[-1] == "@value"
            and parameter.node.dtype.kind == "f" and parameter.node in read
        }  # fmt: skip
        for path in self.typed.passed:
            if path.owner in found and path.steps[-1] == "@grad":
                raise self.refused(f"`{path}` is used by the function itself")
        names = {str(owner): owner for owner in found}
        for wanted in names if wrt is None else wrt:
            if wanted not in names:
                raise self.refused(f"`{wanted}` is no tensor of floats that it reads")
            yield names[wanted], found[names[wanted]]

    def outputs(self, wanted: tuple[str, ...] | None) -> list[_Output]:
        """Return the outputs of floats, or those of some names."""
        if wanted is not None:
            return self.outputs_named(wanted)
        found = [one for one in self.all_outputs() if one.node.dtype.kind == "f"]
        if not found:
            raise self.refused("it returns and writes no floats")
        return found

    def outputs_named(self, wanted: tuple[str, ...], or_only: bool = False) -> list[_Output]:
        """Return outputs by name; where `or_only` the only number for a name that is missing."""
        known = self.all_outputs()
        by_name = {one.name: one for one in known}
        numbers = [one for one in known if one.is_number and one.node.dtype.kind == "f"]
        chosen: list[_Output] = []
        for name in wanted:
            if name not in by_name and not (or_only and len(numbers) == 1):
                there = ", ".join(f"`{one}`" for one in by_name) or "none"
                raise self.refused(f"it has no output `{name}`: there is {there}")
            one = by_name.get(name) or numbers[0]
            if one.node.dtype.kind != "f":
                raise self.refused(f"its output `{one.name}` is of {one.node.dtype}")
            chosen.append(one)
        return chosen

    def all_outputs(self) -> list[_Output]:
        """Return what is returned, then what is written of the arguments."""
        found = list(self.returned(self.typed.returns))
        nodes = {one.node for one in found}
        for path, parameter in zip(self.typed.passed, self.procedure.parameters, strict=True):
            if parameter.written and parameter.node not in nodes:
                found.append(_Output(_name(path), parameter.node))
        return found

    def returned(self, returns: Return) -> Iterator[_Output]:
        """Yield what a function returns."""
        match returns:
            case Constant():
                return
            case New(number, None, kind):
                node = self.procedure.results[number]
                yield _Output(node.label, node, kind is not None)
            case Argument(path, None):
                at = self.typed.passed.index(path) if path in self.typed.passed else None
                if at is not None:
                    yield _Output(_name(path), self.procedure.parameters[at].node)
            case Many(items):
                for item in items:
                    yield from self.returned(item)
            case _:
                raise self.refused("it returns a view, a part or a list of an array")

    def returned_numbers(self, returns: Return) -> Iterator[Node]:
        """Yield the new arrays and numbers that a function returns, in their order."""
        match returns:
            case New(number, None):
                yield self.procedure.results[number]
            case Constant(None):
                return
            case Many(items):
                for item in items:
                    yield from self.returned_numbers(item)
            case _:
                raise self.refused("it returns something else than new arrays and numbers")


def _name(path: Path) -> str:
    """Return the name of an argument in the source; of the values of a tensor its own."""
    return str(path.owner if path.owner is not None and path.steps[-1] == "@value" else path)


def _labels(prefix: str, outputs: Sequence[_Output]) -> tuple[str, ...]:
    """Return the names of parameters for outputs, each once."""
    names: list[str] = []
    for one in outputs:
        plain = f"{prefix}{one.node.label}"
        name, count = plain, 2
        while name in names:
            name, count = f"{plain}_{count}", count + 1
        names.append(name)
    return tuple(names)


def _into_fields(
    procedure: Procedure,
    values: Mapping[Path, Node],
    cotangents: Sequence[Node],
    accumulate: bool,
) -> tuple[tuple[Statement, ...], dict[Path, Node]]:
    """Return the body with the cotangents of tensors added to their fields, and these.

    The fields are the cotangents themselves where the tensor is not written, which starts them
    anew.
    """
    names = Names.above(procedure)
    written = {parameter.node for parameter in procedure.parameters if parameter.written}
    fields: dict[Path, Node] = {}
    instead: dict[int, Node] = {}
    first: list[Statement] = []
    last: list[Statement] = []
    for (owner, node), cotangent in zip(values.items(), cotangents, strict=True):
        fields[owner] = names.array(f"{node.label}_grad", node.shape, node.dtype)
        ranges = names.axes(node.shape)
        index = tuple(var(r.symbol) for r in ranges)
        target = Access(fields[owner], index)
        if node in written:
            op = OPS["add"] if accumulate else None
            last.append(Assign(target, op, False, Read(cotangent, index), Domain(ranges)))
            continue
        instead[cotangent.id] = fields[owner]
        if not accumulate:
            zero = number(0.0, node.dtype)
            first.append(Assign(target, None, False, zero, Domain(ranges)))
    return (*first, *rename(procedure.body, {}, instead), *last), fields


def _spelled(
    paths: Sequence[Path], parameters: Sequence[Parameter]
) -> tuple[dict[str, Path], dict[int, str]]:
    """Return the parameters of a text that takes tensors, and how it spells the arrays."""
    given: dict[str, Path] = {}
    spelled: dict[int, str] = {}
    for path, parameter in zip(paths, parameters, strict=True):
        whole = path.owner or path
        plain = whole.label
        name, count = plain, 2
        while given.get(name, whole) != whole:
            name, count = f"{plain}_{count}", count + 1
        given[name] = whole
        field = "" if path.owner is None else f".{str(path.steps[-1])[1:]}"
        spelled[parameter.node.id] = name if field == ".value" else f"{name}{field}"
    return given, spelled
