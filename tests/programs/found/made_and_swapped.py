"""An array that a loop makes is written in place where it was swapped for another one."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    v1 = a[0]
    for t6 in range(len(b)):
        v7[j] = sum[i](a[i, j])
        v1, v7 = (v7, v1)
""",
    (
        ArgSpec("a", "int64", shape=(2, 2), seed=1),
        ArgSpec("b", "float64", shape=(2, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
