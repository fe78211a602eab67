"""Kernels as a user of Triton writes them, on tensors of PyTorch; see `peers`.

As its tutorials have them: blocks of neighbours, a row each, products whose blocks run in groups so
that they find in the cache what others read, attention that goes through the keys once.
"""

import triton
import triton.language as tl

BLOCK = 1024
GROUP = 8
QUERIES, KEYS = 64, 64


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
def _layer_norm(y, x, gain, shift, columns, epsilon, WIDE: tl.constexpr):
    at = tl.arange(0, WIDE)
    inside = at < columns
    here = tl.program_id(0) * columns + at
    row = tl.load(x + here, mask=inside, other=0.0)
    centred = tl.where(inside, row - tl.sum(row, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    by, more = tl.load(gain + at, mask=inside), tl.load(shift + at, mask=inside)
    tl.store(y + here, centred * scale * by + more, mask=inside)


def layer_norm(y, x, gain, shift, epsilon):
    """A row each, which is read once."""
    rows, columns = x.shape
    wide = triton.next_power_of_2(columns)
    _layer_norm[(rows,)](y, x, gain, shift, columns, epsilon, WIDE=wide, num_warps=8)


@triton.jit
def _product(
    c, a, b, n, HIGH: tl.constexpr, BROAD: tl.constexpr, DEPTH: tl.constexpr,
    GROUP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    number, down, across = tl.program_id(0), tl.cdiv(n, HIGH), tl.cdiv(n, BROAD)
    first = number // (GROUP * across) * GROUP
    size = tl.minimum(down - first, GROUP)
    place = number % (GROUP * across)
    row = (first + place % size) * HIGH + tl.arange(0, HIGH)[:, None]
    column = place // size * BROAD + tl.arange(0, BROAD)[None, :]
    total = tl.zeros((HIGH, BROAD), tl.float32)
    for start in range(0, n, DEPTH):
        beside = start + tl.arange(0, DEPTH)[None, :]
        below = start + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + row * n + beside, mask=(row < n) & (beside < n), other=0.0)
        right = tl.load(b + below * n + column, mask=(below < n) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + row * n + column, total, mask=(row < n) & (column < n))


def _multiplied(c, a, b, precision):
    n, narrow = len(a), a.element_size() == 2
    high, broad, depth = (128, 256, 64) if narrow else (128, 128, 32)
    tiles = triton.cdiv(n, high) * triton.cdiv(n, broad)
    _product[(tiles,)](
        c, a, b, n, HIGH=high, BROAD=broad, DEPTH=depth, GROUP=GROUP, PRECISION=precision,
        num_warps=8, num_stages=3,
    )  # fmt: skip


def gemm_f32(c, a, b):
    """A tile each; sums in float32, whatever the matrices are."""
    _multiplied(c, a, b, "ieee")


def gemm_tf32(c, a, b):
    """The same of float32 by tensor cores."""
    _multiplied(c, a, b, "tf32")


@triton.jit
def _attention(
    y, q, k, v, scale, tokens, width,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * tokens * width
    row = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    along = tl.arange(0, WIDE)
    here = head + row[:, None] * width + along[None, :]
    inside = (row[:, None] < tokens) & (along[None, :] < width)
    query = tl.load(q + here, mask=inside, other=0.0)
    most = tl.zeros((QUERIES,), tl.float32) - float("inf")
    weight = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, WIDE), tl.float32)
    for start in range(0, tokens, KEYS):
        key = start + tl.arange(0, KEYS)
        turned = head + key[None, :] * width + along[:, None]
        is_key = (key[None, :] < tokens) & (along[:, None] < width)
        keys = tl.load(k + turned, mask=is_key, other=0.0)
        score = scale * tl.dot(query, keys, input_precision="ieee")
        score = tl.where(key[None, :] < tokens, score, -float("inf"))
        now = tl.maximum(most, tl.max(score, axis=1))
        part, before = tl.exp(score - now[:, None]), tl.exp(most - now)
        there = head + key[:, None] * width + along[None, :]
        is_value = (key[:, None] < tokens) & (along[None, :] < width)
        values = tl.load(v + there, mask=is_value, other=0.0)
        more = tl.dot(tl.cast(part, values.dtype), values, input_precision="ieee")
        total = total * before[:, None] + more
        weight = weight * before + tl.sum(part, axis=1)
        most = now
    tl.store(y + here, total / weight[:, None], mask=inside)


def attention(y, q, k, v, scale):
    """Some queries of a head each."""
    batch, heads, tokens, width = q.shape
    wide = max(16, triton.next_power_of_2(width))
    _attention[(triton.cdiv(tokens, QUERIES), batch * heads)](
        y, q, k, v, scale, tokens, width, QUERIES=QUERIES, KEYS=KEYS, WIDE=wide, num_warps=4,
    )  # fmt: skip
