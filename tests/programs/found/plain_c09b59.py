"""argument 1: [[3.3713202476501465]] against [[3.3713203072547913]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    v1[i, j] = where(1, a[i, i], a[1, j])
    v1[i, j] = sqrt(i)
    b[i, j] += min[l in range(1)](1.5) * v1[k, k]
""",
    (
        ArgSpec("a", "float32", shape=(3, 3), seed=1),
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
