"""Composite functions written in the language itself; `sorting` and `solvers` inline them.

Each text is one function over arrays that its caller has made: what it writes is a copy or an
output. `clamp` marks positions that are in range by construction.
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
"""Put each row in order in place, stably, NaN last; `order`, where there is one, goes along.

Rows of few are put in order by insertion, others digit by digit, the last one first: numbers go
where those with smaller digits end, in the order in which they are. Two digits that all have in
common are left out, and so is a row that is in order. `ordinal` is the operation of that name, of
so many digits to the base 256; `w` and `places` are scratch.

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
"""Put in place what sorting puts at each of `turns`, which rise, and part the rest around it.

A pivot is looked for among some, a little beyond the place, and the range on its other side is
left. Where that takes too long, pivots halve the range of the ordinals, so that there are no more
rounds than these have bits and twice the logarithm of the length. What is least is left at once.
`w` and `places` are scratch.

Source: R. W. Floyd and R. L. Rivest, Expected time bounds for selection.
"""


def sort_few(count: int) -> str:
    """Return the text that sorts columns of so few numbers in place, stably, NaN last.

    Neighbours change places where they have to, as often as the largest one may have to move:
    nothing depends on data, so that many columns are sorted side by side. A loop does no more
    than compilers make vectors of.

    >>> print(sort_few(2))
    def sort_few(x):
        for k in range(x.shape[1]):
            v0 = x[0, k]
            v1 = x[1, k]
            less = np.fmin(v0, v1)
            v1 = np.maximum(v1, v0)
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
                lines += [f"        less = np.fmin(v{n}, v{n + 1})"]
                lines += [f"        v{n + 1} = np.maximum(v{n + 1}, v{n})", f"        v{n} = less"]
            done += end - 1
            end -= 1
        lines += [f"        x[{n}, k] = v{n}" for n in rows]
    return "\n".join(lines)


SEARCH = """
def search(a, v, out, right):
    size = len(a)
    turns = 0
    while size >> turns > 0:
        turns += 1
    for k in range(len(v)):
        value = v[k]
        lo = 0
        if value == value:
            for turn in range(turns):
                half = ((size >> turn) + 1) >> 1
                p = a[clamp(lo + half - 1)]
                below = p <= value if right else p < value
                lo += half if below else 0
        elif right:
            lo = size
        else:
            for turn in range(turns):
                half = ((size >> turn) + 1) >> 1
                p = a[clamp(lo + half - 1)]
                lo += half if p == p else 0
        out[k] = lo
"""
"""Where each value goes into a sorted line: before its equals, or after them with `right`.

Each value takes as many rounds as others, and none of them branches: what a processor foresees.
"""

HISTOGRAM_EQUAL = """
def histogram_equal(a, weights, edges, counts):
    bins = len(counts)
    low = edges[0]
    high = edges[bins]
    for k in range(len(a)):
        value = a[k]
        if value >= low and value <= high:
            at = int((value - low) / (high - low) * bins)
            if at >= bins:
                at = bins - 1
            if value < edges[clamp(at)]:
                at -= 1
            elif at != bins - 1 and value >= edges[clamp(at + 1)]:
                at += 1
            counts[at] += weights[k]
"""
"""Add the weight of each value to its bin, for bins of one width."""

HISTOGRAM_EDGES = """
def histogram_edges(a, weights, edges, counts):
    bins = len(counts)
    turns = 0
    while (bins - 1) >> turns > 0:
        turns += 1
    for k in range(len(a)):
        value = a[k]
        if value >= edges[0] and value <= edges[bins]:
            lo = 0
            for turn in range(turns):
                half = (((bins - 1) >> turn) + 1) >> 1
                lo += half if edges[clamp(lo + half)] <= value else 0
            counts[lo] += weights[k]
"""
"""Add the weight of each value to its bin, for bins between any rising edges."""

INTERPOLATE = """
def interpolate(x, xp, fp, out, left, right):
    n = len(xp)
    for k in range(len(x)):
        v = x[k]
        if v < xp[0]:
            out[k] = left
        elif v > xp[n - 1]:
            out[k] = right
        elif v != v:
            out[k] = v
        else:
            lo = 0
            hi = n
            while hi - lo > 1:
                middle = (lo + hi) // 2
                if xp[clamp(middle)] <= v:
                    lo = middle
                else:
                    hi = middle
            if lo == n - 1:
                out[k] = fp[n - 1]
            else:
                rise = fp[clamp(lo + 1)] - fp[clamp(lo)]
                slope = rise / (xp[clamp(lo + 1)] - xp[clamp(lo)])
                out[k] = slope * (v - xp[clamp(lo)]) + fp[clamp(lo)]
"""
"""Piecewise linear interpolation."""

SOLVE = """
def solve(a, b):
    n = a.shape[0]
    for k in range(n):
        p = k
        best = abs(a[k, k])
        for i in range(k + 1, n):
            size = abs(a[i, k])
            if size > best:
                best = size
                p = i
        if best == 0:
            raise ValueError("singular matrix")
        if p != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[clamp(p), j]
                a[p, j] = t
            for j in range(b.shape[1]):
                u = b[k, j]
                b[k, j] = b[clamp(p), j]
                b[p, j] = u
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k + 1:] -= f * a[k, k + 1:]
            b[i] -= f * b[k]
    for k in range(n - 1, -1, -1):
        b[k] /= a[k, k]
        for i in range(k):
            b[i] -= a[i, k] * b[k]
"""
"""Gaussian elimination with partial pivoting; `b` becomes the solution, `a` is used up."""

_PIVOTS = """
def {name}(a):
    n = a.shape[0]
    {start}
    for k in range(n):
        p = k
        best = abs(a[k, k])
        for i in range(k + 1, n):
            size = abs(a[i, k])
            if size > best:
                best = size
                p = i
        if p != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[clamp(p), j]
                a[p, j] = t
            {turned}
        {taken}
        if best != 0:
            for i in range(k + 1, n):
                f = a[i, k] / a[k, k]
                a[i, k + 1:] -= f * a[k, k + 1:]
    return {result}
"""

DETERMINANT = _PIVOTS.format(
    name="determinant", start="result = 1.0", turned="result = -result",
    taken="result = result * a[k, k]", result="result",
)  # fmt: skip
"""The product of the pivots of an elimination; `a` is used up."""

SIGN_AND_LOG = _PIVOTS.format(
    name="slogdet", start="sign, size_log = 1.0, 0.0", turned="sign = -sign",
    taken="sign, size_log = sign * np.sign(a[k, k]), size_log + np.log(abs(a[k, k]))",
    result="sign, size_log",
)  # fmt: skip
"""The sign of that product, and the logarithm of its size, which may be none of a float."""

CHOLESKY = """
def cholesky(a):
    n = a.shape[0]
    for j in range(n):
        rest = np.real(a[j, j]) - np.sum(np.real(a[j, :j] * np.conj(a[j, :j])))
        if not rest > 0:
            raise ValueError("matrix is not positive definite")
        a[j, j] = np.sqrt(rest)
        for i in range(j + 1, n):
            a[i, j] = (a[i, j] - np.sum(a[i, :j] * np.conj(a[j, :j]))) / a[j, j]
        a[j, j + 1:] = 0
"""
"""The lower factor of a positive definite matrix, in place."""
