"""result 0: dtype float64 against int64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v1[i] = max(i, -2.0) + b[1, i]
    return (v1,)
""",
    (ArgSpec("b", "int64", shape=(2, 1), seed=2),),
    reorders=False,
    rounds=False,
)
