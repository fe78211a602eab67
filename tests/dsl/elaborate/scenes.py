"""A few lines of the language, elaborated: what they become before anything is built or run."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from plusequals.dsl.elaborate.elaborate import elaborate
from plusequals.dsl.elaborate.typed import Typed
from plusequals.dsl.source import surface as s
from plusequals.dsl.source.function_source import scope_of_namespace, source_from_text
from plusequals.dsl.source.parse import parse
from plusequals.dsl.specialize.signature import describe_input
from plusequals.dsl.specialize.variants import Lookup, make_getter
from plusequals.lowering.ir.assignments import Procedure, Statement
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.walk import statements
from tests.language.ask import program

S = TypeVar("S", bound=Statement)
Outcome = tuple[list[np.ndarray], list[np.ndarray], list[str]]


def parsed(params: str, body: str) -> s.Function:
    """Return the surface of a function `f` with these parameters and this body."""
    return parse(source_from_text(program(params, body), "<scene>"))


def scope(**names: object) -> Lookup:
    """Return how names around a function are found: np, math, builtins and those given."""
    return scope_of_namespace({"np": np, "math": math, **names}).lookup


def typed_of(function: s.Function, lookup: Lookup, arguments: Mapping[str, Any]) -> Typed:
    """Return the typed form of a function for arguments."""
    return elaborate(function, arguments, describe_input, lookup, {}, frozenset())


def typed(params: str, body: str, *args: Any, **names: Any) -> Typed:
    """Return the typed form of the body for arguments; `names` are what it captures."""
    function = parsed(params, body)
    plain = (param.name for param in function.params)
    return typed_of(function, scope(**names), dict(zip(plain, args, strict=True)))


def found(procedure: Procedure, kind: type[S]) -> list[S]:
    """Return the statements of one kind, in order, inner ones too."""
    return [one for one in statements(procedure.body) if isinstance(one, kind)]


def outcome(
    procedure: Procedure, form: Typed, lookup: Lookup, arguments: Mapping[str, Any]
) -> Outcome:
    """Return written copies of the inputs, the results, and what the interpreter printed."""
    given = copy.deepcopy(dict(arguments))
    arrays = list(_inputs(form, lookup, given))
    results = [np.zeros(node.static_shape or (), node.dtype.numpy) for node in procedure.results]
    shown: list[str] = []
    made = run_procedure(procedure, [*arrays, *results], shown.append)
    return arrays, list(made), shown


def _inputs(form: Typed, lookup: Lookup, arguments: Mapping[str, Any]) -> Iterator[np.ndarray]:
    for path, parameter in zip(form.passed, form.procedure.parameters, strict=True):
        value = make_getter(form, lookup, path)(arguments)
        yield (
            value if isinstance(value, np.ndarray) else np.array(value, parameter.node.dtype.numpy)
        )
