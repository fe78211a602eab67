"""argument 1: [[1, 0], [5, 9]] against [[1, 1], [1, 1]]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, c):

    def g2(u, v):
        for t in range(3):
            v[:] = 1
            u, v = (v, u)
    v3 = g2(c, a)
""",
    (
        ArgSpec("a", "int8", shape=(2, 2), layout="negative", seed=1),
        ArgSpec("c", "int8", shape=(2, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(passes=True, plain=False, profile="default", checked=True, stack_bytes=1048576)
