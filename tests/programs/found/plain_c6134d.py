"""equal extents in a loop that never runs were 'proven' to differ."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(c):
    for t in range(2, 2):
        v = c << c[:, ::-1]
""",
    (ArgSpec("c", "uint32", shape=(4, 4)),),
    reorders=False,
    rounds=False,
)
