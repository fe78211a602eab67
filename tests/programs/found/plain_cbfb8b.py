"""result 0: [1.5, 2.75] against [1.0, 1.0]."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v1[i] = b[1, i]
    v2 = np.where(v1, 1, v1)
    v3 = v2
    for t5 in range(1):
        v1, v2 = (v2, v1)
    return (v3,)
""",
    (ArgSpec("b", "float64", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=True,
)
