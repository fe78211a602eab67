"""Reshape: which axes of the old shape become which of the new one, and whether that is a view.

Old and new axes are matched in groups of equal size, as in `(n, h, w) -> (n, h // 2, 2, w)`. A
group with one old axis is split: the old index is affine in the new ones. A group with several
old axes is merged: they are found by division, unless the elements are copied, which then runs
over the old axes, where the new index is affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ....base.diagnostic import CdShapeError
from ....lowering.ir.expressions import Read
from ....lowering.ir.indexing import Affine, Symbol, const, floordiv, mod, multiply, var
from ...values.arrays import count
from ...values.broadcasting import shape_text
from ...values.builder import Context, error
from ...values.call_site import Site
from ...values.memory_order import binds, is_dense, is_mergeable
from ...values.types import cast
from ...values.values import Array


@dataclass(frozen=True, slots=True)
class Match:
    """Old axes that together have as many elements as the new ones."""

    old: tuple[int, ...]
    new: tuple[int, ...]


def reshaped(site: Site, value: Array, sizes: Sequence[Affine | None]) -> Array:
    """Return the array under a shape, where one size may be None: worked out from the others.

    CdShapeError CD0312 where the number of elements differs. A view where NumPy's is one.
    """
    shape = _completed(site, value.shape, sizes)
    if shape == value.shape:
        return value
    sizes_now = [count(each, range(len(each))).constant for each in (value.shape, shape)]
    if None not in sizes_now and sizes_now[0] != sizes_now[1]:
        raise _mismatch(site, value.shape, shape)
    if sizes_now[0] == 0:  # any place will do: there is no element
        nowhere = (const(0),) * value.rank
        return Array(site.ctx.axes(len(shape)), shape, value.at(nowhere), value.kind, value.copied)
    value = _whole_again(site, value)
    if shape == value.shape:
        return value
    matches = _matches(site, value.shape, shape)
    axes = site.ctx.axes(len(shape))
    splits = all(len(match.old) <= 1 for match in matches)
    shared = value.aliased is not None
    groups = [match.old for match in matches]
    fits = splits or (is_mergeable(site.ctx, value, groups) if shared else False)
    if fits:
        index = _indices(matches, value.shape, shape, axes)
        return Array(axes, shape, value.at(index), value.kind, value.copied)
    made = _copy(site, value, shape, matches)
    if fits is None:  # refused where somebody could tell
        binds(site.ctx, made, value, site.span)
        return made
    why = "is a copy, because this reshape cannot be a view"
    return replace(made, sealed=why) if shared and value.rank else made


def is_in_order(site: Site, value: Array, axes: Sequence[int]) -> bool | None:
    """Whether elements follow each other in memory without gaps, along the last of some axes first;
    None where only the run knows.

    From then on code knows how its arguments lie: it does for none that lie otherwise.
    """
    site.ctx.asks_layout = True
    return value.aliased is None or is_dense(site.ctx, value, axes)


def _whole_again(site: Site, value: Array) -> Array:
    """Return the array as it was before earlier reshapes, where a view is a whole array again."""
    read = value.view
    if read is None or read.node.strides is not None or read.node.rank == value.rank:
        return value
    sizes = count(value.shape, range(value.rank)), count(read.node.shape, range(read.node.rank))
    if sizes[0] != sizes[1] or not is_dense(site.ctx, value, range(value.rank)):
        return value
    return site.ctx.whole(read.node, site.span, value.kind)


def _mismatch(site: Site, old: Sequence[Affine], new: Sequence[Affine]) -> Exception:
    return error(
        "CD0312", CdShapeError,
        f"an array of shape {shape_text(old)} cannot be reshaped to {shape_text(new)}", site.span,
        notes=(f"{count(old, range(len(old)))} elements against {count(new, range(len(new)))}",),
    )  # fmt: skip


def _completed(
    site: Site, old: Sequence[Affine], sizes: Sequence[Affine | None]
) -> tuple[Affine, ...]:
    """Return the sizes with the missing one worked out."""
    given = [size for size in sizes if size is not None]
    if len(given) == len(sizes):
        return tuple(given)
    if any(size.constant == 0 for size in given):
        text = "no size can be worked out for -1 beside a size 0"
        raise error("CD0312", CdShapeError, text, site.span)
    if len(sizes) - len(given) > 1:
        raise error("CD0312", CdShapeError, "only one size may be -1", site.span)
    left, rest = list(old), []
    for size in given:
        if size in left:
            left.remove(size)
        else:
            rest.append(size)
    above, below = count(left, range(len(left))), count(rest, range(len(rest)))
    if below.constant == 0 or (
        below.constant and above.constant is not None and above.constant % below.constant
    ):
        shown = [const(-1) if size is None else size for size in sizes]
        raise _mismatch(site, old, shown)
    if below.constant is None or mod(above, below).constant != 0:
        site.ctx.equal_extents(mod(above, below), const(0), "the sizes do not divide", site.span)
    missing = floordiv(above, below)
    return tuple(missing if size is None else size for size in sizes)


def _matches(site: Site, old: Sequence[Affine], new: Sequence[Affine]) -> tuple[Match, ...]:
    """Return the groups, axes of size 1 left out."""
    ctx = site.ctx
    left = [n for n, size in enumerate(old) if size.constant != 1]
    right = [n for n, size in enumerate(new) if size.constant != 1]
    out: list[Match] = []
    while left and right:
        olds, news = [left.pop(0)], [right.pop(0)]
        while True:
            a, b = count(old, olds), count(new, news)
            if ctx.known.equal(a, b):
                break
            if left and _below(ctx, a, b):
                olds.append(left.pop(0))
            elif right and _below(ctx, b, a):
                news.append(right.pop(0))
            else:
                olds, news, left, right = [*olds, *left], [*news, *right], [], []
                ctx.equal_extents(count(old, olds), count(new, news), "reshape", site.span)
                break
        out.append(Match(tuple(olds), tuple(news)))
    for n in left:
        ctx.equal_extents(old[n], const(1), "reshape", site.span)
    for n in right:
        ctx.equal_extents(new[n], const(1), "reshape", site.span)
    return tuple(out)


def _below(ctx: Context, left: Affine, right: Affine) -> bool:
    return ctx.known.less(left, right)


def _indices(
    matches: Sequence[Match],
    old: Sequence[Affine],
    new: Sequence[Affine],
    axes: Sequence[Symbol],
) -> tuple[Affine, ...]:
    """Return the old index of the element at new index `axes`."""
    index = [const(0)] * len(old)
    for match in matches:
        flat = const(0)
        for n in match.new:
            flat = multiply(flat, new[n]) + var(axes[n])
        for n in reversed(match.old[1:]):
            index[n] = mod(flat, old[n])
            flat = floordiv(flat, old[n])
        index[match.old[0]] = flat
    return tuple(index)


def _copy(site: Site, value: Array, shape: tuple[Affine, ...], matches: Sequence[Match]) -> Array:
    """Return a new array of the shape, stored over the old axes: merging divides nothing."""
    node = site.ctx.node("reshaped", shape, value.kind.dtype)
    if matches or value.rank == 0:
        turned = [Match(match.new, match.old) for match in matches]
        index = _indices(turned, shape, value.shape, value.axes)
        target = Array(value.axes, value.shape, Read(node, index, site.span), value.kind)
        site.ctx.store(target, cast(value.body, node.dtype), site.span)
    return site.ctx.whole(node, site.span)
