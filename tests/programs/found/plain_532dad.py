"""result 0: dtype uint64 against float64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    v1[i] = min[j in range(1)](j) + a[i]
    return (v1,)
""",
    (ArgSpec("a", "uint64", shape=(1,), seed=1),),
    reorders=True,
    rounds=True,
)
