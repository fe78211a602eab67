"""result 0: dtype float64 against int64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(y):
    s, t, p, g = (0, 1, 0, False)
    while s:
        s *= 0.5
    s += y
    return (s,)
""",
    (ArgSpec("y", "int64", shape=(1,), seed=1),),
    reorders=True,
    rounds=False,
)
