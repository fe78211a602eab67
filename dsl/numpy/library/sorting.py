"""Sorting and selection of rows: insertion sort, radix sort, quickselect and sorting networks.

The texts are library definitions in the language, which handlers inline.
"""

import textwrap

_SPREAD = """
total = 0
for b in range(256):
    size = starts[{digit}, b]
    starts[{digit}, b] = total
    total += size
for k in range(n):
    q = {x}[r, k]
    b = int(ordinal(q) >> (8 * ({digit}))) & 255
    at = starts[{digit}, b]
    starts[{digit}, b] = at + 1
    {w}[r, clamp(at)] = q
    if order is not None:
        {places}[r, clamp(at)] = {order}[r, k]
"""
_THERE = _SPREAD.format(x="x", w="w", order="order", places="places", digit="2 * pair")
_BACK = _SPREAD.format(x="w", w="x", order="places", places="order", digit="2 * pair + 1")

SORT_ROWS = f"""
def sort_rows(x, order, w, places, ordinal, digits):
    rows, n = x.shape
    for r in range(rows):
        falls = False
        for k in range(1, n):
            falls |= ordinal(x[r, k]) < ordinal(x[r, k - 1])
        if n <= 64:
            if falls:
                for k in range(1, n):
                    q = x[r, k]
                    if order is not None:
                        here = order[r, k]
                    at = k
                    while at > 0:
                        p = x[r, clamp(at - 1)]
                        if ordinal(p) <= ordinal(q):
                            break
                        x[r, clamp(at)] = p
                        if order is not None:
                            order[r, clamp(at)] = order[r, clamp(at - 1)]
                        at -= 1
                    x[r, clamp(at)] = q
                    if order is not None:
                        order[r, clamp(at)] = here
        elif falls:
            starts = np.zeros((digits, 256), np.int64)
            for k in range(n):
                key = ordinal(x[r, k])
                for d in range(digits):
                    starts[d, int(key >> (8 * d)) & 255] += 1
            first = ordinal(x[r, 0])
            for pair in range((digits + 1) // 2):
                alone = starts[2 * pair, int(first >> (16 * pair)) & 255] == n
                if digits > 1:
                    alone &= starts[2 * pair + 1, int(first >> (16 * pair + 8)) & 255] == n
                if alone:
                    continue
{textwrap.indent(_THERE, 16 * " ")}
                if digits > 1:
{textwrap.indent(_BACK, 20 * " ")}
                else:
                    for k in range(n):
                        x[r, k] = w[r, k]
                        if order is not None:
                            order[r, k] = places[r, k]
"""
"""Sort each row in place, stably, NaN last, and apply the permutation to `order` if there is one.

Short rows are sorted by insertion, others by radix sort, least significant digit first: a counting
sort a digit. A pair of digits in which all elements agree is skipped, and so is a sorted row.
`ordinal` is the operation of that name, an order-preserving integer of `digits` digits to the base
256; `w` and `places` are scratch.

Source: D. E. Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R.
"""


_PART = """
at = lo
for j in range(lo, hi):
    q = x[r, clamp(j)]
    x[r, clamp(at)] = q
    w[r, clamp(j - at)] = q
    if order is not None:
        here = order[r, clamp(j)]
        order[r, clamp(at)] = here
        places[r, clamp(j - at)] = here
    at += int(ordinal(q) {test} pivot)
for j in range(hi - at):
    x[r, clamp(at + j)] = w[r, clamp(j)]
    if order is not None:
        order[r, clamp(at + j)] = places[r, clamp(j)]
"""
SELECT_ROWS = f"""
def select_rows(x, order, w, places, turns, ordinal):
    rows, n = x.shape
    for r in range(rows):
        start = 0
        for turn in turns:
            k = turn + n if turn < 0 else turn
            lo = start
            hi = n
            patience = 2
            while (1 << (patience >> 1)) < n:
                patience += 2
            while hi - lo > 1:
                tries = 127 if hi - lo > 4096 else min(hi - lo, 3)
                for j in range(tries):
                    q = x[r, clamp(lo + (hi - lo - 1) * j // (tries - 1))]
                    at = j
                    while at > 0:
                        p = w[r, clamp(at - 1)]
                        if ordinal(p) <= ordinal(q):
                            break
                        w[r, clamp(at)] = p
                        at -= 1
                    w[r, clamp(at)] = q
                at = (k - lo) * tries // (hi - lo)
                beside = tries // 16
                at += beside if at < tries // 2 else -beside
                pivot = ordinal(w[r, clamp(at)])
                patience -= 1
                if patience < 0:
                    least = pivot
                    most = pivot
                    for j in range(lo, hi):
                        key = ordinal(x[r, clamp(j)])
                        least = min(least, key)
                        most = max(most, key)
                    pivot = least + ((most - least) >> 1)
{textwrap.indent(_PART.format(test="<"), 16 * " ")}
                if at == lo:
{textwrap.indent(_PART.format(test="<="), 20 * " ")}
                    lo = hi if k < at else at
                elif k < at:
                    hi = at
                else:
                    lo = at
            start = k + 1
"""
"""Quickselect: partition each row in place around the order statistics `turns`, which increase.

The pivot is an element of a sorted sample, a little beyond the position sought, so that the larger
part is discarded. When the iterations budgeted (twice the logarithm of the length) are used up,
pivots bisect the range of the ordinals: at most as many further iterations as these have bits. A
least element as the pivot, which partitions nothing, is handled by partitioning with `<=`.
`w` and `places` are scratch.

Source: R. W. Floyd and R. L. Rivest, Expected time bounds for selection, 1975.
"""


def sort_few(count: int) -> str:
    """Return the text of a sorting network for columns of `count` integers, in place.

    Bubble sort with compare-exchanges as minimum and maximum: no control flow depends on data, so
    that the loop over columns vectorizes. It is distributed into loops of at most about 36
    compare-exchanges, more than which C compilers do not vectorize.

    >>> print(sort_few(2))
    def sort_few(x):
        for k in range(x.shape[1]):
            v0 = x[0, k]
            v1 = x[1, k]
            less = min(v0, v1)
            v1 = max(v0, v1)
            v0 = less
            x[0, k] = v0
            x[1, k] = v1
    """
    lines = ["def sort_few(x):"]
    end = count
    while end > 1:
        rows = range(end)
        lines += ["    for k in range(x.shape[1]):", *(f"        v{n} = x[{n}, k]" for n in rows)]
        done = 0
        while end > 1 and done < 36:
            for n in range(end - 1):
                lines += [f"        less = min(v{n}, v{n + 1})"]
                lines += [f"        v{n + 1} = max(v{n}, v{n + 1})", f"        v{n} = less"]
            done += end - 1
            end -= 1
        lines += [f"        x[{n}, k] = v{n}" for n in rows]
    return "\n".join(lines)


TURNED = """
def turned(x, y, turn):
    if turn is None:
        y[...] = x
    else:
        y[...] = turn(x)
"""
"""Map each element by `turn` (to its ordinal, or back from it), or copy it where there is none."""

SORT_IN_LANES = """
def sort_beside(x, t):
    rows, n = x.shape
    lanes = t.shape[2]
    top = 1
    while 2 * top < n:
        top *= 2
    for g in range(t.shape[0]):
        for b in range(lanes):
            if g * lanes + b < rows:
                for k in range(n):
                    t[g, k, b] = x[g * lanes + b, k]
            else:
                for k in range(n):
                    t[g, k, b] = 0
        p = top
        while p > 0:
            q = top
            r = 0
            d = p
            while d > 0:
                start = r
                while start < n - d:
                    for i in range(start, min(start + p, n - d)):
                        for b in range(lanes):
                            u = t[g, clamp(i), b]
                            v = t[g, clamp(i + d), b]
                            t[g, clamp(i), b] = min(u, v)
                            t[g, clamp(i + d), b] = max(u, v)
                    start += 2 * p
                d = q - p
                q >>= 1
                r = p
            p >>= 1
        for b in range(lanes):
            if g * lanes + b < rows:
                for k in range(n):
                    x[g * lanes + b, k] = t[g, k, b]
"""
"""Merge-exchange sorting network over rows of integers in place, one row a SIMD lane.

The compare-exchanges do not depend on the data, so that all lanes make the same ones. `t` is
scratch: a group of rows, the position in a row, and the lane. The sort is not stable, which equal
integers do not show.

Source: D. E. Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.
"""
