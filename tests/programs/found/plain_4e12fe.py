"""the square of a bool array."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(c):
    return c ** 2
""",
    (ArgSpec("c", "bool", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
