"""error none against OverflowError: Python integer 1846528784132138197 out of bounds fo."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, idx):
    idx[1] *= b[1, 0]
""",
    (
        ArgSpec("b", "int64", shape=(2, 1), kind="wild", seed=2),
        ArgSpec("idx", "int32", shape=(2,), kind="index:3", seed=1),
    ),
    reorders=True,
    rounds=False,
)
