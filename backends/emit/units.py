"""Loops that are one call of the prelude: copies, products by tensor cores, atomic operations.

What a call means is what the loops say, but for the order in which a device adds products. The
functions are in `cuda/csrc`: `tensors.h`, `atomics.h`.
"""

from __future__ import annotations

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.expressions import Apply, Cast, Expr, Read
from ...lowering.ir.indexing import Affine, Symbol, const
from ...lowering.ir.indexing import substitute as moved
from ...lowering.ir.loops import For, Stmt, Store, Update
from .c_expression import Scope

UNITS = {
    dtypes.float16: "product_f16",
    dtypes.bfloat16: "product_bf16",
    dtypes.float32: "product_tf32",
}
"""What multiplies and adds factors of a type."""


def call(loop: For, scope: Scope) -> str | None:
    """Return the call for a loop of the kinds that have one, None for all others."""
    match loop.kind:
        case "packed":
            return _packed(loop, scope)
        case "tensor":
            return _tensor(loop, scope)
        case "atomic":
            return _atomic(loop, scope)
        case _:
            return None


def _packed(loop: For, scope: Scope) -> str:
    """Return the call that copies neighbours."""
    store = _store(loop.body)
    value = store.value
    assert isinstance(value, Read) and value.dtype is store.access.node.dtype
    places = (store.access, Access(value.node, value.index))
    assert all(_step(place, loop.symbol) == 1 for place in places)
    assert (loop.hi - loop.lo) * value.dtype.itemsize == const(16)
    to, source = (_pointer(place, {loop.symbol: loop.lo}, scope) for place in places)
    return f"copied({to}, {source});"


def _tensor(loop: For, scope: Scope) -> str:
    """Return the call that adds the products of two tiles to the sums of a warp."""
    (rows,) = loop.body
    assert isinstance(rows, For)
    (columns,) = rows.body
    assert isinstance(columns, For)
    store = _store(columns.body)
    value, total = store.value, store.access.node
    assert isinstance(value, Apply) and value.op.name == "fma"
    first, second = (_place(one) for one in value.args[:2])
    start = dict.fromkeys((loop.symbol, rows.symbol, columns.symbol), const(0))
    pointers = ", ".join(_pointer(one, start, scope) for one in (first, second))
    counts = [(one.hi - one.lo).constant for one in (rows, columns, loop)]
    steps = [_step(first, rows.symbol, 8), _step(first, loop.symbol),
             _step(second, columns.symbol, 8, 2), _step(second, loop.symbol)]  # fmt: skip
    numbers = ", ".join(str(number) for number in (*counts, *steps))
    unit = UNITS[first.node.dtype]
    return f"multiplied<{unit}, {numbers}>({scope.nodes[total.id]}, {pointers});"


def _atomic(loop: For, scope: Scope) -> str:
    """Return the call that updates an element."""
    (update,) = loop.body
    assert isinstance(update, Update) and update.pair is None
    place, value = update.access, scope.expression(update.value).text
    name = f"atomic_{update.op.name}_{place.node.dtype.short}"
    return f"{name}(&{scope.element(place.node, place.index)}, {value});"


def _store(body: tuple[Stmt, ...]) -> Store:
    (stmt,) = body
    assert isinstance(stmt, Store)
    return stmt


def _place(value: Expr) -> Access:
    """Return where a factor is read."""
    value = value.value if isinstance(value, Cast) else value
    assert isinstance(value, Read)
    return Access(value.node, value.index)


def _step(place: Access, symbol: Symbol, by: int = 1, rounds: int = 1) -> int:
    """Return how far apart elements are, of `by` that a number of rounds brings on."""
    total = 0
    for index, stride in zip(place.index, place.node.element_strides, strict=True):
        assert isinstance(index, Affine)
        gap = (moved(index, {symbol: const(rounds)}) - moved(index, {symbol: const(0)})).constant
        assert gap is not None
        if gap:
            assert stride.constant is not None
            total += gap * stride.constant
    assert total % by == 0
    return total // by


def _pointer(place: Access, values: dict[Symbol, Affine], scope: Scope) -> str:
    index = tuple(moved(one, values) for one in place.index if isinstance(one, Affine))
    return f"&{scope.element(place.node, index)}"
