"""result 0: [0.0, 2.75] against [-0.25, 2.75]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(c):
    v1[i, j] = c[j, i]
    v1 /= 1
    v4[i] = v1[i, i]
    return v4
""",
    (ArgSpec("c", "float64", shape=(2, 2), seed=1),),
    reorders=True,
    rounds=True,
)
