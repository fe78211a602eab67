"""Scopes of one function under elaboration: bindings, index variables, captured names, name uses.

The function is the outermost or an inlined one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from types import FunctionType

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.assignments import Alloc, Statement
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.node import Node
from ..source import surface as s
from ..source.desugar import leaves
from ..source.function_source import MISSING
from ..values.builder import Context, Use
from ..values.range_analysis import Assumptions
from ..values.types import Kind
from ..values.values import Array, Value
from .captures.inputs import Inputs

LETTER = re.compile(r"[a-z][0-9_]*")
RESULT = "return"
"""Key of a function's result among its bindings; no Python name equals it."""
EXIT = "left-at"
"""Key of the number of the `return` that left a loop, 0 where none did."""


def is_result(name: str) -> bool:
    """Whether a key of bindings is that of a function's result, or of an item of it.

    >>> is_result("return"), is_result("return_0_1"), is_result("return_value")
    (True, True, False)
    """
    return name.rstrip("_0123456789") == RESULT


SelectPosition = tuple[int, ...]
"""Position of a reduction or select: the numbers on each side of the enclosing selects."""


@dataclass
class Letters:
    """The index variables of one statement.

    `outer` are those on the left of the assignment, `right` those only on its right, `scopes` those
    bound by the enclosing reductions (innermost last; the flag tells that the reduction names no
    index variables and binds the unknown ones). A statement is elaborated twice: first to collect
    the uses of index variables, then with their ranges in `extents`; reductions are numbered in
    order, so that both passes find the same symbols in `inner`. Each side of a select is numbered
    separately: where ranges decide a test, the second pass skips a side.
    """

    outer: dict[str, Symbol] = field(default_factory=dict)
    right: dict[str, Symbol] = field(default_factory=dict)
    inner: dict[SelectPosition, dict[str, Symbol]] = field(default_factory=dict)
    scopes: list[tuple[dict[str, Symbol], bool]] = field(default_factory=list)
    side: SelectPosition = ()
    opened: dict[SelectPosition, int] = field(default_factory=dict)
    """Number of reductions and selects begun so far on each side of a select."""
    implicit: dict[str, Span] = field(default_factory=dict)
    spans: dict[Symbol, Span] = field(default_factory=dict)
    on_left: bool = True
    extents: dict[Symbol, Affine] = field(default_factory=dict)
    open_pairs: list[tuple[Use, Use]] = field(default_factory=list)
    """Plain uses of one index variable whose extents are equal or not at run time."""

    def next_position(self) -> SelectPosition:
        """Return the position of a reduction or select that begins now, and count it."""
        number = self.opened[self.side] = self.opened.get(self.side, -1) + 1
        return (*self.side, number)


@dataclass(frozen=True, slots=True)
class Guard:
    """An enclosing `if` on index variables: its predicate, negated for the `else` side.

    `mask` is the predicate's value on entry where it reads arrays (over the guard's index
    variables).
    """

    test: s.Expr
    negated: bool
    names: tuple[str, ...]
    mask: Array | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of expressions to higher modules: calls, those of a function that has been
    evaluated, applications of a function without a call in the source, and comprehensions."""

    call: Callable[[Frame, s.Call], Value]
    call_of: Callable[[Frame, Value, s.Call], Value]
    apply: Callable[[Frame, FunctionType, tuple[Value, ...], Span], Value]
    comprehend: Callable[[Frame, s.Comprehension], Value]


@dataclass(slots=True, eq=False)
class Frame:
    """Bindings of one function. `lookup` finds captured objects; `path` is None where those of an
    inlined function are constants, not inputs of the outermost function."""

    ctx: Context
    inputs: Inputs
    function: s.Function
    names: dict[str, Value]
    locals: frozenset[str]
    lookup: Callable[[str], object]
    hooks: Hooks
    key: str = ""
    """Prefix of captured names in paths; empty in the outermost function."""
    variables: dict[str, Node] = field(default_factory=dict)
    parent: Frame | None = None
    caller: tuple[Frame, Span] | None = None
    """The caller's bindings and the location of the call."""
    letters: Letters | None = None
    guards: tuple[Guard, ...] = ()
    parameters: frozenset[str] = frozenset()
    in_loop: bool = False
    jumps: list[dict[str, Value]] = field(default_factory=list)
    """Bindings at each `break` and `continue` of the innermost loop that is not unrolled."""
    sizes: dict[str, Affine] = field(default_factory=dict)
    """Size variables of the parameters' annotations, `x: f32[n, m]`; visible in declarations."""
    slots: dict[str, Value] = field(default_factory=dict)
    """Storage of each loop-carried name of a loop that is not unrolled."""
    wider: dict[str, Kind] = field(default_factory=dict)
    """Kinds of loop-carried numbers that this pass over a loop has found wider than their slots."""
    unrolling: bool = False
    """Whether an enclosing loop is being unrolled."""
    reserved: set[str] = field(default_factory=set)
    """Names without a value before a loop that sets them on every exit."""
    closure: Frame | None = None
    """The scope of the comprehension being unrolled, which its lambdas capture."""
    exits: list[Value] | None = None
    """Inside a loop: the value of each of its returns, in the order of elaboration."""

    def choice(self) -> SelectPosition:
        """Return the position of a select that is elaborated now; see `Letters`."""
        return () if self.letters is None else self.letters.next_position()

    @contextmanager
    def on_side(self, choice: SelectPosition, holds: bool) -> Iterator[None]:
        """Number reductions and selects that begin inside as on one side of a select."""
        letters = self.letters
        if letters is None:
            yield
            return
        before, letters.side = letters.side, (*choice, int(holds))
        try:
            yield
        finally:
            letters.side = before


Run = Callable[[Frame, tuple[s.Statement, ...]], None]
"""Elaborator of statements, which branches and loops apply to their bodies."""


def assigned_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that statements assign, subscripted targets and loop targets included."""
    for statement in _walk_statements(body):
        yield from _names_set_by(statement, subscripted=True)


def rebound_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that statements rebind: targets that are bare names, augmented included."""
    for statement in _walk_statements(body):
        yield from _names_set_by(statement, subscripted=False)


def plain_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that some statement binds whatever its value before: not names that are
    only written by augmented assignment, or by elements."""
    for statement in _walk_statements(body):
        if not isinstance(statement, s.Augment):
            yield from _names_set_by(statement, subscripted=False)


def assigned_subscripts(body: tuple[s.Statement, ...]) -> Iterator[s.Subscript]:
    """Yield the targets of plain assignments that are subscripts."""
    for statement in _walk_statements(body):
        if isinstance(statement, s.Assign):
            yield from (x for x in statement.targets if isinstance(x, s.Subscript))


def new_letter(ctx: Context, name: str) -> Symbol:
    """Return a new symbol for an index variable of the source."""
    symbol = ctx.symbol(name)
    ctx.said |= {symbol, name}
    return symbol


def function_locals(
    function: s.Function, parent: Frame | None, lookup: Callable[[str], object]
) -> frozenset[str]:
    """Return the local names of a function: not those that it assigns by elements only, where the
    enclosing scope binds them."""
    names = set(rebound_names(function.body))
    for name in set(assigned_names(function.body)) - names:
        owner = parent
        while owner is not None and name not in owner.names and name not in owner.locals:
            owner = owner.parent
        if owner is None and lookup(name) is MISSING:
            names.add(name)
    return frozenset(names)


def _walk_statements(body: tuple[s.Statement, ...]) -> Iterator[s.Statement]:
    """Yield statements and nested ones, in pre-order."""
    for statement in body:
        yield statement
        for block in _blocks(statement):
            yield from _walk_statements(block)


def _names_set_by(statement: s.Statement, subscripted: bool) -> Iterator[str]:
    """Yield the names that a statement itself sets."""
    match statement:
        case s.Assign(targets, _):
            for target in targets:
                yield from target_names(target, subscripted)
        case s.Augment(target, _, _) | s.Declare(target, _, _) | s.For(target, _, _):
            yield from target_names(target, subscripted)
        case s.Define(function):
            yield function.name
        case s.Return():
            yield from (RESULT, EXIT)


def target_names(target: s.Expr, subscripted: bool = True) -> Iterator[str]:
    """Yield the names that an assignment target sets."""
    match target:
        case s.Name(name):
            yield name
        case s.Subscript(value, _) if subscripted:
            yield from target_names(value)
        case s.Sequence(items, _):
            for item in items:
                yield from target_names(item, subscripted)
        case s.Starred(value):
            yield from target_names(value, subscripted)
        case _:
            pass


def parts(node: object) -> Iterator[object]:
    """Yield the surface nodes directly inside one (statements, expressions, keywords)."""
    for name in getattr(node, "__dataclass_fields__", ()):
        inner = getattr(node, name)
        if isinstance(inner, tuple):
            for item in inner:
                if isinstance(item, tuple):
                    yield from (part for part in item if hasattr(part, "span"))
                elif hasattr(item, "span"):
                    yield item
        elif hasattr(inner, "span"):
            yield inner


def names_in(node: object) -> Iterator[s.Name]:
    """Yield every bare name inside a surface node, in order; lambdas hide
    their own parameters, comprehensions their targets."""
    match node:
        case s.Name():
            yield node
        case s.Lambda(params, body):
            bound = {param.name for param in params}
            yield from (name for name in names_in(body) if name.id not in bound)
        case s.Comprehension(element, target, iterable, tests):
            bound = set(target_names(target))
            inner = [name for part in (element, *tests) for name in names_in(part)]
            yield from names_in(iterable)
            yield from (name for name in inner if name.id not in bound)
        case _:
            for part in parts(node):
                yield from names_in(part)


def loads_in(node: object) -> Iterable[s.Name]:
    """Return every bare name that is read inside a node (targets that are bare names are not)."""
    if not isinstance(node, s.MemoizedNode):
        return _loads(node)
    try:
        return node.loads
    except AttributeError:
        object.__setattr__(node, "loads", tuple(_loads(node)))
        return node.loads


def _loads(node: object) -> Iterator[s.Name]:
    match node:
        case s.Assign(targets, value):
            yield from loads_in(value)
            for target in targets:
                yield from _target_loads(target)
        case s.For(target, iterable, body):
            yield from loads_in(iterable)
            yield from _target_loads(target)
            for statement in body:
                yield from loads_in(statement)
        case s.Declare(target, annotation, value):
            yield from loads_in(annotation)
            yield from loads_in(value)
            yield from _target_loads(target)
        case s.Name() | s.Lambda() | s.Comprehension():
            yield from names_in(node)
        case _:
            for part in parts(node):
                yield from loads_in(part)


def _target_loads(target: s.Expr) -> Iterator[s.Name]:
    match target:
        case s.Name():
            return
        case s.Sequence(items, _):
            for item in items:
                yield from _target_loads(item)
        case _:
            yield from names_in(target)


def first_use(body: tuple[s.Statement, ...], name: str) -> str:
    """Return whether a name is `read`, surely `set`, or `unused` first when the body runs."""
    for statement in body:
        use = _first_use(statement, name)
        if use != "unused":
            return use
    return "unused"


FirstUse = Callable[[tuple[s.Statement, ...], str], str]
"""Returns how statements use a name first: `read`, `set` or `unused`."""


def _first_iteration_use(body: tuple[s.Statement, ...], name: str) -> str:
    """Return `read` where a loop's body reads the name first; the loop may have no iteration."""
    return "read" if first_use(body, name) == "read" else "unused"


def _iterates(iterable: s.Expr) -> bool:
    """Whether the text of an iterable says that it has an element: `range(3)`, `(a, b)`."""
    match iterable:
        case s.Call(s.Name("range"), args, ()):
            numbers = [x.value for x in args if isinstance(x, s.Literal) and type(x.value) is int]
            if len(numbers) != len(args) or len(args) not in (1, 2, 3):
                return False
            first, end, step = (0, *numbers, 1)[:3] if len(args) == 1 else (*numbers, 1)[:3]
            return step != 0 and len(range(first, end, step)) > 0
        case s.Sequence(items):
            return any(not isinstance(item, s.Starred) for item in items)
        case _:
            return False


def next_use(
    function: s.Function, loop: s.For | s.While, name: str, first: FirstUse | None = None
) -> str:
    """Return how a name is used first after a loop of a function, as `first` or `first_use` does.

    Empty where the loop is not in the function. Loops are identified by their source position.
    """
    path = _paths(function).get(_loop_position(loop))
    if path is None:
        return ""
    use = "unused"
    for block, at in reversed(path):  # from the innermost block outwards
        enclosing = block[at]
        if enclosing is not path[-1][0][path[-1][1]] and isinstance(enclosing, s.For | s.While):
            loop_use = _first_use(enclosing, name) if first is None else first((enclosing,), name)
            use = loop_use if use == "unused" else use
            use = "unused" if use == "set" else use  # an earlier jump may skip it
        if use == "unused":
            use_after = partial(_use_from, function, block, at + 1)
            use = use_after(name) if first is None else first(block[at + 1 :], name)
    return use


Path = tuple[tuple[tuple[s.Statement, ...], int], ...]
"""The enclosing blocks of a statement, each with the statement's index, outermost first."""


def _paths(function: s.Function) -> Mapping[tuple[int, int], Path]:
    """Return the path to each loop of a function, by the loop's source position."""
    try:
        return function.paths
    except AttributeError:
        paths: dict[tuple[int, int], Path] = {}
        _add_paths(function.body, (), paths)
        object.__setattr__(function, "paths", paths)
        return paths


def _add_paths(
    body: tuple[s.Statement, ...], outer: Path, paths: dict[tuple[int, int], Path]
) -> None:
    for at, statement in enumerate(body):
        path = (*outer, (body, at))
        if isinstance(statement, s.For | s.While):
            paths.setdefault(_loop_position(statement), path)
        for block in _blocks(statement):
            _add_paths(block, path, paths)


def _use_from(function: s.Function, block: tuple[s.Statement, ...], start: int, name: str) -> str:
    """Return the first use of a name in a block from the statement at `start` on."""
    mentions = _statement_mentions(function, block).get(name)
    if mentions is None:
        return "unused"
    positions, uses = mentions
    if not uses:
        later_use = "unused"
        for at in reversed(positions):
            use = _first_use(block[at], name)
            later_use = later_use if use == "unused" else use
            uses.append(later_use)
        uses.reverse()
    at = bisect_left(positions, start)
    return uses[at] if at < len(uses) else "unused"


def _statement_mentions(
    function: s.Function, block: tuple[s.Statement, ...]
) -> Mapping[str, tuple[list[int], list[str]]]:
    """Return the statements of a block of a function that mention each name.

    With them comes a memo of the name's first use from each of these on.
    """
    try:
        memo = function.uses
    except AttributeError:
        memo = dict[int, Mapping[str, tuple[list[int], list[str]]]]()
        object.__setattr__(function, "uses", memo)
    if id(block) not in memo:
        mentions = defaultdict[str, tuple[list[int], list[str]]](lambda: ([], []))
        for at, statement in enumerate(block):
            for name in (
                _mentioned_names(statement) if isinstance(statement, s.MemoizedNode) else ()
            ):
                mentions[name][0].append(at)
        memo[id(block)] = mentions
    return memo[id(block)]


def _loop_position(statement: s.For | s.While) -> tuple[int, int]:
    return statement.span.line, statement.span.column


def _blocks(statement: s.Statement) -> tuple[tuple[s.Statement, ...], ...]:
    match statement:
        case s.For(_, _, inner) | s.While(_, inner) | s.Comment(_, inner):
            return (inner,)
        case s.If(_, then, orelse):
            return then, orelse
        case _:
            return ()


def _mentioned_names(statement: s.MemoizedNode) -> frozenset[str]:
    """Return all names in a statement, assigned or read."""
    try:
        return statement.mentioned
    except AttributeError:
        mentioned = frozenset(n.id for names in (names_in, loads_in) for n in names(statement))
        object.__setattr__(statement, "mentioned", mentioned)
        return mentioned


def _first_use(statement: s.Statement, name: str) -> str:
    if not isinstance(statement, s.MemoizedNode) or name not in _mentioned_names(statement):
        return "unused"
    try:
        memo = statement.first
    except AttributeError:
        memo = dict[str, str]()
        object.__setattr__(statement, "first", memo)
    if name not in memo:
        memo[name] = _find_first_use(statement, name)
    return memo[name]


def _find_first_use(statement: s.MemoizedNode, name: str) -> str:
    match statement:
        case s.If(test, then, orelse):
            if any(n.id == name for n in names_in(test)):
                return "read"
            sides = (first_use(then, name), first_use(orelse, name))
            if "read" in sides:
                return "read"
            return "set" if sides == ("set", "set") else "unused"
        case s.Comment(_, inner):
            return first_use(inner, name)
        case s.For(target, iterable, inner):
            if any(n.id == name for n in names_in(iterable)):
                return "read"
            use = "set" if name in target_names(target) else first_use(inner, name)
            is_sure = use == "read" or (_iterates(iterable) and not leaves(inner))
            return use if is_sure else "unused"
        case s.While(test, inner):
            is_read = any(n.id == name for n in names_in(test))
            return "read" if is_read else _first_iteration_use(inner, name)
        case s.Assign(targets, _):
            if any(n.id == name for n in loads_in(statement)):
                return "read"
            plain = {x for target in targets for x in target_names(target, subscripted=False)}
            return "set" if name in plain else "unused"
        case _:
            return "read" if any(n.id == name for n in names_in(statement)) else "unused"


def sources(frame: Frame, node: Node) -> set[Node]:
    """Return the nodes that a node aliases, on all paths or on some, itself included."""
    aliases, new = set[Node](), {node}
    while new:
        aliases |= new
        bound = (
            bases for (bound_node, _), bases in frame.ctx.bindings.items() if bound_node in new
        )
        new = {base for bases in bound for base in bases} - aliases
    return aliases


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of an elaboration before a loop, for `restore`."""

    names: Mapping[str, Value]
    variables: Mapping[str, Node]
    slots: Mapping[str, Value]
    out: tuple[Statement, ...]
    wider: Mapping[str, Kind]
    locals: int
    exits: int
    jumps: int
    ended: bool
    assumptions: Assumptions


def snapshot(frame: Frame) -> Saved:
    """Return the present state that the elaboration of a loop changes."""
    ctx = frame.ctx
    return Saved(
        dict(frame.names), dict(frame.variables), dict(frame.slots), tuple(ctx.out),
        dict(frame.wider), len(ctx.locals), len(frame.exits or ()), len(frame.jumps), ctx.ended,
        ctx.assumptions,
    )  # fmt: skip


def restore(frame: Frame, saved: Saved) -> None:
    """Undo the elaboration since the snapshot."""
    ctx = frame.ctx
    frame.names, frame.variables = dict(saved.names), dict(saved.variables)
    frame.slots, frame.wider = dict(saved.slots), dict(saved.wider)
    ctx.out[:] = saved.out
    dropped = frozenset(ctx.locals[saved.locals :])
    ctx.prologue[:] = [
        statement
        for statement in ctx.prologue
        if not (isinstance(statement, Alloc) and statement.node in dropped)
    ]
    del ctx.locals[saved.locals :]
    if frame.exits is not None:
        del frame.exits[saved.exits :]
    del frame.jumps[saved.jumps :]
    ctx.ended = saved.ended
    ctx.assumptions = saved.assumptions
