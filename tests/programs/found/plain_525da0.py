"""error none against Unknown: no range for ['i64']."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    a[0,] |= i64(1)
""",
    (
        ArgSpec("a", "int64", shape=(1, 1), seed=2),
    ),
    reorders=False,
    rounds=False,
)
