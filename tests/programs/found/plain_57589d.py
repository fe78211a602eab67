"""result 0: dtype float32 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(d):
    v1[i] = where(1, mean[j in range(1)](0.5), d[i, i])
    return (v1,)
""",
    (ArgSpec("d", "float32", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=False,
)
