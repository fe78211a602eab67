"""A loaded entry with the meaning of its numbers: arguments in, results and faults out."""

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
from ..codegen.frame import MOST
from ..codegen.source import Source
from .loader import NUMBERS, Library, address, ffi, free, numbers
from .thread_pool import Threads

if TYPE_CHECKING:
    from ..interface import Array, Origin

    Empty = Callable[[tuple[int, ...], np.dtype[Any]], Array]


_POINTERS: Any = ffi.typeof("void *[]")
_ADDRESS: Any = ffi.typeof("void *")
_FAULT: Any = ffi.typeof(f"int64_t[{records.SLOTS}]")
_ANYTHING = 0xA5
"""Each byte of a result that is written everywhere, where it is checked whether it is."""
_SHOW: Any = ffi.typeof("void(*)(int64_t, const int64_t *)")


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """A function in memory. Calls share nothing, so any number of threads may run it."""

    name: str
    source: Source
    parameters: tuple[Node, ...]
    results: tuple[Node, ...]
    origin: Origin
    library: Library
    """Kept here, since closing it takes the function away."""
    function: Any
    threads: Threads | None = None
    """The run-time library, for code that asks for it."""
    shares: tuple[int, int] = (1, 0)
    """Among how many threads a call may share its loops, and from how much work on."""
    empty: Empty = np.empty
    """Makes arrays of anything, as `numpy.empty`."""

    @property
    def text(self) -> str:
        """The C that was compiled."""
        return self.source.text

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The statement that each line of the C comes from."""
        return self.source.line_map

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run on parameters, then results; return the results.

        Raises what a failed check names, CdMemoryError, what printing raised, and what the handler
        of a signal raised meanwhile.
        """
        return Call(self, arrays)()

    def short(self, arrays: Sequence[Array]) -> Short | None:
        """Return what runs this function on such arrays without any Python; None where some is
        needed: to print."""
        if self.source.prints:
            return None
        values = sizes_of(self, arrays) if self.source.memory.sizes else []
        sizes, table = numbers(values), self.table
        at = 0 if table is None else address(table)
        places = (address(self.function), address(sizes), at)
        return Short(places, self, (sizes, table), tuple(values))

    @property
    def table(self) -> Any:
        """The table of the run-time library that it is given; None where it asks for none."""
        return None if self.threads is None else self.threads.table(*self.shares)

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error that a status other than 0 means, with what the run wrote of it."""
        if status == 3 and self.threads is not None:
            raise self.threads.error()
        raise_status(self.name, self.source.faults, status, fault)

    def whole(self, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
        """Return arrays with those results that are not given, but for what the code makes."""
        given = arrays[: len(self.parameters)]
        results = [
            self._made(number, given) if array is None and number not in self.source.makes
            else array for number, array in enumerate(arrays[len(given) :])
        ]  # fmt: skip
        return (*given, *results)

    def _made(self, number: int, given: Sequence[Array | None]) -> Array:
        """Return a new array for a result; raises MemoryError."""
        dtype, shape = self.results[number].dtype.numpy, self.shape_of(number, given)
        if number not in self.source.whole:
            return np.zeros(shape, dtype)
        array = self.empty(shape, dtype)
        if settings.current().verify:
            array.reshape(-1).view(np.uint8).fill(_ANYTHING)
        return array

    def shape_of(self, number: int, given: Sequence[Array | None]) -> tuple[int, ...]:
        """Return the shape of a result that the code does not make, for such parameters."""
        node = self.results[number]
        if node.static_shape is not None:
            return node.static_shape
        known = {symbol: _extent(given[k], axis) for symbol, k, axis in self.source.memory.sizes}
        return tuple(max(0, evaluate(extent, known)) for extent in node.shape)

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return the call of this function with these arrays, which can be repeated."""
        return Call(self, arrays).shortest()


class Call:
    """An argument block, ready to be used any number of times, by one thread at a time."""

    __slots__ = ("_arrays", "_block", "_blocks", "_code", "_fault", "_held", "_printing")

    def __init__(self, code: CompiledCode, arrays: Sequence[Array | None]) -> None:
        source, first = code.source, len(code.parameters)
        arrays = code.whole(arrays)
        self._code, self._arrays = code, arrays
        self._blocks = {
            k: ffi.new(NUMBERS, 1 + code.results[k - first].rank)
            for k, array in enumerate(arrays) if array is None
        }  # fmt: skip
        self._fault = ffi.new(_FAULT)
        held = [_data(a) if a is not None else self._blocks[k] for k, a in enumerate(arrays)]
        held += [self._fault, ffi.NULL, ffi.NULL]
        if code.threads is not None:
            held.append(code.table)
        self._printing: _Printing | None = None
        if source.prints:
            self._printing = _Printing(source.prints)
            held[len(arrays) + 1] = ffi.callback(_SHOW, self._printing)
        if source.memory.sizes:
            held[len(arrays) + 2] = ffi.new(NUMBERS, sizes_of(code, arrays))
        self._held = held
        self._block = ffi.new(_POINTERS, held)

    def __call__(self) -> tuple[Array, ...]:
        """Run, and return the results; raises as `CompiledCode.run`."""
        status = self._code.function(self._block)
        printing = self._printing
        if printing is not None and printing.error is not None:
            error, printing.error = printing.error, None
            raise error
        if status:
            self._code.fail(status, *ffi.unpack(self._fault, records.SLOTS))
        first = len(self._code.parameters)
        if len(self._arrays) == first:
            return ()
        return tuple(
            _taken(self._blocks[k], self._code.results[k - first]) if array is None else array
            for k, array in enumerate(self._arrays) if k >= first
        )  # fmt: skip

    def shortest(self) -> Callable[[], tuple[Array, ...]]:
        """Return what does the same, in less time where nothing is printed or returned."""
        function, block = self._code.function, self._block
        if self._printing is not None or len(self._arrays) > len(self._code.parameters):
            return self

        def run() -> tuple[Array, ...]:
            if status := function(block):  # what the block points to lives as long as `self`
                self._code.fail(status, *ffi.unpack(self._fault, records.SLOTS))
            return ()

        return run


@dataclass(frozen=True, slots=True)
class Short:
    """What a call of code needs."""

    places: tuple[int, int, int]
    """The addresses of its entry, of the sizes it is passed, and of the table of the run-time
    library, 0 for none."""
    code: CompiledCode
    held: Any
    """What has to stay alive for the addresses to be good, with the code."""
    values: tuple[int, ...]
    """The sizes themselves."""


def sizes_of(code: CompiledCode, arrays: Sequence[Array | None]) -> list[int]:
    """Return the run-time sizes and, where those decide it, the layout of the arena."""
    plan = code.source.memory
    extents = [_extent(arrays[k], axis) for _, k, axis in plan.sizes]
    numbers = plan.numbers(extents)
    if max(numbers, default=0) >= MOST:
        raise _too_large(code.name, max(numbers))
    return numbers


class _Printing:
    """Turns the records of prints into text; keeps the first error, which C cannot pass on."""

    __slots__ = ("_prints", "error")

    def __init__(self, prints: tuple[Print, ...]) -> None:
        self._prints = prints
        self.error: BaseException | None = None

    def __call__(self, number: int, values: Any) -> None:
        """Print what the record of a print says, unless printing has failed before."""
        if self.error is not None:
            return
        try:
            sys.stdout.write(_printed(self._prints[number], values))
        except BaseException as error:  # also Ctrl-C: raised when the function has returned
            self.error = error


def _printed(statement: Print, values: Any) -> str:
    widths = (records.width(p.dtype) for p in statement.pieces if not isinstance(p, str))
    shown = records.decode([*ffi.unpack(values, 1 + sum(widths)), 0, 0])
    return statement.text(shown)


def raise_status(
    name: str, faults: Sequence[tuple[Fault, Span]], status: int, words: Sequence[int]
) -> NoReturn:
    """Raise the error that a status of a function other than 0 means, with what it wrote of it."""
    if status == 1:
        fault, span = faults[words[0]]
        known = [value.item() for value in records.decode(words)]
        # A record keeps as many values as fit; the rest of a long message says so.
        raise_fault(fault, [*known, *["..."] * records.SLOTS], span)
    raise _too_large(name, words[0])


def _too_large(name: str, asked: int) -> CdMemoryError:
    size = f"{asked} bytes" if asked < MOST else "more bytes than can be counted"
    message = f"there is not enough memory for the temporaries of `{name}`: {size}"
    helps = ("work on smaller pieces, or use a smaller element type: `np.float32`",)
    return CdMemoryError(Diagnostic("CD0705", message, helps=helps))


def _extent(array: Array | None, axis: int) -> int:
    assert array is not None  # only parameters have sizes to pass
    return int(array.shape[axis])


def _data(array: Array) -> Any:
    """Return a pointer to an array's first element; it keeps the array's memory alive."""
    if array.flags.c_contiguous:
        return ffi.from_buffer(array)
    return ffi.cast(_ADDRESS, array.__array_interface__["data"][0])


def _taken(block: Any, node: Node) -> Array:
    """Return the array in a block that the routine allocated; it is freed with the array."""
    address, *extents = ffi.unpack(block, 1 + node.rank)
    shape = [max(0, extent) for extent in extents]
    dtype = node.dtype.numpy
    size = math.prod(shape) * dtype.itemsize
    if not address:
        return np.zeros(shape, dtype)
    owner = ffi.gc(ffi.cast(_ADDRESS, address), free())
    if size == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(ffi.buffer(owner, size), dtype).reshape(shape)
