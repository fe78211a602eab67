"""results share memory with arguments: ((False, False, False, False),) against ((True, ."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c, d):
    v3 = a[1, 1, ...]
    return (v3,)
""",
    (
        ArgSpec("a", "float64", shape=(2, 2), seed=1),
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
        ArgSpec("c", "float64", shape=(1,), seed=1),
        ArgSpec("d", "float64", shape=(1, 1), seed=1),
    ),
    reorders=False,
    rounds=True,
)
