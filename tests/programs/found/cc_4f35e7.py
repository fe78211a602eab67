"""argument 2: [-0.0] against [0.0]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c):
    v1 = c
    v1[i] = a[i] / -1 + b[pad(1), i]
""",
    (
        ArgSpec("a", "bool", shape=(1,), seed=1),
        ArgSpec("b", "bool", shape=(1, 1), seed=1),
        ArgSpec("c", "float64", shape=(1,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
