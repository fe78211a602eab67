"""One function being elaborated, outer or inlined: its bindings, letters and captured scope."""

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
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.node import Node
from ..source import surface as s
from ..source.function_source import MISSING
from ..values.builder import Context, Use
from ..values.values import Array, Value
from .captures.inputs import Inputs

LETTER = re.compile(r"[a-z][0-9_]*")
RESULT = "return"
"""The name under which a function's result is bound; no Python name can be it."""
EXIT = "left-at"
"""The name of the number of the `return` through which a loop was left, 0 where it was not."""
LIBRARY = "<library>"
"""The name of the source that functions of the library are parsed from."""


Place = tuple[int, ...]
"""The number of a reduction among those on its side of a choice, that of the choice before it."""


@dataclass
class Letters:
    """The index letters of one statement.

    `outer` are those on the left of the assignment, `right` those only on its right, `scopes` those
    bound by reductions around the expression being elaborated (innermost last; the flag says that
    the reduction names no letters, so that unknown ones become its own). A statement is elaborated
    twice: first to collect how letters are used, then with their ranges in `extents`; reductions
    are numbered in order, so that both times find the same symbols in `inner`. Each side of a
    choice has numbers of its own: where ranges decide a test, the second time skips a side.
    """

    outer: dict[str, Symbol] = field(default_factory=dict)
    right: dict[str, Symbol] = field(default_factory=dict)
    inner: dict[Place, dict[str, Symbol]] = field(default_factory=dict)
    scopes: list[tuple[dict[str, Symbol], bool]] = field(default_factory=list)
    side: Place = ()
    opened: dict[Place, int] = field(default_factory=dict)
    """How many reductions and choices have begun on each side of a choice."""
    implicit: dict[str, Span] = field(default_factory=dict)
    spans: dict[Symbol, Span] = field(default_factory=dict)
    on_left: bool = True
    extents: dict[Symbol, Affine] = field(default_factory=dict)
    open_pairs: list[tuple[Use, Use]] = field(default_factory=list)
    """Plain uses of one letter whose sizes only the run can tell equal."""

    def place(self) -> Place:
        """Return where a reduction or a choice stands that begins now."""
        number = self.opened[self.side] = self.opened.get(self.side, -1) + 1
        return (*self.side, number)


@dataclass(frozen=True, slots=True)
class Guard:
    """An `if` on index letters around statements: its test, negated for the `else` side.

    `mask` is the value of the test on entry where it reads arrays (over the guard's letters).
    """

    test: s.Expr
    negated: bool
    names: tuple[str, ...]
    mask: Array | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    """What expressions need of the modules above them: calls, also of a function without a call in
    the source, and comprehensions."""

    call: Callable[[Frame, s.Call], Value]
    apply: Callable[[Frame, FunctionType, tuple[Value, ...], Span], Value]
    comprehend: Callable[[Frame, s.Comprehension], Value]


@dataclass(slots=True, eq=False)
class Frame:
    """Bindings of one function. `lookup` finds captured objects; `path` is None when inlined ones
    are not inputs of the outermost function but constants."""

    ctx: Context
    inputs: Inputs
    function: s.Function
    names: dict[str, Value]
    locals: frozenset[str]
    lookup: Callable[[str], object]
    hooks: Hooks
    key: str = ""
    """Prefix of captured names in paths: empty in the outermost function."""
    variables: dict[str, Node] = field(default_factory=dict)
    parent: Frame | None = None
    caller: tuple[Frame, Span] | None = None
    """The bindings of the function that calls this one, and the place of the call."""
    letters: Letters | None = None
    guards: tuple[Guard, ...] = ()
    parameters: frozenset[str] = frozenset()
    in_loop: bool = False
    jumps: list[dict[str, Value]] = field(default_factory=list)
    """Names at each `break` and `continue` of the innermost loop that runs."""
    sizes: dict[str, Affine] = field(default_factory=dict)
    """Sizes that the parameters' annotations name: `x: f32[n, m]`. Known in declarations only."""
    slots: dict[str, Value] = field(default_factory=dict)
    """Names that live across rounds of a loop that runs: where each is kept."""
    unrolling: bool = False
    """Whether this is inside a loop that is being unrolled."""
    reserved: set[str] = field(default_factory=set)
    """Names that have no value before a loop that sets them whichever way it is left."""
    closure: Frame | None = None
    """The scope of the comprehension that is being written out: what its lambdas see later on."""
    exits: list[Value] | None = None
    """Inside a loop: what each of its returns gives back, in the order they were elaborated."""

    def choice(self) -> Place:
        """Return where a choice stands that is elaborated now; see `Letters`."""
        return () if self.letters is None else self.letters.place()

    @contextmanager
    def on_side(self, choice: Place, holds: bool) -> Iterator[None]:
        """Number what begins inside as on one side of a choice."""
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
"""Elaborates statements: what branches and loops do with their bodies."""


def assigned_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that statements assign, subscripted targets and loop targets included."""
    for statement in _every(body):
        yield from _set_names(statement, subscripted=True)


def rebound_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that statements bind anew: targets that are bare names, augmented too."""
    for statement in _every(body):
        yield from _set_names(statement, subscripted=False)


def plain_names(body: tuple[s.Statement, ...]) -> Iterator[str]:
    """Yield every name that some statement binds whatever it was before: not what is only written
    by `+=` and the like, or in parts."""
    for statement in _every(body):
        if not isinstance(statement, s.Augment):
            yield from _set_names(statement, subscripted=False)


def new_letter(ctx: Context, name: str) -> Symbol:
    """Return a new index letter of the source."""
    symbol = ctx.symbol(name)
    ctx.said |= {symbol, name}
    return symbol


def own_names(
    function: s.Function, parent: Frame | None, lookup: Callable[[str], object]
) -> frozenset[str]:
    """Return the names that are a function's own: not those whose elements alone it assigns, where
    they are something around it."""
    names = set(rebound_names(function.body))
    for name in set(assigned_names(function.body)) - names:
        owner = parent
        while owner is not None and name not in owner.names and name not in owner.locals:
            owner = owner.parent
        if owner is None and lookup(name) is MISSING:
            names.add(name)
    return frozenset(names)


def _every(body: tuple[s.Statement, ...]) -> Iterator[s.Statement]:
    """Yield statements and those inside them, in order."""
    for statement in body:
        yield statement
        for block in _blocks(statement):
            yield from _every(block)


def _set_names(statement: s.Statement, subscripted: bool) -> Iterator[str]:
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
            own = {param.name for param in params}
            yield from (name for name in names_in(body) if name.id not in own)
        case s.Comprehension(element, target, iterable, tests):
            own = set(target_names(target))
            inner = [name for part in (element, *tests) for name in names_in(part)]
            yield from names_in(iterable)
            yield from (name for name in inner if name.id not in own)
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
        found = _first_use(statement, name)
        if found != "unused":
            return found
    return "unused"


FirstUse = Callable[[tuple[s.Statement, ...], str], str]
"""What says how statements use a name first."""


def _first_round(body: tuple[s.Statement, ...], name: str) -> str:
    """Return `read` where a loop's body reads the name first; it may run no round at all."""
    return "read" if first_use(body, name) == "read" else "unused"


def next_use(
    function: s.Function, loop: s.For | s.While, name: str, first: FirstUse | None = None
) -> str:
    """Return how a name is used first after a loop of a function, as `first` or `first_use` does.

    Empty where the loop is not in it. Two loops of one position are the first one.
    """
    path = _paths(function).get(_place(loop))
    if path is None:
        return ""
    use = "unused"
    for block, at in reversed(path):  # from the innermost block on
        around = block[at]
        if around is not path[-1][0][path[-1][1]] and isinstance(around, s.For | s.While):
            found = _first_use(around, name) if first is None else first((around,), name)
            use = found if use == "unused" else use
            use = "unused" if use == "set" else use  # a jump may come before
        if use == "unused":
            rest = partial(_use_from, function, block, at + 1)
            use = rest(name) if first is None else first(block[at + 1 :], name)
    return use


Path = tuple[tuple[tuple[s.Statement, ...], int], ...]
"""The blocks around a statement, each with the statement's index, from the outermost on."""


def _paths(function: s.Function) -> Mapping[tuple[int, int], Path]:
    """Return the path to each loop of a function, by the loop's position."""
    try:
        return function.paths
    except AttributeError:
        found: dict[tuple[int, int], Path] = {}
        _add_paths(function.body, (), found)
        object.__setattr__(function, "paths", found)
        return found


def _add_paths(
    body: tuple[s.Statement, ...], outer: Path, found: dict[tuple[int, int], Path]
) -> None:
    for at, statement in enumerate(body):
        path = (*outer, (body, at))
        if isinstance(statement, s.For | s.While):
            found.setdefault(_place(statement), path)
        for block in _blocks(statement):
            _add_paths(block, path, found)


def _use_from(function: s.Function, block: tuple[s.Statement, ...], start: int, name: str) -> str:
    """Return the first use of a name among a block's statements from one on."""
    found = _uses(function, block).get(name)
    if found is None:
        return "unused"
    positions, uses = found
    if not uses:
        after = "unused"
        for at in reversed(positions):
            use = _first_use(block[at], name)
            after = after if use == "unused" else use
            uses.append(after)
        uses.reverse()
    at = bisect_left(positions, start)
    return uses[at] if at < len(uses) else "unused"


def _uses(
    function: s.Function, block: tuple[s.Statement, ...]
) -> Mapping[str, tuple[list[int], list[str]]]:
    """Return which statements of a block of a function mention each name.

    Beside them there is room for how the name is used first from each of these on.
    """
    try:
        known = function.uses
    except AttributeError:
        known = dict[int, Mapping[str, tuple[list[int], list[str]]]]()
        object.__setattr__(function, "uses", known)
    if id(block) not in known:
        found = defaultdict[str, tuple[list[int], list[str]]](lambda: ([], []))
        for at, statement in enumerate(block):
            for name in _mentioned(statement) if isinstance(statement, s.MemoizedNode) else ():
                found[name][0].append(at)
        known[id(block)] = found
    return known[id(block)]


def _place(statement: s.For | s.While) -> tuple[int, int]:
    return statement.span.line, statement.span.column


def _blocks(statement: s.Statement) -> tuple[tuple[s.Statement, ...], ...]:
    match statement:
        case s.For(_, _, inner) | s.While(_, inner) | s.Comment(_, inner):
            return (inner,)
        case s.If(_, then, other):
            return then, other
        case _:
            return ()


def _mentioned(statement: s.MemoizedNode) -> frozenset[str]:
    """Return all names in a statement, as targets and as what is read."""
    try:
        return statement.mentioned
    except AttributeError:
        found = frozenset(n.id for names in (names_in, loads_in) for n in names(statement))
        object.__setattr__(statement, "mentioned", found)
        return found


def _first_use(statement: s.Statement, name: str) -> str:
    if not isinstance(statement, s.MemoizedNode) or name not in _mentioned(statement):
        return "unused"
    try:
        known = statement.first
    except AttributeError:
        known = dict[str, str]()
        object.__setattr__(statement, "first", known)
    if name not in known:
        known[name] = _first_of_parts(statement, name)
    return known[name]


def _first_of_parts(statement: s.MemoizedNode, name: str) -> str:
    match statement:
        case s.If(test, then, other):
            if any(n.id == name for n in names_in(test)):
                return "read"
            sides = (first_use(then, name), first_use(other, name))
            if "read" in sides:
                return "read"
            return "set" if sides == ("set", "set") else "unused"
        case s.Comment(_, inner):
            return first_use(inner, name)
        case s.For(target, iterable, inner):
            if any(n.id == name for n in names_in(iterable)):
                return "read"
            return "unused" if name in target_names(target) else _first_round(inner, name)
        case s.While(test, inner):
            read = any(n.id == name for n in names_in(test))
            return "read" if read else _first_round(inner, name)
        case s.Assign(targets, _):
            if any(n.id == name for n in loads_in(statement)):
                return "read"
            plain = {x for target in targets for x in target_names(target, subscripted=False)}
            return "set" if name in plain else "unused"
        case _:
            return "read" if any(n.id == name for n in names_in(statement)) else "unused"


def sources(frame: Frame, node: Node) -> set[Node]:
    """Return the nodes whose array a node has, or has on some paths, itself one of them."""
    found, new = set[Node](), {node}
    while new:
        found |= new
        bound = (bases for (one, _), bases in frame.ctx.bindings.items() if one in new)
        new = {base for bases in bound for base in bases} - found
    return found
