"""Black-Scholes and steps of the heat equation, written in several ways."""

from __future__ import annotations

from .variant import Variant

VARIANTS = (
    Variant(
        "Black-Scholes with erf",
        """
        d1 = (np.log(s / k) + (r + sigma ** 2 / 2) * t) / (sigma * np.sqrt(t))
        d2 = d1 - sigma * np.sqrt(t)
        n1 = 0.5 * (1 + erf(d1 / np.sqrt(2.0)))
        n2 = 0.5 * (1 + erf(d2 / np.sqrt(2.0)))
        call = s * n1 - k * np.exp(-r * t) * n2
        put = call - s + k * np.exp(-r * t)
        return call, put
        """,
        {"s": "f64[100]", "k": "f64[100]", "t": "f64[100]", "r": "f64", "sigma": "f64"},
        (),
    ),
    Variant(
        "Black-Scholes with a polynomial",
        """
        def cnd(d):
            K = 1.0 / (1.0 + 0.2316419 * np.abs(d))
            g = np.exp(-0.5 * d * d) * 0.39894228
            p = g * (K * (0.3193 + K * (-0.3565 + K * (1.7814 + K * (-1.8212 + K * 1.3302)))))
            return np.where(d > 0, 1.0 - p, p)
        sq = np.sqrt(t)
        d1 = (np.log(s / k) + (r + 0.5 * sigma * sigma) * t) / (sigma * sq)
        d2 = d1 - sigma * sq
        ex = np.exp(-r * t)
        call[:] = s * cnd(d1) - k * ex * cnd(d2)
        put[:] = k * ex * (1.0 - cnd(d2)) - s * (1.0 - cnd(d1))
        """,
        {
            "call": "f64[100]",
            "put": "f64[100]",
            "s": "f64[100]",
            "k": "f64[100]",
            "t": "f64[100]",
            "r": "f64",
            "sigma": "f64",
        },
        (),
    ),
    Variant(
        "Black-Scholes in a loop",
        """
        call = np.zeros(s.shape[0])
        put = np.empty_like(s)
        for i in range(len(s)):
            d1 = (np.log(s[i] / k[i]) + (r + 0.5 * sigma ** 2) * t[i]) / (sigma * np.sqrt(t[i]))
            d2 = d1 - sigma * np.sqrt(t[i])
            paid = k[i] * np.exp(-r * t[i])
            call[i] = s[i] * 0.5 * (1 + erf(d1 * 0.7)) - paid * 0.5 * (1 + erf(d2 * 0.7))
            put[i] = call[i] - s[i] + k[i] * np.exp(-r * t[i])
        return call, put
        """,
        {"s": "f64[100]", "k": "f64[100]", "t": "f64[100]", "r": "f64", "sigma": "f64"},
        (),
    ),
    Variant(
        "Black-Scholes by index",
        """
        d1[i] = (log(s[i] / k[i]) + (r + 0.5 * sigma ** 2) * t[i]) / (sigma * sqrt(t[i]))
        d2[i] = d1[i] - sigma * sqrt(t[i])
        paid[i] = k[i] * exp(-r * t[i])
        call[i] = s[i] * 0.5 * (1 + erf(d1[i] * 0.7)) - paid[i] * 0.5 * (1 + erf(d2[i] * 0.7))
        put[i] = paid[i] * 0.5 * (1 + erf(-d2[i] * 0.7)) - s[i] * 0.5 * (1 + erf(-d1[i] * 0.7))
        """,
        {
            "call": "f64[100]",
            "put": "f64[100]",
            "s": "f64[100]",
            "k": "f64[100]",
            "t": "f64[100]",
            "r": "f64",
            "sigma": "f64",
        },
        (),
    ),
    Variant(
        "Black-Scholes of single precision",
        """
        sqt = vol * np.sqrt(t)
        d1 = (np.log(s / k) + (rate + vol * vol / 2) * t) / sqt
        d2 = d1 - sqt
        nd1 = (1.0 + erf(d1 / np.sqrt(2.0))) / 2.0
        nd2 = (1.0 + erf(d2 / np.sqrt(2.0))) / 2.0
        disc = k * np.exp(-rate * t)
        c = s * nd1 - disc * nd2
        return c, c - s + disc
        """,
        {"s": "f32[100]", "k": "f32[100]", "t": "f32[100]", "rate": "f32[100]", "vol": "f32[100]"},
        (),
    ),
    Variant(
        "heat in place",
        """
        for _ in range(steps):
            near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] += 0.1 * (near - 4 * u[1:-1, 1:-1])
        """,
        {"u": "f64[32, 32]", "steps": "i64"},
        ("near",),
    ),
    Variant(
        "heat from a copy",
        """
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        v = u.copy()
        v[1:-1, 1:-1] += 0.1 * lap
        return v
        """,
        {"u": "f64[32, 32]"},
        (),
    ),
    Variant(
        "heat on a torus",
        """
        lap = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        return u + 0.1 * lap
        """,
        {"u": "f64[32, 32]"},
        (),
    ),
    Variant(
        "heat into an argument",
        """
        uxx = (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1]) / dx2
        uyy = (u[1:-1, 2:] - 2 * u[1:-1, 1:-1] + u[1:-1, :-2]) / dy2
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + dt * (uxx + uyy)
        """,
        {"u": "f64[32, 32]", "new": "f64[32, 32]", "dx2": "f64", "dy2": "f64", "dt": "f64"},
        (),
    ),
    Variant(
        "heat with two buffers",
        """
        v = np.zeros_like(u)
        for _ in range(steps):
            near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            v[1:-1, 1:-1] = 0.6 * u[1:-1, 1:-1] + 0.1 * near
            u, v = v, u
        return u
        """,
        {"u": "f64[32, 32]", "steps": "i64"},
        ("v",),
    ),
    Variant(
        "heat by fluxes",
        """
        flux = u[1:] - u[:-1]
        u[1:-1] += 0.1 * (flux[1:] - flux[:-1])
        """,
        {"u": "f64[100]"},
        ("flux",),
    ),
    Variant(
        "heat by index",
        """
        if i > 0 and i < 31 and j > 0 and j < 31:
            v[i, j] = u[i, j] + 0.1 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 4 * u[i, j])
        """,
        {"u": "f64[32, 32]", "v": "f64[32, 32]"},
        (),
    ),
    Variant(
        "heat in loops",
        """
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                near = u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]
                v[i, j] = u[i, j] + 0.1 * (near - 4 * u[i, j])
        """,
        {"u": "f64[32, 32]", "v": "f64[32, 32]"},
        (),
    ),
)
