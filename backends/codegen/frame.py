"""Function frames of generated C: names, storage of nodes, prologue and epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.loops import Program
from ...lowering.ir.node import Node
from ...lowering.ir.walk import permuted_nodes
from ...lowering.passes.buffer_sharing import MemoryPlan
from ...lowering.placement import Placement
from . import prelude
from .c_expression import Scope
from .dialect import Dialect
from .names import Names
from .quirks.contraction import may_alternate
from .speculation import analyze_storage
from .vector_variables import VectorPlan, plan_vectors

MAX_BYTES = 2**62
"""More bytes than any machine has: larger sizes are written as this, and refused."""
LIBRARY = "pe_lib"
"""The run-time library, in the functions that need it."""
WORK = "pe_work"
"""The counter of work since the last poll for cancellation."""


class NamedValue(NamedTuple):
    """A named value of a function: its declarations as a struct field and as a local variable."""

    name: str
    field: str
    local: str


class FunctionContext(Protocol):
    """The context of a function's statements: names, and how it reports faults and returns."""

    @property
    def dialect(self) -> Dialect:
        """The language of the text."""

    @property
    def scope(self) -> Scope:
        """The names of nodes and symbols."""

    @property
    def names(self) -> Names:
        """The identifiers in use."""

    @property
    def sizes(self) -> frozenset[Symbol]:
        """The run-time extents of arrays."""

    def failing(self, number: int, path: Sequence[str]) -> Iterator[str]:
        """Yield the lines before the values of a fault; the path is its position in the program."""

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield the exit of the function."""

    def printing(self, number: int, slots: int) -> Iterator[str]:
        """Yield the lines before the values of a print."""

    def printed(self, number: int) -> Iterator[str]:
        """Yield the lines after the values of a print."""

    def meeting(self, later: int) -> Iterator[str]:
        """Yield the barrier of a thread block."""

    def coming_last(self) -> str:
        """Return the test whether a block is the last to arrive."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The names and storage of one routine; the statements go between `opening` and `closing`."""

    dialect: Dialect
    program: Program
    scope: Scope
    names: Names
    function: str
    """The name of the body function."""
    permuted: frozenset[int]
    """Nodes whose arrays are permuted: pointers that may alias and change."""
    capacity: dict[int, str]
    """The variable with the capacity in bytes of each growing node."""
    blocks: dict[int, str]
    """The descriptor of each result of run-time shape."""
    homes: dict[int, str]
    """The original array of each permuted node: the caller's, or one on the stack."""
    registers: tuple[Node, ...]
    privates: tuple[Node, ...]
    """Temporaries that are private to a thread of a parallel loop."""
    memory: MemoryPlan
    """The storage of the other temporaries."""
    vectors: VectorPlan
    """The temporaries that are variables of vector types."""
    polls: bool
    """Whether long loops poll for cancellation."""

    @property
    def sizes(self) -> frozenset[Symbol]:
        """The run-time extents of arrays."""
        return frozenset(symbol for symbol, _, _ in self.memory.sizes)

    @property
    def frees(self) -> bool:
        """Whether the exit has to free memory."""
        return bool(self.capacity or self.frees_chain)

    @property
    def frees_chain(self) -> bool:
        """Whether storage of run-time size is permuted: a chain then knows what to free."""
        return any(node.id in self.permuted for node in self.growing)

    @property
    def growing(self) -> tuple[Node, ...]:
        """Nodes that are allocated when their run-time size is known."""
        return (*self.memory.growing, *(n for n in self.program.results if n.id in self.blocks))

    @property
    def arguments(self) -> tuple[Node, ...]:
        """The nodes of `args`, in order."""
        return (*(p.node for p in self.program.parameters), *self.program.results)

    def ctype(self, node: Node) -> str:
        """Return the C type of an element of the node."""
        storage = self.scope.storage
        is_flag = storage is not None and node.id in storage.flags
        return self.dialect.types[dtypes.int32 if is_flag else node.dtype]

    def name(self, node: Node) -> str:
        """Return the name of the node in the text."""
        return self.scope.nodes[node.id]

    def register(self, node: Node) -> str:
        """Return the declaration of a scalar initialized with zero."""
        zero = "{0}" if node.dtype.kind == "c" else self.dialect.literal(0, node.dtype)
        return f"{self.ctype(node)} {self.name(node)} = {zero};"

    def opening(self) -> Iterator[str]:
        """Yield the prologue: the declarations before the first statement."""
        for node in self.registers:
            yield self.register(node)
        for node in self.memory.stack:
            if node.id not in self.vectors.held:
                yield from self._declare_on_stack(node)
        for buffer in self.memory.arena:
            if buffer.zeroed and buffer.node.static_shape is not None:
                yield f"memset({self.name(buffer.node)}, 0, {buffer.node.bytes});"
        for node in self.growing:
            yield f"{self.ctype(node)} *{self.name(node)} = NULL;"
        for name in self.capacity.values():
            yield f"int64_t {name} = 0;"
        for node in self.arguments:
            if node.id in self.homes:
                yield f"{self.ctype(node)} *const {self.homes[node.id]} = {self.name(node)};"
        if self.frees_chain:
            yield "void *chain = NULL;"
        if self.frees:
            yield "int status = 0;"

    def closing(self) -> Iterator[str]:
        """Yield the epilogue: permuted arrays are copied back, memory is freed."""
        yield from self._copy_back()
        for node in self.program.results:
            if node.id in self.blocks:
                yield from self._return_result(node)
        if not self.frees:
            yield "return 0;"
            return
        yield "done:"
        for node in self.growing:
            if node.id in self.capacity:
                yield f"free({self.name(node)});"
        if self.frees_chain:
            yield "unchained(chain);"
        yield "return status;"

    def failing(self, number: int, path: Sequence[str]) -> Iterator[str]:
        """Yield the number of a fault: execution is sequential, so the first one is reported."""
        yield f"fault[0] = {number};"

    def leaving(self, status: int | str) -> Iterator[str]:
        """Yield the exit of the function, through the label if there is memory to free."""
        yield from exit_lines(status, self.frees)

    def printing(self, number: int, slots: int) -> Iterator[str]:
        """Yield the declaration of the record of a print."""
        yield f"int64_t printed[{slots}] = {{{number}}};"

    def printed(self, number: int) -> Iterator[str]:
        """Yield the call that shows it to the caller."""
        yield f"show({number}, printed);"

    def meeting(self, later: int) -> Iterator[str]:
        """Yield no barrier: there is one thread."""
        yield from ()

    def coming_last(self) -> str:
        """Return no test: there is one block."""
        return ""

    def head(self, faults: bool, shows: bool, asks: bool = False) -> str:
        """Return the head of the body function: arrays by name, then the reporting arguments."""
        parameters = [*self._parameters()]
        if faults:
            parameters.append("int64_t *fault")
        if shows:
            parameters.append("void (*show)(int64_t, const int64_t *)")
        if asks:
            parameters.append(f"const shared_run *{LIBRARY}")
        parameters += [
            f"const int64_t {self.scope.symbols[symbol]}" for symbol, _, _ in self.memory.sizes
        ]
        return f"{self.dialect.function} int {self.function}({', '.join(parameters) or 'void'})"

    def within(self) -> Iterator[NamedValue]:
        """Yield every value in scope at this point of the text, except private temporaries."""
        excluded, sharing = {node.id for node in self.privates}, self.memory.sharing()
        excluded |= self.vectors.held.keys()
        arena = (buffer.node for buffer in self.memory.arena)
        for node in dict.fromkeys((*self.arguments, *self.program.locals, *arena)):
            if node.id not in excluded:
                name, ctype = self.name(node), self.ctype(node)
                if node.id in self.scope.by_value:
                    yield NamedValue(name, f"{ctype} {name}", f"const {ctype} {name}")
                else:
                    const, star = self._qualifiers(node, sharing, exchanges=False)
                    yield NamedValue(
                        name, f"{const}{ctype} *{name}", f"{const}{ctype} {star}{name}"
                    )
        for name in self.scope.symbols.values():
            yield NamedValue(name, f"int64_t {name}", f"const int64_t {name}")
        yield NamedValue(
            LIBRARY, f"const shared_run *{LIBRARY}", f"const shared_run *const {LIBRARY}"
        )

    def _qualifiers(
        self, node: Node, sharing: frozenset[int], exchanges: bool = True
    ) -> tuple[str, str]:
        """Return the qualifiers before and after the element type of a pointer to a node, in code
        that may exchange arrays or, like the body of a parallel loop, does not."""
        if exchanges and node.id in self.permuted:
            return "", "*"
        written = {p.node.id: p.written for p in self.program.parameters}
        const = "" if written.get(node.id, True) else "const "
        alone = node.id not in sharing
        return const, f"*{self.dialect.restrict} " if alone else "*"

    def _parameters(self) -> Iterator[str]:
        sharing = self.memory.sharing()
        for node in self.arguments:
            name, ctype = self.name(node), self.ctype(node)
            if node.id in self.blocks:
                yield f"int64_t *{self.blocks[node.id]}"
            elif node.id in self.scope.by_value:
                yield f"const {ctype} {name}"
            else:
                const, star = self._qualifiers(node, sharing)
                yield f"{const}{ctype} {star}{name}"
        for buffer in self.memory.arena:
            const, star = self._qualifiers(buffer.node, sharing)
            yield f"{const}{self.ctype(buffer.node)} {star}{self.name(buffer.node)}"

    def _declare_on_stack(self, node: Node) -> Iterator[str]:
        count = max(1, node.bytes // node.dtype.itemsize)
        name = self.homes.get(node.id, self.name(node))
        zero = "" if node.purpose else " = {0}"
        yield f"{self.dialect.array(node.dtype, name, count)}{zero};"
        if node.id in self.homes:
            yield f"{self.ctype(node)} *{self.name(node)} = {name};"

    def _copy_back(self) -> Iterator[str]:
        """Yield the copies back into the caller's arrays; several may form a permutation cycle."""
        exchanged_nodes = [node for node in self.arguments if node.id in self.homes]
        if len(exchanged_nodes) == 1:
            (node,) = exchanged_nodes
            original = self.homes[node.id]
            yield f"if ({self.name(node)} != {original}) {{"
            yield f"    memcpy({original}, {self.name(node)}, {node.bytes});"
            yield "}"
        elif exchanged_nodes:
            for node, buffer in zip(exchanged_nodes, self._copy_back_buffers(), strict=True):
                yield f"memcpy({self.name(buffer)}, {self.name(node)}, {node.bytes});"
            for node, buffer in zip(exchanged_nodes, self._copy_back_buffers(), strict=True):
                yield f"memcpy({self.homes[node.id]}, {self.name(buffer)}, {node.bytes});"

    def _copy_back_buffers(self) -> list[Node]:
        """Return the temporary buffers for copying back permuted arrays of the caller."""
        local_ids = {node.id for node in self.program.locals}
        return [buffer.node for buffer in self.memory.arena if buffer.node.id not in local_ids]

    def _exit_without_memory(self, test: str, total: str) -> Iterator[str]:
        """Yield the exit where an allocation failed."""
        yield f"if (!{test}) {{"
        yield f"    fault[0] = {total};"
        yield from (f"    {line}" for line in self.leaving(2))
        yield "}"

    def _return_result(self, node: Node) -> Iterator[str]:
        """Yield the lines that pass a result of run-time shape to the caller, who frees it."""
        name, block = self.name(node), self.blocks[node.id]
        if node.id not in self.permuted:
            yield f"{block}[0] = (int64_t)(intptr_t){name};"
            yield f"{name} = NULL;"
            return
        total = str(node.dtype.itemsize)
        for axis in range(1, node.rank + 1):
            total = f"bytes_of({total}, {block}[{axis}])"
        copy = self.names.fresh(f"{name}_copy")
        yield f"void *const {copy} = zeroed({total});"
        yield from self._exit_without_memory(copy, total)
        yield f"if ({name}) memcpy({copy}, {name}, (size_t){total});"
        yield f"{block}[0] = (int64_t)(intptr_t){copy};"


def build_frame(program: Program, placement: Placement, dialect: Dialect) -> Frame:
    """Return the frame of a program: names are chosen, and storage is assigned to every local."""
    names = Names(prelude.is_prelude_name)
    function = names.fresh(f"{program.name}_body")
    moving = permuted_nodes(program)
    parameters = tuple(p.node for p in program.parameters)
    returned = tuple(p.node for p in program.parameters if p.returns)
    memory = placement.memory
    nodes = (*parameters, *program.results, *program.locals, *(b.node for b in memory.arena))
    by_id: dict[int, str] = {}
    for node in nodes:
        if node.id not in by_id:
            by_id[node.id] = names.fresh(node.label)
    registers = tuple(n for n in program.locals if placement[n].where == "register")
    privates = tuple(n for n in program.locals if placement[n].where == "private")
    values = [p.node for p in program.parameters if p.node.rank == 0 and not p.written]
    values += [node for node in privates if not node.rank]
    by_value = frozenset(n.id for n in (*registers, *values) if n.id not in moving)
    growing = [*memory.growing, *(n for n in program.results if _has_dynamic_shape(n, program))]
    late = frozenset(node.id for node in growing)
    storage = analyze_storage(program, by_value, late) if placement.picks else None
    scope = Scope(dialect, by_id, by_value, {}, storage, rounds_products=may_alternate(program))
    for symbol, _, _ in memory.sizes:
        scope.symbols[symbol] = names.fresh(symbol.name)
    return Frame(
        dialect, program, scope, names, function, moving,
        capacity={n.id: names.fresh(f"{by_id[n.id]}_room") for n in growing if n.id not in moving},
        blocks={n.id: names.fresh(f"{by_id[n.id]}_out") for n in program.results if n in growing},
        homes={
            n.id: names.fresh(f"{by_id[n.id]}_home")
            for n in (*memory.stack, *returned, *program.results) if n.id in moving - late
        },
        registers=registers, privates=privates,
        memory=memory,
        vectors=plan_vectors(
            program, placement.vector_bits, storage.data if storage else frozenset()
        ),
        polls=placement.polls,
    )  # fmt: skip


def exit_lines(status: int | str, frees: bool) -> tuple[str, ...]:
    """Return the exit of a function, through its label if there is memory to free."""
    return (f"status = {status};", "goto done;") if frees else (f"return {status};",)


def _has_dynamic_shape(node: Node, program: Program) -> bool:
    return node.static_shape is None and node.id not in program.sized
