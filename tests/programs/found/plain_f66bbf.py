"""result 0: dtype int64 against int8."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v1 = np.select([b > 1, b < 0], [b.astype(np.int8), 1], 0)
    return (v1,)
""",
    (ArgSpec("b", "int64", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=False,
)
