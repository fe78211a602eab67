"""argument 1: [2] against [1]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, idx, p):
    idx += np.less(a, p)
""",
    (
        ArgSpec("a", "uint16", shape=(1,), seed=1),
        ArgSpec("idx", "int64", shape=(1,), kind="index:3", seed=1),
        ArgSpec("p", "int", kind="-2"),
    ),
    reorders=False,
    rounds=False,
)
