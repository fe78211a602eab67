"""LU and Cholesky, written in several ways."""

from __future__ import annotations

from .variant import Variant

VARIANTS = (
    Variant(
        "LU with outer",
        """
        n = a.shape[0]
        for k in range(n):
            a[k+1:, k] /= a[k, k]
            a[k+1:, k+1:] -= np.outer(a[k+1:, k], a[k, k+1:])
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "LU with broadcasting",
        """
        n = a.shape[0]
        for k in range(n - 1):
            a[k+1:, k] = a[k+1:, k] / a[k, k]
            a[k+1:, k+1:] = a[k+1:, k+1:] - a[k+1:, k:k+1] * a[k:k+1, k+1:]
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "LU in loops",
        """
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                for k in range(j):
                    a[i, j] -= a[i, k] * a[k, j]
                a[i, j] /= a[j, j]
            for j in range(i, n):
                for k in range(i):
                    a[i, j] -= a[i, k] * a[k, j]
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "LU with dot products",
        """
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                a[i, j] -= a[i, :j] @ a[:j, j]
                a[i, j] /= a[j, j]
            for j in range(i, n):
                a[i, j] -= a[i, :i] @ a[:i, j]
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "LU of a leading part",
        """
        for k in range(n):
            if i > k:
                a[i, k] /= a[k, k]
            if i > k and j > k:
                a[i, j] -= a[i, k] * a[k, j]
        """,
        {"a": "f64[16, 16]", "n": "i64"},
        (),
    ),
    Variant(
        "LU that returns both factors",
        """
        n = a.shape[0]
        L = np.eye(n)
        U = a.copy()
        for k in range(n):
            L[k+1:, k] = U[k+1:, k] / U[k, k]
            U[k+1:, :] -= np.outer(L[k+1:, k], U[k, :])
        return L, U
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "Cholesky with dot",
        """
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                a[i, j] -= np.dot(a[i, :j], a[j, :j])
                a[i, j] /= a[j, j]
            a[i, i] -= np.dot(a[i, :i], a[i, :i])
            a[i, i] = np.sqrt(a[i, i])
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "Cholesky that returns",
        """
        n = a.shape[0]
        L = np.zeros_like(a)
        for j in range(n):
            L[j, j] = np.sqrt(a[j, j] - np.sum(L[j, :j] ** 2))
            L[j+1:, j] = (a[j+1:, j] - L[j+1:, :j] @ L[j, :j]) / L[j, j]
        return L
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
    Variant(
        "Cholesky in loops",
        """
        n = a.shape[0]
        for i in range(n):
            for j in range(i + 1):
                s = 0.0
                for k in range(j):
                    s += L[i, k] * L[j, k]
                if i == j:
                    L[i, j] = np.sqrt(a[i, i] - s)
                else:
                    L[i, j] = (a[i, j] - s) / L[j, j]
        """,
        {"a": "f64[16, 16]", "L": "f64[16, 16]"},
        (),
    ),
    Variant(
        "Cholesky of a leading part",
        """
        for j in range(n):
            L[j, j] = sqrt(a[j, j] - sum[k < j](L[j, k] * L[j, k]))
            if i > j:
                L[i, j] = (a[i, j] - sum[k < j](L[i, k] * L[j, k])) / L[j, j]
        """,
        {"L": "f64[16, 16]", "a": "f64[16, 16]", "n": "i64"},
        (),
    ),
    Variant(
        "Cholesky, right-looking",
        """
        n = a.shape[0]
        for k in range(n):
            a[k, k] = np.sqrt(a[k, k])
            a[k+1:, k] /= a[k, k]
            for j in range(k + 1, n):
                a[j:, j] -= a[j:, k] * a[j, k]
        """,
        {"a": "f64[16, 16]"},
        (),
    ),
)
