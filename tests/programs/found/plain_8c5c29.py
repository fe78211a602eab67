"""an unsigned element compared with a negative number."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    if b[0] >= -1:
        b += 1
""",
    (ArgSpec("b", "uint64", shape=(3,), seed=1),),
    reorders=False,
    rounds=False,
)
