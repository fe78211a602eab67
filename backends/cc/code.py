"""C code: a loaded entry point with its tables; argument blocks, results and faults."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdMemoryError, Diagnostic, Span
from ...lowering.ir.assignments import Fault, Print
from ...lowering.ir.faults import raise_fault
from ...lowering.ir.indexing import evaluate
from ...lowering.ir.node import Node
from ..codegen import records
from ..codegen.frame import MAX_BYTES
from ..codegen.source import Source
from .loader import NUMBERS, Library, c_free, ffi
from .loader import address_of as address
from .loader import int64_array as numbers
from .thread_pool import ThreadPool

if TYPE_CHECKING:
    from ..interface import Array, Origin

    Empty = Callable[[tuple[int, ...], np.dtype[Any]], Array]


_POINTERS: Any = ffi.typeof("void *[]")
_ADDRESS: Any = ffi.typeof("void *")
_FAULT: Any = ffi.typeof(f"int64_t[{records.SLOTS}]")
_FILL_BYTE = 0xA5
"""The fill byte of uninitialized results under `verify`, which exposes unwritten elements."""
_SHOW: Any = ffi.typeof("void(*)(int64_t, const int64_t *)")


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """A loaded function; thread-safe, as calls share no state."""

    name: str
    source: Source
    parameters: tuple[Node, ...]
    results: tuple[Node, ...]
    origin: Origin
    library: Library
    """Referenced here, since closing it unloads the function."""
    function: Any
    threads: ThreadPool | None = None
    """The run-time library, for code that needs it."""
    parallel_limits: tuple[int, int] = (1, 0)
    """The number of threads of parallel loops, and their least work."""
    empty: Empty = np.empty
    """Allocates uninitialized arrays, as `numpy.empty`."""

    @property
    def text(self) -> str:
        """The C source text."""
        return self.source.text

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The source statement of each line of the C text."""
        return self.source.line_map

    @property
    def above(self) -> int:
        """The number of lines before the functions: the header and the prelude."""
        return self.source.above

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run on parameters, then results; return the results.

        Raises the fault of a failed check, CdMemoryError, errors of printing, and exceptions of
        signal handlers.
        """
        return Call(self, arrays)()

    @property
    def allocated_results(self) -> frozenset[int]:
        """The results, by position, that the code allocates itself."""
        return self.source.allocated_results

    @property
    def written_results(self) -> frozenset[int]:
        """The results, by position, that need no zeros: every element is written."""
        return self.source.whole

    def direct_call(self, arrays: Sequence[Array]) -> DirectCall | None:
        """Return the addresses for running this function on such arrays without Python; None where
        Python is needed, for prints."""
        if self.source.prints:
            return None
        values = dynamic_sizes(self, arrays) if self.source.memory.sizes else []
        sizes, table = numbers(values), self.table
        table_address = 0 if table is None else address(table)
        addresses = (address(self.function), address(sizes), table_address)
        return DirectCall(addresses, self, (sizes, table), tuple(values))

    @property
    def table(self) -> Any:
        """The table of the run-time library that is passed to it; None where it needs none."""
        return None if self.threads is None else self.threads.table(*self.parallel_limits)

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error of a status other than 0, with the fault record of the run."""
        if status == 3 and self.threads is not None:
            raise self.threads.error()
        raise_status(self.name, self.source.faults, status, fault)

    def whole(self, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
        """Return the arrays with missing results allocated, except those the code allocates."""
        arguments = arrays[: len(self.parameters)]
        results = [
            self._allocate_result(number, arguments)
            if array is None and number not in self.source.allocated_results else array
            for number, array in enumerate(arrays[len(arguments) :])
        ]  # fmt: skip
        return (*arguments, *results)

    def _allocate_result(self, number: int, arguments: Sequence[Array | None]) -> Array:
        """Allocate the array of a result; raises MemoryError."""
        dtype, shape = self.results[number].dtype.numpy, self.shape_of(number, arguments)
        if number not in self.source.whole:
            return np.zeros(shape, dtype)
        array = self.empty(shape, dtype)
        if settings.current().verify:
            array.reshape(-1).view(np.uint8).fill(_FILL_BYTE)
        return array

    def shape_of(self, number: int, arguments: Sequence[Array | None]) -> tuple[int, ...]:
        """Return the shape of a result that the code does not allocate, for such parameters."""
        node = self.results[number]
        if node.static_shape is not None:
            return node.static_shape
        sizes = {
            symbol: _extent(arguments[k], axis) for symbol, k, axis in self.source.memory.sizes
        }
        return tuple(max(0, evaluate(extent, sizes)) for extent in node.shape)

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return a function that runs on these arrays."""
        return Call(self, arrays).fastest()

    def arena_bytes(self, arrays: Sequence[Array | None]) -> int:
        """Return the bytes of the temporaries that a caller may lend memory for; 0 where it may
        not, or they depend on sizes of arrays that are None."""
        return 0 if self.source.prints else self._arena_bytes(arrays) or 0

    def temporary_bytes(self, arrays: Sequence[Array | None]) -> int | None:
        """Return the bytes of the temporaries of a call, those on the stack included; None where
        they depend on data, or on sizes of arrays that are None."""
        memory, arena = self.source.memory, self._arena_bytes(arrays)
        if arena is None or memory.growing:
            return None
        return arena + sum(node.bytes for node in memory.stack)

    def _arena_bytes(self, arrays: Sequence[Array | None]) -> int | None:
        memory = self.source.memory
        if not memory.arena:
            return 0
        if any(arrays[position] is None for _, position, _ in memory.sizes):
            return None
        extents = {symbol: _extent(arrays[at], axis) for symbol, at, axis in memory.sizes}
        return memory.layout(extents).total

    def bind_in(
        self, arrays: Sequence[Array | None], arena: Array
    ) -> Callable[[], tuple[Array, ...]]:
        """Return a function that runs on these arrays, with its temporaries in an arena."""
        return Call(self, arrays, arena).fastest()


class Call:
    """An argument block, reusable, by one thread at a time."""

    __slots__ = ("_arrays", "_block", "_blocks", "_code", "_fault", "_held", "_printing")

    def __init__(
        self, code: CompiledCode, arrays: Sequence[Array | None], arena: Array | None = None
    ) -> None:
        source, parameter_count = code.source, len(code.parameters)
        arrays = code.whole(arrays)
        self._code, self._arrays = code, arrays
        self._blocks = {
            k: ffi.new(NUMBERS, 1 + code.results[k - parameter_count].rank)
            for k, array in enumerate(arrays) if array is None
        }  # fmt: skip
        self._fault = ffi.new(_FAULT)
        pointers = [
            _data_pointer(a) if a is not None else self._blocks[k] for k, a in enumerate(arrays)
        ]
        pointers += [self._fault, ffi.NULL if arena is None else _data_pointer(arena), ffi.NULL]
        if code.threads is not None:
            pointers.append(code.table)
        self._printing: _Printing | None = None
        if source.prints:
            self._printing = _Printing(source.prints)
            pointers[len(arrays) + 1] = ffi.callback(_SHOW, self._printing)
        if source.memory.sizes:
            pointers[len(arrays) + 2] = ffi.new(NUMBERS, dynamic_sizes(code, arrays))
        self._held = pointers
        self._block = ffi.new(_POINTERS, pointers)

    def __call__(self) -> tuple[Array, ...]:
        """Run, and return the results; raises as `CompiledCode.run`."""
        status = self._code.function(self._block)
        printing = self._printing
        if printing is not None and printing.error is not None:
            error, printing.error = printing.error, None
            raise error
        if status:
            self._code.fail(status, *ffi.unpack(self._fault, records.SLOTS))
        parameter_count = len(self._code.parameters)
        if len(self._arrays) == parameter_count:
            return ()
        return tuple(
            _adopt_result(self._blocks[k], self._code.results[k - parameter_count])
            if array is None else array
            for k, array in enumerate(self._arrays) if k >= parameter_count
        )  # fmt: skip

    def fastest(self) -> Callable[[], tuple[Array, ...]]:
        """Return an equivalent function, faster where nothing is printed or returned."""
        function, block = self._code.function, self._block
        if self._printing is not None or len(self._arrays) > len(self._code.parameters):
            return self

        def run() -> tuple[Array, ...]:
            if status := function(block):  # targets of the block's pointers live as long as `self`
                self._code.fail(status, *ffi.unpack(self._fault, records.SLOTS))
            return ()

        return run


@dataclass(frozen=True, slots=True)
class DirectCall:
    """Code for certain sizes, called without Python."""

    addresses: tuple[int, int, int]
    """The addresses of its entry point, of its sizes, and of the table of the run-time library, 0
    for none."""
    code: CompiledCode
    held: Any
    """Owners that keep the addresses valid, together with the code."""
    values: tuple[int, ...]
    """The values of the sizes."""

    @property
    def saved(self) -> dict[str, Any] | None:
        """What `CompiledC.restore` finds it by, None for code that no cache has."""
        code = self.code
        if not code.library.key:
            return None
        return {
            "name": code.name,
            "key": code.library.key,
            "entry": code.source.entry,
            "sizes": list(self.values),
            "threads": "" if code.threads is None else code.threads.key,
        }

    @property
    def faults(self) -> Sequence[tuple[Fault, Span]]:
        """The errors of its checks, in the order of their numbers."""
        return self.code.source.faults

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error of a status other than 0, with the fault record of the run."""
        self.code.fail(status, *fault)


def dynamic_sizes(code: CompiledCode, arrays: Sequence[Array | None]) -> list[int]:
    """Return the run-time sizes and, where it depends on them, the layout of the arena."""
    memory = code.source.memory
    extents = [_extent(arrays[k], axis) for _, k, axis in memory.sizes]
    numbers = memory.numbers(extents)
    if max(numbers, default=0) >= MAX_BYTES:
        raise _too_large(code.name, max(numbers))
    return numbers


class _Printing:
    """Converts print records to text; stores the first error, which cannot propagate through C."""

    __slots__ = ("_prints", "error")

    def __init__(self, prints: tuple[Print, ...]) -> None:
        self._prints = prints
        self.error: BaseException | None = None

    def __call__(self, number: int, values: Any) -> None:
        """Print a record, unless printing has failed before."""
        if self.error is not None:
            return
        try:
            sys.stdout.write(_print_text(self._prints[number], values))
        except BaseException as error:  # also KeyboardInterrupt: raised after the function returns
            self.error = error


def _print_text(statement: Print, values: Any) -> str:
    widths = (records.slot_count(p.dtype) for p in statement.fragments if not isinstance(p, str))
    decoded = records.decode([*ffi.unpack(values, 1 + sum(widths)), 0, 0])
    return statement.text(decoded)


def raise_status(
    name: str, faults: Sequence[tuple[Fault, Span]], status: int, words: Sequence[int]
) -> NoReturn:
    """Raise the error of a function's status other than 0, with its fault record."""
    if status == 1:
        fault, span = faults[words[0]]
        values = [value.item() for value in records.decode(words)]
        # A record holds as many values as fit; the rest of a long message shows "...".
        raise_fault(fault, [*values, *["..."] * records.SLOTS], span)
    raise _too_large(name, words[0])


def _too_large(name: str, asked: int) -> CdMemoryError:
    size = f"{asked} bytes" if asked < MAX_BYTES else "more bytes than can be counted"
    message = f"there is not enough memory for the temporaries of `{name}`: {size}"
    helps = ("work on smaller pieces, or use a smaller element type: `np.float32`",)
    return CdMemoryError(Diagnostic("CD0705", message, helps=helps))


def _extent(array: Array | None, axis: int) -> int:
    assert array is not None  # only parameters have sizes to pass
    return int(array.shape[axis])


def _data_pointer(array: Array) -> Any:
    """Return a pointer to an array's first element, which keeps the array's memory alive."""
    if array.flags.c_contiguous:
        return ffi.from_buffer(array)
    return ffi.cast(_ADDRESS, array.__array_interface__["data"][0])


def _adopt_result(block: Any, node: Node) -> Array:
    """Return the result that the routine allocated in a block; its memory is freed with it."""
    address, *extents = ffi.unpack(block, 1 + node.rank)
    shape = [max(0, extent) for extent in extents]
    dtype = node.dtype.numpy
    size = math.prod(shape) * dtype.itemsize
    if not address:
        return np.zeros(shape, dtype)
    owner = ffi.gc(ffi.cast(_ADDRESS, address), c_free())
    if size == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(ffi.buffer(owner, size), dtype).reshape(shape)
