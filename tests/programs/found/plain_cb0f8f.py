"""result 0: dtype float32 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, c):
    v1[i, j] = max[k in range(1)](0.25) if b[1, j] else c[j, i]
    return (v1,)
""",
    (
        ArgSpec("b", "float64", shape=(2, 1), seed=1),
        ArgSpec("c", "float32", shape=(1, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
