"""The source text of a derivative, with what its names mean.

Captured arrays are global names of the text. A parameter or a captured name that is called like a
word of the language which the text uses has another name there, and a comment says so.
"""

from __future__ import annotations

import inspect
import math
import re
import tokenize
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from io import StringIO
from itertools import chain, count
from keyword import iskeyword

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdTypeError, Diagnostic, Label
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.ir.node import Node
from ..elaborate.typed import Argument, Many, New, Return, Typed
from ..source import surface as s
from ..specialize.variants import Lookup, make_getter
from ..values.values import Path
from .source_text import INDENT, RESERVED, source_text


@dataclass(frozen=True, slots=True)
class Text:
    """The source of a derivative."""

    text: str
    names: Mapping[str, Callable[[], object]]
    """The global names besides the words of the language: what each stands for now."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The parameters that have other names in the text."""


@dataclass(frozen=True, slots=True)
class _Names:
    """How a text calls what it is given."""

    typed: Typed
    parameters: tuple[str, ...]
    renamed: Mapping[str, str]
    """The parameters and captured names, of which none is both, that are called otherwise."""

    def root(self, name: str) -> str:
        """Return what a parameter, or a captured name, is called."""
        return self.renamed.get(name, name)

    def captured(self) -> dict[str, Path]:
        """Return the captured names of the function that the text uses, each with its path."""
        paths = (p for p in self.typed.passed if p.captured and _is_written_out(p, self.typed))
        return {self.root(path.root): Path(path.root, (), True) for path in paths}

    def spelled(self) -> tuple[dict[str, Path], dict[int, str]]:
        """Return the names of arrays that the source has no name for, and how the text spells each
        array that it is given."""
        taken = {*map(self.root, self.parameters), *self.captured()}
        given: dict[str, Path] = {}
        spelled: dict[int, str] = {}
        for path, parameter in zip(self.typed.passed, self.typed.procedure.parameters, strict=True):
            whole = path.owner or path
            name = str(replace(whole, root=self.root(whole.root)))
            if not _is_written_out(path, self.typed):
                others = {name for name, other in given.items() if other != whole}
                name = _unused(_identifier(whole.label), taken | others)
                given[name] = whole
            step = "" if path.owner is None else f".{str(path.steps[-1])[1:]}"
            spelled[parameter.node.id] = name if step == ".value" else f"{name}{step}"
        return given, spelled


def text_of(
    typed: Typed, function: s.Function, signature: inspect.Signature, lookup: Lookup
) -> Text:
    """Return a typed function as source text with a signature; `lookup` finds the names that
    `function` captures.

    Raises CdTypeError CD0480 for what the language has no words for.
    """
    names = _with_other_names(_Names(typed, tuple(signature.parameters), {}), function)
    head, defaults = _head(signature, names)
    text, given = _written(names, function, head)
    paths = {**names.captured(), **given}
    getters = {name: make_getter(typed, lookup, path) for name, path in paths.items()}
    known = {name: (lambda get=get: get({})) for name, get in getters.items()}
    known |= {name: (lambda value=value: value) for name, value in defaults.items()}
    return Text(text, known, {o: n for o, n in names.renamed.items() if o in names.parameters})


def _with_other_names(names: _Names, function: s.Function) -> _Names:
    """Return the names of which none is a word that the text uses."""
    taken = {*RESERVED, *names.parameters, *names.captured()}
    words = RESERVED.intersection((*names.parameters, *names.captured()))
    if not words:
        return names
    renamed = {word: _unused(word, taken) for word in sorted(words)}
    used = _identifiers(_written(replace(names, renamed=renamed), function, "")[0])
    return replace(names, renamed={word: renamed[word] for word in renamed if word in used})


def _unused(plain: str, taken: Collection[str]) -> str:
    """Return a name, with a number where it is taken."""
    numbered = (f"{plain}_{number}" for number in count(2))
    return next(name for name in chain((plain,), numbered) if name not in taken)


def _identifiers(text: str) -> set[str]:
    """Return the identifiers of a text but those of attributes."""
    found: set[str] = set()
    before = ""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.NAME and before != ".":
            found.add(token.string)
        before = token.string
    return found


def _written(names: _Names, function: s.Function, head: str) -> tuple[str, dict[str, Path]]:
    """Return the text with a head of parameters, and the names that the source does not have."""
    typed = names.typed
    given, spelled = names.spelled()
    reserved = (*map(names.root, names.parameters), *names.captured(), *given)
    name = function.name if function.name.isidentifier() else "derivative"
    results = [node for one in _flat(typed.returns) for node in _result(one, typed)]
    try:
        text = source_text(typed.procedure, name, results, spelled, reserved, head)
    except NotDifferentiable as why:
        message = f"`{function.name}` has no text: the language has no words for {why.reason}"
        span = function.span if why.span == NOWHERE else why.span
        helps = ("it can be called all the same",)
        raise CdTypeError(Diagnostic("CD0480", message, (Label(span),), helps=helps)) from None
    first, _, rest = text.partition("\n")
    known = names.renamed.items()
    notes = (f"{INDENT}# `{new}` is `{old}`, which is a word here" for old, new in known)
    text = "\n".join((first, *notes, rest))
    if not results:
        return text, given
    body, _, returned = text.rpartition("    return ")
    labels = iter(returned.strip().split(", "))
    whole = _nested(typed.returns, typed, labels, is_outermost=True)
    return f"{body}    return {whole}\n", given


@dataclass(frozen=True, slots=True)
class _Written:
    """A default value in the text of a signature."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _head(signature: inspect.Signature, names: _Names) -> tuple[str, dict[str, object]]:
    """Return the parameters of a signature as text, and the default values that have names there
    because they are no literals."""
    defaults: dict[str, object] = {}
    taken = {*names.parameters, *names.captured(), *names.spelled()[0]}
    parameters: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        default = one.default
        if default is not one.empty:
            text = repr(default)
            if not _is_literal(default):
                text = _unused(f"{one.name}_default", taken)
                defaults[text] = default
            default = _Written(text)
        name = names.root(one.name)
        parameters.append(one.replace(name=name, default=default, annotation=one.empty))
    return str(inspect.Signature(parameters))[1:-1], defaults


def _is_literal(value: object) -> bool:
    """Whether the text of a value means the value."""
    if type(value) is tuple:
        return all(map(_is_literal, value))
    return type(value) in (int, bool, str, type(None)) or (
        type(value) is float and math.isfinite(value)
    )


def _nested(returns: Return, typed: Typed, names: Iterator[str], is_outermost: bool = False) -> str:
    """Return what a function returns as text, of the names of its arrays in order."""
    if not isinstance(returns, Many):
        return next(names) if _result(returns, typed) else "None"
    inside = ", ".join(_nested(item, typed, names) for item in returns.items)
    if returns.kind == "list":
        return f"[{inside}]"
    comma = "," * (len(returns.items) == 1)
    return inside + comma if is_outermost else f"({inside}{comma})"


def _flat(returns: Return) -> Sequence[Return]:
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


def _identifier(label: str) -> str:
    """Return the label of an array as a name: without the function that captures it."""
    name = re.sub(r"\W", "_", label.rpartition(":")[2])
    is_name = name.isidentifier() and not iskeyword(name) and name not in RESERVED
    return name if is_name else f"array_{name}"


def _is_written_out(path: Path, typed: Typed) -> bool:
    """Whether a text spells an array as the source does: a name with attributes and items."""
    whole = path.owner or path
    steps = (
        step.isidentifier() if isinstance(step, str) else isinstance(step, int | tuple)
        for step in whole.steps
    )  # fmt: skip
    return whole.root.isidentifier() and whole.root not in typed.constants and all(steps)
