"""result 0: dtype float64 against float32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    v1[i] = f64(i) + a[1, i]
    return (v1,)
""",
    (ArgSpec("a", "float32", shape=(2, 1), seed=1),),
    reorders=False,
    rounds=False,
)
