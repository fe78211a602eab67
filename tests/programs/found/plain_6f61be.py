"""argument 0: [[7.25]] against [[2.0]]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, idx):
    a[i, j] += sum[l >= k](idx[l]) * b[k, k]
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(2, 2), seed=1),
        ArgSpec("idx", "int64", shape=(2,), kind="index:3", seed=1),
    ),
    reorders=False,
    rounds=False,
)
