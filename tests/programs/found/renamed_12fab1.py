"""sink --- +++ @@ -14,10 +14,10 @@ # g1(...) # u = u[::-1] + v for i in 0..2: u = 0.0 -."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c, d):
    if -c[16, 1] <= -1:
        a[:3, -16] -= 3 // d

    def g1(u, v):
        u = u[::-1] + v
        u += v
        return u
    v2 = g1(np.sum(c, axis=0), b[7, :] - b[0, :])
    a[::-1, ...] += d.astype(np.int32)
    return (v2,)
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(8, 1), seed=1),
        ArgSpec("c", "float64", shape=(17, 2), seed=1),
        ArgSpec("d", "float64", seed=1),
    ),
    reorders=True,
    rounds=True,
)
