"""result 0: dtype float64 against float32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, d):
    v1 = np.zeros(11, dtype=np.float32)
    for t2 in range(11):
        v1[t2] = d[t2, 1]
    s4 = b[1, 1]
    for t3 in range(11):
        s4 = max(s4, v1[t3])
    return (s4,)
""",
    (
        ArgSpec("b", "float64", shape=(2, 2), seed=1),
        ArgSpec("d", "float64", shape=(17, 8), kind="wild", seed=1),
    ),
    reorders=False,
    rounds=False,
)
