"""Composite functions written in the language itself; `sorting` and `solvers` inline them.

Each text is one function over arrays that its caller has made: what it writes is a copy or an
output. `clamp` marks positions that are in range by construction.
"""

SORT_ROWS = """
def sort_rows(x, w):
    rows, n = x.shape
    for r in range(rows):
        for start in range(0, n, 16):
            for k in range(start + 1, min(start + 16, n)):
                q = x[r, k]
                at = k
                while at > start:
                    p = x[r, clamp(at - 1)]
                    if not (q < p or (p != p and q == q)):
                        break
                    x[r, clamp(at)] = p
                    at -= 1
                x[r, clamp(at)] = q
        width = 16
        while width < n:
            start = 0
            while start < n:
                middle = min(start + width, n)
                stop = min(start + 2 * width, n)
                a = start
                b = middle
                if stop - start == 2 * width:
                    c = middle - 1
                    d = stop - 1
                    for k in range(start, middle):
                        p = x[r, clamp(a)]
                        q = x[r, clamp(b)]
                        step = int((q < p) | ((p != p) & (q == q)))
                        w[r, k] = x[r, clamp(a + step * (b - a))]
                        a += 1 - step
                        b += step
                        e = x[r, clamp(c)]
                        f = x[r, clamp(d)]
                        back = int((f < e) | ((e != e) & (f == f)))
                        w[r, clamp(stop - 1 - k + start)] = x[r, clamp(d - back * (d - c))]
                        c -= back
                        d -= 1 - back
                else:
                    for k in range(start, stop):
                        left = a < middle
                        if left and b < stop:
                            p = x[r, clamp(a)]
                            q = x[r, clamp(b)]
                            left = not (q < p or (p != p and q == q))
                        if left:
                            w[r, k] = x[r, clamp(a)]
                            a += 1
                        else:
                            w[r, k] = x[r, clamp(b)]
                            b += 1
                start = stop
            for k in range(n):
                x[r, k] = w[r, k]
            width = 2 * width
"""
"""Merge sort of each row in place, bottom up, NaN last; `w` is scratch of the same shape.

Runs of 16 are made by insertion. Two runs of one length are merged from both ends at once, each end
as many steps as a run has elements, so that neither run ends before; and without a branch.
"""

ARGSORT_ROWS = """
def argsort_rows(x, order, w):
    rows, n = x.shape
    for r in range(rows):
        for start in range(0, n, 16):
            for k in range(start + 1, min(start + 16, n)):
                here = order[r, k]
                q = x[r, clamp(here)]
                at = k
                while at > start:
                    there = order[r, clamp(at - 1)]
                    p = x[r, clamp(there)]
                    if not (q < p or (p != p and q == q)):
                        break
                    order[r, clamp(at)] = there
                    at -= 1
                order[r, clamp(at)] = here
        width = 16
        while width < n:
            start = 0
            while start < n:
                middle = min(start + width, n)
                stop = min(start + 2 * width, n)
                a = start
                b = middle
                if stop - start == 2 * width:
                    c = middle - 1
                    d = stop - 1
                    for k in range(start, middle):
                        i = order[r, clamp(a)]
                        j = order[r, clamp(b)]
                        p = x[r, clamp(i)]
                        q = x[r, clamp(j)]
                        step = int((q < p) | ((p != p) & (q == q)))
                        w[r, k] = i + step * (j - i)
                        a += 1 - step
                        b += step
                        i = order[r, clamp(c)]
                        j = order[r, clamp(d)]
                        p = x[r, clamp(i)]
                        q = x[r, clamp(j)]
                        back = int((q < p) | ((p != p) & (q == q)))
                        w[r, clamp(stop - 1 - k + start)] = j - back * (j - i)
                        c -= back
                        d -= 1 - back
                else:
                    for k in range(start, stop):
                        left = a < middle
                        if left and b < stop:
                            p = x[r, clamp(order[r, clamp(a)])]
                            q = x[r, clamp(order[r, clamp(b)])]
                            left = not (q < p or (p != p and q == q))
                        if left:
                            w[r, k] = order[r, clamp(a)]
                            a += 1
                        else:
                            w[r, k] = order[r, clamp(b)]
                            b += 1
                start = stop
            for k in range(n):
                order[r, k] = w[r, k]
            width = 2 * width
"""
"""Stable merge sort of the positions in `order` by the values of each row, NaN last."""

SEARCH = """
def search(a, v, out, right):
    for k in range(len(v)):
        value = v[k]
        lo = 0
        hi = len(a)
        while lo < hi:
            middle = (lo + hi) // 2
            p = a[clamp(middle)]
            if right:
                below = not (value < p or (p != p and value == value))
            else:
                below = p < value or (value != value and p == p)
            if below:
                lo = middle + 1
            else:
                hi = middle
        out[k] = lo
"""
"""Where each value goes into a sorted line: before its equals, or after them with `right`."""

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
    for k in range(len(a)):
        value = a[k]
        if value >= edges[0] and value <= edges[bins]:
            lo = 0
            hi = bins
            while hi - lo > 1:
                middle = (lo + hi) // 2
                if edges[clamp(middle)] <= value:
                    lo = middle
                else:
                    hi = middle
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

DETERMINANT = """
def determinant(a):
    n = a.shape[0]
    result = 1.0
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
            result = -result
        result = result * a[k, k]
        if best != 0:
            for i in range(k + 1, n):
                f = a[i, k] / a[k, k]
                a[i, k + 1:] -= f * a[k, k + 1:]
    return result
"""
"""The product of the pivots of an elimination; `a` is used up."""

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
