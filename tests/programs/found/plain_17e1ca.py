"""result 0: dtype float32 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    v1[i] = a[i, i] * sum[j in range(1)](1.5)
    return (v1,)
""",
    (ArgSpec("a", "float32", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=False,
)
