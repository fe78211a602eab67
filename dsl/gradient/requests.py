"""Derivatives that can be asked for, and what each makes of a specialization of a function.

A request names parameters and outputs. `derive` finds their arrays in the assignments of a typed
function, differentiates these, and returns a typed function that computes the derivatives: all
that decides about its specializations stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import zip_longest
from typing import TypeAlias, assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import (
    NOWHERE,
    CdShapeError,
    CdTypeError,
    Diagnostic,
    Label,
    Span,
)
from ...lowering.adjoint.adjoint import Adjoint, adjoint
from ...lowering.adjoint.checkpoints import Memory
from ...lowering.adjoint.kept import Names
from ...lowering.adjoint.rules import NotDifferentiable, apply, number
from ...lowering.adjoint.simplify import is_assigned_first, simplified
from ...lowering.adjoint.tangent import Tangent, tangent
from ...lowering.ir.assignments import (
    Check,
    Fault,
    Parameter,
    Procedure,
    Statement,
)
from ...lowering.ir.expressions import Position
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import rename
from ...lowering.ir.walk import reads
from ..elaborate.captures.inputs import GroupSpec, NumberSpec, Spec
from ..elaborate.normalize import build
from ..elaborate.scope import assigned_names, names_in, parts, plain_names
from ..elaborate.typed import Argument, Constant, Many, New, Return, Typed
from ..source import surface as s
from ..values.types import Kind
from ..values.values import Path


@dataclass(frozen=True, slots=True)
class Gradient:
    """The cotangents of parameters, of one real number that the function returns."""

    wrt: tuple[str, ...]
    single: bool = False
    """Whether one cotangent is returned, and no tuple."""
    with_value: bool = False
    memory: Memory | None = None
    """How many states of loops are held; None for all."""


@dataclass(frozen=True, slots=True)
class CotangentProduct:
    """The cotangents of parameters, from those of outputs: a product with the Jacobian's rows."""

    wrt: tuple[str, ...]
    outputs: tuple[str, ...]
    single: bool = False
    all_outputs: bool = False
    """Whether these have to be all outputs of floats."""
    memory: Memory | None = None
    prefix: str = "d_"
    """How the names of the cotangents of outputs begin."""


@dataclass(frozen=True, slots=True)
class TangentProduct:
    """The tangents of outputs, from those of parameters: a product with the Jacobian's columns."""

    wrt: tuple[str, ...]
    outputs: tuple[str, ...] | None
    """Names of outputs, None for all of floats."""
    prefix: str = "t_"
    """How the names of the tangents of parameters begin."""


@dataclass(frozen=True, slots=True)
class Backward:
    """The cotangents of tensors, in their fields `grad`."""

    wrt: tuple[str, ...] | None
    """Tensors as they are written in the call, None for all of floats."""
    loss: str
    accumulate: bool
    memory: Memory | None = None


Request = Gradient | CotangentProduct | TangentProduct | Backward


def word_of(request: Request) -> str:
    """Return what a derivative is called: `gradient`, `vjp`, `jvp` or `backward`."""
    match request:
        case Gradient():
            return "gradient"
        case CotangentProduct():
            return "vjp"
        case TangentProduct():
            return "jvp"
        case Backward():
            return "backward"
        case _:
            assert_never(request)


def further_parameters(request: Request) -> tuple[str, ...]:
    """Return the parameters that a derivative has after those of the function."""
    match request:
        case CotangentProduct(outputs=outputs, prefix=prefix):
            return tuple(f"{prefix}{_identifier(name)}" for name in outputs)
        case TangentProduct(wrt, _, prefix):
            return tuple(f"{prefix}{_identifier(name)}" for name in wrt)
        case Gradient() | Backward():
            return ()
        case _:
            assert_never(request)


def with_fresh_names(request: Request, known: AbstractSet[str], function: s.Function) -> Request:
    """Return a request whose further parameters have other names than the parameters of a function,
    and than all that it mentions, which would mean them: `t2_x` where it has a parameter `t_x`."""
    known = known | {name.id for stmt in function.body for name in names_in(stmt)}
    number = 2
    while isinstance(request, CotangentProduct | TangentProduct):
        if known.isdisjoint(further_parameters(request)):
            break
        request, number = replace(request, prefix=f"{request.prefix[0]}{number}_"), number + 1
    return request


def _identifier(name: str) -> str:
    """Return the name of an array as an identifier: `m.w` as `m_w`."""
    return re.sub(r"\W+", "_", name).strip("_")


def outputs_in_source(function: s.Function) -> tuple[str, ...]:
    """Return what the outputs of a function are called in its text: what `return` gives, by its
    name or as `result`, then the parameters of which elements are assigned."""
    written = {*assigned_names(function.body)}.difference(plain_names(function.body))
    parameters = (param.name for param in function.params if param.name in written)
    return tuple(dict.fromkeys((*returned_names(function), *parameters)))


def returned_values(function: s.Function) -> tuple[s.Expr, ...]:
    """Return what the last `return` of a function gives, the items of tuples one by one."""
    returned = [one for stmt in function.body for one in _returns(stmt)]
    return tuple(_items(returned[-1].value)) if returned else ()


def returned_names(function: s.Function) -> tuple[str, ...]:
    """Return the names of what the last `return` of a function gives, in order."""
    names: list[str] = []
    for value in returned_values(function):
        plain = value.id if isinstance(value, s.Name) else "result"
        again = "result" in names and plain == "result"
        names.append(f"result_{len(names) + 1}" if again else plain)
    return tuple(names)


def _returns(node: object) -> Iterator[s.Return]:
    if isinstance(node, s.Return):
        yield node
    elif not isinstance(node, s.Define):
        for part in parts(node):
            yield from _returns(part)


def _items(value: s.Expr | None) -> Iterator[s.Expr]:
    if isinstance(value, s.Sequence):
        for item in value.items:
            yield from _items(item)
    elif value is not None:
        yield value


@dataclass(frozen=True, slots=True)
class _Output:
    """What a function returns or writes, by the name that it has in the source."""

    name: str
    node: Node
    kind: Kind | None = None
    """The kind of a number."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A tuple or list of arrays and numbers."""

    items: Sequence[_Tree]
    kind: str = "tuple"
    named_tuple: type | None = None


_Tree: TypeAlias = "_Output | _Group"


def _leaves(tree: _Tree) -> list[_Output]:
    if isinstance(tree, _Group):
        return [one for item in tree.items for one in _leaves(item)]
    return [tree]


def _with_leaves(trees: Sequence[_Tree], nodes: Sequence[Node]) -> list[_Tree]:
    """Return trees with other arrays in the place of theirs, in order."""
    left = iter(nodes)

    def change(tree: _Tree) -> _Tree:
        if isinstance(tree, _Group):
            return replace(tree, items=tuple(change(item) for item in tree.items))
        return replace(tree, node=next(left))

    return [change(tree) for tree in trees]


def _returned(tree: _Tree, places: Mapping[int, int]) -> Return:
    """Return how a caller gets a tree, whose arrays are results at known places."""
    if isinstance(tree, _Group):
        items = tuple(_returned(item, places) for item in tree.items)
        return Many(items, tree.kind, tree.named_tuple)
    return New(places[tree.node.id], None, tree.kind)


def derive(
    request: Request,
    typed: Typed,
    name: str,
    returned: tuple[str, ...],
    alias: Mapping[Path, Path],
) -> Typed:
    """Return the typed function that computes what is requested of another one.

    `name` is what that is called, `returned` what its results are, empty where their labels are to
    be taken, `alias` which inputs are the same array as another one. Raises CdTypeError CD0480
    where there is no derivative, CdShapeError where a cotangent or tangent has another shape than
    what it belongs to.
    """
    procedure = build(typed.procedure)
    case = _Case(name, typed, procedure, returned, alias)
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
        raise refused(case.name, f"{why.reason} has no derivative here", span) from None


def refused(name: str, reason: str, span: Span, way_out: str = "") -> CdTypeError:
    """Return the error of a function that has no derivative."""
    message = f"`{name}` has no gradient: {reason}"
    helps = (way_out or "leave this part out, or write its derivative by hand",)
    return CdTypeError(Diagnostic("CD0480", message, (Label(span),), helps=helps))


@dataclass(frozen=True, slots=True)
class _Case:
    """A specialization of a function whose derivative is asked for."""

    name: str
    typed: Typed
    procedure: Procedure
    returned_names: tuple[str, ...]
    alias: Mapping[Path, Path]

    def gradient(self, request: Gradient) -> Typed:
        """Return what returns the cotangents of parameters."""
        trees = [self.tree(wanted) for wanted in request.wrt]
        inputs = [one for tree in trees for one in _leaves(tree)]
        returns = self.typed.returns
        if not (isinstance(returns, New) and returns.kind and self.procedure.results):
            text = "return one, for example `np.sum(...)`, or use `pe.vjp`"
            raise self.refused("it does not return one number", text)
        output = self.procedure.results[returns.number]
        if output.dtype.kind != "f":
            raise self.refused(f"it returns a number of {output.dtype}")
        nodes = [one.node for one in inputs]
        made = adjoint(self.procedure, nodes, (output,), (None,), request.memory)
        found = _with_leaves(trees, made.cotangents)
        if request.with_value:
            cotangents = found[0] if request.single else _Group(found)
            value = _Output("", output, returns.kind)
            return self.returning(made, [value, cotangents], False)
        return self.returning(made, found, request.single)

    def cotangent_product(self, request: CotangentProduct) -> Typed:
        """Return what takes cotangents of outputs, and returns those of parameters."""
        trees = [self.tree(wanted) for wanted in request.wrt]
        inputs = [one for tree in trees for one in _leaves(tree)]
        outputs = self.outputs_named(request.outputs)
        names = further_parameters(request)
        given = [self.given(*pair) for pair in zip(names, outputs, strict=True)]
        if request.all_outputs:
            self.require_all(outputs)
        made = adjoint(
            self.checked(zip(given, outputs, strict=True)),
            [one.node for one in inputs], [one.node for one in outputs], given, request.memory,
        )  # fmt: skip
        found = _with_leaves(trees, made.cotangents)
        return self.returning(made, found, request.single)

    def require_all(self, outputs: Sequence[_Output]) -> None:
        """Refuse outputs that have no cotangent: which arguments are written, types decide."""
        known = [one for one in self.all_outputs() if one.node.dtype.kind in "fc"]
        if missing := [one.name for one in known if one not in outputs]:
            names = ", ".join(f'"{one.name}"' for one in known)
            text = f"its output `{missing[0]}` has no cotangent"
            raise self.refused(text, f"name the `outputs` that have one, of {names}")

    def tangent_product(self, request: TangentProduct) -> Typed:
        """Return what takes tangents of parameters, and returns those of outputs."""
        inputs, outputs = self.inputs(request.wrt), self.outputs(request.outputs)
        names = further_parameters(request)
        given = [self.given(*pair) for pair in zip(names, inputs, strict=True)]
        made = tangent(
            self.checked(zip(given, inputs, strict=True)),
            [one.node for one in inputs], [one.node for one in outputs], given,
        )  # fmt: skip
        found = [replace(one, node=n) for one, n in zip(outputs, made.tangents, strict=True)]
        return self.returning(made, found, len(found) == 1)

    def returning(self, derived: Adjoint | Tangent, found: Sequence[_Tree], single: bool) -> Typed:
        """Return the typed function of a procedure, which returns the only one of some arrays, or
        a tuple."""
        made = derived.procedure
        leaves = [one for tree in found for one in _leaves(tree)]
        results = tuple(dict.fromkeys(one.node for one in leaves))
        places = {node.id: n for n, node in enumerate(results)}
        parts = tuple(_returned(tree, places) for tree in found)
        unused = tuple(node for node in made.results if node not in results)
        own = tuple(node for node in (*made.locals, *unused) if node.id not in places)
        # again: what computed only results that are dropped here is read by nothing now
        procedure = simplified(replace(made, locals=own, results=results))
        returns: Return = parts[0] if single else Many(parts, "tuple")
        whole = derived.whole if isinstance(derived, Adjoint) else ()
        return replace(self.typed, procedure=procedure, returns=returns, whole=whole)

    def backward(self, request: Backward) -> Typed:
        """Return what writes the cotangents of tensors into their fields."""
        values = dict(self.values(request.wrt))
        if not values:
            raise self.refused("it reads no tensor of floats", "pass tensors: `pe.tensor(...)`")
        (output,) = self.outputs_named((request.loss,), or_only=True)
        nodes = list(values.values())
        made = adjoint(self.procedure, nodes, (output.node,), (None,), request.memory)
        body, fields = _into_fields(made.procedure, values, made.cotangents, request.accumulate)
        cotangents = {node.id for node in made.cotangents}
        new = replace(
            made.procedure,
            parameters=(
                *self.procedure.parameters,
                *(Parameter(node, True) for node in fields.values()),
            ),
            locals=(*made.procedure.locals, *made.cotangents),
            results=tuple(n for n in made.procedure.results if n.id not in cotangents),
            body=body,
        )
        grads = (Path(owner.root, (*owner.steps, "@grad"), owner.captured) for owner in values)
        passed = (*self.typed.passed, *grads)
        return replace(self.typed, procedure=new, passed=passed, whole=made.whole)

    def given(self, name: str, like: _Output) -> Node:
        """Return the parameter that is the cotangent or tangent of an array or a number."""
        path = self.alias.get(Path(name), Path(name))
        at = self.typed.passed.index(path) if path in self.typed.passed else None
        node = None if at is None else self.procedure.parameters[at].node
        if node is None or node.dtype.kind not in "if":
            raise self.refused(f"`{name}` is no array or number of floats in this call")
        shapes = [one.static_shape for one in (node, like.node)]
        if node.rank != like.node.rank or (None not in shapes and shapes[0] != shapes[1]):
            sizes = [", ".join(map(str, one.shape)) for one in (node, like.node)]
            message = f"`{name}` has the shape ({sizes[0]}), and `{like.name}` ({sizes[1]})"
            raise CdShapeError(Diagnostic("CD0301", message, (Label(self.procedure.span),)))
        return node

    def checked(self, pairs: Iterable[tuple[Node, _Output]]) -> Procedure:
        """Return the procedure with checks that run-time sizes agree, at its end: there all sizes
        are known."""
        checks: list[Statement] = []
        for node, one in pairs:
            for have, want in zip(node.shape, one.node.shape, strict=True):
                if have == want:
                    continue
                test = apply("eq", Position(have), Position(want))
                message = f"`{node.label}` has another shape than `{one.name}`: {{0}} is not {{1}}"
                fault = Fault("CD0301", "CdShapeError", message)
                values = Position(have), Position(want)
                checks.append(Check(test, fault, values, span=self.procedure.span))
        return replace(self.procedure, body=(*self.procedure.body, *checks))

    def refused(self, reason: str, way_out: str = "") -> CdTypeError:
        """Return the error, at the whole function."""
        return refused(self.name, reason, self.procedure.span, way_out)

    def tree(self, wanted: str) -> _Tree:
        """Return an argument in which is differentiated; of a tuple or list its items."""
        for path, spec in self.typed.used.items():
            if str(path) == wanted and not path.captured:
                return self._tree_at(path, spec)
        return self.input(wanted)

    def _tree_at(self, path: Path, spec: Spec) -> _Tree:
        if not isinstance(spec, GroupSpec):
            return self.input(str(path))
        inner = (Path(path.root, (*path.steps, n)) for n in range(len(spec.items)))
        items = (self._tree_at(at, one) for at, one in zip(inner, spec.items, strict=True))
        return _Group(tuple(items), spec.kind, spec.named_tuple)

    def inputs(self, wrt: Iterable[str]) -> list[_Output]:
        """Return the arguments in which is differentiated."""
        return [self.input(wanted) for wanted in wrt]

    def input(self, wanted: str) -> _Output:
        """Return an argument, or the values of a tensor."""
        for path, parameter in zip(self.typed.passed, self.procedure.parameters, strict=True):
            is_value = path.owner is not None and path.steps[-1] == "@value"
            whole = path.owner if is_value else path
            if whole is not None and not whole.captured and str(whole) == wanted:
                if parameter.node.dtype.kind not in "fc":
                    text = f"`{wanted}` is of {parameter.node.dtype}"
                    raise self.refused(text, "pass floats: `3.0`, or `x.astype(float)`")
                spec = self.typed.used.get(path)
                kind = spec.kind if isinstance(spec, NumberSpec) else None
                return _Output(wanted, parameter.node, kind)
        if wanted in (same := {str(one): other for one, other in self.alias.items()}):
            raise self.refused(f"`{wanted}` is `{same[wanted]}`, which is written")
        text = f"`{wanted}` is no array or run-time number in this call"
        raise self.refused(text, "name an array that it holds: `model.w`, `layers[0]`")

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
        numbers = [one for one in known if one.kind and one.node.dtype.kind == "f"]
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
        """Return what is returned, then what is written of the arguments; one that has the name of
        what is returned, and is another array, is `x_argument`."""
        leaves = _leaves_of(self.typed.returns)
        names = self.returned_names if len(leaves) == len(self.returned_names) else ()
        found = [
            replace(one, name=name or one.name)
            for leaf, name in zip_longest(leaves, names) for one in self.returned(leaf)
        ]  # fmt: skip
        nodes, taken = {one.node for one in found}, {one.name for one in found}
        for path, parameter in zip(self.typed.passed, self.procedure.parameters, strict=True):
            if parameter.written and parameter.node not in nodes:
                name = f"{_name(path)}{'_argument' * (_name(path) in taken)}"
                found.append(_Output(name, parameter.node))
        return found

    def returned(self, returns: Return) -> Iterator[_Output]:
        """Yield what a function returns."""
        match returns:
            case Constant():
                return
            case New(number, None, kind):
                node = self.procedure.results[number]
                yield _Output(node.label, node, kind)
            case Argument(path, None):
                at = self.typed.passed.index(path) if path in self.typed.passed else None
                if at is not None:
                    yield _Output(_name(path), self.procedure.parameters[at].node)
            case Many(items):
                for item in items:
                    yield from self.returned(item)
            case _:
                raise self.refused("it returns a view, a part or a list of an array")


def _leaves_of(returns: Return) -> list[Return]:
    """Return what a function returns, the items of tuples one by one."""
    if isinstance(returns, Many):
        return [leaf for item in returns.items for leaf in _leaves_of(item)]
    return [returns]


def _name(path: Path) -> str:
    """Return the name of an argument in the source; of the values of a tensor its own."""
    return str(path.owner if path.owner is not None and path.steps[-1] == "@value" else path)


def _into_fields(
    procedure: Procedure,
    values: Mapping[Path, Node],
    cotangents: Sequence[Node],
    accumulate: bool,
) -> tuple[tuple[Statement, ...], dict[Path, Node]]:
    """Return the body with the cotangents of tensors in their fields, and these.

    The fields are the cotangents themselves, unless they are added to.
    """
    names = Names.above(procedure)
    fields: dict[Path, Node] = {}
    instead: dict[int, Node] = {}
    first: list[Statement] = []
    last: list[Statement] = []
    for (owner, node), cotangent in zip(values.items(), cotangents, strict=True):
        fields[owner] = names.array(f"{node.label}_grad", node.shape, node.dtype)
        if accumulate:
            last.append(replace(names.copied(fields[owner], cotangent), op=OPS["add"]))
            continue
        instead[cotangent.id] = fields[owner]
        if not is_assigned_first(procedure.body, cotangent):
            first.append(names.filled(fields[owner], number(0.0, node.dtype)))
    return (*first, *rename(procedure.body, {}, instead), *last), fields
