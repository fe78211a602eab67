"""argument 0: [[-0.4267766922712326]] against [[-0.42677669529663687]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, c):
    a[i, j] += sqrt(f64(0.5)) * c[k, i]
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("c", "float32", shape=(1, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
