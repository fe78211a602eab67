"""Everyday array programs: graphs, images, text, finance, statistics."""

from __future__ import annotations

import math

import numpy as np


def spmv(indptr, indices, values, x):
    """Sparse matrix in compressed rows times a vector."""
    rows = indptr.shape[0] - 1
    y = np.empty(rows, dtype=values.dtype)
    for i in range(rows):
        cols = indices[indptr[i] : indptr[i + 1]]
        vals = values[indptr[i] : indptr[i + 1]]
        y[i] = vals @ x[cols]
    return y


def spmv_scalar(indptr, indices, values, x, y):
    """The same product with a scalar accumulator."""
    for i in range(len(y)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * x[indices[k]]
        y[i] = total


def crc16(data, poly=0x8408):
    """Bit by bit CRC-16 of bytes."""
    crc = 0xFFFF
    for b in data:
        byte = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (byte & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            byte >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8) | ((crc >> 8) & 0xFF)


def azimint_masks(data, radius, bins):
    """Mean of the data in every ring, one mask per ring."""
    rmax = np.max(radius)
    out = np.zeros(bins)
    for i in range(bins):
        inner = rmax * i / bins
        outer = rmax * (i + 1) / bins
        ring = np.logical_and(inner <= radius, radius < outer)
        out[i] = data[ring].mean()
    return out


def azimint_hist(data, radius, bins):
    """Mean of the data in every ring, by two histograms."""
    counts = np.histogram(radius, bins)[0]
    sums = np.histogram(radius, bins, weights=data)[0]
    return sums / counts


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    """Great-circle angles between pairs of points."""
    a = np.sin((theta_2 - theta_1) / 2) ** 2
    a += np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(a), np.sqrt(1 - a))


def go_fast(a):
    """The sum of a function of the diagonal, added to the whole matrix."""
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def compute(x, y, a, b, c):
    """A clipped linear form of integers."""
    return np.clip(x, 2, 10) * a + y * b + c


def smith_waterman(s, t, match, mismatch, gap):
    """Local alignment: the score table and the best score."""
    table = np.zeros((s.shape[0] + 1, t.shape[0] + 1), dtype=np.int64)
    best = 0
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            diagonal = table[i - 1, j - 1] + (match if s[i - 1] == t[j - 1] else -mismatch)
            table[i, j] = max(0, diagonal, table[i - 1, j] - gap, table[i, j - 1] - gap)
            if table[i, j] > best:
                best = table[i, j]
    return table, best


def edit_distance(s, t):
    """Levenshtein distance with two rows that change places."""
    previous = np.arange(len(t) + 1)
    current = np.zeros_like(previous)
    for i in range(len(s)):
        current[0] = i + 1
        for j in range(len(t)):
            cost = 0 if s[i] == t[j] else 1
            current[j + 1] = min(previous[j] + cost, previous[j + 1] + 1, current[j] + 1)
        previous, current = current, previous
    return previous[-1]


def game_of_life(board, steps):
    """Conway's rules on a torus, in place."""
    for _ in range(steps):
        neighbours = np.zeros_like(board)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy != 0 or dx != 0:
                    neighbours += np.roll(np.roll(board, dy, axis=0), dx, axis=1)
        stays = (board == 1) & (neighbours == 2)
        board[:] = (neighbours == 3) | stays


def life_sliced(board):
    """One generation without wrapping, by eight slices."""
    n = (
        board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
        + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
    )  # fmt: skip
    birth = (n == 3) & (board[1:-1, 1:-1] == 0)
    survive = ((n == 2) | (n == 3)) & (board[1:-1, 1:-1] == 1)
    board[...] = 0
    board[1:-1, 1:-1][birth | survive] = 1
    return board


def kmeans_step(points, centres):
    """Assign every point to its nearest centre, then move the centres."""
    d = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    label = np.argmin(d, axis=1)
    for k in range(centres.shape[0]):
        mine = label == k
        count = np.sum(mine)
        if count > 0:
            for c in range(centres.shape[1]):
                centres[k, c] = np.sum(np.where(mine, points[:, c], 0.0)) / count
    return label


def pagerank(links, damping, limit, tolerance):
    """Power iteration until the ranks settle."""
    n = links.shape[0]
    out = links.sum(axis=0)
    step = links / np.where(out == 0, 1.0, out)
    rank = np.full(n, 1.0 / n)
    for it in range(limit):  # noqa: B007 (returned)
        new = (1 - damping) / n + damping * (step @ rank)
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            break
    return rank, it


def conjugate_gradient(a, b, limit, tolerance):
    """Solve a positive definite system; the number of steps comes back too."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    old = r @ r
    steps = 0
    while steps < limit and np.sqrt(old) > tolerance:
        ap = a @ p
        alpha = old / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / old) * p
        old = new
        steps += 1
    return x, steps


def bilateral(image, size, spatial, tonal):
    """Edge-preserving blur of the interior."""
    h, w = image.shape
    out = image.copy()
    for y in range(size, h - size):
        for x in range(size, w - size):
            window = image[y - size : y + size + 1, x - size : x + size + 1]
            yy, xx = np.mgrid[-size : size + 1, -size : size + 1]
            weight = np.exp(-(yy**2 + xx**2) / (2 * spatial**2))
            weight = weight * np.exp(-((window - image[y, x]) ** 2) / (2 * tonal**2))
            out[y, x] = np.sum(weight * window) / np.sum(weight)
    return out


def sobel(image):
    """Gradient magnitude and a thresholded edge map of 8-bit pixels."""
    p = image.astype(np.int32)
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    size = np.hypot(gx, gy)
    edges = np.zeros_like(image)
    edges[1:-1, 1:-1] = np.where(size > size.mean(), 255, 0)
    return size, edges


def moving_average(x, width):
    """Sliding mean by cumulative sums."""
    sums = np.cumsum(x)
    sums[width:] = sums[width:] - sums[:-width]
    return sums[width - 1 :] / width


def exponential_average(x, alpha):
    """A recurrence through the whole signal."""
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, x.size):
        y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
    return y


def horner(coefficients, x):
    """A polynomial at many points."""
    y = np.zeros_like(x)
    for c in coefficients[::-1]:
        y = y * x + c
    return y


def pairwise_distances(x):
    """Distances between all rows, by the expanded square."""
    sq = (x * x).sum(1)
    d2 = sq[:, None] + sq[None] - 2.0 * x @ x.T
    return np.sqrt(np.maximum(d2, 0.0))


def pairwise_loops(x, d):
    """Distances between all rows with scalar loops, one triangle mirrored."""
    n, m = x.shape
    for i in range(n):
        for j in range(i + 1, n):
            s = 0.0
            for k in range(m):
                t = x[i, k] - x[j, k]
                s += t * t
            d[i, j] = d[j, i] = math.sqrt(s)


def _phi(z):
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


def black_scholes(spot, strike, years, rate, sigma):
    """Prices of calls and puts, option by option."""
    call = np.zeros_like(spot)
    put = np.zeros_like(spot)
    for i in range(len(spot)):
        root = sigma * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * sigma**2) * years[i]) / root
        d2 = d1 - root
        paid = strike[i] * math.exp(-rate * years[i])
        call[i] = spot[i] * _phi(d1) - paid * _phi(d2)
        put[i] = paid * _phi(-d2) - spot[i] * _phi(-d1)
    return call, put


def erf_series(x):
    """A rational approximation of erf on whole arrays."""
    a = np.abs(x)
    t = 1.0 / (1.0 + 0.3275911 * a)
    poly = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.sign(x) * (1.0 - poly * np.exp(-a * a))


def normalise_columns(table):
    """Column means and deviations, then the table rebound to its z-scores."""
    mu, sd = table.mean(axis=0), table.std(axis=0)
    table = (table - mu) / sd
    return table, mu, sd


def sieve(n):
    """Primes up to n as a mask, crossed out with strides."""
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return prime


def bubble_sort(x):
    """Exchange sort in place, leaving early when nothing moved."""
    n = len(x)
    for i in range(n):
        moved = False
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                moved = True
        if not moved:
            break


def count_words(ids, vocabulary):
    """Counts, the most frequent entry, and each entry's share."""
    counts = np.bincount(ids, minlength=vocabulary)
    return counts, counts.argmax(), counts / len(ids)


def monte_carlo_pi(x, y):
    """The share of points inside the quarter circle."""
    inside = 0
    for k in range(x.shape[0]):
        if x[k] ** 2 + y[k] ** 2 < 1.0:
            inside += 1
    return 4.0 * inside / x.shape[0]
