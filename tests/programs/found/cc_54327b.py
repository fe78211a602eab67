"""argument 1: [[1, 0], [25, 81]] against [[1, 0], [113, -95]]."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    for t1 in range(len(a)):
        b *= a * b * a
""",
    (
        ArgSpec("a", "bool", shape=(2,), seed=2),
        ArgSpec("b", "int8", shape=(2, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(passes=True, plain=False, optimize=3)
