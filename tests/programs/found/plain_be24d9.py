"""result 0: dtype float64 against float32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b, c):

    def g9(u, v):
        return u - v * 1
    v10 = g9(a, np.array_equal(b[1,], c[1:4]))
    return (v10,)
""",
    (
        ArgSpec("a", "float32", shape=(1,), seed=1),
        ArgSpec("b", "float64", shape=(2, 3), seed=1),
        ArgSpec("c", "float64", shape=(4,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
