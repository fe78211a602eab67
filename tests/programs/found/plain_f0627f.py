"""argument 0: [[-1, 0, 5, 9, -9, -5], [6, 9, -5, -4, 7, -4], [-4, 6, -5, -2, 3, 7], [-8."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(c, d):
    v1[i, j] = d[i, j]
    v1[::-1, -1] = v1[1, 2:6][::-1]
    c[:,] = v1
""",
    (
        ArgSpec("c", "int64", shape=(4, 6), seed=1),
        ArgSpec("d", "int64", shape=(4, 6), seed=1),
    ),
    reorders=False,
    rounds=False,
)
