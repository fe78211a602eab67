"""error CdInternalError CD0991 against none: error[CD0991]: an impossible program was i."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    v2 = a
    if 1 < 1:
        pass
    elif j > i and v2[pad(i), i]:
        b[i, j] = 1
""",
    (
        ArgSpec("a", "int64", shape=(1, 2), seed=1),
        ArgSpec("b", "float64", shape=(2, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
