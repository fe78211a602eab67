"""results share memory with arguments: ((False, False, False, False),) against ((False,."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, c, d, idx):
    v2 = d[1, ...]
    return (v2,)
""",
    (
        ArgSpec("b", "float64", shape=(1,), seed=1),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
        ArgSpec("d", "float64", shape=(2,), seed=1),
        ArgSpec("idx", "float64", shape=(1,), kind="index:3", seed=1),
    ),
    reorders=False,
    rounds=False,
)
