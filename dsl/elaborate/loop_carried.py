"""Names that live across the rounds of a loop: slots, swaps of buffers, what holds after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, Span
from ...lowering.ir.assignments import Alloc, Permute, Statement
from ...lowering.ir.expressions import Position, Read
from ...lowering.ir.indexing import Symbol, var
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.arrays import describe
from ..values.builder import NeedKind, error
from ..values.range_analysis import Known
from ..values.types import Kind, join
from ..values.values import Array, Group, Scalar, Static, Unset, Value
from . import object_attributes
from .aliasing import seeing, seen_by_callers
from .bindings import NeedPeel, is_number, open_slot, uses_symbols
from .early_exit import leaves
from .names import is_letter
from .scope import (
    EXIT,
    RESULT,
    FirstUse,
    Frame,
    first_use,
    loads_in,
    names_in,
    next_use,
    parts,
    rebound_names,
)

_TRIES = 12
_FUNCTIONS = s.Define | s.Lambda


def carried(
    frame: Frame,
    statement: s.For | s.While,
    body: tuple[s.Statement, ...],
    own: frozenset[str],
    elaborate: Callable[[tuple[s.Statement, ...]], None],
    symbols: frozenset[Symbol],
    whole: tuple[s.Statement, ...] | None = None,
    runs: bool = False,
) -> list[Statement]:
    """Return the statements of a loop's body, each loop-carried name in a slot of its own.

    `runs`: there is one iteration at least. The body is elaborated again, with more or wider slots,
    until every iteration ends as it began.
    """
    ctx = frame.ctx
    rebound = [name for name in dict.fromkeys(rebound_names(body)) if name not in own]
    use = {name: first_use(whole or body, name) for name in rebound}
    _forget_numbers(frame, body, {name for name in rebound if runs and use[name] == "set"})
    early = {name for name in rebound if use[name] != "set"}
    live = {name for name in rebound if use[name] == "read" or read_after(frame, statement, name)}
    live |= early & {RESULT, EXIT}  # where a function is left is read after its text
    slots: dict[str, Kind | None] = {
        name: None for name in rebound  # in this order: what is emitted follows it
        if name in live and name in frame.names and is_number(frame.names[name])
        and name not in frame.slots
    }  # fmt: skip
    state = snapshot(frame)
    for _ in range(_TRIES):
        restore(frame, state)
        for name, kind in slots.items():
            _open(frame, name, kind, statement.span)
        entry = dict(frame.names)
        try:
            with ctx.block() as out, _looping(frame, runs and not leaves(body)):
                elaborate(body)
                _note_replaced(frame, statement, body, own, entry, runs, rebound, (live, early))
                _note_attributes(frame, entry, statement.span, rebound, (live, early))
                wanted = _close(frame, statement, entry, live, rebound, symbols, runs)
                _refuse_changed(frame, statement, entry, early)
        except NeedKind as need:
            if need.inner is statement:
                raise
            if need.inner is None and need.name not in slots:
                raise
            known = slots.get(need.name)
            slots[need.name] = need.kind if known is None else join(known, need.kind)
            continue
        except NeedPeel as need:
            if need.name in slots and isinstance(statement, s.While):
                raise need.problem from None
            raise
        if not wanted:
            for name in slots:
                frame.slots.pop(name, None)
            return out
        slots.update(dict.fromkeys(wanted))
    raise error(
        "CD0210", CdTypeError, "the types of this loop's names do not settle", statement.span
    )


def _forget_numbers(frame: Frame, body: tuple[s.Statement, ...], replaced: set[str]) -> None:
    """Unbind the numbers that the first iteration of a loop surely replaces before anything reads
    them: nobody sees again what they are before the loop, nor their types."""
    if leaves(body):
        return
    for name in sorted(replaced - frame.slots.keys() - closed_over(frame.function)):
        if name in frame.names and is_number(frame.names[name]):
            del frame.names[name]


def _note_replaced(
    frame: Frame,
    statement: s.For | s.While,
    body: tuple[s.Statement, ...],
    own: frozenset[str],
    entry: Mapping[str, Value],
    runs: bool,
    rebound: list[str],
    lasting: tuple[set[str], ...],
) -> None:
    """Add the names that stand for other arrays after an iteration, or where that is left, since
    statements over all of their letters made them, to those that it rebinds, and to those that live
    across iterations."""
    sure, first = runs and not leaves(body), partial(_first_whole, frame)
    for name, before in entry.items():
        now = frame.names.get(name)
        if name in own or name in rebound or not isinstance(before, Array) or now is None:
            continue
        if same_binding(now, before) and _kept(frame, name, before):
            continue
        if first(body, name) == "read" or (read_after(frame, statement, name, first) and not sure):
            rebound.append(name)
            for names in lasting:
                names.add(name)


def _first_whole(frame: Frame, body: tuple[s.Statement, ...], name: str) -> str:
    """Return what `first_use` does where a statement over all letters of an array sets its name."""
    for statement in body:
        match statement:
            case s.Assign((s.Subscript(s.Name(id=target), items),), value) if target == name:
                plain = [x.id for x in items if isinstance(x, s.Name) and is_letter(frame, x)]
                whole = len(plain) == len(items) == len(set(plain))
                read = any(one.id == name for one in names_in(value))
                found = "set" if whole and not read else "read"
            case s.If(test, then, other) if all(one.id != name for one in names_in(test)):
                sides = [_first_whole(frame, side, name) for side in (then, other)]
                found = "read" if "read" in sides else "unused"
                found = "set" if sides == ["set", "set"] else found
            case s.Comment(_, inner):
                found = _first_whole(frame, inner, name)
            case s.For(_, over, inner) | s.While(over, inner) if all(
                one.id != name for one in names_in(over)
            ):
                found = _first_whole(frame, inner, name)
                found = "unused" if found == "set" else found  # it may have no iteration
            case _:
                found = first_use((statement,), name)
        if found != "unused":
            return found
    return "unused"


def _open(frame: Frame, name: str, kind: Kind | None, span: Span) -> None:
    """Give a name a slot: what it is bound to, nothing yet where a loop inside sets it first."""
    if name not in frame.names:
        frame.names[name] = object_attributes.before(frame, name) or Static(0)
    open_slot(frame, name, kind, span)


def _note_attributes(
    frame: Frame,
    entry: dict[str, Value],
    span: Span,
    rebound: list[str],
    lasting: tuple[set[str], ...],
) -> None:
    """Add the attributes that a loop's body has assigned to the names that it rebinds, and to those
    that live across its iterations, and what they are before it."""
    bound = {name: None for names in (frame.names, *frame.jumps) for name in names}
    for name in bound if frame.inputs.assigned else ():
        if not object_attributes.is_state(frame, name):
            continue
        if name not in entry and (value := object_attributes.before(frame, name)) is not None:
            entry[name] = value
        if name not in entry and name not in frame.names:
            frame.names[name] = Unset("is set on some paths through a loop only", span)
            continue
        if name not in frame.names:
            frame.names[name] = entry[name]
        if name not in rebound:
            rebound.append(name)
        for names in lasting:
            names.add(name)


@contextmanager
def _looping(frame: Frame, sure: bool) -> Iterator[None]:
    """Elaborate the body of a loop inside; `sure`: a first round comes to its end."""
    outer, jumps = frame.in_loop, frame.jumps
    frame.in_loop, frame.jumps = True, []
    frame.ctx.control += 1
    frame.ctx.unsure += not sure
    try:
        yield
    finally:
        frame.ctx.control -= 1
        frame.ctx.unsure -= not sure
        frame.in_loop, frame.jumps = outer, jumps


def _close(
    frame: Frame,
    statement: s.For | s.While,
    entry: dict[str, Value],
    live: set[str],
    rebound: list[str],
    symbols: frozenset[Symbol],
    runs: bool,
) -> list[str]:
    """Make the end of a round agree with its beginning; return names that need slots for it."""
    changed = [
        name
        for name in rebound
        if name in entry
        and name in frame.names
        and not (same_binding(frame.names[name], entry[name]) and _kept(frame, name, entry[name]))
    ]
    lasting = [name for name in changed if name in live]
    numbers = [name for name in lasting if is_number(entry[name])]
    if 0 < len(numbers) < len(lasting):
        return numbers  # arrays that are exchanged are seen once these have slots
    if lasting and _permute(frame, entry, lasting, live, statement):
        lasting = []
        for name in changed:
            frame.names[name] = entry[name]
    wanted: list[str] = []
    for name in lasting:
        value, left = entry[name], frame.names[name]
        if isinstance(value, Array) or is_number(value):
            wanted.append(name)
        elif (
            isinstance(value, Group)
            or not (runs and read_after(frame, statement, name) and _kept(frame, name, left))
            or uses_symbols(left, symbols | _inner_symbols(frame, left))
        ):
            frame.names[name] = Unset("changes from round to round of a loop", statement.span)
    for name in rebound:
        now = frame.names.get(name)
        if now is None or name in wanted or name in frame.slots:
            continue
        gone = symbols | _inner_symbols(frame, now)
        if name not in entry and name in live and not _kept(frame, name, now):
            if is_number(now):
                wanted.append(name)
            else:
                frame.names[name] = Unset(
                    "is another array where its loop is left", statement.span,
                    (f"set it before the loop: `{name} = np.zeros(...)`",),
                )  # fmt: skip
        elif name not in entry and uses_symbols(now, gone):
            early = name in live and any(name in names for names in frame.jumps)
            if early and is_number(now):
                wanted.append(name)  # what stores it at the end of a round is not reached there
            else:
                frame.names[name] = _escaped(frame, name, now, statement, symbols)
        elif name in changed and name not in live:
            frame.names[name] = now if not uses_symbols(now, gone) else entry[name]
    return wanted


def _kept(frame: Frame, name: str, value: Value) -> bool:
    """Whether a name is bound to a value at every `break` and `continue` where it is set."""
    return all(same_binding(names[name], value) for names in frame.jumps if name in names)


def _refuse_changed(
    frame: Frame, statement: s.For | s.While, entry: dict[str, Value], early: set[str]
) -> None:
    """Refuse (CD0208) a text or tuple that a round reads as the round before has left it."""
    for name in sorted(early & entry.keys()):
        before, now = entry[name], frame.names.get(name)
        plain = isinstance(before, Group | Static) and not is_number(before)
        if plain and now is not None and not same_binding(now, before):
            raise error(
                "CD0208",
                CdTypeError,
                f"`{name}` is {describe(before)} before the loop, and each "
                "round makes another of it",
                statement.span,
                helps=(
                    "give each item a name of its own: `a, b = 0.0, 1.0` before the loop, and "
                    "`a, b = b, a + b` in it",
                    "or use an array for what changes: `t = np.zeros(n)` before the loop",
                ),
            )


def _inner_symbols(frame: Frame, value: Value) -> frozenset[Symbol]:
    """Return symbols of a binding that were read inside a block and end with it."""
    if not isinstance(value, Scalar) or not isinstance(value.expr, Position):
        return frozenset()
    stable = frame.ctx.stable
    return frozenset(x for x in value.expr.index.symbols() if x not in stable)


def _escaped(
    frame: Frame, name: str, value: Value, statement: s.For | s.While, symbols: frozenset[Symbol]
) -> Value:
    """Return how a name first set inside a loop is bound after it."""
    if isinstance(value, Scalar):
        node = frame.ctx.variable(name, value, statement.span)
        return Scalar(Read(node, ()), value.kind)
    return Unset(
        "has another shape or place in each round of a loop that has ended", statement.span
    )


def same_binding(left: Value, right: Value) -> bool:
    """Whether two values are one place or one value; arrays by any names of their axes."""
    if isinstance(left, Array) and isinstance(right, Array) and left.rank == right.rank:
        index = tuple(var(axis) for axis in left.axes)
        return left.shape == right.shape and right.at(index) == left.body
    return left == right


def _permute(
    frame: Frame,
    entry: dict[str, Value],
    names: list[str],
    live: Collection[str],
    statement: s.For | s.While,
) -> bool:
    """Exchange buffers where the names only swapped their arrays; False where they did more."""
    if leaves(statement.body):
        return False
    before = [_whole_node(entry[name]) for name in names]
    after = [_whole_node(frame.names[name]) for name in names]
    if None in before or None in after or len(set(before)) < len(names):
        return False
    if set(before) != set(after):
        return False
    nodes = [node for node in before if node is not None]
    if len({(node.shape, node.dtype, node.strides) for node in nodes}) > 1:
        return False
    if _also_seen(frame, nodes, names, live, statement):
        return False
    sources = tuple(node for node in after if node is not None)
    frame.ctx.exchanged.update(nodes)
    frame.ctx.emit(Permute(tuple(nodes), sources, statement.span))
    return True


def _also_seen(
    frame: Frame,
    nodes: Sequence[Node],
    exchanged: Sequence[str],
    live: Collection[str],
    statement: s.For | s.While,
) -> bool:
    """Whether other names stand for arrays that names exchange: each goes its own way then."""
    rebound = set(rebound_names(statement.body))
    loaded = {n.id for n in loads_in(statement)}
    others = [name for name in seeing(frame.names, nodes) if name not in exchanged]
    return seen_by_callers(frame, nodes) or any(
        name in live
        or name not in rebound
        and (name in loaded or read_after(frame, statement, name))
        for name in others
    )


def _whole_node(value: Value) -> Node | None:
    """Return the node that an array is the whole of, None where it is a part or a number."""
    if not isinstance(value, Array) or value.view is None:
        return None
    plain = tuple(var(axis) for axis in value.axes)
    whole = value.view.index == plain and value.shape == value.view.node.shape
    return value.view.node if whole else None


def open_reserved(frame: Frame, statement: s.For | s.While) -> None:
    """Let names that a loop sets whichever way it is left be numbers from before it on.

    What they are before is never read: False, whose type is any other number's, too.
    """
    closed = closed_over(frame.function)
    for name, value in frame.names.items():
        if isinstance(value, Unset) and value.reserved and value.span == statement.span:
            if name not in closed and first_use(statement.body, name) != "read":
                frame.names[name] = Static(False)
                frame.reserved.add(name)


def read_after(
    frame: Frame, statement: s.For | s.While, name: str, first: FirstUse | None = None
) -> bool:
    """Whether a name may be read after a loop before it is set anew, as `first` says."""
    if name not in closed_over(frame.function):
        found = next_use(frame.function, statement, name, first)
        if found:
            return found == "read"
    inside = {(n.span.line, n.span.column) for n in loads_in(statement)}
    if name in (RESULT, EXIT):
        return True
    return any(
        n.id == name and (n.span.line, n.span.column) not in inside
        for n in loads_in_body(frame.function)
    )


def closed_over(function: s.Function) -> frozenset[str]:
    """Return every name inside the functions and lambdas that are defined in a function."""
    try:
        return function.defined
    except AttributeError:
        names = frozenset(name.id for name in _names_of_defined(function))
        object.__setattr__(function, "defined", names)
        return names


def _names_of_defined(node: object) -> Iterator[s.Name]:
    for part in parts(node):
        yield from names_in(part) if isinstance(part, _FUNCTIONS) else _names_of_defined(part)


def loads_in_body(function: s.Function) -> Iterator[s.Name]:
    """Yield every name read in a function's body."""
    for statement in function.body:
        yield from loads_in(statement)


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of an elaboration before a loop, to which it can go back."""

    names: Mapping[str, Value]
    variables: Mapping[str, Node]
    slots: Mapping[str, Value]
    out: tuple[Statement, ...]
    locals: int
    exits: int
    known: Known


def snapshot(frame: Frame) -> Saved:
    """Return what elaborating a loop changes, as it is now."""
    ctx = frame.ctx
    return Saved(
        dict(frame.names), dict(frame.variables), dict(frame.slots), tuple(ctx.out),
        len(ctx.locals), len(frame.exits or ()), ctx.known,
    )  # fmt: skip


def restore(frame: Frame, saved: Saved) -> None:
    """Forget what was elaborated since the snapshot."""
    ctx = frame.ctx
    frame.names, frame.variables = dict(saved.names), dict(saved.variables)
    frame.slots = dict(saved.slots)
    ctx.out[:] = saved.out
    dropped = frozenset(ctx.locals[saved.locals :])
    ctx.prologue[:] = [
        one for one in ctx.prologue if not (isinstance(one, Alloc) and one.node in dropped)
    ]
    del ctx.locals[saved.locals :]
    if frame.exits is not None:
        del frame.exits[saved.exits :]
    ctx.known = saved.known
