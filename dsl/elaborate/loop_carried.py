"""Loop-carried names: their slots, exchanges of arrays, and bindings after a loop.

A body is elaborated until types and slots reach a fixed point: each iteration ends as it began.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce

from ...base.diagnostic import CdError, CdTypeError, Span
from ...lowering.ir.assignments import Permute, Statement
from ...lowering.ir.expressions import Position, Read
from ...lowering.ir.indexing import Symbol, var
from ...lowering.ir.node import Node
from ..source import surface as s
from ..source.desugar import leaves
from ..values.arrays import describe
from ..values.builder import NeedKind, error
from ..values.types import Kind, join
from ..values.values import Array, Group, Lazy, Masked, Scalar, Static, Unset, Value
from . import object_attributes
from .aliasing import seeing, seen_by_callers
from .bindings import (
    NeedPeel,
    carrier_of,
    close_slot,
    is_carriable,
    is_number,
    open_slot,
    same_binding,
    uses_symbols,
)
from .names import is_letter, unset_name
from .scope import (
    EXIT,
    RESULT,
    FirstUse,
    Frame,
    assigned_names,
    assigned_subscripts,
    first_use,
    loads_in,
    names_in,
    next_use,
    parts,
    rebound_names,
    restore,
    snapshot,
    sources,
)

_FUNCTIONS = s.Define | s.Lambda


def carried(
    frame: Frame, statement: s.For | s.While, body: tuple[s.Statement, ...], exempt: frozenset[str],
    elaborate: Callable[[tuple[s.Statement, ...]], None], symbols: frozenset[Symbol],
    whole: tuple[s.Statement, ...] | None = None, runs: bool = False,
) -> list[Statement]:  # fmt: skip
    """Return the statements of a loop's body, with a slot for each loop-carried name.

    `exempt` are the names of the target, `symbols` those of the counter, `whole` the body with the
    test of a `while`; `runs`: there is at least one iteration. The body is elaborated again, with
    more or wider slots, until every iteration ends as it began. CdTypeError CD0210 if none does.
    """
    ctx = frame.ctx
    rebound = [name for name in dict.fromkeys(rebound_names(body)) if name not in exempt]
    use = {name: first_use(whole or body, name) for name in rebound}
    _unbind_dead_numbers(frame, body, {name for name in rebound if runs and use[name] == "set"})
    not_set_first = {name for name in rebound if use[name] != "set"}
    live = {name for name in rebound if use[name] == "read" or read_after(frame, statement, name)}
    live |= not_set_first & {RESULT, EXIT}  # the caller reads them, after the function's text
    slots: dict[str, Kind | None] = {
        name: None for name in rebound  # the order of emitted statements follows this one
        if name in live and name in frame.names and name not in frame.slots
        and (is_number(frame.names[name]) or isinstance(frame.names[name], Group))
    }  # fmt: skip
    state = snapshot(frame)
    while True:  # each pass adds slots, or widens some
        restore(frame, state)
        mixed = frozenset(frame.ctx.mixed)
        for name in slots:
            if carrier_of(name) == name:
                _open_carried(frame, name, slots, statement.span)
        entry = dict(frame.names)
        try:
            with ctx.block() as out, in_loop_body(frame, runs and not leaves(body)):
                elaborate(body)
                _require_kinds(frame)
                _add_replaced_arrays(
                    frame, statement, body, exempt, entry, runs, rebound, (live, not_set_first)
                )
                _add_attributes(frame, entry, statement.span, rebound, (live, not_set_first))
                _require_created_again(frame, statement, entry, not_set_first)
                called = _read_by_functions(frame, entry.values()) & use.keys()
                wanted = _close_iteration(
                    frame, statement, entry, live, rebound, not_set_first | called, symbols, runs
                )
                if not wanted:
                    _refuse_carried_constants(frame, statement, entry, not_set_first, called, use)
        except (NeedKind, CdError) as why:
            _widen_slots(frame, slots, mixed, statement, why)
            continue
        except NeedPeel as need:
            if carrier_of(need.name) in slots and isinstance(statement, s.While):
                raise need.problem from None
            raise
        if not wanted:
            for name in slots:
                close_slot(frame, name)
            return out
        if slots.keys() >= set(wanted):
            raise _unsettled(statement.span)
        slots.update(dict.fromkeys(wanted))


def _require_kinds(frame: Frame) -> None:
    """Raise NeedKind where numbers that this pass has stored are wider than their slots."""
    for name, kind in frame.wider.items():
        raise NeedKind(name, kind=kind)


def _widen_slots(
    frame: Frame, slots: dict[str, Kind | None], mixed: frozenset[str],
    statement: s.For | s.While, why: NeedKind | CdError,
) -> None:  # fmt: skip
    """Add what a pass over a loop has found to its slots; `mixed` are the arrays of several orders
    that were known before it. Raise `why` again where it is an error of its own or concerns an
    enclosing loop, CdTypeError CD0210 where the types do not settle."""
    found: dict[str, list[Kind | None]] = {name: [kind] for name, kind in frame.wider.items()}
    own = {name for name in found if carrier_of(name) in slots}
    if isinstance(why, NeedKind):
        if why.inner is statement:
            raise why
        own |= {x for x in why.names if why.inner is not None or carrier_of(x) in slots}
        for name in why.names:
            found.setdefault(name, []).append(why.kind)
    if not own:
        raise why
    before = dict(slots)
    for name in sorted(own):
        slots[name] = _joined(slots.get(name), *found[name])
    if before == slots and mixed == frame.ctx.mixed:
        raise _unsettled(statement.span)


def _unsettled(span: Span) -> CdError:
    """Return CdTypeError CD0210 for a loop of which another pass would find the same again."""
    return error("CD0210", CdTypeError, "the types of this loop's names do not settle", span)


def _joined(*kinds: Kind | None) -> Kind | None:
    """Return the kind wide enough for some kinds, None for a value's own."""
    known = [kind for kind in kinds if kind is not None]
    return reduce(join, known) if known else None


def _unbind_dead_numbers(frame: Frame, body: tuple[s.Statement, ...], replaced: set[str]) -> None:
    """Unbind numbers that are dead at the entry of a loop: its first iteration always assigns them
    before they are read, so that their types before the loop do not matter."""
    if leaves(body):
        return
    for name in sorted(replaced - frame.slots.keys() - closed_over(frame.function)):
        if name in frame.names and is_number(frame.names[name]):
            del frame.names[name]


def _add_replaced_arrays(
    frame: Frame,
    statement: s.For | s.While,
    body: tuple[s.Statement, ...],
    exempt: frozenset[str],
    entry: Mapping[str, Value],
    runs: bool,
    rebound: list[str],
    loop_carried_sets: tuple[set[str], ...],
) -> None:
    """Add the names that index statements over whole arrays have bound to new arrays, at the end
    of an iteration or at a jump, to the names that it rebinds and to the loop-carried ones.

    NeedPeel, CdTypeError CD0208 in a `while`, for one that is no array before the loop.
    """
    completes, first = runs and not leaves(body), partial(_first_array_use, frame)
    for name, before in entry.items():
        current = frame.names.get(name)
        becomes_array = not isinstance(before, Array | Unset) and isinstance(current, Array)
        if name in exempt or name in rebound or current is None:
            continue
        if not (becomes_array or isinstance(before, Array)):
            continue
        if same_binding(current, before) and _is_bound_at_jumps(frame, name, before):
            continue
        if first(body, name) == "read" or (
            read_after(frame, statement, name, first) and not completes
        ):
            if becomes_array:
                raise _refuse_array(name, before, current, statement)
            rebound.append(name)
            for names in loop_carried_sets:
                names.add(name)


def _refuse_array(
    name: str, before: Value, current: Value, statement: s.For | s.While
) -> NeedPeel | CdError:
    """Return what to raise for a name that an index statement of a loop makes an array."""
    problem = error(
        "CD0208", CdTypeError,
        f"`{name}` is {describe(before)} before the loop and {describe(current)} inside",
        statement.span, helps=("use another name inside the loop",),
    )  # fmt: skip
    return problem if isinstance(statement, s.While) else NeedPeel(name, problem)


def _first_array_use(frame: Frame, body: tuple[s.Statement, ...], name: str) -> str:
    """Return the first use, as `first_use`, with index statements over a whole array as sets."""
    for statement in body:
        match statement:
            case s.Assign((s.Subscript(s.Name(id=target), items),), value) if target == name:
                indices = [x.id for x in items if isinstance(x, s.Name) and is_letter(frame, x)]
                is_whole = len(indices) == len(items) == len(set(indices))
                is_read = any(read_name.id == name for read_name in names_in(value))
                use = "set" if is_whole and not is_read else "read"
            case s.If(test, then, orelse) if all(
                read_name.id != name for read_name in names_in(test)
            ):
                sides = [_first_array_use(frame, side, name) for side in (then, orelse)]
                use = "read" if "read" in sides else "unused"
                use = "set" if sides == ["set", "set"] else use
            case s.Comment(_, inner):
                use = _first_array_use(frame, inner, name)
            case s.For(_, over, inner) | s.While(over, inner) if all(
                read_name.id != name for read_name in names_in(over)
            ):
                use = _first_array_use(frame, inner, name)
                use = "unused" if use == "set" else use  # it may have no iteration
            case _:
                use = first_use((statement,), name)
        if use != "unused":
            return use
    return "unused"


def _open_carried(frame: Frame, name: str, kinds: Mapping[str, Kind | None], span: Span) -> None:
    """Give a name a slot with its value, zero where an inner loop sets it first."""
    if name not in frame.names:
        frame.names[name] = object_attributes.before(frame, name) or Static(0)
    value = frame.names[name]
    if isinstance(value, Unset):
        raise unset_name(name, value, span)
    open_slot(frame, name, kinds, span)


def _add_attributes(
    frame: Frame,
    entry: dict[str, Value],
    span: Span,
    rebound: list[str],
    loop_carried_sets: tuple[set[str], ...],
) -> None:
    """Add the attributes that a loop's body assigns to the names that it rebinds and to the
    loop-carried ones, and their values before the loop to those at its entry."""
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
        for names in loop_carried_sets:
            names.add(name)


@contextmanager
def in_loop_body(frame: Frame, sure: bool) -> Iterator[None]:
    """Elaborate the body of a loop inside; `sure`: the first iteration always completes."""
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


def _close_iteration(
    frame: Frame, statement: s.For | s.While, entry: dict[str, Value], live: set[str],
    rebound: list[str], read_first: set[str], symbols: frozenset[Symbol], runs: bool,
) -> list[str]:  # fmt: skip
    """Make the end of an iteration agree with its beginning; return names that need slots.

    `read_first` are the names that an iteration may read before it sets them.
    """
    changed_names = [
        name
        for name in rebound
        if name in entry and name in frame.names and not (
            same_binding(frame.names[name], entry[name])
            and _is_bound_at_jumps(frame, name, entry[name])
        )
    ]  # fmt: skip
    carried_names = [name for name in changed_names if name in live]
    numbers = [name for name in carried_names if is_number(entry[name])]
    if 0 < len(numbers) < len(carried_names):
        return numbers  # permuted arrays are recognized once these have slots
    if carried_names and _emit_exchange(frame, entry, carried_names, live, statement):
        carried_names = []
        for name in changed_names:
            frame.names[name] = entry[name]
    wanted: list[str] = []
    completes = runs and isinstance(statement, s.For) and not leaves(statement.body)
    for name in carried_names:
        value, end_value = entry[name], frame.names[name]
        stays = runs and _stays_after(frame, name, end_value, statement, symbols)
        is_peeled = value == Static(None) and completes and is_carriable(end_value)
        if is_carriable(value):
            wanted.append(name)
        elif is_peeled and (name in read_first or not stays):
            raise NeedPeel(name, _carried_constant_error(name, value, statement.span))
        elif not stays:
            frame.names[name] = Unset(
                "changes from iteration to iteration of a loop", statement.span
            )
    for name in rebound:
        final = frame.names.get(name)
        if final is None or name in wanted or name in frame.slots:
            continue
        ended_symbols = symbols | _inner_symbols(frame, final)
        if name not in entry and name in live and not _is_bound_at_jumps(frame, name, final):
            if is_number(final):
                wanted.append(name)
            else:
                frame.names[name] = Unset(
                    "is another array where its loop is left", statement.span,
                    (f"set it before the loop: `{name} = np.zeros(...)`",),
                )  # fmt: skip
        elif name not in entry and uses_symbols(final, ended_symbols):
            may_jump = name in live and any(name in names for names in frame.jumps)
            if may_jump and is_number(final):
                wanted.append(name)  # the store at the end of an iteration is skipped there
            else:
                frame.names[name] = _binding_after_loop(frame, name, final, statement, symbols)
        elif name in changed_names and name not in live:
            frame.names[name] = final if not uses_symbols(final, ended_symbols) else entry[name]
    return wanted


def _stays_after(
    frame: Frame, name: str, value: Value, statement: s.For | s.While, symbols: frozenset[Symbol]
) -> bool:
    """Whether a name that is read after a loop has there what it is bound to in each iteration."""
    return (
        read_after(frame, statement, name)
        and _is_bound_at_jumps(frame, name, value)
        and not uses_symbols(value, symbols | _inner_symbols(frame, value))
    )


def _is_bound_at_jumps(frame: Frame, name: str, value: Value) -> bool:
    """Whether a name has a binding at every `break` and `continue` where it is set."""
    return all(same_binding(names[name], value) for names in frame.jumps if name in names)


def _refuse_carried_constants(
    frame: Frame, statement: s.For | s.While, entry: dict[str, Value], not_set_first: set[str],
    called: set[str], use: Mapping[str, str],
) -> None:  # fmt: skip
    """Refuse (CD0208) a loop-carried text, function, object or selection: one that the previous
    iteration has changed. `called` are the names that functions read."""
    for name in sorted((not_set_first | called) & entry.keys()):
        before, current = entry[name], frame.names.get(name)
        if is_carriable(before):
            continue
        is_static = isinstance(before, Static)
        is_read = use.get(name) == "read" or name in called
        if (is_static or is_read) and current is not None and not same_binding(current, before):
            raise _carried_constant_error(name, before, statement.span)


def _carried_constant_error(name: str, before: Value, span: Span) -> CdError:
    """Return the error CD0208 of a loop-carried value that no slot can hold."""
    return error(
        "CD0208",
        CdTypeError,
        f"`{name}` is {describe(before)} before the loop, and each iteration makes another of it",
        span,
        helps=_carried_constant_helps(name, before),
    )


def _read_by_functions(frame: Frame, values: Iterable[Value]) -> set[str]:
    """Return the names of a frame that functions among some values read when they are called."""
    found = set[str]()
    for value in values:
        match value:
            case Group(items):
                found |= _read_by_functions(frame, items)
            case Lazy(function, scope) if scope is frame or scope is frame.closure:
                own = {param.name for param in function.params}
                if isinstance(function, s.Function):
                    own |= set(assigned_names(function.body))
                found |= {name.id for name in names_in(function)} - own
    return found


def _carried_constant_helps(name: str, before: Value) -> tuple[str, ...]:
    """Return the help texts for a loop-carried text, tuple, function, object or selection."""
    match before:
        case Masked():
            return (
                f"change it in place: `{name} *= 2`, `{name} += y[mask]`",
                f"or select in the loop, from a whole array: `{name} = x[mask]`",
            )
        case Static(None):
            return (
                f"give it a value of the loop's kind, and a flag: `{name}, found = 0.0, False` "
                "before the loop",
            )
        case _:
            return ("give each a name of its own, and test which to use: `if k == 0:`",)


def _require_created_again(
    frame: Frame, statement: s.For | s.While, entry: Mapping[str, Value], not_set_first: set[str]
) -> None:
    """Require (NeedPeel) that an array which an index statement makes in each iteration is a new
    one in each: not one that the name was bound to meanwhile, and that others would see written."""
    made = {
        target.value.id
        for target in assigned_subscripts(statement.body)
        if isinstance(target.value, s.Name)
        and any(isinstance(item, s.Name) and is_letter(frame, item) for item in target.items)
    }
    for name in sorted((made & not_set_first) - entry.keys()):
        final = frame.names.get(name)
        if not isinstance(final, Array) or final.base is None:
            continue
        slot_nodes = {node for x in frame.slots.values() if (node := _whole_node(x)) is not None}
        nodes = sources(frame, final.base.node) - slot_nodes
        others = [x for x in seeing(frame.names, nodes) if x != name and x in entry]
        if not others and not seen_by_callers(frame, nodes):
            continue
        other = f"`{others[0]}`" if others else "the caller"
        problem = error(
            "CD0208", CdTypeError,
            f"`{name}` is made in the first iteration of this loop, and from the second one on it "
            f"is an array that {other} has, too, and is written", statement.span,
            helps=(
                f"make it before the loop: `{name} = np.zeros(...)`",
                "or bind it to a copy: `.copy()`",
            ),
        )  # fmt: skip
        raise problem if isinstance(statement, s.While) else NeedPeel(name, problem)


def _inner_symbols(frame: Frame, value: Value) -> frozenset[Symbol]:
    """Return the symbols of a binding that are defined in a block, and go out of scope with it."""
    if not isinstance(value, Scalar) or not isinstance(value.expr, Position):
        return frozenset()
    stable = frame.ctx.stable
    return frozenset(x for x in value.expr.index.symbols() if x not in stable)


def _binding_after_loop(
    frame: Frame, name: str, value: Value, statement: s.For | s.While, symbols: frozenset[Symbol]
) -> Value:
    """Return the binding, after a loop, of a name that is first set inside."""
    if isinstance(value, Scalar):
        node = frame.ctx.variable(name, value, statement.span)
        return Scalar(Read(node, ()), value.kind)
    return Unset(
        "has another shape or place in each iteration of a loop that has ended", statement.span
    )


def _emit_exchange(
    frame: Frame,
    entry: dict[str, Value],
    names: list[str],
    live: Collection[str],
    statement: s.For | s.While,
) -> bool:
    """Emit a `Permute` where names only exchange whole arrays of one layout; False otherwise."""
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
    if _have_other_names(frame, nodes, names, live, statement):
        return False
    sources = tuple(node for node in after if node is not None)
    frame.ctx.permuted.update(nodes)
    frame.ctx.emit(Permute(tuple(nodes), sources, statement.span))
    return True


def _have_other_names(
    frame: Frame,
    nodes: Sequence[Node],
    permuted: Sequence[str],
    live: Collection[str],
    statement: s.For | s.While,
) -> bool:
    """Whether permuted arrays have other live names, which an exchange of buffers would change."""
    rebound = set(rebound_names(statement.body))
    loaded = {n.id for n in loads_in(statement)}
    others = [name for name in seeing(frame.names, nodes) if name not in permuted]
    return seen_by_callers(frame, nodes) or any(
        name in live
        or name not in rebound
        and (name in loaded or read_after(frame, statement, name))
        for name in others
    )


def _whole_node(value: Value) -> Node | None:
    """Return the node of which an array is the whole, None for parts and numbers."""
    if not isinstance(value, Array) or value.view is None:
        return None
    axes = tuple(var(axis) for axis in value.axes)
    is_whole = value.view.index == axes and value.shape == value.view.node.shape
    return value.view.node if is_whole else None


def open_reserved(frame: Frame, statement: s.For | s.While) -> None:
    """Initialize the reserved names that a loop sets on every exit, so that they can be numbers.

    The initial value, False, is never read, and its type joins with that of any number.
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
    """Whether a name is live after a loop; `first` finds first uses."""
    if name not in closed_over(frame.function):
        use = next_use(frame.function, statement, name, first)
        if use:
            return use == "read"
    loop_loads = {(n.span.line, n.span.column) for n in loads_in(statement)}
    if name in (RESULT, EXIT):
        return True
    return any(
        n.id == name and (n.span.line, n.span.column) not in loop_loads
        for n in loads_in_body(frame.function)
    )


def closed_over(function: s.Function) -> frozenset[str]:
    """Return every name in the functions and lambdas that are defined in a function."""
    try:
        return function.defined
    except AttributeError:
        names = frozenset(name.id for name in _names_of_defined(function))
        object.__setattr__(function, "defined", names)
        return names


def _names_of_defined(node: object) -> Iterator[s.Name]:
    """Yield the names in the functions and lambdas below a node of the syntax."""
    for part in parts(node):
        yield from names_in(part) if isinstance(part, _FUNCTIONS) else _names_of_defined(part)


def loads_in_body(function: s.Function) -> Iterator[s.Name]:
    """Yield every name read in a function's body."""
    for statement in function.body:
        yield from loads_in(statement)
