"""a reshaped argument is a view of it."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    return a.reshape(-1)
""",
    (ArgSpec("a", "float64", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
