"""result 0: dtype int64 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(idx):
    v1[i, j] = min(-1, 0.25) + idx[i] + idx[j]
    return (v1,)
""",
    (ArgSpec("idx", "int64", shape=(1,), kind="index:2", seed=2),),
    reorders=False,
    rounds=False,
)
