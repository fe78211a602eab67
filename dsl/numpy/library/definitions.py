"""Library definitions in the language: binary search, quantiles, histograms, linear solvers.

Each text is one function that handlers inline. Arguments that it writes are copies or outputs that
its caller allocated. `clamp` marks subscripts that are in range by construction, so that they need
no check.
"""

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
"""Insertion points in a sorted vector: before equal elements, or after them with `right`.

Branch-free binary search: the iteration count depends on the length alone, and each iteration is a
select, so that there is no branch to mispredict.
"""

RISING = """
def rising(edges, out):
    n = len(edges)
    first = 1
    while first < n and edges[clamp(first)] == edges[0]:
        first += 1
    falls = first < n and not edges[0] < edges[clamp(first)]
    for k in range(n - 1):
        low, high = edges[k], edges[clamp(k + 1)]
        nan_between = high != high and low == low if falls else low != low and high == high
        if nan_between or ((low < high) if falls else (low > high)):
            raise ValueError("bins must be monotonically increasing or decreasing")
    for k in range(n):
        out[k] = edges[clamp(n - 1 - k)] if falls else edges[k]
    return falls
"""
"""Monotonic edges in increasing order, and whether they were decreasing; raises for others.

As in NumPy edges are increasing if the first two that differ are, and NaN is not above a number;
in increasing order NaN is last.
"""

QUANTILES = """
def quantiles(rows, n, places, out):
    for q in range(len(places)):
        place = min(places[q], n - 1)
        below = int(place)
        part = place - below if place < n - 1 else place + 1.0
        for r in range(len(rows)):
            last = rows[r, clamp(n - 1)]
            low, high = rows[r, clamp(below)], rows[r, clamp(min(below + 1, n - 1))]
            gap = high - low
            between = high - gap * (1.0 - part) if part >= 0.5 else low + gap * part
            out[q, r] = between if last == last else last
"""
"""Linear interpolation between order statistics: rows are sorted up to `n`, NaN last, and `places`
are real positions from 0 to `n - 1`, the last of which counts from -1, as in NumPy, for the sign of
a zero. The result of a row with a NaN is NaN."""

ELEMENTS = """
def elements(rows, n, places, out):
    for q in range(len(places)):
        for r in range(len(rows)):
            last = rows[r, clamp(n - 1)]
            out[q, r] = rows[r, clamp(places[q])] if last == last else last
"""
"""Order statistics: the elements at positions of rows that are sorted up to `n`, NaN last."""

MIDDLE = """
def middle(rows, below, half, last, out):
    for r in range(len(rows)):
        low, high = rows[r, clamp(below)] * 1.0, rows[r, clamp(half)] * 1.0
        mean = low + 0.0 if below == half else (low + high + 0.0) / 2.0
        out[r] = mean if last[r] == last[r] else last[r]
"""
"""The mean of the elements at two positions of a row, which may be one and the same; NaN where
`last`, the largest, is NaN."""

HISTOGRAM_EQUAL = """
def histogram_equal(a, weights, edges, counts):
    bins = len(counts)
    low = edges[0]
    high = edges[bins]
    for k in range(bins):
        if not edges[k] < edges[clamp(k + 1)]:
            raise ValueError("too many bins for the range of the values")
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
"""Weighted histogram with bins of equal width: the bin is computed, then corrected by its edges."""

HISTOGRAM_EDGES = """
def histogram_edges(a, weights, edges, counts):
    bins = len(counts)
    for k in range(bins):
        if edges[k] > edges[clamp(k + 1)]:
            raise ValueError("bins must increase monotonically")
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
"""Weighted histogram with any increasing edges: the bin is found by binary search."""

INTERPOLATE = """
def interpolate(x, xp, fp, out, left, right, has_nan):
    n = len(xp)
    for start in range(0, len(x), 1024):
        at = 0
        for k in range(start, min(start + 1024, len(x))):
            v = x[k]
            if v < xp[0]:
                out[k] = left
            elif v > xp[n - 1]:
                out[k] = right
            elif v != v and n > 1:
                out[k] = v if has_nan else 0.0
            else:
                lo = 0
                hi = at
                if xp[clamp(at)] <= v:
                    lo = at
                    hi = n
                    if at + 2 < n and v < xp[clamp(at + 2)]:
                        hi = at + 2
                while hi - lo > 1:
                    middle = (lo + hi) // 2
                    if xp[clamp(middle)] <= v:
                        lo = middle
                    else:
                        hi = middle
                at = lo
                low, high = fp[clamp(lo)], fp[clamp(lo + 1)]
                first, last = xp[clamp(lo)], xp[clamp(lo + 1)]
                if lo == n - 1 or first == v:
                    out[k] = low
                else:
                    slope = (high - low) / (last - first)
                    between = slope * (v - first) + low
                    if between != between:
                        between = slope * (v - last) + high
                        if between != between and low == high:
                            between = low
                    out[k] = between
"""
"""Piecewise linear interpolation; between infinities from the end whose result is no NaN. The
search begins at the interval of the point before, anew after 1,024 points, which threads share."""

_ELIMINATED = """
def {name}(a{given}):
    n = a.shape[0]
    {start}
    for s in range(0, n, 32):
        e = min(s + 32, n)
        for k in range(s, e):
            p = k
            best = abs(a[k, k])
            for i in range(k + 1, n):
                size = abs(a[i, k])
                if size > best:
                    best = size
                    p = i
            {failed}
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
                    a[i, k] = f
                    a[i, k + 1:e] -= f * a[k, k + 1:e]
        for i in range(s + 1, e):
            for k in range(s, i):
                f = a[i, k]
                a[i, e:] -= f * a[k, e:]
        a[e:, e:] -= a[e:, s:e] @ a[s:e, e:]
    {end}
"""
"""Blocked LU factorization with partial pivoting, in panels of 32 columns. `a` is overwritten by
its factors; a column whose pivot is 0 is not eliminated.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 3.2.11.
"""

SOLVE = _ELIMINATED.format(
    name="solve", given=", b", start="m = b.shape[1]", taken="",
    failed="""if best == 0:
                raise ValueError("singular matrix")""",
    turned="""for j in range(m):
                    u = b[k, j]
                    b[k, j] = b[clamp(p), j]
                    b[p, j] = u""",
    end="""for s in range(0, n, 32):
        e = min(s + 32, n)
        for i in range(s + 1, e):
            for k in range(s, i):
                b[i] -= a[i, k] * b[k]
        b[e:] -= a[e:, s:e] @ b[s:e]
    for last in range(n, 0, -32):
        s = max(last - 32, 0)
        for k in range(last - 1, s - 1, -1):
            b[k] /= a[k, k]
            for i in range(s, k):
                b[i] -= a[i, k] * b[k]
        b[:s] -= a[:s, s:last] @ b[s:last]""",
)  # fmt: skip
"""Linear solve: LU factorization, then forward and back substitution in blocks of 32 rows; `b` is
overwritten by the solution, `a` by its factors."""

DETERMINANT = _ELIMINATED.format(
    name="determinant", given="", start="result, singular = 1.0, False",
    failed="singular |= best == 0", turned="result = -result",
    taken="result = result * a[k, k]", end="return 0.0 if singular else result",
)  # fmt: skip
"""Determinant: the product of the pivots, negated at each row exchange; `a` is overwritten.

It is 0 where a pivot is, whatever the others: not NaN beside an infinity."""


def _sign_and_log(sign: str) -> str:
    return _ELIMINATED.format(
        name="slogdet", given="", start="sign, size_log, singular = 1.0, 0.0, False",
        failed="singular |= best == 0", turned="sign = -sign",
        taken=f"""size = abs(a[k, k])
            sign, size_log = sign * ({sign}), size_log + np.log(size)""",
        end="""if singular:
        sign, size_log = 0.0, -np.inf
    return sign, size_log""",
    )  # fmt: skip


SIGN_AND_LOG = _sign_and_log("-1.0 if a[k, k] < 0 else 1.0")
"""Sign and logarithm of the absolute value of the determinant, which itself may overflow. The sign
counts negative pivots: as in NumPy a NaN is none."""
COMPLEX_SIGN_AND_LOG = _sign_and_log("a[k, k] / size")
"""The same of a complex matrix, where the sign is a number of the absolute value 1."""

CHOLESKY = """
def cholesky(a):
    n = a.shape[0]
    for s in range(0, n, 32):
        e = min(s + 32, n)
        a[s:, s:e] -= a[s:, :s] @ np.conj(a[s:e, :s]).T
        for j in range(s, e):
            rest = np.real(a[j, j])
            if not rest > 0:
                raise ValueError("matrix is not positive definite")
            a[j, j] = np.sqrt(rest)
            a[j + 1:, j] /= a[j, j]
            a[j, j + 1:e] = np.conj(a[j + 1:e, j])
            for i in range(j + 1, n):
                f = a[i, j]
                a[i, j + 1:e] -= f * a[j, j + 1:e]
    for j in range(n):
        a[j, j + 1:] = 0
"""
"""Blocked Cholesky factorization, lower factor, in place, in panels of 32 columns."""

MATRIX_POWER = """
def matrix_power(squares, n, out):
    left = n
    is_first = True
    while left > 0:
        if left % 2 == 1:
            if is_first:
                out[...] = squares
            else:
                out[...] = out @ squares
            is_first = False
        left //= 2
        if left > 0:
            squares[...] = squares @ squares
"""
"""A power of matrices by squaring, in the order of the static one; `out` holds identities."""

POWER_MODULO = """
def power_modulo(base, exponent, modulus):
    def times(a, b, size):
        if size <= 3037000499:
            found = a * b % size
        else:
            found = 0
            while b > 0:
                if b % 2 == 1:
                    found = found - (size - a) if found >= size - a else found + a
                a = a - (size - a) if a >= size - a else a + a
                b //= 2
        return found

    size = abs(modulus)
    found = -1
    if size > 0:
        factor = base % size
        found = 1 % size
        turns = exponent
        if exponent < 0:
            old, new, a, b = 0, 1, size, factor
            while b > 0:
                whole = a // b
                a, b = b, a - whole * b
                old, new = new, old - whole * new
            factor = old % size
            found = factor if a == 1 else -1
            turns = -(exponent + 1) if a == 1 else 0
        while turns > 0:
            if turns % 2 == 1:
                found = times(found, factor, size)
            factor = times(factor, factor, size)
            turns //= 2
    return found
"""
"""Modular exponentiation by squaring, modulo `abs(modulus)`; -1 where there is no result.

For a negative exponent the inverse of the base comes from the extended Euclidean algorithm.
Products that might overflow int64 are computed by doubling and adding.
"""
