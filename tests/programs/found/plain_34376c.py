"""result 0: [1.0] against [-0.25]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v2 = np.take(b, 0, axis=0)
    b[:,] = 1
    return (v2,)
""",
    (ArgSpec("b", "float64", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=False,
)
