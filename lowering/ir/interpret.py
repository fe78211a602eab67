"""Interpreter of both IRs over NumPy scalars: the reference semantics and the oracle of the tests.

It is written from the docstrings of `assignments` and `loops` and shares nothing with the lowering.
A program is compiled to a Python function, statement by statement, which then runs point by point;
see `evaluate` for its names. An out-of-bounds access is a bug of the compiler and raises
`CdInternalError`, so a run of the interpreter is also a check of memory safety.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np

from . import assignments, loops
from .assignments import Access, Assign, Pair, Parameter, Procedure
from .evaluate import (
    MAX_STATEMENT_DEPTH,
    Array,
    Lines,
    PythonWriter,
    State,
    compile_index,
    invalid_program_error,
    symbol_key,
    with_suite,
)
from .expressions import Apply, Domain, Expr, Read
from .instructions import AwaitProducts, CopyVector, MatMul, StoreVector, vector_element
from .loops import AnyStatement, Program
from .node import Node
from .ops import OPS, Op, neutral_of
from .scalars import better_function, scalar_function


def run_procedure(
    procedure: Procedure, arrays: Sequence[Array | None], show: Callable[[str], None]
) -> tuple[Array, ...]:
    """Run IR 1 on arrays for the parameters, then the results, and return the results' arrays.

    All are written in place. A result whose shape is known at its `Alloc` only may be given as
    None. Raises the error of a failing `Check`, and CdInternalError where the procedure is
    malformed.
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
        _compile_body(body)(state)
    for parameter, array in zip(parameters, given, strict=False):
        if parameter.returns:
            _hand_over(state, (parameter.node,), (array,))
    return _hand_over(state, results, given[len(parameters) :])


def _bind(state: State, node: Node, array: Array) -> None:
    """Bind the array to the node; extents that are one unbound symbol are read off it."""
    if array.dtype != node.dtype.numpy or array.ndim != node.rank:
        raise invalid_program_error(
            f"{node} is {node.dtype} of rank {node.rank}, given {array.dtype}"
        )
    for extent, size in zip(node.shape, array.shape, strict=True):
        if extent.symbol is not None:
            state.numbers.setdefault(symbol_key(extent.symbol), size)
        if (compile_index(extent)(state) if extent.terms else extent.offset) != size:
            raise invalid_program_error(f"{node} has shape {node.shape}, given {array.shape}")
    state.arrays[node.id] = array


def _hand_over(
    state: State, results: tuple[Node, ...], given: Sequence[Array | None]
) -> tuple[Array, ...]:
    """Return the results; where `Permute` moved one away from the caller's array, copy it there."""
    final = [state.array(node) for node in results]
    copied = [
        current.copy() if current is not given_array else current
        for current, given_array in zip(final, given, strict=True)
    ]
    out: list[Array] = []
    for current, given_array in zip(copied, given, strict=True):
        if (
            given_array is not None
            and current is not given_array
            and given_array.shape == current.shape
        ):
            given_array[...] = current
            out.append(given_array)
        else:
            out.append(current)
    return tuple(out)


def _compile_body(body: tuple[AnyStatement, ...]) -> Callable[[State], None]:
    """Return the function that runs the statements, and stores the arrays in the state."""
    writer = PythonWriter()
    lines = _body(writer, body)
    arrays = [f"{writer.refer(node)}: {name}" for node, name in writer.arrays.items()]
    return writer.function([*lines, f"leave(state, {{{', '.join(arrays)}}})"])


def _body(
    writer: PythonWriter, statements: tuple[AnyStatement, ...], depth: int = 0, loop: bool = False
) -> Lines:
    """Return the Python of statements at this depth in one function, `loop`: inside a loop of
    it."""
    return [line for statement in statements for line in _statement(writer, statement, depth, loop)]


def _statement(writer: PythonWriter, statement: AnyStatement, depth: int, loop: bool) -> Lines:
    match statement:
        case assignments.For() | loops.For() | assignments.While() | loops.While():
            if depth == MAX_STATEMENT_DEPTH:
                return [writer.part(_statement(writer, statement, 0, False))]
            return _loop(writer, statement, depth)
        case assignments.Branch(test, then, orelse) | loops.If(test, then, orelse):
            if depth == MAX_STATEMENT_DEPTH:
                return _outlined_branch(writer, statement, loop)
            sides = (_body(writer, side, depth + 1, loop) for side in (then, orelse))
            return _branch(writer.value(test), *sides)
        case assignments.Block(_, body) | loops.LastBlock(body):
            return _body(writer, body, depth, loop)
        case Assign():
            return _assign(writer, statement)
        case assignments.Let(symbol, value):
            return [f"{writer.symbol(symbol)} = int({writer.value(value)})"]
        case assignments.Alloc(node):
            return _alloc(writer, node)
        case assignments.Permute(nodes, sources):
            return _permute(writer, nodes, sources)
        case assignments.Check():
            return writer.points(statement.over, _check(writer, statement))
        case loops.Check():
            return _check(writer, statement)
        case assignments.Print(items):
            values = "".join(f"{writer.value(p)}, " for p in items if not isinstance(p, str))
            return [f"state.show({writer.refer(statement.text)}(({values})))"]
        case assignments.Break():
            return ["break" if loop else "return 'break'"]
        case assignments.Continue():
            return ["continue" if loop else "return 'continue'"]
        case loops.Store(access, value):
            return _update(writer, access, None, value, None)
        case loops.Update(access, op, value, pair):
            return _update(writer, access, op, value, pair)
        case loops.Fill(node, value):
            return [f"{writer.array(node)}[...] = {writer.value(value)}"]
        case CopyVector() | StoreVector():
            return _vector(writer, statement)
        case MatMul():
            return _matmul(writer, statement)
        case loops.Comment() | loops.Barrier() | AwaitProducts():
            return []
        case _:
            assert_never(statement)


def _loop(
    writer: PythonWriter,
    loop: assignments.For | assignments.While | loops.For | loops.While,
    depth: int,
) -> Lines:
    body = _body(writer, loop.body, depth + 1, True)
    if isinstance(loop, assignments.For | loops.For):
        range_args = ", ".join([*map(writer.number, (loop.lo, loop.hi)), writer.refer(loop.step)])
        return with_suite(f"for {writer.symbol(loop.symbol)} in range({range_args}):", body)
    before = _body(writer, loop.prelude, depth + 1, True)
    leave = with_suite(f"if not {writer.value(loop.test)}:", ["break"])
    return with_suite("while True:", [*before, *leave, *body])


def _branch(test: str, then: Lines, orelse: Lines) -> Lines:
    """Return an `if` statement; a lone `if` in its `else` becomes `elif`, without more nesting."""
    if orelse and orelse[0].startswith("if ") and all(line[0] == " " for line in orelse[1:]):
        return [*with_suite(f"if {test}:", then), f"el{orelse[0]}", *orelse[1:]]
    return [*with_suite(f"if {test}:", then), *(with_suite("else:", orelse) if orelse else ())]


def _outlined_branch(writer: PythonWriter, branch: AnyStatement, loop: bool) -> Lines:
    """Return the call of a function for a branch, which returns how a loop is left in it."""
    call = writer.part(_statement(writer, branch, 0, False))
    return [
        f"left = {call}",
        *with_suite("if left == 'break':", ["break" if loop else "return left"]),
        *with_suite("if left == 'continue':", ["continue" if loop else "return left"]),
    ]


def _update(
    writer: PythonWriter, access: Access, op: Op | None, value: Expr, pair: Pair | None
) -> Lines:
    """Return the lines of one accumulation."""
    array, (lines, cell) = writer.array(access.node), _cell(writer, access)
    new = writer.value(value)
    if op is None:
        return [*lines, f"{array}[{cell}] = {new}"]
    if pair is None:
        meaning = writer.refer(scalar_function(op, access.node.dtype))
        return [*lines, f"{array}[{cell}] = {meaning}({array}[{cell}], {new})"]
    setup, at = _cell(writer, pair.access)
    here = f"value, here = {new}, {writer.number(pair.position)}"
    positions = writer.array(pair.access.node)
    return [*lines, *setup, here, *_keep_better(writer, op, (array, cell), (positions, at))]


def _vector(writer: PythonWriter, statement: CopyVector | StoreVector) -> Lines:
    """Return the lines that store the elements of a vector one by one."""
    if isinstance(statement, StoreVector):
        access, axis, values = statement.access, statement.axis, statement.values
    else:
        access, (axis, other) = statement.target, statement.axes
        first = Access(statement.source.node, statement.source.index)
        sources = (vector_element(first, other, at) for at in range(statement.count))
        values = tuple(Read(one.node, one.index) for one in sources)
    stores = (
        _update(writer, vector_element(access, axis, at), None, value, None)
        for at, value in enumerate(values)
    )
    return [line for lines in stores for line in lines]


def _matmul(writer: PythonWriter, matmul: MatMul) -> Lines:
    """Return the loops that add products, one term after another, each by an FMA."""
    total, (rows, columns, terms) = matmul.accumulator, matmul.over
    old = Read(total.node, total.index)
    new = Apply(OPS["fma"], (matmul.first, matmul.second, old), total.node.dtype)
    return writer.points(Domain((terms, rows, columns)), _update(writer, total, None, new, None))


def _keep_better(
    writer: PythonWriter, op: Op, best: tuple[str, str], position: tuple[str, str]
) -> Lines:
    """Return the lines that keep `value` and `here` where they are better than the best so far."""
    targets = ", ".join(f"{array}[{cell}]" for array, cell in (best, position))
    return [f"{targets} = {writer.refer(better_function(op))}({targets}, value, here)"]


def _assign(writer: PythonWriter, assign: Assign) -> Lines:
    """Evaluate everything at every point, then write (snapshot semantics).

    The list of writes has cells, values, whether it is the first, and for pairs the position.
    """
    array, (lines, cell) = writer.array(assign.target.node), _tuple(writer, assign.target)
    value, op, pair = writer.value(assign.value), assign.op, assign.pair
    start: Lines = []
    if op is not None and pair is not None:
        positions, (setup, at) = writer.array(pair.access.node), _tuple(writer, pair.access)
        if assign.initialize:
            start = [*setup, f"later.append((True, None, None, {at}, -1))"]
        here = writer.number(pair.position)
        each = [*lines, *setup, f"later.append((False, {cell}, {value}, {at}, {here}))"]
        better = _keep_better(writer, op, (array, "cell"), (positions, "at"))
        writes = with_suite("for first, cell, value, at, here in later:", [
            *with_suite("if first:", [f"{positions}[at] = here"]), *with_suite("else:", better)
        ])  # fmt: skip
    else:
        new = "value"
        if op is not None:
            dtype = assign.target.node.dtype
            if assign.initialize:
                neutral = writer.refer(dtype.numpy.type(neutral_of(op, dtype.kind, dtype.bits)))
                start = [*lines, f"later.append((True, {cell}, {neutral}))"]
            meaning = writer.refer(scalar_function(op, dtype))
            new = f"value if first else {meaning}({array}[cell], value)"
        each = [*lines, f"later.append((False, {cell}, {value}))"]
        writes = with_suite("for first, cell, value in later:", [f"{array}[cell] = {new}"])
    inner = writer.points(assign.reduced, each)
    over = writer.points(assign.free, [*start, *inner])
    return ["later = []", *over, *writes]


def _cell(writer: PythonWriter, access: Access) -> tuple[Lines, str]:
    return writer.cell(access.node, access.index)


def _tuple(writer: PythonWriter, access: Access) -> tuple[Lines, str]:
    lines, cell = _cell(writer, access)
    return lines, f"({cell},)" if access.index else cell


def _alloc(writer: PythonWriter, node: Node) -> Lines:
    sizes = "".join(f"max(0, {writer.number(extent)}), " for extent in node.shape)
    zeros = f"{writer.array(node)} = zeros(({sizes}), {writer.refer(node.dtype.numpy)})"
    return [zeros, *writer.size_bindings(node)]


def _permute(writer: PythonWriter, nodes: tuple[Node, ...], sources: tuple[Node, ...]) -> Lines:
    moved = " = ".join(", ".join(map(writer.array, some)) for some in (nodes, sources))
    return [moved, *(line for node in nodes for line in writer.size_bindings(node))]


def _check(writer: PythonWriter, check: assignments.Check | loops.Check) -> Lines:
    values = "".join(f"{writer.value(value)}.item(), " for value in check.values)
    fault, span = writer.refer(check.fault), writer.refer(check.span)
    return with_suite(
        f"if not {writer.value(check.test)}:", [f"raise_fault({fault}, ({values}), {span})"]
    )
