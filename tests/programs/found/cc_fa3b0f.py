"""result 0: [nan, 1.25] against [-inf, 1.25]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v1[i] = b[i, 1] / -(i * i)
    return (v1,)
""",
    (ArgSpec("b", "float64", shape=(2, 2), seed=2),),
    reorders=False,
    rounds=True,
)
