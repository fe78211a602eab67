"""Free index variables of a piece of the source: those that no reduction inside it binds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from types import ModuleType

from ....base.diagnostic import CdError
from ...numpy import table
from ...source import surface as s
from ...values.values import Static
from ..expressions import evaluate
from ..names import is_letter
from ..scope import Frame, parts, target_names

_Names = frozenset[str]


def uses_letters(frame: Frame, node: object) -> bool:
    """Whether a statement is in index notation: a free index variable stands in a subscript of it.

    A reduction that binds all of its index variables is a number, wherever it stands.
    """
    return any(True for _ in _free(frame, node, frozenset(), frozenset(), False))


def guard_letters(frame: Frame, statement: s.If) -> tuple[str, ...]:
    """Return the index variables on which an `if` guards the statements inside, in order.

    Those are the free ones of its test. A reduction that names no index variables binds those in it
    that are not on the left of a statement inside.
    """
    left = frozenset(_letters_on_left(frame, (*statement.then, *statement.orelse)))
    free = (name.id for name in _free(frame, statement.test, frozenset(), left, True))
    return tuple(dict.fromkeys(free))


def free_letters(frame: Frame, node: object, names: tuple[str, ...]) -> bool:
    """Whether some of a guard's index variables `names` are free in a part of its test."""
    left = frozenset(names)
    return any(name.id in left for name in _free(frame, node, frozenset(), left, True))


def idle_reduction(frame: Frame, statement: s.If) -> s.Call | None:
    """Return a reduction of a guard's test whose index variables are all on the left inside."""
    left = frozenset(_letters_on_left(frame, (*statement.then, *statement.orelse)))
    for node in _calls(statement.test):
        if _reduces(frame, node) and not isinstance(node.function, s.Subscript):
            inner = {n.id for n in _free(frame, node.args[0], frozenset(), frozenset(), True)}
            if inner and inner <= left:
                return node
    return None


def _calls(node: object) -> Iterator[s.Call]:
    if isinstance(node, s.Call):
        yield node
    for part in parts(node):
        yield from _calls(part)


def _letters_on_left(frame: Frame, body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield the index variables of the targets of statements, nested ones included."""
    for statement in body:
        match statement:
            case s.Assign(targets, _):
                for target in targets:
                    yield from _target_letters(frame, target)
            case s.Augment(target, _, _):
                yield from _target_letters(frame, target)
            case s.If(_, then, other):
                yield from _letters_on_left(frame, (*then, *other))
            case s.For(_, _, inner) | s.While(_, inner) | s.Comment(_, inner):
                yield from _letters_on_left(frame, inner)


def _target_letters(frame: Frame, target: s.Expr) -> Iterator[str]:
    return (name.id for name in _free(frame, target, frozenset(), frozenset(), False))


def _free(
    frame: Frame, node: object, bound: _Names, left: _Names, inside: bool
) -> Iterator[s.Name]:
    """Yield the free index variables of a node: all of them where `inside` a subscript, otherwise
    those in its subscripts. Reductions without binders leave those free that are on the `left`."""
    match node:
        case s.Name(name):
            if inside and name not in bound and is_letter(frame, node):
                yield node
        case s.Subscript(value, items):
            yield from _free(frame, value, bound, left, inside)
            for item in items:
                yield from _free(frame, item, bound, left, True)
        case s.Lambda(params, body):
            if inside:
                names = bound | {param.name for param in params}
                yield from _free(frame, body, names, left, inside)
        case s.Comprehension(element, target, iterable, tests):
            yield from _free(frame, iterable, bound, left, inside)
            names = bound | set(target_names(target))
            for inner in (element, *tests):
                yield from _free(frame, inner, names, left, inside)
        case s.Define():
            return
        case s.Call():
            yield from _free_in_call(frame, node, bound, left, inside)
        case _:
            for part in parts(node):
                yield from _free(frame, part, bound, left, inside)


def _free_in_call(
    frame: Frame, call: s.Call, bound: _Names, left: _Names, inside: bool
) -> Iterator[s.Name]:
    """Yield the free index variables of a call: of a reduction those that it does not bind."""
    found = [n for part in parts(call) for n in _free(frame, part, bound, left, inside)]
    if not found or not _reduces(frame, call):
        yield from found
    elif isinstance(call.function, s.Subscript):
        named = _bound_by(frame, call.function.items, bound, left)
        yield from (name for name in found if name.id not in named)
    else:
        yield from (name for name in found if name.id in left)


def _bound_by(
    frame: Frame, binders: tuple[s.Expr, ...], bound: _Names, left: _Names
) -> Collection[str]:
    """Return the index variables that binders bind: `k`, `k in range(n)`, or `k <= i`, of which
    those on the left stay free."""
    names = set[str]()
    for binder in binders:
        match binder:
            case s.Name(name) | s.Compare((s.Name(name), _), ("in",)):
                names.add(name)
            case s.Compare():
                compared = _free(frame, binder, bound, left, True)
                names |= {name.id for name in compared if name.id not in left}
    return names


def _reduces(frame: Frame, call: s.Call) -> bool:
    """Whether a call is a reduction over index variables, by its function and arguments."""
    function = call.function
    if isinstance(function, s.Subscript):
        function = function.value
    elif any(keyword.name != "acc" for keyword in call.keywords):
        return False
    if len(call.args) != 1:
        return False
    with suppress(CdError):  # where the name has no value the evaluation tells it
        match function:
            case s.Attribute(s.Name() as owner, _) if not _is_module(frame, owner):
                return False
            case s.Name() | s.Attribute(s.Name(), _):
                callee = evaluate(frame, function)
                return isinstance(callee, Static) and table.reduction_of(callee.value) is not None
    return False


def _is_module(frame: Frame, name: s.Name) -> bool:
    if is_letter(frame, name):
        return False
    owner = evaluate(frame, name)
    return isinstance(owner, Static) and isinstance(owner.value, ModuleType)
