"""result 0: dtype int64 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(d):
    v2[i, j] = max(abs(1), 0.25) + d[j, i]
    v4 = v2
    return (v4,)
""",
    (ArgSpec("d", "int64", shape=(1, 1), seed=2),),
    reorders=False,
    rounds=False,
)
