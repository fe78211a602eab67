"""result 0: [True] against [False]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(d, p):
    s1 = np.less(d, p)
    return (s1,)
""",
    (
        ArgSpec("d", "uint32", shape=(1,), seed=1),
        ArgSpec("p", "int", kind="-1"),
    ),
    reorders=False,
    rounds=False,
)
