"""result 0: dtype float64 against int64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(y):
    r, c = y.shape
    t1 = np.zeros((r, c))

    def q4(p, q):
        if p[0, 0]:
            return p
        return q
    t5 = q4(t1, y)
    return (t5,)
""",
    (ArgSpec("y", "int64", shape=(1, 1), seed=2),),
    reorders=False,
    rounds=False,
)
