"""result 0: dtype int64 against int32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, idx):
    v1 = b
    g2 = lambda u, v: np.where(u, u, v)
    v3 = g2(1, v1[0, 1])
    v3 *= idx[0]
    return (v3,)
""",
    (
        ArgSpec("b", "int32", shape=(1, 2), seed=1),
        ArgSpec("idx", "int64", shape=(1,), kind="index:1", seed=1),
    ),
    reorders=False,
    rounds=False,
)
