"""an array of small integers compared with a number that is too large."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, p):
    return b < 300, b == p, p > b, b >= -200
""",
    (
        ArgSpec("b", "int8", shape=(3,), seed=1),
        ArgSpec("p", "int", kind="300"),
    ),
    reorders=False,
    rounds=False,
)
