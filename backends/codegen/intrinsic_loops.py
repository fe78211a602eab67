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
from ...lowering.ir.loops import Comment, For, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import substitute_expr
from ...lowering.ir.walk import reads
from . import prelude
from .c_expression import Scope

UNITS = {
    dtypes.float16: "product_f16",
    dtypes.bfloat16: "product_bf16",
    dtypes.float32: "product_tf32",
}
"""What multiplies and adds factors of a type."""
WIDE = {dtypes.float16: "wide_f16", dtypes.bfloat16: "wide_bf16"}
"""The same of four warps together."""


def call(loop: For, scope: Scope) -> str | None:
    """Return the call for a loop of the kinds that have one, None for all others."""
    match loop.kind:
        case "packed":
            return _packed(loop, scope)
        case "tensor":
            return _tensor(loop, scope)
        case "warpgroup":
            return _warpgroup(loop, scope)
        case "settled":
            return _settled(loop, scope)
        case "paired":
            return _paired(loop, scope)
        case "atomic":
            return _atomic(loop, scope)
        case "elemental":
            return _elemental(loop, scope)
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
    return f"{'at_once' if aligned(loop) else 'copied'}({to}, {source});"


def aligned(loop: For) -> Node | None:
    """Return the array, that may lie anywhere, of which a loop takes pieces at multiples of their
    size from where it begins; None of other loops."""
    match loop.kind:
        case "packed":
            value = _store(loop.body).value
            assert isinstance(value, Read)
            place = Access(value.node, value.index)
            node = place.node
            is_whole = node.strides is None and node.static_shape is not None
            return node if is_whole and _is_multiple(place, {loop.symbol: loop.lo}, 16) else None
        case "paired":
            return _stored(loop).access.node
        case _:
            return None


def _product(loop: For) -> tuple[For, For, Node, Access, Access]:
    """Return the loops over rows and columns, the sums, and what is multiplied."""
    (rows,) = loop.body
    assert isinstance(rows, For)
    (columns,) = rows.body
    assert isinstance(columns, For)
    store = _store(columns.body)
    value, total = store.value, store.access.node
    assert isinstance(value, Apply) and value.op.name == "fma"
    first, second = (_place(one) for one in value.args[:2])
    return rows, columns, total, first, second


def _tensor(loop: For, scope: Scope) -> str:
    """Return the call that adds the products of two tiles to the sums of a warp."""
    rows, columns, total, first, second = _product(loop)
    start = dict.fromkeys((loop.symbol, rows.symbol, columns.symbol), const(0))
    pointers = ", ".join(_pointer(one, start, scope) for one in (first, second))
    counts = [(one.hi - one.lo).constant for one in (rows, columns, loop)]
    steps = [_step(first, rows.symbol, 8), _step(first, loop.symbol),
             _step(second, columns.symbol, 8, 2), _step(second, loop.symbol)]  # fmt: skip
    numbers = ", ".join(str(number) for number in (*counts, *steps))
    unit = UNITS[first.node.dtype]
    return f"multiplied<{unit}, {numbers}>({scope.nodes[total.id]}, {pointers});"


def _warpgroup(loop: For, scope: Scope) -> str:
    """Return the call that begins to add the products of two tiles to the sums of four warps."""
    _, columns, total, *factors = _product(loop)
    numbers = [str((one.hi - one.lo).constant) for one in (columns, loop)]
    tiles = []
    for place in factors:
        far = place.node.shape[2].constant
        turned = _step(place, loop.symbol) != 1
        numbers += [str(far), "true" if turned else "false"]
        start = (place.index[0], *(const(0) for _ in place.index[1:]))
        tiles.append(f"&{scope.element(place.node, start)}")
    unit = WIDE[factors[0].node.dtype]
    sums = scope.nodes[total.id]
    return f"multiplied_wide<{unit}, {', '.join(numbers)}>({sums}, {', '.join(tiles)});"


def _settled(loop: For, scope: Scope) -> str:
    """Return the call behind which sums may be read."""
    total = reads((loop,))[0]
    return f"settled<{total.bytes // total.dtype.itemsize}>({scope.nodes[total.id]});"


def _paired(loop: For, scope: Scope) -> str:
    """Return the call that stores neighbours: what is a sum as it is is computed once more."""
    store, dtype = _stored(loop), scope.dialect.types[_stored(loop).access.node.dtype]
    assert _step(store.access, loop.symbol) == 1
    rounds = ({loop.symbol: const(at)} for at in range((loop.hi - loop.lo).constant or 0))
    values = [scope.expression(substitute_expr(store.value, one)).text for one in rounds]
    if isinstance(store.value, Read) and store.value.dtype.bits == 32:
        values = [f"computed({value})" for value in values]
    to = _pointer(store.access, {loop.symbol: const(0)}, scope)
    return f"stored<{dtype}>({to}, {', '.join(values)});"


def _stored(loop: For) -> Store:
    return _store(tuple(stmt for stmt in loop.body if not isinstance(stmt, Comment)))


def _atomic(loop: For, scope: Scope) -> str:
    """Return the call that updates an element."""
    (update,) = loop.body
    assert isinstance(update, Update) and update.pair is None
    place, value = update.access, scope.expression(update.value).text
    name = f"atomic_{update.op.name}_{place.node.dtype.short}"
    return f"{name}(&{scope.element(place.node, place.index)}, {value});"


def _elemental(loop: For, scope: Scope) -> str | None:
    """Return the call that stores a function of each of neighbours; None where what it stores or
    is given are no neighbours, or where the function can only be inlined."""
    store, start = _stored(loop), {loop.symbol: loop.lo}
    value = substitute_expr(store.value, start)
    assert isinstance(store.value, Apply) and isinstance(value, Apply)
    name, paren, _ = scope.expression(value).text.partition("(")
    places = [store.access]
    for one in store.value.args:
        if not isinstance(one, Read) or one.dtype is not store.value.dtype:
            return None
        places.append(Access(one.node, one.index))
    nodes = {place.node.id for place in places}
    if not paren or not prelude.is_piece(each := f"each_{name}") or len(nodes) < len(places):
        return None
    if not all(_is_neighbour(place, loop.symbol) for place in places):
        return None
    given = [_pointer(place, start, scope) for place in places]
    return f"{each}({', '.join(given)}, {scope.affine(loop.hi - loop.lo).text});"


def _is_neighbour(place: Access, symbol: Symbol) -> bool:
    """Whether each iteration has the element that follows the one of the iteration before it."""
    index, strides = place.index, place.node.element_strides
    if not all(isinstance(one, Affine) for one in index) or not index:
        return False
    known = all(stride.constant is not None for stride in strides)
    return known and _step(place, symbol) == 1


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


def _is_multiple(place: Access, values: dict[Symbol, Affine], size: int) -> bool:
    """Whether an element is at a multiple of so many bytes if its array is."""
    for index, stride in zip(place.index, place.node.element_strides, strict=True):
        at = moved(index, values) if isinstance(index, Affine) else None
        if at is None or stride.constant is None:
            return False
        parts = [at.offset, *(k for _, k in at.terms)]
        if any(part * stride.constant * place.node.dtype.itemsize % size for part in parts):
            return False
    return True


def _pointer(place: Access, values: dict[Symbol, Affine], scope: Scope) -> str:
    index = tuple(moved(one, values) for one in place.index if isinstance(one, Affine))
    return f"&{scope.element(place.node, index)}"
