"""What stands around the statements of generated C: names, storage, the way out, the entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...lowering.ir.loops import Program
from ...lowering.ir.node import Node
from ...lowering.passes.buffers import Memory, exchanged
from ...lowering.pipeline import Placement
from . import prelude
from .c_expression import Scope
from .dialect import Dialect
from .names import Names
from .vectors import Plan, plan_of

MOST = 2**62
"""More bytes than any machine has: what is larger is written as this, and refused."""


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
    """The first array of a node whose array moves: the caller's, or one on the stack."""
    registers: tuple[Node, ...]
    memory: Memory
    """Where the other temporaries are."""
    vectors: Plan
    """Which of them are variables of vector types."""

    @property
    def frees(self) -> bool:
        """Whether there is something to free on the way out."""
        return bool(self.rooms or self.chains)

    @property
    def chains(self) -> bool:
        """Whether storage of run-time size moves, so that only a chain knows what to free."""
        return any(node.id in self.exchanged for node in self.growing)

    @property
    def growing(self) -> tuple[Node, ...]:
        """Nodes that take memory of their own when they get their size."""
        results = (node for node in self.program.results if _is_runtime(node))
        return (*self.memory.growing, *results)

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
        for node in self.memory.stack:
            if node.id not in self.vectors.held:
                yield from self._on_stack(node)
        for buffer in self.memory.arena:
            if buffer.zeroed and not _is_runtime(buffer.node):
                yield f"memset({self.name(buffer.node)}, 0, {buffer.node.bytes});"
        for node in self.growing:
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
        for node in self.growing:
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
        parameters += [
            f"const int64_t {self.scope.symbols[symbol]}" for symbol, _, _ in self.memory.sizes
        ]
        return f"{self.dialect.function} int {self.function}({', '.join(parameters) or 'void'})"

    def entry(self, name: str, faults: bool, shows: bool) -> tuple[str, Iterator[str]]:
        """Return the head of the entry, and its statements: the arena, the call of the body."""
        count = len(self.arguments)
        values = [
            f"*(const {self.ctype(node)} *)args[{k}]" if node.id in self.scope.by_value
            else f"args[{k}]" for k, node in enumerate(self.arguments)
        ]  # fmt: skip
        sizes = f"(const int64_t *)args[{count + 2}]"
        values += [self.name(buffer.node) for buffer in self.memory.arena]
        values += [f"args[{count}]"] * faults + [f"args[{count + 1}]"] * shows
        values += [f"({sizes})[{k}]" for k in range(len(self.memory.sizes))]
        call = f"{self.function}({', '.join(values)})"
        return self.dialect.entry.format(name), self._around(call, f"args[{count}]", sizes)

    def _around(self, call: str, fault: str, sizes: str) -> Iterator[str]:
        """Yield the call of the body, with the arena made before and freed after."""
        if not self.memory.arena:
            yield f"return {call};"
            return
        first = len(self.memory.sizes)
        nodes = [buffer.node for buffer in self.memory.arena]
        if self.memory.is_static:
            layout = self.memory.layout()
            total = str(min(layout.total, MOST))
            places = [str(min(layout.offsets[node.id], MOST)) for node in nodes]
        else:
            yield f"const int64_t *const places = {sizes} + {first};"
            total = "places[0]"
            places = [f"places[{k}]" for k in range(1, 1 + len(nodes))]
        yield f"char *const arena = aligned({total});"
        yield "if (!arena) {"
        yield f"    ((int64_t *){fault})[0] = {total};"
        yield "    return 2;"
        yield "}"
        for node, place in zip(nodes, places, strict=True):
            ctype = self.ctype(node)
            yield f"{ctype} *const {self.name(node)} = ({ctype} *)(arena + {place});"
        yield f"const int status = {call};"
        yield "free(arena);"
        yield "return status;"

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
        sharing = self.memory.sharing()
        for buffer in self.memory.arena:
            alone = buffer.node.id not in sharing | self.exchanged
            star = f"*{self.dialect.restrict} " if alone else "*"
            yield f"{self.ctype(buffer.node)} {star}{self.name(buffer.node)}"

    def _on_stack(self, node: Node) -> Iterator[str]:
        count = max(1, node.bytes // node.dtype.itemsize)
        name = self.homes.get(node.id, self.name(node))
        zero = "" if node.purpose else " = {0}"
        yield f"{self.ctype(node)} {name}[{count}]{zero};"
        if node.id in self.homes:
            yield f"{self.ctype(node)} *{self.name(node)} = {name};"

    def _settled(self) -> Iterator[str]:
        """Yield the copies that bring moved results home; several may stand in a ring."""
        moved = [node for node in self.program.results if node.id in self.homes]
        if len(moved) == 1:
            (node,) = moved
            home = self.homes[node.id]
            yield f"if ({self.name(node)} != {home}) {{"
            yield f"    memcpy({home}, {self.name(node)}, {node.bytes});"
            yield "}"
        elif moved:
            for node, kept in zip(moved, self._homecoming(), strict=True):
                yield f"memcpy({self.name(kept)}, {self.name(node)}, {node.bytes});"
            for node, kept in zip(moved, self._homecoming(), strict=True):
                yield f"memcpy({self.homes[node.id]}, {self.name(kept)}, {node.bytes});"

    def _homecoming(self) -> list[Node]:
        """Return the buffers through which moved results come home."""
        own = {node.id for node in self.program.locals}
        return [buffer.node for buffer in self.memory.arena if buffer.node.id not in own]

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
    memory = placement.memory
    nodes = (*parameters, *program.results, *program.locals, *(b.node for b in memory.arena))
    by_id: dict[int, str] = {}
    for node in nodes:
        if node.id not in by_id:
            by_id[node.id] = names.fresh(node.label)
    registers = tuple(n for n in program.locals if placement[n].where == "register")
    values = [p.node for p in program.parameters if p.node.rank == 0 and not p.written]
    by_value = frozenset(n.id for n in (*registers, *values) if n.id not in moving)
    scope = Scope(dialect, by_id, by_value)
    for symbol, _, _ in memory.sizes:
        scope.symbols[symbol] = names.fresh(symbol.name)
    growing = [*memory.growing, *(n for n in program.results if _is_runtime(n))]
    return Frame(
        dialect, program, scope, names, function, moving,
        rooms={n.id: names.fresh(f"{by_id[n.id]}_room") for n in growing if n.id not in moving},
        blocks={n.id: names.fresh(f"{by_id[n.id]}_out") for n in program.results if n in growing},
        homes={
            n.id: names.fresh(f"{by_id[n.id]}_home")
            for n in (*memory.stack, *program.results) if n.id in moving and not _is_runtime(n)
        },
        registers=registers,
        memory=memory,
        vectors=plan_of(program, placement.vector_bits),
    )  # fmt: skip


def _is_runtime(node: Node) -> bool:
    return node.static_shape is None
