"""Loops that are one call: what the calls are given."""

from __future__ import annotations

import pytest

from plusequals.backends.codegen import intrinsic_loops
from plusequals.backends.codegen.c_expression import Scope
from plusequals.backends.cuda.dialect import CUDA
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.expressions import Cast, Expr, Read
from plusequals.lowering.ir.indexing import Affine, Range, const, floordiv, mod, var
from plusequals.lowering.ir.instructions import CopyVector, MatMul, StoreVector
from plusequals.lowering.ir.loops import For, Store, Update
from plusequals.lowering.ir.ops import OPS

from .programs import apply, node, symbols

E, K, R, S, N = symbols("e k r s n")
A, B = node(1, "a", (64, 40), dtypes.float16), node(2, "b", (32, 72), dtypes.float16)
TOTAL = node(3, "total", (4, 4))
SCOPE = Scope(CUDA, {1: "a", 2: "b", 3: "total"}, frozenset())
SCOPE.symbols[N] = "n"


def copy(count: int = 8, first: int = 8) -> CopyVector:
    target, source = Access(B, (var(N), const(0))), Read(A, (var(N), const(first)))
    return CopyVector(target, source, count, (-1, -1))


def element(of: Read) -> Expr:
    return Cast(of, dtypes.float32)


def over(terms: int) -> tuple[Range, Range, Range]:
    rows, columns = (Range(symbol, const(0), const(4)) for symbol in (R, S))
    return rows, columns, Range(K, const(0), const(terms))


def product(row: Affine) -> MatMul:
    column = floordiv(var(S), const(2)) * 8 + mod(var(S), const(2)) + var(N) * 16
    first, second = Read(A, (row, var(K))), Read(B, (var(K), column))
    place = Access(TOTAL, (var(R), var(S)))
    return MatMul(place, element(first), element(second), over(32), "warp")


def test_other_loops_are_no_calls() -> None:
    loop = For(
        E, const(0), const(8), 1, (Store(Access(B, (var(N), var(E))), Read(A, (var(N), var(E)))),)
    )
    assert intrinsic_loops.elemental_call(loop, SCOPE) is None
    assert intrinsic_loops.aligned_array(loop) is None


def test_a_copy_is_given_where_its_first_elements_are() -> None:
    assert intrinsic_loops.copy_vector(copy(), SCOPE) == "at_once(&b[n*72], &a[n*40 + 8]);"
    assert intrinsic_loops.aligned_array(copy()) == A
    assert intrinsic_loops.copy_vector(copy(first=4), SCOPE) == "copied(&b[n*72], &a[n*40 + 4]);"
    assert intrinsic_loops.aligned_array(copy(first=4)) is None


@pytest.mark.parametrize("count", [4, 16])
def test_what_are_not_16_bytes_is_not_copied(count: int) -> None:
    with pytest.raises(AssertionError):
        intrinsic_loops.copy_vector(copy(count), SCOPE)


def test_a_product_is_given_the_tiles_and_how_far_it_is_to_what_comes_next() -> None:
    text = intrinsic_loops.multiply(product(var(R) * 8 + var(N)), SCOPE)
    assert text == "multiplied<product_f16, 4, 4, 32, 40, 1, 1, 72>(total, &a[n*40], &b[n*16]);"


def test_a_product_of_four_warps_is_given_whole_tiles() -> None:
    rows, columns = (
        node(4, "rows", (4, 1, 128, 64), dtypes.float16),
        node(5, "columns", (4, 4, 64, 64), dtypes.float16),
    )
    held, row, column = mod(var(N), const(4)), var(R) * 8, var(S)
    first = Read(rows, (held, const(0), row, var(K)))
    second = Read(columns, (held, floordiv(column, const(64)), var(K), mod(column, const(64))))
    place = Access(TOTAL, (var(R), var(S)))
    product = MatMul(place, element(first), element(second), over(64), "warpgroup")
    scope = Scope(CUDA, {3: "total", 4: "rows", 5: "columns"}, frozenset())
    scope.symbols[N], scope.swizzled = "n", frozenset({4, 5})
    text = intrinsic_loops.multiply(product, scope)
    assert text == (
        "multiplied_wide<wide_f16, 4, 64, 128, false, 64, true>(total, "
        "&rows[swizzled(mod_i64(n, 4)*8192)], &columns[swizzled(mod_i64(n, 4)*16384)]);"
    )
    assert intrinsic_loops.await_products(TOTAL, scope) == "settled<16>(total);"


def test_neighbours_are_stored_together() -> None:
    values = tuple(Read(A, (const(at), var(N))) for at in range(2))
    store = StoreVector(Access(B, (var(N), const(2))), -1, values)
    assert (
        intrinsic_loops.store_vector(store, SCOPE)
        == "stored<uint16_t>(&b[n*72 + 2], a[n], a[n + 40]);"
    )
    assert intrinsic_loops.aligned_array(store) == B
    place = Access(TOTAL, (var(N), const(0)))
    totals = [Read(TOTAL, (var(N), const(at))) for at in range(2)]
    twice = [apply("add", total, total) for total in totals]
    for several, said in ((totals, "computed({0})"), (twice, "{0} + {0}")):
        texts = ", ".join(said.format(f"total[n*4{more}]") for more in ("", " + 1"))
        store = StoreVector(place, -1, tuple(several))
        assert intrinsic_loops.store_vector(store, SCOPE) == f"stored<float>(&total[n*4], {texts});"


def test_an_atomic_update_is_given_the_element_and_what_is_added() -> None:
    target = Access(TOTAL, (var(N), const(1)))
    update = Update(target, OPS["add"], Read(TOTAL, (const(0), var(N))), atomic=True)
    text = intrinsic_loops.atomic_update(update, SCOPE)
    assert text == "atomic_add_f32(&total[n*4 + 1], total[n]);"
