"""Intrinsic calls: statements and loops printed as one prelude call: vectors, tensor cores.

A call has the semantics of the statement, except for the order in which a device adds products. The
functions are in `cuda/csrc`: `tensors.h`, `atomics.h`.
"""

from __future__ import annotations

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Access
from ...lowering.ir.expressions import Apply, Cast, Expr, Read
from ...lowering.ir.indexing import Affine, Symbol, const
from ...lowering.ir.indexing import substitute as moved
from ...lowering.ir.instructions import VECTOR_BYTES, CopyVector, MatMul, StoreVector
from ...lowering.ir.loops import Comment, For, Stmt, Store, Update
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import substitute_expr
from . import prelude
from .c_expression import Scope

WARP_UNITS = {
    dtypes.float16: "product_f16",
    dtypes.bfloat16: "product_bf16",
    dtypes.float32: "product_tf32",
}
"""The multiply-accumulate unit of a warp for factors of a type."""
WARPGROUP_UNITS = {dtypes.float16: "wide_f16", dtypes.bfloat16: "wide_bf16"}
"""The same for a warpgroup of four warps."""


def copy_vector(copy: CopyVector, scope: Scope) -> str:
    """Return the call that copies contiguous elements."""
    assert copy.count * copy.source.dtype.itemsize == VECTOR_BYTES
    accesses = copy.target, Access(copy.source.node, copy.source.index)
    target, source = (f"&{scope.element(one.node, one.index)}" for one in accesses)
    return f"{'at_once' if aligned_array(copy) else 'copied'}({target}, {source});"


def store_vector(store: StoreVector, scope: Scope) -> str:
    """Return the call that stores contiguous values; a plain accumulator of 32 bits is copied by
    `computed` first."""
    access, first = store.access, store.values[0]
    values = [scope.expression(value).text for value in store.values]
    if isinstance(first, Read) and first.dtype.bits == 32:
        values = [f"computed({value})" for value in values]
    target = f"&{scope.element(access.node, access.index)}"
    return f"stored<{scope.dialect.types[access.node.dtype]}>({target}, {', '.join(values)});"


def aligned_array(stmt: Stmt) -> Node | None:
    """Return the array whose base a statement requires to be aligned, None if there is none: it
    accesses it in units at multiples of their size from its base."""
    match stmt:
        case CopyVector(_, Read(node, index)):
            is_whole = node.strides is None and node.static_shape is not None
            is_aligned = is_whole and _is_aligned(Access(node, index), VECTOR_BYTES)
            return node if is_aligned else None
        case StoreVector(access):
            return access.node
        case _:
            return None


def multiply(matmul: MatMul, scope: Scope) -> str:
    """Return the call that adds the product of two tiles to accumulators, or starts to."""
    match matmul.unit:
        case "warp":
            return _warp_product(matmul, scope)
        case "warpgroup":
            return _warpgroup_product(matmul, scope)


def _warp_product(matmul: MatMul, scope: Scope) -> str:
    """Return the call that adds the product of two tiles to a warp's accumulators."""
    (rows, columns, terms), accumulator = matmul.over, matmul.accumulator.node
    first, second = _factor_access(matmul.first), _factor_access(matmul.second)
    start = {one.symbol: const(0) for one in matmul.over}
    pointers = ", ".join(_pointer(factor, start, scope) for factor in (first, second))
    counts = [(one.hi - one.lo).constant for one in matmul.over]
    steps = [_step(first, rows.symbol, 8), _step(first, terms.symbol),
             _step(second, columns.symbol, 8, 2), _step(second, terms.symbol)]  # fmt: skip
    numbers = ", ".join(str(number) for number in (*counts, *steps))
    unit = WARP_UNITS[first.node.dtype]
    return f"multiplied<{unit}, {numbers}>({scope.nodes[accumulator.id]}, {pointers});"


def _warpgroup_product(matmul: MatMul, scope: Scope) -> str:
    """Return the call that starts adding the product of two tiles to a warpgroup's accumulators."""
    (_, columns, terms), tiles = matmul.over, []
    numbers = [str((one.hi - one.lo).constant) for one in (columns, terms)]
    factors = _factor_access(matmul.first), _factor_access(matmul.second)
    for factor in factors:
        leading_size = factor.node.shape[2].constant
        is_transposed = _step(factor, terms.symbol) != 1
        numbers += [str(leading_size), "true" if is_transposed else "false"]
        start = (factor.index[0], *(const(0) for _ in factor.index[1:]))
        tiles.append(f"&{scope.element(factor.node, start)}")
    unit = WARPGROUP_UNITS[factors[0].node.dtype]
    accumulator = scope.nodes[matmul.accumulator.node.id]
    return f"multiplied_wide<{unit}, {', '.join(numbers)}>({accumulator}, {', '.join(tiles)});"


def await_products(sums: Node, scope: Scope) -> str:
    """Return the call that waits until accumulators may be read."""
    return f"settled<{sums.bytes // sums.dtype.itemsize}>({scope.nodes[sums.id]});"


def atomic_update(update: Update, scope: Scope) -> str:
    """Return the call that updates an element atomically."""
    assert update.pair is None
    access, value = update.access, scope.expression(update.value).text
    name = f"atomic_{update.op.name}_{access.node.dtype.short}"
    return f"{name}(&{scope.element(access.node, access.index)}, {value});"


def elemental_call(loop: For, scope: Scope) -> str | None:
    """Return the call that maps an elemental function over contiguous elements; None for other
    loops, where operands are not contiguous, or where the function can only be inlined."""
    if loop.kind != "elemental":
        return None
    (store,) = (stmt for stmt in loop.body if not isinstance(stmt, Comment))
    assert isinstance(store, Store)
    start = {loop.symbol: loop.lo}
    value = substitute_expr(store.value, start)
    assert isinstance(store.value, Apply) and isinstance(value, Apply)
    name, paren, _ = scope.expression(value).text.partition("(")
    accesses = [store.access]
    for argument in store.value.args:
        if not isinstance(argument, Read) or argument.dtype is not store.value.dtype:
            return None
        accesses.append(Access(argument.node, argument.index))
    nodes = {access.node.id for access in accesses}
    if (
        not paren
        or not prelude.is_prelude_name(map_function := f"each_{name}")
        or len(nodes) < len(accesses)
    ):
        return None
    if not all(_has_unit_stride(access, loop.symbol) for access in accesses):
        return None
    pointers = [_pointer(access, start, scope) for access in accesses]
    return f"{map_function}({', '.join(pointers)}, {scope.affine(loop.hi - loop.lo).text});"


def _has_unit_stride(access: Access, symbol: Symbol) -> bool:
    """Whether an access has stride 1 in a loop's index variable."""
    index, strides = access.index, access.node.element_strides
    if not all(isinstance(subscript, Affine) for subscript in index) or not index:
        return False
    has_static_strides = all(stride.constant is not None for stride in strides)
    return has_static_strides and _step(access, symbol) == 1


def _factor_access(value: Expr) -> Access:
    """Return the access that reads a factor."""
    value = value.value if isinstance(value, Cast) else value
    assert isinstance(value, Read)
    return Access(value.node, value.index)


def _step(access: Access, symbol: Symbol, by: int = 1, iterations: int = 1) -> int:
    """Return the distance in elements after so many iterations, in units of `by`."""
    distance = 0
    for index, stride in zip(access.index, access.node.element_strides, strict=True):
        assert isinstance(index, Affine)
        gap = (
            moved(index, {symbol: const(iterations)}) - moved(index, {symbol: const(0)})
        ).constant
        assert gap is not None
        if gap:
            assert stride.constant is not None
            distance += gap * stride.constant
    assert distance % by == 0
    return distance // by


def _is_aligned(access: Access, size: int) -> bool:
    """Whether an element is aligned to `size` bytes if its array is."""
    for index, stride in zip(access.index, access.node.element_strides, strict=True):
        if not isinstance(index, Affine) or stride.constant is None:
            return False
        terms = [index.offset, *(k for _, k in index.terms)]
        if any(term * stride.constant * access.node.dtype.itemsize % size for term in terms):
            return False
    return True


def _pointer(access: Access, values: dict[Symbol, Affine], scope: Scope) -> str:
    index = tuple(
        moved(subscript, values) for subscript in access.index if isinstance(subscript, Affine)
    )
    return f"&{scope.element(access.node, index)}"
