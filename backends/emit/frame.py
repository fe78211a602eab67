"""What stands around the statements of generated C: names, storage, the way out, the entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...lowering.ir.assignments import Let
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.loops import For, If, Program, Stmt, While
from ...lowering.ir.node import Node
from ...lowering.pipeline import Placement, exchanged
from . import prelude
from .c_expression import Scope
from .dialect import Dialect
from .names import Names


@dataclass(frozen=True, slots=True)
class Frame:
    """The names and storage of one routine; the statements go between `opening` and `closing`."""

    dialect: Dialect
    program: Program
    scope: Scope
    names: Names
    function: str
    """The name of the body function."""
    exchanged: frozenset[int]
    """Nodes whose arrays move: pointers that may alias and change."""
    rooms: dict[int, str]
    """The variable with the bytes behind each node that grows."""
    blocks: dict[int, str]
    """The block that takes a result of run-time shape."""
    homes: dict[int, str]
    """The caller's array of a result whose array moves."""
    heap: tuple[Node, ...]
    stack: tuple[Node, ...]
    registers: tuple[Node, ...]
    sizes: tuple[tuple[Symbol, int, int], ...]
    """Run-time sizes: symbol, parameter and axis."""

    @property
    def frees(self) -> bool:
        """Whether there is something to free on the way out."""
        return bool(self.heap or self.rooms or self.chains)

    @property
    def chains(self) -> bool:
        """Whether storage of run-time size moves, so that only a chain knows what to free."""
        return any(_is_runtime(node) and node.id in self.exchanged for node in self._own)

    @property
    def _own(self) -> tuple[Node, ...]:
        return (*self.program.locals, *self.program.results)

    @property
    def arguments(self) -> tuple[Node, ...]:
        """The nodes behind `args`, in order."""
        return (*(p.node for p in self.program.parameters), *self.program.results)

    def ctype(self, node: Node) -> str:
        """Return the C type of an element of the node."""
        return self.dialect.types[node.dtype]

    def name(self, node: Node) -> str:
        """Return the name of the node in the text."""
        return self.scope.nodes[node.id]

    def opening(self) -> Iterator[str]:
        """Yield the declarations that come before the first statement."""
        for node in self.registers:
            zero = "{0}" if node.dtype.kind == "c" else self.dialect.literal(0, node.dtype)
            yield f"{self.ctype(node)} {self.name(node)} = {zero};"
        for node in self.stack:
            yield from self._on_stack(node)
        for node in self.heap:
            yield from self._on_heap(node)
        for node in self._own:
            if _is_runtime(node):
                yield f"{self.ctype(node)} *{self.name(node)} = NULL;"
        for name in self.rooms.values():
            yield f"int64_t {name} = 0;"
        for node in self.program.results:
            if node.id in self.homes:
                yield f"{self.ctype(node)} *const {self.homes[node.id]} = {self.name(node)};"
        if self.chains:
            yield "void *chain = NULL;"
        if self.frees:
            yield "int status = 0;"
        if self.heap:
            missing = " || !".join(self._kept(node) for node in self.heap)
            yield from self._missing(missing, str(sum(_bytes(node) for node in self.heap)))

    def closing(self) -> Iterator[str]:
        """Yield what comes after the last statement: results brought home, memory freed."""
        yield from self._settled()
        for node in self.program.results:
            if node.id in self.blocks:
                yield from self._handed(node)
        if not self.frees:
            yield "return 0;"
            return
        yield "done:"
        for node in self.heap:
            yield f"free({self._kept(node)});"
        for node in self._own:
            if node.id in self.rooms:
                yield f"free({self.name(node)});"
        if self.chains:
            yield "unchained(chain);"
        yield "return status;"

    def head(self, faults: bool, shows: bool) -> str:
        """Return the head of the body function: every array by its name, and what it reports to."""
        parameters = [*self._parameters()]
        if faults:
            parameters.append("int64_t *fault")
        if shows:
            parameters.append("void (*show)(int64_t, const int64_t *)")
        parameters += [f"const int64_t {self.scope.symbols[symbol]}" for symbol, _, _ in self.sizes]
        return f"{self.dialect.function} int {self.function}({', '.join(parameters) or 'void'})"

    def entry(self, name: str, faults: bool, shows: bool) -> tuple[str, str]:
        """Return the head of the entry and its only statement, the call of the body function."""
        count = len(self.arguments)
        values = [
            f"*(const {self.ctype(node)} *)args[{k}]" if node.id in self.scope.by_value
            else f"args[{k}]" for k, node in enumerate(self.arguments)
        ]  # fmt: skip
        sizes = [f"((const int64_t *)args[{count + 2}])[{k}]" for k in range(len(self.sizes))]
        values += [f"args[{count}]"] * faults + [f"args[{count + 1}]"] * shows + sizes
        return self.dialect.entry.format(name), f"return {self.function}({', '.join(values)});"

    def _parameters(self) -> Iterator[str]:
        written = {p.node.id: p.written for p in self.program.parameters}
        for node in self.arguments:
            name, ctype = self.name(node), self.ctype(node)
            const = "" if written.get(node.id, True) or node.id in self.exchanged else "const "
            if node.id in self.blocks:
                yield f"int64_t *{self.blocks[node.id]}"
            elif node.id in self.scope.by_value:
                yield f"const {ctype} {name}"
            elif node.id in self.exchanged:
                yield f"{ctype} *{name}"
            else:
                yield f"{const}{ctype} *{self.dialect.restrict} {name}"

    def _kept(self, node: Node) -> str:
        """Return the variable that always points to a heap array, also when its node moves."""
        return self.homes.get(node.id, self.name(node))

    def _on_stack(self, node: Node) -> Iterator[str]:
        count = max(1, _bytes(node) // node.dtype.itemsize)
        name = self._kept(node)
        yield f"{self.ctype(node)} {name}[{count}] = {{0}};"
        if node.id in self.homes:
            yield f"{self.ctype(node)} *{self.name(node)} = {name};"

    def _on_heap(self, node: Node) -> Iterator[str]:
        name = self._kept(node)
        qualifier = "const" if node.id in self.homes else self.dialect.restrict
        yield f"{self.ctype(node)} *{qualifier} {name} = zeroed({_bytes(node)});"
        if node.id in self.homes:
            yield f"{self.ctype(node)} *{self.name(node)} = {name};"

    def _settled(self) -> Iterator[str]:
        """Yield the copies that bring moved results home; several may stand in a ring."""
        moved = [node for node in self.program.results if node.id in self.homes]
        if len(moved) == 1:
            (node,) = moved
            home = self.homes[node.id]
            yield f"if ({self.name(node)} != {home}) {{"
            yield f"    memcpy({home}, {self.name(node)}, {_bytes(node)});"
            yield "}"
        elif moved:
            total = sum(_bytes(node) for node in moved)
            yield f"char *const moved = zeroed({total});"
            yield from self._missing("moved", str(total))
            yield from self._copies(moved)
            yield "free(moved);"

    def _copies(self, moved: list[Node]) -> Iterator[str]:
        for back in (False, True):
            at = 0
            for node in moved:
                buffer = "moved" if not at else f"moved + {at}"
                pair = (self.homes[node.id], buffer) if back else (buffer, self.name(node))
                yield f"memcpy({pair[0]}, {pair[1]}, {_bytes(node)});"
                at += _bytes(node)

    def _missing(self, test: str, total: str) -> Iterator[str]:
        """Yield the way out where memory was refused."""
        yield f"if (!{test}) {{"
        yield f"    fault[0] = {total};"
        yield from ("    status = 2;", "    goto done;") if self.frees else ("    return 2;",)
        yield "}"

    def _handed(self, node: Node) -> Iterator[str]:
        """Yield how a result of run-time shape reaches the caller, who frees it."""
        name, block = self.name(node), self.blocks[node.id]
        if node.id not in self.exchanged:
            yield f"{block}[0] = (int64_t)(intptr_t){name};"
            yield f"{name} = NULL;"
            return
        total = str(node.dtype.itemsize)
        for axis in range(1, node.rank + 1):
            total = f"bytes_of({total}, {block}[{axis}])"
        copy = self.names.fresh(f"{name}_copy")
        yield f"void *const {copy} = zeroed({total});"
        yield from self._missing(copy, total)
        yield f"if ({name}) memcpy({copy}, {name}, (size_t){total});"
        yield f"{block}[0] = (int64_t)(intptr_t){copy};"


def frame_of(program: Program, placement: Placement, dialect: Dialect) -> Frame:
    """Return the frame of a program: every name chosen, every local given its storage."""
    names = Names(prelude.is_piece)
    function = names.fresh(f"{program.name}_body")
    moving = exchanged(program)
    parameters = tuple(p.node for p in program.parameters)
    nodes = (*parameters, *program.results, *program.locals)
    by_id = {node.id: names.fresh(node.label) for node in nodes}
    registers = tuple(n for n in program.locals if placement[n].where == "register")
    scratch = [n for n in program.locals if placement[n].where == "scratch"]
    values = [p.node for p in program.parameters if p.node.rank == 0 and not p.written]
    by_value = frozenset(n.id for n in (*registers, *values) if n.id not in moving)
    scope = Scope(dialect, by_id, by_value)
    sizes = _sizes(program)
    for symbol, _, _ in sizes:
        scope.symbols[symbol] = names.fresh(symbol.name)
    growing = [n for n in (*program.locals, *program.results) if _is_runtime(n)]
    return Frame(
        dialect, program, scope, names, function, moving,
        rooms={n.id: names.fresh(f"{by_id[n.id]}_room") for n in growing if n.id not in moving},
        blocks={n.id: names.fresh(f"{by_id[n.id]}_out") for n in program.results if n in growing},
        homes={
            n.id: names.fresh(f"{by_id[n.id]}_home")
            for n in (*scratch, *program.results) if n.id in moving and not _is_runtime(n)
        },
        heap=tuple(n for n in scratch if _bytes(n) > dialect.stack_bytes),
        stack=tuple(n for n in scratch if _bytes(n) <= dialect.stack_bytes),
        registers=registers,
        sizes=sizes,
    )  # fmt: skip


def _sizes(program: Program) -> tuple[tuple[Symbol, int, int], ...]:
    """Return the symbols that only the shapes of parameters bind, each with its first place."""
    bound = {symbol for kernel in program.kernels for symbol in _bound(kernel.body)}
    found: dict[Symbol, tuple[Symbol, int, int]] = {}
    for position, parameter in enumerate(program.parameters):
        for axis, extent in enumerate(parameter.node.shape):
            symbol = extent.symbol
            if symbol is not None and symbol not in bound:
                found.setdefault(symbol, (symbol, position, axis))
    return tuple(found.values())


def _bound(body: tuple[Stmt, ...]) -> Iterator[Symbol]:
    for stmt in body:
        match stmt:
            case Let(symbol, _):
                yield symbol
            case For(symbol=symbol, body=inner):
                yield symbol
                yield from _bound(inner)
            case While(prelude_, _, inner):
                yield from _bound(prelude_ + inner)
            case If(_, then, other):
                yield from _bound(then + other)
            case _:
                pass


def _is_runtime(node: Node) -> bool:
    return node.static_shape is None


def _bytes(node: Node) -> int:
    size = node.dtype.itemsize
    for extent in node.static_shape or ():
        size *= extent
    return size
