"""The meaning of both IRs in NumPy scalars: slow, obvious, and the oracle of every test.

It is written from the texts of `assignments` and `loops` and shares nothing with the lowering.
Every statement and expression is turned once into a Python function of the `State`; those
functions then run point by point. An access outside its array is our bug and raises
`CdInternalError`, so a run of the interpreter is also a check of memory safety.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, assert_never

import numpy as np

from . import assignments, loops
from .assignments import Access, Assign, Pair, Parameter, Procedure
from .evaluate import (
    Array,
    Eval,
    Place,
    State,
    beats,
    broken,
    key,
    meaning_of,
    number_of,
    place_of,
    points_of,
    value_of,
)
from .expressions import Domain
from .faults import raise_fault
from .indexing import Symbol
from .loops import AnyStatement, Program
from .node import Node
from .ops import Op, neutral_of

Signal = Literal["break", "continue"] | None
Run = Callable[[State], Signal]


def run_procedure(
    procedure: Procedure, arrays: Sequence[Array | None], show: Callable[[str], None]
) -> tuple[Array, ...]:
    """Run IR 1 on arrays for the parameters, then the results, and return the results' arrays.

    All are written in place. A result of a shape that only `Alloc` knows may be given as None.
    Raises what a failing `Check` names, and CdInternalError where the procedure is malformed.
    """
    p = procedure
    return _run(p.parameters, p.locals, p.results, p.body, arrays, show)


def run_program(
    program: Program, arrays: Sequence[Array | None], show: Callable[[str], None]
) -> tuple[Array, ...]:
    """Run IR 2 on arrays for the parameters, then the results; otherwise as `run_procedure`."""
    body = tuple(statement for kernel in program.kernels for statement in kernel.body)
    return _run(program.parameters, program.locals, program.results, body, arrays, show)


def _run(
    parameters: tuple[Parameter, ...],
    locals_: tuple[Node, ...],
    results: tuple[Node, ...],
    body: tuple[AnyStatement, ...],
    given: Sequence[Array | None],
    show: Callable[[str], None],
) -> tuple[Array, ...]:
    state = State(show)
    nodes = tuple(parameter.node for parameter in parameters) + results
    for node, array in zip(nodes, given, strict=True):
        if array is not None:
            _bind(state, node, array)
    for node in results:
        if node.id in state.arrays:
            state.arrays[node.id][...] = 0
    for node in locals_ + results:
        if node.static_shape is not None and node.id not in state.arrays:
            state.arrays[node.id] = np.zeros(node.static_shape, node.dtype.numpy)
    with np.errstate(all="ignore"):
        _body(body)(state)
    for parameter, array in zip(parameters, given, strict=False):
        if parameter.returns:
            _hand_over(state, (parameter.node,), (array,))
    return _hand_over(state, results, given[len(parameters) :])


def _bind(state: State, node: Node, array: Array) -> None:
    """Put the array behind the node; extents that are one unbound symbol are read off it."""
    if array.dtype != node.dtype.numpy or array.ndim != node.rank:
        raise broken(f"{node} is {node.dtype} of rank {node.rank}, given {array.dtype}")
    for extent, size in zip(node.shape, array.shape, strict=True):
        if extent.symbol is not None:
            state.numbers.setdefault(key(extent.symbol), size)
        if number_of(extent)(state) != size:
            raise broken(f"{node} has shape {node.shape}, given {array.shape}")
    state.arrays[node.id] = array


def _hand_over(
    state: State, results: tuple[Node, ...], given: Sequence[Array | None]
) -> tuple[Array, ...]:
    """Return the results; where `Permute` moved one away from the caller's array, copy it there."""
    final = [state.array(node) for node in results]
    moved = [now.copy() if now is not mine else now for now, mine in zip(final, given, strict=True)]
    out: list[Array] = []
    for now, mine in zip(moved, given, strict=True):
        if mine is not None and now is not mine and mine.shape == now.shape:
            mine[...] = now
            out.append(mine)
        else:
            out.append(now)
    return tuple(out)


def _body(statements: tuple[AnyStatement, ...]) -> Run:
    runs = [_statement(statement) for statement in statements]
    if len(runs) == 1:
        return runs[0]

    def run(state: State) -> Signal:
        for one in runs:
            signal = one(state)
            if signal is not None:
                return signal
        return None

    return run


def _statement(statement: AnyStatement) -> Run:
    match statement:
        case Assign():
            return _assign(statement)
        case assignments.For() | loops.For():
            return _for(statement)
        case assignments.While() | loops.While():
            return _while(_body(statement.prelude), value_of(statement.test), _body(statement.body))
        case assignments.Branch(test, then, other) | loops.If(test, then, other):
            return _branch(value_of(test), _body(then), _body(other))
        case assignments.Block(_, body):
            return _body(body)
        case assignments.Let(symbol, value):
            return _let(symbol, value_of(value))
        case assignments.Alloc(node):
            return _alloc(node)
        case assignments.Permute(nodes, sources):
            return _permute(nodes, sources)
        case assignments.Check():
            return _check(statement, points_of(statement.over))
        case loops.Check():
            return _check(statement, points_of(Domain()))
        case assignments.Print():
            return _print(statement)
        case assignments.Break():
            return lambda state: "break"
        case assignments.Continue():
            return lambda state: "continue"
        case loops.Store(access, value):
            return _store(place_of(access), value_of(value))
        case loops.Update(access, op, value, pair):
            return _update(access, op, value_of(value), pair)
        case loops.Fill(node, value):
            return _fill(node, value_of(value))
        case loops.Comment() | loops.Barrier():
            return lambda state: None
        case _:
            assert_never(statement)


def _update(access: Access, op: Op | None, value: Eval, pair: Pair | None) -> Run:
    """What one point does at once; see `_contribution`."""
    if op is None:
        return _store(place_of(access), value)
    if pair is not None:
        contribution = _contribution(access, op, value, pair)

        def run(state: State) -> Signal:
            contribution(state)()
            return None

        return run
    place, meaning = place_of(access), meaning_of(op, access.node.dtype)

    def accumulate(state: State) -> Signal:
        array, cell = place(state)
        array[cell] = meaning(array[cell], value(state))
        return None

    return accumulate


def _assign(assign: Assign) -> Run:
    """Evaluate everything at every point, then write: so all of it reads the state before."""
    free, reduced = points_of(assign.free), points_of(assign.reduced)
    start = _start(assign)
    contribute = _contribution(assign.target, assign.op, value_of(assign.value), assign.pair)

    def run(state: State) -> Signal:
        writes: list[Callable[[], None]] = []
        for _ in free(state):
            if assign.initialize:
                writes.append(start(state))
            for _ in reduced(state):
                writes.append(contribute(state))
        for write in writes:
            write()
        return None

    return run


def _start(assign: Assign) -> Callable[[State], Callable[[], None]]:
    """The write that prepares a cell: the neutral element, or for a pair position -1 (nothing)."""
    if not assign.initialize or assign.op is None:
        return lambda state: lambda: None
    if assign.pair is not None:
        return _put(place_of(assign.pair.access), lambda state: np.int64(-1))
    dtype = assign.target.node.dtype
    neutral = dtype.numpy.type(neutral_of(assign.op, dtype.kind, dtype.bits))
    return _put(place_of(assign.target), lambda state: neutral)


def _put(place: Callable[[State], Place], value: Eval) -> Callable[[State], Callable[[], None]]:
    def at_point(state: State) -> Callable[[], None]:
        array, cell = place(state)
        new = value(state)

        def write() -> None:
            array[cell] = new

        return write

    return at_point


def _contribution(
    access: Access, op: Op | None, value: Eval, pair: Pair | None
) -> Callable[[State], Callable[[], None]]:
    """What one point does: evaluated when called with the state, done when the result is called."""
    place = place_of(access)
    if op is None:
        return _put(place, value)
    if pair is not None:
        return _pair_contribution(place, op, value, pair)
    meaning = meaning_of(op, access.node.dtype)

    def at_point(state: State) -> Callable[[], None]:
        array, cell = place(state)
        operand = value(state)

        def write() -> None:
            array[cell] = meaning(array[cell], operand)

        return write

    return at_point


def _pair_contribution(
    place: Callable[[State], Place], op: Op, value: Eval, pair: Pair
) -> Callable[[State], Callable[[], None]]:
    pair_place, position = place_of(pair.access), number_of(pair.position)

    def at_point(state: State) -> Callable[[], None]:
        array, cell = place(state)
        positions, position_cell = pair_place(state)
        candidate, here = value(state), position(state)

        def write() -> None:
            if positions[position_cell] < 0 or beats(op, candidate, array[cell]):
                array[cell] = candidate
                positions[position_cell] = here

        return write

    return at_point


def _for(loop: assignments.For | loops.For) -> Run:
    lo, hi, body = number_of(loop.lo), number_of(loop.hi), _body(loop.body)

    name, step = key(loop.symbol), loop.step

    def run(state: State) -> Signal:
        numbers = state.numbers
        for value in range(lo(state), hi(state), step):
            numbers[name] = value
            if body(state) == "break":
                break
        return None

    return run


def _while(prelude: Run, test: Eval, body: Run) -> Run:
    def run(state: State) -> Signal:
        while prelude(state) != "break" and test(state):
            if body(state) == "break":
                break
        return None

    return run


def _branch(test: Eval, then: Run, other: Run) -> Run:
    return lambda state: then(state) if test(state) else other(state)


def _let(symbol: Symbol, value: Eval) -> Run:
    name = key(symbol)

    def run(state: State) -> Signal:
        state.numbers[name] = int(value(state))
        return None

    return run


def _alloc(node: Node) -> Run:
    shape = [number_of(extent) for extent in node.shape]

    def run(state: State) -> Signal:
        sizes = [max(0, extent(state)) for extent in shape]
        state.arrays[node.id] = np.zeros(sizes, node.dtype.numpy)
        return None

    return run


def _permute(nodes: tuple[Node, ...], sources: tuple[Node, ...]) -> Run:
    def run(state: State) -> Signal:
        arrays = [state.array(source) for source in sources]
        state.arrays.update(zip((node.id for node in nodes), arrays, strict=True))
        return None

    return run


def _check(
    check: assignments.Check | loops.Check, points: Callable[[State], Iterable[None]]
) -> Run:
    test, values = value_of(check.test), [value_of(value) for value in check.values]

    def run(state: State) -> Signal:
        for _ in points(state):
            if not test(state):
                raise_fault(check.fault, [v(state).item() for v in values], check.span)
        return None

    return run


def _print(statement: assignments.Print) -> Run:
    values = [value_of(p) for p in statement.pieces if not isinstance(p, str)]

    def run(state: State) -> Signal:
        state.show(statement.text(value(state) for value in values))
        return None

    return run


def _store(place: Callable[[State], Place], value: Eval) -> Run:
    def run(state: State) -> Signal:
        array, cell = place(state)
        array[cell] = value(state)
        return None

    return run


def _fill(node: Node, value: Eval) -> Run:
    def run(state: State) -> Signal:
        state.array(node)[...] = value(state)
        return None

    return run
