"""Kernels as a user of Triton writes them, on tensors of PyTorch; see `peers`."""

import triton
import triton.language as tl

BLOCK = 1024
SIDE, DEPTH = 128, 32


@triton.jit
def _saxpy(z, x, y, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(z + at, total, mask=inside)


def saxpy(z, x, y, a):
    """A block of neighbours each."""
    n = x.numel()
    _saxpy[(triton.cdiv(n, BLOCK),)](z, x, y, a, n, BLOCK=BLOCK)


@triton.jit
def _softmax(y, x, columns, WIDE: tl.constexpr):
    at = tl.arange(0, WIDE)
    inside = at < columns
    here = tl.program_id(0) * columns + at
    row = tl.load(x + here, mask=inside, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + here, e / tl.sum(e, axis=0), mask=inside)


def softmax(y, x):
    """A row each."""
    rows, columns = x.shape
    wide = triton.next_power_of_2(columns)
    _softmax[(rows,)](y, x, columns, WIDE=wide, num_warps=8)


@triton.jit
def _product(c, a, b, n, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * SIDE + tl.arange(0, SIDE)[:, None]
    column = tl.program_id(1) * SIDE + tl.arange(0, SIDE)[None, :]
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for first in range(0, n, DEPTH):
        across = first + tl.arange(0, DEPTH)[None, :]
        down = first + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + row * n + across, mask=(row < n) & (across < n), other=0.0)
        right = tl.load(b + down * n + column, mask=(down < n) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < n) & (column < n))


def gemm_f32(c, a, b):
    """A tile each; sums in float32, whatever the matrices are."""
    n = len(a)
    tiles = triton.cdiv(n, SIDE)
    _product[(tiles, tiles)](c, a, b, n, SIDE=SIDE, DEPTH=DEPTH, num_warps=8)
