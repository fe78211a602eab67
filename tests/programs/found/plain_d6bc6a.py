"""result 0: dtype int64 against uint32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    v1[i, j] = where(a[j], any[k in range(1)](i), i) + a[i]
    return (v1,)
""",
    (ArgSpec("a", "uint32", shape=(1,), seed=1),),
    reorders=False,
    rounds=False,
)
