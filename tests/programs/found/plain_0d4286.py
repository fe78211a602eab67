"""the start of a maximum takes the type of the array."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    return np.max(a, initial=2) * 1
""",
    (ArgSpec("a", "bool", shape=(1,), seed=1),),
    reorders=False,
    rounds=False,
)
