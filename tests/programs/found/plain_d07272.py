"""the larger of a number and NaN, in a loop."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a):
    v2 = np.zeros(17)
    for t3 in range(17):
        v2[t3] = a[t3, 16 - t3]
    s8 = 1
    for t7 in range(17):
        s8 = max(s8, v2[t7])
    return (s8,)
""",
    (ArgSpec("a", "float64", shape=(17, 17), kind="wild", seed=841872691),),
    reorders=False,
    rounds=True,
)
