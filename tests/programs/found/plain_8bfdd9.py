"""a loop that surely runs sets a number anew: its type before the loop does not count."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, c):
    v1 = np.zeros(3, dtype=np.float32)
    for t2 in range(3):
        v1[t2] = t2
    a %= 1 >= v1[2:3]
    v6 = np.zeros(1, dtype=np.float32)
    for t7 in range(1):
        v6[t7] = a[t7]
    s12 = c[0]
    for t11 in range(1):
        s12 = v6[t11]
    return (s12,)
""",
    (
        ArgSpec("a", "float64", shape=(1,), seed=2),
        ArgSpec("c", "float64", shape=(1,), seed=2),
    ),
    reorders=False,
    rounds=False,
)
